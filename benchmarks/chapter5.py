"""``python -m benchmarks.chapter5 --out DIR``: a report with Figs. 35 to 76 of paper 003, a drive of each of Tables 5 to 8 in two engines.

Each quantity's estimate stands beside the truth and the model left to itself (:mod:`veridyn.papers.buggy.chapter5`), above errors of the
best observer and of the errorEKF in both tunings; rms and largest errors beside the thesis'. One log each, with veridyn's own model as the
vehicle and with MuJoCo's. Options: ``--tables 5 6 7 8``, ``--engines own mujoco``, ``--seed 0``, ``--workers 2``. Tables over seeds:
docs/papers/chapter5.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from docs.thesis_tables import ALONE_5, ALONE_6, ALONE_7, OBSERVERS

from benchmarks.claims.foreign_buggy import observed
from veridyn.errors import VeridynWarning
from veridyn.inference.verdict import Verdict
from veridyn.papers.buggy.chapter5 import error_figures, errors, table_drive, three_laps
from veridyn.papers.buggy.ground import CAUGHT_S
from veridyn.papers.buggy.observers import QUANTITIES, Scored
from veridyn.papers.buggy.page_sections import REAL_DRIVE, Pair, errors_of, table_of
from veridyn.papers.buggy.state_figures import state_figure
from veridyn.papers.buggy.study import LARGEST, TABLES
from veridyn.papers.buggy.tracking import SKIP, BuggyTrack
from veridyn.report import number
from veridyn.report.blocks import Key, Section
from veridyn.report.page import page
from veridyn.studies.result import Result

ENGINES = {"own": "veridyn's model", "mujoco": "MuJoCo"}
QUICK_S = 3.0  # s of each drive, for a test
OTHERS = {"error_ekf_thesis": "errorEKF, thesis", "error_ekf": "errorEKF"}


@dataclass(frozen=True)
class Job:
    """A table of the thesis in an engine."""

    table: int
    engine: str
    seed: int
    quick: bool

    @property
    def kind(self) -> str:
        return {5: "straight", 6: "circular"}.get(self.table, "laps")


HEADINGS = {
    5: "Table 5, straight (Figs. 35–48)",
    6: "Table 6, circle (Figs. 49–62)",
    7: "Table 7, three laps (Figs. 63–72)",
    8: "Table 8, receiver of 1 m (Figs. 73–76)",
}
ALONE: Mapping[int, Mapping[str, Pair]] = {5: ALONE_5, 6: ALONE_6, 7: ALONE_7, 8: ALONE_7}


def printed(table: int) -> Mapping[str, Pair]:
    """The errors of the thesis' observer."""
    if table in (7, 8):
        return {q: pairs[table - 7] for q, pairs in REAL_DRIVE.items()}
    kind = {5: "straight", 6: "circular"}[table]
    return {q: (TABLES[kind][q], LARGEST[kind][q]) for q in QUANTITIES}


def section(job: Job) -> tuple[Section, dict[str, float]]:
    """One drive: its table and its figures; and its errors by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        true, scores, after = _own(job) if job.engine == "own" else _mujoco(job)
    found = [name for name in OBSERVERS if name in scores]
    columns = {"thesis, alone": ALONE[job.table].get, "thesis": printed(job.table).get}
    columns |= {OBSERVERS[name]: errors_of(scores[name], after) for name in found}
    heading = f"{HEADINGS[job.table]}, {ENGINES[job.engine]}"
    others = {word: scores[name] for name, word in OTHERS.items()}
    caption = (
        "Rms, and the largest error in brackets, of the worst wheel, of one log. The thesis drives another vehicle."
    )
    blocks = [
        table_of(columns, caption, last=True),
        state_figure("Estimates and errors", true, scores["plain"], scores["ekf"], others, after=after),
    ]
    figures = {f"table_{job.table}_{job.engine}_{k}": v for k, v in error_figures(scores, after).items()}
    lead = _laps(true, scores["plain"]) if job.kind == "laps" else ""
    return Section(heading, blocks, lead), figures


def _laps(true: np.ndarray, plain: Scored) -> str:
    """How far the vehicle went round: not all of them make three laps in the time that there is."""
    yaw = np.unwrap(true[:, plain.names.index("base.yaw")])
    return f"{abs(yaw[-1] - yaw[0]) / (2.0 * np.pi):.1f} turns in {plain.t[-1] - plain.t[0]:.0f} s."


def _own(job: Job) -> tuple[np.ndarray, Mapping[str, Scored], float]:
    coarse = job.table == 8
    if job.kind == "laps":
        drive = three_laps(duration=QUICK_S) if job.quick else three_laps()
    else:
        drive = table_drive(job.kind, QUICK_S) if job.quick else table_drive(job.kind)
    models = {}

    def seen(name: str, track: BuggyTrack) -> None:
        models[name] = track.system.model

    scores = errors(drive, job.seed, coarse=coarse, seen=seen)
    return drive.truth.reduced(models["ekf"])[SKIP:], scores, CAUGHT_S if coarse and not job.quick else 0.0


def _mujoco(job: Job) -> tuple[np.ndarray, Mapping[str, Scored], float]:
    found = observed(job.seed, job.kind, job.quick, job.table == 8)
    return found.true, found.scores, found.after


def report(sections: Sequence[Section], figures: Mapping[str, float], seed: int, command: str, quick: bool) -> str:
    """The page."""
    result = Result("chapter 5 of paper 003", seed, quick, {}, figures, (), {})
    keys = [Key(str(len(sections)), "drives" if len(sections) > 1 else "drive")]
    for observer, word in (("plain", "model left to itself"), ("ekf", "best observer")):
        found = [value for name, value in figures.items() if name.endswith(f"_rms_x_{observer}")]
        if found:
            keys.append(Key(f"{number(max(found), 2)} m", f"rms of x, {word}, worst drive"))
    findings = (
        "Each drive has one log; docs/papers/chapter5.md has five, with the mean of their errors.",
        "In MuJoCo the vehicle is not the model: tyres within 10 %, mass within 2 %.",
    )
    verdict = Verdict(
        "good", "Figures of chapter 5 of the thesis, on the drives of its Tables 5 to 8.", findings, (), ()
    )
    return page("Chapter 5 of the thesis", verdict, keys, sections, result, command, beside="result.json")


def main(arguments: Sequence[str]) -> int:
    """Write the report and its numbers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chapter5", description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", choices=sorted(HEADINGS), default=sorted(HEADINGS))
    parser.add_argument("--engines", nargs="+", choices=sorted(ENGINES), default=list(ENGINES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="the first seconds of each drive")
    asked = parser.parse_args(arguments)
    jobs = [Job(table, engine, asked.seed, asked.quick) for engine in asked.engines for table in asked.tables]
    with ProcessPoolExecutor(asked.workers) as pool:
        made = list(pool.map(section, jobs))
    figures = {name: value for _, own in made for name, value in own.items() if np.isfinite(value)}  # no NEES in MuJoCo
    asked.out.mkdir(parents=True, exist_ok=True)
    command = f"python -m benchmarks.chapter5 --seed {asked.seed} --out DIR"
    text = report([one for one, _ in made], figures, asked.seed, command, asked.quick)
    (asked.out / "report.html").write_text(text, encoding="utf-8")
    content = {"seed": asked.seed, "figures": figures}
    (asked.out / "result.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(made)} drives: {asked.out / 'report.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
