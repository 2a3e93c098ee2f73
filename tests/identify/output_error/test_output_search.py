"""Initial states eliminated run by run: the same step as least squares over everything at once."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, drawn, noisy, truth
from veridyn.identify.output_error.log_runs import cut
from veridyn.identify.output_error.output_problem import OutputProblem
from veridyn.identify.output_error.output_search import OutputPoint
from veridyn.identify.output_error.shooting import Shooting

NAMES = ("ZZ2", "MX1", "MX2", "h_q1", "fs_q2")


@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_the_step_is_that_of_all_unknowns_at_once(damping: float) -> None:
    """Parameters and the states of three runs as one dense problem, with and without damping."""
    machine = truth()
    groups = cut(machine, [noisy(np.random.default_rng(0))[:150]], 0.5)
    spread = np.stack([np.eye(len(machine.parameters))[machine.parameters.index(n)] for n in NAMES], axis=1)
    start = drawn().parameters.values
    problem = OutputProblem(
        shooting=Shooting(machine=machine, friction_speed=SOFT),
        free=4,
        groups=groups,
        values_of=lambda x: start + spread @ x,
        spread=spread,
    )
    x, (runs,) = np.zeros(len(NAMES)), groups
    initial = [np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1)]
    sigma = np.array([0.002, 0.003])
    point = OutputPoint(
        problem=problem, parameters=x, initial=initial, residuals=[], given=np.full(2, np.nan), sigma=sigma
    )
    step = point.model().step(damping)

    r, J = problem.columns(runs, initial[0], x)
    R, K, n, p = len(runs), runs.samples, 2, len(NAMES)
    dense = np.zeros((R, K, n, p + 4 * R))
    for k in range(R):
        dense[k, :, :, :p] = J[k, :, :, :p]
        dense[k, :, :, p + 4 * k : p + 4 * k + 4] = J[k, :, :, p:]
    A = (dense / sigma[:, None]).reshape(-1, p + 4 * R)
    b = (r / sigma).ravel()
    if damping:
        # Columns of states have their own length, those of parameters what is left of it once the damped states are eliminated.
        states = np.sqrt(damping) * np.linalg.norm(A[:, p:], axis=0)
        full = np.vstack([A, np.hstack([np.zeros((4 * R, p)), np.diag(states)])])
        right = np.concatenate([b, np.zeros(4 * R)])
        Q, _ = np.linalg.qr(full[:, p:])
        left = full[:, :p] - Q @ (Q.T @ full[:, :p])
        own = np.sqrt(damping) * np.linalg.norm(left, axis=0)
        A = np.vstack([full, np.hstack([np.diag(own), np.zeros((p, 4 * R))])])
        b = np.concatenate([right, np.zeros(p)])
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    assert step == pytest.approx(expected, rel=1e-6, abs=1e-9)
