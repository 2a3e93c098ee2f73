"""Trials of the buggy's observers: half a minute without GPS, every sensor failing in turn, and inputs as sensors have them.

Without GPS the buggy drives a circle of a minute with the receiver silent for half of it. Each run draws its vehicle: rolling resistance,
the radius and stiffness of each tyre, and the mass of the chassis. Seeds of sensor noise alone would prove nothing, since the error of dead
reckoning is that of the model. The observer estimates what was drawn, starting from the deviations that the draws have.

When a sensor fails, the observer is asked which one it was. The best observer runs with a gate; wheels are read at every sample, because
one without edges would fall silent at every stop. What is named comes from the innovations alone
(:mod:`veridyn.observe.consistency.findings`). Torque and rack are inputs and have no innovations: a wrong one shows in several
sensors at once.

Paper 003 measures wheel torque, brake pressure and the rack's place (section 4.1.1). The buggy speeds up on a circle, rolls, and brakes.
One torque sensor, on the rear right wheel, stands for both wheels and is wrong by a gain; a pressure sensor stands for all four brakes; a
potentiometer reads the rack, whose rate is that of its command. Each has white noise. The observers have the same logs twice, with exact
inputs and with these, and their settings do not change: what noise of inputs costs each is what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.regression.workers import map_in_order
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.observe.consistency.findings import SEVERAL, SensorFinding, sensor_findings
from veridyn.observe.filters.methods import EKF
from veridyn.observe.process_noise import ProcessNoise
from veridyn.papers.buggy.drive import DRIVES, BuggyDrive, BuggyTruth, brake_channels, driven
from veridyn.papers.buggy.machine import CORNERS, INDEPENDENT, buggy
from veridyn.papers.buggy.observers import (
    MODEL_ERROR,
    REFRESH,
    STANDING_SIGMA,
    BuggyModelError,
    BuggyObserver,
    Scored,
    best_observer,
    run_observers,
    score_track,
    scored,
    standing_start,
)
from veridyn.progress import Progress, silent, usable_threads

OUTAGE_S, SILENT = 60.0, (25.0, 55.0)  # s, of the circle, and when the receiver is silent
FULL, CRUISE, EASED = 100.0, 38.0, 20.0  # N*m on each rear wheel until EASED seconds, and after
RACK = -0.010  # m, to the left
RESISTANCE = (0.010, 0.020)
HALF_WIDTHS = {"UNLOADED_RADIUS": 0.005, "PKX1": 0.10, "PKY1": 0.10}  # of uniform draws, relative
CHASSIS_HALF_WIDTH = 0.02
# Where stiffness and mass are estimated, half of what tyres do otherwise is left: their relaxation, and the place where they slip.
ESTIMATED_ERROR = replace(MODEL_ERROR, planar=MODEL_ERROR.planar / 4.0, slip=MODEL_ERROR.slip / 4.0)
Change = Callable[[Array, Array], Array]  # values from the fault on, and their times since then → what is read instead
FAULT_GATE = 0.9999
MOST_WHOLE_AT_ONCE = (
    4  # whole observations in memory: each of half a gigabyte for 20 s of driving; a track needs a twentieth
)
Job = TypeVar("Job")
Found = TypeVar("Found")
FAULT_BEGINS_SHARE = 0.4  # of the drive: when a sensor fails


class Workers:
    """As many threads as this process may use, which the parts of a study share: none waits for the last job of a part.

    The work is machine code for the most part, and no job sees another's memory: results do not depend on the number of threads.
    """

    def __init__(self, progress: Progress = silent) -> None:
        self._progress, self._lock, self._done, self._total = progress, Lock(), 0, 0
        threads = usable_threads()
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def shared(self, work: Callable[[Job], Found], jobs: Sequence[Job], most: int | None = None) -> Iterator[Found]:
        """work(job) of each job, in order, and at most `most` at once."""
        self._tell(0, len(jobs))
        for found in map_in_order(self._pool, work, jobs, most or len(jobs)):
            self._tell(1, 0)
            yield found

    def together(self, *parts: Callable[[], Any]) -> list[Any]:
        """What each part returns; they hand out their jobs side by side."""
        if self._pool is None:
            return [part() for part in parts]
        with ThreadPoolExecutor(len(parts)) as beside:
            running = [beside.submit(part) for part in parts]
            try:
                return [part.result() for part in running]
            except BaseException:
                self._pool.shutdown(wait=False, cancel_futures=True)  # the other parts end as well
                raise

    def _tell(self, done: int, more: int) -> None:
        with self._lock:
            self._done, self._total = self._done + done, self._total + more
            self._progress("drives and observers of the buggy", float(self._done), float(self._total))


@dataclass(frozen=True, eq=False)
class Outage:
    """One vehicle: errors and deviations of all states along the run, and when the receiver was `silent` (s)."""

    score: Scored
    silent: tuple[float, float] = SILENT

    def at_end(self, state: str) -> tuple[float, float]:
        """Error and deviation of a state when the receiver comes back."""
        k = int(np.searchsorted(self.score.t, self.silent[1])) - 1
        error, sigma = self.score.of(state)
        return float(error[k]), float(sigma[k])

    @property
    def inside(self) -> bool:
        """Whether x and y are within three deviations throughout the silence."""
        gone = (self.score.t >= self.silent[0]) & (self.score.t < self.silent[1])
        pairs = [self.score.of(name) for name in ("base.x", "base.y")]
        return all(bool((np.abs(error[gone]) <= 3.0 * sigma[gone]).all()) for error, sigma in pairs)


def torque_at(t: float) -> float:
    return FULL if t < EASED else CRUISE


def drawn_vehicle(rng: np.random.Generator) -> Machine:
    """A buggy as the workshop may have left it."""
    factors = {
        f"tyre_{c}.{key}": 1.0 + half * float(rng.uniform(-1.0, 1.0))
        for c in CORNERS
        for key, half in HALF_WIDTHS.items()
    }
    return buggy(
        rolling_resistance=float(rng.uniform(*RESISTANCE)),
        tyre_factors=factors,
        chassis_factor=1.0 + CHASSIS_HALF_WIDTH * float(rng.uniform(-1.0, 1.0)),
    )


def outage_observer(machine: Machine, model_error: BuggyModelError | None = ESTIMATED_ERROR) -> BuggyObserver:
    """Exact derivatives; what differs from vehicle to vehicle is estimated with the deviations of the draws.

    `model_error`: what is left beside these; None where the truth has the model's own equations.
    """
    constants = {c.name: c.value for c in machine.constants}
    spread = {"QSY1": (RESISTANCE[1] - RESISTANCE[0]) / np.sqrt(12.0)}
    parameters: dict[str, tuple[float, ...]] = {}
    for c in CORNERS:
        parameters[f"tyre_{c}.QSY1"] = (float(spread["QSY1"]), 0.0, 0.0, 0.1)
        for key, half in HALF_WIDTHS.items():
            parameters[f"tyre_{c}.{key}"] = (abs(constants[f"tyre_{c}.{key}"]) * half / np.sqrt(3.0),)
    mass = float(machine.parameters.values[machine.parameters.index("M_chassis")])
    parameters["M_chassis"] = (mass * CHASSIS_HALF_WIDTH / np.sqrt(3.0),)
    start = {**dict.fromkeys((*BASE_NAMES, *INDEPENDENT), 1e-4), **STANDING_SIGMA}
    rounding = ProcessNoise(start=start, start_rate=1e-4, acceleration=1e-6, start_element=1e-4)
    noise = rounding if model_error is None else model_error.noise()
    return BuggyObserver(word="ekf", method=EKF(refresh=REFRESH), noise=noise, parameters=parameters)


def silenced(log: Experiment, gone: tuple[float, float] = SILENT) -> Experiment:
    """The log without any reading of the receiver between two times."""
    kept = []
    for name in log.names:
        c = log[name]
        if name.startswith("gps"):
            heard = (c.t < gone[0]) | (c.t >= gone[1])
            c = Channel(name, c.t[heard], c.values[heard], c.unit)
        kept.append(c)
    return log.replacing(*kept)


def outages(
    seeds: range, duration: float = OUTAGE_S, gone: tuple[float, float] = SILENT, workers: Workers | None = None
) -> Iterator[Outage]:
    """One run for each seed, of vehicles with the observer's own equations and other numbers, which it estimates."""
    model = buggy(rolling_resistance=float(np.mean(RESISTANCE)))
    observer, start = outage_observer(model, model_error=None), standing_start(model)
    how = BuggyDrive(duration=duration, rack=RACK)

    def work(seed: int) -> Outage:
        rng = np.random.default_rng([seed, 60])
        truth = driven(drawn_vehicle(rng), how, torque=torque_at)
        log = silenced(truth.log(rng, model.sensors), gone)
        return Outage(score_track(observer.track(model, log, start), truth), gone)

    yield from (workers or Workers()).shared(work, seeds)


def frozen(values: Array, _: Array) -> Array:
    return np.full_like(values, values[0])


def dropped(values: Array, _: Array) -> Array:
    return np.full_like(values, np.nan)


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


def fault_runs(model: Machine, truth: BuggyTruth, seed: int, workers: Workers | None = None) -> Iterator[FaultRun]:
    """One run without a fault, then one for each."""
    # The truth has the model's own equations: what the observer reports is a fault, and no error of the model.
    observer = replace(best_observer(model_error=None), method=EKF(gate=FAULT_GATE), edges=False)
    start, begins = standing_start(model), round(FAULT_BEGINS_SHARE * float(truth.t[-1]), 2)
    log = truth.log(np.random.default_rng([seed, 5]), model.sensors)

    def work(fault: SensorFault | None) -> FaultRun:
        changed = log if fault is None else fault.applied(log, begins)
        found = observer.observe(model, changed, start)
        return FaultRun(fault, begins, sensor_findings(found, changed), scored(found, truth))

    yield from (workers or Workers()).shared(work, (None, *FAULTS), MOST_WHOLE_AT_ONCE)


TORQUE, PRESSURE = 200.0, 15.0  # N*m on each rear wheel; bar
EASED_SHARE, BRAKED_SHARE, RELEASED_SHARE = (
    0.60,
    0.70,
    0.90,
)  # shares of the drive: torque until the first, brakes between the others
PRESSED_S = 0.1  # s, in which the pressure rises and falls
# Deviations of the sensors (chosen): a strain gauge of 1 % of 300 N*m whose gain is 2 % wrong, a gauge of 1 % of 20 bar, and a
# potentiometer of a thousandth of a stroke of 0.1 m.
TORQUE_SIGMA, TORQUE_GAIN, PRESSURE_SIGMA, RACK_SIGMA = 3.0, 1.02, 0.2, 1e-4
NAMES = ("error_ekf", "force", "ekf")


@dataclass(frozen=True, eq=False)
class InputRun:
    """The drive with braking, and the scores of the observers with `exact` and with `measured` inputs."""

    truth: BuggyTruth
    exact: Mapping[str, Scored]
    measured: Mapping[str, Scored]


def braking(duration: float, resistance: float) -> BuggyTruth:
    """The drive: speeding up, rolling, braking, rolling."""

    def torque(t: float) -> float:
        return TORQUE if t < EASED_SHARE * duration else 0.0

    def pressure(t: float) -> float:
        up, down = (np.clip((t - share * duration) / PRESSED_S, 0.0, 1.0) for share in (BRAKED_SHARE, RELEASED_SHARE))
        return float(PRESSURE * (up - down))

    how = BuggyDrive(duration=duration, rack=RACK)
    return driven(buggy(rolling_resistance=resistance), how, torque=torque, pressure=pressure)


def with_measured_inputs(log: Experiment, truth: BuggyTruth, rng: np.random.Generator) -> Experiment:
    """The log with torque, pressure and rack as their sensors read them."""
    assert truth.pressure is not None  # of a drive with braking
    count = len(truth.t)
    read = TORQUE_GAIN * truth.torque + TORQUE_SIGMA * rng.standard_normal(count)
    torques = [replace(log[name], values=read) for name in DRIVES]
    brakes = brake_channels(truth.t, truth.pressure + PRESSURE_SIGMA * rng.standard_normal(count))
    rack = replace(log["q.rack"], values=log["q.rack"].values + RACK_SIGMA * rng.standard_normal(count))
    return log.replacing(*torques, *brakes, rack)


def input_run(
    model: Machine, resistance: float, duration: float, seed: int, workers: Workers | None = None
) -> InputRun:
    """One drive, and three observers along both of its logs."""
    rng = np.random.default_rng([seed, 8])
    workers = workers or Workers()
    (truth,), start = workers.shared(lambda seconds: braking(seconds, resistance), [duration]), standing_start(model)
    log = truth.log(rng, model.sensors)
    logs = {"exact": log, "measured": with_measured_inputs(log, truth, rng)}

    def work(job: tuple[str, str]) -> Scored:
        return score_track(dict(run_observers(model, logs[job[0]], start, names=(job[1],)))[job[1]], truth)

    jobs = [(case, name) for case in logs for name in NAMES]
    found = dict(zip(jobs, workers.shared(work, jobs), strict=True))
    exact, measured = ({name: found[case, name] for name in NAMES} for case in logs)
    return InputRun(truth, exact, measured)
