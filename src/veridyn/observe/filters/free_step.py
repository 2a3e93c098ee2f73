"""The filter step of a machine in natural coordinates over the freedoms of its base as machine code, for one step or many.

The equations are those of :class:`~veridyn.mechanics.natural.steps.free_model.FreeModel`, which stays the reference; a state is
x = (q, q̇, u, slips, b, 0). F of the exact error model is the trapezoidal rule on the derivatives at the start and the end of a step.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.linear import factor, solve
from veridyn.mechanics.natural.channels import Readout
from veridyn.mechanics.natural.equations.elimination import product
from veridyn.mechanics.natural.equations.terms import constrain, set_rates
from veridyn.mechanics.natural.equations.wheels import WheelRoom
from veridyn.mechanics.natural.steps.free_derivatives import bend_freedoms, differentiate
from veridyn.mechanics.natural.steps.free_kernel import (
    NEAR_RATIO,
    FreeRoom,
    FreeTables,
    accelerate,
    advance,
    close,
    free_room,
    free_tables,
    project,
    refactor,
    set_load,
)
from veridyn.mechanics.natural.steps.free_model import FreeModel
from veridyn.observe.filters.compiled_step import (
    REFERENCE,
    FilterRecord,
    SampleRows,
    add_sub_step,
    begin_step,
    corrected,
    derivatives_due,
    ended,
    go_on,
    sub_steps,
    take,
)
from veridyn.observe.filters.correction import DONE
from veridyn.observe.filters.covariance import EXACT, INTEGRATOR, spread
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.filters.natural_step import PointSensors, expect_points, point_sensors
from veridyn.observe.machine import MachineSystem


class FreeWork(NamedTuple):
    """What is found on the way. f freedoms, s slips, k forces and slips, p prescribed coordinates."""

    push: Matrix  # (f, k)
    step: Matrix  # (2f + s, 2f + k)
    before: Matrix  # (2f + s, 2f + s + forces): A and B where the step starts
    now: Matrix
    left: Matrix  # (2f + s, 2f + s)
    pivot: Numbers
    column: Vector
    led: Matrix  # (3, p)


class FreeFilter(NamedTuple):
    """A filter on one machine."""

    filter: FilterRecord  # what acts: values of the loads, then place, rate and acceleration of prescribed coordinates
    tables: FreeTables
    room: FreeRoom
    sensors: PointSensors
    work: FreeWork
    known: Numbers  # (2,) whether there are factors, and whether the state of the step before is closed, Φ_q in hand


@kept
def free_steps(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """Steps from the state of the record to one sample after the other, as far as it goes: how many were done."""
    s, samples = opened(address, FreeFilter), opened(given, SampleRows)
    for k in range(len(samples.values)):
        take(s.filter, samples, k)
        if _step(s, samples.t[k + 1] - samples.t[k], samples.rows[k]) != DONE:
            return k
        go_on(s.filter)
    return len(samples.values)


@core
def _step(s: FreeFilter, dt: float, out: Array) -> int:
    f = s.filter
    placed = s.known[1] == 1 and _stands(s)
    s.known[1] = 0
    if not _predict(s, dt, placed):
        s.known[0] = 0
        return REFERENCE
    w = s.room
    expect_points(s.sensors, f, f.found.x, w.qdd, w.R, w.qd_z, w.S)
    if not corrected(f):
        return REFERENCE
    code = ended(f, f.gate.used[0] == 0 or _retract(s), out)
    s.known[1] = 1 if code == DONE else 0
    return code


@core
def _stands(s: FreeFilter) -> bool:
    """Whether the state is the one that the step before left, closed where prescribed coordinates are now, with Φ_q in hand."""
    f, led, same = s.filter, s.work.led, True
    for i in range(2 * len(s.room.qdd)):
        same = same and f.x[i] == f.found.after[i]
    p = led.shape[1]
    at = len(f.before) - 3 * p
    for i in range(p):
        same = same and f.before[at + i] == led[0, i] and f.before[at + p + i] == led[1, i]
    return same


@core
def _led(s: FreeFilter, acting: Array, since: float) -> None:
    """Prescribed coordinates some time after they were given."""
    led, p = s.work.led, s.work.led.shape[1]
    at = len(acting) - 3 * p
    for i in range(p):
        q, qd, qdd = acting[at + i], acting[at + p + i], acting[at + 2 * p + i]
        led[0, i], led[1, i], led[2, i] = q + since * qd + 0.5 * since * since * qdd, qd + since * qdd, qdd


@core
def _predict(s: FreeFilter, dt: float, placed: bool) -> bool:
    """x and P after dt seconds, with F gathered over the sub-steps, and the instant at which the sensors read.

    `placed`: q and q̇ are closed where the step starts, and Φ_q is in hand.
    """
    g, t, w, p, own = s.filter, s.tables, s.room, s.filter.found, s.work
    n, f = len(w.qdd), w.R.shape[1]
    first = 2 * n + len(t.unknown)
    q, qd, u, slips = p.x[:n], p.x[n : 2 * n], p.x[2 * n : first], p.x[first : first + len(w.begun)]
    count = sub_steps(g, dt)
    h = dt / max(count, 1)
    due = derivatives_due(g, count, h)
    moved = due or g.refresh.steps[2] != count  # otherwise F and Q are those of the step before
    g.refresh.steps[2] = 0
    begin_step(g, moved)
    error_model = g.settings.error_model
    exact, moving = error_model != INTEGRATOR, count < 0  # never placed, without a literal
    for k in range(count):
        _led(s, g.before, k * h)
        starts = due and error_model == EXACT
        if not _instant(s, g.before, q, qd, u, slips, starts, starts, placed and k == 0):
            return False
        if starts:
            _linear(s, q, qd, own.before)
        _led(s, g.before, (k + 1) * h)
        if not advance(t, w, own.led, q, qd, slips, h):
            return False
        last = k == count - 1
        if due and (exact or not last) and not _instant(s, g.before, q, qd, u, slips, due, due, moving):
            return False
        if due and exact:
            _linear(s, q, qd, own.now)
            if not _step_derivative(s, h):
                return False
        if last and not _read_instant(s, q, qd, u, slips, due):
            return False
        if due:
            _keep_push(s)
        if moved:
            add_sub_step(g, g.density, own.step, w.slopes[:f], own.push, h, k == 0)
    g.refresh.steps[2] = count
    if count == 0 and not _read_instant(s, q, qd, u, slips, due):
        return False
    spread(g.P, p.F, p.Q, dt, p.product, p.G, p.P)
    return True


@core
def _read_instant(s: FreeFilter, q: Array, qd: Array, u: Array, slips: Array, due: bool) -> bool:
    """The instant that sensors read, under the inputs that act from now on, with factors of its pose."""
    _led(s, s.filter.now, 0.0)
    fresh = len(q) > 0  # always, but a literal True would make the compiler work twice
    return _instant(s, s.filter.now, q, qd, u, slips, fresh, due, not fresh)


@core
def _instant(
    s: FreeFilter, acting: Array, q: Array, qd: Array, u: Array, slips: Array, fresh: bool, derive: bool, placed: bool
) -> bool:
    """q and q̇ closed, and q̈ and λ there, under what acts; `fresh`: with factors of this pose, which derivatives need.

    `placed`: q and q̇ are closed already, and Φ_q is in hand.
    """
    t, w, led = s.tables, s.room, s.work.led
    if s.known[0] == 0:
        constrain(t.t, w.at, led, q)
        if not refactor(t, w):
            return False
        s.known[0] = 1
    if placed:
        if fresh and not refactor(t, w):
            return False
    else:
        if not close(t, w, led, q, NEAR_RATIO if fresh else 0.0):
            return False
        set_rates(t.t, led, w.target)
        if not project(t, w, qd):
            return False
    set_load(t, w, acting[: len(acting) - led.size], q, u)
    if not accelerate(t, w, led, q, qd, slips, 1 if derive else 0):
        return False
    return differentiate(t, w, q, qd, u) if derive else True


@core
def _keep_push(s: FreeFilter) -> None:
    """What forces and slips do to z̈, for noises."""
    w, p = s.room, s.work
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
    t, w, p = s.tables, s.room, s.work
    f, own, forces = w.R.shape[1], len(w.begun), len(t.unknown)
    size = 2 * f + own
    start = p.before if s.filter.settings.error_model == EXACT else p.now
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
def _retract(s: FreeFilter) -> bool:
    """x ⊞ dx: along R, then closed; forces, slips and biases are added. Prescribed coordinates stay where they are."""
    t, w, led, p, d = s.tables, s.room, s.work.led, s.filter.found, s.filter.corrected.dx
    n, f = len(w.qdd), w.R.shape[1]
    q, qd = p.after[:n], p.after[n : 2 * n]
    for i in range(n):
        q[i] += product(w.R[i], d)
        qd[i] += product(w.qd_z[i], d) + product(w.R[i], d[f:])
    for i in range(len(d) - 2 * f):
        p.after[2 * n + i] += d[2 * f + i]
    # Accelerations and multipliers in first order, from where the next step repeats them.
    for i in range(n + len(w.lam)):
        change = product(w.S[i], d)
        if i < n:
            w.qdd[i] += change
        else:
            w.lam[i - n] += change
    if not close(t, w, led, q, 0.0):
        return False
    set_rates(t.t, led, w.target)
    return project(t, w, qd)


class FreeStep(MachineStep):
    """Filter steps over freedoms. `limit`: what ν²/s of a reading that is taken stays below."""

    keeps_derivatives: ClassVar[bool] = True

    def __init__(self, system: MachineSystem, limit: float) -> None:
        model = cast(FreeModel, system.model)
        f, k, tables = system.f, system.extra, free_tables(model)
        super().__init__(free_steps, system, limit, lambda loads: np.concatenate([loads.values, loads.motion.ravel()]))
        self._wheels = WheelRoom(model.system.wheels)  # which keeps the code of tyres for as long as it is called
        size, forces, led = 2 * f + len(model.inner), len(model.unknown), len(model.prescribed)
        self._bound = Bound(
            FreeFilter(
                filter=self._filter,
                tables=tables,
                room=free_room(model, tables, self._wheels.wheels),
                sensors=point_sensors(cast(Readout, system.table), 2 * f + k),
                work=FreeWork(
                    push=np.zeros((f, k)),
                    step=np.zeros((size, 2 * f + k)),
                    before=np.zeros((size, size + forces)),
                    now=np.zeros((size, size + forces)),
                    left=np.zeros((size, size)),
                    pivot=np.zeros(size, dtype=np.int64),
                    column=np.zeros(size),
                    led=np.zeros((3, led)),
                ),
                known=np.zeros(2, dtype=np.int64),
            )
        )
