"""Lines and dots as SVG paths on a canvas that stretches: the template sets tick labels as text, so they stay readable on a phone.

A :class:`Plot` is data; how it looks is the business of the template and of style.css.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
WIDTH, HEIGHT = 1000.0, 240.0  # of the canvas, in its own units; the page stretches it
MAX_CURVE_POINTS = 1500  # points of one curve


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
    """Curves on one pair of axes, `title` for those who cannot see them.

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
    room = margin * (high - low)
    if high - low <= 1e-12 * max(abs(low), abs(high)) or high == low:
        room = 0.5 * abs(high) or 1.0
    return Axis(low - room, high + room)


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
    """At most `most` points: of each stretch of samples its lowest and its highest, in order, so that no peak is lost."""
    N = len(y)
    if most >= N:
        return x, y
    edges = np.linspace(0, N, most // 2 + 1).astype(int)
    kept: list[int] = []
    whole = not np.isnan(y).any()
    for a, b in pairwise(edges):
        part = y[a:b]
        if whole:  # several times faster than looking past NaN
            kept += sorted({a + int(part.argmin()), a + int(part.argmax())})
            continue
        if np.isnan(part).all():
            kept.append(a)
            continue
        kept += sorted({a + int(np.nanargmin(part)), a + int(np.nanargmax(part))})
    return x[kept], y[kept]


def shared(curves: Sequence[Array]) -> Axis:
    """One axis for several curves, zero within."""
    return axis_over(*curves, zero=True)
