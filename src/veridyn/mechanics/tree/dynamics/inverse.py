"""Inverse dynamics of a sampled motion, the forces Γ it takes; and its regressor, the matrix D with Γ = D φ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.engine import Buffer, Engine, compiled, filled, wants_compiled
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
