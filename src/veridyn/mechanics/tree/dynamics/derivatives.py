"""Exact derivatives of inverse and forward dynamics, and the gradient of anything that is made of a regressor.

Inverse dynamics is differentiated with respect to coordinates and rates line by line through the recursion, sharing everything with it.
Forward dynamics needs no derivative of a solve: with a the accelerations that forces cause, M ∂a/∂x = −∂Γ/∂x at that a.

A criterion f(D) of the regressor along a motion, as experiment design has them, has with G = ∂f/∂D (N, rows, columns) the gradient

    ∂f/∂q_k = Σ_rc G_rc ∂D_rc/∂q_k,   and so for q̇ and q̈,

at each sample for itself. The sum is differentiated in one pass backwards through the recursion, so that the whole gradient costs a few
regressors whatever the number of columns; no derivative of D is ever written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.engine import (
    Engine,
    compiled,
    filled,
    sample_arrays,
    uniform_values,
    wants_compiled,
)
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.dynamics.forward import caused_motion, open_mass_matrix
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.inputs import Request, complete_values, loaded_bodies
from veridyn.mechanics.tree.tree import Rows, Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.symbolic.expression import evaluate
from veridyn.symbolic.kernel import padded

Places = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class Derivatives:
    """(N, rows, n) each: with respect to q, to q̇, and to what drives (accelerations for inverse, forces for forward dynamics)."""

    by_q: Array
    by_qd: Array
    by_drive: Array


@takes_machine
def inverse_derivatives(
    machine: Machine | Tree,
    motion: Motion,
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
) -> Derivatives:
    """∂Γ/∂q, ∂Γ/∂q̇ and ∂Γ/∂q̈ = M along a motion. Dry friction counts as constant, which it is but at standstill."""
    tree = tree_of(machine)
    tree.check_open("a derivative of the dynamics")
    tree.check_motion(motion)
    by_q, by_qd, M = _force_derivatives(tree, motion, complete_values(tree, parameters), engine, threads)
    return Derivatives(by_q, by_qd, M[:, :, len(tree.rows) - tree.n :])


def _force_derivatives(
    tree: Tree, motion: Motion, values: Array, engine: Engine, threads: int
) -> tuple[Array, Array, Array]:
    """∂Γ/∂q and ∂Γ/∂q̇ (N, rows, n) of an open tree, and its mass matrix (N, rows, rows)."""
    rows, n = len(tree.rows), tree.n
    bodies = loaded_bodies(tree, motion.wrenches)
    request = Request("inverse_derivatives", tuple(range(rows)), bodies=bodies)
    if wants_compiled(engine, tree, request, len(motion)):
        both = filled(compiled(tree, request), tree, motion, (2, rows, n), values=values, threads=threads)
    else:
        f = formula(tree, request)
        given = dict(zip(f.samples, sample_arrays(tree, motion, f.samples), strict=True))
        given |= dict(zip(f.parameters, uniform_values(tree, values, f.parameters), strict=True))
        both = np.zeros((len(motion), 2, rows, n))
        for label, value in zip(f.labels, evaluate(f.graph, f.outputs, given), strict=True):
            both[(slice(None), *label)] = value
    return both[:, 0], both[:, 1], open_mass_matrix(tree, motion.q, values, engine=engine, threads=threads)


@takes_machine
def forward_derivatives(
    machine: Machine | Tree,
    motion: Motion,
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
) -> Derivatives:
    """∂a/∂q, ∂a/∂q̇ and ∂a/∂Γ of the accelerations a that ``motion.forces`` cause: rows [v̇ − g; ω̇; q̈] for a free base, else q̈.

    What drives a prescribed coordinate is its acceleration, so its column of ∂a/∂Γ is ∂a/∂q̈.
    """
    tree = tree_of(machine)
    tree.check_open("a derivative of the dynamics")
    tree.check_motion(motion)
    values = complete_values(tree, parameters)
    caused = caused_motion(tree, motion, values, engine, threads)
    force_by_q, force_by_qd, M = _force_derivatives(tree, caused, values, engine, threads)
    first, held = len(tree.rows) - tree.n, list(tree.held)
    drive = np.broadcast_to(np.eye(len(tree.rows))[:, first:], force_by_q.shape).copy()
    fixed = [first + k for k in held]
    drive[:, :, held] = -M[:, :, fixed]
    right = np.concatenate([-force_by_q, -force_by_qd, drive], axis=2)
    free = list(tree.solved_rows)
    solved = np.zeros_like(right)
    solved[:, free] = np.linalg.solve(M[:, free][:, :, free], right[:, free])
    by_q, by_qd, by_force = np.split(solved, 3, axis=2)
    by_force[:, fixed, held] = 1.0
    return Derivatives(by_q, by_qd, by_force)


def regressor_adjoint(
    machine: Machine | Tree,
    motion: Motion,
    weights: Array,
    rows: Rows = "all",
    wanted: Sequence[int] | None = None,
    *,
    friction_speed: float = 0.0,
    engine: Engine = "auto",
) -> Array:
    """(N, 3, n): the gradient of Σ G∘D by q, q̇ and q̈, where G is `weights` (N, rows, columns).

    Rows and columns as for :func:`~veridyn.mechanics.tree.dynamics.inverse.regressor`. Dry friction counts as constant, which it is but
    at standstill; with a `friction_speed` it is rounded off below that speed, and the derivative is that of the rounded one.
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    if tree.loops:
        raise ModelError("the adjoint is that of an open tree.", where=tree.name, found=f"{len(tree.loops)} loops")
    wanted_columns = tuple(range(len(tree.columns)) if wanted is None else wanted)
    return open_adjoint(tree, motion, weights, tree.select_rows(rows), wanted_columns, friction_speed, engine)


def open_adjoint(
    tree: Tree,
    motion: Motion,
    weights: Array,
    chosen: tuple[int, ...],
    wanted_columns: tuple[int, ...],
    friction_speed: float = 0.0,
    engine: Engine = "auto",
) -> Array:
    """The same over rows of the open tree by number, whatever its loops are."""
    G = np.asarray(weights, dtype=np.float64)
    if G.shape != (len(motion), len(chosen), len(wanted_columns)):
        raise DataError(
            "the weights have the wrong shape.",
            where=tree.name,
            expected=f"({len(motion)}, {len(chosen)}, {len(wanted_columns)})",
            found=f"{G.shape}",
        )
    request = Request(
        "regressor_adjoint", tuple(sorted(chosen)), tuple(sorted(wanted_columns)), friction_speed=friction_speed
    )
    out = np.zeros((3, tree.n, padded(len(motion))))
    if wants_compiled(engine, tree, request, len(motion)):
        made = compiled(tree, request, few=True)
        names, among = _sources(made.kernel.inputs, chosen, wanted_columns)
        own = sample_arrays(tree, motion, names)
        G = G if all(step % 8 == 0 for step in G.strides) else np.ascontiguousarray(G)
        pointers, strides = _addressed(own, G, among)
        at = np.asarray(np.ravel_multi_index(np.array(made.labels).T, (3, tree.n)), dtype=np.uintp)
        addresses = out.ctypes.data + out.strides[1] * at
        given_values = uniform_values(tree, np.zeros(0), made.kernel.parameters)
        if len(motion):
            made.kernel.prepared_at(pointers, strides, given_values, addresses, len(motion), memory=(own, G))()
    else:
        f = formula(tree, request)
        names, among = _sources(f.samples, chosen, wanted_columns)
        measured = iter(sample_arrays(tree, motion, names))
        arrays = [next(measured) if at is None else G[:, at[0], at[1]] for at in among]
        given: dict[str, Array | float] = dict(zip(f.samples, arrays, strict=True))
        given |= dict(zip(f.parameters, uniform_values(tree, np.zeros(0), f.parameters), strict=True))
        for label, value in zip(f.labels, evaluate(f.graph, f.outputs, given), strict=True):
            out[(*label, slice(0, len(motion)))] = value
    return np.moveaxis(out[..., : len(motion)], -1, 0)


def _addressed(own: Sequence[Array], G: Array, weights: Places) -> tuple[NDArray[np.uintp], NDArray[np.int64]]:
    """Where the samples of each input begin, and how many doubles lie between two: of the motion's arrays in turn, or of a weight."""
    mine = np.array([at is None for at in weights])
    at = np.array([at for at in weights if at is not None], dtype=np.int64).reshape(-1, 2)
    pointers, strides = np.zeros(len(weights), dtype=np.uintp), np.full(len(weights), G.strides[0] // 8, dtype=np.int64)
    pointers[mine] = [a.ctypes.data for a in own]
    strides[mine] = [a.strides[0] // 8 for a in own]
    pointers[~mine] = (G.ctypes.data + at @ np.array(G.strides[1:])).astype(np.uintp)
    return pointers, strides


@lru_cache(maxsize=64)
def _sources(
    names: tuple[str, ...], chosen: tuple[int, ...], wanted_columns: tuple[int, ...]
) -> tuple[tuple[str, ...], Places]:
    """Inputs that come from the motion, and for each input its place among the weights; None for those of the motion."""
    place = {(r, c): (a, b) for a, r in enumerate(chosen) for b, c in enumerate(wanted_columns)}
    weights: list[tuple[int, int] | None] = []
    for name in names:
        kind, _, rest = name.partition(".")
        r, _, c = rest.partition(".")
        weights.append(place[int(r), int(c)] if kind == "g" else None)
    return tuple(name for name in names if not name.startswith("g.")), tuple(weights)
