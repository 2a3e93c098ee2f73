"""``python -m benchmarks.calibration --foreign --observers``: whether an observer's bands hold where another program has made the truth.

The buggy of paper 003 is driven in MuJoCo (:mod:`benchmarks.foreign.buggy`): tyres slip at the wheel's centre, their stiffness is within
10 % of the model's, the mass within 2 %, and the rolling resistance is not the model's .030. Sensors have the noise of the paper. Three
small machines are integrated from their own equations (:mod:`benchmarks.foreign.small`), identified from one log with default settings,
and observed along another with the fitted model and the defaults of ``vd.observe``.

    rms, sigma, inside      of x and y: rms error, median stated deviation, share of the samples within two deviations
    sigma_over_rms          of each, at most 2: bands may not be bought by making them wide
    over_error_ekf          rms over that of the thesis' errorEKF on the same logs
    outages_outside         vehicles that leave three deviations in x or y while the receiver is silent, at most one in twenty
    nees                    of the independent coordinates and their rates, the mean over the runs (ideal 1)

The same machines again with their frictions marked as drifting (30 % within ten minutes): "drifting", friction of the observed log off by
as much since the fit, and "steady", where nothing has drifted and the marks may do no harm.

    nees_unmarked           of the same runs without the marks
    rate_over_unmarked      rms error of the rates over that without the marks

Run k of a case has the seed `seed` + k (2028 by default) for vehicle, motion and noise. Process noise of the buggy's observers was chosen
with seeds 1 to 4; that of the outage's was made smaller after seeds 2028 to 2031, so its fresh seeds begin at 2032.

A run prints its figures when it is done. ``--keep FILE`` writes errors and deviations of every run to a line of a file, with five digits,
and takes from it the runs of the same case and seed that are there: twenty runs can be made in pieces and judged together.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from benchmarks.foreign.buggy import Drive, Manoeuvre, MujocoBuggy, Vehicle
from benchmarks.foreign.small import MACHINES, Run, SmallMachine
from benchmarks.foreign.small import run as integrated
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.parameters import Drift
from veridyn.observe.observation import Observation
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import BuggyObserver, best_observer, error_ekf, standing_start
from veridyn.papers.buggy.trials import outage_observer

Array = NDArray[np.float64]
FULL_RUNS, QUICK_RUNS, SEED = 20, 4, 2028
WRONG_RESISTANCE, MEAN_RESISTANCE = 0.030, 0.015  # of the models; vehicles have .010 to .020
SKIP = 20  # samples left out at the start, as in the tables of paper 003
STEERED = -0.010  # m, rack to the left
SLALOM = ((2.0, STEERED), (6.0, -STEERED), (10.0, STEERED), (14.0, -STEERED), (18.0, 0.0))
MUTED = (25.0, 55.0)  # s, of the outage
FULL_TORQUE, CRUISE, EASED = 100.0, 38.0, 20.0  # N*m until EASED seconds, and after: a steady speed
PLACE = ("x", "y")
SPREAD = 0.1  # of the small machines' constants
FIT_S, OBSERVED_S, BEGIN_S = 20.0, 8.0, 0.5  # s, of the two logs, and when NEES begins to count
NEES_EVERY = 5  # samples
DRIFT, DRIFT_S = 0.3, 600.0  # of frictions within so many seconds, where they drift
UNITS = {
    "gps": "m", "gps_velocity": "m/s", "gyro": "rad/s", "accelerometer": "m/s^2", "q": "m", "qd": "m/s", "qdd": "m/s^2",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Followed:
    """One run of one observer: errors and stated deviations (N, k) of named quantities at times t (N,), and the NEES of some cases."""

    t: Array
    names: tuple[str, ...]
    errors: Array
    sigma: Array
    nees: float = float("nan")

    def between(self, begin: float, end: float) -> Followed:
        """The part of it from `begin` until before `end` (s)."""
        part = (self.t >= begin) & (self.t < end)
        return Followed(self.t[part], self.names, self.errors[part], self.sigma[part], self.nees)


Outcome = tuple[Followed, ...]
Figures = dict[str, float]
Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Case:
    """What is run with one seed, what is made of all runs, and the limits that the figures keep."""

    run: Callable[[int], Outcome]
    figures: Callable[[Sequence[Outcome]], Figures]
    limits: Limits


@dataclass(frozen=True)
class Calibration:
    """The `figures` of a case over `runs` runs; `missed`: those outside their limits."""

    case: str
    runs: int
    figures: Figures
    limits: Limits
    missed: tuple[str, ...]
    seconds: float

    @property
    def within(self) -> bool:
        return not self.missed


def cruising(t: float) -> float:
    return FULL_TORQUE if t < EASED else CRUISE


MANOEUVRES: dict[str, Manoeuvre] = {
    "straight": Manoeuvre(20.0),
    "circle": Manoeuvre(20.0, ((0.0, STEERED),)),
    "slalom": Manoeuvre(20.0, SLALOM),
    "outage": Manoeuvre(60.0, ((0.0, STEERED),), torque=cruising, muted=MUTED),
}


def driven(how: Manoeuvre, seed: int) -> tuple[Drive, Experiment]:
    """A vehicle of this seed in MuJoCo, and its log."""
    rng = np.random.default_rng([seed, 36])
    drive = MujocoBuggy(Vehicle.drawn(rng)).drive(how)
    channels = [Channel(name, t, values, unit_of(name)) for name, (t, values) in drive.readings(rng).items()]
    channels += [Channel(name, drive.t, values, unit_of(name)) for name, values in drive.inputs.items()]
    return drive, Experiment({c.name: c for c in channels}, "buggy in MuJoCo")


def unit_of(channel: str) -> str:
    """The unit of a channel of the buggy's log."""
    word = channel.split(".")[0]
    return UNITS.get(word, "rad" if word.startswith("angle") else "N*m")


@cache
def model(resistance: float) -> tuple[vd.Machine, dict[str, float]]:
    """The model of an observer, and where it stands."""
    machine = buggy(rolling_resistance=resistance)
    return machine, standing_start(machine)


def followed(observer: BuggyObserver, resistance: float, drive: Drive, log: Experiment) -> Followed:
    """x and y of an observer along a log."""
    machine, start = model(resistance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vd.errors.VeridynWarning)  # whether bands hold is counted, whatever is reported
        found = observer.observe(machine, log, start)
    at = [found.states.index(f"base.{name}") for name in PLACE]
    errors = found.reduced[:, at] - drive.place[:, :2]
    return Followed(drive.t[SKIP:], PLACE, errors[SKIP:], found.sigma[SKIP:, at])


def best_along(how: Manoeuvre, seed: int) -> Outcome:
    drive, log = driven(how, seed)
    return (followed(best_observer(), WRONG_RESISTANCE, drive, log),)


def best_and_thesis(how: Manoeuvre, seed: int) -> Outcome:
    drive, log = driven(how, seed)
    return tuple(followed(one, WRONG_RESISTANCE, drive, log) for one in (best_observer(), error_ekf()))


def through_outage(how: Manoeuvre, seed: int) -> Outcome:
    drive, log = driven(how, seed)
    machine, _ = model(MEAN_RESISTANCE)
    return (followed(outage_observer(machine), MEAN_RESISTANCE, drive, log),)


def bands(runs: Sequence[Outcome]) -> Figures:
    """Of the first observer of each run, all samples together."""
    out: Figures = {}
    for k, name in enumerate(runs[0][0].names):
        errors, sigma = (np.concatenate([getattr(one[0], part)[:, k] for one in runs]) for part in ("errors", "sigma"))
        rms, median = float(np.sqrt(np.mean(errors**2))), float(np.median(sigma))
        out |= {f"rms_{name}": rms, f"sigma_{name}": median, f"sigma_over_rms_{name}": median / rms}
        out[f"inside_{name}"] = float(np.mean(np.abs(errors) <= 2.0 * sigma))
    return out


def against_thesis(runs: Sequence[Outcome]) -> Figures:
    """The bands, and rms errors over those of the second observer."""
    second = bands([one[1:] for one in runs])
    own = bands(runs)
    return own | {f"over_error_ekf_{name}": own[f"rms_{name}"] / second[f"rms_{name}"] for name in PLACE}


def silence(runs: Sequence[Outcome], muted: tuple[float, float] = MUTED) -> Figures:
    """How many leave three deviations while the receiver is silent, and errors and deviations at its end, x and y together."""
    quiet = [one[0].between(*muted) for one in runs]
    outside = [bool((np.abs(one.errors) > 3.0 * one.sigma).any()) for one in quiet]
    rms = float(np.sqrt(np.mean([one.errors[-1] ** 2 for one in quiet])))
    sigma = float(np.median([one.sigma[-1] for one in quiet]))
    ends = {"rms_end": rms, "sigma_end": sigma, "sigma_over_rms_end": sigma / rms}
    return {"outages_outside": float(sum(outside)), **ends}


def fitted_and_observed(machine: SmallMachine, seed: int) -> Outcome:
    """Identified from one log, observed along another, both with defaults."""
    model, truth, log = fitted(machine, seed, 0.0)
    return (observed(machine, model, truth, log),)


def with_drifting_friction(machine: SmallMachine, drift: float, seed: int) -> Outcome:
    """The same with frictions that have drifted since the fit, by a normal factor of this relative size; with their marks, and without."""
    model, truth, log = fitted(machine, seed, drift)
    p = model.parameters
    marks = {
        e.parameter_name: Drift(DRIFT * p[e.parameter_name], DRIFT_S) for e in model.elements if e.kind == "damper"
    }
    marked = model.with_parameters(p.drifting(marks)).with_uncertainty(model.uncertainty)
    return observed(machine, marked, truth, log), observed(machine, model, truth, log)


def fitted(machine: SmallMachine, seed: int, drift: float) -> tuple[vd.Machine, Run, Experiment]:
    """The machine identified from one log, the motion that is observed, and its log."""
    rng = np.random.default_rng([seed, 36])
    constants = machine.drawn(rng, SPREAD)
    training = logged(machine, integrated(machine, constants, FIT_S, rng), rng, "q.{}")
    if drift:
        own = np.random.default_rng([seed, 37])
        for name in machine.frictions:
            constants[name] *= 1.0 + drift * float(np.clip(own.standard_normal(), -2.0, 2.0))
    truth = integrated(machine, constants, OBSERVED_S, rng)
    log = logged(machine, truth, rng, "encoder_{}")
    rows = "actuated" if len(machine.driven) == len(machine.coordinates) else "all"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vd.errors.VeridynWarning)
        return vd.identify(vd.load_model(machine.file), training, "wls", rows=rows).machine(), truth, log


def observed(machine: SmallMachine, model: vd.Machine, truth: Run, log: Experiment) -> Followed:
    """The model along the log, with defaults, against the true motion."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vd.errors.VeridynWarning)
        found = vd.observe(model, log, "ekf")
    assert isinstance(found, Observation)
    names = (*machine.coordinates, *(f"{name}_dot" for name in machine.coordinates))
    at = np.array([found.states.index(name) for name in names])
    late = np.flatnonzero(truth.t >= BEGIN_S)
    true = np.hstack([truth.q, truth.qd])[late]
    errors = found.reduced[np.ix_(late, at)] - true
    system, track = found.system, found.track
    squares = [
        e @ np.linalg.solve(system.reported(track.x[k], track.P[k])[np.ix_(at, at)], e) / len(at)
        for k, e in list(zip(late.tolist(), errors, strict=True))[::NEES_EVERY]
    ]
    return Followed(truth.t[late], names, errors, found.sigma[np.ix_(late, at)], float(np.mean(squares)))


def logged(machine: SmallMachine, truth: Run, rng: np.random.Generator, channel: str) -> Experiment:
    """Encoders, under the name that `channel` makes of a coordinate's, and the torque or force of the motors, with their noise."""
    values, units = {}, {}
    for k, name in enumerate(machine.coordinates):
        values[channel.format(name)] = truth.q[:, k] + machine.encoder[k] * rng.standard_normal(len(truth.t))
        units[channel.format(name)] = "m" if name == "x" else "rad"
    for j, k in enumerate(machine.driven):
        name = machine.coordinates[k]
        values[f"force.{name}"] = truth.u[:, j] + machine.torque * rng.standard_normal(len(truth.t))
        units[f"force.{name}"] = "N" if name == "x" else "N*m"
    return Experiment.from_arrays(truth.t, values, units, machine.file.stem)


def consistency(runs: Sequence[Outcome]) -> Figures:
    return {"nees": float(np.mean([one[0].nees for one in runs])), **bands(runs)}


def against_unmarked(runs: Sequence[Outcome]) -> Figures:
    """The bands with the marks, and errors of rates over those without them."""
    rates = len(runs[0][0].names) // 2
    with_marks, without = (np.mean([np.mean(one[k].errors[:, rates:] ** 2) for one in runs]) for k in (0, 1))
    return {
        **consistency(runs),
        "nees_unmarked": float(np.mean([one[1].nees for one in runs])),
        "rate_over_unmarked": float(np.sqrt(with_marks / without)),
    }


HELD = {f"inside_{n}": (0.88, 1.0) for n in PLACE} | {f"sigma_over_rms_{n}": (0.0, 2.0) for n in PLACE}
NEAR = {f"rms_{n}": (0.0, 0.005) for n in PLACE}
CASES: dict[str, Case] = {
    f"buggy, {name}": Case(partial(best_along, MANOEUVRES[name]), bands, {**NEAR, **HELD})
    for name in ("straight", "circle")
}
CASES |= {
    "buggy, slalom": Case(
        partial(best_and_thesis, MANOEUVRES["slalom"]),
        against_thesis,
        {f"over_error_ekf_{n}": (0.0, 1.05) for n in PLACE},
    ),
    "buggy, outage": Case(
        partial(through_outage, MANOEUVRES["outage"]),
        silence,
        {"outages_outside": (0.0, 1.0), "sigma_over_rms_end": (0.0, 2.0)},
    ),
}
CASES |= {
    f"fitted, {name}": Case(partial(fitted_and_observed, machine), consistency, {"nees": (0.75, 1.35)})
    for name, machine in MACHINES.items()
}
CASES |= {
    f"{word}, {name}": Case(
        partial(with_drifting_friction, machine, drift),
        against_unmarked,
        {"nees": (0.75, 1.35), "rate_over_unmarked": (0.0, 1.05)},
    )
    for word, drift in (("drifting", DRIFT), ("steady", 0.0))
    for name, machine in MACHINES.items()
}


def calibrate(name: str, case: Case, runs: int, seed: int, keep: Path | None = None) -> Calibration:
    """One case with the seeds `seed`, `seed` + 1, …; those that the file `keep` holds are not run again."""
    begin = time.perf_counter()
    done = {} if keep is None else kept(keep, name)
    for one in range(seed, seed + runs):
        if one in done:
            continue
        started = time.perf_counter()
        done[one] = case.run(one)
        if keep is not None:
            append(keep, name, one, done[one])
        print(run_line(name, one, case, done[one], time.perf_counter() - started), file=sys.stderr, flush=True)
    figures = case.figures([done[k] for k in range(seed, seed + runs)])
    missed = tuple(n for n, (low, high) in case.limits.items() if not low <= figures[n] <= high)
    return Calibration(name, runs, figures, dict(case.limits), missed, time.perf_counter() - begin)


def run_line(name: str, seed: int, case: Case, outcome: Outcome, seconds: float) -> str:
    """What one run showed of the figures that have limits."""
    figures = case.figures([outcome])
    found = ", ".join(f"{n} {figures[n]:.3g}" for n in case.limits)
    return f"{name}, seed {seed}: {found}; {seconds:.0f} s"


def append(file: Path, name: str, seed: int, outcome: Outcome) -> None:
    """A line begins where the one before it ends, or was cut short."""

    def rows(values: Array) -> list[list[float]]:
        return [[float(f"{x:.5g}") for x in row] for row in np.atleast_2d(values).tolist()]

    followed = [
        {
            "t": rows(one.t)[0],
            "names": one.names,
            "errors": rows(one.errors),
            "sigma": rows(one.sigma),
            "nees": one.nees,
        }
        for one in outcome
    ]
    with file.open("a", encoding="utf-8") as out:
        out.write("\n" + json.dumps({"case": name, "seed": seed, "followed": followed}))


def kept(file: Path, name: str) -> dict[int, Outcome]:
    """Seed → outcome of the runs of a case that a file holds; a line that was cut short counts for nothing."""
    done: dict[int, Outcome] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if one["case"] == name:
            done[one["seed"]] = tuple(
                Followed(np.array(f["t"]), tuple(f["names"]), np.array(f["errors"]), np.array(f["sigma"]), f["nees"])
                for f in one["followed"]
            )
    return done


def table(found: Iterable[Calibration]) -> list[str]:
    """The figures that have limits as a table of Markdown."""
    lines = ["| case | runs | figure | found | limit | kept |", "|---|---:|---|---:|---|---|"]
    for one in found:
        for name, (low, high) in one.limits.items():
            limit = f"{low:g} to {high:g}" if low > 0.0 else f"at most {high:g}"
            kept = "no" if name in one.missed else "yes"
            lines.append(f"| {one.case} | {one.runs} | {name} | {one.figures[name]:.3g} | {limit} | {kept} |")
    return lines


def report(names: Sequence[str], runs: int, seed: int, as_json: bool, keep: Path | None = None) -> int:
    """Run the cases `names` and print what they showed; 1 where a limit is missed."""
    found = []
    for name in names:
        found.append(calibrate(name, CASES[name], runs, seed, keep))
        print("\n".join(table(found[-1:])[2:]), f"{found[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    if as_json:
        cases = [{**asdict(one), "within": one.within} for one in found]
        print(json.dumps({"seed": seed, "quick": runs < FULL_RUNS, "cases": cases}, indent=1))
    else:
        print("\n".join(table(found)))
    return 0 if all(one.within for one in found) else 1
