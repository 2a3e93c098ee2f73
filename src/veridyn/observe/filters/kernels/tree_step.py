"""A whole filter step on a tree as one call of machine code: predict, expect, correct, retract.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x ⊞ dx

The equations are those of :class:`~veridyn.mechanics.tree.steps.model.TreeModel`, the reference; a state is x = (q, q̇, u, b, 0). Motion
and readings are kernels of the tree's own expressions, called by their addresses. Where a step does not settle, or numbers are not finite,
the kernel says so by a code, and the reference does that step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.steps import record as tree
from veridyn.mechanics.tree.steps.motion_kernel import own_row
from veridyn.mechanics.tree.steps.record import call_kernel, call_step
from veridyn.mechanics.tree.steps.states import put, set_unknown
from veridyn.observe.filters.kernels.correction import DONE, Corrected, project, put_results
from veridyn.observe.filters.kernels.covariance import INTEGRATOR, all_finite, gather, noise, spread, transition
from veridyn.observe.filters.kernels.robust_gate import Gated, correct_through, rescale, restore

REFERENCE = 2  # the reference must look at this step
ROUNDING = 1e-9  # of a number of sub-steps


class ActingLoads(NamedTuple):
    """What acts: generalised forces (nv,), and what kernels read from outside, with prescribed coordinates behind it."""

    extra: Vector
    outside: Vector


class TreeSettings(NamedTuple):
    """How to filter: error model, longest step (s), gate (ν²/s, or infinity), and whether readings depend on accelerations or inputs."""

    error_model: int
    longest: float
    limit: float
    accelerates: bool


class TreeClock(NamedTuple):
    """When derivatives are computed anew: steps so far, steps from one time to the next, and the sub-steps that F and Q are of (0: none).

    `of`: the step (s) that the derivatives are of.
    """

    steps: Numbers  # (3,)
    of: Vector  # (1,)


class TreePrediction(NamedTuple):
    """What is found on the way, and room for it. n states, m readings."""

    x: Vector
    P: Matrix
    F: Matrix
    Q: Matrix
    y: Vector
    H: Matrix
    residual: Vector
    after: Vector
    push: Matrix  # (f, k)
    slopes: Matrix  # (f, 2f + k)
    step: Matrix  # (2f + s, 2f + k)
    G: Matrix
    added: Matrix
    product: Matrix


class Held(NamedTuple):
    """Bounds of estimated parameters, as :class:`~veridyn.observe.bounds.ParameterBounds` has them."""

    places: Numbers
    changes: Numbers
    lower: Vector
    upper: Vector


class TreeFilter(NamedTuple):
    """Everything of one filter on one tree."""

    I: Numbers
    W: Vector
    turns: Vector  # (n,) 1 for a coordinate that turns, 0 for one that slides
    readings: Numbers  # addresses of the kernel of the sensors
    slopes: Matrix  # (m, 1 + 3 nv) that it writes: the reading, and its derivatives by q, q̇ and q̈
    density: Vector  # (states,)
    bias: Vector  # (m,)
    selector: Matrix  # (m, biases)
    wraps: Codes
    sensors: Matrix  # R of the sensors' own noise
    R: Matrix  # that of the readings in hand
    settings: TreeSettings
    x: Vector  # given: state, covariance, what acts over the step and from its end on, readings
    P: Matrix
    before: ActingLoads
    now: ActingLoads
    values: Vector
    flags: Codes
    found: TreePrediction
    corrected: Corrected
    gate: Gated
    bounds: Held
    clock: TreeClock
    out: Vector


@kept
def tree_step(address: NDArray[np.int64], dt: float) -> int:
    """One filter step over dt seconds with what stands in the record, the results into `out`; `DONE`, or `REFERENCE`."""
    s = opened(address, TreeFilter)
    return _step(s, dt, s.out)


@kept
def tree_march(
    address: NDArray[np.int64],
    t: Array,
    values: Array,
    flags: NDArray[np.int8],
    sigma: Array,
    loads: Array,
    rows: Array,
) -> int:
    """Steps from x and P of the record, which stand at t[0], to t[1], t[2] and so on: how many were done, their results into `rows`.

    `sigma`: deviations of the readings, NaN for the sensor's own; no rows where all are. `loads`: what acts from each time on, `extra` and
    `outside` side by side. It ends where the reference must go on.
    """
    s = opened(address, TreeFilter)
    N, n, split = len(s.x), len(s.P), len(s.before.extra)
    for k in range(1, len(t)):
        for i in range(split):
            s.before.extra[i], s.now.extra[i] = loads[k - 1, i], loads[k, i]
        for i in range(len(s.before.outside)):
            s.before.outside[i], s.now.outside[i] = loads[k - 1, split + i], loads[k, split + i]
        for j in range(len(s.values)):
            s.values[j], s.flags[j] = values[k, j], flags[k, j]
        if len(sigma):
            set_noise(s, sigma[k])
        if _step(s, t[k] - t[k - 1], rows[k - 1]) != DONE:
            return k - 1
        for i in range(N):
            s.x[i] = s.found.after[i]
        for a in range(n):
            for b in range(n):
                s.P[a, b] = s.corrected.P[a, b]
    return len(t) - 1


@core
def set_noise(s: TreeFilter, sigma: Array) -> None:
    """:func:`~veridyn.observe.filters.update.noise_of_readings` into R."""
    m = len(sigma)
    for i in range(m):
        for j in range(m):
            s.R[i, j] = s.sensors[i, j]
    for j in range(m):
        if np.isnan(sigma[j]):
            continue
        rescale(s.R, j, sigma[j] / np.sqrt(s.sensors[j, j]), sigma[j] * sigma[j])


@core
def _step(s: TreeFilter, dt: float, out: Array) -> int:
    p, c, g = s.found, s.corrected, s.gate
    for i in range(len(s.turns)):
        if abs(s.x[s.I[tree.COUNT_Q] - s.I[tree.COUNT] + i]) * s.turns[i] > LARGEST_ANGLE_RAD:
            return REFERENCE  # which refuses it by name
    if not _predict(s, dt):
        return REFERENCE
    _expect(s)
    for j in range(len(p.y)):
        e = s.values[j] - p.y[j]
        if s.wraps[j] != 0:
            e = (e + np.pi) % (2.0 * np.pi) - np.pi
        p.residual[j] = e
    if not all_finite(p.x, p.P, p.y, p.H):
        return REFERENCE
    code = correct_through(p.P, p.H, s.R, p.residual, s.flags, s.values, s.settings.limit, c, g)
    if code == DONE and g.used[0] > 0 and len(s.bounds.places) > 0:
        project(p.x, c, s.bounds.places, s.bounds.changes, s.bounds.lower, s.bounds.upper)
    for i in range(len(p.x)):
        p.after[i] = p.x[i]
    if code != DONE or (g.used[0] > 0 and not _retract(s)):
        restore(g)
        return REFERENCE
    put_results(out, p.after, p.x, p.P, p.F, p.H, c)
    return DONE


@core
def _act(s: TreeFilter, acting: ActingLoads, x: Array) -> None:
    """Put what acts, and the unknown forces and parameters of the state x, where the kernels of the tree read them."""
    I, W, at = s.I, s.W, s.I[tree.COUNT_Q] + s.I[tree.COUNT_V]
    put(I, W, tree.EXTRA, acting.extra)
    count = len(acting.outside) - 3 * I[tree.HELD]
    for i in range(len(acting.outside)):
        if i < count:
            W[I[tree.OUTSIDE] + i] = acting.outside[i]
        else:
            W[I[tree.GIVEN] + i - count] = acting.outside[i]
    for i in range(I[tree.FORCES] + I[tree.VARYING]):
        W[I[tree.UNKNOWN] + i] = x[at + i]
    set_unknown(I, W)


@core
def _begin(s: TreeFilter, x: Array, since: float) -> None:
    """The state x as the start of a step."""
    I, W, nq = s.I, s.W, s.I[tree.COUNT_Q]
    for i in range(nq):
        W[I[tree.START] + i] = x[i]
        W[I[tree.X] + i] = x[i]
    for c in range(I[tree.FREEDOM]):
        W[I[tree.DELTA] + c] = 0.0
        W[I[tree.RATE] + c] = x[nq + own_row(I, c)]
    W[I[tree.CLOCK]] = since


@core
def _predict(s: TreeFilter, dt: float) -> bool:
    """x and P after dt seconds, with F gathered over the sub-steps, and the instant at which the sensors read."""
    I, W, p = s.I, s.W, s.found
    nq, nv, f, size = I[tree.COUNT_Q], I[tree.COUNT_V], I[tree.FREEDOM], len(s.P)
    every, ns = 2 * f + I[tree.FORCES] + I[tree.VARYING], I[tree.STATES]
    for i in range(len(p.x)):
        p.x[i] = s.x[i]
    count = max(1, int(np.ceil(dt / s.settings.longest - ROUNDING))) if dt > 0.0 else 0
    steps, h = s.clock.steps, dt / max(count, 1)
    due = count == 0 or steps[0] % steps[1] == 0 or abs(s.clock.of[0] - h) > ROUNDING * h
    steps[0] = 1 if due else steps[0] + 1
    # An integrator takes no derivative of the step, and where derivatives are kept over some, those at its end serve for all else.
    slopes = s.settings.error_model == INTEGRATOR and steps[1] > 1 and count > 0
    asked = (tree.SLOPES if slopes else tree.TANGENTS) if due else tree.STATE
    moved = due or steps[2] != count  # otherwise F and Q are those of the step before
    steps[2] = 0
    if moved:
        for a in range(size):
            for b in range(size):
                p.F[a, b] = 1.0 if a == b else 0.0
                p.Q[a, b] = 0.0
    if count > 0:
        s.clock.of[0] = h
        _act(s, s.before, p.x)
    for k in range(count):
        _begin(s, p.x, k * h)
        if call_step(I, tree.ADVANCE, W, h, asked) != tree.DONE:
            return False
        for i in range(ns):
            p.x[nq + nv + every - 2 * f - ns + i] = W[I[tree.UNKNOWN] + every - 2 * f - ns + i]
        for i in range(nq):
            p.x[i] = W[I[tree.X] + i]
        for i in range(nv):
            p.x[nq + i] = W[I[tree.V] + i]
        if due:
            _derive(s, h, slopes)
        if moved:
            transition(s.settings.error_model, p.step, p.slopes, p.push, h, p.G)
            noise(s.density, p.push, h, p.added)
            gather(p.G, p.added, k == 0, p.F, p.Q, p.product)
    steps[2] = count
    if count == 0 or (s.settings.accelerates and not _goes_on(s)):  # the instant under the inputs that act from now on
        _act(s, s.now, p.x)
        _begin(s, p.x, 0.0)
        if call_step(I, tree.ADVANCE, W, 0.0, asked) != tree.DONE:
            return False
    spread(s.P, p.F, p.Q, dt, p.product, p.G, p.P)
    return True


@core
def _derive(s: TreeFilter, h: float, slopes: bool) -> None:
    """The derivatives of a step, where filters read them; `slopes`: those at its end alone."""
    I, W, p = s.I, s.W, s.found
    f = I[tree.FREEDOM]
    every = 2 * f + I[tree.FORCES] + I[tree.VARYING]
    if not slopes:
        for a in range(2 * f + I[tree.STATES]):
            for b in range(every):
                p.step[a, b] = W[I[tree.F] + a * every + b]
    for a in range(f):
        for b in range(every):
            p.slopes[a, b] = W[I[tree.A_X] + own_row(I, a) * every + b]
        for b in range(every - 2 * f):
            p.push[a, b] = p.slopes[a, 2 * f + b] if slopes else p.step[f + a, 2 * f + b] / h


@core
def _goes_on(s: TreeFilter) -> bool:
    """Whether what acts from now on is what acted over the step, so that the instant at its end is the one that sensors read."""
    I, W = s.I, s.W
    for i in range(len(s.now.extra)):
        if s.now.extra[i] != s.before.extra[i]:
            return False
    nh = I[tree.HELD]
    count = len(s.now.outside) - 3 * nh
    for i in range(count):
        if s.now.outside[i] != s.before.outside[i]:
            return False
    given, t = I[tree.GIVEN], W[I[tree.CLOCK]]
    for c in range(nh):
        q, qd, qdd = W[given + c], W[given + nh + c], W[given + 2 * nh + c]
        if s.now.outside[count + c] != q + t * qd + 0.5 * t * t * qdd:
            return False
        if s.now.outside[count + nh + c] != qd + t * qdd or s.now.outside[count + 2 * nh + c] != qdd:
            return False
    return True


@core
def _expect(s: TreeFilter) -> None:
    """y and H of the sensors at the instant in hand."""
    I, W, p = s.I, s.W, s.found
    nv, f, at = I[tree.COUNT_V], I[tree.FREEDOM], I[tree.COUNT_Q] + I[tree.COUNT_V]
    k = I[tree.FORCES] + I[tree.VARYING]
    every = 2 * f + k
    call_kernel(s.readings, 0)
    for j in range(len(p.y)):
        total = s.slopes[j, 0] + s.bias[j]
        for b in range(s.selector.shape[1]):
            total += s.selector[j, b] * p.x[at + k + b]
            p.H[j, every + b] = s.selector[j, b]
        p.y[j] = total
        for c in range(every):
            p.H[j, c] = 0.0
        for i in range(nv):
            by_x, by_v, by_a = s.slopes[j, 1 + i], s.slopes[j, 1 + nv + i], s.slopes[j, 1 + 2 * nv + i]
            if by_x != 0.0 or by_v != 0.0:
                for c in range(f):
                    r = W[I[tree.R] + i * f + c]
                    p.H[j, c] += by_x * r + by_v * W[I[tree.V_Z] + i * f + c]
                    p.H[j, f + c] += by_v * r
            if by_a != 0.0:
                for c in range(every):
                    p.H[j, c] += by_a * W[I[tree.A_X] + i * every + c]


@core
def _retract(s: TreeFilter) -> bool:
    """x ⊞ dx: the position and velocity problem; forces, parameters and biases are added."""
    I, W, p, d = s.I, s.W, s.found, s.corrected.dx
    nq, nv, f = I[tree.COUNT_Q], I[tree.COUNT_V], I[tree.FREEDOM]
    _begin(s, p.x, 0.0)
    for c in range(I[tree.HELD]):  # prescribed coordinates stay where they are
        k, nh = I[I[tree.PRESCRIBED] + c], I[tree.HELD]
        W[I[tree.GIVEN] + c] = p.x[nq - I[tree.COUNT] + k]
        W[I[tree.GIVEN] + nh + c] = p.x[nq + nv - I[tree.COUNT] + k]
        W[I[tree.GIVEN] + 2 * nh + c] = 0.0
    for c in range(f):
        W[I[tree.DELTA] + c] = d[c]
        W[I[tree.RATE] + c] += d[f + c]
    if call_step(I, tree.ADVANCE, W, 0.0, tree.PLACE) != tree.DONE:
        return False
    for i in range(nq):
        p.after[i] = W[I[tree.X] + i]
    for i in range(nv):
        p.after[nq + i] = W[I[tree.V] + i]
    for i in range(len(d) - 2 * f):
        p.after[nq + nv + i] = p.x[nq + nv + i] + d[2 * f + i]
    return True
