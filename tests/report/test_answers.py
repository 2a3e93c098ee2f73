"""Pages that answer, in a real browser: values at the cursor, linked zoom, legends, tables, narrow windows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from report.browser import drive
from veridyn.inference.verdict import Verdict
from veridyn.report.blocks import Block, Figure, Section, Table, Text
from veridyn.report.notebook import Display
from veridyn.report.page import page
from veridyn.report.plots import Series, bars, curves
from veridyn.studies.result import Result

T = np.linspace(1.0, 5.0, 401)
SINE, RAMP = 3.0 * np.sin(4.0 * T), 100.0 * T - 250.0
PATH_X, PATH_Y = 0.1 / 1000.0, 0.01 / 240.0  # steps of a path, as shares of the axes
BODY = ("mass", "inertia about the long axis", "friction & <b>drag</b>")


def set_page(*blocks: Block) -> str:
    result = Result("a study", 1, False, {}, {}, (), {}, ())
    sections = [Section("First", blocks), Section("Second", [])]
    return page("A title", Verdict("good", "It works."), [], sections, result, "veridyn demo x")


def two_plots() -> str:
    band = (SINE - 0.5, SINE + 0.5)
    upper = curves(
        "upper", [Series("sine", T, SINE, band=band), Series("cosine", T, np.cos(T), "dashed")], "time, s", "N"
    )
    lower = curves("lower", [Series("ramp", T[:300], RAMP[:300])], "time, s", "mm")
    fall = curves("fall", [Series("law", T, T**-3)], "frequency, Hz", "1", log_x=True, log_y=True)
    late = curves("late", [Series("later", T + 100.0, SINE)], "time, s", "N")
    return set_page(Figure([upper, lower], "Both"), Figure([fall], "Law"), Figure([late], "Later"))


def test_browser_values_at_the_cursor_are_those_of_the_data(tmp_path: Path) -> None:
    """Hover at a share of the axis: each curve's value by linear interpolation, to half a step of its path and the slope over one in x."""
    shares = [0.0, 0.137, 0.5, 0.731, 1.0]
    script = f"""
      const [upper, lower, fall] = all(".canvas[data-x]"), out = [];
      for (const share of {shares}) {{
        const row = [];
        for (const e of [upper, lower, fall]) {{ pointer(e, "pointermove", share); row.push([place(e), values(e)]); }}
        out.push(row);
      }}
      return out;"""
    for share, (upper, lower, fall) in zip(shares, drive(two_plots(), script, tmp_path), strict=True):
        x = T[0] + share * (T[-1] - T[0])
        assert upper[0] == pytest.approx(x, abs=1e-9 * 4.0)
        span = 1.08 * np.ptp(np.concatenate([SINE - 0.5, SINE + 0.5]))
        room = 0.5 * PATH_Y * span + PATH_X * 4.0 * 12.0  # the sine's slope is 12 at most
        assert upper[1]["sine"] == pytest.approx(np.interp(x, T, SINE), abs=room)
        assert upper[1]["cosine"] == pytest.approx(np.interp(x, T, np.cos(T)), abs=room)
        last = T[299]
        u = T[0] + share * (last - T[0])
        assert lower[0] == pytest.approx(u, abs=1e-9 * 4.0)
        assert lower[1]["ramp"] == pytest.approx(
            np.interp(u, T, RAMP), abs=0.5 * PATH_Y * 1.08 * np.ptp(RAMP) + PATH_X * 400.0
        )
        f = 10 ** (share * np.log10(5.0))
        assert fall[0] == pytest.approx(f, rel=1e-9)
        assert fall[1]["law"] == pytest.approx(
            f**-3, rel=2e-3
        )  # decades: steps of both paths times ln 10 times the slope


def test_browser_a_drag_zooms_every_plot_of_the_clock_and_a_double_click_resets(tmp_path: Path) -> None:
    script = """
      const [upper, lower, fall, late] = all(".canvas[data-x]");
      const box = (e) => e.querySelector("svg").getAttribute("viewBox").split(" ").map(Number);
      const ticks = (e) => all(".x-tick", e).map((t) => t.textContent), before = ticks(upper);
      drag(upper, 0.25, 0.5);
      const zoomed = { upper: box(upper), lower: box(lower), fall: box(fall), late: box(late), ticks: ticks(upper) };
      pointer(lower, "pointermove", 0.5);
      zoomed.cursor = place(lower); zoomed.value = values(lower).ramp; zoomed.line = !upper.querySelector(".cursor").hidden;
      upper.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
      return { before, zoomed, after: [box(upper), box(lower)], ticks: ticks(upper) };"""
    found = drive(two_plots(), script, tmp_path)
    window = found["zoomed"]
    assert window["upper"] == pytest.approx([250.0, 0.0, 250.0, 240.0], abs=1e-6)
    low, span = T[0], T[299] - T[0]  # the lower plot ends earlier: the same seconds are other shares of it
    assert window["lower"] == pytest.approx([1000.0 * (2.0 - low) / span, 0.0, 1000.0 / span, 240.0], abs=1e-6)
    assert window["fall"] == window["late"] == [0.0, 0.0, 1000.0, 240.0]  # no time, and no time in common
    assert [float(t) for t in window["ticks"]] == pytest.approx([2.0, 2.2, 2.4, 2.6, 2.8, 3.0])
    assert window["cursor"] == pytest.approx(2.5) and window["line"]
    assert window["value"] == pytest.approx(np.interp(2.5, T, RAMP), abs=0.2)
    assert found["after"] == [[0.0, 0.0, 1000.0, 240.0]] * 2 and found["ticks"] == found["before"]


def test_browser_a_plot_is_read_and_zoomed_by_keys(tmp_path: Path) -> None:
    script = """
      const [upper, lower] = all(".canvas[data-x]"), width = (e) => +e.querySelector("svg").getAttribute("viewBox").split(" ")[2];
      upper.focus();
      press(upper, "Home"); const start = place(upper);
      press(upper, "ArrowRight"); const next = place(upper);
      press(upper, "ArrowRight", { shiftKey: true }); const far = place(upper);
      press(upper, "+"); const close = [width(upper), width(lower)], kept = place(upper);
      press(upper, "-"); const open = width(upper);
      press(upper, "+"); press(upper, "Escape");
      return { start, next, far, close, kept, open, end: width(upper), hidden: upper.querySelector(".readout").hidden,
        reachable: upper.tabIndex, label: upper.getAttribute("aria-label") };"""
    found = drive(two_plots(), script, tmp_path)
    assert [found[k] for k in ("start", "next", "far", "kept")] == pytest.approx([1.0, 1.04, 1.44, 1.44])
    assert found["close"] == pytest.approx([500.0, 1000.0 * 2.0 / (T[299] - T[0])])
    assert found["open"] == found["end"] == 1000.0 and found["hidden"]
    assert found["reachable"] == 0 and "arrow keys" in found["label"] and found["label"].startswith("upper")


def test_browser_a_legend_switches_a_curve_and_its_band(tmp_path: Path) -> None:
    script = """
      const button = all(".legend button")[0], upper = all(".canvas[data-x]")[0];
      const drawn = () => all("path[data-series='sine']", upper).map((p) => getComputedStyle(p).display);
      const before = [button.textContent.trim(), button.getAttribute("aria-pressed"), ...drawn()];
      button.click(); pointer(upper, "pointermove", 0.5);
      const off = [button.getAttribute("aria-pressed"), ...drawn()], read = Object.keys(values(upper));
      button.click();
      return { before, off, read, on: [button.getAttribute("aria-pressed"), ...drawn()] };"""
    found = drive(two_plots(), script, tmp_path)
    assert found["before"] == ["sine", "true", "inline", "inline"]
    assert found["off"] == ["false", "none", "none"] and found["read"] == ["cosine"]
    assert found["on"] == ["true", "inline", "inline"]


def test_browser_the_y_axis_is_laid_over_the_curves_that_are_shown(tmp_path: Path) -> None:
    """Without the sine and its band the cosine fills the canvas, its values at the cursor and its ticks are the same numbers as before."""
    script = """
      const button = all(".legend button")[0], upper = all(".canvas[data-x]")[0], svg = upper.querySelector("svg");
      const view = () => svg.getAttribute("viewBox").split(" ").map(Number);
      const ticks = () => all(".y-tick", upper).map((e) => [+e.textContent.replace("−", "-"), parseFloat(e.style.top)]);
      const before = [view(), ticks(), all("path.grid", svg).length];
      button.click();
      const box = view(), marks = ticks(), lines = all("path.grid", svg).length;
      pointer(upper, "pointermove", 0.5);
      const read = values(upper);
      button.click();
      return { before, box, marks, lines, read, after: [view(), ticks(), all("path.grid", svg).length] };"""
    found = drive(two_plots(), script, tmp_path)
    assert found["before"] == found["after"]
    low, high = np.cos(T).min(), np.cos(T).max()
    low, high = low - 0.04 * (high - low), high + 0.04 * (high - low)
    whole = 1.08 * np.ptp(np.concatenate([SINE - 0.5, SINE + 0.5]))
    assert found["box"][3] == pytest.approx(240.0 * (high - low) / whole, abs=0.05)
    assert len(found["marks"]) == found["lines"] >= 3
    for value, percent in found["marks"]:
        assert percent == pytest.approx(100.0 * (high - value) / (high - low), abs=0.05)
    assert found["read"]["cosine"] == pytest.approx(np.cos(3.0), abs=0.01)


def test_browser_a_number_keeps_its_unit(tmp_path: Path) -> None:
    said = Text("at worst 7.2 % (2 N·m) in 3 rows, 1.5 rad/s and 4 sums, 1.3·10⁴ Hz, joint 2 moves.")
    found = drive(set_page(said), """return all("p.prose").at(-1).textContent;""", tmp_path)
    assert (
        found
        == "at worst 7.2\u00a0% (2\u00a0N·m) in 3 rows, 1.5\u00a0rad/s and 4 sums, 1.3·10⁴\u00a0Hz, joint 2 moves."
    )


def test_browser_long_names_break_where_a_reader_would(tmp_path: Path) -> None:
    table = Table(("number", "value"), [("thigh_drive.kp", "21.0"), ("mass", "2.0"), ("x_", "1.5")])
    found = drive(set_page(table), """return all("tbody th").map((e) => [e.innerHTML, e.textContent]);""", tmp_path)
    assert found[:3] == [["thigh_<wbr>drive.<wbr>kp", "thigh_drive.kp"], ["mass", "mass"], ["x_", "x_"]]


def test_browser_bars_are_read_by_their_names(tmp_path: Path) -> None:
    picture = bars("sizes", BODY, {"before": [1.0, 2.0, np.nan], "after": [0.5, -1.0, 3.0]}, "kg")
    script = """
      const e = all(".canvas[data-x]")[0], out = [];
      for (const share of [0.1, 0.45, 0.9]) {
        pointer(e, "pointermove", share);
        out.push([e.querySelector(".readout b").textContent, values(e)]);
      }
      return out;"""
    found = drive(set_page(Figure([picture])), script, tmp_path)
    assert [name for name, _ in found] == list(BODY)
    room = 0.51 * PATH_Y * 1.12 * 4.0
    assert found[0][1] == pytest.approx({"before": 1.0, "after": 0.5}, abs=room)
    assert found[1][1] == pytest.approx({"before": 2.0, "after": -1.0}, abs=room)
    assert found[2][1]["before"] is None and found[2][1]["after"] == pytest.approx(3.0, abs=room)


def test_browser_a_curve_in_the_plane_gives_its_nearest_point(tmp_path: Path) -> None:
    turn = np.linspace(0.0, 2.0 * np.pi, 361)
    picture = curves("circle", [Series("path", np.cos(turn), np.sin(turn))], "east, m", "north, m")
    script = """
      const e = all(".canvas[data-x]")[0], out = [];
      for (const up of [0.0, 1.0]) { pointer(e, "pointermove", 0.5, up); out.push([place(e), values(e).path]); }
      return out;"""
    found = drive(set_page(Figure([picture])), script, tmp_path)
    assert found == [pytest.approx([0.0, 1.0], abs=1e-3), pytest.approx([0.0, -1.0], abs=1e-3)]


def test_browser_a_picture_that_a_notebook_saved_answers_too(tmp_path: Path) -> None:
    shown = Display("one", [Figure([curves("upper", [Series("sine", T, SINE)], "time, s", "N")])])
    script = """
      const e = all(".canvas[data-x]")[0];
      pointer(e, "pointermove", 0.5); const on = values(e);
      all(".legend button")[0].click(); pointer(e, "pointermove", 0.5);
      return { on, off: values(e) };"""
    found = drive(shown.save(tmp_path / "one.html").read_text(encoding="utf-8"), script, tmp_path)
    assert found["on"]["sine"] == pytest.approx(np.interp(3.0, T, SINE), abs=0.01) and found["off"] == {}
    assert "<script" not in shown._repr_html_()


def long_table() -> tuple[str, list[str]]:
    cells = ["2.5", "−3", "1.2·10⁻⁵", "–", "10", "9", "> 999", "0", "−4·10³", "7.25", "0.5", "8", "6", "5"]
    rows = [(f"joint {k}", text, "odd" if k % 2 else "even") for k, text in enumerate(cells)]
    return set_page(Table(("name", "value", "kind"), rows, left=(2,))), cells


def test_browser_a_long_table_is_sorted_by_numbers_and_given_back(tmp_path: Path) -> None:
    page, cells = long_table()
    script = """
      const head = all("thead th"), button = all("thead button")[1], out = [];
      const column = () => all(".wide tbody tr").map((r) => r.cells[1].textContent);
      for (let k = 0; k < 3; k++) {
        button.click();
        out.push([head[1].getAttribute("aria-sort"), head[0].getAttribute("aria-sort"), column()]);
      }
      return out;"""
    up, down, given = drive(page, script, tmp_path)
    order = ["−4·10³", "−3", "0", "1.2·10⁻⁵", "0.5", "2.5", "5", "6", "7.25", "8", "9", "10", "> 999"]
    assert up == ["ascending", "none", [*order, "–"]]
    assert down == ["descending", "none", [*order[::-1], "–"]]
    assert given == ["none", "none", cells]


def test_browser_on_paper_heads_hold_no_button_and_have_it_back_afterwards(tmp_path: Path) -> None:
    """Chromium repeats the head of a table on each sheet only where it holds no control."""
    page, _ = long_table()
    script = """
      const words = () => all("thead th").map((h) => h.textContent), count = () => all("thead button").length;
      const before = [words(), count()];
      window.dispatchEvent(new Event("beforeprint"));
      const paper = [words(), count()];
      window.dispatchEvent(new Event("afterprint"));
      all("thead button")[1].click();
      return { before, paper, after: [words(), count()], sorted: all("thead th")[1].getAttribute("aria-sort") };"""
    found = drive(page, script, tmp_path)
    assert found["before"] == found["after"] and found["before"][1] == len(found["before"][0])
    assert found["paper"] == [found["before"][0], 0] and found["sorted"] == "ascending"


def test_browser_a_long_table_is_searched_and_a_short_one_stays_as_it_is(tmp_path: Path) -> None:
    page, _ = long_table()
    script = """
      const box = document.querySelector("input[type=search]"), rows = all(".wide tbody tr");
      const left = (text) => {
        box.value = text; box.dispatchEvent(new Event("input"));
        return rows.filter((r) => !r.hidden).map((r) => r.cells[0].textContent);
      };
      const one = left("JOINT 1 odd"), count = document.querySelector(".search output").textContent;
      return { one, count, none: left("<b>"), all: left("").length };"""
    found = drive(page, script, tmp_path)
    assert found == {"one": ["joint 1", "joint 11", "joint 13"], "count": "3 of 14 rows", "none": [], "all": 14}
    short = set_page(Table(("name", "value"), [("a", "2"), ("b", "1")]))
    assert drive(short, "return all('.wide button, input[type=search]').length;", tmp_path) == 0


def test_browser_a_narrow_page_does_not_scroll_sideways(tmp_path: Path) -> None:
    """At 420 px, with names of joints as long as those of real robots; seen through a frame, because windows are wider."""
    name = "left_hind_leg_upper_actuator_carriage_joint_of_the_prototype"
    t = np.linspace(0.0, 1.0, 20)
    plot = curves(name, [Series(name, t, -2e5 * t), Series("b", t, t)], "time, s", name)
    table = Table(("name", "value"), [(f"{name}_{k}", "1.0") for k in range(14)])
    shown = set_page(
        Figure([plot, plot], name, name), table, Figure([bars(name, [name] * 12, {name: np.ones(12)}, "N")])
    )
    frame = f"<!doctype html><html><body><script>const inner = {json.dumps(shown).replace('<', chr(92) + 'u003c')};</script></body></html>"
    script = """
      const f = document.createElement("iframe"); f.style.cssText = "width:420px;height:900px;border:0"; document.body.append(f);
      f.contentDocument.open(); f.contentDocument.write(inner); f.contentDocument.close();
      const d = f.contentDocument, out = (e) => e.getBoundingClientRect().right > 421 && !e.closest(".wide, svg");
      const box = (e) => e.getBoundingClientRect(), table = d.querySelector(".wide");
      const label = (p) => box(p.querySelector(".y-label")).right;
      const over = all(".plot", d).filter((p) => all(".y-tick", p).some((t) => box(t).left < label(p))).length;
      const wide = all("main *", d).filter(out), buttons = all(".legend button", d).length;
      return { width: d.documentElement.scrollWidth, inner: f.contentWindow.innerWidth, buttons, over,
        fits: table.scrollWidth <= table.clientWidth,
        wide: wide.map((e) => e.tagName + "." + e.className).slice(0, 5) };"""
    found = drive(frame, script, tmp_path)
    assert found["buttons"] == 3 and found["inner"] == 420
    assert found["width"] <= 420, found["wide"]
    assert found["over"] == 0  # no unit lies over the ticks
    assert found["fits"]  # a long name leaves room for its numbers
