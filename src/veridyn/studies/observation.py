"""Observers compared: filters on many logs of one true motion, each scored against that motion and beside the model left to itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.mechanics.natural.steps.integrate import NaturalMotion
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.filters.methods import EKF, Smoother
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe_with, smoothed
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.progress import Progress, silent
from veridyn.settings import values_of
from veridyn.studies.result import ParameterRow, Result


@dataclass(frozen=True, eq=False)
class FilterScore:
    """How one filter did over all logs: per coordinate and rate the mean over the logs of rms and of largest error, and its consistency.

    `nees` and `nis` are means per dimension (ideal 1), `nees_bands` the 95 % bands of each log, `share_white` the share of logs with white
    innovations of every sensor, `share_inside` that of logs whose NEES is inside its band. `example` is the first log.
    """

    name: str
    setup: ObserverSetup
    rms: Array
    rms_rate: Array
    largest: Array
    largest_rate: Array
    spread: Array
    nis: float
    nees: float
    nees_logs: Array
    nees_bands: Array
    share_white: float
    step_microseconds: float
    example: Observation

    @property
    def share_inside(self) -> float:
        """The share of the logs whose NEES lies in its own 95 % band."""
        low, high = self.nees_bands.T
        return float(np.mean((self.nees_logs >= low) & (self.nees_logs <= high)))


@dataclass(frozen=True, eq=False)
class ObservationStudy:
    """All filters on all logs. `labels`: name in the figures → coordinate; `chosen` is the filter whose figures stand in the result."""

    machine: Machine
    truth: NaturalMotion
    plain: NaturalMotion
    labels: Mapping[str, str]
    scores: Mapping[str, FilterScore]
    chosen: str
    logs: int
    skip: int
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> FilterScore:
        return self.scores[self.chosen]

    def error(self, motion_q: Array) -> Array:
        """Errors (N, n) of coordinates, from the sample on that counts."""
        return (motion_q - self.truth.q)[self.skip :]

    def plain_rms(self, label: str, rate: bool = False) -> float:
        """Of the model left to itself."""
        return float(np.sqrt((self._plain(label, rate) ** 2).mean()))

    def plain_largest(self, label: str, rate: bool = False) -> float:
        return float(np.abs(self._plain(label, rate)).max())

    def _plain(self, label: str, rate: bool) -> Array:
        k = self.column(label)
        mine, true = (self.plain.qd, self.truth.qd) if rate else (self.plain.q, self.truth.q)
        return (mine - true)[self.skip :, k]

    def column(self, label: str) -> int:
        """The coordinate's number of a label."""
        return self.truth.coordinates.index(self.labels[label])

    @property
    def figures(self) -> dict[str, float]:
        """Numbers of the chosen filter, named as in `result.json`."""
        s = self.best
        out = {f"rms_{label}": float(s.rms[self.column(label)]) for label in self.labels}
        out |= {f"rms_{label}_dot": float(s.rms_rate[self.column(label)]) for label in self.labels}
        out |= {f"rms_model_{label}": self.plain_rms(label) for label in self.labels}
        out |= {f"max_model_{label}": self.plain_largest(label) for label in self.labels}
        return out | {
            "nees": s.nees,
            "nis": s.nis,
            "share_white": s.share_white,
            "share_nees_inside": s.share_inside,
            "step_microseconds": s.step_microseconds,
            "logs": float(self.logs),
        }

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """The states at the end of the first log, with the truth."""
        o = self.best.example
        n = len(self.truth.coordinates)
        true = np.concatenate([self.truth.q[-1], self.truth.qd[-1], np.full(o.track.x.shape[1] - 2 * n, np.nan)])
        known = o.system.reduced(true)
        return tuple(
            ParameterRow(
                name, unit, float(x), float(s), float(100.0 * s / abs(x)) if x else float("nan"), truth=float(t)
            )
            for name, unit, x, s, t in zip(o.states, o.units, o.reduced[-1], o.sigma[-1], known)
        )

    def result(
        self, study: str, *, seed: int | None, quick: bool, inputs: Mapping[str, str], warnings: tuple[str, ...] = ()
    ) -> Result:
        """The study as the record that a run folder keeps; `validation` holds every filter's errors by coordinate."""
        table = {
            f"{name}: {label}": {
                "samples": float(len(self.truth) - self.skip),
                "rms": float(s.rms[self.column(label)]),
                "measured_rms": float(np.sqrt((self.truth.q[self.skip :, self.column(label)] ** 2).mean())),
                "max": float(s.largest[self.column(label)]),
            }
            for name, s in self.scores.items()
            for label in self.labels
        }
        return Result(study, seed, quick, inputs, self.figures, self.parameters, table, warnings)


def observation(
    machine: Machine,
    truth: NaturalMotion,
    plain: NaturalMotion,
    logs: Sequence[Experiment],
    setups: Mapping[str, ObserverSetup],
    labels: Mapping[str, str],
    *,
    chosen: str,
    skip: int = 0,
    clock: Callable[[], float] = time.process_time,
    progress: Progress = silent,
) -> ObservationStudy:
    """Run every filter of `setups` on every log, whose stamps are those of the truth, and score it.

    `step_microseconds` is processor time of a whole run over its samples, the first run left out where there are others: it compiles. A
    smoother's counts its filter's way forward, too.
    """
    if chosen not in setups:
        raise DataError(
            f"there is no filter '{chosen}'.", where="observation study", hint=did_you_mean(chosen, list(setups))
        )
    scores, seen, spent, done, total = {}, {}, {}, 0, len(setups) * len(logs)
    for name, how in setups.items():
        found: list[Observation] = []
        seconds: list[float] = []
        forward = replace(how, method=EKF(**values_of(how.method))) if isinstance(how.method, Smoother) else None
        before = [k for k in seen if setups[k] == forward]
        for number, log in enumerate(logs):
            begin = clock()
            if before:  # the smoother's way forward has been gone already
                found.append(smoothed(seen[before[0]][number]))
            else:
                found.append(observe_with(how, machine, log))
            seconds.append(clock() - begin + (spent[before[0]][number] if before else 0.0))
            done += 1
            progress(f"observing with {name}", done, total)
        seen[name], spent[name] = found, seconds
        scores[name] = _score(name, how, found, truth, seconds, skip)
    return ObservationStudy(machine, truth, plain, labels, scores, chosen, len(logs), skip)


def _score(
    name: str,
    how: ObserverSetup,
    seen: Sequence[Observation],
    truth: NaturalMotion,
    seconds: Sequence[float],
    skip: int,
) -> FilterScore:
    if any(len(o) != len(truth) or np.abs(o.t - truth.t).max() > 1e-9 for o in seen):
        raise DataError("the log and the truth are on different clocks.", where="observation study")
    errors = np.array([(o.q - truth.q)[skip:] for o in seen])
    rates = np.array([(o.qd - truth.qd)[skip:] for o in seen])
    rms, rms_rate = np.sqrt((errors**2).mean(axis=1)), np.sqrt((rates**2).mean(axis=1))
    nees = [o.nees(truth.q, truth.qd, skip) for o in seen]
    timed = seconds[1:] if len(seconds) > 1 else seconds
    return FilterScore(
        name,
        how,
        rms.mean(axis=0),
        rms_rate.mean(axis=0),
        np.abs(errors).max(axis=1).mean(axis=0),
        np.abs(rates).max(axis=1).mean(axis=0),
        rms.std(axis=0),
        float(np.mean([o.nis(skip).mean for o in seen])),
        float(np.mean([j.mean for j in nees])),
        np.array([j.mean for j in nees]),
        np.array([j.band for j in nees]),
        float(np.mean([all(w.is_white for w in o.whiteness(skip).values()) for o in seen])),
        1e6 * float(np.mean(timed)) / len(truth),
        seen[0],
    )
