"""A filter beside a running program: one call per arrival, readings in any order within a horizon.

    stream = Stream(EKF(late="rewind", horizon=0.2), system, Belief(x0, P0))
    step = stream.step(t, {"encoder": 0.31});  step.belief.x, step.status

Time is the caller's: every stamp comes in with its readings and nothing here looks at a clock. A reading stamped before
the newest one is late; with "rewind" the filter goes back to the stamp and forward again through everything it remembers,
so the newest belief is the same as if all had come in order.

A guarded stream follows drifting parameters as far as the readings determine them. All of them begin frozen: no reading corrects them, and
their uncertainty enters the bands. A second stream estimates them from the same readings. What it has determined
(:class:`~veridyn.observe.process_noise.DriftingStates`) is released, and the second stream ends with the last of them: from then on a step
costs what it costs without a guard.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, did_you_mean
from veridyn.observe.filters.filter import Filter, Passing, advance, starting_belief
from veridyn.observe.filters.update import Correction, Passage, Prediction
from veridyn.observe.measurements import MISSING, NOT_FINITE, STATUSES, USED, Codes, Measurements, Status
from veridyn.observe.process_noise import DriftingStates
from veridyn.observe.result import Belief
from veridyn.observe.system import System


class StreamStep:
    """The newest `belief`, and what became of the readings of this stamp: `status` by output, `correction`, `H`.

    Readings that came before with the same stamp are counted in again, so that they may be correlated. `codes` (m,) is the status in the
    order of the outputs. `passage`, and with it `prediction`, `correction` and `H`, is None for readings that came too late.
    """

    __slots__ = ("__dict__", "belief", "codes", "outputs", "passage")

    def __init__(self, belief: Belief, outputs: tuple[str, ...], codes: Codes, passage: Passage | None = None) -> None:
        self.belief, self.outputs, self.codes, self.passage = belief, outputs, codes, passage

    @cached_property
    def status(self) -> Mapping[str, Status]:
        return statuses(self.outputs, self.codes)

    @property
    def prediction(self) -> Prediction | None:
        return None if self.passage is None else self.passage.prediction

    @property
    def correction(self) -> Correction | None:
        return None if self.passage is None else self.passage.correction

    @property
    def H(self) -> Array | None:
        return None if self.passage is None else self.passage.H


class _Node(NamedTuple):
    """Changed copies are made field by field: `_replace` leaves a block of memory on Python's list of free tuples each time."""

    t: float
    values: Array
    flags: Codes
    u: Array
    belief: Belief
    sigma: Array | None

    def under(self, u: Array) -> _Node:
        return _Node(self.t, self.values, self.flags, u, self.belief, self.sigma)

    def believing(self, belief: Belief) -> _Node:
        return _Node(self.t, self.values, self.flags, self.u, belief, self.sigma)


def statuses(outputs: tuple[str, ...], codes: Codes) -> dict[str, Status]:
    """The status of each output by name."""
    return {name: STATUSES[code] for name, code in zip(outputs, codes.tolist())}


def as_vector(inputs: ArrayLike) -> Array:
    """Inputs (k,) of numbers; an array that is one already is handed on as it is."""
    if isinstance(inputs, np.ndarray) and inputs.dtype == np.float64 and inputs.ndim == 1:
        return inputs
    return np.atleast_1d(np.asarray(inputs, dtype=np.float64))


def _stamp(node: _Node) -> float:
    return node.t


class Stream:
    """Holds the newest belief and as much of the past as late readings may need: with "rewind", give a horizon.

    It changes with every step; not for two threads at once.
    """

    @checked
    def __init__(self, settings: Filter, system: System, start: Belief) -> None:
        if not system.outputs:
            raise ModelError("the system has no outputs.", where=settings.name)
        self.settings, self.system = settings, system
        self._start, self._passing = start, Passing(settings, system)
        self._past: list[_Node] = []

    @property
    def belief(self) -> Belief:
        return self._past[-1].belief if self._past else self._start

    def begun(self, start: Belief) -> Stream:
        """The same stream before its first reading, with another start."""
        return Stream(self.settings, self.system, start)

    def go_on(self, system: System) -> None:
        """Go on with a system of the same states and outputs."""
        self.system, self._passing = system, Passing(self.settings, system)

    def step(
        self,
        t: float,
        values: ArrayLike | Mapping[str, float],
        inputs: ArrayLike | None = None,
        flags: Codes | None = None,
        sigma: Array | None = None,
    ) -> StreamStep:
        """Take in readings stamped `t`: an array (m,) with NaN where there is none, or a mapping by output.

        `inputs` act from `t` on; without them, those before go on acting. `sigma` (m,): deviations of these readings, NaN for the
        sensor's own.
        """
        return self.take(t, *self._read(t, values, flags), inputs, sigma)

    def take(
        self, t: float, readings: Array, codes: Codes, inputs: ArrayLike | None, sigma: Array | None = None
    ) -> StreamStep:
        """:meth:`step` with readings (m,) and their codes as they should be: neither is written to by anybody from now on.

        A reading that is not finite is marked so, and `t` is a time.
        """
        if not self._past:
            root = starting_belief(self.system, self._start, t)
            u = np.zeros(0) if inputs is None else as_vector(inputs)
            empty = np.full(len(codes), MISSING, dtype=np.int8)
            self._past = [_Node(t if root.t is None else root.t, readings, empty, u, root, None)]
        newest = self._past[-1].t
        if t < newest and self.settings.late == "use":
            raise DataError(
                "the clock runs backwards.",
                where=f"step at {t:.6g} s",
                expected=f"{newest:.6g} s or later",
                hint='late="rewind" takes readings in any order within a horizon; late="drop" leaves them out.',
            )
        if t < newest and (self.settings.late == "drop" or t < max(newest - self.settings.horizon, self._past[0].t)):
            late = np.where(codes == USED, Status.LATE, codes)
            return StreamStep(self.belief, self.system.outputs, late.astype(np.int8))
        after = bisect_right(self._past, t, key=_stamp) if t < newest else len(self._past)
        at, beside = after, self._past[after - 1]
        u = beside.u if inputs is None else as_vector(inputs)
        if after > 1 and beside.t == t and not ((beside.flags == USED) & (codes == USED)).any():
            at = after - 1  # readings of one stamp belong together: their noise may be correlated
            late = beside.flags == USED
            readings, codes = np.where(late, beside.values, readings), np.where(late, beside.flags, codes)
            if sigma is not None or beside.sigma is not None:
                own = np.full(len(codes), np.nan)
                before, now = (own if x is None else x for x in (beside.sigma, sigma))
                sigma = np.where(late, before, now)
        start = self._past[at - 1]
        passage = self._passing(start.belief, start.u, t, readings, codes, u, sigma)
        redone = [_Node(t, readings, codes, u, passage.belief, sigma)]
        for node in self._past[after:]:
            last = redone[-1]
            again = self._passing(last.belief, last.u, node.t, node.values, node.flags, node.u, node.sigma).belief
            redone.append(node.believing(again))
        self._past[at:] = redone
        self._forget()
        return StreamStep(self.belief, self.system.outputs, passage.status, passage)

    def act(self, inputs: ArrayLike) -> None:
        """Replace what acts since the newest readings, where it is known better by now than when they came."""
        if self._past:
            self._past[-1] = self._past[-1].under(as_vector(inputs))

    def predict(self, t: float) -> Belief:
        """The belief at a time not before the newest, without taking anything in."""
        node = self._past[-1] if self._past else None
        if node is None or not t >= node.t:
            raise DataError("there is nothing to predict from.", where=f"prediction at {t:.6g} s")
        p = advance(self.settings, self.system, node.belief, node.u, t)
        return Belief(p.x, p.P, t)

    def _forget(self) -> None:
        if self.settings.late != "rewind":
            self._past = self._past[-2:]
            return
        oldest = self._past[-1].t - self.settings.horizon
        first = bisect_right(self._past, oldest, key=_stamp) - 2  # the one at or before, and the one before that
        if first > 0:
            self._past = self._past[first:]

    def _read(self, t: float, values: ArrayLike | Mapping[str, float], flags: Codes | None) -> tuple[Array, Codes]:
        outputs = self.system.outputs
        faults = Faults()
        if not np.isfinite(t):
            faults.add("the stamp is not a time.", where="step", found=f"{t}")
        if isinstance(values, Mapping):
            for name in values:
                if name not in outputs:
                    faults.add(f"there is no output '{name}'.", where="step", hint=did_you_mean(name, outputs))
            readings = np.array([float(values.get(name, np.nan)) for name in outputs])
            absent = np.array([name not in values for name in outputs])
        else:
            readings = np.asarray(values, dtype=np.float64)
            absent = np.isnan(readings)
            if readings.shape != (len(outputs),):
                faults.add("wrong shape.", where="step", expected=f"({len(outputs)},)", found=f"{readings.shape}")
        faults.raise_if_any(DataError)
        codes = np.zeros(len(outputs), dtype=np.int8) if flags is None else np.array(flags, dtype=np.int8)
        codes[absent & (codes == USED)] = MISSING
        codes[(codes == USED) & ~np.isfinite(readings)] = NOT_FINITE
        return readings, codes


class GuardedStream(Stream):
    """A :class:`Stream` of a system with drifting parameters; `make` gives the system with some of them frozen, the states in one order.

    `frozen`: those that no reading corrects now.
    """

    def __init__(
        self,
        settings: Filter,
        make: Callable[[tuple[str, ...]], System],
        drifting: DriftingStates,
        start: Belief,
    ) -> None:
        super().__init__(settings, make(drifting.names), start)
        self._make, self._drifting = make, drifting
        self._free: Stream | None = Stream(settings, make(()), start)
        self._first = np.nan
        self.frozen = drifting.names

    def begun(self, start: Belief) -> GuardedStream:
        return GuardedStream(self.settings, self._make, self._drifting, start)

    def act(self, inputs: ArrayLike) -> None:
        super().act(inputs)
        if self._free is not None:
            self._free.act(inputs)

    def take(
        self, t: float, readings: Array, codes: Codes, inputs: ArrayLike | None, sigma: Array | None = None
    ) -> StreamStep:
        if self._free is not None:
            self._release(t, self._free.take(t, readings, codes, inputs, sigma).belief.P)
        return super().take(t, readings, codes, inputs, sigma)

    def _release(self, t: float, P: Array) -> None:
        """Let readings correct what the second stream has determined by now."""
        self._first = t if np.isnan(self._first) else self._first
        known = self._drifting.determined(P[None], np.array([max(t - self._first, 0.0)]))
        left = tuple(name for name in self.frozen if name not in known)
        if len(left) < len(self.frozen):
            self.frozen = left
            self.go_on(self._make(left))
            if not left:
                self._free = None


def guarded_stream(
    settings: Filter, make: Callable[[tuple[str, ...]], System], drifting: DriftingStates | None, start: Belief
) -> Stream:
    """A stream with a guard where parameters drift, and without one where none do."""
    if drifting is None:
        return Stream(settings, make(()), start)
    return GuardedStream(settings, make, drifting, start)


def replayed(
    settings: Filter, system: System, log: Measurements, start: Belief
) -> Iterator[tuple[int, Passage | Correction]]:
    """A log as it would have run beside the machine: at each stamp with what had arrived by then, going back where needed.

    The number of each stamp with its passage, in order; then those of stamps to which readings came late, with the latest correction there.
    """
    arrival = np.asarray(log.arrival)
    late = (arrival > log.t[:, None]) & (log.flags == USED)
    stream = Stream(settings, system, start)
    flags = log.flagged(late, Status.LATE).flags
    waiting = deque(sorted((float(arrival[k, j]), int(k), int(j)) for k, j in np.argwhere(late)))
    corrected: dict[int, Correction] = {}
    for k, t in enumerate(log.t.tolist()):
        while waiting and waiting[0][0] <= t:
            _, past, j = waiting.popleft()
            only = np.full(len(log.names), MISSING, dtype=np.int8)
            only[j] = USED
            own = None if log.sigma is None else log.sigma[past]
            step = stream.step(float(log.t[past]), log.values[past], flags=only, sigma=own)
            if step.correction is not None:
                status = step.correction.status  # what is not there now keeps the word it had
                kept = np.where(status == MISSING, flags[past], status).astype(np.int8)
                corrected[past] = replace(step.correction, status=kept)
        own = None if log.sigma is None else log.sigma[k]
        step = stream.step(t, log.values[k], log.inputs[k], flags[k], own)
        assert step.passage is not None
        yield k, step.passage
    yield from corrected.items()
