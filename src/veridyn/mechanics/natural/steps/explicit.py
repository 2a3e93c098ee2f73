"""Explicit Runge-Kutta steps on exact accelerations, brought back to the constraints after each step.

    M q̈ + Φ_qᵀ λ = Q,   Φ_q q̈ = −Φ̇_q q̇                at each stage
    Φ(q) = 0,   Φ_q q̇ = 0,   in the metric M            at the end

What the constraints have drifted is a part of the step's own error, so the way back costs no order (Hairer, Lubich and Wanner, 2006,
Geometric Numerical Integration, IV.4). An explicit rule of high order takes long steps where nothing is stiff; the index-3 form is for the
rest. The rules stand in :mod:`~veridyn.mechanics.system.stepper`. Many steps a call are machine code of the same equations and tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.natural.equations.dynamics import Bordered, NaturalState, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.kernels.elimination import (
    Elimination,
    Factors,
    factorised,
    factors_of,
    set_tangent,
    solved,
)
from veridyn.mechanics.natural.kernels.terms import Scratch, Tables, acting, constraints_at, drift, scratch_of, turned
from veridyn.mechanics.record import Bound, Matrix, Vector, opened
from veridyn.mechanics.system.stepper import CLOSED, CORRECTIONS, STRAY, Tableau, tableau

Numbers = NDArray[np.int64]
REFACTOR = 3  # corrections with one factorisation


class ExplicitRule(NamedTuple):
    """A :class:`~veridyn.mechanics.system.stepper.Tableau` without its times."""

    A: Matrix
    b: Vector


class ExplicitWork(NamedTuple):
    """The mechanism, the rule, and room for steps of one caller."""

    t: Tables
    e: Elimination
    rule: ExplicitRule
    f: Factors
    at: Scratch
    drift: Vector
    q: Vector
    v: Matrix  # (stages, n)
    a: Matrix
    turning: Matrix


def work_of(t: Tables, e: Elimination, rule: Tableau, turns: bool) -> ExplicitWork:
    """Room for steps of a mechanism by a rule; `turns`: some forces turn with their bodies."""
    n, s = len(t.mass), len(rule.b)
    m = len(e.plan.order) - n
    return ExplicitWork(
        t,
        e,
        ExplicitRule(np.array(rule.A), np.array(rule.b)),
        factors_of(e),
        scratch_of(t, m, False),
        np.empty(m),
        np.empty(n),
        np.empty((s, n)),
        np.empty((s, n)),
        np.zeros((n if turns else 0, n + 1)),
    )


@core
def _posed(w: ExplicitWork, q: Array) -> bool:
    """Φ, Φ_q and its factors at q."""
    constraints_at(w.t, q, w.at.y, w.at.phi, w.at.J, w.at.AB, w.at.slopes)
    return factorised(w.e, w.f, w.at.J)


@core
def _accelerated(w: ExplicitWork, load: Array, q: Array, qd: Array) -> bool:
    """q̈ and λ into f.x, after :func:`_posed` or :func:`_closed` at the same q."""
    t, e, f, at = w.t, w.e, w.f, w.at
    n, m = len(q), len(at.phi)
    acting(t, load, w.turning, q, qd, 0.0, 0.0, at.Q, at.T, at.way)
    drift(t, q, qd, at.AB, at.slopes, w.drift)
    for i in range(n):
        f.b[i] = at.Q[i]
    for i in range(m):
        f.b[n + i] = -w.drift[i]
    return solved(e, f)


@core
def _closed(w: ExplicitWork, before: Array, q: Array) -> bool:
    """q onto Φ = 0 in the metric M; leaves Φ_q and its factors of the new pose behind."""
    t, e, f, at = w.t, w.e, w.f, w.at
    n, m, size = len(q), len(at.phi), 1.0
    for i in range(n):
        size = max(size, abs(before[i]))
    for k in range(CORRECTIONS):
        constraints_at(t, q, at.y, at.phi, at.J, at.AB, at.slopes)
        off = 0.0
        for i in range(m):
            off = max(off, abs(at.phi[i]))
        if not np.isfinite(off):
            return False
        done = off <= CLOSED * size * size
        if (done or k % REFACTOR == 0) and not factorised(e, f, at.J):
            return False
        if done:
            return True
        for i in range(n):
            f.b[i] = 0.0
        for i in range(m):
            f.b[n + i] = -at.phi[i]
        if not solved(e, f):
            return False
        for i in range(n):
            if not abs(f.x[i]) <= STRAY * size:
                return False
            q[i] += f.x[i]
    return False


@core
def _sharpened(w: ExplicitWork, x: Array, lam: Array) -> bool:
    """Add to x and λ what −1/α has left open of Φ_q x = −drift."""
    e, f, at = w.e, w.f, w.at
    n, m = len(x), len(lam)
    for i in range(n):
        f.b[i] = 0.0
    for i in range(m):
        f.b[n + i] = -w.drift[i]
    for k in range(len(e.slope_row)):
        f.b[n + e.slope_row[k]] -= at.J[e.slope_row[k], e.slope_column[k]] * x[e.slope_column[k]]
    if not solved(e, f):
        return False
    for i in range(n):
        x[i] += f.x[i]
    for i in range(m):
        lam[i] += f.x[n + i]
    return True


@core
def _same(a: Array, b: Array) -> bool:
    same = True
    for i in range(len(a)):
        same = same and a[i] == b[i]
    return same


@core
def _step(
    w: ExplicitWork, loads: Array, values: Array, turnings: Array, before: Array, x: Array, h: float, known: bool
) -> bool:
    """One step from `before` to x, both (3n + m,); `known`: the accelerations before are those of the first stage."""
    rule, f, n, m = w.rule, w.f, len(w.q), len(w.at.phi)
    s, last = len(rule.b), len(loads) - 1
    for i in range(s):
        for j in range(n):
            position, speed = 0.0, 0.0
            for k in range(i):
                if rule.A[i, k] != 0.0:
                    position += rule.A[i, k] * w.v[k, j]
                    speed += rule.A[i, k] * w.a[k, j]
            w.q[j] = before[j] + h * position
            w.v[i, j] = before[n + j] + h * speed
        if i == 0 and known:
            for j in range(n):
                w.a[0, j] = before[2 * n + j]
            continue
        if len(turnings):
            turned(turnings, values[min(i, last)], w.turning)
        if not (_posed(w, w.q) and _accelerated(w, loads[min(i, last)], w.q, w.v[i])):
            return False
        for j in range(n):
            w.a[i, j] = f.x[j]
    q, qd, qdd, lam = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n :]
    for j in range(n):
        position, speed = 0.0, 0.0
        for k in range(s):
            position += rule.b[k] * w.v[k, j]
            speed += rule.b[k] * w.a[k, j]
        q[j] = before[j] + h * position
        qd[j] = before[n + j] + h * speed
    if not _closed(w, before, q):
        return False
    for i in range(m):
        w.drift[i] = 0.0
        lam[i] = 0.0
    if not _sharpened(w, qd, lam):
        return False
    if len(turnings):
        turned(turnings, values[last], w.turning)
    if not _accelerated(w, loads[last], q, qd):
        return False
    for j in range(n):
        qdd[j] = f.x[j]
    for i in range(m):
        lam[i] = f.x[n + i]
    return _sharpened(w, qdd, lam)


@kept
def explicit_kernel(
    address: Numbers,
    loads: Array,
    values: Array,
    turnings: Array,
    start: Array,
    steps: Array,
    alpha: float,
    out: Array,
) -> int:
    """Steps of lengths `steps` (K,) from `start` (3n + m,): q, q̇, q̈ and λ after each, in the rows of `out` (K, 3n + m).

    `address` is that of a bound :class:`ExplicitWork`. `loads` (K or 1, stages + 1 or 1, n) holds all constant generalised forces, `values`
    (K or 1, stages + 1 or 1, a) the factors of `turnings` (a, n, n+1), the forces that are linear in q. The number of steps made: fewer
    than K where one fails.
    """
    w = opened(address, ExplicitWork)
    set_tangent(w.e, w.f, w.t.mass, alpha)
    before, many = start, len(loads) - 1
    for k in range(len(steps)):
        now, past = min(k, many), min(max(k - 1, 0), many)
        known = k > 0 and _same(loads[now, 0], loads[past, -1]) and _same(values[now, 0], values[past, -1])
        if not _step(w, loads[now], values[now], turnings, before, out[k], steps[k], known):
            return k
        before = out[k]
    return len(steps)


def explicit_step(
    system: NaturalSystem, state: NaturalState, h: float, values: Array, rule: str, how: Stabilisation
) -> NaturalState:
    """The state a time h later; `values` (stages + 1, loads) act at the stages and at the end, or (1, loads) throughout."""
    A, b, _ = tableau(rule)
    v, a = np.empty((len(b), system.n)), np.empty((len(b), system.n))
    for i in range(len(b)):
        v[i] = state.qd + h * A[i, :i] @ a[:i]
        a[i] = solve_accelerations(system, state.q + h * A[i, :i] @ v[:i], v[i], values[min(i, len(values) - 1)])[0]
    size = max(1.0, float(np.abs(state.q).max(initial=0.0)))
    found = onto_constraints(system, state.q + h * b @ v, state.qd + h * b @ a, how, size)
    if found is None:
        raise _too_long(system, state.t + h, h)
    qdd, lam = solve_accelerations(system, *found, values[-1])
    return NaturalState(state.t + h, *found, qdd, lam)


def onto_constraints(
    system: NaturalSystem, q: Array, qd: Array, how: Stabilisation, size: float
) -> tuple[Array, Array] | None:
    """The nearest pose and rates that satisfy the constraints, in the metric M; None where the way there is too long for a mechanism of
    this size (m)."""
    M, alpha, nothing = system.mass, how.alpha(system), np.zeros(system.n)
    for _ in range(CORRECTIONS):
        phi, J = system.constraints.evaluate(q)
        if not np.isfinite(phi).all():
            return None
        if np.abs(phi).max(initial=0.0) <= CLOSED * size * size:
            return q, qd + Bordered(M, J, alpha).solve(nothing, J @ qd - system.constraints.rates)[0]
        way = Bordered(M, J, alpha).solve(nothing, phi)[0]
        if not np.abs(way).max(initial=0.0) <= STRAY * size:
            return None
        q = q + way
    return None


def explicit_steps(
    system: NaturalSystem, state: NaturalState, steps: Array, values: Array, rule: str, how: Stabilisation
) -> Array:
    """q, q̇, q̈ and λ after each of the `steps` (K,), as rows (K, 3n + m), in one call of machine code.

    `values` (K or 1, stages + 1, loads) are those at the stages and at the end of each step, or (1, 1, loads) those of all.
    """
    start = np.concatenate([state.q, state.qd, state.qdd, state.multipliers])
    out = np.empty((len(steps), len(start)))
    work = Bound(work_of(system.tables, system.elimination, tableau(rule), len(system.forces.active) > 0))
    made = explicit_kernel(
        work.address,
        *system.forces.packed(values),
        start,
        steps,
        how.alpha(system),
        out,
    )
    if made < len(steps):
        raise _too_long(system, state.t + float(steps[: made + 1].sum()), float(steps[made]))
    return out


def _too_long(system: NaturalSystem, t: float, h: float) -> SimulationError:
    return SimulationError(
        f"the step to {t:.6g} s is too long: it leaves the constraints too far behind.",
        where=system.mechanism.name,
        expected=f"corrections below {STRAY:g} of the mechanism's size, at most {CORRECTIONS}",
        found=f"a step of {h:.3g} s",
        hint="Try a smaller step; the index3 formulation for stiff springs; or look for a pose where the mechanism locks.",
    )
