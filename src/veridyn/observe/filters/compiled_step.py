"""What the compiled filter steps of all formulations have in common: a record of the filter, and all but the machine's own equations.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x ⊞ dx

A formulation has a record of its own with a :class:`FilterRecord` in it, code for three things: the prediction x with F and Q, what the
sensors read with H, and a corrected state, and one function of machine code for one step or many. It says in which order it takes what
acts, and may leave a step to the reference in Python: where something does not settle, or numbers are not finite. Steps are bound to one
caller.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Codes, Matrix, Numbers, Vector, core
from veridyn.mechanics.tree.steps.ground_below import GroundBelow
from veridyn.observe.filters.correction import DONE, Corrected, corrected_of, project, put_results
from veridyn.observe.filters.covariance import all_finite, gather, noise, transition
from veridyn.observe.filters.robust_gate import Gated, correct_through, gated_of, rescale, restore
from veridyn.observe.filters.update import CompiledPassage, Passage, PassageLayout
from veridyn.observe.result import Belief
from veridyn.observe.settings import ParameterBounds
from veridyn.observe.system import System

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
    """Bounds of estimated parameters, as :class:`~veridyn.observe.settings.ParameterBounds` has them."""

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


Kernel = Callable[[NDArray[np.int64], NDArray[np.int64]], int]


class SensorRows(NamedTuple):
    """How readings of m sensors become innovations, beside what a formulation says they are."""

    R: Array  # (m, m) of the sensors' own noise
    bias: Array  # (m,)
    selector: Array  # (m, biases) which estimated bias belongs to which reading
    wraps: NDArray[np.bool_]  # (m,) whether the reading is an angle


def filter_record(
    system: System,
    numbers: int,
    acting: int,
    limit: float,
    readings: SensorRows,
    density: Array,
    longest: float,
    error_model: int = 0,
) -> FilterRecord:
    """The record of a filter on a system whose state has so many numbers, and on which so many act.

    `limit`: what ν²/s of a reading that passes the gate stays below, infinite without a gate.
    """
    n, m = len(system.states), len(system.outputs)
    bounds: ParameterBounds | None = getattr(system, "bounds", None)
    none = np.zeros(0, dtype=np.int64)
    square = {name: np.zeros((n, n)) for name in ("P", "F", "Q", "G", "added", "product")}
    return FilterRecord(
        settings=StepSettings(error_model, longest, limit),
        density=as_rows(density),
        bias=as_rows(readings.bias),
        selector=as_rows(readings.selector),
        wraps=readings.wraps.astype(np.int8),
        sensors=as_rows(readings.R),
        R=as_rows(readings.R),
        noisy=np.zeros(1, dtype=np.int64),
        x=np.zeros(numbers),
        P=np.zeros((n, n)),
        before=np.zeros(acting),
        now=np.zeros(acting),
        values=np.zeros(m),
        flags=np.zeros(m, dtype=np.int8),
        found=Predicted(
            x=np.zeros(numbers),
            after=np.zeros(numbers),
            y=np.zeros(m),
            residual=np.zeros(m),
            H=np.zeros((m, n)),
            **square,
        ),
        corrected=corrected_of(n, m, getattr(system, "considered", None)),
        gate=gated_of(n, m, getattr(system, "reports_changes", True)),
        held=Held(none, none, np.zeros(0), np.zeros(0))
        if bounds is None
        else Held(bounds.places, bounds.changes, bounds.lower, bounds.upper),
        refresh=Refresh(np.array([0, 1, 0], dtype=np.int64), np.zeros(1)),
    )


class CompiledStep(ABC):
    """A whole filter step by machine code. It works in memory of its own: one caller each, not for two threads at once."""

    keeps_derivatives: ClassVar[bool] = False  # whether they can be kept over some steps
    _bound: Bound  # the record of the formulation, with that of the filter in it

    def __init__(self, kernel: Kernel, record: FilterRecord) -> None:
        self._kernel, self._filter = kernel, record
        self._layout = PassageLayout(len(record.x), len(record.P), len(record.values))
        self._rows = np.empty((0, self._layout.size))  # results of many steps, until they are read
        self._looked_up: tuple[list[int], list[int]] = (
            [],
            [],
        )  # inputs that a step finds itself, and where they stand in what acts
        self._bind_one()

    def _bind_one(self) -> None:
        """Room for what one step is given."""
        m, L = len(self._filter.values), len(self._filter.now)
        self._one = SampleRows(
            t=np.zeros(2),
            values=np.zeros((1, m)),
            flags=np.zeros(m, dtype=np.int8),
            sigma=np.full((1, m), np.nan),
            acting=np.zeros((2, L)),
            rows=np.zeros((1, self._layout.size)),
        )
        self._given_one, self._own = Bound(self._one), False
        self._standing: list[list[float] | None] = [None, None]  # the inputs that stand in `acting`

    @abstractmethod
    def _acting(self, inputs: Array) -> Array:
        """What acts (N, L) as the formulation takes it, for inputs (N, p); none given, as the model has it."""

    def _address(self, belief: Belief) -> NDArray[np.int64]:
        """Of the record with which machine code goes on from this belief."""
        return self._bound.address

    def _done(self, belief: Belief, given: Bound) -> int:
        """How many of the steps to what is given were done."""
        return self._kernel(self._address(belief), given.address)

    def refresh(self, steps: int) -> None:
        """Compute derivatives at every so many steps only, where a formulation keeps them."""
        self._filter.refresh.steps[1] = steps

    def gate_readings(self) -> Array:
        """Let all readings from now on pass a robust gate: its state, as a `RobustGate` has it."""
        self._filter.gate.on[0] = 1
        return self._filter.gate.state

    def on_ground(self, below: GroundBelow, columns: Sequence[int]) -> bool:
        """Look up the ground below the wheels before each step, in place of these columns of the inputs; False where it cannot."""
        return False

    def adopt(self, system: System) -> bool:
        """Go on with a system that differs in its densities alone, where that can be."""
        return False

    def __call__(
        self,
        belief: Belief,
        before: Array,
        t: float,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
    ) -> Passage | None:
        """From `belief` under the inputs `before` to the readings `values` (m,) at t, where `inputs` act from then on.

        `sigma` (m,): deviations of these readings, NaN for the sensor's own. None where the reference must do this step, because something
        about it is not plain or is wrong.
        """
        f, one = self._filter, self._one
        f.x[:], f.P[:], one.values[0], one.flags[:] = belief.x, belief.P, values, flags
        if sigma is not None or self._own:
            one.sigma[0], self._own = np.nan if sigma is None else sigma, sigma is not None
        for k, given in enumerate((before, inputs)):
            if (values_of := given.tolist()) != self._standing[k]:
                one.acting[k] = self._acting(given[None])[0]
                self._standing[k] = values_of
        one.t[0], one.t[1] = t if belief.t is None else belief.t, t
        return CompiledPassage(self._layout, one.rows[0].copy(), t) if self._done(belief, self._given_one) else None

    def march(
        self,
        belief: Belief,
        before: Array,
        t: Array,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
        whole: bool = True,
    ) -> tuple[int, Array]:
        """Steps from the belief to the readings at t[0], t[1] and so on: how many were done, and their results a row each.

        `sigma` (N, m): deviations of the readings, NaN for the sensor's own. `whole`: with predictions and gains. The rows
        are written over at the next call. Inputs that the steps find themselves are put where they stand in `inputs`.
        """
        f, width = self._filter, self._layout.size if whole else self._layout.short
        if len(self._rows) < len(t) or self._rows.shape[1] != width:
            self._rows = np.empty((len(t), width))
        if len(before) != inputs.shape[1]:
            return 0, self._rows
        f.x[:], f.P[:] = belief.x, belief.P
        acting = as_rows(self._acting(np.vstack([before[None], inputs])))
        given = SampleRows(
            t=np.concatenate([t[:1] if belief.t is None else [belief.t], t]),
            values=as_rows(values),
            flags=np.array(flags, dtype=np.int8).reshape(-1),
            sigma=np.zeros((0, len(f.values))) if sigma is None else as_rows(sigma),
            acting=acting,
            rows=self._rows,
        )
        done, (columns, places) = self._done(belief, Bound(given)), self._looked_up
        if columns:
            inputs[:done, columns] = acting[1 : done + 1, places]
        return done, self._rows


def as_rows(x: Array) -> Array:
    """A copy as machine code takes it."""
    return np.array(x, dtype=np.float64, order="C")
