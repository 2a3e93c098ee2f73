"""Many damaged logs: jobs that may be shared out among processes, and the tables of their outcomes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

from benchmarks.damage import untold
from benchmarks.damage.bench import Bench, Level
from benchmarks.damage.foreign import CLEAN_SUBJECTS, case, clean_bench
from benchmarks.damage.kinds import DAMAGES, Damage
from benchmarks.damage.score import HALF, KINDS, Kind, Outcome, outcome, power, weakest
from benchmarks.damage.simulated import simulated
from benchmarks.foreign.motions import FOURIER
from benchmarks.shared_out import shared_out
from veridyn.identify.diagnosis.structure import LATE_FORCE

Source = Literal["simulated", "foreign"]
STRENGTHS = (1.0, 4.0, 16.0)
DELAYS = ("delay", LATE_FORCE)  # causes that are delays of forces


@dataclass(frozen=True)
class Job:
    """Logs of one kind of damage and one seed: the weakest damage that counts, and stronger ones."""

    source: Source
    kind: str
    seed: int
    level: Level
    strengths: tuple[float, ...] = STRENGTHS
    subject: str = ""
    motion: str = ""


@dataclass(frozen=True)
class Line:
    """One damaged log; `joints`: how many the machine has."""

    kind: str
    bench: str
    strength: float
    joints: int
    outcome: Outcome


@dataclass(frozen=True)
class Clean:
    """One undamaged log, the warnings it raised, and the causes that were named."""

    seed: int
    bench: str
    said: tuple[str, ...]
    motion: str = ""
    causes: tuple[str, ...] = ()


def outcomes(job: Job) -> list[Line]:
    """The damaged logs of a job."""
    if job.source == "simulated":
        return lines_of(simulated(job.seed), next(d for d in DAMAGES if d.name == job.kind), job.level, job.strengths)
    return lines_of(*case(job.kind, job.seed), job.level, job.strengths)


def lines_of(bench: Bench, d: Damage, level: Level, strengths: Sequence[float] = STRENGTHS) -> list[Line]:
    """Outcomes of one damage of a log at several strengths, none beyond the largest size of its kind."""
    first = 1.0 if d.sizes is None else weakest(d, bench)
    largest = 1.0 if d.sizes is None else max(d.sizes[1], first)
    sizes = {min(first * s, largest): s for s in reversed((1.0,) if d.sizes is None else tuple(strengths))}
    joints = len(bench.machine.coordinates)
    return [Line(d.name, bench.name, s, joints, outcome(d, size, bench, level)) for size, s in sorted(sizes.items())]


def clean_jobs(count: int, seed: int, level: Level, motions: Sequence[str]) -> list[Job]:
    """Undamaged logs of each motion and machine in turn."""
    every = [(motion, subject) for subject in CLEAN_SUBJECTS for motion in motions]
    return [
        Job("foreign", "clean", seed + k, level, motion=motion, subject=subject)
        for k, (motion, subject) in zip(range(count), cycle(every), strict=False)
    ]


def clean(job: Job) -> Clean:
    """What an undamaged log raises."""
    if job.source == "simulated":
        bench = simulated(job.seed)
    else:
        bench = clean_bench(job.seed, job.subject, job.motion or FOURIER)
    answer = bench.good(job.level)
    said = (*answer.said, *(str(f) for f in answer.findings if not answer.said))
    return Clean(job.seed, bench.name, said, job.motion, tuple(f.cause for f in answer.findings))


def untold_run(job: Job) -> untold.Untold:
    """One run of a case of :mod:`benchmarks.damage.untold`."""
    return untold.run(job.kind, job.seed, job.level)


def explained(line: Line) -> str:
    """How often tests would find a silent damage."""
    o, joints = line.outcome, line.joints
    odds = [100.0 * power(o.visible, shapes) for shapes in (1, joints, len(DAMAGES) * joints)]
    return (
        f"{o.visible:.2f} deviations visible, found in {odds[0]:.0f} % by a test that knows kind and joint, "
        f"in {odds[1]:.0f} % by one that knows the kind, in {odds[2]:.0f} % by one that knows neither"
    )


def count(found: Sequence[Line], kind: Kind) -> int:
    return sum(line.outcome.kind == kind for line in found)


def print_table(groups: Iterator[tuple[str, list[Line]]], width: int, blame: bool = False) -> list[Line]:
    """Print the outcomes of each kind of damage as they come, and all of them together; `blame`: what was blamed in place of it."""
    print(" " * width + "".join(f"{k:>13}" for k in KINDS), flush=True)
    every: list[Line] = []
    for name, found in groups:
        left = [
            f"    {x.bench}, {x.strength:g} times the weakest ({x.outcome.size:.3g}): {explained(x)}"
            for x in found
            if x.outcome.kind == "silent"
        ]
        if blame:
            left += [f"    {x.bench}: {x.outcome.said[:120]}" for x in found if x.outcome.kind == "warned"]
        print("\n".join([f"{name:{width}}{_counts(found)}", *left]), flush=True)
        every += found
    print(f"{'all':{width}}{_counts(every)}")
    shares = ", ".join(f"{100 * count(every, k) / max(len(every), 1):.1f} % {k}" for k in KINDS)
    print(f"{len(every)} damaged logs: {shares}")
    strict = sum(x.outcome.kind in ("silent", "undetectable") and power(x.outcome.visible, 1) >= HALF for x in every)
    print(
        f"{100 * strict / max(len(every), 1):.1f} % silent where a test that knows the joint as well counts", flush=True
    )
    return every


def _counts(found: Sequence[Line]) -> str:
    return "".join(f"{count(found, k):13d}" for k in KINDS)


def by_kind(jobs: Sequence[Job], workers: int, each: Callable[[Line], None]) -> Iterator[tuple[str, list[Line]]]:
    """Lines of the jobs, those of one kind together: jobs of a kind follow each other. `each` is given every line as it comes."""
    waiting: list[Line] = []
    for job, lines in zip(jobs, shared_out(outcomes, jobs, workers), strict=True):
        for line in lines:
            each(line)
        if waiting and waiting[0].kind != job.kind:
            yield waiting[0].kind, waiting
            waiting = []
        waiting += lines
    if waiting:
        yield waiting[0].kind, waiting


def as_json(record: Any) -> Any:
    """A record for ``--json``: what is no finite number is None."""
    if isinstance(record, dict):
        return {k: as_json(v) for k, v in record.items()}
    if isinstance(record, list | tuple):
        return [as_json(v) for v in record]
    return None if isinstance(record, float) and not math.isfinite(record) else record


def print_summary(lines: Sequence[str]) -> None:
    """The tables of logs that runs with ``--json`` have written, one a line; of several runs, or of such as were stopped."""
    records = [json.loads(line) for line in lines if line.strip()]
    damaged = [
        Line(**{**r["damaged"], "outcome": Outcome(**_numbers(r["damaged"]["outcome"], "visible"))})
        for r in records
        if "damaged" in r
    ]
    kinds = list(dict.fromkeys(x.kind for x in damaged))
    if kinds:
        groups = ((kind, [x for x in damaged if x.kind == kind]) for kind in kinds)
        print_table(groups, max(map(len, kinds)) + 1, blame=True)
    cleared = [Clean(**r["clean"]) for r in records if "clean" in r]
    if cleared:
        print_clean(cleared)
    runs = [untold.Untold(**_numbers(r["untold"], "visible", "mean_square", "worst")) for r in records if "untold" in r]
    if runs:
        print_untold(runs)


def _numbers(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """A record whose numbers by these names may be None: not finite, infinite errors of a log that was refused, and NaN of `visible`."""
    blank = {name: float("nan") if name == "visible" else float("inf") for name in names}
    return {k: blank[k] if k in blank and v is None else v for k, v in record.items()}


def print_clean(found: Sequence[Clean]) -> None:
    """Alarms of undamaged logs, and how many logs raised one; by motion where motions were named."""
    for c in found:
        print("".join(f"    clean log {c.seed}, {c.bench}: {text}\n" for text in c.said), end="")
    for motion in dict.fromkeys(c.motion for c in found if c.motion):
        own = [c for c in found if c.motion == motion]
        print(f"{motion}: {_alarms(own)}")
    print(_alarms(found), flush=True)


def _alarms(found: Sequence[Clean]) -> str:
    delays = sum(any(cause in DELAYS for cause in c.causes) for c in found)
    return f"{sum(bool(c.said) for c in found)} false alarms on {len(found)} clean logs, {delays} with a delay"


def print_untold(runs: Sequence[untold.Untold]) -> None:
    """The table of cases, and the runs that are silently wrong."""
    print(f"{'':16}{'runs':>8}{'wrong':>8}{'cause first':>13}{'silently wrong':>16}{'median z²':>12}")
    for name in dict.fromkeys(r.case for r in runs):
        own = [r for r in runs if r.case == name]
        middle = sorted(r.mean_square for r in own)[len(own) // 2]
        wrong, first, silent = (sum(getattr(r, k) for r in own) for k in ("wrong", "first", "silently_wrong"))
        print(f"{name:16}{len(own):8d}{wrong:8d}{first:13d}{silent:16d}{middle:12.1f}")
        for r in own:
            if r.silently_wrong:
                said = r.said[:110] or "nothing said"
                print(
                    f"    seed {r.seed}: mean z² {r.mean_square:.1f}, worst {r.worst:.1f}, visible {r.visible:.1f}: {said}"
                )
