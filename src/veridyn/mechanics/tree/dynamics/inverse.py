"""Inverse dynamics of a sampled motion: which forces it takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.dynamics.engine import Buffer, Engine, compiled, filled, wants_compiled
from veridyn.mechanics.tree.dynamics.symbols import Request
from veridyn.mechanics.tree.loops.projection import open_rows, projected, projection
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.forces import all_rows, needs_velocity
from veridyn.mechanics.tree.recursion.newton_euler import State, outward, rigid_rows
from veridyn.mechanics.tree.recursion.samples import acting_of, blocks, complete_values, loaded_bodies, split, state_of
from veridyn.mechanics.tree.tree import Rows, Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS

Array = NDArray[np.float64]


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
    chosen = tree.select_rows(rows)
    values = complete_values(tree, parameters)
    if not tree.loops:
        return _open(tree, motion, chosen, values, engine, threads, out)
    gamma, own = np.empty((len(motion), len(chosen))), open_rows(tree, chosen)
    for block in blocks(len(motion)):
        part = motion[block]
        gamma[block] = projected(
            tree, projection(tree, part, engine), chosen, own, _open(tree, part, own, values, engine, threads)
        )
    return gamma


def _open(
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
