"""Steps of the index-3 augmented Lagrangian form with the trapezoidal rule and projections of velocities and accelerations.

Positions at the end of the step solve M q̈ + Φ_qᵀ (λ + α Φ) = Q(q, q̇) with the trapezoidal rule (paper 003, equations 39 to 41, with
the factor Δt²/4 of the correction); λ grows by α Φ after each solve and starts warm. Lagging slips of tyres follow the same rule and are
put into these equations. Velocities and accelerations are then projected onto Φ_q q̇ = ġ and Φ_q q̈ = g̈ − Φ̇_q q̇ (g of prescribed
coordinates) in the metric M + Δt/2 C + Δt²/4 K (42, corrected), repeated with multipliers of their own until nothing of size 1/α is left.
Many steps a call are machine code of the same equations and tables.

Reference: Cuadrado, Dopico, Naya and González, 2004, Multibody System Dynamics 12; García de Jalón and Bayo, 1994.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import Bound, Vector, core, kept, opened
from veridyn.mechanics.natural.equations.dynamics import NaturalState, Stabilisation
from veridyn.mechanics.natural.equations.elimination import (
    Elimination,
    Factors,
    factorised,
    factors_of,
    set_tangent,
    solved,
)
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.equations.terms import (
    Scratch,
    Tables,
    acting,
    constrain,
    curvature,
    scratch_of,
    set_rates,
    set_second_rates,
    turned,
)
from veridyn.mechanics.natural.equations.wheels import (
    WheelRoom,
    Wheels,
    add_condensed,
    follow_slips,
    roll,
    slip_rate,
)

Numbers = NDArray[np.int64]
PROJECTIONS = 12
CLOSED = 1e-12  # of a projected constraint, relative to what is projected


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
def _project(w: Index3Work, x: Array) -> bool:
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
    constrain(w.t, at, led, q)
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
        moved = 0.0
        for i in range(n):
            q[i] += f.x[i]
            moved = max(moved, abs(f.x[i]))
        for i in range(m):
            lam[i] += f.x[n + i] / k
        if len(slips) > 0:
            moved = max(moved, follow_slips(w.wheels, half, f.x, 2.0 / h, w.slipped, slips))
        off = constrain(w.t, at, led, q)
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
    set_rates(t, led, w.target)
    set_tangent(e, f, at.T, k * alpha)
    if not (factorised(e, f, at.J) and _project(w, qd)):
        return np.inf
    set_second_rates(t, at, led, q, qd, w.target)
    if not _project(w, qdd):
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


def index3_steps(
    system: NaturalSystem,
    state: NaturalState,
    steps: Array,
    values: Array,
    how: Stabilisation,
    motion: Array | None = None,
    road: Array | None = None,
    push: Array | None = None,
) -> Array:
    """q, q̇, q̈, λ and slips after each of the `steps` (K,), as rows (K, 3n + m + 2w), in one call of machine code.

    `values` (K or 1, loads) are those of each step, or of all; `motion` (K or 1, 3, p) that of prescribed coordinates at the end of each;
    `road` is a packed one (:attr:`veridyn.mechanics.ground.road.Road.packed`); `push` (n,) are generalised forces besides the loads.
    """
    loads, factors, turnings = system.forces.packed(values)
    if push is not None:
        loads += push
    # Copies have one layout and may be written to: one compiled version serves every caller.
    start = np.concatenate([state.q, state.qd, state.qdd, state.multipliers, state.slips])
    out = np.empty((len(steps), len(start)))
    led = system.constraints.motion[None] if motion is None else motion
    wheels = WheelRoom(system.wheels, road)  # which keeps the code of tyres for as long as it is called
    work = Bound(work_of(system.tables, system.elimination, wheels.wheels))
    made, moved = index3_kernel(
        work.address,
        loads,
        factors,
        turnings,
        np.ascontiguousarray(led),
        start,
        steps,
        how.alpha(system),
        how.tolerance,
        how.iterations,
        out,
    )
    if moved:
        raise _not_converged(system, state.t + float(steps[: made + 1].sum()), how, moved)
    return out


def _not_converged(system: NaturalSystem, t: float, how: Stabilisation, moved: float) -> SimulationError:
    return SimulationError(
        f"the step to {t:.6g} s does not converge in {how.iterations} iterations.",
        where=system.mechanism.name,
        expected=f"a last change below {how.tolerance:.3g} of the mechanism's size",
        found=f"{moved:.3g}",
        hint="Try a smaller step, or look for a pose where the mechanism locks.",
    )
