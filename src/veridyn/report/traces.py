"""Quantities over time: estimates with their bands, what was measured beside what was simulated, and innovations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from veridyn.arrays import Array
from veridyn.observe.observation import Observation
from veridyn.report import unit_text
from veridyn.report.plots import COLOURS, MAX_CURVE_POINTS, Plot, Series, curves

T = TypeVar("T")
BAND_95 = 1.96  # standard deviations of a 95 % band
SETTLED = (
    0.9  # of the samples have a band that decides the scale: a start that nobody knows would hide everything after it
)
INNOVATION_SIGMAS = 6.0  # of the median deviation: half the height of a plot of innovations


def estimate_plot(
    title: str,
    unit: str,
    t: Array,
    value: Array,
    sigma: Array,
    *,
    sigmas: float = BAND_95,
    beside: Sequence[Series] = (),
    label: str = "estimate",
) -> Plot:
    """An estimate (N,) with its band of so many `sigmas` over time, and other curves `beside` it."""
    settled = float(np.quantile(sigma, SETTLED))
    low, high = float((value - 3.0 * settled).min()), float((value + 3.0 * settled).max())
    for s in beside:
        low, high = min(low, float(np.nanmin(s.y))), max(high, float(np.nanmax(s.y)))
    margin = 0.05 * (high - low)
    y_range = (low - margin, high + margin) if high > low else None
    band = [value + side * sigmas * sigma for side in (-1.0, 1.0)]
    below, above = band if y_range is None else (np.clip(x, *y_range) for x in band)
    shown = Series(label, t, value, band=(below, above), colour="estimate")
    return curves(title, [shown, *beside], "time, s", unit_text(unit), y_range=y_range)


def error_plot(
    title: str, unit: str, t: Array, error: Array, sigma: Array, *beside: Series, sigmas: float = BAND_95
) -> Plot:
    """An error (N,) inside the band that is stated for it."""
    shown = Series("error", t, error, band=(-sigmas * sigma, sigmas * sigma), colour="estimate")
    return curves(title, [shown, *beside], "time, s", unit_text(unit))


def compared_plot(
    title: str, unit: str, t: Array, measured: Array, computed: Mapping[str, Array], clock: str = "time"
) -> Plot:
    """What was measured (N,) in dots, and lines of what was computed, by label; NaN where one has no value."""
    dots = Series("measured", thin(t), thin(measured), style="dots", colour="measured")
    lines = [Series(label, t, y, colour=k) for k, (label, y) in enumerate(computed.items(), 1) if np.isfinite(y).any()]
    return curves(title, [dots, *lines], "time, s", unit_text(unit), clock=clock)


def innovation_plots(o: Observation) -> list[Plot]:
    """The innovations of each output that was heard, with the band that the filter expects of them."""
    e, drawn = o.estimates, []
    table = getattr(o.system, "table", None)  # of sensors; one's own equations have none, and no units
    units = dict(zip(table.names, table.units, strict=True)) if table is not None else {}
    for j, output in enumerate(e.outputs):
        sigma = np.sqrt(e.innovation_variances[:, j])
        if not np.isfinite(sigma).any():
            continue
        band = (thin(-BAND_95 * sigma), thin(BAND_95 * sigma))
        size = INNOVATION_SIGMAS * float(np.nanmedian(sigma))
        seen = Series("innovation", thin(e.t), thin(e.innovations[:, j]), style="dots", colour=0, band=band)
        drawn.append(curves(output, [seen], "time, s", unit_text(units.get(output, "")), y_range=(-size, size)))
    return drawn


def consistency_plot(title: str, t: Array, values: Array) -> Plot:
    """Normalised squares (N,) over time, on a logarithmic axis; ideally one."""
    series = [Series(title.split()[0], t, np.maximum(values, 1e-4), colour=0)]
    return curves(title, series, "time, s", series[0].label, log_y=True, levels={"ideal": 1.0})


def thin(x: Array) -> Array:
    """At most about as many samples as dots need: evenly taken. Lines and bands are thinned where they are drawn."""
    return x[:: max(1, len(x) // MAX_CURVE_POINTS)]


def by_colours(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many at a time as there are colours."""
    for k in range(0, len(items), COLOURS):
        yield items[k : k + COLOURS]
