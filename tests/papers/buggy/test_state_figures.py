"""Estimate, truth and model stand above the errors, for every quantity of Tables 5 and 6, and yaw goes round."""

import numpy as np
import pytest

from veridyn.papers.buggy.observers import Scored
from veridyn.papers.buggy.state_figures import OTHER, STATES, error_plot, error_plots, state_figure, value_plot

T = np.arange(0.0, 2.0, 0.002)
NAMES = tuple(STATES.values())


def made(size: float) -> Scored:
    """Errors of `size` times a sine, in all states, with a deviation of twice that."""
    errors = size * np.sin(2.0 * np.pi * T)[:, None] * np.ones(len(NAMES))
    return Scored(T, NAMES, errors, np.full_like(errors, 2.0 * size), 1.0)


def test_all_fourteen_quantities_are_plotted_by_wheel() -> None:
    true = np.tile(T[:, None], (1, len(NAMES)))
    figure = state_figure("title", true, made(3.0), made(1.0), {"one": made(2.0), "two": made(2.5)})
    for plots in (figure.plots, figure.below):
        titles = [plot.title for plot in plots]
        assert len(titles) == 14 and "wheel speed rl" in titles and "yaw rate" in titles
    labels = {curve.label for curve in figure.legend}
    assert labels == {"model alone", "best observer", "truth", "one", "two"}
    assert [p.title for p in error_plots(made(1.0), made(2.0), STATES)] == [p.title for p in figure.below]


def test_the_estimate_is_truth_and_error() -> None:
    """The picture reaches from the model's lowest to its highest value: t ± 3 sin(2πt), with its margin."""
    plot = value_plot(T, made(3.0), made(1.0), "base.x", "x")
    assert plot.axes is not None
    low, high = (T + s * 3.0 * np.sin(2.0 * np.pi * T) for s in (1.0, 1.0))
    reach = high.max() - low.min()
    assert plot.axes[1].low == pytest.approx(low.min() - 0.04 * reach, abs=0.02)
    assert plot.axes[1].high == pytest.approx(high.max() + 0.04 * reach, abs=0.02)


def test_yaw_goes_round_and_round() -> None:
    """Three turns, which a sensor reads between −π and π, are 6π rad high, and nothing jumps."""
    turned = 3.0 * np.pi * T
    wrapped = (turned + np.pi) % (2.0 * np.pi) - np.pi
    plot = value_plot(wrapped, made(0.01), made(0.0), "base.yaw", "yaw")
    assert plot.axes is not None and plot.axes[1].high > 5.9 * np.pi


def test_errors_before_the_start_is_caught_do_not_set_the_height() -> None:
    score = made(1.0)
    early = Scored(T, NAMES, np.where((T < 0.5)[:, None], 100.0, score.errors), score.sigma, 1.0)
    plot = error_plot(early, {"one": early}, "base.x", "x", after=0.5)
    assert plot.axes is not None and plot.axes[1].high == pytest.approx(1.1, rel=1e-3)
    assert any(curve.kind == f"line c{OTHER}" for curve in plot.curves)
