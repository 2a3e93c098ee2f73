"""The equations of closed machines: projected onto the coordinates that are free to move, and the accelerations that forces cause.

The forces of cut joints do no work in a motion that keeps the loops closed, so with G = ∂q/∂q_a the rows Gᵀ Γ hold none of them:
(7) of paper 002, with friction of passive joints in it. Forward dynamics is

    M a + Φ_qᵀ λ = Γ − h,    Φ_q a = −bias − 2 ω Φ̇ − ω² Φ

M and h are those of the open tree; λ are the forces of the cut joints. a is found in the null space of Φ_q: with N its basis and a₀ the
shortest a that meets the second equation, a = a₀ + N z and (Nᵀ M N) z = Nᵀ (Γ − h − M a₀). So M may be singular (a virtual joint moves
no mass) where the closed machine does not care, and no coordinate is special: a linkage goes through its dead points. ω is zero but for
integrators, whose errors it lets die out.

Reference: Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 8; Baumgarte 1972 for ω.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, Assembled, assembled
from veridyn.mechanics.tree.loops.closing import loop_values, times
from veridyn.mechanics.tree.loops.equations import check_closed, check_rates
from veridyn.mechanics.tree.recursion.equations import structure
from veridyn.mechanics.tree.tree import Tree

OPEN_STATE = "its loops are open here.", "Positions of passive joints follow from the others: close, or closed_motion."
OPENING_RATES = (
    "these rates open its loops.",
    "Rates of passive joints follow from the others: loop_jacobian, or closed_motion.",
    " a second",
)
SINGULAR_RATIO = (
    1e-8  # of a singular value of Φ_q against the largest, sliding coordinates in units of the machine's reach
)
MASSLESS_PIVOT = 1e-13  # of a pivot of the mass that is free to move, against the largest
REGULAR_RCOND = 1e-11  # of the reciprocal condition of the bordered matrix: below it a state is looked at more closely
MAX_NEWTON_STEPS = 20  # of Newton back to a closed position


@cache
def _lapack() -> Any:
    """LAPACK, whose functions have no types; SciPy takes longer to import than all that is done with an open machine."""
    from scipy.linalg import lapack

    return lapack


def solve_closed(
    tree: Tree,
    M: Array,
    load: Array,
    loops: Array,
    qd: Array,
    omega: float = 0.0,
    home: Assembled | None = None,
    qdd: Array | None = None,
) -> Array:
    """a (N, rows) from M (N, rows, rows), load Γ − h (N, rows) and :func:`loop_values` with rates, (N, equations, n + 2).

    A singular position, where loops lose a constraint, is refused, and so is a machine of which some motion moves no mass. `home`: that of
    :func:`~veridyn.mechanics.tree.loops.assembly.assembled`, for callers that have it at hand. `qdd` (N, n): the accelerations of
    prescribed coordinates; each is one equation more, and the force it needs one more λ.
    """
    home, n, rows = home or assembled(tree), tree.n, len(tree.rows)
    first = rows - n
    unit = np.concatenate([np.ones(first), home.unit])
    J = np.zeros((*loops.shape[:2], rows))
    J[:, :, first:] = loops[:, :, :n]
    right = -loops[:, :, n + 1]
    if omega > 0.0:
        right = right - 2.0 * omega * times(loops[:, :, :n], qd) - omega**2 * loops[:, :, n]
    J = J * unit
    if tree.held:
        assert qdd is not None  # forward dynamics and integrate give it
        J = np.concatenate([J, _fixing(tree, len(J), rows)], axis=1)
        right = np.concatenate([right, qdd[:, list(tree.held)] / home.unit[list(tree.held)]], axis=1)
    held = _Held.of(tree, J, len(home.rows) + len(tree.held))
    start, N = held.shortest(right), held.free
    scaled = M * unit[:, None] * unit
    back = np.swapaxes(N, 1, 2)
    reduced = back @ scaled @ N
    _check_mass(tree, reduced)
    right_side = times(back, load * unit - times(scaled, start))
    z = np.asarray(np.linalg.solve(reduced, right_side[..., None])[..., 0], dtype=np.float64)
    return (start + times(N, z)) * unit


def solve_regular(
    tree: Tree,
    M: Array,
    load: Array,
    loops: Array,
    qd: Array,
    omega: float,
    home: Assembled,
    qdd: Array,
) -> Array | None:
    """The same a (rows,) of one state by the factors of the bordered matrix [M Φ_qᵀ; Φ_q 0], which is quicker.

    Of equations that say a thing twice only those are taken that count at home. Where these no longer do, and near a singular position,
    there is None: :func:`solve_closed` decides then.
    """
    n, rows, held = tree.n, len(tree.rows), list(tree.held)
    loops = loops[list(home.rows)]
    first, m = rows - n, len(loops) + len(held)
    unit = np.concatenate([np.ones(first), home.unit])
    size = float(np.trace(M)) / rows
    K, right = np.zeros((rows + m, rows + m)), np.zeros(rows + m)
    K[:rows, :rows] = M * unit[:, None] * unit / size
    K[rows : rows + len(loops), first:rows] = loops[:, :n] * home.unit
    for i, k in enumerate(held):
        K[rows + len(loops) + i, first + k] = 1.0
    K[:rows, rows:] = K[rows:, :rows].T
    right[:rows] = load * unit / size
    right[rows : rows + len(loops)] = -loops[:, n + 1] - 2.0 * omega * (loops[:, :n] @ qd) - omega**2 * loops[:, n]
    right[rows + len(loops) :] = qdd[held] / home.unit[held]
    factors, pivots, fault = _lapack().dgetrf(K)
    if fault or not _lapack().dgecon(factors, np.abs(K).sum(axis=0).max())[0] > REGULAR_RCOND:
        return None
    return _lapack().dgetrs(factors, pivots, right)[0][:rows] * unit


def _fixing(tree: Tree, samples: int, width: int) -> Array:
    """(N, prescribed, width): the equations that give prescribed coordinates, the last n of `width`, their values."""
    E = np.zeros((samples, len(tree.held), width))
    for i, k in enumerate(tree.held):
        E[:, i, width - tree.n + k] = 1.0
    return E


@dataclass(frozen=True, eq=False)
class _Held:
    """Φ_q of N samples, taken apart: what it holds, and a basis of what it leaves free (N, n, freedom)."""

    left: Array
    sizes: Array
    right: Array
    free: Array

    @classmethod
    def of(cls, tree: Tree, J: Array, rank: int) -> _Held:
        """All equations, those too that say a thing twice: which of them do may change along a motion, how many do not."""
        U, s, Vt = np.linalg.svd(J)
        bad = ~(s[:, rank - 1] > SINGULAR_RATIO * s[:, 0])
        if bad.any():
            k = int(np.argmax(bad))
            raise DataError(
                "a singular position: there its loops hold it by one equation less, and what it does next is not decided.",
                where=f"{tree.name}, sample {k}",
                expected=f"a smallest singular value above {SINGULAR_RATIO:g} of the largest",
                found=f"{s[k, rank - 1] / s[k, 0]:.1e}",
                hint="Lead the motion around it.",
            )
        V = np.swapaxes(Vt, 1, 2)
        return cls(U[:, :, :rank], s[:, :rank], V[:, :, :rank], V[:, :, rank:])

    def shortest(self, b: Array) -> Array:
        """The shortest x (N, n) with Φ_q x = b."""
        return times(self.right, times(np.swapaxes(self.left, 1, 2), b) / self.sizes)


def onto_closure(tree: Tree, q: Array, qd: Array, engine: Engine = "auto") -> tuple[Array, Array]:
    """The nearest closed positions, and rates (N, n) that keep them so: steps of least norm, sliding coordinates in units of the reach.

    Prescribed coordinates stay where they are.
    """
    home, n = assembled(tree), tree.n
    unit, rank = home.unit, len(home.rows) + len(tree.held)

    def shortest(T: Array, right: Array) -> Array:
        J = np.concatenate([T[:, :, :n] * unit, _fixing(tree, len(T), n)], axis=1)
        return _Held.of(tree, J, rank).shortest(np.pad(right, ((0, 0), (0, len(tree.held))))) * unit

    at = q.copy()
    T = loop_values(tree, at, engine=engine)
    for _ in range(MAX_NEWTON_STEPS):
        if np.abs(T[:, :, n]).max(initial=0.0) <= 1e-3 * CLOSED_TOLERANCE_M:
            break
        at -= shortest(T, T[:, :, n])
        T = loop_values(tree, at, engine=engine)
    check_closed(tree, T[:, :, n], *OPEN_STATE)
    return at, qd - shortest(T, times(T[:, :, :n], qd))


def nearest_closed(
    tree: Tree, values: Callable[[Array, Array], Array], q: Array, qd: Array, home: Assembled
) -> tuple[Array, Array] | None:
    """:func:`onto_closure` of one state (n,), by Cholesky's factors of Φ_q Φ_qᵀ, which is quicker; `values` gives (equations, n + 2).

    None near a singular position, and where no closed position is near.
    """
    n, rows, free = tree.n, list(home.rows), home.unit.copy()
    free[list(tree.held)] = 0.0
    at = q.copy()
    for _ in range(MAX_NEWTON_STEPS):
        T = values(at, qd)
        counted = T[rows]
        J = counted[:, :n] * free
        square = J @ J.T
        factor, fault = _lapack().dpotrf(square, lower=1)
        if fault or not _lapack().dpocon(factor, np.abs(square).sum(axis=0).max(), uplo="L")[0] > REGULAR_RCOND:
            return None
        if np.abs(T[:, n]).max(initial=0.0) <= 1e-3 * CLOSED_TOLERANCE_M:
            return at, qd - free * (J.T @ _lapack().dpotrs(factor, counted[:, :n] @ qd, lower=1)[0])
        at -= free * (J.T @ _lapack().dpotrs(factor, counted[:, n], lower=1)[0])
    return None


def first_crossing(tree: Tree, q: Array, engine: Engine = "auto") -> int | None:
    """The first sample after which a path of closed positions (N, n) goes through a singular one; None where it does not.

    Φ_q = U S Vᵀ keeps, as a map from what it holds to its equations, its orientation while no singular value passes zero: the determinants
    of U_kᵀ U_{k+1} and V_kᵀ V_{k+1} have one sign. Samples must be close enough for the two spaces to turn by less than a right angle.
    """
    home, T = assembled(tree), loop_values(tree, q, engine=engine)
    held = _Held.of(tree, T[:, :, : tree.n] * home.unit, len(home.rows))
    turned = [np.linalg.det(np.swapaxes(x[:-1], 1, 2) @ x[1:]) for x in (held.left, held.right)]
    crossed = np.flatnonzero(turned[0] * turned[1] < 0.0)
    return int(crossed[0]) if len(crossed) else None


def check_closed_state(tree: Tree, loops: Array, qd: Array) -> None:
    """Refuse positions that open loops, and rates that are about to; `loops` as of :func:`loop_values`."""
    n = tree.n
    check_closed(tree, loops[:, :, n], *OPEN_STATE)
    check_rates(tree, loops[:, :, :n], qd, 0.0, *OPENING_RATES)


def _check_mass(tree: Tree, reduced: Array) -> None:
    if not reduced.size:
        return
    values = np.linalg.eigvalsh(reduced)
    if not (values[:, 0] > MASSLESS_PIVOT * values[:, -1]).all():
        raise ModelError(
            "some motion that its loops allow moves no mass, or a negative one, so no force gives it a finite acceleration.",
            where=tree.name,
            hint="Look for bodies without a mass, or for parameters no body can have.",
        )


def projected(
    tree: Tree, G: Array, rows: Sequence[int], own: Sequence[int], values: Array, columns: Sequence[int] | None = None
) -> Array:
    """Rows (N, rows, …) of a closed tree from those of the open one: `values` (N, own, …) are its rows `own`.

    Where the last axis holds `columns` of the regressor, only those that can enter a row are looked at.
    """
    first = len(tree.rows) - tree.n
    at = {r: k for k, r in enumerate(own)}
    independent = {k: i for i, k in enumerate(tree.independent)}
    affected = None if columns is None else _affected_rows(tree, own, columns)
    V = np.moveaxis(values, 0, -1)  # samples together in memory
    out = np.zeros((len(rows), *V.shape[1:]))
    for i, r in enumerate(rows):
        out[i] = V[at[r]]
        if r >= first and r - first in tree.looped:
            for j in tree.feeding(r - first)[1:]:
                weight, k = G[:, j, independent[r - first]], at[first + j]
                if affected is None:
                    out[i] += weight * V[k]
                else:
                    out[i, affected[k]] += weight * V[k, affected[k]]
    return np.moveaxis(out, -1, 0)


def _affected_rows(tree: Tree, own: Sequence[int], columns: Sequence[int]) -> list[NDArray[np.intp]]:
    """For each row of the open tree, the places of the columns that can enter it."""
    enters = structure(tree)
    return [np.flatnonzero(np.isin(columns, enters[r])) for r in own]


def open_rows(tree: Tree, rows: Sequence[int]) -> tuple[int, ...]:
    """The rows of the open tree that enter these rows of the closed one: themselves first."""
    first = len(tree.rows) - tree.n
    passive = [first + j for r in rows if r >= first for j in tree.feeding(r - first)[1:]]
    return tuple(dict.fromkeys((*rows, *passive)))
