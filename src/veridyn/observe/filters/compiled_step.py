"""Filter steps by machine code, bound to one caller: what the steps of all formulations share in Python.

A formulation adds its own record to the common one (:mod:`veridyn.observe.filters.step`), says in which order it takes what acts,
and has one function of machine code for one step or many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound
from veridyn.observe.bounds import ParameterBounds
from veridyn.observe.filters.correction import corrected_of
from veridyn.observe.filters.robust_gate import gated_of
from veridyn.observe.filters.step import FilterRecord, Held, Predicted, Refresh, SampleRows, StepSettings
from veridyn.observe.filters.update import CompiledPassage, Passage, PassageLayout, threshold
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief
from veridyn.observe.system import System

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
    gate: float | None,
    readings: SensorRows,
    density: Array,
    longest: float,
    error_model: int = 0,
) -> FilterRecord:
    """The record of a filter on a system whose state has so many numbers, and on which so many act.

    `gate`: the probability that a good reading passes, None without a gate.
    """
    n, m = len(system.states), len(system.outputs)
    bounds: ParameterBounds | None = getattr(system, "bounds", None)
    none = np.zeros(0, dtype=np.int64)
    square = {name: np.zeros((n, n)) for name in ("P", "F", "Q", "G", "added", "product")}
    return FilterRecord(
        settings=StepSettings(error_model, longest, np.inf if gate is None else threshold(gate)),
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
        are written over at the next call.
        """
        f, width = self._filter, self._layout.size if whole else self._layout.short
        if len(self._rows) < len(t) or self._rows.shape[1] != width:
            self._rows = np.empty((len(t), width))
        if len(before) != inputs.shape[1]:
            return 0, self._rows
        f.x[:], f.P[:] = belief.x, belief.P
        given = SampleRows(
            t=np.concatenate([t[:1] if belief.t is None else [belief.t], t]),
            values=as_rows(values),
            flags=np.array(flags, dtype=np.int8).reshape(-1),
            sigma=np.zeros((0, len(f.values))) if sigma is None else as_rows(sigma),
            acting=as_rows(self._acting(np.vstack([before[None], inputs]))),
            rows=self._rows,
        )
        return self._done(belief, Bound(given)), self._rows


def as_rows(x: Array) -> Array:
    """A copy as machine code takes it."""
    return np.array(x, dtype=np.float64, order="C")
