"""Weights of residuals: the memory of autoregressive noise in closed form. The covariance of unknowns with priors: that of linear least
squares, and wider where parts of a log disagree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.signal import lfilter

from veridyn.identify.drives.drive_search import (
    DriveMinimum,
    DriveProblem,
    LinearDrives,
    memory,
    posterior,
    weights_of,
)
from veridyn.identify.drives.drive_unknowns import DriveUnknown
from veridyn.inference.quadratic import Quadratic


def uneven() -> DriveProblem:
    """A group of one joint with dry friction of 0.2 N·m and terms along the way, forwards and slow, without its simulation."""
    keys = {"coulomb": 0.2, "kp": 20.0} | dict.fromkeys(("position", "position_2", "direction", "speed"), 0.0)
    unknowns = [
        DriveUnknown(name=k, key=k, joints=("hip",), unit="", prior=x, spread=0.8, scales=x > 0.0)
        for k, x in keys.items()
    ]
    group = SimpleNamespace(unknowns=tuple(unknowns), joints=("hip",))
    return DriveProblem(group=cast(Any, group), records=(), active=tuple(range(6)), weights=np.ones(1))


@pytest.mark.parametrize("seed", range(6))
def test_steps_leave_dry_friction_that_resists(seed: int) -> None:
    """The step is that of SLSQP under the same inequalities, and friction resists motion behind it, whatever the data want."""
    rng, problem = np.random.default_rng(seed), uneven()
    z = np.array([-0.5, 0.1, 0.05, -0.05, 0.02, 0.01])
    assert problem.allowed(z)
    root = rng.normal(size=(8, 6))
    H, g = root.T @ root + np.eye(6), 5.0 * rng.normal(size=6) + np.array([5.0, 0.0, 0.0, 5.0, 0.0, 5.0])
    C, c = problem.resisting(z)
    d = Quadratic(x=z, hessian=H, gradient=g, inequalities=(C, c)).step()
    assert problem.allowed(z + d) and (C @ d + c).min() > -1e-9
    best = minimize(
        lambda x: 0.5 * x @ H @ x + g @ x,
        np.zeros(6),
        jac=lambda x: H @ x + g,
        constraints={"type": "ineq", "fun": lambda x: C @ x + c, "jac": lambda x: C},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert 0.5 * d @ H @ d + g @ d == pytest.approx(best.fun, rel=1e-6) and d == pytest.approx(best.x, abs=1e-4)


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


def test_a_delay_that_is_not_simulated_is_none() -> None:
    """A trial step may ask for any delay: one beyond the states that a run keeps is not allowed, where its simulation would refuse it."""
    unknown = DriveUnknown(
        name="d", key="measurement_delay", joints=("hip",), unit="s", prior=0.0, spread=0.005, scales=False
    )
    group = SimpleNamespace(unknowns=(unknown,), joints=("hip",), longest_delay=0.1)
    problem = DriveProblem(group=cast(Any, group), records=(), active=(0,), weights=np.ones(1))
    assert problem.allowed(np.array([19.0])) and not problem.allowed(np.array([21.0]))
    assert problem.cost(np.array([21.0])) == np.inf
