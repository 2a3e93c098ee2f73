// Plots that answer: values at the cursor, zoom along x on one clock, series switched on and off with the y axis over what is left. Text is set as text, never as markup.
(() => {
  const WIDTH = 1000, HEIGHT = 240, REACH = 0.02;  // of the canvas, and how near a dot must be, as a share of the window
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const written = (value, span) => {  // to about a thousandth of the span, which is coarser than the path
    if (!Number.isFinite(value)) return "–";
    const power = Math.floor(Math.log10(span));
    const text = power > 6 || power < -4 ? value.toExponential(3) : value.toFixed(Math.max(0, 3 - power));
    return text.replace(/-/g, "−");
  };
  const raised = (text) => text.replace(/[-\d]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  const ticksOver = (low, high, count) => {  // as Axis.ticks has them
    let step, first, last;
    do {
      const rough = (high - low) / count++, power = 10 ** Math.floor(Math.log10(rough));
      step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
      first = Math.ceil(low / step - 1e-9); last = Math.floor(high / step + 1e-9);
    } while (last - first < 2);
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return Array.from({ length: last - first + 1 }, (_, k) => {
      const value = (first + k) * step;
      return [value, (places > 6 ? value.toExponential(2).replace(/e\+?(.+)/, (_, p) => `·10${raised(p)}`) : value.toFixed(places)).replace(/-/g, "−")];
    });
  };
  const logTicks = (low, high) => {
    if (high - low < 2) return ticksOver(10 ** low, 10 ** high, 5).map(([v, text]) => [Math.log10(v), text]).filter(([v]) => Number.isFinite(v));
    const step = Math.max(1, Math.ceil((high - low) / 6)), out = [];
    for (let p = Math.ceil(low); p <= high; p++) if (p % step === 0) out.push([p, p > -4 && p < 5 ? String(+(10 ** p).toPrecision(1)) : `10${raised(String(p))}`]);
    return out;
  };

  const read = (path) => {  // the points of a curve from its path, in units of the canvas
    const d = path.getAttribute("d"), has = (...names) => names.some((n) => path.classList.contains(n));
    const kind = has("bars") ? "bars" : has("limit") ? "level" : has("dots", "kept", "dropped") ? "dots" : "line";
    if (kind === "bars") {
      const boxes = [...d.matchAll(/M([^,]+),[^V]+V([^H]+)H([^V]+)V/g)];
      return { kind, runs: [boxes.map((b) => [(+b[1] + +b[3]) / 2, +b[2]])] };
    }
    const runs = d.split("M").filter((s) => s.trim()).map((s) => s.trim().replace(/h.*$/, "").split(" ").map((p) => p.split(",").map(Number)));
    const plane = kind === "line" && runs.some((run) => run.some((p, k) => k > 0 && p[0] < run[k - 1][0]));
    return { kind, runs, plane };
  };
  const height = (curve, x, reach) => {  // of a curve at x; NaN where it has no value
    if (curve.kind === "level") return curve.runs[0][0][1];
    if (curve.kind !== "line") {
      let best = [Infinity, NaN];
      for (const run of curve.runs) for (const [a, b] of run) if (Math.abs(a - x) < best[0]) best = [Math.abs(a - x), b];
      return best[0] <= reach ? best[1] : NaN;
    }
    for (const run of curve.runs) {
      if (x < run[0][0] || x > run[run.length - 1][0]) continue;
      let i = 0, j = run.length - 1;
      while (j - i > 1) { const k = (i + j) >> 1; if (run[k][0] <= x) i = k; else j = k; }
      const [[a, p], [b, q]] = [run[i], run[j]];
      return b > a ? p + ((q - p) * (x - a)) / (b - a) : q;
    }
    return NaN;
  };

  class Answer {  // one plot
    constructor(canvas) {
      const pair = (name) => canvas.dataset[name].split(" ").map(Number);
      this.canvas = canvas; this.svg = canvas.querySelector("svg");
      [this.x, this.y] = [pair("x"), pair("y")];
      this.logX = (canvas.dataset.log || "").includes("x"); this.logY = (canvas.dataset.log || "").includes("y");
      this.names = canvas.dataset.names ? JSON.parse(canvas.dataset.names) : null;
      this.paths = [...this.svg.querySelectorAll("path[data-series]:not(.band)")];
      this.xTicks = [...canvas.querySelectorAll(".x-tick")];
      this.yTicks = [...canvas.querySelectorAll(".y-tick")]; this.grid = [...this.svg.querySelectorAll("path.grid")];
      this.up = [0, HEIGHT];  // what is seen of the canvas, from the top down
      this.line = make("div", "cursor"); this.box = make("output", "readout"); this.zone = make("div", "zone");
      for (const e of [this.line, this.box, this.zone]) { e.hidden = true; canvas.append(e); }
      canvas.classList.add("answers"); canvas.tabIndex = 0; canvas.setAttribute("role", "group");
      const keys = this.names ? "arrow keys move the cursor" : "arrow keys move the cursor, plus and minus zoom, Escape resets";
      canvas.setAttribute("aria-label", `${this.svg.getAttribute("aria-label")}: ${keys}`);
      const key = canvas.dataset.clock || "";
      if (key && !groups.has(key)) groups.set(key, { plots: [], window: null });
      this.group = key ? groups.get(key) : { plots: [], window: null };
      this.group.plots.push(this);
      this.listen();
    }
    get curves() { return (this.read ??= this.paths.map((p) => ({ path: p, label: p.dataset.series, ...read(p) }))); }
    get shown() { return this.curves.filter((c) => !c.path.classList.contains("off")); }
    get zoomed() { const w = this.group.window; return w !== null && w[0] < this.x[1] && w[1] > this.x[0]; }  // or nothing would be left to see
    get window() { return this.zoomed ? this.group.window : this.x; }
    onCanvas(value) { return (WIDTH * (value - this.x[0])) / (this.x[1] - this.x[0]); }
    valueOf(y) { const v = this.y[0] + (1 - y / HEIGHT) * (this.y[1] - this.y[0]); return this.logY ? 10 ** v : v; }
    share(event) { const r = this.canvas.getBoundingClientRect(); return Math.max(0, Math.min(1, (event.clientX - r.left) / r.width)); }
    value(share) { const [a, b] = this.window; return a + share * (b - a); }

    point(at, event) {  // put the cursor at a value of x
      const [a, b] = this.window;
      if (this.names) at = Math.max(0, Math.min(this.names.length - 1, Math.round(at)));
      this.at = Math.max(a, Math.min(b, at));
      for (const p of this.group.plots) p.mark(this.at);
      this.box.replaceChildren();
      const plane = this.shown.some((c) => c.plane), x = this.onCanvas(this.at);
      const rows = plane ? this.nearest(x, event) : this.shown.map((c) => [c, height(c, x, this.names ? (0.4 * WIDTH) / this.names.length : (REACH * WIDTH * (b - a)) / (this.x[1] - this.x[0]))]);
      const head = plane ? this.near : this.at, text = this.names ? this.names[head] : written(this.logX ? 10 ** head : head, this.logX ? Math.abs(10 ** head) : b - a);
      const unit = this.canvas.dataset.xLabel || "";
      this.box.append(make("b", "", unit && !this.names ? `${text}  ${unit.replace(/^time, /, "")}` : text));
      this.box.firstChild.dataset.value = this.logX ? 10 ** head : head;
      for (const [curve, y] of rows) {
        const row = make("span"), value = this.valueOf(y), key = make("i");
        key.style.background = getComputedStyle(curve.path)[curve.kind === "bars" ? "fill" : "stroke"];
        const number = make("em", "", written(value, this.logY ? Math.abs(value) || 1 : this.y[1] - this.y[0]));
        number.dataset.value = value; number.dataset.series = curve.label;
        row.append(key, number, make("span", "", curve.label)); this.box.append(row);
      }
      const where = (this.at - a) / (b - a);
      this.box.hidden = false; this.box.style.left = `${100 * where}%`;
      this.box.classList.toggle("leftwards", where > 0.5);
    }
    nearest(x, event) {  // of a curve in the plane its point nearest to the pointer, seen on the screen
      const r = this.canvas.getBoundingClientRect(), [a, b] = this.window;
      const [top, bottom] = this.up, sx = (r.width / WIDTH) * ((this.x[1] - this.x[0]) / (b - a)), sy = r.height / (bottom - top);
      const up = event ? top + ((event.clientY - r.top) / r.height) * (bottom - top) : (top + bottom) / 2;
      let best = [Infinity, null, NaN, NaN];
      for (const c of this.shown) for (const run of c.runs) for (const [p, q] of run) {
        const d = Math.hypot(sx * (p - x), event ? sy * (q - up) : 0);
        if (d < best[0]) best = [d, c, p, q];
      }
      this.near = this.x[0] + (best[2] / WIDTH) * (this.x[1] - this.x[0]);
      return best[1] ? [[best[1], best[3]]] : [];
    }
    mark(at) {
      const [a, b] = this.window;
      this.line.hidden = at < a || at > b; this.line.style.left = `${(100 * (at - a)) / (b - a)}%`;
    }
    leave() { for (const p of this.group.plots) { p.line.hidden = true; p.box.hidden = true; } }

    zoom(a, b) {
      const near = this.group.plots.filter((p) => p.x[0] < this.x[1] && p.x[1] > this.x[0]);
      const low = Math.min(...near.map((p) => p.x[0])), high = Math.max(...near.map((p) => p.x[1]));
      const least = 1e-4 * (high - low), wide = Math.max(b - a, least);
      a = Math.max(low, Math.min(high - wide, a)); b = Math.min(high, a + wide);
      this.group.window = b - a >= (high - low) * (1 - 1e-9) ? null : [a, b];
      this.leave();
      for (const p of this.group.plots) p.draw();
    }
    get extent() {  // top and bottom of what is shown, bands among it; null where all is shown, or bars, which stand on their floor
      const drawn = [...this.svg.querySelectorAll("path[data-series]")], left = drawn.filter((p) => !p.classList.contains("off"));
      if (left.length === drawn.length || !left.length || drawn.some((p) => p.classList.contains("bars"))) return null;
      let top = Infinity, bottom = -Infinity;
      for (const path of left) for (const [, y] of path.getAttribute("d").matchAll(/,([-+.\de]+)/g)) { top = Math.min(top, +y); bottom = Math.max(bottom, +y); }
      return bottom >= top ? [top, bottom] : null;
    }
    rescale(extent) {  // the y axis over an extent, or as it was
      const room = extent ? 0.04 * (extent[1] - extent[0]) || 0.05 * HEIGHT : 0;
      this.up = extent ? [extent[0] - room, extent[1] + room] : [0, HEIGHT];
      for (const e of [...this.canvas.querySelectorAll(".y-tick"), ...this.svg.querySelectorAll("path.grid")]) e.remove();
      const axis = (y) => this.y[0] + (1 - y / HEIGHT) * (this.y[1] - this.y[0]), [top, bottom] = this.up;
      const count = this.canvas.clientHeight < 100 ? 4 : 5;
      const places = extent ? (this.logY ? logTicks : ticksOver)(axis(bottom), axis(top), count) : [];
      const high = (v) => (1 - (v - this.y[0]) / (this.y[1] - this.y[0])) * HEIGHT;
      const ticks = extent ? places.map(([v, text]) => { const e = make("span", "y-tick", text); e.style.top = `${(100 * (high(v) - top)) / (bottom - top)}%`; return e; }) : this.yTicks;
      const lines = extent ? places.map(([v]) => { const e = document.createElementNS(this.svg.namespaceURI, "path"); e.setAttribute("class", "grid"); e.setAttribute("d", `M0,${high(v)}h${WIDTH}`); return e; }) : this.grid;
      this.canvas.append(...ticks); this.svg.prepend(...lines);
      this.draw();
    }
    draw() {
      const zoomed = this.zoomed, [a, b] = zoomed ? this.window.map((v) => this.onCanvas(v)) : [0, WIDTH], [top, bottom] = this.up;
      this.svg.setAttribute("viewBox", `${a} ${top} ${b - a} ${bottom - top}`);
      this.canvas.classList.toggle("zoomed", zoomed || bottom - top < HEIGHT);
      this.ticks();
    }
    ticks() {
      const zoomed = this.zoomed, [a, b] = this.window;
      if (!this.xTicks.length) return;
      for (const tick of this.canvas.querySelectorAll(".x-tick")) tick.remove();
      const places = (this.logX ? logTicks : ticksOver)(a, b, 6);
      const made = zoomed ? places.map(([v, text]) => { const e = make("span", "x-tick", text); e.style.left = `${(100 * (v - a)) / (b - a)}%`; return e; }) : this.xTicks;
      this.canvas.append(...made);
    }
    listen() {
      const on = (name, does) => this.canvas.addEventListener(name, does);
      on("pointermove", (e) => this.point(this.value(this.share(e)), e));
      on("pointerleave", () => this.leave());
      on("focus", () => { if (this.canvas.matches(":focus-visible")) this.point(this.at ?? (this.window[0] + this.window[1]) / 2); });
      on("blur", () => this.leave());
      on("keydown", (e) => this.key(e));
      if (this.names) return;
      on("dblclick", () => this.zoom(-Infinity, Infinity));
      on("pointerdown", (e) => {
        if (e.button !== 0) return;
        const from = this.share(e), drag = (m) => {
          const to = this.share(m);
          this.zone.hidden = false;
          this.zone.style.left = `${100 * Math.min(from, to)}%`; this.zone.style.width = `${100 * Math.abs(to - from)}%`;
        };
        const end = (u) => {
          this.zone.hidden = true;
          window.removeEventListener("pointermove", drag); window.removeEventListener("pointerup", end); window.removeEventListener("pointercancel", end);
          const [a, b] = [from, this.share(u)].sort((p, q) => p - q);
          if (u.type === "pointerup" && (b - a) * this.canvas.clientWidth > 5) { this.zoom(this.value(a), this.value(b)); this.point(this.value(this.share(u)), u); }
        };
        window.addEventListener("pointermove", drag); window.addEventListener("pointerup", end); window.addEventListener("pointercancel", end);
      });
    }
    key(event) {
      const [a, b] = this.window, at = this.at ?? (a + b) / 2, step = this.names ? 1 : (event.shiftKey ? 0.1 : 0.01) * (b - a);
      const scale = (f) => this.zoom(at - f * (at - a), at + f * (b - at));
      const does = {
        ArrowLeft: () => { if (at - step < a && !this.names) this.zoom(a - step, b - step); this.point(at - step); },
        ArrowRight: () => { if (at + step > b && !this.names) this.zoom(a + step, b + step); this.point(at + step); },
        Home: () => this.point(a), End: () => this.point(b),
        ...(this.names ? {} : { "+": () => { scale(0.5); this.point(at); }, "=": () => { scale(0.5); this.point(at); }, "-": () => { scale(2); this.point(at); } }),
        Escape: () => { if (!this.names) this.zoom(-Infinity, Infinity); this.leave(); },
      }[event.key];
      if (does && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); does(); }
    }
  }
  const groups = new Map(), answers = new Map();
  for (const canvas of document.querySelectorAll(".canvas[data-x]")) answers.set(canvas, new Answer(canvas));
  const rescale = (figure) => {  // plots of a figure that had one scale keep one, so that they can be compared
    const plots = [...figure.querySelectorAll(".canvas[data-x]")].map((c) => answers.get(c));
    for (const scale of new Set(plots.map((p) => p.canvas.dataset.y))) {
      const same = plots.filter((p) => p.canvas.dataset.y === scale), found = same.map((p) => p.extent).filter((e) => e);
      const common = found.length ? [Math.min(...found.map((e) => e[0])), Math.max(...found.map((e) => e[1]))] : null;
      for (const p of same) { p.leave(); p.rescale(common); }
    }
  };

  let legend = null;  // a figure without a legend answers to the one before it in its section
  const follow = new Map();
  for (const figure of document.querySelectorAll("figure")) {
    const own = figure.querySelector(".legend");
    if (own) legend = own;
    if (legend && legend.closest("section") === figure.closest("section")) follow.set(figure, legend);
  }
  for (const item of document.querySelectorAll(".legend [data-series]")) {
    const button = make("button");
    button.type = "button"; button.dataset.series = item.dataset.series;
    button.setAttribute("aria-pressed", "true");
    button.append(...item.childNodes); item.replaceWith(button);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      for (const [figure, own] of follow)
        if (own === button.closest(".legend")) {
          for (const path of figure.querySelectorAll(".canvas path[data-series]"))
            if (path.dataset.series === button.dataset.series) path.classList.toggle("off", !on);
          rescale(figure);
        }
    });
  }
})();
