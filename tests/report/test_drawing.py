import numpy as np
import pytest

from veridyn.report.drawing import (
    HEIGHT,
    MAX_CURVE_POINTS,
    WIDTH,
    Axis,
    axis_over,
    dots,
    level,
    line,
    round_step,
    thinned,
)


def test_ticks_are_round_numbers_within_the_range() -> None:
    assert [t.label for t in Axis(-0.13, 0.52).ticks(4)] == ["0.0", "0.2", "0.4"]
    assert [t.label for t in Axis(-40.0, 30.0).ticks(4, upwards=True)] == ["−40", "−20", "0", "20"]
    down = Axis(0.0, 10.0).ticks(2, upwards=True)
    assert [(t.percent, t.label) for t in down] == [(100.0, "0"), (50.0, "5"), (0.0, "10")]


def test_there_are_three_ticks_at_least() -> None:
    for low in np.linspace(-1.0, -0.3, 30):
        assert len(Axis(low, 0.47).ticks(2)) >= 3


@pytest.mark.parametrize(("rough", "step"), [(0.11, 0.2), (1.0, 1.0), (3.0, 5.0), (7.0, 10.0), (2.0, 2.0)])
def test_steps(rough: float, step: float) -> None:
    assert round_step(rough) == pytest.approx(step)


def test_an_axis_is_never_empty() -> None:
    for values in ([], [np.nan], [3.0, 3.0], [0.0], [-2.0]):
        axis = axis_over(values)
        assert axis.high > axis.low
        assert axis.ticks()


def test_thinning_keeps_every_peak_and_the_order() -> None:
    x = np.arange(100_000.0)
    y = np.sin(x / 300.0)
    y[[777, 54_321]] = 9.0, -9.0
    xs, ys = thinned(x, y)
    assert len(xs) <= MAX_CURVE_POINTS
    assert {ys.max(), ys.min()} == {9.0, -9.0}
    assert (np.diff(xs) > 0).all()
    assert thinned(x[:100], y[:100])[0] is not None
    np.testing.assert_array_equal(thinned(x[:100], y[:100])[1], y[:100])


def test_thinning_survives_gaps() -> None:
    y = np.full(10_000, np.nan)
    y[5_000:] = 1.0
    xs, ys = thinned(np.arange(10_000.0), y)
    assert len(xs) <= MAX_CURVE_POINTS
    assert np.isnan(ys).any() and np.isfinite(ys).any()


def test_a_line_runs_from_corner_to_corner_and_breaks_at_gaps() -> None:
    unit = Axis(0.0, 1.0)
    assert line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), unit, unit) == f"M0,{HEIGHT:g} {WIDTH:g},0"
    broken = line(np.array([0.0, 0.2, 0.4, 0.6]), np.array([0.0, np.nan, 0.5, 1.0]), unit, unit)
    assert broken == "M0,240 M400,120 600,0"


def test_dots_and_levels() -> None:
    unit = Axis(0.0, 1.0)
    assert dots([0.5, np.nan], [0.5, 1.0], unit, unit) == "M500,120h0"
    assert level(0.25, unit) == "M0,180h1000"
