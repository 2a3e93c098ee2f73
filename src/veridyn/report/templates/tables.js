// Long tables: sorted by a click on a column's name, searched through a box. Needs nothing from outside.
(() => {
  const SORTED = 6, SEARCHED = 12;  // rows from which a table has them
  const digits = Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((c, k) => [c, k]).concat([["⁻", "-"]]));
  const key = (row, column) => {
    const cell = row.cells[column], text = (cell.dataset.sort ?? cell.textContent).trim().replace(/−/g, "-");
    const found = /^[<>]?\s*([-+]?\d[\d.]*(?:e[-+]?\d+)?)(?:·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(?![\w.])/.exec(text);
    if (!found) return text === "–" || text === "" ? NaN : text;
    const power = found[2] ? Number([...found[2]].map((c) => digits[c]).join("")) : 0;
    return Number(found[1]) * 10 ** power;
  };
  const before = (a, b) => {  // numbers, then words, then what is missing
    const rank = (v) => (typeof v === "string" ? 1 : Number.isNaN(v) ? 2 : 0);
    return rank(a) - rank(b) || (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b || 0);
  };
  const buttons = [];  // heads of columns with what is in them
  for (const table of document.querySelectorAll(".wide table:not(.unsorted)")) {
    const body = table.tBodies[0], given = [...body.rows];
    if (given.length < SORTED) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button"; button.append(...head.childNodes); head.append(button); buttons.push([head, button]);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", next);
        const keyed = given.map((row) => [key(row, column), row]);
        const missing = (v) => typeof v === "number" && Number.isNaN(v);
        if (next !== "none") keyed.sort(([a], [b]) => (next === "ascending" || missing(a) || missing(b) ? before(a, b) : before(b, a)));
        body.append(...keyed.map(([, row]) => row));
      });
    });
    if (given.length < SEARCHED) continue;
    const label = document.createElement("label"), box = document.createElement("input"), count = document.createElement("output");
    label.className = "search"; box.type = "search"; box.placeholder = "filter rows"; box.setAttribute("aria-label", "filter the rows of the table");
    label.append(box, count);
    table.closest(".wide").before(label);
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of given) {
        const named = [...row.cells].filter((c) => c.matches("th, .text, .unit, .strip"));  // words, not digits of numbers
        const text = named.map((c) => c.textContent).join(" ").toLowerCase(), keep = words.every((w) => text.includes(w));
        row.hidden = !keep; left += keep;
      }
      count.textContent = words.length ? `${left} of ${given.length} rows` : "";
    });
  }
  // Heads that hold a button are not repeated on the next sheet of paper.
  window.addEventListener("beforeprint", () => { for (const [head, button] of buttons) head.replaceChildren(...button.childNodes); });
  window.addEventListener("afterprint", () => { for (const [head, button] of buttons) { button.append(...head.childNodes); head.append(button); } });
})();
