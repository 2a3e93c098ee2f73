"""An observer's run along a log, as far as a study reads it: states, the deviations of what it reports, and covariances now and then.

All that a filter leaves behind at every step (F, K, H and two covariances) is half a gigabyte for 20 s of driving: filling it costs as much
as a third of the filter, and no more than a few runs would fit the memory at once. The same steps are made as by
:func:`veridyn.observe.observe.observe_with`, and no check of the step's length is, whose warning a study of known truth does not need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.filters.filter import Passing, starting_belief
from veridyn.observe.filters.run import fill
from veridyn.observe.filters.update import Passage
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observe import inputs_in
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.readings import measurements_of
from veridyn.observe.result import Belief

SKIP = 20  # samples left out at the start
NEES_EVERY = 25  # samples from one covariance that is kept to the next
SINGLES = 50  # results of single steps that are taken in at once


@dataclass(frozen=True, eq=False)
class BuggyTrack:
    """States `x` (N, n) at times `t` under `inputs` (N, p), deviations `sigma` (N, 2f) of (z, ż) as they are reported.

    `place` (N, 2, 2): covariances of x and y. `some`: covariances (M, n, n) of the samples SKIP, SKIP + NEES_EVERY and so on; `last`: that
    of the last sample.
    """

    system: MachineSystem
    t: Array
    x: Array
    inputs: Array
    sigma: Array
    place: Array
    some: Array
    last: Array

    @classmethod
    def of(cls, system: MachineSystem, t: Array, x: Array, P: Array, inputs: Array) -> BuggyTrack:
        """Of all states and covariances P (N, n, n)."""
        room = TrackRoom(system, len(t), x.shape[1])
        room.take(0, x, P)
        return room.track(t, inputs)


class TrackRoom:
    """The arrays of a track, which a run fills; a :class:`~veridyn.observe.filters.run.Filled`."""

    whole = False

    def __init__(self, system: MachineSystem, count: int, size: int) -> None:
        n = len(system.states)
        self._system, self._shape = system, (n, size)
        self._x, self._variances = np.empty((count, size)), np.empty((count, 2 * system.f))
        self._place, self._last = np.empty((count, 2, 2)), np.empty((n, n))
        self._some = np.empty((len(range(SKIP, count, NEES_EVERY)), n, n))
        self._waiting: list[tuple[Array, Array]] = []  # states and covariances of single steps
        self._filled = 0  # samples

    def take(self, first: int, x: Array, P: Array) -> None:
        """The states x (k, size) and covariances P (k, n, n) of the samples from `first` on, the next ones."""
        self._take_waiting()
        assert first == self._filled
        self._filled += len(x)
        system, f, here = self._system, self._system.f, slice(first, first + len(x))
        variances = np.diagonal(P, axis1=1, axis2=2)[:, : 2 * f].copy()
        attitude = system.model.reporting(system.split(x)[0])  # a tree reports angles in place of turns
        if attitude is not None:
            variances[:, :f] = ((attitude @ P[:, :f, :f]) * attitude).sum(axis=2)
        self._x[here], self._variances[here], self._place[here] = x, variances, P[:, :2, :2]
        kept = _kept(first, len(x))
        self._some[(first + kept - SKIP) // NEES_EVERY] = P[kept]
        self._last[:] = P[-1]

    def put(self, k: int, passed: Passage) -> None:
        """The result of one step, which ends at the sample k, the next one."""
        assert k == self._filled + len(self._waiting)
        self._waiting.append((passed.belief.x, passed.belief.P))
        if len(self._waiting) == SINGLES:
            self._take_waiting()

    def _take_waiting(self) -> None:
        """Single steps, whose turn to the reported angles costs more than they do, unless it is one of many."""
        if self._waiting:
            x, P = (np.array(every) for every in zip(*self._waiting, strict=True))
            self._waiting.clear()
            self.take(self._filled, x, P)

    def put_rows(self, first: int, count: int, rows: Array) -> None:
        """The results of `count` steps from `first` on, a row each."""
        n, size = self._shape
        self.take(first, rows[:count, :size], rows[:count, size : size + n * n].reshape(count, n, n))

    def belief(self, k: int, t: Array) -> Belief:
        """That of the last sample so far, which is the sample k."""
        self._take_waiting()
        return Belief(self._x[k].copy(), self._last.copy(), float(t[k]))

    def track(self, t: Array, inputs: Array) -> BuggyTrack:
        """What has been filled."""
        self._take_waiting()
        sigma = np.sqrt(self._variances)
        return BuggyTrack(self._system, t, self._x, inputs, sigma, self._place, self._some, self._last)


def _kept(first: int, count: int) -> NDArray[np.int64]:
    """Which of so many samples from `first` on have a covariance that is kept."""
    begin = SKIP - first if first <= SKIP else (SKIP - first) % NEES_EVERY
    return np.arange(begin, count, NEES_EVERY)


def tracked_run(setup: ObserverSetup, machine: Machine, log: Experiment) -> BuggyTrack:
    """A filter with the process noise of its settings along a log."""
    if setup.settings.inputs is None:
        setup = setup.replaced(inputs=inputs_in(machine, log.names, log.name))
    system, q, qd = setup.system(machine)
    readings = measurements_of(system, log, setup.settings.input_hold).select(system.outputs)
    seen = setup.seen(system, q)
    begin = starting_belief(seen, system.belief(q, qd), float(readings.t[0]))
    room = TrackRoom(system, len(readings), len(begin.x))
    fill(room, Passing(setup.method, seen), setup.method, readings, begin)
    return room.track(readings.t, readings.inputs)
