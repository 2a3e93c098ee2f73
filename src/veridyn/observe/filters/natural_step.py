"""The filter step of a mechanism in natural coordinates as machine code, for one step or many: predict, expect, correct, retract.

The equations are those of :class:`~veridyn.mechanics.natural.steps.model.NaturalModel`, which stays the reference; a state is
x = (q, q̇, u, b, number of its set of independent coordinates). Everything a step needs stands in one record per set; the sets share all but
the mechanism over them, so that steps go on in another set as soon as the reference has changed to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Cube, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.natural.channels import Readout
from veridyn.mechanics.natural.equations.tangent import Found, Model, Room, close, found_of, room_of
from veridyn.mechanics.natural.equations.terms import turned
from veridyn.mechanics.natural.steps.minimal import advance
from veridyn.mechanics.natural.steps.model import Charts
from veridyn.observe.filters.compiled_step import (
    REFERENCE,
    STRAINED,
    FilterRecord,
    SampleRows,
    add_bias,
    add_sub_step,
    as_rows,
    begin_step,
    corrected,
    ended,
    go_on,
    sub_steps,
    take,
)
from veridyn.observe.filters.correction import DONE
from veridyn.observe.filters.covariance import spread
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.machine import MachineSystem
from veridyn.observe.result import Belief


class BilinearRows(NamedTuple):
    """Forms yᵀ G v of many rows, entry by entry: row after row, `start` (r + 1,), the places in y and v, and the numbers."""

    start: Numbers
    left: Numbers
    right: Numbers
    value: Vector


class PointSensors(NamedTuple):
    """What sensors read but for their bias: rows a·y + yᵀ G q̇ + yᵀ D q̈ with y = (q, 1); a heading is the angle of its row and of the row
    `other`, −1 for all else. The last two are room."""

    a: BilinearRows
    G: BilinearRows
    D: BilinearRows
    other: Numbers  # (m,)
    rows: Vector  # (r,)
    by_z: Matrix  # (r, 2f + k)


def point_sensors(table: Readout, every: int) -> PointSensors:
    """The sensors of a table for machine code, whose derivatives are by so many states."""
    parts = (_bilinear(table.a[:, :, None]), _bilinear(table.G), _bilinear(table.D))
    return PointSensors(*parts, table.other.astype(np.int64), np.zeros(len(table.a)), np.zeros((len(table.a), every)))


def _bilinear(table: Array) -> BilinearRows:
    """The numbers of forms (r, n + 1, n) that are not zero."""
    row, left, right = np.nonzero(table)
    start = np.searchsorted(row, np.arange(len(table) + 1))
    return BilinearRows(
        start.astype(np.int64),
        left.astype(np.int64),
        right.astype(np.int64),
        np.ascontiguousarray(table[row, left, right]),
    )


@core
def expect_points(r: PointSensors, g: FilterRecord, x: Array, qdd: Array, R: Array, qd_z: Array, qdd_x: Array) -> None:
    """y and H of the sensors in the state x = (q, q̇, …), from ∂q/∂z, ∂q̇/∂z and ∂q̈/∂(z, ż, u)."""
    p, n, f, every = g.found, len(qdd), R.shape[1], r.by_z.shape[1]
    for j in range(len(r.rows)):
        for c in range(every):
            r.by_z[j, c] = 0.0
        total = 0.0
        for e in range(r.a.start[j], r.a.start[j + 1]):
            i, value = r.a.left[e], r.a.value[e]
            total += value * (x[i] if i < n else 1.0)
            if i < n:
                for c in range(f):
                    r.by_z[j, c] += value * R[i, c]
        for e in range(r.G.start[j], r.G.start[j + 1]):
            i, l, value = r.G.left[e], r.G.right[e], r.G.value[e]
            y = x[i] if i < n else 1.0
            total += value * y * x[n + l]
            for c in range(f):
                r.by_z[j, c] += value * y * qd_z[l, c]
                r.by_z[j, f + c] += value * y * R[l, c]
            if i < n:
                for c in range(f):
                    r.by_z[j, c] += value * x[n + l] * R[i, c]
        for e in range(r.D.start[j], r.D.start[j + 1]):
            i, l, value = r.D.left[e], r.D.right[e], r.D.value[e]
            y = x[i] if i < n else 1.0
            total += value * y * qdd[l]
            for c in range(every):
                r.by_z[j, c] += value * y * qdd_x[l, c]
            if i < n:
                for c in range(f):
                    r.by_z[j, c] += value * qdd[l] * R[i, c]
        r.rows[j] = total
    for j in range(len(p.y)):
        other, reading = r.other[j], r.rows[j]
        for c in range(every):
            p.H[j, c] = r.by_z[j, c]
        if other >= 0:
            along, across = r.rows[j], r.rows[other]
            square = max(along * along + across * across, 1e-18)
            reading = np.arctan2(across, along)
            for c in range(every):
                p.H[j, c] = (along * r.by_z[other, c] - across * r.by_z[j, c]) / square
        add_bias(g, j, reading, x[2 * n + every - 2 * f :], every)  # pyright: ignore[reportArgumentType]


class Loads(NamedTuple):
    """Generalised forces of the loads, weight + constant · values, and of those that turn with their body, linear in q."""

    weight: Vector  # (n,)
    constant: Matrix  # (n, values)
    active: Numbers
    turnings: Cube  # (active, n, n + 1)


class NaturalWork(NamedTuple):
    """Room for one step; `found` is the instant of the predicted state."""

    room: Room
    found: Found
    load: Vector  # (n,)
    values: Vector  # of the loads
    turning: Matrix  # (n or 0, n + 1)
    aim: Vector  # (f,)
    speed: Vector
    slopes_z: Matrix  # (f, 2f + k): of z̈
    push: Matrix  # (f, k)


class NaturalFilter(NamedTuple):
    """A filter on one mechanism over one set of independent coordinates."""

    filter: FilterRecord  # what acts: values of the loads
    model: Model
    density: Vector  # (states,) of positions, white accelerations, forces, biases
    weights: Matrix  # (n, f): R times these is the strain of the set
    strained: float  # from which strain on other sets are looked at
    sensors: PointSensors
    loads: Loads
    work: NaturalWork
    begun: Numbers  # (2,) how the last step ended, and sub-steps that it has done where it is to go on


@kept
def natural_steps(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """Steps from the state of the record to one sample after the other, as far as it goes: how many were done; `begun` says how it ended.

    After `STRAINED` the state after the sub-steps so far is in `work.found`; called again, it goes on from there in the same set.
    """
    s, samples = opened(address, NaturalFilter), opened(given, SampleRows)
    for k in range(len(samples.values)):
        take(s.filter, samples, k)
        s.begun[0] = _step(s, samples.t[k + 1] - samples.t[k], samples.rows[k])
        if s.begun[0] != DONE:
            return k
        go_on(s.filter)
    return len(samples.values)


@kept
def natural_changed(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """The predicted state changed by the correction dx that the record has, into the state after it; `given` is not read."""
    s = opened(address, NaturalFilter)
    p = s.filter.found
    return DONE if _retract(s, p.x, s.filter.corrected.dx, p.after, len(p.x) == 0) else REFERENCE  # never known


@core
def _step(s: NaturalFilter, dt: float, out: Array) -> int:
    f, p = s.filter, s.filter.found
    begin, s.begun[1] = s.begun[1], 0
    code = _move(s, dt, begin)
    if code != DONE:
        return code
    at = s.work.found
    expect_points(s.sensors, f, p.x, at.qdd, at.R, at.qd_z, at.qdd_x)
    spread(f.P, p.F, p.Q, dt, p.product, p.G, p.P)
    if not corrected(f):
        return REFERENCE
    return ended(f, f.gate.used[0] == 0 or _retract(s, p.x, f.corrected.dx, p.after, dt > 0.0), out)


@core
def _move(s: NaturalFilter, dt: float, begin: int) -> int:
    """The state after dt seconds with F and Q gathered over the sub-steps, and the instant at which the sensors read it."""
    g, p, w, count = s.filter, s.filter.found, s.work, sub_steps(s.filter, dt)
    if begin == 0:
        begin_step(g, count >= 0)  # always, but a literal True would make the compiler work twice
    again = count == 0  # whether the instant after the last sub-step is not the one the sensors read
    for i in range(len(g.now)):
        again = again or g.before[i] != g.now[i]
    for k in range(begin, count + 1 if again else count):
        reading = k == count
        h = 0.0 if reading else dt / count
        if not _set_loads(s, g.now if reading else g.before, p.x):
            return REFERENCE
        _set_start(s, p.x)
        derivative = h >= 0.0  # always
        if advance(s.model, w.room, w.load, w.turning, w.aim, w.speed, h, derivative, w.found) != 0:
            return REFERENCE
        if reading:
            break
        for i in range(len(w.load)):
            p.x[i], p.x[len(w.load) + i] = w.found.q[i], w.found.qd[i]
        _gather(s, h, k == 0)
        if _strain(s) > s.strained:
            s.begun[1] = k + 1
            return STRAINED
    return DONE


@core
def _set_loads(s: NaturalFilter, acting: Array, x: Array) -> bool:
    """The forces that act on the mechanism in the state x; False where a load is not finite."""
    l, w, B, n = s.loads, s.work, s.model.B, len(s.work.load)
    for i in range(len(acting)):
        if not np.isfinite(acting[i]):
            return False
        w.values[i] = acting[i]
    for i in range(n):
        total = 0.0
        for j in range(len(w.values)):
            total += l.constant[i, j] * w.values[j]
        total += l.weight[i]
        forces = 0.0
        for j in range(B.shape[1]):
            forces += x[2 * n + j] * B[i, j]
        w.load[i] = total + forces
    if len(w.turning):
        for i in range(len(l.active)):
            w.values[i] = w.values[l.active[i]]  # active places grow, so none is overwritten before it is read
        turned(l.turnings, w.values, w.turning)
    return True


@core
def _set_start(s: NaturalFilter, x: Array) -> None:
    """Pose, coordinates and rates of the state x as the kernels of the mechanism take them."""
    w, z, n = s.work, s.model.z, len(s.work.load)
    for i in range(n):
        w.found.q[i] = x[i]
    for c in range(len(z)):
        w.aim[c], w.speed[c] = x[z[c]], x[n + z[c]]


@core
def _strain(s: NaturalFilter) -> float:
    strain, R = 0.0, s.work.found.R
    for i in range(R.shape[0]):
        for c in range(R.shape[1]):
            strain = max(strain, abs(R[i, c] * s.weights[i, c]))
    return strain


@core
def _gather(s: NaturalFilter, h: float, first: bool) -> None:
    """F and Q with those of a sub-step of h seconds."""
    w, z = s.work, s.model.z
    f, k = len(z), s.model.B.shape[1]
    for c in range(f):
        for j in range(2 * f + k):
            w.slopes_z[c, j] = w.found.qdd_x[z[c], j]
        for j in range(k):
            w.push[c, j] = w.found.F[f + c, 2 * f + j] / h  # (Rᵀ M R)⁻¹ of the forces, over the step
    add_sub_step(s.filter, s.density, w.found.F, w.slopes_z, w.push, h, first)


@core
def _retract(s: NaturalFilter, x: Array, d: Array, out: Array, known: bool) -> bool:
    """x ⊞ d by the position and the velocity problem; `known`: Φ_q, its factors and R are those of x already."""
    w, z, n, f = s.work, s.model.z, len(s.work.load), len(s.model.z)
    for i in range(n):
        w.found.q[i] = x[i]
    for c in range(f):
        w.aim[c], w.speed[c] = x[z[c]] + d[c], x[n + z[c]] + d[f + c]
    if not close(s.model, w.room, w.found.q, w.aim, w.found.R, known):
        return False
    for i in range(n):
        total = 0.0
        for c in range(f):
            total += w.found.R[i, c] * w.speed[c]
        out[i], out[n + i] = w.found.q[i], total
    for i in range(len(d) - 2 * f):
        out[2 * n + i] = x[2 * n + i] + d[2 * f + i]
    out[len(out) - 1] = x[len(x) - 1]
    return True


class NaturalStep(MachineStep):
    """Filter steps of a mechanism. `limit`: what ν²/s of a reading that is taken stays below."""

    changed = staticmethod(natural_changed)

    def __init__(self, system: MachineSystem, limit: float) -> None:
        model: Any = system.model
        charts: Charts = model.charts
        self._system, self._charts = system, charts
        self._one_set = model.one_set
        self._sets: dict[int, Bound] = {}
        first = charts.first.system
        n, f, k, forces = first.n, system.f, system.extra, first.forces
        super().__init__(natural_steps, system, limit, lambda loads: loads.values)
        self._parts = NaturalFilter(
            filter=self._filter,
            model=charts.first.bound.record,
            density=np.zeros(0),
            weights=np.zeros((0, 0)),
            strained=np.inf,
            sensors=point_sensors(cast(Readout, system.table), 2 * f + k),  # mechanisms have no other
            loads=Loads(
                weight=as_rows(forces.weight[:-1]),
                constant=as_rows(forces.constant),
                active=forces.active.astype(np.int64),
                turnings=as_rows(forces.turning[forces.active]),
            ),
            work=NaturalWork(
                room=room_of(first.tables, n - f, f, k),
                found=found_of(n, n - f, f, k),
                load=np.zeros(n),
                values=np.zeros(len(forces.values)),
                turning=np.zeros((n if len(forces.active) else 0, n + 1)),
                aim=np.zeros(f),
                speed=np.zeros(f),
                slopes_z=np.zeros((f, 2 * f + k)),
                push=np.zeros((f, k)),
            ),
            begun=np.zeros(2, dtype=np.int64),
        )

    def _done(self, belief: Belief, given: Bound) -> int:
        """As far as it goes in one set of coordinates; a single step that strains it goes on where no other is better."""
        number, begun = int(belief.x[-1]), self._parts.begun
        begun[:] = 0
        done = super()._done(belief, given)
        while not done and given is self._given_one and begun[0] == STRAINED:
            at = self._parts.work.found
            if self._charts.better(number, at.q, at.R) is not None:
                return 0
            done = super()._done(belief, given)
        return done

    def _address(self, belief: Belief) -> NDArray[np.int64]:
        number, system = int(belief.x[-1]), self._system
        if number not in self._sets:
            model, density = self._charts[number], system.density
            if number:
                density = np.concatenate(
                    [system.process_noise.coordinate_densities(model.names), density[2 * system.f :]]
                )
            strained = np.inf if self._one_set else self._charts.limits(number)[0]
            self._sets[number] = Bound(
                self._parts._replace(
                    model=model.bound.record,
                    density=as_rows(density),
                    weights=as_rows(self._charts.weights(number)),
                    strained=strained,
                )
            )
        return self._sets[number].address
