"""``python -m benchmarks.drives --foreign``: deviations of drives that MuJoCo simulated with known values.

Each seed is a quadruped of its own (:mod:`benchmarks.foreign.quadruped`): drives, commands and noise are drawn, the log is handed to
``identify(machine, log, Drives(kp=…, kd=…))`` with nothing else set. Of numbers that the fit calls determined:

    within_two_sigma   share with |estimate − truth| ≤ 2σ (normal errors: .954; goal .90 to .98)
    within_sigma       the same with σ (.683)
    delay_rms          of the estimates of delays, s (goal 0.2 ms)
    named              whether every number that is not determined is in a direction that the fit names as open

``--halves`` fits the first and the second half of the log of a real quadruped, a Unitree Go2, apart (:func:`halves`).

``--circumstances limit`` (with ``--foreign``) prints held-out errors beside the file's where drives do what the fit is not told of
(:mod:`benchmarks.drives_held_out`).

``--workers N`` shares the quadrupeds out to so many processes.

``--peers`` prints what others make of the log of a real quadruped, beside veridyn (:mod:`benchmarks.drives_peers`).

Kinds of friction take turns from seed to seed unless one is asked for; with friction that is not Coulomb's its numbers are not counted.

:func:`jacobian` is the line of ``python -m benchmarks`` on a real quadruped, a Unitree Go2 (in the folder that VERIDYN_DATA names).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

import veridyn as vd
from benchmarks.clock import best_of
from benchmarks.foreign.quadruped import KD, KP, LEGS, Friction, drawn, machine, recorded
from benchmarks.shared_out import shared_out
from veridyn.errors import IdentificationError, VeridynWarning
from veridyn.identify.drives.drive_group import DriveGroup, groups_of_joints, label_of
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_method import DEFAULT_KEYS
from veridyn.identify.drives.drive_unknowns import drive_unknowns, rung_terms, with_drives
from veridyn.model.experiment import Channel, Experiment

SECONDS = 10.0  # of a log
GO2_KP, GO2_KD, GO2_FITTED_S = 20.0, 1.5, 16.0  # of its owners' configuration; examples/studies/go2.yaml
KINDS: tuple[Friction, ...] = ("coulomb", "uneven")  # in turn


@dataclass(frozen=True)
class Number:
    """An estimate beside its truth."""

    name: str
    key: str
    value: float
    sigma: float
    truth: float
    determined: bool

    @property
    def sigmas(self) -> float:
        return abs(self.value - self.truth) / self.sigma


@dataclass(frozen=True)
class Outcome:
    """One quadruped: numbers with a truth, further terms of friction that were kept, whether what is open is named; `failed`: the error."""

    seed: int
    kind: Friction
    numbers: tuple[Number, ...]
    terms: tuple[str, ...]
    named: bool
    seconds: float
    failed: str = ""


def outcome(seed: int, kind: Friction, seconds: float = SECONDS, legs: Sequence[str] = LEGS) -> Outcome:
    """The fit of one seed, or of some legs of it; `seconds` of the outcome are of the processor, without the simulation."""
    rng = np.random.default_rng(seed)
    truth = drawn(rng, kind)
    log = recorded(truth, seconds, rng)
    with tempfile.TemporaryDirectory() as folder:
        robot = machine(Path(folder), legs)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VeridynWarning)
            fit = vd.identify(robot, log, vd.estimators.Drives(kp=KP, kd=KD))
    except IdentificationError as error:
        return Outcome(seed, kind, (), (), True, time.process_time() - begin, str(error))
    assert isinstance(fit, vd.estimators.DrivesFit)
    taken, true = time.process_time() - begin, truth.named
    numbers = tuple(
        Number(d.name, d.key, d.value, d.sigma, float(true[d.name]), d.determined) for d in fit.drives if d.name in true
    )
    opened = {name for one in fit.open for name in one.names}
    named = all(d.determined or d.name in opened for d in fit.drives)
    return Outcome(seed, kind, numbers, tuple(f"{t.joint} {t.term}" for t in fit.terms if t.kept), named, taken)


def _outcome(job: tuple[int, Friction]) -> Outcome:
    """Of a seed and its kind of friction."""
    return outcome(*job)


@dataclass(frozen=True)
class Summary:
    """Of all quadrupeds with one kind of friction; `far`: the share beyond 3σ."""

    kind: str
    quadrupeds: int
    failed: int
    determined: int
    undetermined: int
    within_two_sigma: float
    within_sigma: float
    far: float
    named: float
    delay_rms: float
    terms: float
    cpu_seconds: float


def summary(kind: str, found: Sequence[Outcome]) -> Summary:
    """Shares over all numbers of the outcomes."""
    fits = [o for o in found if not o.failed]
    numbers = [n for o in fits for n in o.numbers]
    sigmas = np.array([n.sigmas for n in numbers if n.determined])
    late = np.array([n.value - n.truth for n in numbers if n.key == "command_delay"])
    return Summary(
        kind=kind,
        quadrupeds=len(found),
        failed=len(found) - len(fits),
        determined=len(sigmas),
        undetermined=len(numbers) - len(sigmas),
        within_two_sigma=float(np.mean(sigmas <= 2.0)),
        within_sigma=float(np.mean(sigmas <= 1.0)),
        far=float(np.mean(sigmas > 3.0)),
        named=float(np.mean([o.named for o in fits])),
        delay_rms=float(np.sqrt(np.mean(late**2))),
        terms=float(np.mean([len(o.terms) for o in fits])),
        cpu_seconds=float(np.mean([o.seconds for o in found])),
    )


def by_key(found: Sequence[Outcome]) -> dict[str, tuple[int, float]]:
    """Of each kind of number how many were determined, and the share of them within 2σ."""
    numbers = [n for o in found for n in o.numbers if n.determined]
    keys = dict.fromkeys(n.key for n in numbers)
    return {
        key: (len(own), float(np.mean([n.sigmas <= 2.0 for n in own])))
        for key in keys
        if (own := [n for n in numbers if n.key == key])
    }


def lines(found: Sequence[Outcome]) -> list[str]:
    """A table of Markdown, and what was determined of each kind of number."""
    text = [
        "| friction | quadrupeds | not converged | determined | not | within 2σ | 1σ | beyond 3σ | open ones named | delay rms, ms | "
        "further terms | CPU s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    notes = []
    for kind in dict.fromkeys(o.kind for o in found):
        own = [o for o in found if o.kind == kind]
        if all(o.failed for o in own):
            notes.append(f"{kind}: no search converged.")
            continue
        s = summary(kind, own)
        text.append(
            f"| {s.kind} | {s.quadrupeds} | {s.failed} | {s.determined} | {s.undetermined} | {s.within_two_sigma:.3f} | "
            f"{s.within_sigma:.3f} | {s.far:.3f} | {s.named:.2f} | {1e3 * s.delay_rms:.2f} | {s.terms:.1f} | {s.cpu_seconds:.1f} |"
        )
        shares = ", ".join(f"{key} {share:.2f} of {count}" for key, (count, share) in by_key(own).items())
        notes.append(f"{kind}, within 2σ: {shares}.")
    return [*text, "", *notes, *(f"seed {o.seed}: {o.failed}" for o in found if o.failed)]


def jacobian() -> str:
    """Processor seconds of the derivatives of Go2's encoders by every number of its drives and every further term of friction."""
    folder = os.environ.get("VERIDYN_DATA")
    if not folder or not (Path(folder) / "go2" / "go2.xml").exists():
        return (
            "- Derivatives of a quadruped's encoders by its drives: skipped, as VERIDYN_DATA names no folder with go2."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        robot = with_drives(vd.load_model(Path(folder) / "go2" / "go2.xml", base="fixed"), GO2_KP, GO2_KD, 1000.0)
    records = [r.until(GO2_FITTED_S) for r in drive_records(robot, vd.load_log(Path(folder) / "go2" / "encoders.csv"))]
    terms = rung_terms(robot, records)
    larger = robot.with_elements([e for _, e in terms])
    numbers, seconds = 0, 0.0
    for joints in groups_of_joints(robot):
        own = tuple(u for u, _ in terms if u.joints[0] in joints)
        unknowns = (*drive_unknowns(larger, joints, label_of(joints), DEFAULT_KEYS), *own)
        group, x = DriveGroup(larger, joints, unknowns), np.array([u.value(0.0) for u in unknowns])
        seconds += best_of(partial(group.simulate, records[0], x), repeat=3).cpu
        numbers += len(unknowns)
    return (
        f"- Derivatives of the 12 encoders of a Unitree Go2 over {GO2_FITTED_S:g} s, simulated at 1 kHz under its drives, by all {numbers} "
        f"numbers of drives and friction: {seconds:.2f} s of CPU."
    )


@dataclass(frozen=True)
class Agreement:
    """Two fits of the same drives: numbers determined in both, the share of them that agree, and the median deviations over the priors'."""

    compared: int
    share: float
    left: tuple[float, float]
    apart: tuple[str, ...]


def agreement(first: vd.estimators.DrivesFit, second: vd.estimators.DrivesFit) -> Agreement:
    """Numbers agree where they differ by at most two deviations of their difference."""
    others = {d.name: d for d in second.drives}
    pairs = [(d, others[d.name]) for d in first.drives if d.determined and d.name in others]
    pairs = [(a, b) for a, b in pairs if b.determined]
    apart = [(abs(a.value - b.value) / np.hypot(a.sigma, b.sigma), a.name) for a, b in pairs]
    left = [float(np.median([d.left for d in fit.drives])) for fit in (first, second)]
    far = tuple(f"{name} ({z:.1f})" for z, name in sorted(apart, reverse=True) if z > 2.0)
    return Agreement(len(pairs), float(np.mean([z <= 2.0 for z, _ in apart])), (left[0], left[1]), far)


def halves() -> list[str]:
    """Go2's drives from 0 to 8 and from 8 to 16 s: whether they agree, and how much of the priors' deviations is left."""
    folder = Path(os.environ.get("VERIDYN_DATA", "")) / "go2"
    if not (folder / "go2.xml").exists():
        return ["VERIDYN_DATA names no folder with go2."]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        robot, log = vd.load_model(folder / "go2.xml", base="fixed"), vd.load_log(folder / "encoders.csv")
        fits, ends, begin = [], np.linspace(0.0, GO2_FITTED_S, 3), time.process_time()
        for start, end in pairwise(ends.tolist()):
            part = Experiment({n: _cut(c, start, end) for n, c in log.channels.items()}, f"{start:g} to {end:g} s")
            fits.append(vd.identify(robot, part, vd.estimators.Drives(kp=GO2_KP, kd=GO2_KD)))
    seconds, found = time.process_time() - begin, agreement(*fits)
    return [
        f"- Unitree Go2, 0 to 8 s and 8 to 16 s fitted apart: {100.0 * found.share:.1f} % of {found.compared} numbers that both determine "
        f"agree within two deviations (goal 88); median deviation {found.left[0]:.2f} and {found.left[1]:.2f} of the prior's (goal 0.5); "
        f"{seconds:.0f} s of CPU.",
        f"- Apart, in deviations: {', '.join(found.apart) or 'none'}.",
    ]


def _cut(channel: Channel, start: float, end: float) -> Channel:
    """Samples from `start` to `end` s after the first one."""
    own = (channel.t - channel.t[0] >= start) & (channel.t - channel.t[0] < end)
    return replace(channel, t=channel.t[own], values=channel.values[own])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drives", description="Deviations of drives from encoders."
    )
    parser.add_argument("--foreign", action="store_true", help="quadrupeds that MuJoCo simulated")
    parser.add_argument("--halves", action="store_true", help="two halves of the log of a Go2, fitted apart")
    parser.add_argument("--peers", action="store_true", help="MuJoCo with SciPy and mujoco.sysid on the log of a Go2")
    parser.add_argument("--iterations", type=int, default=10, help="of each peer, at most")
    parser.add_argument("--seeds", type=int, default=20, help="how many quadrupeds")
    parser.add_argument("--seed", type=int, default=0, help="the first of their seeds")
    parser.add_argument("--kind", choices=("coulomb", "uneven", "soft"), help="dry friction of all of them")
    parser.add_argument(
        "--circumstances",
        choices=("ideal", "limit", "right", "all"),
        help="held-out errors of fits, and of the file, where drives do what the fit is not told of",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that share in the quadrupeds")
    parser.add_argument("--json", action="store_true", help="every number beside its truth")
    asked = parser.parse_args(arguments)
    if asked.peers:
        from benchmarks.drives_peers import peer_lines

        for line in peer_lines(asked.iterations):
            print(line, flush=True)
        return 0
    if asked.halves:
        print("\n".join(halves()))
        return 0
    if not asked.foreign:
        parser.error("nothing to do: --foreign, --halves or --peers")
    if asked.circumstances:
        from benchmarks.drives_held_out import CIRCUMSTANCES, held_out_lines, one_of

        words = CIRCUMSTANCES if asked.circumstances == "all" else (asked.circumstances,)
        rows = [(seed, word) for word in words for seed in range(asked.seed, asked.seed + asked.seeds)]
        print("\n".join(held_out_lines(list(shared_out(one_of, rows, asked.workers)))))
        return 0
    found = []
    jobs: list[tuple[int, Friction]] = [
        (seed, asked.kind or KINDS[seed % len(KINDS)]) for seed in range(asked.seed, asked.seed + asked.seeds)
    ]
    for one in shared_out(_outcome, jobs, asked.workers):
        found.append(one)
        print(lines(found[-1:])[2], f"{found[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps([asdict(o) for o in found], indent=1))
    else:
        print("\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
