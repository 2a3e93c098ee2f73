"""The buggy of paper 003, observed: the drives of its Tables 5 and 6 with three observers, and what they do when something goes wrong.

The model has twice the true rolling resistance, and knows where it starts. Means are over the seeds of the noise.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from veridyn.errors import DataWarning
from veridyn.files.machine.write import model_text
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.chapter5 import TRUE_RESISTANCE, WRONG_RESISTANCE, course_less_yaw
from veridyn.papers.buggy.drive import RATE, BuggyDrive, BuggyTruth, driven
from veridyn.papers.buggy.ground import GROUND_S, START_RAD, GroundRun, coarse_sensors, ground_run, uncertain
from veridyn.papers.buggy.machine import INDEPENDENT, MISALIGNED, buggy
from veridyn.papers.buggy.observers import (
    INPUTS,
    QUANTITIES,
    SLOWEST_COURSE,
    Scored,
    best_observer,
    error_ekf,
    observers,
    run_observers,
    score_plain,
    score_track,
    standing_start,
)
from veridyn.papers.buggy.tracking import SKIP, BuggyTrack
from veridyn.papers.buggy.trials import (
    INPUT_FAULTS,
    MOST_WHOLE_AT_ONCE,
    OUTAGE_S,
    SILENT,
    FaultRun,
    InputRun,
    Outage,
    Workers,
    fault_runs,
    input_run,
    outages,
)
from veridyn.progress import Progress, silent
from veridyn.studies.result import Result, fingerprint

FIRST = 10  # steps
RACKS = {"straight": 0.0, "circular": -0.010}  # m, to the left
MISALIGNED_RACK = 0.004
HEAD_WIND = -200.0  # N
NOT_WHITE = 0.01  # chance below which innovations are not white
YAW_ERROR, GYRO_BIAS, CAUGHT = 0.02, 0.003, 5.0  # rad, rad/s, s
TABLES = {  # rms of the thesis' observer, the worst wheel: Tables 5 and 6
    "straight": {"x": 0.0089, "y": 0.0121, "xd": 0.0451, "yd": 0.0386, "yaw": 0.0048, "yaw_rate": 0.0051,
                 "wheel_angle": 0.0263, "wheel_speed": 0.427},
    "circular": {"x": 0.0120, "y": 0.0133, "xd": 0.0448, "yd": 0.0401, "yaw": 0.0072, "yaw_rate": 0.0042,
                 "wheel_angle": 0.0254, "wheel_speed": 0.432},
}  # fmt: skip
LARGEST = {  # its largest errors there
    "straight": {"x": 0.0338, "y": 0.0352, "xd": 0.1547, "yd": 0.1345, "yaw": 0.0078, "yaw_rate": 0.0140,
                 "wheel_angle": 0.1050, "wheel_speed": 1.651},
    "circular": {"x": 0.0398, "y": 0.0374, "xd": 0.1624, "yd": 0.1356, "yaw": 0.0159, "yaw_rate": 0.0143,
                 "wheel_angle": 0.0973, "wheel_speed": 3.821},
}  # fmt: skip


def real_time_factors(models: Mapping[str, Machine], truth: BuggyTruth, seed: int) -> dict[str, float]:
    """Formulation → model; `real_time_factor_…` of each: seconds of the drive over CPU seconds of the errorEKF."""
    return {f"real_time_factor_{name}": real_time_factor(model, truth, seed) for name, model in models.items()}


def real_time_factor(model: Machine, truth: BuggyTruth, seed: int) -> float:
    """Of one model along one log; making the observer ready, and its first steps, for which code may be compiled, do not count."""
    log = truth.log(np.random.default_rng(seed), model.sensors)
    running, rows, _ = error_ekf().beside(model, log, standing_start(model))
    inputs = np.column_stack([log[name].values for name in INPUTS])
    steps = list(zip(truth.t.tolist(), rows, inputs, strict=True))
    for step in steps[:FIRST]:
        running.step(*step)
    gc.collect()  # what making it ready has left behind
    before = time.process_time()
    for t, readings, acting in steps[FIRST:]:
        running.step(t, readings, acting)
    return float((truth.t[-1] - truth.t[FIRST - 1]) / (time.process_time() - before))


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How much is done: logs of each manoeuvre and seconds of it, further logs for NEES, vehicles without GPS and their seconds.

    `failing`: seconds of the drives in which a sensor fails; `ground`: of the one over uneven ground; `windy`: logs in a head wind.
    """

    logs: int = 10
    duration: float = 20.0
    further: int = 20
    vehicles: int = 20
    outage: float = OUTAGE_S
    silent: tuple[float, float] = SILENT
    failing: float = 10.0
    ground: float = GROUND_S
    windy: int = 5


FULL = Extent()
QUICK = Extent(
    logs=1, duration=8.0, further=2, vehicles=1, outage=24.0, silent=(10.0, 22.0), failing=5.0, ground=8.0, windy=1
)


@dataclass(frozen=True, eq=False)
class BuggyRun:
    """One manoeuvre: the truth, the model left to itself, and the observers by name, each along every log.

    `log` is the first of the logs, and `example` the best observer along it.
    """

    truth: BuggyTruth
    plain: BuggyTruth
    scores: Mapping[str, Sequence[Scored]]
    log: Experiment
    example: BuggyTrack

    def rms(self, observer: str, quantity: str) -> float:
        """The mean over the logs."""
        return float(np.mean([s.rms(quantity) for s in self.scores[observer]]))

    def largest(self, observer: str, quantity: str) -> float:
        return float(np.mean([s.largest(quantity) for s in self.scores[observer]]))

    @cached_property
    def plain_score(self) -> Scored:
        """The model left to itself."""
        return score_plain(self.example.system, self.plain, self.truth)

    def plain_rms(self, quantity: str) -> float:
        return self.plain_score.rms(quantity)

    def plain_largest(self, quantity: str) -> float:
        return self.plain_score.largest(quantity)


@dataclass(frozen=True, eq=False)
class BuggyStudy:
    """Everything that the demonstration found; `figures` as they stand in result.json."""

    extent: Extent
    seeds: tuple[int, ...]
    model: Machine
    runs: Mapping[str, BuggyRun]
    misaligned: BuggyRun
    outages: Sequence[Outage]
    faults: Sequence[FaultRun]
    ground: GroundRun
    braked: InputRun
    printed: Mapping[str, Scored]
    figures: Mapping[str, float]

    def result(self, study: str, seed: int | None) -> Result:
        """In the form that programs rely on."""
        inputs = {"model": fingerprint(model_text(self.model))}
        return Result(study, seed, self.extent != FULL, inputs, self.figures, (), {})


def buggy_study(seed: int, extent: Extent = FULL, progress: Progress = silent) -> BuggyStudy:
    """Logs of each manoeuvre with the seeds `seed`, `seed` + 1, …; NEES and the outage have further seeds of their own."""
    seeds = tuple(range(seed, seed + extent.logs))
    model, duration = buggy(rolling_resistance=WRONG_RESISTANCE), extent.duration
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DataWarning
        )  # of steps that the errorEKF's jumps ask to be shorter; scores tell
        with Workers(progress) as workers:
            crooked = buggy(rolling_resistance=WRONG_RESISTANCE, toe=MISALIGNED)
            askew = BuggyDrive(rack=MISALIGNED_RACK, duration=duration)
            vehicles = range(seed + 2000, seed + 2000 + extent.vehicles)
            straight, circular, misaligned, lost, uneven, braked, wind = workers.together(
                lambda: observed(model, BuggyDrive(rack=RACKS["straight"], duration=duration), seeds, workers),
                lambda: observed(model, BuggyDrive(rack=RACKS["circular"], duration=duration), seeds, workers),
                lambda: observed(crooked, askew, seeds[:1], workers, MISALIGNED),
                lambda: list(outages(vehicles, extent.outage, extent.silent, workers)),
                lambda: ground_run(model, TRUE_RESISTANCE, extent.ground, seed, workers),
                lambda: input_run(model, TRUE_RESISTANCE, duration, seed, workers),
                lambda: _windy(model, duration, seed, extent.windy, workers),
            )
            runs, truth = {"straight": straight, "circular": circular}, circular.truth
            forms = {"tree": model, "natural": model.with_formulation("natural")}
            failed, printed, _, *found = workers.together(
                lambda: list(fault_runs(model, truth.first(extent.failing), seed, workers)),
                lambda: as_printed(model, circular, workers),
                lambda: _compile(forms.values(), truth, workers),
                lambda: _told_exact(model, runs, range(seed + 1000, seed + 1000 + extent.further), workers),
                lambda: _coarse(model, truth, seeds, workers),
                lambda: _caught(model, truth, seeds, workers),
            )
        figures = {**_errors(runs), **_misaligned(misaligned)}
        for one in (*found, wind, _lost(lost), _failed(failed), _uneven(uneven), _measured(braked)):
            figures |= one
        figures |= {f"rms_printed_{name}_{q}": score.rms(q) for name, score in printed.items() for q in QUANTITIES}
        figures |= real_time_factors(forms, truth, seed)
    return BuggyStudy(extent, seeds, model, runs, misaligned, lost, failed, uneven, braked, printed, figures)


def observed(
    model: Machine,
    how: BuggyDrive,
    seeds: Sequence[int],
    workers: Workers,
    toe: Mapping[str, float] | None = None,
) -> BuggyRun:
    """One manoeuvre of the true buggy, observed with a model of the wrong rolling resistance."""
    true, start = buggy(rolling_resistance=TRUE_RESISTANCE, toe=toe), standing_start(model)
    truth, plain = workers.shared(lambda machine: driven(machine, how), (true, model))
    logs = [truth.log(np.random.default_rng(seed), model.sensors) for seed in seeds]

    def work(job: tuple[int, str]) -> tuple[dict[str, Scored], BuggyTrack | None]:
        k, name = job
        every = dict(run_observers(model, logs[k], start, names=(name,)))
        return {word: score_track(one, truth) for word, one in every.items()}, every[name] if job == (
            0,
            "ekf",
        ) else None

    scores: dict[str, list[Scored]] = {}
    examples = []
    for found, example in workers.shared(work, [(k, n) for k in range(len(logs)) for n in observers()]):
        for name, score in found.items():
            scores.setdefault(name, []).append(score)
        examples += [] if example is None else [example]
    return BuggyRun(truth, plain, scores, logs[0], examples[0])


def _compile(models: Iterable[Machine], truth: BuggyTruth, workers: Workers) -> None:
    """Make the code of :func:`real_time_factors` beside other work: what is timed goes alone."""
    for _ in workers.shared(lambda model: real_time_factor(model, truth.first(2 * FIRST / RATE), 0), list(models)):
        pass


def as_printed(model: Machine, run: BuggyRun, workers: Workers) -> dict[str, Scored]:
    """The errorEKF along the first log from a yaw that is wrong and known to be uncertain, with rows as they are and as printed.

    "full": H is the derivative of h; "116": the accelerometer's rows; "89": those of the receiver's position; "both".
    """
    made = {
        "full": error_ekf(),
        "116": error_ekf(accelerometer="attitude"),
        "89": error_ekf(position="place"),
        "both": error_ekf(accelerometer="attitude", position="place"),
    }
    start = standing_start(model)
    start["base.yaw"] += START_RAD

    def work(name: str) -> Scored:
        return score_track(uncertain(made[name]).track(model, run.log, start), run.truth)

    return dict(zip(made, workers.shared(work, tuple(made)), strict=True))


def _measured(run: InputRun) -> dict[str, float]:
    """Errors with exact and with measured inputs."""
    cases = {"exact": run.exact, "measured": run.measured}
    return {
        f"rms_{case}_inputs_{quantity}{'' if name == 'ekf' else f'_{name}'}": score.rms(quantity)
        for case, scores in cases.items()
        for name, score in scores.items()
        for quantity in QUANTITIES
    }


def _errors(runs: Mapping[str, BuggyRun]) -> dict[str, float]:
    found = {}
    for kind, run in runs.items():
        for quantity in QUANTITIES:
            name = f"rms_{kind}_{quantity}"
            found[name] = run.rms("ekf", quantity)
            found |= {f"{name}_{other}": run.rms(other, quantity) for other in run.scores if other != "ekf"}
            found[f"{name}_plain"] = run.plain_rms(quantity)
            name = f"max_{kind}_{quantity}"
            found[name] = run.largest("ekf", quantity)
            found |= {f"{name}_{other}": run.largest(other, quantity) for other in run.scores if other != "ekf"}
            found[f"{name}_plain"] = run.plain_largest(quantity)
    return found


def _misaligned(run: BuggyRun) -> dict[str, float]:
    """Course less yaw, and what the observers make of it."""
    speed = np.hypot(run.truth.qd[:, 0], run.truth.qd[:, 1])
    slowest = min(SLOWEST_COURSE, 0.5 * float(speed.max()))
    found = {"rms_misaligned_course_less_yaw": course_less_yaw(run.truth, slowest)}
    return found | {f"rms_misaligned_yaw_{name}": run.rms(name, "yaw") for name in run.scores}


def _told_exact(model: Machine, runs: Mapping[str, BuggyRun], seeds: range, workers: Workers) -> dict[str, float]:
    """Of the best observer, over further logs of both manoeuvres by turns: NEES, of several logs its standard error, and mean errors.

    The truth has the model's own equations, which the observer assumes: with the error of a model that is not there NEES would be small.
    """
    observer, start, kinds = best_observer(model_error=None), standing_start(model), list(runs)

    def work(k: int) -> Scored:
        truth = runs[kinds[k % len(kinds)]].truth
        log = truth.log(np.random.default_rng([seeds[k], 1]), model.sensors)
        return score_track(observer.track(model, log, start), truth)

    scores = list(workers.shared(work, range(len(seeds))))
    every = [score.nees for score in scores]
    found = {"nees": float(np.mean(every))}
    if len(every) > 1:
        found["nees_sigma"] = float(np.std(every, ddof=1) / np.sqrt(len(every)))
    for j, kind in enumerate(kinds[: len(scores)]):
        for q in QUANTITIES:
            found[f"rms_{kind}_{q}_ekf_exact"] = float(np.mean([s.rms(q) for s in scores[j :: len(kinds)]]))
            found[f"max_{kind}_{q}_ekf_exact"] = float(np.mean([s.largest(q) for s in scores[j :: len(kinds)]]))
    return found


def _coarse(model: Machine, truth: BuggyTruth, seeds: Sequence[int], workers: Workers) -> dict[str, float]:
    """A receiver with a deviation of a metre."""
    found = list(_along(model, truth, seeds, coarse_sensors(model), workers))
    return {f"rms_coarse_gps_{q}": float(np.mean([s.rms(q) for s in found])) for q in ("x", "y", "yaw")}


def _caught(model: Machine, truth: BuggyTruth, seeds: Sequence[int], workers: Workers) -> dict[str, float]:
    """A start whose yaw is wrong, and a gyroscope with a bias that nobody knows."""
    biased = [replace(s, bias_sigma=GYRO_BIAS) if s.name == "gyro" else s for s in model.sensors]
    recorded = [replace(s, bias=GYRO_BIAS) if s.name == "gyro" else s for s in model.sensors]
    observer = best_observer()
    start_sigma = {name: YAW_ERROR if name == "base.yaw" else 1e-5 for name in (*BASE_NAMES, *INDEPENDENT)}
    observer = replace(observer, noise=replace(observer.noise, start=start_sigma))
    start = standing_start(model)
    start["base.yaw"] += YAW_ERROR

    def work(seed: int) -> Scored:
        log = truth.log(np.random.default_rng([seed, 2]), recorded)
        return score_track(observer.track(model, log, start, biased), truth)

    found = list(workers.shared(work, seeds))
    late = min(CAUGHT, 0.5 * float(truth.t[-1]))
    return {"rms_wrong_start_yaw": float(np.mean([s.rms("yaw", late) for s in found]))}


def _along(
    model: Machine, truth: BuggyTruth, seeds: Sequence[int], sensors: Sequence[Sensor], workers: Workers
) -> Iterator[Scored]:
    observer, start = best_observer(), standing_start(model)

    def work(seed: int) -> Scored:
        log = truth.log(np.random.default_rng([seed, 3]), sensors)
        return score_track(observer.track(model, log, start, sensors), truth)

    yield from workers.shared(work, seeds)


def _windy(model: Machine, duration: float, seed: int, logs: int, workers: Workers) -> dict[str, float]:
    """A head wind that no model knows: whether innovations of the GPS along x are white, of its position and of its velocity.

    Of several logs, chances that white noise is so far from a line are combined by Fisher's method; the smaller of the two outputs counts
    twice.
    """
    how, true = BuggyDrive(duration=duration), buggy(rolling_resistance=TRUE_RESISTANCE)
    (truth,) = workers.shared(lambda machine: driven(machine, how, forces={"base.x": HEAD_WIND}), [true])
    start, found = standing_start(model), {}
    recorded = [truth.log(np.random.default_rng([seed, 4, k]), model.sensors) for k in range(logs)]
    names = ("error_ekf", "force")

    def work(job: tuple[str, Experiment]) -> list[float]:
        white = observers()[job[0]].observe(model, job[1], start).whiteness(SKIP)
        return [white[f"{output}.x"].p_value for output in ("gps", "gps_velocity")]

    jobs = [(name, log) for name in names for log in recorded]
    every = list(workers.shared(work, jobs, MOST_WHOLE_AT_ONCE))
    for k, name in enumerate(names):
        chances = zip(*every[k * logs : (k + 1) * logs], strict=True)
        combined = [float(chi2.sf(-2.0 * np.log(some).sum(), 2 * len(some))) for some in chances]
        found[f"chance_if_white_in_wind_{name}"] = min(1.0, 2.0 * min(combined))
        found[f"white_in_wind_{name}"] = float(found[f"chance_if_white_in_wind_{name}"] >= NOT_WHITE)
    return found


def _lost(runs: Sequence[Outage]) -> dict[str, float]:
    ends = np.array([[run.at_end(name) for name in ("base.x", "base.y")] for run in runs])  # (runs, 2, 2)
    return {
        "share_inside_three_sigma_outage": float(np.mean([run.inside for run in runs])),
        "rms_outage_end": float(np.sqrt(np.mean(ends[:, :, 0] ** 2))),
        "sigma_outage_end": float(np.sqrt(np.mean(ends[:, :, 1] ** 2))),
    }


def _failed(runs: Sequence[FaultRun]) -> dict[str, float]:
    """How many faults are reported as what they are; the drive without one has nothing to report."""
    sensors = [run for run in runs if run.fault is not None and run.fault.sensor not in INPUT_FAULTS]
    inputs = [run for run in runs if run.fault is not None and run.fault.sensor in INPUT_FAULTS]
    return {
        "share_sensor_faults_named": float(np.mean([run.named for run in sensors])),
        "share_input_faults_noticed": float(np.mean([run.named for run in inputs])),
        "sensors_named_without_fault": float(sum(len(run.findings) for run in runs if run.fault is None)),
    }


def _uneven(run: GroundRun) -> dict[str, float]:
    """Errors of every observer on uneven ground, the best one's without a name behind, and its NEES; then with a receiver of a metre."""
    found = {}
    for case, scores, after in (("ground", run.scores, 0.0), ("ground_coarse_gps", run.coarse, run.caught)):
        for name, score in scores.items():
            end = "" if name == "ekf" else f"_{name}"
            found |= {f"rms_{case}_{quantity}{end}": score.rms(quantity, after) for quantity in QUANTITIES}
            found |= {f"max_{case}_{quantity}{end}": score.largest(quantity, after) for quantity in QUANTITIES}
        found[f"nees_{case}"] = scores["ekf"].nees
    return found
