"""The tables and the memory of compiled steps of a machine with a free base in natural coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import CapabilityError
from veridyn.mechanics.natural.elimination import Elimination, poses_around
from veridyn.mechanics.natural.free_model import EXACT_MULTIPLIERS, FreeModel
from veridyn.mechanics.natural.symmetric import SymmetricPlan, SymmetricRoom, symmetric_plan, symmetric_room
from veridyn.mechanics.natural.terms import Scratch, Tables, scratch_of
from veridyn.mechanics.natural.wheel_kernel import Wheels
from veridyn.mechanics.record import Cube, Matrix, Numbers, Vector

Array = NDArray[np.float64]


class FreeTables(NamedTuple):
    """A machine over its freedoms: E is `linear` but for its rows 3 to 5, which are linear in the coordinates `turning_at`."""

    t: Tables
    e: Elimination  # for its pattern
    plan: SymmetricPlan
    slope_start: Numbers  # (m + 1,) where the rows of Φ_q begin in that pattern
    linear: Matrix  # (f, n)
    turning_at: Numbers  # (c,)
    turning: Cube  # (3 or 0, c + 1, c)
    unknown: Numbers  # (k,) freedoms with an unknown force
    weight: Vector  # (n,)
    constant: Matrix  # (n, values)


class FreeRoom(NamedTuple):
    """Where the kernels work, and what they find; n coordinates, m constraints, f freedoms, x = (z, ż, u, slips) of 2f + k numbers."""

    f: SymmetricRoom
    at: Scratch
    wheels: Wheels
    spare: Vector  # (m or 3a,) values of forms that nobody needs
    turned: Matrix  # (3a, n) gradients of the angles' forms along a vector
    rates: Matrix  # (m, n) Φ̇_q along q̇
    bends: Matrix  # (m, n) the same along q̈
    none: Matrix
    qdd: Vector
    lam: Vector
    q0: Vector
    qd0: Vector
    qdd0: Vector
    lam0: Vector
    grown: Vector  # (n + m,) by how much q̈ and λ changed over the last step, the guess for the next
    load: Vector  # (n,) of loads and unknown forces
    Q: Vector
    target: Vector  # (m,)
    begun: Vector  # (2w,)
    E: Matrix  # (f, n)
    X: Matrix  # (n + m, f)
    XZ: Matrix
    R: Matrix  # (n, f)
    qd_z: Matrix
    small: Matrix  # (f, f)
    pivot: Numbers
    C: Matrix  # (n, n)
    S: Matrix  # (n + m, 2f + k): ∂(q̈, λ)/∂x
    SZ: Matrix
    slopes: Matrix  # (f + 2w, 2f + k)


def free_tables(model: FreeModel) -> FreeTables:
    """The constants of a machine for the kernels."""
    s, free = model.system, model.freedoms
    if len(s.forces.active):
        turned = [name for name, at in s.forces.loads.items() if set(s.forces.active) & set(range(at.start, at.stop))]
        raise CapabilityError(
            "natural",
            "torques on bodies beside tyres or prescribed coordinates",
            "its compiled steps hold loads that do not turn with the pose",
            "Make them drives on coordinates, or use formulation: tree.",
            where=model.name,
            found=", ".join(turned),
        )
    at = np.flatnonzero((free.turning[:, :-1] != 0.0).any(axis=(0, 2)) | (free.turning != 0.0).any(axis=(0, 1)))
    rows = [*at, s.n]
    poses = poses_around(s.guess, len(s.mechanism.added), s.turns)
    slopes = np.array([s.constraints.jacobian(pose) for pose in poses])
    return FreeTables(
        s.tables,
        s.elimination,
        symmetric_plan(s.mass, slopes, EXACT_MULTIPLIERS.alpha(s)),
        np.searchsorted(s.elimination.slope_row, np.arange(s.constraints.m + 1)).astype(np.int64),
        np.ascontiguousarray(free.linear),
        at.astype(np.int64),
        np.ascontiguousarray(free.turning[:, rows][:, :, at]),
        np.array([model.names.index(name) for name in model.unknown], dtype=np.int64),
        np.ascontiguousarray(s.forces.weight[:-1]),
        np.ascontiguousarray(s.forces.constant),
    )


def free_room(model: FreeModel, tables: FreeTables, wheels: Wheels) -> FreeRoom:
    """Room for one caller."""
    n, m, f, a = model.n, model.system.constraints.m, model.f, len(tables.t.places)
    k, w, N = len(model.unknown) + len(model.inner), len(model.inner), model.n + model.system.constraints.m
    return FreeRoom(
        symmetric_room(tables.plan),
        scratch_of(tables.t, m, True),
        wheels,
        np.zeros(max(m, 3 * a)),
        np.zeros((3 * a, n)),
        np.zeros((m, n)),
        np.zeros((m, n)),
        np.zeros((0, 0)),
        np.zeros(n),
        np.zeros(m),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(m),
        np.zeros(n + m),
        np.zeros(n),
        np.zeros(n),
        np.zeros(m),
        np.zeros(w),
        np.zeros((f, n)),
        np.zeros((N, f)),
        np.zeros((N, f)),
        np.zeros((n, f)),
        np.zeros((n, f)),
        np.zeros((f, f)),
        np.zeros(f, dtype=np.int64),
        np.zeros((n, n)),
        np.zeros((N, 2 * f + k)),
        np.zeros((N, 2 * f + k)),
        np.zeros((f + w, 2 * f + k)),
    )
