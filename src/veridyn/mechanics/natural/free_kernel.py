"""The machine of :mod:`veridyn.mechanics.natural.free_model` as machine code: closing, accelerations, index-3 steps and all derivatives.

One factorisation of [M Φ_qᵀ; Φ_q −1/α] at a pose near by serves all of these. What it solves is repeated until the equations themselves
hold, so that an old pose costs repetitions and no digits: it is Newton's matrix of an index-3 step, for M is next to M + h/2 C + h²/4 K
there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.compiled import core
from veridyn.mechanics.dense import factor, solve_transposed
from veridyn.mechanics.natural.elimination import Elimination, Factors, factorised, factors_of, set_tangent
from veridyn.mechanics.natural.free_model import EXACT_MULTIPLIERS, FreeModel
from veridyn.mechanics.natural.sparse import back_many, back_planned
from veridyn.mechanics.natural.terms import (
    Scratch,
    Tables,
    acting,
    constraints_at,
    curvature,
    drift,
    gather,
    scratch_of,
)
from veridyn.mechanics.natural.wheel_kernel import Wheels, add_wheels, roll, slip_rate
from veridyn.mechanics.record import Cube, Matrix, Numbers, Vector

Array = NDArray[np.float64]
CLOSED_RATIO = 1e-12  # of constraints, relative to the square of the machine's size
PROJECTED_RATIO = 1e-10  # of projected rates, relative to the largest
BALANCED_RATIO = 1e-8  # of the equations of motion, relative to the largest force
SETTLED_RATIO = 1e-9  # of a step's last change, relative to the machine's size
MAX_REPETITIONS = 12  # with one factorisation; then it is made anew
MAX_NEWTON_STEPS = 40


class FreeTables(NamedTuple):
    """A machine over its freedoms: E is `linear` but for its rows 3 to 5, which are linear in the coordinates `turning_at`."""

    t: Tables
    e: Elimination
    linear: Matrix  # (f, n)
    turning_at: Numbers  # (c,)
    turning: Cube  # (3 or 0, c + 1, c)
    unknown: Numbers  # (k,) freedoms with an unknown force
    weight: Vector  # (n,)
    constant: Matrix  # (n, values)
    alpha: float


class FreeRoom(NamedTuple):
    """Where the kernels work, and what they find; n coordinates, m constraints, f freedoms, x = (z, ż, u, slips) of 2f + k numbers."""

    f: Factors
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
    line: Vector  # (f,)
    C: Matrix  # (n, n)
    S: Matrix  # (n + m, 2f + k): ∂(q̈, λ)/∂x
    SZ: Matrix
    dq: Vector
    slopes: Matrix  # (f + 2w, 2f + k)


def free_tables(model: FreeModel) -> FreeTables:
    """The constants of a machine for the kernels."""
    s, free = model.system, model.freedoms
    if len(s.forces.active):
        turned = [name for name, at in s.forces.loads.items() if set(s.forces.active) & set(range(at.start, at.stop))]
        raise ModelError(
            Fault(
                "compiled steps over the freedoms of a base carry no torques on bodies.",
                where=model.name,
                found=", ".join(turned),
                hint="Make them drives on coordinates, or use formulation: tree.",
            )
        )
    at = np.flatnonzero((free.turning[:, :-1] != 0.0).any(axis=(0, 2)) | (free.turning != 0.0).any(axis=(0, 1)))
    rows = [*at, s.n]
    return FreeTables(
        s.tables,
        s.elimination,
        np.ascontiguousarray(free.linear),
        at.astype(np.int64),
        np.ascontiguousarray(free.turning[:, rows][:, :, at]),
        np.array([model.names.index(name) for name in model.unknown], dtype=np.int64),
        np.ascontiguousarray(s.forces.weight[:-1]),
        np.ascontiguousarray(s.forces.constant),
        EXACT_MULTIPLIERS.alpha(s),
    )


def free_room(model: FreeModel, tables: FreeTables, wheels: Wheels) -> FreeRoom:
    """Room for one caller."""
    n, m, f, a = model.n, model.system.constraints.m, model.f, len(tables.t.places)
    k, w, N = len(model.unknown) + len(model.inner), len(model.inner), model.n + model.system.constraints.m
    return FreeRoom(
        factors_of(tables.e),
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
        np.zeros(f),
        np.zeros((n, n)),
        np.zeros((N, 2 * f + k)),
        np.zeros((N, 2 * f + k)),
        np.zeros(n),
        np.zeros((f + w, 2 * f + k)),
    )


@core
def constrain(t: FreeTables, w: FreeRoom, led: Array, q: Array) -> float:
    """Φ and Φ_q at q, prescribed coordinates where they are led; the largest |Φ|."""
    constraints_at(t.t, q, w.at.y, w.at.phi, w.at.J, w.at.AB, w.at.slopes)
    for i in range(len(t.t.held)):
        w.at.phi[t.t.held[i]] -= led[0, i]
    off = 0.0
    for i in range(len(w.at.phi)):
        off = max(off, abs(w.at.phi[i]))
    return off


@core
def refactor(t: FreeTables, w: FreeRoom) -> bool:
    """Factors at the pose whose Φ_q is in hand."""
    set_tangent(t.e, w.f, t.t.mass, t.alpha)
    return factorised(t.e, w.f, w.at.J) and w.f.dense[0] == 0


@core
def solve_near(t: FreeTables, w: FreeRoom) -> None:
    """f.x from f.b with the factors in hand."""
    for i in range(len(w.f.x)):
        w.f.x[i] = 0.0
    back_planned(t.e.plan, w.f.v, w.f.b, w.f.x, w.f.z)


@core
def size_of(q: Array) -> float:
    size = 1.0
    for i in range(len(q)):
        size = max(size, abs(q[i]))
    return size


@core
def close(t: FreeTables, w: FreeRoom, led: Array, q: Array) -> bool:
    """q onto Φ = 0 in the metric M; Φ_q there is left in hand."""
    n, size = len(q), size_of(q)
    for k in range(MAX_NEWTON_STEPS):
        off = constrain(t, w, led, q)
        if not np.isfinite(off):
            return False
        if off <= CLOSED_RATIO * size * size:
            return True
        if k == MAX_REPETITIONS and not refactor(t, w):
            return False
        for i in range(n):
            w.f.b[i] = 0.0
        for i in range(len(w.at.phi)):
            w.f.b[n + i] = -w.at.phi[i]
        solve_near(t, w)
        for i in range(n):
            q[i] += w.f.x[i]
    return False


@core
def project(t: FreeTables, w: FreeRoom, x: Array) -> bool:
    """x onto Φ_q x = target in the metric M, at the pose whose Φ_q is in hand."""
    n, m, e, J = len(x), len(w.target), t.e, w.at.J
    for k in range(MAX_NEWTON_STEPS):
        largest, off = size_of(w.target), 0.0
        for i in range(n):
            w.f.b[i] = 0.0
        for i in range(m):
            w.f.b[n + i] = w.target[i]
        for p in range(len(e.slope_row)):
            w.f.b[n + e.slope_row[p]] -= J[e.slope_row[p], e.slope_column[p]] * x[e.slope_column[p]]
        for i in range(m):
            off = max(off, abs(w.f.b[n + i]))
        if not np.isfinite(off):
            return False
        if off <= PROJECTED_RATIO * max(largest, size_of(x)):
            return True
        if k == MAX_REPETITIONS and not refactor(t, w):
            return False
        solve_near(t, w)
        for i in range(n):
            x[i] += w.f.x[i]
    return False


@core
def set_rates(t: FreeTables, w: FreeRoom, led: Array) -> None:
    """The target of rates: zero, and those of prescribed coordinates."""
    for i in range(len(w.target)):
        w.target[i] = 0.0
    for i in range(len(t.t.held)):
        w.target[t.t.held[i]] = led[1, i]


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
    n, m, e, J, b = len(q), len(w.lam), t.e, w.at.J, w.f.b
    acting(t.t, w.load, w.none, q, qd, 0.0, 0.0, w.Q, w.none, w.at.way)
    if len(slips) > 0:
        roll(w.wheels, q, qd, slips, tangent)
        add_wheels(w.wheels, w.Q)
    drift(t.t, q, qd, w.at.AB, w.at.slopes, w.target)
    for i in range(m):
        w.target[i] = -w.target[i]
    for i in range(len(t.t.held)):
        w.target[t.t.held[i]] += led[2, i]
    for k in range(MAX_NEWTON_STEPS):
        for i in range(m):
            b[n + i] = w.target[i]
        balance(t, w, w.qdd, w.lam)
        off, open_by = 0.0, 0.0
        for p in range(len(e.slope_row)):
            b[n + e.slope_row[p]] -= J[e.slope_row[p], e.slope_column[p]] * w.qdd[e.slope_column[p]]
        for i in range(n):
            off = max(off, abs(b[i]))
        for i in range(m):
            open_by = max(open_by, abs(b[n + i]))
        if not (np.isfinite(off) and np.isfinite(open_by)):
            return False
        if off <= BALANCED_RATIO * size_of(w.Q) and open_by <= BALANCED_RATIO * max(size_of(w.target), size_of(w.qdd)):
            return True
        if k == MAX_REPETITIONS and not refactor(t, w):
            return False
        solve_near(t, w)
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
    """An index-3 step of the trapezoidal rule from a state whose q̈ and λ are in hand (39 to 41), then q̇ projected (42)."""
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
        constrain(t, w, led, q)
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
        solve_near(t, w)
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
    constrain(t, w, led, q)
    for i in range(n):
        qd[i] = 2.0 / h * (q[i] - w.q0[i]) - w.qd0[i]
        w.qdd[i] = 4.0 / (h * h) * (q[i] - w.q0[i]) - 4.0 / h * w.qd0[i] - w.qdd0[i]
    for i in range(n):
        w.grown[i] = w.qdd[i] - w.qdd0[i]
    for i in range(m):
        w.grown[n + i] = w.lam[i] - w.lam0[i]
    set_rates(t, w, led)
    return project(t, w, qd)


@core
def bend_freedoms(t: FreeTables, a: int, u: Array, v: Array) -> float:
    """uᵀ G_a v of a turn."""
    c, total = len(t.turning_at), 0.0
    for i in range(c):
        for j in range(c):
            total += u[t.turning_at[i]] * t.turning[a, i, j] * v[t.turning_at[j]]
    return total


@core
def differentiate(t: FreeTables, w: FreeRoom, q: Array, qd: Array, u: Array) -> bool:
    """R, ∂q̇/∂z, ∂(q̈, λ)/∂x and the slopes of z̈ and of slip rates, after :func:`accelerate` with derivatives and factors at this pose."""
    n, m, f = len(q), len(w.lam), len(w.R[0])
    set_freedoms(t, w, q)
    for i in range(n):
        for c in range(f):
            w.X[i, c] = w.E[c, i]
    for i in range(m):
        for c in range(f):
            w.X[n + i, c] = 0.0
    back_many(t.e.plan, w.f.v, w.X, w.XZ)
    for a in range(f):
        for c in range(f):
            total = 0.0
            for i in range(n):
                total += w.E[a, i] * w.X[i, c]
            w.small[a, c] = total
    if not factor(w.small, w.pivot):
        return False
    for i in range(n):
        for c in range(f):
            w.line[c] = w.X[i, c]
        solve_transposed(w.small, w.pivot, w.line)
        for c in range(f):
            w.R[i, c] = w.line[c]
    rate_of_slopes(t, w, q, w.qdd, w.bends)
    rate_of_slopes(t, w, q, qd, w.rates)  # last: what it leaves of the angles is along q̇
    for i in range(n + m):
        for c in range(f):
            w.X[i, c] = 0.0
    for p in range(len(t.e.slope_row)):
        i, j = t.e.slope_row[p], t.e.slope_column[p]
        for c in range(f):
            w.X[n + i, c] -= w.rates[i, j] * w.R[j, c]
    back_many(t.e.plan, w.f.v, w.X, w.XZ)
    for c in range(f):
        for i in range(n):
            w.dq[i], w.qd_z[i, c] = w.R[i, c], w.X[i, c]
        for a in range(f):
            total = bend_freedoms(t, a - 3, w.dq, qd) if 3 <= a < 3 + len(t.turning) else 0.0
            for i in range(n):
                total += w.E[a, i] * w.X[i, c]
            w.line[a] = total
        for i in range(n):
            total = 0.0
            for a in range(f):
                total += w.R[i, a] * w.line[a]
            w.qd_z[i, c] -= total
    _stiffness(t, w, q, qd, u)
    _right_sides(t, w, q, qd)
    back_many(t.e.plan, w.f.v, w.S, w.SZ)
    _slopes(t, w)
    return True


@core
def _stiffness(t: FreeTables, w: FreeRoom, q: Array, qd: Array, u: Array) -> None:
    """K in at.T, with that of the constraint forces, and C."""
    n, r, K, C = len(q), w.wheels, w.at.T, w.C
    acting(t.t, w.load, w.none, q, qd, 1.0, 0.0, w.at.Q, K, w.at.way)
    acting(t.t, w.load, w.none, q, qd, 0.0, 1.0, w.at.Q, C, w.at.way)
    for i in range(n):
        for p in range(t.t.mass_start[i], t.t.mass_start[i + 1]):
            j = t.t.mass_column[p]
            K[i, j] -= t.t.mass[i, j]
            C[i, j] -= t.t.mass[i, j]
    curvature(t.t, q, w.lam, w.at.AB, w.at.slopes, 1.0, K)
    count, k = r.Q.shape
    for i in range(count):
        for a in range(k):
            for b in range(k):
                K[r.at[i * k + a], r.at[i * k + b]] -= r.Q_q[i, a, b]
                C[r.at[i * k + a], r.at[i * k + b]] -= r.Q_qd[i, a, b]
    for j in range(len(t.unknown)):
        a = t.unknown[j] - 3
        if 0 <= a < len(t.turning):
            for b in range(len(t.turning_at)):
                for c in range(len(t.turning_at)):
                    K[t.turning_at[c], t.turning_at[b]] -= u[j] * t.turning[a, b, c]


@core
def _right_sides(t: FreeTables, w: FreeRoom, q: Array, qd: Array) -> None:
    """The right sides (n + m, 2f + k) of what accelerations and multipliers change by, into S."""
    n, m, f, e, r, S = len(q), len(w.lam), len(w.R[0]), t.e, w.wheels, w.S
    columns = S.shape[1]
    for i in range(n + m):
        for c in range(columns):
            S[i, c] = 0.0
    for p in range(len(e.tangent_row)):
        i, j = e.tangent_row[p], e.tangent_column[p]
        stiff, damp = w.at.T[i, j], w.C[i, j]
        if stiff != 0.0 or damp != 0.0:
            for c in range(f):
                S[i, c] -= stiff * w.R[j, c] + damp * w.qd_z[j, c]
                S[i, f + c] -= damp * w.R[j, c]
    for j in range(len(t.unknown)):
        for i in range(n):
            S[i, 2 * f + j] = w.E[t.unknown[j], i]
    count, k = r.Q.shape
    for i in range(count):
        for a in range(k):
            for b in range(2):
                S[r.at[i * k + a], columns - 2 * count + 2 * i + b] += r.Q_s[i, a, b]
    for p in range(len(e.slope_row)):
        i, j = e.slope_row[p], e.slope_column[p]
        rate, bend = 2.0 * w.rates[i, j], w.bends[i, j]
        for c in range(f):
            S[n + i, c] -= rate * w.qd_z[j, c] + bend * w.R[j, c]
            S[n + i, f + c] -= rate * w.R[j, c]
    _third(t, w, q, qd)


@core
def _third(t: FreeTables, w: FreeRoom, q: Array, qd: Array) -> None:
    """Subtract Φ_qqq[dq, q̇, q̇] from the right sides of positions, after :func:`rate_of_slopes` along q̇; only angles have one."""
    n, f, a = len(q), w.R.shape[1], len(t.t.places)
    first, AB, slopes = n + len(w.lam) - a, w.at.AB, w.at.slopes
    for i in range(a):
        p = t.t.places[i]
        s, c, v = np.sin(q[p]), np.cos(q[p]), qd[p]
        Av, Bv, vv_a, vv_b = 0.0, 0.0, 0.0, 0.0
        for at in range(t.t.angle_start[i], t.t.angle_start[i + 1]):
            j = t.t.angle_column[at]
            Av += slopes[3 * i, j] * qd[j]
            Bv += slopes[3 * i + 1, j] * qd[j]
            vv_a += w.turned[3 * i, j] * qd[j]
            vv_b += w.turned[3 * i + 1, j] * qd[j]
        for column in range(f):
            e, Ad, Bd, dv_a, dv_b = w.R[p, column], 0.0, 0.0, 0.0, 0.0
            for at in range(t.t.angle_start[i], t.t.angle_start[i + 1]):
                j = t.t.angle_column[at]
                d = w.R[j, column]
                Ad += slopes[3 * i, j] * d
                Bd += slopes[3 * i + 1, j] * d
                dv_a += w.turned[3 * i, j] * d
                dv_b += w.turned[3 * i + 1, j] * d
            total = 2.0 * e * v * (c * Bv - s * Av) + v * v * (c * Bd - s * Ad) + e * (c * vv_a + s * vv_b)
            total += 2.0 * v * (c * dv_a + s * dv_b) - e * v * v * (c * AB[3 * i] + s * AB[3 * i + 1])
            w.S[first + i, column] -= total


@core
def rate_of_slopes(t: FreeTables, w: FreeRoom, q: Array, v: Array, out: Array) -> None:
    """∂Φ_q/∂q v (m, n), after :func:`constrain` at q: Φ̇_q where v is q̇. Gradients of the angles' forms along v are left in `turned`."""
    n, a, y = len(q), len(t.t.places), w.at.y
    for i in range(n):
        y[i] = v[i]
    y[n] = 0.0
    gather(t.t.quadratic, y, w.spare, out)
    gather(t.t.angles, y, w.spare, w.turned)
    first, AB, slopes = len(w.lam) - a, w.at.AB, w.at.slopes
    for i in range(a):
        p = t.t.places[i]
        s, c, rate, Av, Bv = np.sin(q[p]), np.cos(q[p]), v[p], 0.0, 0.0
        for at in range(t.t.angle_start[i], t.t.angle_start[i + 1]):
            j = t.t.angle_column[at]
            Av += slopes[3 * i, j] * v[j]
            Bv += slopes[3 * i + 1, j] * v[j]
            out[first + i, j] = s * w.turned[3 * i, j] - c * w.turned[3 * i + 1, j] - w.turned[3 * i + 2, j]
            out[first + i, j] += rate * (c * slopes[3 * i, j] + s * slopes[3 * i + 1, j])
        out[first + i, p] = c * Av + s * Bv + rate * (c * AB[3 * i + 1] - s * AB[3 * i])


@core
def _slopes(t: FreeTables, w: FreeRoom) -> None:
    """∂z̈/∂x and the derivatives of slip rates."""
    n, f, r, S = w.R.shape[0], w.R.shape[1], w.wheels, w.S
    columns = S.shape[1]
    for a in range(f):
        for c in range(columns):
            w.slopes[a, c] = 0.0
        for i in range(n):
            e = w.E[a, i]
            if e != 0.0:
                for c in range(columns):
                    w.slopes[a, c] += e * S[i, c]
    for c in range(f):
        for i in range(n):
            w.dq[i] = w.R[i, c]
        for a in range(len(t.turning)):
            w.slopes[3 + a, c] += bend_freedoms(t, a, w.dq, w.qdd)
    count, k = r.Q.shape
    for i in range(count):
        for b in range(2):
            row = f + 2 * i + b
            for c in range(columns):
                w.slopes[row, c] = 0.0
            for a in range(k):
                j = r.at[i * k + a]
                for c in range(f):
                    w.slopes[row, c] += r.rates_q[i, b, a] * w.R[j, c] + r.rates_qd[i, b, a] * w.qd_z[j, c]
                    w.slopes[row, f + c] += r.rates_qd[i, b, a] * w.R[j, c]
            for d in range(2):
                w.slopes[row, columns - 2 * count + 2 * i + d] = r.f[i, 8 + (6 + b) * 14 + 12 + d]
