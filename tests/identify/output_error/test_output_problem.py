"""Triangles of runs: square whatever comes in, made once, and none where the simulation fails."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, drawn, noisy, truth
from veridyn.identify.output_error.log_runs import cut
from veridyn.identify.output_error.output_problem import OutputProblem, triangles
from veridyn.identify.output_error.shooting import Shooting

NAMES = ("ZZ2", "MX1", "MX2", "h_q1", "fs_q2")


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
