"""The one door to every filter: settings, system, measurements and a start in, a history of estimates out.

    run(EKF(gate=0.999), system, measurements, Belief(x0, P0)) → Estimates

The start is the belief before the first reading. Same inputs, same numbers: nothing here is random or looks at a clock.

:func:`smooth` goes back along such a history, by Rauch, Tung and Striebel: every state in the light of all readings, also those after it.

    G = P_k Fᵀ P_{k+1|k}⁻¹,    x_k ← x_k + G (x_{k+1} − x_{k+1|k}),
    P_k ← (I − G F) P_k (I − G F)ᵀ + G (Q + P_{k+1}) Gᵀ,    Q = P_{k+1|k} − F P_k Fᵀ

It works on the history of any filter, because each leaves its transition F behind (the unscented one that of its fitted
line). The covariance is in a form that stays symmetric and positive. On a linear system it equals the least-squares
solution over the whole log. Smoothed errors are a chain backwards in time, cov(e_k, e_{k+1}) = G P_{k+1}, which says how
many of them are independent; the gains are kept for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.observe.filters.filter import Filter, Passing, starting_belief
from veridyn.observe.filters.update import Correction, Passage, PassageLayout
from veridyn.observe.measurements import Codes, Measurements, Status
from veridyn.observe.process_noise import symmetric
from veridyn.observe.result import Belief, Estimates, Track
from veridyn.observe.streaming.stream import replayed
from veridyn.observe.system import System
from veridyn.progress import Progress, silent

MARCHED = 500  # steps in one call of machine code, at most: their results are held twice for a while
HELD_NUMBERS = 500_000  # of such results (4 MB), so that they are still in the processor's cache when they are read
SINGLES = 16  # steps one by one, after one that machine code has left to Python, before many are tried again


@checked
def run(
    settings: Filter, system: System, measurements: Measurements, start: Belief, progress: Progress = silent
) -> Estimates:
    """Filter the columns of `measurements` that are outputs of `system`, from `start` on.

    Other columns are left alone. Readings that arrive late are treated as `settings.late` says.
    """
    log = measurements.select(system.outputs)
    if settings.late == "rewind" and log.arrival is not None:
        history = _History(system, len(log), len(start.x))
        for done, (k, found) in enumerate(replayed(settings, system, log, start)):
            if isinstance(found, Correction):
                history.record(k, found)
            else:
                history.put(k, found)
            if done % 100 == 0 or done + 1 == len(log):
                progress(f"running {settings.name}", min(done + 1, len(log)), len(log))
        return history.estimates(log.t, settings.name, replayed=True)
    return run_steps(Passing(settings, system), settings, system, log, start, progress)


def run_steps(
    step: Passing,
    settings: Filter,
    system: System,
    log: Measurements,
    start: Belief,
    progress: Progress = silent,
    goes_on: bool = False,
) -> Estimates:
    """:func:`run` by steps that are made already, of readings of the system's outputs, each at its stamp. Parts of one log may share
    them where the filter has no gate that remembers. `goes_on`: the start is what another run knew at some time, and needs no check."""
    belief = start if goes_on else starting_belief(system, start, float(log.t[0]))
    history = _History(system, len(log), len(belief.x))
    fill(history, step, settings, log, belief, progress)
    return history.estimates(log.t, settings.name)


def run_likelihood(
    step: Passing, settings: Filter, system: System, log: Measurements, start: Belief, goes_on: bool = False
) -> RunLikelihood:
    """:func:`run_steps` without what it is not asked for here."""
    belief = start if goes_on else starting_belief(system, start, float(log.t[0]))
    found = RunLikelihood(len(log), len(system.states), len(system.outputs), len(belief.x))
    fill(found, step, settings, log, belief)
    return found


class Filled(Protocol):
    """What a run fills, row by row or many rows at once; `whole`: with the prediction and the gains of each step."""

    whole: bool

    def put(self, k: int, passed: Passage) -> None: ...
    def put_rows(self, first: int, count: int, rows: Array) -> None: ...
    def belief(self, k: int, t: Array) -> Belief: ...


def fill(
    history: Filled, step: Passing, settings: Filter, log: Measurements, belief: Belief, progress: Progress = silent
) -> None:
    """Run from `belief` along readings of the system's outputs, and hand over what each step leaves, in order."""
    flags = in_order(settings, log).flags
    layout = PassageLayout(len(belief.x), len(belief.P), log.values.shape[1])
    together = max(1, min(MARCHED, HELD_NUMBERS // (layout.size if history.whole else layout.short)))
    u, k, singles = log.inputs[0], 0, 0
    while k < len(log):
        if not singles:  # many steps in one call
            part = slice(k, k + together)
            own = None if log.sigma is None else log.sigma[part]
            given = log.t[part], log.values[part], flags[part], log.inputs[part], own
            done, rows = step.marched(belief, u, *given, whole=history.whole)
            singles = 1 if done else SINGLES
            if done:
                history.put_rows(k, done, rows)
                k += done
                belief, u = history.belief(k - 1, log.t), log.inputs[k - 1]
                progress(f"running {settings.name}", k, len(log))
                if done == len(log.t[part]):
                    singles = 0
                continue
        passed = step(belief, u, float(log.t[k]), log.values[k], flags[k], log.inputs[k], _row(log.sigma, k))
        belief, u = passed.belief, log.inputs[k]
        history.put(k, passed)
        k, singles = k + 1, max(singles - 1, 0)
        if k % 100 == 1 or k == len(log):
            progress(f"running {settings.name}", k, len(log))


def in_order(settings: Filter, measurements: Measurements) -> Measurements:
    """What a filter that runs beside the machine has taken in by the end of a log, each reading at its stamp: LATE is what it never used.

    A run over it ends where the replay of the log does, in one chain of steps; a smoother goes back along that chain.
    """
    log = measurements
    if log.arrival is None or settings.late == "use":
        return log
    late = log.arrival > log.t[:, None]
    if settings.late == "rewind":
        after = np.searchsorted(log.t, log.arrival)  # the first stamp that finds it there
        newest = log.t[np.minimum(after, len(log)) - 1]
        late &= (after == len(log)) | (log.t[:, None] < newest - settings.horizon)
    return replace(log.flagged(late, Status.LATE), arrival=None)


def _row(sigma: Array | None, k: int) -> Array | None:
    return None if sigma is None else sigma[k]


class RunLikelihood:
    """The logarithm of the likelihood of each sample of a run, what became of its readings, and their innovations with variances."""

    whole = False

    def __init__(self, count: int, n: int, m: int, size: int) -> None:
        self.log_likelihood, self.innovations, self.variances = (
            np.empty(count),
            np.empty((count, m)),
            np.empty((count, m)),
        )
        self.status: Codes = np.empty((count, m), dtype=np.int8)
        self._sizes, self._x, self._P = (n, m, size), np.empty(size), np.empty((n, n))

    def put(self, k: int, passed: Passage) -> None:
        c = passed.correction
        self.log_likelihood[k], self.innovations[k], self.variances[k] = c.log_likelihood, c.innovations, c.variances
        self.status[k] = c.status
        self._x, self._P = passed.belief.x, passed.belief.P

    def put_rows(self, first: int, count: int, rows: Array) -> None:
        n, m, size = self._sizes
        here, at = slice(first, first + count), size + n * n + m
        self.innovations[here] = rows[:count, at - m : at]
        self.variances[here], self.status[here] = rows[:count, at : at + m], rows[:count, at + m : at + 2 * m]
        self.log_likelihood[here] = rows[:count, at + 2 * m + 2]
        last = rows[count - 1]
        self._x, self._P = last[:size].copy(), last[size : size + n * n].reshape(n, n).copy()

    def belief(self, k: int, t: Array) -> Belief:
        return Belief(self._x, self._P, float(t[k]))


class _History:
    """Arrays that a run fills row by row."""

    whole = True

    def __init__(self, system: System, count: int, size: int) -> None:
        n, m = len(system.states), len(system.outputs)
        self.system = system
        self.x, self.x_predicted = np.empty((count, size)), np.empty((count, size))
        self.P, self.P_predicted, self.F = (np.empty((count, n, n)) for _ in range(3))
        self.H, self.K = np.empty((count, m, n)), np.empty((count, n, m))
        self.innovations, self.variances = np.empty((count, m)), np.empty((count, m))
        self.status: Codes = np.empty((count, m), dtype=np.int8)
        self.nis, self.log_likelihood = np.empty(count), np.empty(count)
        self.dof = np.empty(count, dtype=np.int64)

    def put(self, k: int, passed: Passage) -> None:
        before, after = passed.prediction, passed.belief
        self.x_predicted[k], self.P_predicted[k], self.F[k] = before.x, before.P, before.F
        self.x[k], self.P[k], self.H[k] = after.x, after.P, passed.H
        self.record(k, passed.correction)

    def put_rows(self, first: int, count: int, rows: Array) -> None:
        """The results of `count` steps from `first` on, a row each."""
        n, at, here = self.P.shape[1], 0, slice(first, first + count)
        sums = (self.nis, self.dof, self.log_likelihood)
        after = (self.x, self.P, self.innovations, self.variances, self.status, *sums)
        for array in (*after, self.x_predicted, self.P_predicted, self.F, None, self.K, self.H):  # no dx
            size = n if array is None else array[0].size
            if array is not None:
                array[here] = rows[:count, at : at + size].reshape(count, *array.shape[1:])
            at += size

    def belief(self, k: int, t: Array) -> Belief:
        return Belief(self.x[k], self.P[k], float(t[k]))

    def record(self, k: int, c: Correction) -> None:
        """What the readings of stamp k gave, on time or with those that came later."""
        self.K[k] = c.K
        self.innovations[k], self.variances[k], self.status[k] = c.innovations, c.variances, c.status
        self.nis[k], self.dof[k], self.log_likelihood[k] = c.nis, c.dof, c.log_likelihood

    def estimates(self, t: Array, name: str, replayed: bool = False) -> Estimates:
        return Estimates(
            t=t,
            x=self.x,
            P=self.P,
            states=self.system.states,
            filter=name,
            x_predicted=self.x_predicted,
            P_predicted=self.P_predicted,
            F=self.F,
            H=self.H,
            K=self.K,
            innovations=self.innovations,
            innovation_variances=self.variances,
            status=self.status,
            nis=self.nis,
            dof=self.dof,
            log_likelihood=self.log_likelihood,
            outputs=self.system.outputs,
            replayed=replayed,
        )


@dataclass(frozen=True, eq=False)
class Smoothed(Track):
    """A smoothed track with its gains (N, n, n): `gains[k]` leads from k+1 back to k, and the last is zero."""

    gains: Array


@checked
def smooth(estimates: Estimates, system: System | None = None) -> Smoothed:
    """The smoothed track. `system` is needed only where the state is not a plain vector: for its `add` and `subtract`."""
    estimates.chained("a smoother")
    e = estimates
    x, P = e.x.copy(), e.P.copy()
    identity, gains = np.eye(P.shape[1]), np.zeros_like(P)
    for k in range(len(e) - 2, -1, -1):
        F, ahead = e.F[k + 1], e.P_predicted[k + 1]
        G = gains[k] = _gain(e.P[k] @ F.T, ahead)
        change = x[k + 1] - e.x_predicted[k + 1] if system is None else system.subtract(x[k + 1], e.x_predicted[k + 1])
        keep = identity - G @ F
        added = ahead - F @ e.P[k] @ F.T
        P[k] = symmetric(keep @ e.P[k] @ keep.T + G @ (added + P[k + 1]) @ G.T)
        d, bounds = G @ change, getattr(system, "bounds", None)
        if bounds is not None:
            d = bounds.project(e.x[k], d, P[k], getattr(system, "considered", None))
        x[k] = e.x[k] + d if system is None else system.add(e.x[k], d)
    return Smoothed(e.t, x, P, e.states, f"{e.filter} smoothed", gains)


def _gain(cross: Array, ahead: Array) -> Array:
    """cross · ahead⁻¹; where a state is known exactly `ahead` is singular and its pseudo-inverse gives the same answer."""
    scale = np.sqrt(np.maximum(ahead.diagonal(), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    C = ahead / np.outer(scale, scale)
    try:
        factor = cho_factor(C, lower=True)
        if factor[0].diagonal().min() > 1e-7:
            return cho_solve(factor, (cross / scale).T).T / scale
    except np.linalg.LinAlgError:
        pass  # semi-definite
    return (cross / scale) @ np.linalg.pinv(C, rcond=1e-12, hermitian=True) / scale
