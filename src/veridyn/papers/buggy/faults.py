"""Each sensor of the buggy fails in turn while it drives, and the observer is asked which one it was.

The best observer runs with a gate; wheels are read at every sample, because one without edges would fall silent at every stop. What is
named comes from the innovations alone (:mod:`veridyn.observe.consistency.findings`). Torque and rack are inputs and have no
innovations: a wrong one shows in several sensors at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.observe.consistency.findings import SEVERAL, SensorFinding, sensor_findings
from veridyn.observe.filters.ekf import EKF
from veridyn.papers.buggy.log import BuggyTruth
from veridyn.papers.buggy.observers import best_observer, standing_start
from veridyn.papers.buggy.scores import Scored, scored
from veridyn.progress import Progress, silent, tracked

Array = NDArray[np.float64]
Change = Callable[[Array, Array], Array]  # values from the fault on, and their times since then → what is read instead
GATE = 0.9999
BEGINS = 0.4  # of the drive: when a sensor fails


def frozen(values: Array, _: Array) -> Array:
    return np.full_like(values, values[0])


def dropped(values: Array, _: Array) -> Array:
    return np.full_like(values, np.nan)


def scaled(factor: float) -> Change:
    """Changes since the fault are so many times as large."""
    return lambda values, _: values[0] + factor * (values - values[0])


def times(factor: float) -> Change:
    return lambda values, _: factor * values


def shifted(by: float) -> Change:
    return lambda values, _: values + by


@dataclass(frozen=True)
class SensorFault:
    """A sensor, or an input, whose channels read something else: which, how in words, and what."""

    sensor: str
    how: str
    change: Change
    channels: tuple[str, ...] = ()

    def applied(self, log: Experiment, begins: float) -> Experiment:
        """The log with the fault from the time `begins` on (s)."""
        changed = []
        for name in self.channels or [n for n in log.names if n.split(".")[0] == self.sensor]:
            c = log[name]
            late = c.t >= begins
            values = c.values.copy()
            values[late] = self.change(values[late], c.t[late] - begins)
            heard = np.isfinite(values)
            changed.append(Channel(name, c.t[heard], values[heard], c.unit))
        return log.replacing(*changed)


FAULTS = (
    SensorFault("gps", "frozen", frozen),
    SensorFault("gps", "silent", dropped),
    SensorFault("gps", "1 m beside", shifted(1.0), ("gps.x", "gps.y")),
    SensorFault("gps_velocity", "wrong sign", times(-1.0)),
    SensorFault("gps_velocity", "silent", dropped),
    SensorFault("gyro", "frozen", frozen),
    SensorFault("gyro", "0.01 rad/s beside", shifted(0.01)),
    SensorFault("gyro", "a tenth too much", times(1.1)),
    SensorFault("accelerometer", "wrong sign", times(-1.0)),
    SensorFault("accelerometer", "0.5 m/s² beside", shifted(0.5)),
    SensorFault("angle_rl", "stuck", frozen),
    SensorFault("angle_rl", "misses a hole in ten", lambda v, _: _rounded(v[0] + 0.9 * (v - v[0]))),
    SensorFault("angle_fr", "silent", dropped),
    SensorFault("drive", "torque a fifth too large", times(1.2), ("drive_rl", "drive_rr")),
    SensorFault("rack", "2 mm beside", shifted(2e-3), ("q.rack",)),
)
INPUT_FAULTS = ("drive", "rack")


def _rounded(values: Array) -> Array:
    return np.round(values / (np.pi / 20.0)) * (np.pi / 20.0)


@dataclass(frozen=True, eq=False)
class FaultRun:
    """A fault from `begins` (s) on, what the observer reports about its sensors, and how far off it is."""

    fault: SensorFault | None
    begins: float
    findings: tuple[SensorFinding, ...]
    score: Scored

    @property
    def named(self) -> bool:
        """Whether the report is right: the sensor that failed alone; several at once where an input is wrong; none without a fault."""
        names = [f.sensor for f in self.findings]
        if self.fault is None:
            return not names
        return len(names) >= SEVERAL if self.fault.sensor in INPUT_FAULTS else names == [self.fault.sensor]

    def rms(self, quantity: str) -> float:
        return self.score.rms(quantity, self.begins)


def fault_runs(model: Machine, truth: BuggyTruth, seed: int, progress: Progress = silent) -> Iterator[FaultRun]:
    """One run without a fault, then one for each."""
    observer = replace(best_observer(), method=EKF(gate=GATE), edges=False)
    start, begins = standing_start(model), round(BEGINS * float(truth.t[-1]), 2)
    log = truth.log(np.random.default_rng([seed, 5]), model.sensors)
    for fault in tracked((None, *FAULTS), "sensors that fail", progress):
        changed = log if fault is None else fault.applied(log, begins)
        found = observer.observe(model, changed, start)
        yield FaultRun(fault, begins, sensor_findings(found, changed), scored(found, truth))
