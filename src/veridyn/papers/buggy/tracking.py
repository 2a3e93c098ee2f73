"""An observer's run along a log, as far as a study reads it; and the model that follows what the observer found by forces alone.

Of a run are kept states, the deviations of what it reports, and covariances now and then.
All that a filter leaves behind at every step (F, K, H and two covariances) is half a gigabyte for 20 s of driving: filling it costs as much
as a third of the filter, and no more than a few runs would fit the memory at once. The same steps are made as by
:func:`veridyn.observe.pipeline.observe_with`, and no check of the step's length is, whose warning a study of known truth does not need.

A model that follows is never moved, only pushed (Fig. 33 of paper 003). The filter estimates errors of place e, of velocity ė and of force
of the model that runs beside it. None of the first two is added to the model's state, which would be a jump; they become forces by inverse
dynamics (125, 126), under which they die out like a damped spring:

    Q = û + (∂z̈/∂u)⁻¹ (2 ė/T + e/T²)

on the coordinates that have an unknown force; the others are left to the model. Setting the rows of the gain that belong to places and
velocities to zero instead is no observer: a force that is integrated from errors of place and velocity, u̇ = −k₁ e − k₂ ė with ë = u,
has s³ + k₂ s + k₁ = 0, which is never stable. The whole way is one call of machine code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics import linear
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.tree.dynamics.engine import check_angles
from veridyn.mechanics.tree.steps.march import TURNED_TOO_FAR, act, begin, loads_along, take, turned_too_far
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.mechanics.tree.steps.motion_kernel import own_row
from veridyn.mechanics.tree.steps.record import (
    A_X,
    ADVANCE,
    COUNT,
    COUNT_Q,
    DONE,
    FORCES,
    FREE,
    FREEDOM,
    SINGULAR,
    STATE,
    TANGENTS,
    VARYING,
    Z,
    call_step,
)
from veridyn.mechanics.tree.steps.states import state_error, turn_between
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.filters.filter import Passing, starting_belief
from veridyn.observe.filters.run import fill
from veridyn.observe.filters.update import Passage
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import measurements_of
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import inputs_in
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


Numbers = NDArray[np.int64]
DERIVATIVE_EVERY = 5  # steps from one ∂z̈/∂u to the next


def follow_by_forces(found: BuggyTrack, seconds: float) -> BuggyTrack:
    """The motion of a model that is driven after a track with estimated forces, T `seconds` behind it; deviations are the filter's.

    Causal: the forces of a step come from the estimate before it.
    """
    return replace(found, x=followed(found.system, found.t, found.x, found.inputs, seconds))


def followed(system: MachineSystem, t: Array, x: Array, inputs: Array, seconds: float) -> Array:
    """States (N, n) of the model that is driven after the estimates x (N, n) at times t (N,) under `inputs` (N, p)."""
    model = system.model
    assert isinstance(model, TreeModel)
    q, qd, u, b = (np.ascontiguousarray(part) for part in system.split(x))
    pushed = np.array([model.names.index(name) for name in model.unknown], dtype=np.int64)
    turns = np.array(model.tree.turns, dtype=np.float64)
    extra, outside = loads_along(model, dict(zip(system.inputs, inputs.T, strict=True)), len(t))
    record = model.kernels.record
    at, rate, own = np.zeros_like(q), np.zeros_like(qd), np.zeros_like(u)
    at[0], rate[0], own[0] = q[0], qd[0], u[0]
    state = _follow(
        record.I, record.W, turns, pushed, np.asarray(t, dtype=np.float64), q, qd, u, extra, outside, seconds, at, rate,
        own,
    )  # fmt: skip
    if state == TURNED_TOO_FAR:
        check_angles(model.tree, at[:, model.nq - model.tree.n :])
    if state != DONE:
        raise state_error(model.tree, model.z, state, float(np.diff(t).max()), finite=bool(np.isfinite(x).all()))
    return system.join(at, rate, own, b)


@core
def _error(I: Numbers, qa: Array, va: Array, qb: Array, vb: Array, e: Array) -> None:
    """The change (2f,) that leads from the state b to the state a, as :meth:`TreeModel.difference` has it."""
    first, f, nq = 0, I[FREEDOM], I[COUNT_Q]
    if I[FREE]:
        first = 6
        for i in range(3):
            e[i] = qa[i] - qb[i]
        turn_between(qb[3:7], qa[3:7], e[3:6])
    for c in range(first, f):
        k = nq - I[COUNT] + I[I[Z] + c - first]
        e[c] = qa[k] - qb[k]
    for c in range(f):
        e[f + c] = va[own_row(I, c)] - vb[own_row(I, c)]


@kept
def _follow(
    I: Numbers,
    W: Array,
    turns: Array,
    pushed: Numbers,
    t: Array,
    q: Array,
    qd: Array,
    u: Array,
    extra: Array,
    outside: Array,
    seconds: float,
    at: Array,
    rate: Array,
    own: Array,
) -> int:
    """Rows of `at`, `rate` and `own` after the first, a step from each to the next; DONE, or why there is none."""
    f, k = I[FREEDOM], len(pushed)
    every = 2 * f + I[FORCES] + I[VARYING]
    push, pivots, wanted, e = np.empty((k, k)), np.empty(k, dtype=np.int64), np.empty(k), np.empty(2 * f)
    x, v, unknown = at[0].copy(), rate[0].copy(), own[0].copy()
    for i in range(len(t) - 1):
        if turned_too_far(I, x, turns):
            return TURNED_TOO_FAR
        act(I, W, extra[i], outside[i], unknown)
        if i % DERIVATIVE_EVERY == 0:
            begin(I, W, x, v)
            state = call_step(I, ADVANCE, W, 0.0, TANGENTS)
            if state != DONE:
                return state
            for a in range(k):
                row = I[A_X] + own_row(I, pushed[a]) * every + 2 * f
                for b in range(k):
                    push[a, b] = W[row + b]
            if not linear.factor(push, pivots):
                return SINGULAR
        _error(I, q[i], qd[i], x, v, e)
        for a in range(k):
            wanted[a] = 2.0 * e[f + pushed[a]] / seconds + e[pushed[a]] / seconds**2
        linear.solve(push, pivots, wanted)
        for a in range(k):
            unknown[a] = u[i, a] + wanted[a]
        act(I, W, extra[i], outside[i], unknown)
        begin(I, W, x, v)
        state = call_step(I, ADVANCE, W, t[i + 1] - t[i], STATE)
        if state != DONE:
            return state
        take(I, W, x, v, unknown)
        for j in range(len(x)):
            at[i + 1, j] = x[j]
        for j in range(len(v)):
            rate[i + 1, j] = v[j]
        for j in range(len(unknown)):
            own[i + 1, j] = unknown[j]
    return DONE
