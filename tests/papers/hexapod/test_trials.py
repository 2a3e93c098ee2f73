"""Experiment design, estimators, filters and the cut-off on the hexapod: a hundred trials of each design.

The signals are those of the machine written by hand; `pytest -s` prints the figures.
"""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.estimators.gauss_markov import ArrayEstimate
from veridyn.identify.estimators.likelihood import Scan
from veridyn.identify.excitation.problem import Growth
from veridyn.papers.hexapod.comparison import ESTIMATORS, EXPLICIT, FILTERED_FORCES, RAW, Trials
from veridyn.papers.hexapod.trials import (
    HARMONICS,
    DesignTrials,
    circle_filters,
    design_trials,
    design_trials_blocks,
    designed,
    experiment,
    filter_figures,
    friction_growth,
    growth_blocks,
    harmonics_scan,
    richer,
    rigid,
    scan_blocks,
    true_values,
)

pytestmark = pytest.mark.slow
NAMES = (*"ABCDEFGHIJ", "r1", "v1")


@pytest.fixture(scope="module")
def plans() -> dict[str, object]:
    """Both designs from the same two random starts."""
    return {c: designed(c, starts=2, rng=np.random.default_rng(0)) for c in ("d", "condition")}


def test_signals_are_those_of_the_model(plans: dict) -> None:
    e = experiment(plans["d"].trajectory)
    X = np.stack(plans["d"].trajectory.at(np.arange(len(e.positions)) / e.rate))
    assert e.plant.regressor(X) @ true_values(e) == pytest.approx(e.forces, abs=1e-5)


def test_designs_and_estimators_over_a_hundred_trials(plans: dict) -> None:
    """Acceptance of fact 4.6 and 4.7: rigid 9 of 10, all 14 of 24; Gauss-Markov 24 of 24, median 0.8; deviations honest."""
    for name, plan in plans.items():
        print(f"{name}: condition {plan.condition:.0f}, goals {plan.goals}")
        assert max(plan.used.values()) <= 1.0
    both = design_trials(plans["d"].trajectory, plans["condition"].trajectory, 100, np.random.default_rng(1))
    figures = both.figures
    print(figures)
    assert rigid(both.statistical, both.statistical.names).sum() == 10
    assert figures["rigid_better_dopt"] >= 9 and figures["all_better_dopt"] >= 14
    assert figures["gm_better_than_ols"] == 24 and figures["gm_over_ols_median"] <= 0.8
    assert 0.95 <= figures["stated_over_empirical_median"] <= 1.05
    assert figures["stated_over_empirical_least"] >= 0.75 and figures["stated_over_empirical_largest"] <= 1.33
    assert figures["stated_ignoring_colour_median"] < 0.75  # AR(1) of 0.5 hides √3 of the deviation of slow signals
    assert np.abs(both.statistical.bias()).max() < 0.5


def test_all_of_table_i_s_friction_can_be_borne(plans: dict) -> None:
    """(11): no part of the friction makes cond ρ grow by half. It may fall a little: deviations are scaled anew with every part."""
    grown = friction_growth(plans["d"])
    assert [one.parameters for one in grown] == [10, 16, 22, 23, 24]
    steps = np.array([one.condition for one in grown])
    assert (steps[1:] / steps[:-1] < 1.5).all()


def test_filters_by_the_prediction_of_a_circle(plans: dict) -> None:
    """Fact 4.8: the explicit filter within 1 % of the best Butterworth or better, raw data worst, filtered forces far worse."""
    found = circle_filters(plans["d"].trajectory, 20, np.random.default_rng(2))
    for row in found.rows:
        print(f"{row.name:45s} {row.prediction:10.4f} N {row.acceleration:10.5f} m/s^2")
    figures = filter_figures(found)
    assert figures["circle_rms_dft"] <= 1.01 * figures["circle_rms_time"]
    assert figures["circle_rms_raw"] > max(figures["circle_rms_time"], figures["circle_rms_dft"])
    exact = found.of(EXPLICIT.format(h=HARMONICS))
    assert found.of(EXPLICIT.format(h=HARMONICS - 1)).prediction > 20.0 * exact.prediction
    assert found.of(FILTERED_FORCES.format(h=HARMONICS)).prediction > 5.0 * exact.prediction
    assert found.of("Fourier fit (18)").prediction == pytest.approx(exact.prediction, rel=1e-6)
    assert found.of(RAW).acceleration > 20.0 * exact.acceleration


def test_bic_finds_the_harmonics_of_the_machine(plans: dict) -> None:
    """The designed motion (5 harmonics), and one with two more that nobody asked for (7)."""
    rng = np.random.default_rng(3)
    assert harmonics_scan(plans["d"].trajectory, rng, 14).chosen == 5
    found = harmonics_scan(richer(plans["d"].trajectory, 7, rng), rng, 16)
    print(found.summary())
    assert found.chosen == 7 and found.least("cost") > 7


def made(size: float, seed: int) -> Trials:
    rng = np.random.default_rng(seed)
    values = {name: 1.0 + size * rng.normal(size=(30, 12)) for name in ESTIMATORS}
    return Trials(
        NAMES, np.ones(12), values, {n: np.full((30, 12), size) for n in ESTIMATORS}, np.full((30, 12), 0.6 * size)
    )


def test_trials_of_two_designs() -> None:
    both = DesignTrials(made(0.1, 0), made(0.2, 1))
    figure, table, estimators = design_trials_blocks(both, {"A": "p1"})
    assert len(figure.plots) == 10 and figure.plots[0].title == "p1"
    assert len(table.rows) == 12 and table.rows[0][0] == "p1" and table.rows[11][0] == "v1"
    assert [row[0] for row in estimators.rows][-1] == "Gauss-Markov across rows, memory ignored"
    assert 0.3 < float(table.rows[0][4]) < 0.8


def test_the_staircase_of_the_cut_off() -> None:
    h = np.arange(1, 9)
    cost = np.where(h < 5, 1e9, 100.0 - h)
    found = Scan(
        harmonics=h,
        cost=cost,
        aic=cost + 12 * h,
        bic=cost + 40 * h,
        criterion="bic",
        chosen=5,
        estimate=ArrayEstimate(np.zeros(1), np.eye(1)),
    )
    text, figure = scan_blocks(found)
    assert "prefers 8 harmonics, AIC 5 and BIC 5" in text.text and len(figure.legend) >= 3


def test_the_growth_of_the_friction_model() -> None:
    grown = (Growth("rigid bodies", 10, 100.0, 0.9, ("A", "B")), Growth("dry friction", 12, 250.0, 0.95, ("A", "r1")))
    table, text = growth_blocks(grown, {"A": "p1"})
    assert table.rows[1] == ["dry friction", "12", "250", "2.50", "0.950", "p1 and r1"]
    assert "2.50 times, is by dry friction" in text.text
