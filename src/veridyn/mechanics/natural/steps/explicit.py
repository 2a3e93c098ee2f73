"""Explicit Runge-Kutta steps on exact accelerations, brought back to the constraints after each step.

    M q̈ + Φ_qᵀ λ = Q,   Φ_q q̈ = g̈ − Φ̇_q q̇ − 2 ω (Φ_q q̇ − ġ) − ω² Φ    at each stage
    Φ(q) = 0,   Φ_q q̇ = ġ,   in the metric M                             at the end

What the constraints have drifted is a part of the step's own error, so the way back costs no order (Hairer, Lubich and Wanner, 2006,
Geometric Numerical Integration, IV.4). An explicit rule of high order takes long steps where nothing is stiff; the index-3 form is for the
rest. The rules stand in :mod:`~veridyn.mechanics.system.stepper`. Many steps a call are machine code of the same equations and tables,
where prescribed coordinates g move, tyres roll, and what is a function of Python is called at each stage (:class:`ExplicitRun`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import Bound, Cube, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.linear import size_of
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
    scratch_of,
    set_rates,
    set_second_rates,
    turned,
)
from veridyn.mechanics.natural.equations.wheels import WheelRoom, Wheels, add_wheels, roll, slip_rate
from veridyn.mechanics.system.run_record import call_law
from veridyn.mechanics.system.stepper import CLOSED, CORRECTIONS, STRAY, Tableau, check_size, tableau
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD

REFACTOR = 3  # corrections with one factorisation


class ExplicitRule(NamedTuple):
    """A :class:`~veridyn.mechanics.system.stepper.Tableau`."""

    A: Matrix
    b: Vector
    c: Vector


class ExplicitWork(NamedTuple):
    """The mechanism, the rule, and room for steps of one caller; `closing` is ω."""

    t: Tables
    e: Elimination
    rule: ExplicitRule
    wheels: Wheels
    turnings: Cube  # (a, n, n+1) of the forces that are linear in q
    call: Numbers  # (1,) the address of a function of Python, which sets `load` and `factors` by `now`, or 0
    closing: float
    f: Factors
    at: Scratch
    target: Vector  # (m,)
    q: Vector
    slips: Vector  # (2w,)
    v: Matrix  # (stages, n)
    a: Matrix
    slipped: Matrix  # (stages, 2w)
    now: Vector  # (2n + 2w,) the state at which forces are computed
    time: Vector  # (1,) and when that is
    load: Vector  # (n,) constant forces there
    factors: Vector  # (a,) of the turnings
    turning: Matrix


def work_of(system: NaturalSystem, rule: Tableau, wheels: Wheels, call: Numbers, closing: float) -> ExplicitWork:
    """Room for steps of a mechanism by a rule."""
    n, s, w, m = system.n, len(rule.b), 2 * len(wheels.Q), system.constraints.m
    turnings = np.ascontiguousarray(system.forces.turning[system.forces.active])
    return ExplicitWork(
        system.tables,
        system.elimination,
        ExplicitRule(*(np.array(x) for x in rule)),
        wheels,
        turnings,
        call,
        closing,
        factors_of(system.elimination),
        scratch_of(system.tables, m, False),
        np.empty(m),
        np.empty(n),
        np.empty(w),
        np.empty((s, n)),
        np.empty((s, n)),
        np.empty((s, w)),
        np.empty(2 * n + w),
        np.empty(1),
        np.empty(n),
        np.empty(len(turnings)),
        np.zeros((n if len(turnings) else 0, n + 1)),
    )


@core
def _act(w: ExplicitWork, load: Array, factors: Array, time: float, q: Array, qd: Array, slips: Array) -> bool:
    """What acts at a state: as given, or by a function of Python; False where that fails, or the state is none of a machine."""
    n, fine = len(q), True
    w.time[0] = time
    for j in range(n):
        w.now[j], w.now[n + j] = q[j], qd[j]
        fine = fine and abs(q[j]) < LARGEST_ANGLE_RAD and abs(qd[j]) < np.inf
    for j in range(len(slips)):
        w.now[2 * n + j] = slips[j]
        fine = fine and abs(slips[j]) < np.inf
    if not fine:
        return False
    if w.call[0] != 0:
        if call_law(w.call[0], time) != 0:
            return False
    else:
        for j in range(n):
            w.load[j] = load[j]
        for j in range(len(factors)):
            w.factors[j] = factors[j]
    turned(w.turnings, w.factors, w.turning)
    return True


@core
def _accelerated(w: ExplicitWork, led: Array, q: Array, qd: Array, slips: Array, closing: float) -> bool:
    """q̈ and λ into f.x, after :func:`_act` at the same state and with factors of the same q; rates of slips are left with the wheels."""
    t, e, f, at = w.t, w.e, w.f, w.at
    n, m = len(q), len(at.phi)
    acting(t, w.load, w.turning, q, qd, 0.0, 0.0, at.Q, at.T, at.way)
    if len(slips) > 0:
        roll(w.wheels, q, qd, slips, 0)
        add_wheels(w.wheels, at.Q)
    set_second_rates(t, at, led, q, qd, w.target)
    if closing > 0.0:
        for i in range(m):
            w.target[i] -= closing * closing * at.phi[i]
        for i in range(len(t.held)):
            w.target[t.held[i]] += 2.0 * closing * led[1, i]
        for k in range(len(e.slope_row)):
            i, j = e.slope_row[k], e.slope_column[k]
            w.target[i] -= 2.0 * closing * at.J[i, j] * qd[j]
    for i in range(n):
        f.b[i] = at.Q[i]
    for i in range(m):
        f.b[n + i] = w.target[i]
    return solved(e, f)


@core
def _closed(w: ExplicitWork, led: Array, size: float, q: Array) -> bool:
    """q onto Φ = 0 in the metric M; leaves Φ_q and its factors of the new pose behind."""
    e, f, at = w.e, w.f, w.at
    n, m = len(q), len(at.phi)
    for k in range(CORRECTIONS):
        off = constrain(w.t, w.at, led, q)
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
    """Add to x and λ what −1/α has left open of Φ_q x = target."""
    e, f, at = w.e, w.f, w.at
    n, m = len(x), len(lam)
    for i in range(n):
        f.b[i] = 0.0
    for i in range(m):
        f.b[n + i] = w.target[i]
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
def _onto(w: ExplicitWork, led: Array, size: float, q: Array, qd: Array, lam: Array) -> bool:
    """Positions and rates onto the constraints; λ is lost."""
    if not _closed(w, led, size, q):
        return False
    set_rates(w.t, led, w.target)
    for i in range(len(lam)):
        lam[i] = 0.0
    return _sharpened(w, qd, lam)


@core
def _same(a: Array, b: Array) -> bool:
    same = True
    for i in range(len(a)):
        same = same and a[i] == b[i]
    return same


@core
def _step(
    w: ExplicitWork,
    loads: Array,
    values: Array,
    motion: Array,
    before: Array,
    x: Array,
    begin: float,
    h: float,
    known: bool,
) -> bool:
    """One step from `before` to x, both (3n + m + 2w,); `known`: the accelerations before are those of the first stage."""
    rule, f, n, m, slips = w.rule, w.f, len(w.q), len(w.at.phi), len(w.slips)
    s, last, lead = len(rule.b), len(loads) - 1, len(motion) - 1
    for i in range(s):
        for j in range(n):
            position, speed = 0.0, 0.0
            for k in range(i):
                if rule.A[i, k] != 0.0:
                    position += rule.A[i, k] * w.v[k, j]
                    speed += rule.A[i, k] * w.a[k, j]
            w.q[j] = before[j] + h * position
            w.v[i, j] = before[n + j] + h * speed
        for j in range(slips):
            slip = 0.0
            for k in range(i):
                slip += rule.A[i, k] * w.slipped[k, j]
            w.slips[j] = before[3 * n + m + j] + h * slip
        if i == 0 and known:
            for j in range(n):
                w.a[0, j] = before[2 * n + j]
        else:
            led = motion[min(i, lead)]
            if not _act(w, loads[min(i, last)], values[min(i, last)], begin + rule.c[i] * h, w.q, w.v[i], w.slips):
                return False
            constrain(w.t, w.at, led, w.q)
            if not (factorised(w.e, f, w.at.J) and _accelerated(w, led, w.q, w.v[i], w.slips, w.closing)):
                return False
            for j in range(n):
                w.a[i, j] = f.x[j]
        for j in range(slips):
            w.slipped[i, j] = slip_rate(w.wheels, j)
    q, qd, qdd, lam, slid = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 3 * n + m], x[3 * n + m :]
    for j in range(n):
        position, speed = 0.0, 0.0
        for k in range(s):
            position += rule.b[k] * w.v[k, j]
            speed += rule.b[k] * w.a[k, j]
        q[j] = before[j] + h * position
        qd[j] = before[n + j] + h * speed
    for j in range(slips):
        slip = 0.0
        for k in range(s):
            slip += rule.b[k] * w.slipped[k, j]
        slid[j] = before[3 * n + m + j] + h * slip
    if not _onto(w, motion[lead], size_of(before[:n]), q, qd, lam):
        return False
    if not (
        _act(w, loads[last], values[last], begin + h, q, qd, slid) and _accelerated(w, motion[lead], q, qd, slid, 0.0)
    ):
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
    motion: Array,
    start: Array,
    begins: Array,
    steps: Array,
    alpha: float,
    out: Array,
) -> int:
    """Steps of lengths `steps` (K,) from `start` (3n + m + 2w,): q, q̇, q̈, λ and slips after each, in the rows of `out`.

    `address` is that of a bound :class:`ExplicitWork`. `loads` (K or 1, stages + 1 or 1, n) holds all constant generalised forces, `values`
    (K or 1, stages + 1 or 1, a) the factors of the forces that are linear in q, `motion` (K or 1, stages + 1 or 1, 3, p) that of prescribed
    coordinates; steps begin at the times `begins`. The number of steps made: fewer than K where one fails.
    """
    w = opened(address, ExplicitWork)
    set_tangent(w.e, w.f, w.t.mass, alpha)
    before, many, leads = start, len(loads) - 1, len(motion) - 1
    for k in range(len(steps)):
        now, past = min(k, many), min(max(k - 1, 0), many)
        known = k > 0 and _same(loads[now, 0], loads[past, -1]) and _same(values[now, 0], values[past, -1])
        if known and leads > 0:
            known = _same(motion[k, 0, 2], motion[k - 1, -1, 2])
        led = motion[min(k, leads)]
        if not _step(w, loads[now], values[now], led, before, out[k], begins[k], steps[k], known):
            return k
        before = out[k]
    return len(steps)


@kept
def instant_kernel(
    address: Numbers,
    loads: Array,
    values: Array,
    motion: Array,
    times: Array,
    alpha: float,
    mends: bool,
    closing: float,
    states: Array,
    out: Array,
) -> int:
    """Accelerations and rates of slips (N, n + 2w) at states (N, 2n + 2w), which are brought onto the constraints first where it `mends`.

    `loads` (N or 1, n), `values` (N or 1, a) and `motion` (N or 1, 3, p) as those of :func:`explicit_kernel`. The number of instants done.
    """
    w = opened(address, ExplicitWork)
    set_tangent(w.e, w.f, w.t.mass, alpha)
    n, lam = len(w.q), np.empty(len(w.target))
    for k in range(len(states)):
        q, qd, slips = states[k, :n], states[k, n : 2 * n], states[k, 2 * n :]
        load, led, now = loads[min(k, len(loads) - 1)], motion[min(k, len(motion) - 1)], min(k, len(values) - 1)
        if mends and not _onto(w, led, size_of(q), q, qd, lam):
            return k
        if not _act(w, load, values[now], times[k], q, qd, slips):
            return k
        if not mends:
            constrain(w.t, w.at, led, q)
            if not factorised(w.e, w.f, w.at.J):
                return k
        if not _accelerated(w, led, q, qd, slips, closing):
            return k
        for j in range(n):
            out[k, j] = w.f.x[j]
        for j in range(len(slips)):
            out[k, n + j] = slip_rate(w.wheels, j)
    return len(states)


class ExplicitRun:
    """Explicit steps and accelerations of a mechanism for one caller; `room` is what compiled code works in.

    `closing`: rad/s, with which openings die out at the stages of a step. `road`: a packed one, on which tyres roll. `call`: (1,) the
    address of a function of Python, or 0.
    """

    def __init__(
        self,
        system: NaturalSystem,
        rule: str,
        how: Stabilisation,
        closing: float = 0.0,
        road: Array | None = None,
        call: Numbers | None = None,
    ) -> None:
        self.system, self.alpha = system, how.alpha(system)
        self._wheels = WheelRoom(system.wheels, road)  # which keeps the code of tyres for as long as it is called
        called = np.zeros(1, dtype=np.int64) if call is None else call
        self.room = work_of(system, tableau(rule), self._wheels.wheels, called, closing)
        self._bound = Bound(self.room)

    def steps(self, start: Array, begin: float, steps: Array, values: Array, motion: Array | None = None) -> Array:
        """q, q̇, q̈, λ and slips after each of the `steps` (K,), as rows (K, 3n + m + 2w).

        `values` (K or 1, stages + 1 or 1, loads) and `motion` (K or 1, stages + 1 or 1, 3, p) at the stages and at the end of each step.
        """
        begins = begin + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
        out = np.empty((len(steps), len(start)))
        loads, factors = self.system.forces.constants(values)
        led = self.system.constraints.motion[None, None] if motion is None else motion
        led = np.ascontiguousarray(led)
        made = explicit_kernel(self._bound.address, loads, factors, led, start, begins, steps, self.alpha, out)
        if made < len(steps):
            raise _too_long(self.system, float(begins[made] + steps[made]), float(steps[made]))
        return out

    def accelerations(
        self, times: Array, states: Array, values: Array, motion: Array, *, mends: bool = False, closing: float = 0.0
    ) -> tuple[int, Array]:
        """The number of states (N, 2n + 2w) that have them, and accelerations and rates of slips (N, n + 2w).

        `values` (N or 1, loads), `motion` (N or 1, 3, p). States are brought onto the constraints first, in place, where it `mends`.
        """
        out = np.full((len(states), states.shape[1] - self.system.n), np.nan)
        loads, factors = self.system.forces.constants(values)
        made = instant_kernel(
            self._bound.address, loads, factors, motion, times, self.alpha, mends, closing, states, out
        )
        return made, out

    def refuse(self) -> None:
        """Refuse the last state that forces were computed at where it is none of a machine, with its time and coordinate."""
        system, names = self.system, [*2 * self.system.coordinates]
        names += system.wheels.states if len(self.room.slips) else ()
        check_size(float(self.room.time[0]), self.room.now, slice(0, system.n), system.mechanism.name, names)


def explicit_steps(
    system: NaturalSystem, state: NaturalState, steps: Array, values: Array, rule: str, how: Stabilisation
) -> Array:
    """q, q̇, q̈ and λ after each of the `steps` (K,), as rows (K, 3n + m), in one call of machine code.

    `values` (K or 1, stages + 1, loads) are those at the stages and at the end of each step, or (1, 1, loads) those of all.
    """
    start = np.concatenate([state.q, state.qd, state.qdd, state.multipliers])
    return ExplicitRun(system, rule, how).steps(start, state.t, steps, values)


def _too_long(system: NaturalSystem, t: float, h: float) -> SimulationError:
    return SimulationError(
        f"the step that ends at {t:.6g} s is too long: it leaves the constraints too far behind.",
        where=system.mechanism.name,
        expected=f"corrections below {STRAY:g} of the mechanism's size, at most {CORRECTIONS}",
        found=f"a step of {h:.3g} s",
        hint="Try a smaller step; the index3 formulation for stiff springs; or look for a pose where the mechanism locks.",
    )
