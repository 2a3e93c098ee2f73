"""Quantities over time: bands of a start that nobody knows do not hide the rest, and gaps stay gaps."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.report.plots import COLOURS, Series
from veridyn.report.traces import by_colours, compared_plot, consistency_plot, error_plot, estimate_plot, thin

T = np.linspace(0.0, 10.0, 200)


def test_a_wide_band_at_the_start_does_not_decide_the_scale() -> None:
    sigma = np.where(T < 0.5, 100.0, 0.1)
    plot = estimate_plot("q", "rad", T, np.sin(T), sigma)
    assert plot.axes is not None and plot.axes[1].high < 2.0
    assert [c.kind for c in plot.curves] == ["zero", "band estimate", "line estimate"]


def test_what_stands_beside_an_estimate_is_inside_the_picture() -> None:
    truth = Series("reference", T, np.sin(T) + 5.0, colour="truth")
    plot = estimate_plot("q", "rad", T, np.sin(T), np.full(200, 0.1), beside=[truth])
    assert plot.axes is not None and plot.axes[1].high > 6.0


def test_an_estimate_that_stays_zero_has_an_axis_that_can_be_read() -> None:
    plot = estimate_plot("load", "N", T, np.zeros(200), np.zeros(200))
    assert plot.axes is not None and plot.axes[1].high - plot.axes[1].low == pytest.approx(2.0)


def test_computed_lines_have_values_only_where_they_are_finite() -> None:
    held = np.where(T < 5.0, np.nan, T)
    lines = {"simulated": np.where(T < 5.0, T, np.nan), "held out": held, "none": np.full(200, np.nan)}
    plot = compared_plot("q", "N*m", T, T, lines, "a.csv")
    assert [c.label for c in plot.legend] == ["measured", "simulated", "held out"]
    assert plot.y_label == "N·m" and plot.clock == "a.csv"


def test_errors_lie_in_their_band_and_squares_have_their_ideal() -> None:
    assert [c.series for c in error_plot("q", "rad", T, T, 0.1 * T).curves] == ["", "error", "error"]
    plot = consistency_plot("NEES per state over time", T, np.ones(200))
    assert plot.log == "y" and [c.label for c in plot.legend] == ["NEES", "ideal"]


def test_dots_are_thinned_and_colours_do_not_come_twice() -> None:
    assert len(thin(np.arange(10_000))) <= 2 * 1500 and len(thin(T)) == 200
    assert [len(part) for part in by_colours(range(COLOURS + 2))] == [COLOURS, 2]
