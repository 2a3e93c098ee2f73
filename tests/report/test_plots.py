import re
from typing import get_args

import numpy as np
import pytest

from veridyn.report.page import own_file
from veridyn.report.plots import (
    HEIGHT,
    MAX_CURVE_POINTS,
    WIDTH,
    Axis,
    Series,
    axis_over,
    bars,
    curves,
    dots,
    heat,
    level,
    line,
    powers,
    round_step,
    stacked,
    thinned,
)
from veridyn.view.scene import Meaning


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


def test_thinning_keeps_breaks_and_the_peaks_beside_them() -> None:
    """Single samples without a number part a curve wherever they stand; what is infinite hides no peak."""
    x = np.arange(10_000.0)
    y = np.sin(x / 300.0)
    y[[1_234, 5_000, 7_777]], y[[1_236, 7_775]], y[4_000] = np.nan, (9.0, -9.0), np.inf
    xs, ys = thinned(x, y)
    assert len(xs) <= MAX_CURVE_POINTS and (np.diff(xs) > 0).all()
    assert {np.nanmax(ys[np.isfinite(ys)]), np.nanmin(ys)} == {9.0, -9.0}
    assert line(x, y, Axis(0.0, 1e4), Axis(-9.0, 9.0)).count("M") == 5


def test_a_line_runs_from_corner_to_corner_and_breaks_at_gaps() -> None:
    unit = Axis(0.0, 1.0)
    assert line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), unit, unit) == f"M0,{HEIGHT:g} {WIDTH:g},0"
    broken = line(np.array([0.0, 0.2, 0.4, 0.6]), np.array([0.0, np.nan, 0.5, 1.0]), unit, unit)
    assert broken == "M0,240 M400,120 600,0"


def test_dots_and_levels() -> None:
    unit = Axis(0.0, 1.0)
    assert dots([0.5, np.nan], [0.5, 1.0], unit, unit) == "M500,120h0"
    assert level(0.25, unit) == "M0,180h1000"


def numbers(path: str) -> np.ndarray:
    return np.array([[float(v) for v in pair.split(",")] for pair in re.findall(r"-?[\d.]+,-?[\d.]+", path)])


def test_a_power_law_is_straight_on_logarithmic_axes() -> None:
    x = np.logspace(0, 3, 31)
    plot = curves("law", [Series("cube", x, x**3)], "x", "y", log_x=True, log_y=True)
    (path,) = [c.path for c in plot.curves if c.label == "cube"]
    p = numbers(path)
    slope = np.diff(p[:, 1]) / np.diff(p[:, 0])
    assert np.abs(slope - slope.mean()).max() < 0.02 * abs(slope.mean())
    assert {t.label for t in plot.x_ticks} == {"1", "10", "100", "1000"}


def test_what_a_logarithm_does_not_know_is_left_out() -> None:
    plot = curves("gap", [Series("a", [1, 2, 3, 4], [1.0, -1.0, 0.0, 100.0])], "x", "y", log_y=True)
    assert next(c for c in plot.curves if c.label == "a").path.count("M") == 2


def test_a_band_encloses_its_curve() -> None:
    x = np.linspace(0, 1, 50)
    plot = curves("band", [Series("a", x, x, band=(x - 0.1, x + 0.2))], "x", "y")
    band = numbers(next(c for c in plot.curves if c.kind.startswith("band")).path)
    line = numbers(next(c for c in plot.curves if c.label == "a").path)
    assert band[:, 1].min() < line[:, 1].min() and band[:, 1].max() > line[:, 1].max()


def test_bars_stand_on_zero_and_reach_their_value() -> None:
    plot = bars("two", ["p", "q"], {"a": [1.0, -2.0], "b": [0.5, 3.0]}, "size")
    zero = numbers(plot.curves[0].path)[0, 1]
    boxes = plot.curves[1].path.split("Z")
    assert [t.label for t in plot.x_ticks] == ["p", "q"]
    tops = [float(re.search(r"V([\d.]+)H", box)[1]) for box in boxes if box]
    assert tops[0] < zero < tops[1]  # up is less in a picture
    assert all(0 <= v <= HEIGHT for v in tops)
    assert max(float(v) for v in re.findall(r"H([\d.]+)", plot.curves[2].path)) <= WIDTH


def test_stacked_bars_stand_on_each_other() -> None:
    """Each box begins where the one below it ends, and the whole is as high as the sum."""
    plot = stacked("two", ["p", "q"], {"a": [1.0, 0.0], "b": [3.0, 2.0], "c": [np.nan, 2.0]}, "share")

    def ends(path: str) -> list[tuple[float, float]]:
        return [(float(a), float(b)) for a, b in re.findall(r"M[\d.]+,([\d.]+)V([\d.]+)", path)]

    (a,), (b, q), (c,) = (ends(curve.path) for curve in plot.curves)
    assert b[0] == pytest.approx(a[1], abs=0.06) and c[0] == pytest.approx(q[1], abs=0.06)
    assert a[0] == q[0] == HEIGHT and b[1] == pytest.approx(c[1], abs=0.06)  # both sums are 4
    assert (a[0] - b[1]) / (a[0] - a[1]) == pytest.approx(4.0, rel=0.01)
    assert plot.names == ("p", "q") and [curve.label for curve in plot.curves] == ["a", "b", "c"]


def test_a_heat_map_has_a_cell_for_each_number_that_can_be_seen() -> None:
    made = heat("r", [[1.0, -0.5], [0.001, np.nan]], ["a", "b"], ["a", "b"])
    assert made.cells == ((0, 0, 1.0, False), (1, 0, 0.5, True))


def test_an_axis_of_less_than_two_decades_has_more_than_powers() -> None:
    assert [t.label for t in powers(Axis(0.0, 1.0))] == ["1", "2", "5", "10"]


def test_every_meaning_has_one_colour_for_lines_bands_and_scenes() -> None:
    style = str(own_file("style.css"))
    for meaning in get_args(Meaning):
        assert f"--{meaning}: " in style and f".band.{meaning}, .bars.{meaning} {{ fill: var(--{meaning}); }}" in style
        assert re.search(rf"\.{meaning} {{ stroke: var\(--{meaning}\);", style)
    x = np.linspace(0, 1, 5)
    plot = curves("one", [Series("a", x, x, band=(x, x), colour="truth"), Series("b", x, x)], "x", "y")
    assert [c.kind for c in plot.curves] == ["zero", "band truth", "line truth", "line c1"]


def test_a_plot_knows_its_axes_its_clock_and_what_belongs_together() -> None:
    x = np.linspace(1.0, 10.0, 5)
    plot = curves("one", [Series("a", x, 10.0**x, band=(10.0**x, 10.0**x))], "time, s", "y", log_y=True)
    assert plot.axes is not None and plot.axes[0] == Axis(1.0, 10.0) and plot.log == "y" and plot.clock == "time"
    assert plot.axes[1].low < 1.0 and plot.axes[1].high > 10.0  # decades
    assert [c.series for c in plot.curves] == ["a", "a"]
    assert curves("two", [Series("a", x, x)], "frequency, Hz", "y").clock == ""
    assert bars("three", ["p", "q"], {"a": [1.0, 2.0]}, "y").names == ("p", "q")
