"""Forward dynamics of sampled states: what accelerations forces cause; the mass matrix; and exact derivatives of both dynamics.

Inverse dynamics is differentiated with respect to coordinates and rates line by line through the recursion, sharing everything with it.
Forward dynamics needs no derivative of a solve: with a the accelerations that forces cause, M ∂a/∂x = −∂Γ/∂x at that a.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

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
from veridyn.mechanics.tree.dynamics.inverse import tree_forces
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.dynamics import check_closed_state, solve_closed
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.equations import equations_of_motion, mass_entries
from veridyn.mechanics.tree.recursion.inputs import (
    Request,
    acting_of,
    blocks,
    complete_values,
    loaded_bodies,
    split,
    state_of,
)
from veridyn.mechanics.tree.recursion.kinematics import at_rest, posed
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.algebra import ARRAYS, Scalar
from veridyn.symbolic.expression import evaluate

NEAR_SINGULAR = 1e12  # of the sum of inverse pivots: from here on the matrix is looked at more closely
SINGULAR_PIVOT = 1e-7  # of a pivot of the matrix scaled to unit diagonal; its square is the mass left of a unit one


@takes_machine
def forward_dynamics(
    machine: Machine | Tree,
    motion: Motion,
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
) -> Motion:
    """The same motion with the accelerations that its forces cause: inverse dynamics of the result gives the forces back.

    A free base's result is the specific acceleration v̇ − g, so no attitude is needed. A machine with loops must be closed, in positions and
    rates; forces of passive joints are zero (:mod:`veridyn.mechanics.tree.loops.dynamics`).

    Parameters
    ----------
    machine : Machine
        The machine.
    motion : Motion, or a log (Experiment), which :func:`veridyn.motion` prepares with default settings
        N samples: q, qd (N, n), forces (N, n) in N*m or N on every coordinate, wrenches and signals; for a free base its ω and velocity.
        Accelerations are not used, except those of prescribed coordinates, whose forces may be NaN.
    parameters : array (p,), optional
        Values in the order of ``machine.parameters.names``; the machine's own by default.
    engine : {"auto", "compiled", "numpy"}
        Machine code, the NumPy reference, or machine code where there are enough samples to pay for compiling (the default).
    threads : int
        Threads of the compiled kernel; 1 by default.

    Returns
    -------
    Motion
        With qdd (N, n) in rad/s^2 or m/s^2, and the forces of prescribed coordinates.

    Raises
    ------
    DataError
        A force is missing, or the motion does not belong to the machine.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> pulled = vd.Motion(t=[0.0], q=[[0.0]], qd=[[0.0]], qdd=[[0.0]], forces=[[10.41]])
    >>> vd.dynamics.forward_dynamics(pendulum, pulled).qdd.round(6)
    array([[1.]])
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    return caused_motion(tree, motion, parameters, engine, threads)


def caused_motion(
    tree: Tree, motion: Motion, parameters: Array | None = None, engine: Engine = "auto", threads: int = 1
) -> Motion:
    """:func:`forward_dynamics` of a motion that is one of this tree."""
    solved_for = [k for k in range(tree.n) if k not in tree.held]
    if motion.forces is None and not solved_for:
        motion = replace(motion, forces=np.zeros_like(motion.q))
    if motion.forces is None or not np.isfinite(motion.forces[:, solved_for]).all():
        raise DataError(
            "forward dynamics needs a force on every coordinate.",
            where=tree.name,
            expected=f"motion.forces ({len(motion)}, {tree.n}) without NaN",
            hint="Give zero for passive joints.",
        )
    values = complete_values(tree, parameters)
    first = len(tree.rows) - tree.n
    bodies = loaded_bodies(tree, motion.wrenches)
    if tree.loops:
        solved = _closed(tree, motion, values, engine, threads)
        return with_held_forces(
            tree, replace(motion, qdd=solved[:, first:], base=_accelerated(motion.base, solved)), values, engine
        )
    request = Request("forward_checked", tuple(range(len(tree.rows))), bodies=bodies)
    if wants_compiled(engine, tree, request, len(motion)):
        _check_parameters(tree, motion.q[:1], values)
        shape = (len(tree.rows) + 1,)
        solved = filled(compiled(tree, request), tree, motion, shape, values=values, threads=threads)
        doubtful = ~(solved[:, -1] < NEAR_SINGULAR)
        if doubtful.any():
            check_mass(tree, open_mass_matrix(tree, motion.q[doubtful], values, engine="numpy"))
        solved = solved[:, :-1]
    else:
        solved = _solved(tree, motion, values)
    caused = replace(motion, qdd=solved[:, first:], base=_accelerated(motion.base, solved))
    return with_held_forces(tree, caused, values, engine)


def _check_parameters(tree: Tree, q: Array, values: Array) -> None:
    """:func:`check_mass` at one state (1, n), once for each set of parameters; states near a singular one are found by the kernel."""
    passed = _passed(tree, values.tobytes())
    if not passed:
        check_mass(tree, open_mass_matrix(tree, q, values, engine="numpy"))
        passed.append(True)


@lru_cache(maxsize=64)
def _passed(tree: Tree, values: bytes) -> list[bool]:
    """Empty until these parameters have been looked at."""
    return []


def with_held_forces(tree: Tree, motion: Motion, values: Array, engine: Engine = "auto") -> Motion:
    """The motion with the forces that its prescribed coordinates need, by inverse dynamics."""
    if not tree.prescribed:
        return motion
    forces = np.zeros_like(motion.q) if motion.forces is None else motion.forces.copy()
    rows = tree.select_rows([tree.coordinates[k] for k in tree.held])
    forces[:, list(tree.held)] = tree_forces(tree, motion, rows, values, engine)
    return replace(motion, forces=forces)


def _accelerated(base: BaseMotion | None, solved: Array) -> BaseMotion | None:
    return None if base is None else replace(base, omega_dot=solved[:, 3:6], acceleration=solved[:, :3])


def _closed(tree: Tree, motion: Motion, values: Array, engine: Engine, threads: int) -> Array:
    """Accelerations of a machine with loops, block by block."""
    out = np.empty((len(motion), len(tree.rows)))
    for block in blocks(len(motion)):
        part = motion[block]
        loops = loop_values(tree, part.q, part.qd, engine)
        check_closed_state(tree, loops, part.qd)
        M, load = _equations(tree, part, values, engine, threads)
        out[block] = solve_closed(tree, M, load, loops, part.qd, qdd=part.qdd)
    return out


def _equations(tree: Tree, motion: Motion, values: Array, engine: Engine, threads: int) -> tuple[Array, Array]:
    """M and Γ − h of the open tree, by machine code where that pays."""
    rows, first = len(tree.rows), len(tree.rows) - tree.n
    load = np.zeros((len(motion), rows))
    load[:, first:] = motion.forces
    load[:, [first + k for k in tree.held]] = 0.0  # found by inverse dynamics afterwards
    request = Request("inverse", tuple(range(rows)), bodies=loaded_bodies(tree, motion.wrenches))
    if wants_compiled(engine, tree, request, len(motion)):
        zero = np.zeros((len(motion), 3))
        base = None if motion.base is None else replace(motion.base, omega_dot=zero, acceleration=zero)
        still = replace(motion, qdd=np.zeros_like(motion.qdd), base=base)
        load -= filled(compiled(tree, request), tree, still, (rows,), values=values, threads=threads)
        return open_mass_matrix(tree, motion.q, values, engine=engine, threads=threads), load
    X, gains = split(tree, values)
    state, acting = state_of(tree, motion), acting_of(tree, motion)
    entries, bias = equations_of_motion(tree, state, X, gains, acting, motion.signals, ARRAYS)
    for r, value in enumerate(bias):
        load[:, r] -= value
    return _dense(tree, entries, len(motion)), load


def _solved(tree: Tree, motion: Motion, values: Array) -> Array:
    solved = np.empty((len(motion), len(tree.rows)))
    for block in blocks(len(motion)):
        part = motion[block]
        solved[block] = solve_mass(tree, *_equations(tree, part, values, "numpy", 1), part.qdd)
    return solved


@takes_machine
def mass_matrix(
    machine: Machine | Tree, q: ArrayLike, parameters: Array | None = None, *, engine: Engine = "auto", threads: int = 1
) -> Array:
    """M (N, rows, rows) with Γ = M q̈ + …; for a free base its rows and columns are [v̇; ω̇; q̈]. Motor inertias included."""
    tree = tree_of(machine)
    tree.check_open("a mass matrix")
    return open_mass_matrix(tree, q, parameters, engine=engine, threads=threads)


def open_mass_matrix(
    tree: Tree, q: ArrayLike, parameters: Array | None = None, *, engine: Engine = "auto", threads: int = 1
) -> Array:
    """The same of the open tree, whatever loops there are."""
    values = complete_values(tree, parameters)
    request = Request("mass")
    if wants_compiled(engine, tree, request, len(np.atleast_1d(q))):
        motion = at_rest(tree, q)
        shape = (len(tree.rows), len(tree.rows))
        return filled(compiled(tree, request), tree, motion, shape, values=values, threads=threads)
    X, gains = split(tree, values)
    return _dense(tree, mass_entries(tree, posed(tree, q), X, gains), len(np.asarray(q)))


def solve_mass(tree: Tree, M: Array, load: Array, qdd: Array | None = None) -> Array:
    """a (…, rows) with M a = load; refused by name where a coordinate, or a combination of them, moves no mass.

    `qdd` (…, n): the accelerations of prescribed coordinates, whose rows are left out.
    """
    check_mass(tree, M)
    if not tree.held:
        return np.asarray(np.linalg.solve(M, load[..., None])[..., 0], dtype=np.float64)
    assert qdd is not None  # forward dynamics and integrate give it
    free, held = list(tree.solved_rows), list(tree.held)
    first = len(tree.rows) - tree.n
    out = np.zeros_like(load)
    out[..., [first + k for k in held]] = qdd[..., held]
    right_side = (load - (M @ out[..., None])[..., 0])[..., free]
    out[..., free] = np.linalg.solve(M[..., free, :][..., free], right_side[..., None])[..., 0]
    return out


def check_mass(tree: Tree, M: Array, where: str = "") -> None:
    """Refuse a mass matrix (…, rows, rows) that is not safely positive: nothing may be divided by it. Prescribed rows do not count.

    `where`: what messages name instead of the machine.
    """
    where = where or tree.name
    names = tree.rows
    if tree.held:
        free = list(tree.solved_rows)
        M, names = M[..., free, :][..., free], tuple(tree.rows[r] for r in free)
    if not names:
        return
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    least = diagonal.reshape(-1, len(names)).min(axis=0)
    light = [names[r] for r in np.flatnonzero(least <= 1e-12 * np.abs(diagonal).max(initial=0.0))]
    if light:
        raise ModelError(
            f"coordinate {', '.join(light)} moves no mass, so no force gives it a finite acceleration.",
            where=where,
            hint="Give a body it carries a mass, or make the joint fixed.",
        )
    scale = 1.0 / np.sqrt(diagonal)
    try:
        pivots = np.diagonal(np.linalg.cholesky(M * scale[..., None] * scale[..., None, :]), axis1=-2, axis2=-1)
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if pivots.min(initial=1.0) < SINGULAR_PIVOT:
        raise ModelError(
            "the mass matrix is singular or not positive: some combination of coordinates moves no mass, or a negative one.",
            where=where,
            hint="Look for two joints on one axis with nothing between them, or for parameters no body can have.",
        )


def _dense(tree: Tree, entries: Mapping[tuple[int, int], Scalar], samples: int) -> Array:
    M = np.zeros((samples, len(tree.rows), len(tree.rows)))
    for (a, b), value in entries.items():
        M[:, a, b] = value
    return M


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
        from veridyn.mechanics.tree.dynamics.formula import formula  # here: only derivatives without a kernel need it

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
