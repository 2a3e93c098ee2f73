"""What is left over, by frequency: spectra of rows beside those of what was measured, and whether residuals and innovations are white."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veridyn.identify.pipeline.identified import Trace
from veridyn.report import number, unit_text
from veridyn.report.blocks import Figure
from veridyn.report.plots import Plot, Series, curves
from veridyn.signals.spectrum import Whiteness, power_spectrum

MIN_SPECTRUM_SAMPLES = 64  # samples for a spectrum
SPECTRUM_DECADES = 5  # below its largest value that a spectrum shows


def whiteness_plot(title: str, w: Whiteness) -> Plot:
    """The cumulative periodogram with the band that white noise stays in."""
    zone = (w.expected - w.band, w.expected + w.band)
    series = [
        Series("cumulative periodogram", w.frequency, w.cumulative, colour=0),
        Series("white", w.frequency, w.expected, style="dashed", colour=1, band=zone),
    ]
    return curves(title, series, "frequency, Hz", "share of power", y_range=(-0.1, 1.1))


def whiteness_figures(tests: Mapping[str, Whiteness], what: str) -> list[Figure]:
    """One figure of all tests, by name; none where there are none."""
    caption = f"Shaded: the band of Kolmogorov and Smirnov, 95 %. Outside it, {what} are correlated in time."
    plots = [whiteness_plot(name, w) for name, w in tests.items()]
    return [Figure(plots, "Are they white?", caption)] if plots else []


def whiteness_words(w: Whiteness | None) -> str:
    """In a cell of a table."""
    return "–" if w is None else "white" if w.is_white else f"structure near {number(w.worst_frequency, 2)} Hz"


def spectrum_figures(t: Trace) -> list[Figure]:
    """Spectra of all rows that have enough samples."""
    spectra = [p for p in (spectrum_plot(t, k) for k in range(len(t.rows))) if p]
    caption = "Root of the power density of each row on the motion used for the fit; logarithmic."
    return [Figure(spectra, "Spectra", caption)] if spectra else []


def spectrum_plot(t: Trace, k: int) -> Plot | None:
    """Of row k, measured and left over; None where too little of it is finite, or nothing but zero is measured."""
    used = t.used[:, k]
    if used.sum() < MIN_SPECTRUM_SAMPLES:
        return None
    first, last = np.flatnonzero(used)[[0, -1]]
    part = slice(first, last + 1)
    measured, rest = t.measured[part, k], t.residual[part, k]
    if not (np.isfinite(measured).all() and np.isfinite(rest).all()):
        return None
    rate = 1.0 / float(np.median(np.diff(t.t)))
    whole, left = (power_spectrum(x, rate) for x in (measured, rest))
    top = float(np.sqrt(whole.values[1:].max()))
    if top <= 0.0:
        return None
    low = top / 10.0**SPECTRUM_DECADES
    above = (whole.frequency > 0.0) & (whole.values > low**2)
    series = [
        Series("measured", whole.frequency[above], np.sqrt(whole.values[above]), colour="measured"),
        Series("left over", left.frequency[above], np.maximum(np.sqrt(left.values[above]), low), colour=1),
    ]
    unit, y_range = f"{unit_text(t.units[k])}/√Hz", (low, 1.5 * top)
    return curves(t.rows[k], series, "frequency, Hz", unit, log_x=True, log_y=True, y_range=y_range)
