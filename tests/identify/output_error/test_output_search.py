"""Initial states eliminated run by run: the same step as least squares over everything at once."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, drawn, noisy, truth
from veridyn.identify.output_error.log_runs import cut
from veridyn.identify.output_error.output_search import OutputProblem, triangles
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
    step, moved = problem.stepped(problem.factors(x, initial, sigma), initial, damping)

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
    assert step == pytest.approx(expected[:p], rel=1e-6, abs=1e-9)
    assert moved[0] - initial[0] == pytest.approx(expected[p:].reshape(R, 4), rel=1e-6, abs=1e-9)


def test_a_machine_that_cannot_be_simulated_has_no_residuals() -> None:
    machine = truth()
    groups = cut(machine, [noisy(np.random.default_rng(0))[:100]], 1.0)
    initial = [np.concatenate([g.q[:, 0], g.qd[:, 0]], axis=1) for g in groups]
    shooting = Shooting(machine=machine, friction_speed=SOFT)
    nothing = OutputProblem(
        shooting=shooting,
        free=4,
        groups=groups,
        values_of=lambda x: -machine.parameters.values,
        spread=np.zeros((len(machine.parameters), 1)),
    )
    assert nothing.residuals(np.zeros(1), initial) is None


def test_triangles_are_square_whatever_comes_in() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 2, 5))
    T = triangles(rows)
    assert T.shape == (3, 5, 5)
    assert np.einsum("rki,rkj->rij", T, T) == pytest.approx(np.einsum("rki,rkj->rij", rows, rows))


def test_a_linearisation_is_made_once_and_serves_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triangles of the same sensitivities under two weights, and with other residuals, are those of the rows written out."""
    machine = truth()
    groups = cut(machine, [noisy(np.random.default_rng(0))[:100]], 0.5)
    spread = np.stack([np.eye(len(machine.parameters))[machine.parameters.index(n)] for n in NAMES], axis=1)
    start = drawn().parameters.values
    problem = OutputProblem(
        shooting=Shooting(machine=machine, friction_speed=SOFT),
        free=4,
        groups=groups,
        values_of=lambda x: start + spread @ x,
        spread=spread,
    )
    x, initial, made = np.zeros(len(NAMES)), [g.initial for g in groups], []
    own = OutputProblem.columns
    monkeypatch.setattr(OutputProblem, "columns", lambda *given: made.append(1) or own(*given))
    half = problem.simulated(problem.shooting.refined(), x, initial)
    for sigma, residuals in (([0.002, 0.003], None), ([0.1, 0.01], None), ([0.1, 0.01], half)):
        (T,) = problem.factors(x, initial, np.array(sigma), residuals)
        r, J = own(problem, groups[0], initial[0], x)
        r = r if residuals is None else residuals[0]
        rows = np.concatenate([J[..., -4:], J[..., :-4], r[..., None]], axis=-1) / np.array(sigma)[:, None]
        rows = rows.reshape(len(r), -1, rows.shape[-1])
        expected = np.einsum("rki,rkj->rij", rows, rows)
        size = np.sqrt(np.einsum("rii->ri", expected))
        found = np.einsum("rki,rkj->rij", T, T)
        assert (found / size[:, :, None] / size[:, None]) == pytest.approx(
            expected / size[:, :, None] / size[:, None], abs=1e-12
        )
    assert len(made) == 1
    problem.factors(x + 1e-3, initial, np.array([0.002, 0.003]))
    assert len(made) == 2
