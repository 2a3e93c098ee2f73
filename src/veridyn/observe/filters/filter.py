"""What every filter is: a way to predict a belief and a way to expect readings. Everything else is common.

    advance: belief at t → prediction at t + Δt          absorb: prediction, readings → belief, correction

A filter is a frozen object of settings; a new one states :meth:`Filter.predict` and :meth:`Filter.expect` and inherits
Joseph's form, gating, missing and late readings, streaming, smoothing and the conformance suite. :class:`Passing` does both
in one, by machine code where filter and system have some; what stands here is the reference for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, SimulationError, VeridynError
from veridyn.mechanics.tree.steps.ground_below import GroundBelow
from veridyn.observe.filters.compiled_step import CompiledStep
from veridyn.observe.filters.robust_gate import FALSE_ALARMS, OUTLIER, RobustGate, widened
from veridyn.observe.filters.update import (
    Correction,
    Expectation,
    Passage,
    Prediction,
    Stepped,
    correct,
    noise_of_readings,
    threshold,
)
from veridyn.observe.measurements import Codes
from veridyn.observe.process_noise import as_covariance
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.settings import Settings, at_least, between

Late = Literal["use", "drop", "rewind"]
ErrorModel = Literal["exact", "forward", "integrator"]


@dataclass(frozen=True, repr=False)
class Filter(Settings, ABC):
    """Settings that all filters share, checked when an object is made.

    `gate`: "auto", the default, lets a reading count little where it is beyond 4.9 deviations of what is expected, as one good reading in
    a million is; an output that is there again and again is used as it is, because the filter is then taken to be wrong
    (:mod:`veridyn.observe.filters.robust_gate`). A number, such as 0.999, is the probability that a good reading passes: others are
    refused. None lets every reading pass.
    `late`, for readings that arrive after the filter has passed their stamp: "use" plays a log back as if all were on
    time; "drop" leaves them out and reports it; "rewind" goes back to the stamp and forward again, for readings not later
    than `horizon` seconds.

    `word` stands for the filter with default settings; filters of linear systems alone have none. On a machine, `error_model` is what
    carries the covariance, see :mod:`veridyn.observe.machine`, and `estimates_forces` whether unknown forces are part of the state.
    """

    error: ClassVar[type[VeridynError]] = ModelError
    word: ClassVar[str] = ""
    error_model: ClassVar[ErrorModel] = "exact"
    estimates_forces: ClassVar[bool] = True

    gate: Annotated[float, between(0.0, 1.0)] | Literal["auto"] | None = "auto"
    late: Late = "use"
    horizon: Annotated[float, at_least(0.0, infinite=True)] = np.inf

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def pass_probability(self) -> float | None:
        """With which a good reading passes the gate; None without one."""
        return 1.0 - FALSE_ALARMS if self.gate == "auto" else self.gate

    @property
    def limit(self) -> float:
        """What the square of an innovation over its variance stays below in a reading that passes the gate; infinite without one."""
        probability = self.pass_probability
        return np.inf if probability is None else threshold(probability)

    def compiled_step(self, system: System) -> CompiledStep | None:
        """This filter on this system by machine code, for one caller; None where there is none."""
        return None

    @abstractmethod
    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        """x, P and F one step after the belief at t; `dt` is positive."""

    @abstractmethod
    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        """What the sensors should read, as a line y + H dx and a noise R."""


def starting_belief(system: System, start: Belief, first: float) -> Belief:
    """`start` with a full covariance and a time not after the first stamp; what does not fit the system is refused."""
    n = len(system.states)
    P = as_covariance(start.P, system.states, "start")
    faults = Faults()
    moved = np.zeros(0)
    with suppress(ValueError, IndexError):  # reported below: the shapes do not belong together
        moved = np.asarray(system.add(start.x, np.zeros(n)))
    if start.x.ndim != 1 or moved.shape != start.x.shape:
        faults.add(
            "the start is not a state of this system.",
            where="start",
            expected=f"a vector for the {n} states {', '.join(system.states)}",
            found=f"shape {start.x.shape}",
        )
    elif not np.isfinite(start.x).all():
        faults.add("the start is not finite.", where="start", found=f"{start.x}")
    t = first if start.t is None else float(start.t)
    if not t <= first:
        faults.add(
            "the start is later than the first reading.",
            where="start",
            expected=f"at most {first:.6g} s",
            found=f"{t:.6g} s",
        )
    faults.raise_if_any(DataError)
    return Belief(start.x, P, t)


def advance(how: Filter, system: System, belief: Belief, u: Array, t: float) -> Prediction:
    """The prediction at `t`; no time, no change. A state that runs away is an error that names time and state."""
    before = t if belief.t is None else belief.t
    if t == before:
        return Prediction(belief.x, belief.P, np.eye(len(belief.P)), t)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is reported below, as an error
        x, P, F = how.predict(system, belief, u, before, t - before)
    if not (np.isfinite(x).all() and np.isfinite(P).all()):
        finite = np.atleast_1d(np.isfinite(P).all(axis=1)).tolist()
        bad = [n for n, ok in zip(system.states, finite) if not ok] or list(system.states)
        raise SimulationError(
            f"the prediction is no longer finite at {t:.6g} s.",
            where=how.name,
            found=f"{', '.join(bad[:4])} not finite",
            hint="Look for an unstable model with too long a step, or a covariance that nothing measures.",
        )
    return Prediction(x, P, F, t)


def absorb(
    how: Filter,
    system: System,
    prediction: Prediction,
    values: Array,
    flags: Codes,
    u: Array,
    sigma: Array | None = None,
) -> tuple[Belief, Correction, Array]:
    """The belief after the readings `values` (m,) with their `flags`, the correction, and the H that was used.

    `sigma` (m,): deviations of these readings, NaN for the sensor's own.
    """
    p = prediction
    expected = how.expect(system, p.x, p.P, u, p.t)
    if not (np.isfinite(expected.y).all() and np.isfinite(expected.H).all()):
        ok = np.isfinite(expected.y) & np.isfinite(expected.H).all(axis=1)
        raise SimulationError(
            f"the model of '{system.outputs[int(np.argmin(ok))]}' is not finite at {p.t:.6g} s.",
            where=how.name,
            found=f"state {p.x}",
        )
    if sigma is not None:
        own = np.asarray(system.sensor_noise(p.t))
        missed = expected.R - own  # what a filter adds to the noise because its line misses the sensors
        expected = replace(expected, R=noise_of_readings(own, sigma) + missed)
    innovations = system.residual(values, expected.y)
    considered = getattr(system, "considered", None)
    c = correct(p.P, expected, innovations, flags, how.pass_probability, considered)
    bounds = getattr(system, "bounds", None)
    if c.dof and bounds is not None:
        c = replace(c, dx=bounds.project(p.x, c.dx, c.P, considered))
    try:
        x = system.add(p.x, c.dx) if c.dof else p.x
    except VeridynError as error:
        faults = [replace(fault, where=f"{fault.where} at {p.t:.6g} s") for fault in error.faults]
        raise type(error)(faults, error.source) from error
    return Belief(x, c.P, p.t), c, expected.H


class Passing:
    """Steps of a filter on a system, for one caller: :func:`advance` and :func:`absorb`, by machine code where there is some.

    `by_reference` counts the steps that the Python filter did.
    """

    def __init__(self, how: Filter, system: System) -> None:
        self._how, self._system = how, system
        self._compiled, gated = how.compiled_step(system), how.gate == "auto"
        shared = (
            self._compiled.gate_readings() if gated and self._compiled is not None else None
        )  # it has the gate, too
        self._gate = RobustGate(len(system.outputs), shared) if gated else None
        self._ungated = replace(how, gate=None) if gated else how
        self._below: GroundBelow | None = None
        self._columns, self._marches = list[int](), self._compiled is not None
        self.by_reference = 0

    def on_ground(self, below: GroundBelow, columns: Sequence[int]) -> Passing:
        """The same steps of a machine on wheels, below which the ground is looked up before each, into these columns of the inputs."""
        self._below, self._columns = below, list(columns)
        self._marches = self._compiled is not None and self._compiled.on_ground(below, columns)
        return self

    def on(self, system: System) -> Passing:
        """Steps of the same filter on a system that differs in its densities alone, which machine code may take as they are."""
        if self._compiled is None or not self._compiled.adopt(system):
            return Passing(self._how, system)
        self._system = system
        self.forget()
        return self

    def forget(self) -> None:
        """Begin another run: no gate is open."""
        if self._gate is not None:
            self._gate.forget()

    def marched(
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
        """The first of many steps in one call of machine code, as far as it goes: how many, and their results a row each.

        From `belief` under the inputs `before` to the readings at t[0], t[1] and so on, with the deviations `sigma` (N, m) where they have
        some of their own; `whole`: with predictions and gains. None are done where a step has no such code.
        """
        if self._compiled is None or not self._marches or belief.t is None:
            return 0, np.zeros((0, 0))
        if self._below is not None:  # what acts before the first step of a log is its first row
            inputs[0, self._columns] = self._below.at(belief.x)
        return self._compiled.march(belief, before, t, values, flags, inputs, sigma, whole)

    def __call__(
        self,
        belief: Belief,
        before: Array,
        t: float,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
    ) -> Passage:
        """From `belief` under the inputs `before` to t, with the readings there, where `inputs` act from then on."""
        if self._below is not None:
            inputs[self._columns] = self._below.at(belief.x)
        if self._compiled is not None:
            found = self._compiled(belief, before, t, values, flags, inputs, sigma)
            if found is not None:
                return found
        gate, self.by_reference = self._gate, self.by_reference + 1
        how = self._how if gate is None or not gate.some_open else self._ungated
        prediction = advance(how, self._system, belief, before, t)
        after, c, H = absorb(how, self._system, prediction, values, flags, inputs, sigma)
        if gate is None or (gate.whole and OUTLIER not in c.status.tolist()):
            return Stepped(prediction, after, c, H)
        beyond = gate.beyond(c)
        if not (beyond & ~gate.open).any():
            gate.spend(beyond, c.status, values)
            return Stepped(prediction, after, c, H)
        return self._weighed(gate, prediction, c, H, beyond, values, flags, inputs, sigma)

    def _weighed(
        self,
        gate: RobustGate,
        p: Prediction,
        c: Correction,
        H: Array,
        beyond: NDArray[np.bool_],
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None,
    ) -> Passage:
        """The step again, with readings beyond the gate that count little; where it opens, with P widened along them.

        Those that count little are reported as outliers, and are no part of NIS and likelihood.
        """
        opens, how, system = gate.spend(beyond, c.status, values), self._ungated, self._system
        light = beyond & ~gate.open
        # An attitude of its own would be turned farther than its tangent reaches.
        flat = getattr(system, "reports_changes", True)
        prediction = replace(p, P=widened(p.P, H, c, opens & flat, getattr(system, "considered", None)))
        self.by_reference += 1
        own = gate.deviations(c, np.asarray(system.sensor_noise(p.t)), sigma, light)
        after, correction, H = absorb(how, system, prediction, values, flags, inputs, own)
        if light.any():
            muted = np.where(light, OUTLIER, flags).astype(np.int8)
            _, others, _ = absorb(how, system, prediction, values, muted, inputs, sigma)
            correction = replace(others, dx=correction.dx, P=correction.P, K=correction.K)
        return Stepped(prediction, after, correction, H)
