"""Experiment design, estimators, filters and the cut-off on the hexapod: a hundred trials of each design.

The signals are those of the machine written by hand; `pytest -s` prints the figures.
"""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.papers.hexapod.comparison import EXPLICIT, FILTERED_FORCES, RAW
from veridyn.papers.hexapod.trials import (
    HARMONICS,
    circle_filters,
    design_trials,
    designed,
    experiment,
    filter_figures,
    friction_growth,
    harmonics_scan,
    richer,
    rigid,
    true_values,
)

pytestmark = pytest.mark.slow


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
    """(11): cond ρ never falls while friction is added, and no part makes it grow by half."""
    grown = friction_growth(plans["d"])
    assert [one.parameters for one in grown] == [10, 16, 22, 23, 24]
    steps = np.array([one.condition for one in grown])
    assert ((steps[1:] / steps[:-1] >= 1.0) & (steps[1:] / steps[:-1] < 1.5)).all()


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
