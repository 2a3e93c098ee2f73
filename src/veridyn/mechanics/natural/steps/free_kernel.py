"""A machine over the freedoms of its base as machine code: its tables and memory, closing, accelerations, index-3 steps and derivatives.

One factorisation of [M Φ_qᵀ; Φ_q −1/α] at a pose near by serves all of these. What it solves is repeated until the equations themselves
hold, so that an old pose costs repetitions and no digits: it is Newton's matrix of an index-3 step, for M is next to M + h/2 C + h²/4 K
there. The machine is that of :mod:`veridyn.mechanics.natural.steps.free_model`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError
from veridyn.mechanics.compiled import Cube, Matrix, Numbers, Places, Vector, core, summing
from veridyn.mechanics.linear import size_of
from veridyn.mechanics.natural.equations.elimination import (
    Elimination,
    SymmetricPlan,
    SymmetricRoom,
    factor_symmetric,
    poses_around,
    solve_symmetric,
    symmetric_plan,
    symmetric_room,
)
from veridyn.mechanics.natural.equations.terms import (
    Scratch,
    Tables,
    acting,
    constrain,
    scratch_of,
    set_second_rates,
)
from veridyn.mechanics.natural.equations.wheels import Wheels, add_wheels, roll, slip_rate
from veridyn.mechanics.natural.steps.free_model import EXACT_MULTIPLIERS, FreeModel

CLOSED_RATIO = 1e-10  # of constraints, relative to the square of the machine's size
PROJECTED_RATIO = 1e-7  # of projected rates, relative to the largest
BALANCED_RATIO = 1e-6  # of the equations of motion, relative to the largest force
SETTLED_RATIO = 1e-9  # of a step's last change, relative to the machine's size
NEAR_RATIO = (
    1e-8  # of constraints where factors are as good as those of the closed pose, relative to the machine's size
)
MAX_REPETITIONS = 12  # with one factorisation; then it is made anew
MAX_NEWTON_STEPS = 40


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
            "not built: its compiled steps hold loads that do not turn with the pose",
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


@core
def refactor(t: FreeTables, w: FreeRoom) -> bool:
    """Factors at the pose whose Φ_q is in hand."""
    return factor_symmetric(t.plan, w.f, w.at.J)


@core
def close(t: FreeTables, w: FreeRoom, led: Array, q: Array, near: float) -> bool:
    """q onto Φ = 0 in the metric M; Φ_q there is left in hand, with factors of the first pose at which |Φ| is at most `near`."""
    n, size, old = len(q), size_of(q), near > 0.0
    for k in range(MAX_NEWTON_STEPS):
        off = constrain(t.t, w.at, led, q)
        if not np.isfinite(off):
            return False
        if old and off <= max(near, CLOSED_RATIO * size) * size:
            if not refactor(t, w):
                return False
            old = False
        if off <= CLOSED_RATIO * size * size:
            return True
        if k == MAX_REPETITIONS and not refactor(t, w):
            return False
        for i in range(n):
            w.f.b[i] = 0.0
        for i in range(len(w.at.phi)):
            w.f.b[n + i] = -w.at.phi[i]
        solve_symmetric(t.plan, w.f)
        for i in range(n):
            q[i] += w.f.x[i]
    return False


@core
def take_slopes(t: FreeTables, w: FreeRoom, x: Array) -> float:
    """f.b[n:] −= Φ_q x with the Φ_q in hand; the largest number that is left there."""
    n, off = len(x), 0.0
    for i in range(len(w.lam)):
        columns = t.e.slope_column[t.slope_start[i] : t.slope_start[i + 1]]
        w.f.b[n + i] -= _along(w.at.J[i], x, columns)
        off = max(off, abs(w.f.b[n + i]))
    return float(off)


@summing
def _along(row: Array, x: Array, columns: Places) -> float:
    total = 0.0
    for p in range(len(columns)):
        total += row[columns[p]] * x[columns[p]]
    return float(total)


@core
def project(t: FreeTables, w: FreeRoom, x: Array) -> bool:
    """x onto Φ_q x = target in the metric M, at the pose whose Φ_q is in hand."""
    n, m, largest = len(x), len(w.target), size_of(w.target)
    for k in range(MAX_NEWTON_STEPS):
        for i in range(n):
            w.f.b[i] = 0.0
        for i in range(m):
            w.f.b[n + i] = w.target[i]
        off = take_slopes(t, w, x)
        if not np.isfinite(off):
            return False
        if off <= PROJECTED_RATIO * max(largest, size_of(x)):
            return True
        if k == MAX_REPETITIONS and not refactor(t, w):
            return False
        solve_symmetric(t.plan, w.f)
        for i in range(n):
            x[i] += w.f.x[i]
    return False


@core
def set_load(t: FreeTables, w: FreeRoom, values: Array, q: Array, u: Array) -> None:
    """Constant forces of the loads, and of unknown forces as they act in the pose q."""
    n = len(q)
    for i in range(n):
        total = t.weight[i]
        for j in range(len(values)):
            total += t.constant[i, j] * values[j]
        w.load[i] = total
    if len(t.unknown) > 0:
        set_freedoms(t, w, q)
        for j in range(len(t.unknown)):
            for i in range(n):
                w.load[i] += w.E[t.unknown[j], i] * u[j]


@core
def set_freedoms(t: FreeTables, w: FreeRoom, q: Array) -> None:
    """E (f, n) at q."""
    for a in range(t.linear.shape[0]):
        for i in range(t.linear.shape[1]):
            w.E[a, i] = t.linear[a, i]
    c = len(t.turning_at)
    for a in range(len(t.turning)):
        for j in range(c):
            total = t.turning[a, c, j]
            for i in range(c):
                total += t.turning[a, i, j] * q[t.turning_at[i]]
            w.E[3 + a, t.turning_at[j]] = total


@core
def accelerate(t: FreeTables, w: FreeRoom, led: Array, q: Array, qd: Array, slips: Array, tangent: int) -> bool:
    """q̈ and λ at a closed state, from those in hand; forces of the tyres with derivatives where they are asked for (1)."""
    n, m, b = len(q), len(w.lam), w.f.b
    acting(t.t, w.load, w.none, q, qd, 0.0, 0.0, w.Q, w.none, w.at.way)
    if len(slips) > 0:
        roll(w.wheels, q, qd, slips, tangent)
        add_wheels(w.wheels, w.Q)
    set_second_rates(t.t, w.at, led, q, qd, w.target)
    for k in range(MAX_NEWTON_STEPS):
        for i in range(m):
            b[n + i] = w.target[i]
        balance(t, w, w.qdd, w.lam)
        off, open_by = 0.0, take_slopes(t, w, w.qdd)
        for i in range(n):
            off = max(off, abs(b[i]))
        if not (np.isfinite(off) and np.isfinite(open_by)):
            return False
        if off <= BALANCED_RATIO * size_of(w.Q) and open_by <= BALANCED_RATIO * max(size_of(w.target), size_of(w.qdd)):
            return True
        if k == MAX_REPETITIONS and not refactor(t, w):
            return False
        solve_symmetric(t.plan, w.f)
        for i in range(n):
            w.qdd[i] += w.f.x[i]
        for i in range(m):
            w.lam[i] += w.f.x[n + i]
    return False


@core
def balance(t: FreeTables, w: FreeRoom, qdd: Array, lam: Array) -> None:
    """f.b[:n] = Q − M q̈ − Φ_qᵀ λ."""
    b, e, J, tables = w.f.b, t.e, w.at.J, t.t
    for i in range(len(qdd)):
        total = w.Q[i]
        for p in range(tables.mass_start[i], tables.mass_start[i + 1]):
            total -= tables.mass[i, tables.mass_column[p]] * qdd[tables.mass_column[p]]
        b[i] = total
    for p in range(len(e.slope_row)):
        b[e.slope_column[p]] -= J[e.slope_row[p], e.slope_column[p]] * lam[e.slope_row[p]]


@core
def advance(t: FreeTables, w: FreeRoom, led: Array, q: Array, qd: Array, slips: Array, h: float) -> bool:
    """An index-3 step of the trapezoidal rule from a state whose q̈ and λ are in hand (39 to 41); q̇ is left to be projected (42)."""
    n, m, k, half = len(q), len(w.lam), 0.25 * h * h, 0.5 * h
    if len(slips) > 0:
        roll(w.wheels, q, qd, slips, 0)
    for i in range(len(slips)):
        w.begun[i] = slips[i] + half * slip_rate(w.wheels, i)
        slips[i] += h * slip_rate(w.wheels, i)
    for i in range(n):
        w.q0[i], w.qd0[i], w.qdd0[i] = q[i], qd[i], w.qdd[i]
        q[i] += h * qd[i] + 0.5 * h * h * w.qdd[i] + k * w.grown[i]  # (18)
    for i in range(m):
        w.lam0[i] = w.lam[i]
        w.lam[i] += w.grown[n + i]
    size = size_of(q)
    settled, before = False, np.inf
    for repeat in range(MAX_NEWTON_STEPS):
        constrain(t.t, w.at, led, q)
        if repeat == MAX_REPETITIONS and not refactor(t, w):
            return False
        for i in range(n):
            qd[i] = 2.0 / h * (q[i] - w.q0[i]) - w.qd0[i]  # (40)
            w.qdd[i] = 4.0 / (h * h) * (q[i] - w.q0[i]) - 4.0 / h * w.qd0[i] - w.qdd0[i]
        acting(t.t, w.load, w.none, q, qd, 0.0, 0.0, w.Q, w.none, w.at.way)
        slipped = 0.0
        if len(slips) > 0:
            roll(w.wheels, q, qd, slips, 0)
            add_wheels(w.wheels, w.Q)
            for i in range(len(slips)):
                follows = w.begun[i] + half * slip_rate(w.wheels, i)
                slipped = max(slipped, abs(follows - slips[i]))
                slips[i] = follows
        balance(t, w, w.qdd, w.lam)  # (41)
        for i in range(n):
            w.f.b[i] *= k
        for i in range(m):
            w.f.b[n + i] = -w.at.phi[i]
        solve_symmetric(t.plan, w.f)
        moved = slipped
        for i in range(n):
            q[i] += w.f.x[i]
            moved = max(moved, abs(w.f.x[i]))
        for i in range(m):
            w.lam[i] += w.f.x[n + i] / k
        if not np.isfinite(moved):
            return False
        rate = moved / before  # what is left after this change is about that much of it; nothing is known of the first
        if moved <= SETTLED_RATIO * size or (0.0 < rate < 0.3 and rate * moved <= 0.3 * SETTLED_RATIO * size):
            settled = True
            break
        before = moved
    if not settled:
        return False
    for i in range(n):
        qd[i] = 2.0 / h * (q[i] - w.q0[i]) - w.qd0[i]
        w.qdd[i] = 4.0 / (h * h) * (q[i] - w.q0[i]) - 4.0 / h * w.qd0[i] - w.qdd0[i]
    for i in range(n):
        w.grown[i] = w.qdd[i] - w.qdd0[i]
    for i in range(m):
        w.grown[n + i] = w.lam[i] - w.lam0[i]
    return True
