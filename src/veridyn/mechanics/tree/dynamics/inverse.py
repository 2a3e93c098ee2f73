"""Inverse dynamics of a sampled motion, the forces Γ it takes; its regressor, the matrix D with Γ = D φ; and gradients through D.

A criterion f(D) of the regressor along a motion, as experiment design has them, has with G = ∂f/∂D (N, rows, columns) the gradient

    ∂f/∂q_k = Σ_rc G_rc ∂D_rc/∂q_k,   and so for q̇ and q̈,

at each sample for itself. The sum is differentiated in one pass backwards through the recursion, so that the whole gradient costs a few
regressors whatever the number of columns; no derivative of D is ever written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.engine import (
    Buffer,
    Engine,
    compiled,
    filled,
    sample_arrays,
    uniform_values,
    wants_compiled,
)
from veridyn.mechanics.tree.loops.closure import projection
from veridyn.mechanics.tree.loops.dynamics import open_rows, projected
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.equations import all_rows, columns
from veridyn.mechanics.tree.recursion.inputs import (
    Request,
    acting_of,
    blocks,
    complete_values,
    loaded_bodies,
    needs_velocity,
    split,
    state_of,
)
from veridyn.mechanics.tree.recursion.newton_euler import State, outward, rigid_rows
from veridyn.mechanics.tree.tree import Rows, Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS
from veridyn.symbolic.expression import evaluate
from veridyn.symbolic.kernel import padded

Places = tuple[tuple[int, int] | None, ...]


@takes_machine
def inverse_dynamics(
    machine: Machine | Tree,
    motion: Motion,
    rows: Rows = "all",
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
    out: Buffer | None = None,
) -> Array:
    """The forces of a motion: Γ = D(q, q̇, q̈) φ − Gᵀ wrenches, (3) and (17) of paper 000, and (19) for the rows of a free base.

    Rows of a free base are zero when every force on the machine is in ``motion.wrenches``. A machine with loops has rows for its
    independent coordinates alone, (∂q/∂q_a)ᵀ Γ, and the motion must keep the loops closed.

    Parameters
    ----------
    machine : Machine
        The machine.
    motion : Motion, or a log (Experiment), which :func:`veridyn.motion` prepares with default settings
        N samples: q, qd, qdd (N, n) in rad or m and s; the wrenches (N, 6) that act on bodies; for a free base its motion.
    rows : "all", "joints", "base", "actuated", or names
        The equations that are wanted; all of them by default.
    parameters : array (p,), optional
        Values in the order of ``machine.parameters.names``; the machine's own by default.
    engine : {"auto", "compiled", "numpy"}
        Machine code, the NumPy reference, or machine code where there are enough samples to pay for compiling (the default).
    threads : int
        Threads of the compiled kernel; 1 by default.
    out : Buffer, optional
        Memory that compiled results are written into again and again; new memory by default.

    Returns
    -------
    array (N, rows)
        N for sliding rows and forces, N*m for turning rows and moments.

    Raises
    ------
    DataError
        The motion does not belong to the machine, or a parameter has no value.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> still = vd.Motion(t=[0.0], q=[[0.0]], qd=[[0.0]], qdd=[[1.0]])  # horizontal, about to turn
    >>> vd.inverse_dynamics(pendulum, still).round(2)
    array([[10.41]])
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    return tree_forces(
        tree, motion, tree.select_rows(rows), complete_values(tree, parameters), engine, threads=threads, out=out
    )


def tree_forces(
    tree: Tree,
    motion: Motion,
    chosen: tuple[int, ...],
    values: Array,
    engine: Engine,
    *,
    threads: int = 1,
    out: Buffer | None = None,
) -> Array:
    """The rows `chosen` by number of a motion of this tree, with all its parameters `values`."""
    if not tree.loops:
        return _open_forces(tree, motion, chosen, values, engine, threads, out)
    gamma, own = np.empty((len(motion), len(chosen))), open_rows(tree, chosen)
    for block in blocks(len(motion)):
        part = motion[block]
        gamma[block] = projected(
            tree, projection(tree, part, engine), chosen, own, _open_forces(tree, part, own, values, engine, threads)
        )
    return gamma


def _open_forces(
    tree: Tree,
    motion: Motion,
    chosen: tuple[int, ...],
    values: Array,
    engine: Engine,
    threads: int,
    out: Buffer | None = None,
) -> Array:
    """Rows of the open tree."""
    bodies = loaded_bodies(tree, motion.wrenches)
    request = Request("inverse", tuple(sorted(chosen)), bodies=bodies)
    if wants_compiled(engine, tree, request, len(motion)):
        place = {(r,): (k,) for k, r in enumerate(chosen)}
        return filled(compiled(tree, request), tree, motion, (len(chosen),), place, values, threads, out)
    X, gains = split(tree, values)
    gamma_of = np.empty((len(motion), len(chosen)))
    for block in blocks(len(motion)):
        part = motion[block]
        state = state_of(tree, part)
        o = outward(tree, state, ARRAYS, needs_velocity(tree))
        gamma = all_rows(tree, state, o, X, gains, acting_of(tree, part), part.signals, ARRAYS)
        for k, r in enumerate(chosen):
            gamma_of[block, k] = gamma[r]
    return gamma_of


def external_rows(machine: Machine | Tree, motion: Motion) -> Array:
    """Γ_ext (N, all rows): what the wrenches of a motion alone ask of each row, −Gᵀ wrenches (paper 001, equation 4).

    Passive joints of closed loops keep what the open tree asks of them.
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    out = np.zeros((len(motion), len(tree.rows)))
    if not motion.wrenches:
        return out
    for block in blocks(len(motion)):
        part = motion[block]
        rates = [0.0] * tree.n  # wrenches ask for places alone
        still = State(list(np.ascontiguousarray(part.q.T)), rates, rates)
        o = outward(tree, still, ARRAYS)
        for r, value in enumerate(rigid_rows(tree, o, {}, acting_of(tree, part))):
            out[block, r] = value
        if tree.loops:
            chosen = tree.select_rows("all")
            every = range(len(tree.rows))
            out[block][:, list(chosen)] = projected(tree, projection(tree, part), chosen, every, out[block])
    return out


@takes_machine
def regressor(
    machine: Machine | Tree,
    motion: Motion,
    rows: Rows = "all",
    wanted: Sequence[int] | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
    out: Buffer | None = None,
) -> Array:
    """The regressor D of a motion, with D φ = Γ where no wrench acts: equations (18) and (20) of paper 000.

    A machine with loops has rows for its independent coordinates alone, (∂q/∂q_a)ᵀ D, and the motion must keep the loops closed.

    Parameters
    ----------
    machine : Machine
        The machine; values of its parameters are not needed.
    motion : Motion, or a log (Experiment), which :func:`veridyn.motion` prepares with default settings
        N samples: q, qd, qdd (N, n) in rad or m and s; for a free base its motion.
    rows : "all", "joints", "base", "actuated", or names
        The equations that are wanted; all of them by default.
    wanted : sequence of int, optional
        Numbers of the columns that are wanted, in that order; all by default, whatever the state of their parameters.
    engine : {"auto", "compiled", "numpy"}
        Machine code, the NumPy reference, or machine code where there are enough samples to pay for compiling (the default).
    threads : int
        Threads of the compiled kernel; 1 by default.
    out : Buffer, optional
        Memory that compiled results are written into again and again; new memory by default.

    Returns
    -------
    array (N, rows, columns)
        Columns in the order of ``machine.parameters.names``; N or N*m per unit of the parameter.

    Raises
    ------
    DataError
        The motion does not belong to the machine, or a column is given twice.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> still = vd.Motion(t=[0.0], q=[[0.0]], qd=[[0.0]], qdd=[[1.0]])
    >>> D = vd.regressor(pendulum, still)
    >>> D.shape, (D @ pendulum.parameters.values).round(2)  # the forces of inverse_dynamics
    ((1, 1, 10), array([[10.41]]))
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    chosen = tree.select_rows(rows)
    wanted_columns = tuple(range(len(tree.columns)) if wanted is None else wanted)
    if len(set(wanted_columns)) < len(wanted_columns):
        raise DataError("a column is given twice.", where=tree.name, found=f"{list(wanted_columns)}")
    if not tree.loops:
        return _open_regressor(tree, motion, chosen, wanted_columns, engine, threads, out)
    D, own = np.empty((len(motion), len(chosen), len(wanted_columns))), open_rows(tree, chosen)
    for block in blocks(len(motion)):
        part = motion[block]
        open_D = _open_regressor(tree, part, own, wanted_columns, engine, threads)
        D[block] = projected(tree, projection(tree, part, engine), chosen, own, open_D, wanted_columns)
    return D


def _open_regressor(
    tree: Tree,
    motion: Motion,
    chosen: tuple[int, ...],
    wanted_columns: tuple[int, ...],
    engine: Engine,
    threads: int,
    out: Buffer | None = None,
) -> Array:
    """Rows of the open tree."""
    request = Request("regressor", tuple(sorted(chosen)), tuple(sorted(wanted_columns)))
    if wants_compiled(engine, tree, request, len(motion)):
        place = {(r, c): (a, b) for a, r in enumerate(chosen) for b, c in enumerate(wanted_columns)}
        return filled(
            compiled(tree, request), tree, motion, (len(chosen), len(wanted_columns)), place, threads=threads, out=out
        )
    D = np.zeros((len(motion), len(chosen), len(wanted_columns)))
    row_at, column_at = ({x: k for k, x in enumerate(xs)} for xs in (chosen, wanted_columns))
    for block in blocks(len(motion)):
        part = motion[block]
        state = state_of(tree, part)
        o = outward(tree, state, ARRAYS, needs_velocity(tree))
        for c, entries in columns(tree, state, o, part.signals, ARRAYS, wanted_columns):
            for r, value in entries.items():
                if r in row_at:
                    D[block, row_at[r], column_at[c]] = value
    return D


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

    Rows and columns as for :func:`regressor`. Dry friction counts as constant, which it is but
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
        from veridyn.mechanics.tree.dynamics.formula import formula  # here: only derivatives without a kernel need it

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
