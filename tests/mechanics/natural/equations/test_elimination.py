"""The symmetric factorisation against LAPACK's: the four-bar, a spatial machine and the buggy, at poses that the plan has not seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.machines import spatial
from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.natural.equations.elimination import (
    SymmetricPlan,
    SymmetricRoom,
    factor_symmetric,
    poses_around,
    solve_symmetric,
    solve_symmetric_many,
    symmetric_plan,
    symmetric_room,
)
from veridyn.mechanics.natural.equations.system import NaturalSystem, natural_system, system_of
from veridyn.mechanics.natural.steps.free_model import free_model
from veridyn.papers.buggy.machine import buggy


def vehicle() -> NaturalSystem:
    return free_model(buggy().with_formulation("natural")).system


@compiled
def solved(plan: SymmetricPlan, w: SymmetricRoom, J: np.ndarray, X: np.ndarray, Z: np.ndarray) -> bool:
    found = factor_symmetric(plan, w, J)
    if found:
        solve_symmetric(plan, w)
        solve_symmetric_many(plan, w, X, Z)
    return found


@pytest.mark.parametrize("machine", [lambda: system_of(fourbar()), lambda: natural_system(spatial()), vehicle])
def test_bordered_matrices_of_machines(machine: Callable[[], NaturalSystem]) -> None:
    """One right side and many, to the backward error that LAPACK leaves times ten."""
    s, rng = machine(), np.random.default_rng(4)
    alpha = 1e7 * float(np.trace(s.mass)) / s.n
    poses = poses_around(s.guess, len(s.mechanism.added), s.turns)
    plan = symmetric_plan(s.mass, np.array([s.constraints.jacobian(q) for q in poses]), alpha)
    w = symmetric_room(plan)
    for _ in range(3):
        J = s.constraints.jacobian(s.guess + 0.05 * rng.normal(size=s.n))
        B = np.block([[s.mass, J.T], [J, -np.eye(len(J)) / alpha]])
        b, X = rng.normal(size=len(B)), rng.normal(size=(len(B), 5))
        w.b[:], right = b, X.copy()
        assert solved(plan, w, J, X, np.zeros_like(X))
        for x, y in ((w.x[:, None], b[:, None]), (X, right)):
            size = np.abs(B) @ np.abs(x) + np.abs(y)
            assert np.abs(y - B @ x).max() <= 1e-9 * size.max()
        assert w.x == pytest.approx(np.linalg.solve(B, b), rel=1e-5, abs=1e-6 * np.abs(w.x).max())


def test_a_matrix_without_an_inverse_is_refused() -> None:
    """A coordinate with neither mass nor a constraint in this pose leaves a pivot of zero."""
    mass, J = np.diag([1.0, 0.0]), np.array([[1.0, 1.0]])
    plan = symmetric_plan(mass, J[None], 1e6)
    w = symmetric_room(plan)
    X = np.ones((3, 1))
    assert solved(plan, w, J, X, X.copy())
    assert not solved(plan, w, np.array([[1.0, 0.0]]), X, X.copy())
