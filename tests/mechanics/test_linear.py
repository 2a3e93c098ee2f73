"""Small factorisations against LAPACK, on matrices of every size that mechanisms have, and on singular ones.

And the planned factorisation against SciPy's: random patterns, the four-bar, the spatial machine, and matrices without an inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from strangers.natural_mechanisms import fourbar
from veridyn.errors import ModelError, SimulationError
from veridyn.machines import spatial
from veridyn.mechanics.compiled import Bound, Vector, compiled, opened
from veridyn.mechanics.linear import (
    MAX_BACKWARD_ERROR,
    SparsePlan,
    factor,
    factor_planned,
    plan_of,
    solve,
    solve_many,
    solve_once,
    solve_planned,
    solve_transposed,
)
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of


class _Problem(NamedTuple):
    """One system of equations and room for its solution."""

    plan: SparsePlan
    given: Vector
    v: Vector
    b: Vector
    x: Vector
    z: Vector
    r: Vector
    size: Vector
    room: Vector


@compiled
def _solve(address: NDArray[np.int64]) -> np.int64:
    """x from b: −1, the pivot that is zero, or −2 where the backward error stays too large."""
    s = opened(address, _Problem)
    failed = factor_planned(s.plan, s.v, s.room)
    if failed >= 0 or solve_planned(s.plan, s.given, s.v, s.b, s.x, s.z, s.r, s.size):
        return failed
    return np.int64(-2)


def sparse_solve(plan: SparsePlan, B: ArrayLike, b: ArrayLike, names: Sequence[str] = ()) -> NDArray[np.float64]:
    """x with B x = b for one matrix of the planned pattern; what the planned order cannot solve is refused by name."""
    matrix, right = np.asarray(B, dtype=np.float64), np.array(b, dtype=np.float64)
    N = plan.size
    outside = matrix != 0.0
    outside[plan.row, plan.column] = False
    if outside.any():
        i, j = (int(x[0]) for x in np.nonzero(outside))
        raise SimulationError("the matrix has a number outside the planned pattern.", where=f"row {i}, column {j}")
    given = matrix[plan.row, plan.column]
    v = np.zeros(plan.cells)
    v[plan.cell] = given
    x = np.zeros(N)
    failed = _solve(
        Bound(
            _Problem(plan, given, v, right, x, np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(plan.widest + 1))
        ).address
    )
    if failed == -1:
        return x
    worst = int(plan.order[failed if failed >= 0 else int(np.argmin(np.abs(v[plan.diagonal])))])
    raise SimulationError(
        f"the matrix is singular at '{names[worst]}'." if names else f"the matrix is singular at row {worst}.",
        expected=f"a solution with a backward error below {MAX_BACKWARD_ERROR:.0e}",
        found="a pivot of zero" if failed >= 0 else "less",
        hint="Plan again with this matrix among the samples.",
    )


def bordered(system: NaturalSystem, q: np.ndarray, alpha: float) -> np.ndarray:
    J = system.constraints.jacobian(q)
    return np.block([[system.mass, J.T], [J, -np.eye(len(J)) / alpha]])


@pytest.mark.parametrize("seed", range(10))
def test_random_patterns(seed: int) -> None:
    """Symmetric patterns with unsymmetric numbers; another matrix of the same pattern needs no new plan."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 60))
    pattern = rng.random((N, N)) < 3.0 / N
    pattern |= pattern.T
    plan = None
    for _ in range(3):
        B = np.where(pattern, rng.normal(size=(N, N)), 0.0) + np.diag(3.0 + 3.0 * pattern.sum(axis=1))
        b = rng.normal(size=N)
        plan = plan or plan_of(B)
        expected = splu(csc_array(B)).solve(b)
        assert sparse_solve(plan, B, b) == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_a_band_fills_nothing_in() -> None:
    """Minimum degree on a tree leaves no cell that the matrix has not."""
    N = 30
    B = 4.0 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
    shuffled = np.random.default_rng(1).permutation(N)
    plan = plan_of(B[shuffled[:, None], shuffled])
    assert plan.cells == len(plan.row) == 3 * N - 2


@pytest.mark.parametrize("machine", [fourbar, lambda: mechanism_of(spatial())])
def test_bordered_matrices_of_machines(machine) -> None:
    """With a coordinate without mass and α as the index-3 step has it, at poses the plan has not seen."""
    system = system_of(machine())
    q = position(system)
    rng = np.random.default_rng(3)
    alpha = 1e7 * float(np.trace(system.mass)) / system.n
    B = bordered(system, q, alpha)
    poses = [q + 0.1 * rng.normal(size=system.n) for _ in range(6)]
    plan = plan_of([B, bordered(system, poses[0], alpha)])
    assert plan.cells < B.size
    for pose in poses:
        B, b = bordered(system, pose, alpha), rng.normal(size=len(B))
        x = sparse_solve(plan, B, b)
        exact = splu(csc_array(B)).solve(b)
        # both are as good as the condition of the matrix lets them be
        assert np.abs(x - exact).max() <= 1e-13 * np.linalg.cond(B) * np.abs(exact).max()
        assert np.abs(B @ x - b).max() <= 1e-11 * (np.abs(B) @ np.abs(x)).max()


def test_singular_matrices_are_refused_by_name() -> None:
    names = ("x", "y", "z")
    with pytest.raises(ModelError, match=r"singular: no pivot is left at 'z'"):
        plan_of(np.diag([1.0, 2.0, 0.0]), names=names)
    twice = np.array([[2.0, 1.0, 1.0], [1.0, 3.0, 3.0], [1.0, 3.0, 3.0]])
    with pytest.raises(ModelError, match=r"singular: no pivot is left at '[yz]'"):
        plan_of(twice, names=names)
    plan = plan_of(np.eye(3))
    with pytest.raises(SimulationError, match="singular at 'y'"):
        sparse_solve(plan, np.diag([1.0, 0.0, 1.0]), np.ones(3), names)
    with pytest.raises(SimulationError, match="singular at row 0"):
        sparse_solve(plan, np.diag([np.nan, 1.0, 1.0]), np.ones(3))


def test_numbers_outside_the_pattern_are_refused() -> None:
    with pytest.raises(SimulationError, match="outside the planned pattern"):
        sparse_solve(plan_of(np.eye(2)), np.ones((2, 2)), np.ones(2))


def test_a_pivot_that_lost_its_digits_is_refined_or_refused() -> None:
    """Planned for a large corner: with a small one the solution still has its digits, or there is none."""
    plan = plan_of(np.array([[5.0, 1.0], [1.0, 2.0]]))
    B, b = np.array([[1e-9, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    assert sparse_solve(plan, B, b) == pytest.approx(np.linalg.solve(B, b), rel=1e-10)
    with pytest.raises(SimulationError, match="singular"):
        sparse_solve(plan, np.array([[0.0, 1.0], [1.0, 1.0]]), b)


def numbers(n: int) -> np.ndarray:
    return np.empty(n, dtype=np.int64)


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_both_solves_are_lapack_s(n: int, seed: int) -> None:
    """Errors grow with the condition, so the tolerance does."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(n, n)), rng.normal(size=n)
    B, pivot = A.copy(), numbers(n)
    close = 1e-14 * n * float(np.linalg.cond(A))
    assert factor(B, pivot)
    for matrix, back in ((A, solve), (A.T, solve_transposed)):
        wanted, x = np.linalg.solve(matrix, b), b.copy()
        back(B, pivot, x)
        assert np.abs(x - wanted).max() <= close * np.abs(wanted).max()
    many = np.column_stack([b, 2.0 * b, A[:, 0]])
    wanted = np.linalg.solve(A, many)
    solve_many(B, pivot, many)
    assert np.abs(many - wanted).max() <= close * np.abs(wanted).max()
    once = b.copy()
    solve_once(A.copy(), pivot, once)
    assert np.linalg.norm(A @ once - b) <= close * max(1.0, float(np.linalg.norm(once)))


@pytest.mark.parametrize("A", [np.zeros((3, 3)), np.ones((2, 2)), np.diag([1.0, np.nan]), np.diag([np.inf, 1.0])])
def test_a_singular_matrix_is_reported(A: np.ndarray) -> None:
    assert not factor(A.copy(), numbers(len(A)))
    x = np.ones(len(A))
    solve_once(A.copy(), numbers(len(A)), x)
    assert np.isnan(x).all()


def test_rows_are_exchanged_where_a_pivot_is_small() -> None:
    A, b = np.array([[1e-20, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    solve_once(A.copy(), numbers(2), b)
    assert b == pytest.approx([1.0, 1.0])
