"""A whole filter step on a machine in natural coordinates over the freedoms of its base as one call of machine code.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x ⊞ dx

The equations are those of :class:`~veridyn.mechanics.natural.steps.free_model.FreeModel`, which stays the reference; a state is
x = (q, q̇, u, slips, b, 0). F of the exact error model is the trapezoidal rule on the derivatives at the start and the end of a step. Where
something does not settle, or numbers are not finite, the kernel says so by a code, and the reference does that step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.dense import factor, solve
from veridyn.mechanics.natural.kernels.elimination import product
from veridyn.mechanics.natural.steps.free_derivatives import bend_freedoms, differentiate
from veridyn.mechanics.natural.steps.free_kernel import (
    NEAR_RATIO,
    FreeRoom,
    FreeTables,
    accelerate,
    advance,
    close,
    constrain,
    project,
    refactor,
    set_load,
    set_rates,
)
from veridyn.observe.filters.kernels.correction import DONE, Corrected, put_results
from veridyn.observe.filters.kernels.covariance import EXACT, INTEGRATOR, all_finite, gather, noise, spread, transition
from veridyn.observe.filters.kernels.robust_gate import Gated, correct_through, restore

REFERENCE = 2  # the reference must look at this step
ROUNDING = 1e-9  # of a number of sub-steps


class BilinearRows(NamedTuple):
    """Forms yᵀ G v of many rows, entry by entry: row after row, `start` (r + 1,), the places in y and v, and the numbers."""

    start: Numbers
    left: Numbers
    right: Numbers
    value: Vector


class FreeSensors(NamedTuple):
    """What sensors read: rows a·y + yᵀ G q̇ + yᵀ D q̈; a heading is the angle of its row and of the row `other`, −1 for all else."""

    a: BilinearRows
    G: BilinearRows
    D: BilinearRows
    other: Numbers  # (m,)
    bias: Vector
    selector: Matrix
    wraps: Codes
    R: Matrix


class FreeActing(NamedTuple):
    """Values of the loads, and place, rate and acceleration (3, p) of prescribed coordinates."""

    values: Vector
    motion: Matrix


class FreeSettings(NamedTuple):
    """How to filter: error model, longest step (s), gate (ν²/s, or infinity)."""

    error_model: int
    longest: float
    limit: float


class FreePrediction(NamedTuple):
    """What is found on the way. n states, m readings, r rows of sensors."""

    x: Vector
    P: Matrix
    F: Matrix
    Q: Matrix
    y: Vector
    H: Matrix
    residual: Vector
    after: Vector
    rows: Vector  # (r,)
    by_z: Matrix  # (r, 2f + k)
    push: Matrix  # (f, k)
    step: Matrix  # (2f + s, 2f + k)
    before: Matrix  # (2f + s, 2f + s + forces): A and B where the step starts
    now: Matrix
    left: Matrix  # (2f + s, 2f + s)
    pivot: Numbers
    column: Vector
    G: Matrix
    added: Matrix
    product: Matrix
    led: Matrix  # (3, p)


class FreeFilter(NamedTuple):
    """Everything of one filter on one machine."""

    tables: FreeTables
    room: FreeRoom
    sensors: FreeSensors
    density: Vector
    settings: FreeSettings
    x: Vector  # given: state, covariance, what acts over the step and from its end on, readings
    P: Matrix
    before: FreeActing
    now: FreeActing
    values: Vector
    flags: Codes
    found: FreePrediction
    corrected: Corrected
    gate: Gated
    clock: Numbers  # (5,) steps so far, steps from one derivative to the next, whether there are factors, sub-steps that F and Q are of,
    # whether the state of the step before is closed with Φ_q in hand
    of: Vector  # (1,) the step (s) that the derivatives are of
    out: Vector


@kept
def free_step(address: NDArray[np.int64], dt: float) -> int:
    """One filter step over dt seconds with what stands in the record, the results into `out`; `DONE`, or `REFERENCE`."""
    s = opened(address, FreeFilter)
    p, c, g = s.found, s.corrected, s.gate
    placed = s.clock[4] == 1 and _stands(s)
    s.clock[4] = 0
    if not _predict(s, dt, placed):
        s.clock[2] = 0
        return REFERENCE
    _expect(s)
    for j in range(len(p.y)):
        e = s.values[j] - p.y[j]
        if s.sensors.wraps[j] != 0:
            e = (e + np.pi) % (2.0 * np.pi) - np.pi
        p.residual[j] = e
    if not all_finite(p.x, p.P, p.y, p.H):
        return REFERENCE
    code = correct_through(p.P, p.H, s.sensors.R, p.residual, s.flags, s.values, s.settings.limit, c, g)
    for i in range(len(p.x)):
        p.after[i] = p.x[i]
    if code != DONE or (g.used[0] > 0 and not _retract(s)):
        restore(g)
        return REFERENCE
    put_results(s.out, p.after, p.x, p.P, p.F, p.H, c)
    s.clock[4] = 1
    return DONE


@core
def _stands(s: FreeFilter) -> bool:
    """Whether the state is the one that the step before left, closed where prescribed coordinates are now, with Φ_q in hand."""
    p, same = s.found, True
    for i in range(2 * len(s.room.qdd)):
        same = same and s.x[i] == p.after[i]
    for i in range(p.led.shape[1]):
        same = same and s.before.motion[0, i] == p.led[0, i] and s.before.motion[1, i] == p.led[1, i]
    return same


@core
def _led(s: FreeFilter, acting: FreeActing, since: float) -> None:
    """Prescribed coordinates some time after they were given."""
    led, motion = s.found.led, acting.motion
    for i in range(motion.shape[1]):
        q, qd, qdd = motion[0, i], motion[1, i], motion[2, i]
        led[0, i], led[1, i], led[2, i] = q + since * qd + 0.5 * since * since * qdd, qd + since * qdd, qdd


@core
def _predict(s: FreeFilter, dt: float, placed: bool) -> bool:
    """x and P after dt seconds, with F gathered over the sub-steps, and the instant at which the sensors read.

    `placed`: q and q̇ are closed where the step starts, and Φ_q is in hand.
    """
    t, w, p = s.tables, s.room, s.found
    n, f, size = len(w.qdd), w.R.shape[1], len(s.P)
    first, own = 2 * n + len(t.unknown), len(w.begun)
    for i in range(len(p.x)):
        p.x[i] = s.x[i]
    q, qd, u, slips = p.x[:n], p.x[n : 2 * n], p.x[2 * n : first], p.x[first : first + own]
    count = max(1, int(np.ceil(dt / s.settings.longest - ROUNDING))) if dt > 0.0 else 0
    h = dt / max(count, 1)
    due = count == 0 or s.clock[0] % s.clock[1] == 0 or abs(s.of[0] - h) > ROUNDING * h
    s.clock[0] = 1 if due else s.clock[0] + 1
    if count > 0:
        s.of[0] = h
    moved = due or s.clock[3] != count  # otherwise F and Q are those of the step before
    s.clock[3] = 0
    if moved:
        for a in range(size):
            for b in range(size):
                p.F[a, b] = 1.0 if a == b else 0.0
                p.Q[a, b] = 0.0
    exact, moving = s.settings.error_model != INTEGRATOR, count < 0  # never placed, without a literal
    for k in range(count):
        _led(s, s.before, k * h)
        starts = due and s.settings.error_model == EXACT
        if not _instant(s, s.before.values, q, qd, u, slips, starts, starts, placed and k == 0):
            return False
        if due and s.settings.error_model == EXACT:
            _linear(s, q, qd, p.before)
        _led(s, s.before, (k + 1) * h)
        if not advance(t, w, p.led, q, qd, slips, h):
            return False
        last = k == count - 1
        if due and (exact or not last) and not _instant(s, s.before.values, q, qd, u, slips, due, due, moving):
            return False
        if due and exact:
            _linear(s, q, qd, p.now)
            if not _step_derivative(s, h):
                return False
        if last and not _read_instant(s, q, qd, u, slips, due):
            return False
        if due:
            _keep_push(s)
        if moved:
            transition(s.settings.error_model, p.step, w.slopes[:f], p.push, h, p.G)
            noise(s.density, p.push, h, p.added)
            gather(p.G, p.added, k == 0, p.F, p.Q, p.product)
    s.clock[3] = count
    if count == 0 and not _read_instant(s, q, qd, u, slips, due):
        return False
    spread(s.P, p.F, p.Q, dt, p.product, p.G, p.P)
    return True


@core
def _read_instant(s: FreeFilter, q: Array, qd: Array, u: Array, slips: Array, due: bool) -> bool:
    """The instant that sensors read, under the inputs that act from now on, with factors of its pose."""
    _led(s, s.now, 0.0)
    fresh = len(q) > 0  # always, but a literal True would make the compiler work twice
    return _instant(s, s.now.values, q, qd, u, slips, fresh, due, not fresh)


@core
def _instant(
    s: FreeFilter, values: Array, q: Array, qd: Array, u: Array, slips: Array, fresh: bool, derive: bool, placed: bool
) -> bool:
    """q and q̇ closed, and q̈ and λ there, under what acts; `fresh`: with factors of this pose, which derivatives need.

    `placed`: q and q̇ are closed already, and Φ_q is in hand.
    """
    t, w, p = s.tables, s.room, s.found
    if s.clock[2] == 0:
        constrain(t, w, p.led, q)
        if not refactor(t, w):
            return False
        s.clock[2] = 1
    if placed:
        if fresh and not refactor(t, w):
            return False
    else:
        if not close(t, w, p.led, q, NEAR_RATIO if fresh else 0.0):
            return False
        set_rates(t, w, p.led)
        if not project(t, w, qd):
            return False
    set_load(t, w, values, q, u)
    if not accelerate(t, w, p.led, q, qd, slips, 1 if derive else 0):
        return False
    return differentiate(t, w, q, qd, u) if derive else True


@core
def _keep_push(s: FreeFilter) -> None:
    """What forces and slips do to z̈, for noises."""
    w, p = s.room, s.found
    f = w.R.shape[1]
    for a in range(f):
        for b in range(p.push.shape[1]):
            p.push[a, b] = w.slopes[a, 2 * f + b]


@core
def _linear(s: FreeFilter, q: Array, qd: Array, out: Array) -> None:
    """A and B of δξ˙ = A δξ + B δu, ξ = (z, ż, slips), from the slopes in hand."""
    t, w = s.tables, s.room
    f, own, forces = w.R.shape[1], len(w.begun), len(t.unknown)
    size = 2 * f + own
    for a in range(size):
        for b in range(size + forces):
            out[a, b] = 0.0
    for a in range(f):
        out[a, f + a] = 1.0
    if len(t.turning) > 0:
        x, y, z = bend_turn(s, 0, q, qd), bend_turn(s, 1, q, qd), bend_turn(s, 2, q, qd)
        out[3, 4], out[3, 5], out[4, 3], out[4, 5], out[5, 3], out[5, 4] = z, -y, -z, x, y, -x
    for a in range(f + own):
        for b in range(2 * f):
            out[f + a, b] = w.slopes[a, b]
        for b in range(own):
            out[f + a, 2 * f + b] = w.slopes[a, 2 * f + forces + b]
        for b in range(forces):
            out[f + a, size + b] = w.slopes[a, 2 * f + b]


@core
def bend_turn(s: FreeFilter, a: int, q: Array, qd: Array) -> float:
    """ω of the base about one of its axes."""
    t, c = s.tables, len(s.tables.turning_at)
    total = bend_freedoms(t, a, q, qd)
    for j in range(c):
        total += t.turning[a, c, j] * qd[t.turning_at[j]]
    return total


@core
def _step_derivative(s: FreeFilter, h: float) -> bool:
    """step = (1 − h/2 A₁)⁻¹ (1 + h/2 A₀, h/2 (B₀ + B₁)), its columns in the order (z, ż, u, slips)."""
    t, w, p = s.tables, s.room, s.found
    f, own, forces = w.R.shape[1], len(w.begun), len(t.unknown)
    size = 2 * f + own
    start = p.before if s.settings.error_model == EXACT else p.now
    for a in range(size):
        for b in range(size):
            p.left[a, b] = (1.0 if a == b else 0.0) - 0.5 * h * p.now[a, b]
    if not factor(p.left, p.pivot):
        return False
    for b in range(size + forces):
        for a in range(size):
            value = 0.5 * h * start[a, b]
            p.column[a] = value + (1.0 if a == b else 0.0) if b < size else value + 0.5 * h * p.now[a, b]
        solve(p.left, p.pivot, p.column)
        to = b if b < 2 * f else b + forces if b < size else 2 * f + b - size
        for a in range(size):
            p.step[a, to] = p.column[a]
    return True


@core
def _expect(s: FreeFilter) -> None:
    """y and H of the sensors at the instant in hand."""
    r, p, w, t = s.sensors, s.found, s.room, s.tables
    n, f = len(w.qdd), w.R.shape[1]
    k = len(t.unknown) + len(w.begun)
    every = 2 * f + k
    for j in range(len(p.rows)):
        for c in range(every):
            p.by_z[j, c] = 0.0
        total = 0.0
        for e in range(r.a.start[j], r.a.start[j + 1]):
            i, value = r.a.left[e], r.a.value[e]
            total += value * (p.x[i] if i < n else 1.0)
            if i < n:
                for c in range(f):
                    p.by_z[j, c] += value * w.R[i, c]
        for e in range(r.G.start[j], r.G.start[j + 1]):
            i, l, value = r.G.left[e], r.G.right[e], r.G.value[e]
            y = p.x[i] if i < n else 1.0
            total += value * y * p.x[n + l]
            for c in range(f):
                p.by_z[j, c] += value * y * w.qd_z[l, c]
                p.by_z[j, f + c] += value * y * w.R[l, c]
            if i < n:
                for c in range(f):
                    p.by_z[j, c] += value * p.x[n + l] * w.R[i, c]
        for e in range(r.D.start[j], r.D.start[j + 1]):
            i, l, value = r.D.left[e], r.D.right[e], r.D.value[e]
            y = p.x[i] if i < n else 1.0
            total += value * y * w.qdd[l]
            for c in range(every):
                p.by_z[j, c] += value * y * w.S[l, c]
            if i < n:
                for c in range(f):
                    p.by_z[j, c] += value * w.qdd[l] * w.R[i, c]
        p.rows[j] = total
    for j in range(len(p.y)):
        other, x = r.other[j], p.rows[j]
        p.y[j] = x + r.bias[j]
        for c in range(every):
            p.H[j, c] = p.by_z[j, c]
        if other >= 0:
            y = p.rows[other]
            square = max(x * x + y * y, 1e-18)
            p.y[j] = np.arctan2(y, x) + r.bias[j]
            for c in range(every):
                p.H[j, c] = (x * p.by_z[other, c] - y * p.by_z[j, c]) / square
        for b in range(r.selector.shape[1]):
            p.y[j] += r.selector[j, b] * p.x[2 * n + k + b]
            p.H[j, every + b] = r.selector[j, b]


@core
def _retract(s: FreeFilter) -> bool:
    """x ⊞ dx: along R, then closed; forces, slips and biases are added. Prescribed coordinates stay where they are."""
    t, w, p, d = s.tables, s.room, s.found, s.corrected.dx
    n, f = len(w.qdd), w.R.shape[1]
    q, qd = p.after[:n], p.after[n : 2 * n]
    for i in range(n):
        q[i] += product(w.R[i], d)
        qd[i] += product(w.qd_z[i], d) + product(w.R[i], d[f:])
    for i in range(len(d) - 2 * f):
        p.after[2 * n + i] += d[2 * f + i]
    for i in range(
        n + len(w.lam)
    ):  # accelerations and multipliers in first order, from where the next step repeats them
        change = product(w.S[i], d)
        if i < n:
            w.qdd[i] += change
        else:
            w.lam[i - n] += change
    if not close(t, w, p.led, q, 0.0):
        return False
    set_rates(t, w, p.led)
    return project(t, w, qd)
