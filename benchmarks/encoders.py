"""``python -m benchmarks.encoders``: `vd.observe` with default settings on encoders that hang, that dwell, and that are all there is.

Truth is made here: arms of one and three joints by their own Newton-Euler equations (:mod:`benchmarks.foreign.serial`) along motions that
are given, and two machines that are integrated (:mod:`benchmarks.foreign.small`) with errors that their models are not told of. Logs of
arms last 20 s at 200 Hz, encoders have white noise of 1 mrad, and every second log has measured torques. The only setting is
``ObserveSettings(start="readings")``.

    hung      one of one or of three encoders repeats one value from 10 s on: named of N; its states inside two deviations from there on
    dwells    moves of least jerk with rests between: encoders of 12 to 20 bits, most without any noise, whose joints rest on clocks of
              their own: called hung of N, by a log and by a stream
    clean     three joints, encoders alone
    untold    slider-crank with slider +10 %, damper +60 % and Coulomb 6 N, two links with inertias +5 % and a spring of 8 N*m/rad on the
              second joint, none of which the model has; every second log with measured forces

    nis       mean of the normalised innovations squared (ideal 1)
    rms       of positions, and of rates, over the least of each with a density of forces that is given: 1e-2, 1e-1 … 1e7, one number for
              all of them, ``model_error="off"``; the larger of both ratios
    inside    states (positions and rates) inside two deviations, after half a second

Run k has the seed `seed` + k. ``--workers`` shares the logs out to processes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from benchmarks.foreign import small
from benchmarks.foreign.serial import PENDULUM, THREE_JOINTS, SerialArm, dwelling, waves
from benchmarks.shared_out import shared_out
from veridyn.errors import SimulationError, VeridynWarning
from veridyn.model.experiment import Experiment
from veridyn.observe.hung import HungOutputs
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation
from veridyn.observe.observer_setup import machine_system

Array = NDArray[np.float64]
RATE, SECONDS, HANGS_S, SETTLED_S = 200.0, 20.0, 10.0, 0.5
NOISE, TORQUE_NOISE = 1e-3, 0.05  # rad, N*m
DENSITIES = 10.0 ** np.arange(-2.0, 8.0)
ENCODERS = (
    (12, 0.0),
    (16, 0.0),
    (20, 0.0),
    (16, 3e-5),
    (12, 1e-4),
)  # bits a turn and white noise (rad) of those that dwell
USABLE_NIS, USABLE_RATIO, USABLE_INSIDE = (0.6, 1.4), 1.5, (0.88, 0.99)
NAMED_SHARE, FALSE_SHARE, USABLE_SHARE = 0.98, 0.01, 0.95
COULOMB_N, SPRING, SLIP = 6.0, 8.0, 0.01  # N, N*m/rad, m/s of the rounded sign


@dataclass(frozen=True)
class Outcome:
    """One log: of hung and dwelling encoders whether one was called hung, by a log and by a stream; of the others how well they were
    followed, NaN where that is not asked."""

    kind: str
    seed: int
    named: bool = False
    streamed: bool = False
    nis: float = float("nan")
    ratio: float = float("nan")
    inside: float = float("nan")


@dataclass(frozen=True, eq=False)
class Drive:
    """Times, true coordinates and rates, and the log of them."""

    t: Array
    q: Array
    qd: Array
    log: Experiment


@cache
def model(file: Path) -> vd.Machine:
    return vd.load_model(file)


def recorded(
    arm: SerialArm, t: Array, motion: tuple[Array, Array, Array], y: Array, rng: np.random.Generator | None
) -> Drive:
    """A log of encoders y (N, n), and of torques where there is noise for them."""
    q, qd, qdd = motion
    values = {f"encoder_q{k + 1}": y[:, k] for k in range(q.shape[1])}
    units = dict.fromkeys(values, "rad")
    if rng is not None:
        torques = arm.torques(q, qd, qdd) + TORQUE_NOISE * rng.standard_normal(q.shape)
        values |= {f"force.q{k + 1}": torques[:, k] for k in range(q.shape[1])}
        units |= {name: "N*m" for name in values if name not in units}
    return Drive(t, q, qd, Experiment.from_arrays(t, values, units, arm.file.stem))


def moving(arm: SerialArm, seed: int, torques: bool) -> tuple[Drive, Array, np.random.Generator]:
    """An arm along sums of sines, and its readings."""
    rng, t = np.random.default_rng([seed, 54]), np.arange(round(SECONDS * RATE)) / RATE
    motion = waves(rng, t, len(arm.links), rng.uniform(0.4, 1.3), rng.uniform(0.6, 1.4))
    y = motion[0] + NOISE * rng.standard_normal(motion[0].shape)
    return recorded(arm, t, motion, y, rng if torques else None), y, rng


def observed(file: Path, log: Experiment, **given: object) -> Observation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        return vd.observe(model(file), log, "ekf", vd.ObserveSettings(start="readings", **given))  # type: ignore[arg-type]


def errors_of(found: Observation, drive: Drive, since: float = SETTLED_S) -> tuple[Array, Array]:
    """Errors of coordinates and rates (N, 2n) from a time on, and their stated deviations."""
    late, n = drive.t >= since, 2 * drive.q.shape[1]
    return (found.reduced[:, :n] - np.hstack([drive.q, drive.qd]))[late], found.sigma[late, :n]


def inside_of(errors: Array, sigma: Array) -> float:
    return float(np.mean(np.abs(errors) <= 2.0 * sigma))


def streamed(file: Path, log: Experiment) -> set[str]:
    """The outputs that are called frozen when their readings come one by one."""
    table = machine_system(model(file), vd.ObserveSettings())[0].table
    watch, values = HungOutputs(table), np.column_stack([log[name].values for name in table.names])
    used = np.zeros(len(table.names), dtype=np.int8)
    codes = [watch.flags(row, used, t) for t, row in zip(log[table.names[0]].t.tolist(), values, strict=True)]
    return {table.names[j] for j in np.flatnonzero((np.array(codes) == Status.FROZEN).any(axis=0)).tolist()}


def named(found: Observation) -> set[str]:
    """The sensors that a run's findings call frozen."""
    return {one.place for one in found.findings if one.cause == "frozen"}


def hung(seed: int) -> Outcome:
    arm = THREE_JOINTS if seed % 4 >= 2 else PENDULUM
    drive, y, rng = moving(arm, seed, bool(seed % 2))
    which, row = int(rng.integers(y.shape[1])), round(HANGS_S * RATE)
    y[row:, which] = y[row, which]
    name = f"encoder_q{which + 1}"
    log = drive.log.replacing(replace(drive.log[name], values=y[:, which]))
    found = observed(arm.file, log)
    errors, sigma = errors_of(found, drive, HANGS_S)
    return Outcome(
        "hung",
        seed,
        name in named(found),
        name in streamed(arm.file, log),
        float(found.nis().mean),
        inside=inside_of(errors, sigma),
    )


def dwells(seed: int) -> Outcome:
    """Only the inspection is run: the filter does not change what it says."""
    rng, arm = np.random.default_rng([seed, 55]), THREE_JOINTS if seed % 4 >= 2 else PENDULUM
    t = np.arange(round(SECONDS * RATE)) / RATE
    motion = dwelling(rng, t, len(arm.links), 1.0, (0.6, 2.0), (0.3, 3.0))
    bits, noise = ENCODERS[seed % len(ENCODERS)]
    step = 2.0 * np.pi / 2**bits
    y = step * np.round((motion[0] + noise * rng.standard_normal(motion[0].shape)) / step)
    drive = recorded(arm, t, motion, y, rng if seed % 2 else None)
    given = vd.ProcessNoise(force=100.0, start_force=30.0)
    found = observed(arm.file, drive.log, process_noise=given, model_error="off")
    return Outcome("dwells", seed, bool(named(found)), bool(streamed(arm.file, drive.log)))


def followed(kind: str, seed: int, file: Path, drive: Drive) -> Outcome:
    """Default settings against the best of the given densities."""

    def sizes(errors: Array) -> Array:
        n = errors.shape[1] // 2
        return np.sqrt([np.mean(errors[:, :n] ** 2), np.mean(errors[:, n:] ** 2)])

    try:
        found = observed(file, drive.log)
    except SimulationError:
        return Outcome(kind, seed, nis=math.inf, ratio=math.inf, inside=0.0)  # no result: loud, and not usable
    errors, sigma = errors_of(found, drive)
    best = np.full(2, np.inf)
    for density in DENSITIES.tolist():
        given = vd.ProcessNoise(force=density)
        with suppress(SimulationError):  # a density with which steps do not converge is not the best
            run = observed(file, drive.log, process_noise=given, model_error="off")
            best = np.minimum(best, sizes(errors_of(run, drive)[0]))
    ratio = float((sizes(errors) / best).max())
    return Outcome(kind, seed, nis=float(found.nis().mean), ratio=ratio, inside=inside_of(errors, sigma))


def clean(seed: int) -> Outcome:
    return followed("clean", seed, THREE_JOINTS.file, moving(THREE_JOINTS, seed, False)[0])


def untold(seed: int) -> Outcome:
    name = "slider-crank" if seed % 2 else "two-link arm"
    machine, rng = small.MACHINES[name], np.random.default_rng([seed, 56])
    p = dict(machine.constants)
    if seed % 2:
        p |= {"slider": 1.1 * p["slider"], "rail": 1.6 * p["rail"]}
    else:
        p |= {k: 1.05 * v for k, v in p.items() if k in ("one", "two", "inertia_one", "inertia_two")}
    equations = partial(_with_friction if seed % 2 else _with_spring, machine.equations)
    truth = small.run(replace(machine, equations=equations), p, SECONDS / 2.0, rng)
    values = {
        f"encoder_{c}": truth.q[:, k] + machine.encoder[k] * rng.standard_normal(len(truth.t))
        for k, c in enumerate(machine.coordinates)
    }
    units = dict.fromkeys(values, "rad")
    if seed % 4 >= 2:
        names = ("motor",) if seed % 2 else tuple(f"force.{c}" for c in machine.coordinates)
        for j, force in enumerate(names):
            values[force] = truth.u[:, j] + machine.torque * rng.standard_normal(len(truth.t))
            units[force] = "N*m"
    log = Experiment.from_arrays(truth.t, values, units, name)
    return followed("untold", seed, machine.file, Drive(truth.t, truth.q, truth.qd, log))


def _with_friction(equations: small.Equations, p: Mapping[str, float], q: Array, qd: Array) -> tuple[Array, Array]:
    """The slider rubs with `COULOMB_N`."""
    M, c = equations(p, q, qd)
    r, length = p["l_crank"], p["l_rod"]
    rod = -np.arcsin(r * np.sin(q[0]) / length)
    way = -r * np.sin(q[0]) + np.tan(rod) * r * np.cos(q[0])  # ∂x/∂φ
    return M, c + COULOMB_N * np.tanh(way * qd[0] / SLIP) * way


def _with_spring(equations: small.Equations, p: Mapping[str, float], q: Array, qd: Array) -> tuple[Array, Array]:
    """A spring on the second joint, slack where the motion has its centre."""
    M, c = equations(p, q, qd)
    return M, c + np.array([0.0, SPRING * (q[1] - small.MACHINES["two-link arm"].centre[1])])


KINDS: Mapping[str, Callable[[int], Outcome]] = {"hung": hung, "dwells": dwells, "clean": clean, "untold": untold}


def one(job: tuple[str, int]) -> Outcome:
    return KINDS[job[0]](job[1])


def closing_lines(found: Sequence[Outcome]) -> list[tuple[str, bool]]:
    """A line for each figure with its goal, and whether that is kept."""
    lines: list[tuple[str, bool]] = []

    def add(text: str, kept: bool) -> None:
        lines.append((f"{text}: {'kept' if kept else 'MISSED'}", kept))

    by_kind = {kind: [o for o in found if o.kind == kind] for kind in KINDS}
    if part := by_kind["hung"]:
        count, streams = sum(o.named for o in part), sum(o.streamed for o in part)
        add(f"hung encoders named {count} of {len(part)} (goal ≥ {NAMED_SHARE:.0%})", count >= NAMED_SHARE * len(part))
        add(
            f"hung encoders named in streams {streams} of {len(part)} (goal ≥ {NAMED_SHARE:.0%})",
            streams >= NAMED_SHARE * len(part),
        )
        share = float(np.mean([o.inside for o in part]))
        add(f"states inside 2σ after the hang {share:.3f} (goal ≥ {USABLE_INSIDE[0]:g})", share >= USABLE_INSIDE[0])
    if part := by_kind["dwells"]:
        for word, count in (("", sum(o.named for o in part)), (" in streams", sum(o.streamed for o in part))):
            add(
                f"clean logs with dwells called hung{word} {count} of {len(part)} (goal ≤ {FALSE_SHARE:.0%})",
                count <= FALSE_SHARE * len(part),
            )
    for kind in ("clean", "untold"):
        if part := by_kind[kind]:
            both = sum(USABLE_NIS[0] <= o.nis <= USABLE_NIS[1] and o.ratio <= USABLE_RATIO for o in part)
            nis = sum(USABLE_NIS[0] <= o.nis <= USABLE_NIS[1] for o in part)
            ratio = sum(o.ratio <= USABLE_RATIO for o in part)
            add(
                f"{kind}: NIS .6–1.4 in {nis} of {len(part)}, rms at most 1.5 times the best in {ratio}, both in {both} "
                f"(goal ≥ {USABLE_SHARE:.0%})",
                both >= USABLE_SHARE * len(part),
            )
            share = float(np.mean([o.inside for o in part]))
            add(
                f"{kind}: states inside 2σ, pooled {share:.3f} (goal .88–.99)",
                USABLE_INSIDE[0] <= share <= USABLE_INSIDE[1],
            )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.encoders", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--logs", type=int, default=100, help="of each kind; of those with dwells twice as many")
    parser.add_argument("--seed", type=int, default=54_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args(arguments)
    jobs = [(kind, a.seed + k) for kind in a.kinds for k in range(a.logs * (2 if kind == "dwells" else 1))]
    found = []
    for outcome in shared_out(one, jobs, a.workers):
        found.append(outcome)
        if not a.json:
            print(
                " ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in asdict(outcome).items()),
                flush=True,
            )
    lines = closing_lines(found)
    if a.json:
        print(
            json.dumps(
                {"seed": a.seed, "outcomes": [asdict(o) for o in found], "lines": [text for text, _ in lines]}, indent=1
            )
        )
    else:
        print("\n".join(["", *(text for text, _ in lines)]))
    return 0 if all(kept for _, kept in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
