"""The index-3 step of :mod:`veridyn.mechanics.natural.index3` as machine code: the same equations and tables, many steps a call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.natural.elimination import Elimination, Factors, factorised, factors_of, set_tangent, solved
from veridyn.mechanics.natural.terms import (
    Scratch,
    Tables,
    acting,
    constraints_at,
    curvature,
    drift,
    scratch_of,
    turned,
)
from veridyn.mechanics.natural.wheel_kernel import Wheels, add_condensed, follow_slips, roll, slip_rate
from veridyn.mechanics.record import Vector, opened

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
PROJECTIONS = 12
CLOSED = 1e-12


class Index3Work(NamedTuple):
    """The mechanism, and room for steps of one caller."""

    t: Tables
    e: Elimination
    f: Factors
    at: Scratch
    right: Vector  # (n + m,), what projections write to
    sigma: Vector  # (m,)
    target: Vector
    wheels: Wheels
    begun: Vector  # (2w,) s + h/2 ṡ at the start
    slipped: Vector  # (2w,)


def work_of(t: Tables, e: Elimination, wheels: Wheels) -> Index3Work:
    """Room for steps of a mechanism."""
    n, states = len(t.mass), 2 * len(wheels.Q)
    m = len(e.plan.order) - n
    return Index3Work(
        t,
        e,
        factors_of(e),
        scratch_of(t, m, True),
        np.empty(n + m),
        np.empty(m),
        np.empty(m),
        wheels,
        np.empty(states),
        np.empty(states),
    )


@core
def _projected(w: Index3Work, x: Array) -> bool:
    """x onto J x = target in the metric T, repeated with multipliers until nothing of size 1/α is left."""
    e, f, J = w.e, w.f, w.at.J
    n, m, before, size = len(x), len(w.target), np.inf, 1.0
    for i in range(n):
        w.right[i] = 0.0
    for k in range(len(e.tangent_cell)):
        w.right[e.tangent_row[k]] += f.given[e.tangent_cell[k]] * x[e.tangent_column[k]]
    for i in range(m):
        size = max(size, abs(w.target[i]))
        w.sigma[i] = 0.0
    for _ in range(PROJECTIONS):
        for j in range(n):
            f.b[j] = w.right[j]
        for i in range(m):
            f.b[n + i] = w.target[i]
        for k in range(len(e.slope_row)):
            i, j = e.slope_row[k], e.slope_column[k]
            f.b[j] -= J[i, j] * w.sigma[i]
        if not solved(e, f):
            return False
        for j in range(n):
            x[j] = f.x[j]
        open_by = 0.0
        for i in range(m):
            w.right[n + i] = -w.target[i]
            w.sigma[i] += f.x[n + i]
        for k in range(len(e.slope_row)):
            i, j = e.slope_row[k], e.slope_column[k]
            w.right[n + i] += J[i, j] * x[j]
        for i in range(m):
            open_by = max(open_by, abs(w.right[n + i]))
        if open_by <= CLOSED * size or open_by > 0.5 * before:
            break
        before = open_by
    return True


@core
def _constrained(w: Index3Work, led: Array, q: Array) -> None:
    """Φ and Φ_q at q, prescribed coordinates where they are led."""
    constraints_at(w.t, q, w.at.y, w.at.phi, w.at.J, w.at.AB, w.at.slopes)
    for i in range(len(w.t.held)):
        w.at.phi[w.t.held[i]] -= led[0, i]


@core
def _rates(h: float, q0: Array, qd0: Array, qdd0: Array, q: Array, qd: Array, qdd: Array) -> None:
    for i in range(len(q)):
        qd[i] = 2.0 / h * (q[i] - q0[i]) - qd0[i]
        qdd[i] = 4.0 / (h * h) * (q[i] - q0[i]) - 4.0 / h * qd0[i] - qdd0[i]


@core
def _step(
    w: Index3Work,
    load: Array,
    turning: Array,
    led: Array,
    before: Array,
    after: Array,
    h: float,
    alpha: float,
    tolerance: float,
    iterations: int,
) -> float:
    """One step from `before` to `after`, both (3n + m + 2w,): q, q̇, q̈, λ and slips, where λ of `after` holds that before at first.

    `led` (3, p): places, rates and accelerations of prescribed coordinates at the end. Zero, or by how much the last iteration moved
    where it did not converge.
    """
    t, e, f, at, n = w.t, w.e, w.f, w.at, len(load)
    q0, qd0, qdd0 = before[:n], before[n : 2 * n], before[2 * n : 3 * n]
    m, k, size, half = len(w.target), 0.25 * h * h, 1.0, 0.5 * h
    q, qd, qdd, lam = after[:n], after[n : 2 * n], after[2 * n : 3 * n], after[3 * n : 3 * n + m]
    slips, slips0 = after[3 * n + m :], before[3 * n + m :]
    if len(slips) > 0:
        roll(w.wheels, q0, qd0, slips0, 0)
        for i in range(len(slips)):
            slips[i] = slips0[i]
            w.begun[i] = slips0[i] + half * slip_rate(w.wheels, i)
    for i in range(n):
        q[i] = q0[i] + h * qd0[i] + 0.5 * h * h * qdd0[i]
        size = max(size, abs(q[i]))
    _constrained(w, led, q)
    moved, converged = np.inf, False
    for _ in range(iterations):
        _rates(h, q0, qd0, qdd0, q, qd, qdd)
        acting(t, load, turning, q, qd, k, half, at.Q, at.T, at.way)
        if len(slips) > 0:
            roll(w.wheels, q, qd, slips, 1)
            add_condensed(w.wheels, half, w.begun, slips, k, half, at.Q, at.T, w.slipped)
        curvature(t, q, lam, at.AB, at.slopes, k, at.T)
        for i in range(n):
            s = -at.Q[i]
            for p in range(t.mass_start[i], t.mass_start[i + 1]):
                s += t.mass[i, t.mass_column[p]] * qdd[t.mass_column[p]]
            f.b[i] = -k * s
        for p in range(len(e.slope_row)):
            f.b[e.slope_column[p]] -= k * at.J[e.slope_row[p], e.slope_column[p]] * lam[e.slope_row[p]]
        for i in range(m):
            f.b[n + i] = -at.phi[i]
        set_tangent(e, f, at.T, k * alpha)
        if not (factorised(e, f, at.J) and solved(e, f)):
            return np.inf
        moved, off = 0.0, 0.0
        for i in range(n):
            q[i] += f.x[i]
            moved = max(moved, abs(f.x[i]))
        for i in range(m):
            lam[i] += f.x[n + i] / k
        if len(slips) > 0:
            moved = max(moved, follow_slips(w.wheels, half, f.x, 2.0 / h, w.slipped, slips))
        _constrained(w, led, q)
        for i in range(m):
            off = max(off, abs(at.phi[i]))
        if not (np.isfinite(moved) and np.isfinite(off)):
            return np.inf
        if moved <= tolerance * size and off <= tolerance * size * size:
            converged = True
            break
    if not converged:
        return max(moved, 1e-300)
    _rates(h, q0, qd0, qdd0, q, qd, qdd)
    acting(t, load, turning, q, qd, k, half, at.Q, at.T, at.way)
    if len(slips) > 0:
        roll(w.wheels, q, qd, slips, 1)
        add_condensed(w.wheels, half, w.begun, slips, k, half, at.Q, at.T, w.slipped)
    for i in range(m):
        w.target[i] = 0.0
    for i in range(len(t.held)):
        w.target[t.held[i]] = led[1, i]
    set_tangent(e, f, at.T, k * alpha)
    if not (factorised(e, f, at.J) and _projected(w, qd)):
        return np.inf
    drift(t, q, qd, at.AB, at.slopes, w.target)
    for i in range(m):
        w.target[i] = -w.target[i]
    for i in range(len(t.held)):
        w.target[t.held[i]] += led[2, i]
    if not _projected(w, qdd):
        return np.inf
    return 0.0


@kept
def index3_kernel(
    address: Numbers,
    loads: Array,
    values: Array,
    turnings: Array,
    motion: Array,
    start: Array,
    steps: Array,
    alpha: float,
    tolerance: float,
    iterations: int,
    out: Array,
) -> tuple[int, float]:
    """Steps of lengths `steps` (K,) from `start` (3n + m + 2w,): q, q̇, q̈, λ and slips after each, in the rows of `out`.

    `address` is that of a bound :class:`Index3Work`. `loads` (K or 1, n) holds all constant generalised forces of each step, `values`
    (K or 1, a) the factors of `turnings` (a, n, n+1), the forces that are linear in q, `motion` (K or 1, 3, p) that of prescribed
    coordinates. The number of steps made, and zero, or by how much the last iteration of the next one moved.
    """
    w, n = opened(address, Index3Work), loads.shape[1]
    turning = np.zeros((n if len(turnings) else 0, n + 1))
    before = start
    for k in range(len(steps)):
        if len(turnings) and (k == 0 or len(values) > 1):
            turned(turnings, values[k], turning)
        for i in range(3 * n, 3 * n + len(w.target)):
            out[k, i] = before[i]
        load, led = loads[min(k, len(loads) - 1)], motion[min(k, len(motion) - 1)]
        moved = _step(w, load, turning, led, before, out[k], steps[k], alpha, tolerance, iterations)
        if moved != 0.0:
            return k, moved
        before = out[k]
    return len(steps), 0.0
