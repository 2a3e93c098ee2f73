"""Plots as SVG paths on a canvas that stretches: curves, dots, bands, bars and matrices, on plain or logarithmic axes.

A :class:`Plot` is data; how it looks is the business of the template and of style.css. The template sets tick labels as text, so they stay
readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.report import superscript
from veridyn.view.scene import Meaning

WIDTH, HEIGHT = 1000.0, 240.0  # of the canvas, in its own units; the page stretches it
MAX_CURVE_POINTS = 1500  # points of one curve
COLOURS = 10  # that style.css has
MAX_NAMES = 16  # below an axis


@dataclass(frozen=True)
class Tick:
    """A label and where it stands, in percent of the axis from the left or from the top."""

    percent: float
    label: str


@dataclass(frozen=True)
class Curve:
    """One path; `kind` chooses its colour and weight in style.css, `label` names it in the legend (empty: not named)."""

    kind: str
    path: str
    label: str = ""
    of: str = ""  # the label of the curve that this one belongs to, as a band does

    @property
    def series(self) -> str:
        """The label under which it is switched on and off."""
        return self.label or self.of


@dataclass(frozen=True)
class Axis:
    """A range of numbers laid over the canvas."""

    low: float
    high: float

    def share(self, value: ArrayLike) -> Array:
        """0 at `low`, 1 at `high`."""
        return (np.asarray(value, dtype=np.float64) - self.low) / (self.high - self.low)

    def ticks(self, count: int = 5, upwards: bool = False) -> tuple[Tick, ...]:
        """About `count` round numbers within the range, three at least; `upwards` for an axis whose low end is at the bottom."""
        step, first, last = 0.0, 0, 0
        while last - first < 2:
            step = round_step((self.high - self.low) / count)
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            count += 1
        out = []
        for k in range(first, last + 1):
            share = float(self.share(k * step))
            out.append(Tick(100.0 * (1.0 - share if upwards else share), tick_label(k, step)))
        return tuple(out)


@dataclass(frozen=True)
class Plot:
    """Curves on one pair of axes, `title` for those who cannot see them, or `words` where these say more.

    With `axes` (x, then y) a reader finds the values at a cursor; they are in decades where `log` names them ("x", "y" or "xy").
    Plots of one `clock` share their window of time. `names` are those of bars, one for each whole number on the x axis.
    """

    title: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_label: str
    y_label: str
    low: bool = False  # half as high as others
    axes: tuple[Axis, Axis] | None = None
    log: str = ""
    clock: str = ""
    names: tuple[str, ...] = ()
    words: str = ""

    @property
    def legend(self) -> tuple[Curve, ...]:
        return tuple(curve for curve in self.curves if curve.label)

    @property
    def tick_width(self) -> int:
        """Characters of the longest label beside the y axis."""
        return max((len(t.label) for t in self.y_ticks), default=0)


@dataclass(frozen=True)
class HeatMap:
    """A matrix as coloured cells: column, row, strength from 0 to 1, and whether it is below zero.

    `groups`: (first, size) of square blocks on the diagonal that get a frame.
    """

    title: str
    cells: tuple[tuple[int, int, float, bool], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[tuple[int, int], ...] = ()

    @property
    def left(self) -> float:
        """Room for the names of the rows, in cells."""
        return 0.5 + 0.4 * max(map(len, self.rows), default=0)

    @property
    def below(self) -> float:
        return 0.5 + 0.4 * max(map(len, self.columns), default=0)


def axis_over(*values: ArrayLike, margin: float = 0.04, zero: bool = False) -> Axis:
    """The range of all finite values with a margin, including zero on request; never empty."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    beyond = margin * (high - low)
    if high - low <= 1e-12 * max(abs(low), abs(high)) or high == low:
        beyond = 0.5 * abs(high) or 1.0
    return Axis(low - beyond, high + beyond)


def round_step(rough: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough * (1 - 1e-9))


def tick_label(k: int, step: float) -> str:
    """k times the step, with the digits the step has; a true minus sign."""
    exponent = math.floor(math.log10(step) + 1e-9)
    value = k * step
    text = f"{value:.{max(0, -exponent)}f}" if -4 <= exponent <= 5 else f"{value:.3g}"
    return text.replace("-", "−")


def line(x: Array, y: Array, x_axis: Axis, y_axis: Axis) -> str:
    """The path of a curve, thinned; it breaks where a value is not finite."""
    xs, ys = thinned(x, y)
    px, py = np.round(WIDTH * x_axis.share(xs), 1), np.round(HEIGHT * (1.0 - y_axis.share(ys)), 2)
    parts: list[str] = []
    pen = False
    for a, b in zip(px, py, strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = False
            continue
        parts.append(f"{'' if pen else 'M'}{a:g},{b:g}")
        pen = True
    return " ".join(parts)


def area(x: ArrayLike, low: ArrayLike, high: ArrayLike, x_axis: Axis, y_axis: Axis) -> str:
    """The closed path around a band; samples where a bound is not finite are left out."""
    xs, below, above = (np.asarray(v, dtype=np.float64) for v in (x, low, high))
    keep = np.isfinite(xs) & np.isfinite(below) & np.isfinite(above)
    if not keep.any():
        return ""
    (xa, top), (xb, bottom) = thinned(xs[keep], above[keep]), thinned(xs[keep], below[keep])
    px = WIDTH * x_axis.share(np.concatenate([xa, xb[::-1]]))
    py = HEIGHT * (1.0 - y_axis.share(np.concatenate([top, bottom[::-1]])))
    return "M" + " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True)) + "Z"


def dots(x: ArrayLike, y: ArrayLike, x_axis: Axis, y_axis: Axis) -> str:
    """Lines of no length: round caps make dots of them that stay round when the canvas is stretched."""
    px = np.round(WIDTH * x_axis.share(x), 1)
    py = np.round(HEIGHT * (1.0 - y_axis.share(y)), 2)
    return " ".join(f"M{a:g},{b:g}h0" for a, b in zip(px, py, strict=True) if math.isfinite(a) and math.isfinite(b))


def level(y: float, y_axis: Axis) -> str:
    """A line across the whole canvas."""
    return f"M0,{HEIGHT * (1.0 - float(y_axis.share(y))):.6g}h{WIDTH:g}"


def thinned(x: Array, y: Array, most: int = MAX_CURVE_POINTS) -> tuple[Array, Array]:
    """At most `most` points: of each stretch of samples its lowest and its highest, and a gap where it has one, in order, so that neither
    peaks nor breaks are lost."""
    N, gaps = len(y), ~np.isfinite(y)
    if most >= N:
        return x, y
    whole = not gaps.any()
    edges = np.linspace(0, N, most // (2 if whole else 3) + 1).astype(int)
    kept: list[int] = []
    for a, b in pairwise(edges):
        part = y[a:b]
        if whole:  # several times faster than looking past gaps
            kept += sorted({a + int(part.argmin()), a + int(part.argmax())})
            continue
        there = a + np.flatnonzero(~gaps[a:b])
        ends = {int(there[y[there].argmin()]), int(there[y[there].argmax()])} if len(there) else set[int]()
        kept += sorted(ends | ({a + int(gaps[a:b].argmax())} if gaps[a:b].any() else set()))
    return x[kept], y[kept]


def shared(curves: Sequence[Array]) -> Axis:
    """One axis for several curves, zero within."""
    return axis_over(*curves, zero=True)


@dataclass(frozen=True)
class Series:
    """One curve. `style`: line, thick, dashed or dots; `band`: bounds of a shaded zone.

    `colour`: what it means (truth, estimate, plain, measured), or 0 to 5; by turn where None.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    style: str = "line"
    band: tuple[ArrayLike, ArrayLike] | None = None
    colour: Meaning | int | None = None


def curves(
    title: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
    levels: Mapping[str, float] | None = None,
    y_range: tuple[float, float] | None = None,
    low: bool = False,
    clock: str = "time",
) -> Plot:
    """Curves over one pair of axes; `levels`: label → height of a line across. Values not above zero are left out of logarithmic axes.

    Plots over time share their window with those of the same `clock`: motions that are not of one log have clocks of their own.
    """
    xs = [_scaled(s.x, log_x) for s in series]
    ys = [_scaled(s.y, log_y) for s in series]
    bands = [None if s.band is None else tuple(_scaled(b, log_y) for b in s.band) for s in series]
    marks = {label: float(_scaled([y], log_y)[0]) for label, y in (levels or {}).items()}
    x_axis = axis_over(*xs, margin=0.02 if any(s.style == "dots" for s in series) else 0.0)
    if y_range is not None:
        y_axis = Axis(*(float(v) for v in _scaled(y_range, log_y)))
    else:
        y_axis = axis_over(*ys, *(b for pair in bands if pair for b in pair), list(marks.values()), zero=zero)
    drawn = [Curve("zero", level(0.0, y_axis))] if not log_y and y_axis.low < 0.0 < y_axis.high else []
    names = [_colour(s, k) for k, s in enumerate(series)]
    drawn += [
        Curve(f"band {name}", area(x, pair[0], pair[1], x_axis, y_axis), of=s.label)
        for s, name, x, pair in zip(series, names, xs, bands, strict=True)
        if pair
    ]
    for s, name, x, y in zip(series, names, xs, ys, strict=True):
        path = dots(x, y, x_axis, y_axis) if s.style == "dots" else line(x, y, x_axis, y_axis)
        drawn.append(Curve(f"{s.style} {name}", path, s.label))
    drawn += [Curve("limit", level(y, y_axis), label) for label, y in marks.items()]
    x_ticks = powers(x_axis) if log_x else x_axis.ticks(6)
    y_ticks = powers(y_axis, upwards=True) if log_y else y_axis.ticks(4 if low else 5, upwards=True)
    axes, log, clock = (x_axis, y_axis), "x" * log_x + "y" * log_y, clock if x_label.startswith("time") else ""
    return Plot(title, tuple(drawn), x_ticks, y_ticks, x_label, y_label, low, axes=axes, log=log, clock=clock)


def bars(title: str, names: Sequence[str], values: Mapping[str, ArrayLike], y_label: str, *, log: bool = False) -> Plot:
    """Groups of bars, for each name one bar of each entry of `values`; on a logarithmic axis they stand on its floor."""
    heights = {label: _scaled(v, log) for label, v in values.items()}
    axis = axis_over(*heights.values(), zero=not log, margin=0.06)
    across = Axis(-0.5, len(names) - 0.5)
    floor = axis.low if log else 0.0
    wide = 0.8 / max(1, len(values))
    drawn = [] if log else [Curve("zero", level(0.0, axis))]
    for k, (label, y) in enumerate(heights.items()):
        left = np.arange(len(names)) - 0.4 + k * wide
        path = " ".join(
            _box(a, a + 0.92 * wide, floor, h, across, axis) for a, h in zip(left, y, strict=True) if math.isfinite(h)
        )
        drawn.append(Curve(f"bars c{k % COLOURS}", path, label))
    return over_names(title, names, drawn, across, axis, y_label, log)


def stacked(title: str, names: Sequence[str], values: Mapping[str, ArrayLike], y_label: str) -> Plot:
    """One bar for each name, in which the entries of `values`, none below zero, stand on each other; an entry that is not finite is left
    out."""
    heights = {label: np.nan_to_num(np.asarray(v, dtype=np.float64), posinf=0.0) for label, v in values.items()}
    top = np.sum(list(heights.values()), axis=0)
    axis, across = Axis(0.0, float(top.max(initial=0.0)) or 1.0), Axis(-0.5, len(names) - 0.5)
    drawn = []
    floor = np.zeros(len(names))
    for k, (label, h) in enumerate(heights.items()):
        path = " ".join(
            _box(j - 0.4, j + 0.4, floor[j], floor[j] + h[j], across, axis) for j in range(len(names)) if h[j] > 0.0
        )
        floor = floor + h
        drawn.append(Curve(f"bars c{k % COLOURS}", path, label))
    return over_names(title, names, drawn, across, axis, y_label)


def over_names(
    title: str, names: Sequence[str], drawn: Sequence[Curve], across: Axis, up: Axis, y_label: str, log: bool = False
) -> Plot:
    """Curves over names, of which so many stand below the axis as can be read."""
    every = max(1, math.ceil(len(names) / MAX_NAMES))
    ticks = tuple(Tick(100.0 * float(across.share(k)), name) for k, name in enumerate(names) if k % every == 0)
    y_ticks = powers(up, upwards=True) if log else up.ticks(5, upwards=True)
    return Plot(title, tuple(drawn), ticks, y_ticks, "", y_label, axes=(across, up), log="y" * log, names=tuple(names))


def heat(title: str, matrix: ArrayLike, rows: Sequence[str], columns: Sequence[str], limit: float = 1.0) -> HeatMap:
    """A matrix of numbers between −limit and limit, such as correlations: blue above zero, red below, paper at zero."""
    values = np.asarray(matrix, dtype=np.float64) / limit
    cells = []
    for i, j in zip(*np.nonzero(np.abs(np.nan_to_num(values)) >= 0.02), strict=True):
        cells.append((int(j), int(i), round(min(1.0, abs(float(values[i, j]))), 2), bool(values[i, j] < 0)))
    return HeatMap(title, tuple(cells), tuple(rows), tuple(columns))


def powers(axis: Axis, upwards: bool = False) -> tuple[Tick, ...]:
    """Powers of ten within an axis of decades; with less than two decades also 2 and 5 times them."""
    span = axis.high - axis.low
    step = max(1, math.ceil(span / 6))
    steps = (1.0, 2.0, 5.0) if span < 2.0 else (1.0,)
    out = []
    for p in range(math.floor(axis.low), math.ceil(axis.high) + 1):
        for m in steps:
            at = p + math.log10(m)
            if p % step == 0 and axis.low - 1e-9 <= at <= axis.high + 1e-9:
                share = float(axis.share(at))
                text = f"{m * 10.0**p:g}" if -4 < p < 5 else ("" if m == 1.0 else f"{m:g}·") + f"10{superscript(p)}"
                out.append(Tick(100.0 * (1.0 - share if upwards else share), text))
    return tuple(out)


def _colour(s: Series, turn: int) -> str:
    """The class that style.css gives a colour to."""
    if isinstance(s.colour, str):
        return s.colour
    return f"c{(turn if s.colour is None else s.colour) % COLOURS}"


def _scaled(values: ArrayLike, log: bool) -> Array:
    v = np.asarray(values, dtype=np.float64)
    if not log:
        return v
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.log10(v)
    return np.where(np.isfinite(out), out, np.nan)


def _box(a: float, b: float, low: float, high: float, across: Axis, up: Axis) -> str:
    x0, x1 = WIDTH * float(across.share(a)), WIDTH * float(across.share(b))
    y0, y1 = HEIGHT * (1.0 - float(up.share(low))), HEIGHT * (1.0 - float(up.share(high)))
    return f"M{x0:.1f},{y0:.1f}V{y1:.2f}H{x1:.1f}V{y0:.1f}Z"


def thin(x: Array) -> Array:
    """At most about as many samples as dots need: evenly taken. Lines and bands are :func:`thinned` where they are drawn."""
    return x[:: max(1, len(x) // MAX_CURVE_POINTS)]
