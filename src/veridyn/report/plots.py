"""Plots from numbers: curves, dots, bands, bars and matrices, on plain or logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.report.drawing import HEIGHT, WIDTH, Axis, Curve, HeatMap, Plot, Tick, area, axis_over, dots, level, line
from veridyn.report.words import superscript
from veridyn.view.scene import Meaning

Array = NDArray[np.float64]
COLOURS = 6  # that style.css has


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
    return Plot(
        title,
        tuple(drawn),
        x_ticks,
        y_ticks,
        x_label,
        y_label,
        low,
        axes=(x_axis, y_axis),
        log="x" * log_x + "y" * log_y,
        clock=clock if x_label.startswith("time") else "",
    )


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
    every = max(1, math.ceil(len(names) / 16))
    ticks = tuple(Tick(100.0 * float(across.share(k)), name) for k, name in enumerate(names) if k % every == 0)
    return Plot(
        title,
        tuple(drawn),
        ticks,
        powers(axis, upwards=True) if log else axis.ticks(5, upwards=True),
        "",
        y_label,
        axes=(across, axis),
        log="y" * log,
        names=tuple(names),
    )


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
    every = max(1, math.ceil(len(names) / 16))
    ticks = tuple(Tick(100.0 * float(across.share(k)), name) for k, name in enumerate(names) if k % every == 0)
    y_ticks = axis.ticks(5, upwards=True)
    return Plot(title, tuple(drawn), ticks, y_ticks, "", y_label, axes=(across, axis), names=tuple(names))


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
