"""A whole filter step on a mechanism in natural coordinates as one call of machine code: predict, expect, correct, retract.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x ⊞ dx

The equations are those of :class:`~veridyn.mechanics.natural.steps.model.NaturalModel`, which stays the reference; a state is
x = (q, q̇, u, b, number of its set of independent coordinates). Where anything is not plain (a set that may have to change, a step that does
not settle, numbers that are not finite) the kernel says so by a code, and the reference does that step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Cube, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.natural.kernels.room import Found, Model, Room
from veridyn.mechanics.natural.kernels.tangent import close
from veridyn.mechanics.natural.kernels.terms import turned
from veridyn.mechanics.natural.steps.trapezoid import advance
from veridyn.observe.filters.kernels.correction import DOF, DONE, Corrected, correct_into, put_results, refuses
from veridyn.observe.filters.kernels.covariance import all_finite, gather, noise, spread, transition

# Beside DONE: another set of independent coordinates may do better; anything else that the reference must look at.
STRAINED, REFERENCE = 1, 2
ROUNDING = 1e-9  # of a number of sub-steps


class Sensors(NamedTuple):
    """What sensors read, h = a·y + yᵀ G q̇ + yᵀ D q̈ + bias, with y = (q, 1); noise R, and which bias states belong to which output."""

    a: Matrix  # (m, n + 1)
    G: Cube  # (m, n + 1, n)
    D: Cube
    bias: Vector  # (m,)
    selector: Matrix  # (m, p)
    wraps: Codes  # (m,) 1 where the reading is an angle
    R: Matrix
    moves: bool
    accelerates: bool


class Loads(NamedTuple):
    """Generalised forces of the loads, weight + constant · values, and of those that turn with their body, linear in q."""

    weight: Vector  # (n,)
    constant: Matrix  # (n, values)
    values: Vector  # as the model has them
    inputs: Numbers  # places of the values that come with the readings
    active: Numbers
    turnings: Cube  # (active, n, n + 1)


class NaturalSettings(NamedTuple):
    """How to filter: error model, longest step (s), gate (ν²/s, or infinity), and from which strain on other sets are looked at."""

    error_model: int
    longest: float
    limit: float
    strained: float
    linear: bool  # along the tangent at the state `about`


class Given(NamedTuple):
    """What changes from step to step, written before each call."""

    x: Vector
    P: Matrix
    before: Vector  # the inputs that act over the step
    inputs: Vector  # and those that act at its end
    values: Vector  # (m,) readings
    flags: Codes
    about: Vector  # the state of the tangent


class Predicted(NamedTuple):
    """What is found on the way. n states."""

    x: Vector
    P: Matrix
    F: Matrix
    Q: Matrix
    y: Vector  # (m,) expected
    H: Matrix
    residual: Vector
    after: Vector  # the corrected state


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
    G: Matrix  # (states, states)
    added: Matrix
    product: Matrix
    d: Vector  # (states,)
    slopes: Vector  # (n + 1,)
    by_qd: Vector  # (n,)
    by_qdd: Vector


class NaturalFilter(NamedTuple):
    """Everything of one filter on one mechanism over one set of independent coordinates."""

    model: Model
    density: Vector  # (states,) of positions, white accelerations, forces, biases
    weights: Matrix  # (n, f): R times these is the strain of the set
    sensors: Sensors
    loads: Loads
    settings: NaturalSettings
    given: Given
    found: Predicted
    corrected: Corrected
    work: NaturalWork
    out: Vector  # all results of a step in a row


@kept
def natural_step(address: NDArray[np.int64], dt: float, begin: int) -> int:
    """One filter step over dt seconds with what stands in `given`, the results into `out`; `DONE`, or a code.

    After `STRAINED` the state after the sub-steps so far is in `work.found`; calling again with `begin`, the number of them that
    stands in `out[0]`, goes on from there in the same set.
    """
    s = opened(address, NaturalFilter)
    return _step(s, dt, begin, s.out)


@kept
def natural_march(
    address: NDArray[np.int64],
    t: Array,
    values: Array,
    flags: NDArray[np.int8],
    inputs: Array,
    rows: Array,
) -> int:
    """Steps from x and P that are given, which stand at t[0], to t[1], t[2] and so on: how many were done, their results into `rows`.

    It ends where the reference must go on or another set of coordinates may be better, and before a step in which the gate refuses a
    reading.
    """
    s = opened(address, NaturalFilter)
    g, N, n = s.given, len(s.given.x), len(s.given.P)
    for k in range(1, len(t)):
        for i in range(len(g.inputs)):
            g.before[i], g.inputs[i] = inputs[k - 1, i], inputs[k, i]
        for j in range(len(g.values)):
            g.values[j], g.flags[j] = values[k, j], flags[k, j]
        if _step(s, t[k] - t[k - 1], 0, rows[k - 1]) != DONE or refuses(s.corrected):
            return k - 1
        for i in range(N):
            g.x[i] = s.found.after[i]
        for a in range(n):
            for b in range(n):
                g.P[a, b] = s.corrected.P[a, b]
    return len(t) - 1


@core
def _step(s: NaturalFilter, dt: float, begin: int, out: Array) -> int:
    g, p, c, linear = s.given, s.found, s.corrected, s.settings.linear
    code = _move(s, dt, begin)
    if code != DONE:
        return code
    _read(s, g.about if linear else p.x)
    if linear and not _follow_tangent(s, dt):
        return REFERENCE
    spread(g.P, p.F, p.Q, dt, s.work.product, s.work.G, p.P)
    for j in range(len(p.y)):
        e = g.values[j] - p.y[j]
        if s.sensors.wraps[j] != 0:
            e = (e + np.pi) % (2.0 * np.pi) - np.pi
        p.residual[j] = e
    if not all_finite(p.x, p.P, p.y, p.H):
        return REFERENCE
    if correct_into(p.P, p.H, s.sensors.R, p.residual, g.flags, s.settings.limit, c) != DONE:
        return REFERENCE
    for i in range(len(p.x)):
        p.after[i] = p.x[i]
    if c.statistics[DOF] > 0.0 and not _retract(s, p.x, c.dx, p.after, dt > 0.0 and not linear):
        return REFERENCE
    put_results(out, p.after, p.x, p.P, p.F, p.H, c)
    return DONE


@core
def _move(s: NaturalFilter, dt: float, begin: int) -> int:
    """The state after dt seconds with F and Q gathered over the sub-steps, and the instant at which the sensors read it."""
    g, p, w, size = s.given, s.found, s.work, len(s.found.P)
    start = g.about if s.settings.linear else g.x
    if begin == 0:
        for i in range(len(p.x)):
            p.x[i] = start[i]
        for a in range(size):
            for b in range(size):
                p.F[a, b] = 1.0 if a == b else 0.0
                p.Q[a, b] = 0.0
    count = max(1, int(np.ceil(dt / s.settings.longest - ROUNDING))) if dt > 0.0 else 0
    again = (
        count == 0 or s.settings.linear
    )  # whether the instant after the last sub-step is not the one the sensors read
    for i in range(len(s.loads.inputs)):
        again = again or g.before[i] != g.inputs[i]
    for k in range(begin, count + 1 if again else count):
        reading = k == count
        at, h = start if reading and s.settings.linear else p.x, 0.0 if reading else dt / count
        if not _set_loads(s, g.inputs if reading else g.before, at):
            return REFERENCE
        _set_start(s, at)
        derivative = h >= 0.0  # always, but a literal True would make the compiler work twice
        if advance(s.model, w.room, w.load, w.turning, w.aim, w.speed, h, derivative, w.found) != 0:
            return REFERENCE
        if reading:
            break
        for i in range(len(w.load)):
            p.x[i], p.x[len(w.load) + i] = w.found.q[i], w.found.qd[i]
        _gather(s, h, k == 0)
        if _strain(s) > s.settings.strained:
            s.out[0] = k + 1
            return STRAINED
    return DONE


@core
def _follow_tangent(s: NaturalFilter, dt: float) -> bool:
    """The predicted state and reading of a linear filter, F and H times how far the state is from that of the tangent."""
    g, p, w, size = s.given, s.found, s.work, len(s.found.P)
    if dt > 0.0:
        _difference(s, g.x, g.about, w.d)
        for a in range(size):
            total = 0.0
            for b in range(size):
                total += p.F[a, b] * w.d[b]
            w.product[0, a] = total
        if not _retract(s, p.x, w.product[0], p.x, not s.settings.linear):
            return False
    else:
        for i in range(len(p.x)):
            p.x[i] = g.x[i]
    _difference(s, p.x, g.about, w.d)
    for j in range(len(p.y)):
        for a in range(size):
            p.y[j] += p.H[j, a] * w.d[a]
    return True


@core
def _set_loads(s: NaturalFilter, inputs: Array, x: Array) -> bool:
    """The forces that act on the mechanism in the state x; False where an input is not finite."""
    l, w, B, n = s.loads, s.work, s.model.B, len(s.work.load)
    for i in range(len(l.values)):
        w.values[i] = l.values[i]
    for i in range(len(l.inputs)):
        if not np.isfinite(inputs[i]):
            return False
        w.values[l.inputs[i]] = inputs[i]
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
    p, w, z = s.found, s.work, s.model.z
    f, k = len(z), s.model.B.shape[1]
    for c in range(f):
        for j in range(2 * f + k):
            w.slopes_z[c, j] = w.found.qdd_x[z[c], j]
        for j in range(k):
            w.push[c, j] = w.found.F[f + c, 2 * f + j] / h  # (Rᵀ M R)⁻¹ of the forces, over the step
    transition(s.settings.error_model, w.found.F, w.slopes_z, w.push, h, w.G)
    noise(s.density, w.push, h, w.added)
    gather(w.G, w.added, first, p.F, p.Q, w.product)


@core
def _read(s: NaturalFilter, x: Array) -> None:
    """y and H of the sensors in the state x, at the instant in hand."""
    r, p, w, at = s.sensors, s.found, s.work, s.work.found
    n, f, k = len(w.load), len(s.model.z), s.model.B.shape[1]
    for j in range(len(p.y)):
        for i in range(n):
            w.by_qd[i], w.by_qdd[i] = 0.0, 0.0
        total = 0.0
        for i in range(n + 1):
            yi = x[i] if i < n else 1.0
            slope = r.a[j, i]
            if r.moves:
                for l in range(n):
                    slope += r.G[j, i, l] * x[n + l]
                    w.by_qd[l] += r.G[j, i, l] * yi
            if r.accelerates:
                for l in range(n):
                    slope += r.D[j, i, l] * at.qdd[l]
                    w.by_qdd[l] += r.D[j, i, l] * yi
            w.slopes[i] = slope
            total += slope * yi
        total += r.bias[j]
        for b in range(r.selector.shape[1]):
            total += r.selector[j, b] * x[2 * n + k + b]
            p.H[j, 2 * f + k + b] = r.selector[j, b]
        p.y[j] = total
        for c in range(f):
            by_z, by_zd = 0.0, 0.0
            for i in range(n):
                by_z += w.slopes[i] * at.R[i, c] + w.by_qd[i] * at.qd_z[i, c]
                by_zd += w.by_qd[i] * at.R[i, c]
            p.H[j, c], p.H[j, f + c] = by_z, by_zd
        for c in range(2 * f + k):
            by_x = 0.0
            if r.accelerates:
                for i in range(n):
                    by_x += w.by_qdd[i] * at.qdd_x[i, c]
            p.H[j, c] = by_x + (p.H[j, c] if c < 2 * f else 0.0)


@core
def _difference(s: NaturalFilter, a: Array, b: Array, out: Array) -> None:
    """The way from the state b to the state a, in the coordinates of the set."""
    z, n, f = s.model.z, len(s.work.load), len(s.model.z)
    for c in range(f):
        out[c] = a[z[c]] - b[z[c]]
        out[f + c] = a[n + z[c]] - b[n + z[c]]
    for i in range(len(out) - 2 * f):
        out[2 * f + i] = a[2 * n + i] - b[2 * n + i]


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
