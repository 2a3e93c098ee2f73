"""What the compiled filter steps of all formulations have in common: a record of the filter, and all but the machine's own equations.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x ⊞ dx

A formulation has a record of its own with a :class:`FilterRecord` in it, and code for three things: the prediction x with F and Q, what the
sensors read with H, and a corrected state. It may leave a step to the reference in Python: where something does not settle, or numbers are
not finite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core
from veridyn.observe.filters.correction import DONE, Corrected, project, put_results
from veridyn.observe.filters.covariance import all_finite, gather, noise, transition
from veridyn.observe.filters.robust_gate import Gated, correct_through, rescale, restore

# Beside DONE: another set of independent coordinates may do better; anything else that the reference must look at.
STRAINED, REFERENCE = 1, 2
ROUNDING = 1e-9  # of a number of sub-steps


class StepSettings(NamedTuple):
    """How to filter: error model, longest step (s), and the gate (ν²/s, or infinity)."""

    error_model: int
    longest: float
    limit: float


class Predicted(NamedTuple):
    """What is found on the way, and room for it. n states, N numbers of a state, m readings."""

    x: Vector  # (N,)
    P: Matrix  # (n, n)
    F: Matrix
    Q: Matrix
    y: Vector  # (m,)
    H: Matrix
    residual: Vector
    after: Vector  # (N,) the corrected state
    G: Matrix  # (n, n)
    added: Matrix
    product: Matrix


class Held(NamedTuple):
    """Bounds of estimated parameters, as :class:`~veridyn.observe.bounds.ParameterBounds` has them."""

    places: Numbers
    changes: Numbers
    lower: Vector
    upper: Vector


class Refresh(NamedTuple):
    """When derivatives are computed anew: steps so far, steps from one time to the next, and the sub-steps that F and Q are of (0: none).

    `of`: the sub-step (s) that the derivatives are of.
    """

    steps: Numbers  # (3,)
    of: Vector  # (1,)


class FilterRecord(NamedTuple):
    """Everything of one filter that no formulation has its own of; from `x` to `flags` what the step in hand is given."""

    settings: StepSettings
    density: Vector
    bias: Vector  # (m,)
    selector: Matrix  # (m, biases) which bias belongs to which reading
    wraps: Codes  # (m,) 1 where the reading is an angle
    sensors: Matrix  # (m, m) R of the sensors' own noise
    R: Matrix  # that of the readings in hand
    noisy: Numbers  # (1,) whether these two differ
    x: Vector
    P: Matrix
    before: Vector  # what acts over the step, in the order of the formulation
    now: Vector  # and from its end on
    values: Vector
    flags: Codes
    found: Predicted
    corrected: Corrected
    gate: Gated
    held: Held
    refresh: Refresh


class SampleRows(NamedTuple):
    """What one call of machine code is given, sample by sample, and the results."""

    t: Vector  # (count + 1,) the first is when the state of the record stands
    values: Matrix  # (count, m)
    flags: Codes  # (count · m,)
    sigma: Matrix  # (count, m) deviations of the readings, NaN for the sensor's own; no rows where all are
    acting: Matrix  # (count + 1, L) from each time on
    rows: Matrix  # (count, size) as :class:`~veridyn.observe.filters.update.PassageLayout` orders them


@core
def take(f: FilterRecord, samples: SampleRows, k: int) -> None:
    """Sample k of those that are given, into the record."""
    m, own = len(f.values), False
    for i in range(len(f.now)):
        f.before[i], f.now[i] = samples.acting[k, i], samples.acting[k + 1, i]
    for j in range(m):
        f.values[j], f.flags[j] = samples.values[k, j], samples.flags[k * m + j]
    if len(samples.sigma) > 0:
        for j in range(m):
            own = own or not np.isnan(samples.sigma[k, j])
    if not own and f.noisy[0] == 0:
        return
    f.noisy[0] = 1 if own else 0
    for i in range(m):
        for j in range(m):
            f.R[i, j] = f.sensors[i, j]
    for j in range(m):
        if own and not np.isnan(samples.sigma[k, j]):
            sigma = samples.sigma[k, j]
            rescale(f.R, j, sigma / np.sqrt(f.sensors[j, j]), sigma * sigma)


@core
def go_on(f: FilterRecord) -> None:
    """The state after a step is where the next one starts."""
    for i in range(len(f.x)):
        f.x[i] = f.found.after[i]
    for a in range(len(f.P)):
        for b in range(len(f.P)):
            f.P[a, b] = f.corrected.P[a, b]


@core
def sub_steps(f: FilterRecord, dt: float) -> int:
    """Into how many equal parts a step of dt seconds is taken."""
    return max(1, int(np.ceil(dt / f.settings.longest - ROUNDING))) if dt > 0.0 else 0


@core
def derivatives_due(f: FilterRecord, count: int, h: float) -> bool:
    """Whether derivatives are computed anew in a step of `count` parts of h seconds."""
    steps, of = f.refresh.steps, f.refresh.of
    due = count == 0 or steps[0] % steps[1] == 0 or abs(of[0] - h) > ROUNDING * h
    steps[0] = 1 if due else steps[0] + 1
    if count > 0:
        of[0] = h
    return due


@core
def begin_step(f: FilterRecord, moved: bool) -> None:
    """The state where the step starts; where F and Q are `moved`, and not those of the step before, they are of no time yet."""
    p, n = f.found, len(f.P)
    for i in range(len(p.x)):
        p.x[i] = f.x[i]
    if moved:
        for a in range(n):
            for b in range(n):
                p.F[a, b] = 1.0 if a == b else 0.0
                p.Q[a, b] = 0.0


@core
def add_sub_step(
    f: FilterRecord, density: Array, step: Array, slopes: Array, push: Array, h: float, first: bool
) -> None:
    """F and Q with those of a sub-step of h seconds."""
    p = f.found
    transition(f.settings.error_model, step, slopes, push, h, p.G)
    noise(density, push, h, p.added)
    gather(p.G, p.added, first, p.F, p.Q, p.product)


@core
def add_bias(f: FilterRecord, j: int, total: float, x: Array, every: int) -> None:
    """Reading j, which is `total` but for its bias; estimated biases stand in x, and behind `every` other states."""
    total += f.bias[j]
    for b in range(f.selector.shape[1]):
        total += f.selector[j, b] * x[b]
        f.found.H[j, every + b] = f.selector[j, b]
    f.found.y[j] = total


@core
def corrected(f: FilterRecord) -> bool:
    """The correction by what was read and expected, and the predicted state where the corrected one will stand; False for the reference."""
    p, c = f.found, f.corrected
    for j in range(len(p.y)):
        e = f.values[j] - p.y[j]
        if f.wraps[j] != 0:
            e = (e + np.pi) % (2.0 * np.pi) - np.pi
        p.residual[j] = e
    if not all_finite(p.x, p.P, p.y, p.H):
        return False
    if correct_through(p.P, p.H, f.R, p.residual, f.flags, f.values, f.settings.limit, c, f.gate) != DONE:
        restore(f.gate)
        return False
    l = f.held
    if f.gate.used[0] > 0 and len(l.places) > 0:
        project(p.x, c, l.places, l.changes, l.lower, l.upper)
    for i in range(len(p.x)):
        p.after[i] = p.x[i]
    return True


@core
def ended(f: FilterRecord, retracted: bool, out: Array) -> int:
    """The results of a step into `out`; `retracted`: whether the corrected state was found."""
    p = f.found
    if not retracted:
        restore(f.gate)
        return REFERENCE
    put_results(out, p.after, p.x, p.P, p.F, p.H, f.corrected)
    return DONE
