"""Weights of residuals: the memory of autoregressive noise in closed form. The covariance of unknowns with priors: that of linear least
squares, and wider where parts of a log disagree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.signal import lfilter

from veridyn.identify.drives.drive_search import DriveMinimum, LinearDrives, memory, posterior, weights_of


@pytest.mark.parametrize("a", [0.0, 0.5, 0.9])
def test_the_memory_of_first_order_noise(a: float) -> None:
    """Its spectrum is σ²/(1 − a)² at zero, and its variance σ²/(1 − a²): the peak is (1 + a)/(1 − a) of the mean."""
    e = np.random.default_rng(1).normal(size=60_000)
    y = lfilter([1.0], [1.0, -a], e)
    # The spectrum at its peak has a relative deviation of √(2 · 50/N) with some 50 coefficients.
    assert memory([y[:30_000], y[30_000:]]) == pytest.approx((1.0 + a) / (1.0 - a), rel=0.15)


def test_weights_are_of_independent_samples() -> None:
    e = np.random.default_rng(2).normal(size=(20_000, 2)) * [0.5, 2.0]
    assert weights_of(e, [20_000]) == pytest.approx([2.0, 0.5], rel=0.1)
    assert memory([np.zeros(100)]) == 1.0


def found(change: float) -> tuple[Any, DriveMinimum, np.ndarray]:
    """A line through 2000 samples whose slope changes by `change` deviations of a sample in the last quarter, fitted with priors."""
    rng = np.random.default_rng(0)
    J = np.stack([np.ones(2000), rng.normal(size=2000)], axis=1)
    y = rng.normal(size=2000) + change * J[:, 1] * (np.arange(2000) >= 1500)
    A = J.T @ J + np.eye(2)
    z = np.linalg.solve(A, J.T @ y)
    linear = LinearDrives((J @ z - y)[:, None], J[:, None, :])
    return SimpleNamespace(active=(0, 1), unknowns=(SimpleNamespace(key="kp"),) * 2), DriveMinimum(z, 0.0, linear), A


def test_parts_that_agree_leave_the_covariance() -> None:
    problem, one, A = found(0.0)
    made = posterior(cast(Any, problem), one)
    assert made.widening == 1.0
    assert made.covariance == pytest.approx(np.linalg.inv(A), rel=1e-9)


def test_parts_that_disagree_widen_it() -> None:
    problem, one, A = found(0.5)
    made = posterior(cast(Any, problem), one)
    assert made.widening > 5.0
    assert np.diag(made.covariance) == pytest.approx(made.widening * np.diag(np.linalg.inv(A)), rel=0.01)


def test_terms_of_friction_that_were_not_chosen_are_unknown_too() -> None:
    """Where one term was kept: the deviation of the first unknown is that of a fit with all three; else that of the one alone."""
    J = np.random.default_rng(1).normal(size=(500, 1, 3)) @ np.array(
        [[1.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.0, 0.0, 0.4]]
    )
    all_three = np.linalg.inv(J[:, 0].T @ J[:, 0] + np.eye(3))
    alone = 1.0 / (J[:, 0, 0] @ J[:, 0, 0] + 1.0)
    names = [SimpleNamespace(key=key, joints=("hip",)) for key in ("kp", "position", "speed")]
    one = DriveMinimum(np.zeros(3), 0.0, LinearDrives(np.zeros((500, 1)), J))
    wide = posterior(cast(Any, SimpleNamespace(active=(0, 1), unknowns=names)), one)
    assert wide.covariance == pytest.approx(all_three[:2, :2], rel=1e-9)
    plain = posterior(cast(Any, SimpleNamespace(active=(0,), unknowns=names)), one)
    assert plain.covariance == pytest.approx(np.array([[alone]]), rel=1e-9) and alone < 0.5 * all_three[0, 0]
