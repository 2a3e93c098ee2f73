"""The number of harmonics: the staircase of the cut-off, and the trajectory as an unknown."""

from __future__ import annotations

import numpy as np
import pytest

from identify.estimators.test_likelihood import PERIODS, RATE, N, data, record
from identify.smooth_arm import path, truth
from veridyn.errors import DataError
from veridyn.identify.estimators.harmonics import jointly, periodic_data, scan
from veridyn.identify.excitation.plant import TreePlant
from veridyn.signals.frequency import averaged


def test_bic_finds_the_true_number_of_harmonics() -> None:
    """Fact 4.9: too few are a catastrophe, the bare cost always wants more, BIC stops at the truth; ten records of ten."""
    for seed in range(10):
        found = scan(data(seed), 9)
        assert found.chosen == found.least("bic") == 5
        assert found.least("cost") > 5
        assert found.cost[3] > 1e4 * found.cost[4]
        # cost is ½χ², in the mean one half for each measurement less those spent on the motion
        expected = 0.5 * (8 * N - 4 * 11 - 30)
        assert found.cost[4] == pytest.approx(expected, rel=0.15)
        assert "BIC" in found.summary()


def test_the_cost_is_that_of_equation_24() -> None:
    """White noise, so that Σ⁻¹ can be written down: the cost by hand."""
    motion = record(0)
    kept = averaged(np.column_stack([motion.q, motion.forces]), RATE, 0.1)
    positions, forces = kept.part(kept.names[:4]), kept.part(kept.names[4:])
    d = periodic_data(TreePlant(truth()), positions, forces)
    found = scan(d, 6, "cost")
    X = d.filtered(6)
    A = d.plant.regressor(X)
    eta = d.forces - A @ found.estimate.values
    delta = d.positions - X[0]
    by_hand = 0.5 * np.einsum("ti,ij,tj", delta, np.linalg.inv(kept.covariance[:4, :4] / PERIODS), delta)
    by_hand += 0.5 * np.einsum("ti,ij,tj", eta, np.linalg.inv(kept.covariance[4:, 4:] / PERIODS), eta)
    assert found.chosen == 6 and found.cost[5] == pytest.approx(by_hand)


def test_with_the_trajectory_as_unknowns() -> None:
    """One more step changes nothing; with good positions the parameters are those of the filter, and no worse known than stated."""
    d = data(0)
    both = jointly(d, 5)
    alone = scan(d, 5).estimate
    assert both.steps < 6
    assert np.abs((both.estimate.values - alone.values) / alone.sigma).max() < 0.2
    assert (both.estimate.sigma >= 0.999 * alone.sigma).all()
    assert both.trajectory.sine == pytest.approx(path().sine, abs=2e-5)
    assert both.cost <= scan(d, 5, "cost").cost[-1] * (1.0 + 1e-9)
    again = jointly(d, 5, steps=both.steps + 1, tolerance=1e-9)
    assert again.cost == pytest.approx(both.cost, rel=1e-9)


def test_refused_by_name() -> None:
    kept = averaged(record(0).q, RATE, 0.1)
    with pytest.raises(DataError, match="not those of this machine"):
        periodic_data(TreePlant(truth()), kept, kept.part(kept.names[:2]))
