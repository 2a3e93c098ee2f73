"""The page ``docs/papers/chapter5.md``: Tables 5 to 8 of paper 003 on the drives of the thesis, from ``docs/papers/claims.json``.

``python -m docs.thesis_tables`` prints it, and ``python -m docs.claims --run`` writes it; a test holds that the page is what this prints.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from docs.claims_rules import ROOT, Runs, results

from veridyn.papers.buggy import virtual_sensors
from veridyn.papers.buggy.observers import UNITS
from veridyn.papers.buggy.page_sections import REAL_DRIVE, Pair, both
from veridyn.papers.buggy.study import LARGEST, TABLES
from veridyn.report import number

PAGE = ROOT / "docs" / "papers" / "chapter5.md"
SEEDS = range(5)
COMMAND = "python -m benchmarks.claims {case} --seed {seed} --out {{out}}"
OBSERVERS = {
    "plain": "model alone",
    "error_ekf_thesis": "errorEKF, thesis",
    "error_ekf": "errorEKF",
    "force_alone": "forces alone",
    "force": "with forces",
    "ekf": "EKF",
}
WORDS = {
    "load": "load",
    "fx": "force along",
    "fy": "force across",
    "slip": "slip",
    "slip_angle": "slip angle",
    "travel": "travel",
}
# rms and largest error of the thesis' model without observer, of the worst wheel
ALONE_5: Mapping[str, Pair] = {
    "x": (13.515, 30.210), "y": (0.7488, 1.8367), "xd": (1.7441, 3.0190), "yd": (0.1147, 0.2297), "yaw": (0.0004, 0.0011),
    "yaw_rate": (0.0002, 0.0004), "wheel_angle": (52.222, 116.77), "wheel_speed": (6.7427, 11.680),
}  # fmt: skip
ALONE_6: Mapping[str, Pair] = {
    "x": (5.4598, 11.752), "y": (4.7388, 10.106), "xd": (2.2120, 4.9196), "yd": (2.5558, 5.8118), "yaw": (0.3608, 0.5889),
    "yaw_rate": (0.0316, 0.0454), "wheel_angle": (36.929, 68.934), "wheel_speed": (3.6657, 4.5946),
}  # fmt: skip
ALONE_7: Mapping[str, Pair] = {
    "x": (3.6509, 18.915), "y": (3.4061, 18.151), "xd": (1.6717, 9.6530), "yd": (1.6616, 10.348), "yaw": (0.5954, 1.9863),
    "yaw_rate": (0.0663, 0.2041), "wheel_angle": (135.50, 190.63),
}  # fmt: skip
INTRODUCTION = """\
# Chapter 5 of the thesis, as it was driven

Tables 5 to 8 of paper 003, on drives that are those of the thesis as far as it prints them (`veridyn.papers.buggy.chapter5`). The rms
over a drive, and the largest error in brackets, are means over five seeds of noise, of the worst wheel, against the truth of the
simulation. Its vehicle is [another one](vehicle-observer.md), so the columns of the thesis are context. This page is written from
`docs/papers/claims.json` by `python -m docs.thesis_tables`; `make claims` makes its runs again.

- **errorEKF, thesis**: the course over ground is taken for the yaw with a deviation of 1 mrad. The thesis prints none ("N.D." in its
  Table 3), but its error of yaw on the straight drive, 4.8 mrad where its model alone has .4, is that of a filter which follows the course.
- **errorEKF**: the same with 30 mrad, which allows for the sideslip. The course is that of the antenna, which here stands 1.1 m before the
  rear axle: on a circle of 31 m radius it is 35 mrad off the yaw by geometry alone. How far the thesis' antenna stood from its axle is not
  printed; its errors of yaw on the circle, 7.2 mrad, are those of an antenna nearer to the axle, or of a weight in between.
- **forces alone**, **with forces**: Fig. 33, with the model corrected by forces, and with positions and velocities besides.
- **EKF**: exact derivatives, a rolling resistance of each tyre estimated; wheels read at edges, except where their discs vibrate.

## Where the drive is another one than the thesis', and why

- **Vehicle.** The thesis prints no geometry; the buggy is built from public data of another one with the same bodies and freedoms.
- **Misalignment** (Tables 5 and 6). The thesis names hubs that are not straight and gives no angles. Here they are turned so that the rack
  has to stand 4 mm to the right on a straight line, as in its Table 4; the model has the same hubs, since the thesis' truth is its model.
- **Laps** (Tables 7 and 8). The log was never published. Here the buggy stands for ten seconds and drives three clockwise laps of 15 m
  radius on a flat road; the rolling resistance of the model is twice the true one, as in Table 4. The thesis' ground was surveyed: see the
  [uneven ground](vehicle-observer.md#over-uneven-ground). Its errors there are against its sensors, these against the truth.
- **Hall sensors** (Tables 7 and 8). Engine vibrations move the discs of the rear axle before their sensors, standing and driving, by .21
  rad rms, which is the thesis' error of the rear wheels; the observers are told. The frequency, 25 Hz, is chosen.
- **Another engine.** The same four drives in MuJoCo, where the vehicle is not the model: tyres within 10 % of its stiffness, mass within
  2 %, slip at the wheel's centre, soft loops, each seed another vehicle (`benchmarks.claims.foreign_buggy`). The laps end after 110 s,
  when the vehicle of seed 0 has made 2.6 turns. `python -m benchmarks.chapter5 --engines mujoco` draws these drives.
- **Receiver of a metre** (Table 8). "1 metre variance" is taken for a deviation of 1 m. From an exact start it would have nothing to say,
  so the start is uncertain by .5 m and 2°, and errors count from 5 s on. The model alone starts where the vehicle stands.
"""


@dataclass(frozen=True)
class ThesisTable:
    """A table of the thesis: heading, case of :mod:`benchmarks.claims`, errors of its observer and of its model alone."""

    heading: str
    case: str
    observer: Mapping[str, Pair]
    alone: Mapping[str, Pair]


_OBSERVED: Mapping[int, tuple[str, Mapping[str, Pair], Mapping[str, Pair]]] = {
    5: ("Table 5, straight", {q: (TABLES["straight"][q], LARGEST["straight"][q]) for q in UNITS}, ALONE_5),
    6: ("Table 6, circle", {q: (TABLES["circular"][q], LARGEST["circular"][q]) for q in UNITS}, ALONE_6),
    7: ("Table 7, three laps", {q: pairs[0] for q, pairs in REAL_DRIVE.items()}, ALONE_7),
    8: ("Table 8, receiver of 1 m", {q: pairs[1] for q, pairs in REAL_DRIVE.items()}, ALONE_7),
}
THESIS = tuple(ThesisTable(word, f"buggy_table_{k}", *errors) for k, (word, *errors) in _OBSERVED.items())
FOREIGN = tuple(
    ThesisTable(f"{word}, another engine", f"foreign_table_{k}", *errors) for k, (word, *errors) in _OBSERVED.items()
)


def table(of: ThesisTable, runs: Runs) -> list[str]:
    """One table of Markdown, or a line that says that its runs are missing."""
    found = _runs_of(of, runs)
    if not found:
        return [f"{of.heading}: no runs yet."]
    columns = ("thesis, alone", "thesis", *OBSERVERS.values())
    lines = [f"| {of.heading} | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    for q, unit in UNITS.items():
        cells = [both(of.alone.get(q)), both(of.observer.get(q))]
        cells += [_pair(found, f"{q}_{name}") for name in OBSERVERS]
        lines.append(f"| {q.replace('_', ' ')} ({unit}) | " + " | ".join(cells) + " |")
    nees = [_with(found, f"nees_{name}") for name in OBSERVERS]
    if not any(nees):
        return lines
    cells = [f"{_mean(kept, f'nees_{name}'):.2g}" if kept else "–" for name, kept in zip(OBSERVERS, nees, strict=True)]
    lines.append("| NEES per state | – | – | " + " | ".join(cells) + " |")
    for name, word in OBSERVERS.items():
        if 0 < (kept := len(_with(found, f"nees_{name}"))) < len(found):
            lines += [
                "",
                f"“{word}” lost the vehicle in {len(found) - kept} of {len(found)} runs; its means are of the others.",
            ]
    return lines


def _with(found: Sequence[Mapping[str, float]], key: str) -> list[Mapping[str, float]]:
    """The runs that have a figure: an observer that came to a pose which the vehicle cannot have leaves none."""
    return [run for run in found if key in run]


def _pair(found: Sequence[Mapping[str, float]], end: str) -> str:
    kept = _with(found, f"rms_{end}")
    return both((_mean(kept, f"rms_{end}"), _mean(kept, f"max_{end}"))) if kept else "–"


VIRTUAL_LEAD = """\
What no sensor measures is what an observer is for: loads and forces of the tyres, their slips, and the travels of the suspensions, by the
observer's own model from its own state (`veridyn.papers.buggy.virtual_sensors`). The rms error of the worst wheel, and in brackets the
share of samples whose truth lies within two stated deviations (.95 where the band is right). "moves": the deviation of the quantity itself
over the drive. The errorEKF leaves suspensions and tyres to its model and states no deviation of theirs.
"""


def virtual_table(of: ThesisTable, runs: Runs) -> list[str]:
    """Virtual sensors of one drive, or a line that says that its runs are missing."""
    found = _runs_of(of, runs)
    if not found:
        return [f"{of.heading}: no runs yet."]
    observers = {name: word for name, word in OBSERVERS.items() if name not in ("plain", "force_alone")}
    lines = [f"| {of.heading} | moves | " + " | ".join(observers.values()) + " |", "|---" * (2 + len(observers)) + "|"]
    for q, unit in virtual_sensors.UNITS.items():
        cells = [number(_mean(found, f"virtual_changes_{q}"), 2)]
        for name in observers:
            rms, inside = (_mean(found, f"virtual_{what}_{q}_{name}") for what in ("rms", "inside"))
            cells.append(f"{number(rms, 2)} ({inside:.2f})")
        lines.append(f"| {WORDS[q]}{f' ({unit})' if unit else ''} | " + " | ".join(cells) + " |")
    return lines


def _runs_of(of: ThesisTable, runs: Runs) -> list[Mapping[str, float]]:
    return [runs[run].figures for run in (COMMAND.format(case=of.case, seed=seed) for seed in SEEDS) if run in runs]


def _mean(found: Sequence[Mapping[str, float]], key: str) -> float:
    return float(np.mean([figures[key] for figures in found]))


def page(runs: Runs) -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for one in (*THESIS, *FOREIGN):
        minutes = sum(done.minutes for run, done in runs.items() if f" {one.case} " in run)
        lines = "\n".join(table(one, runs))
        parts.append(
            f"\n## {one.heading}\n\n`python -m benchmarks.claims {one.case} --seed 0` to `4`, {minutes:.1f} minutes.\n\n{lines}\n"
        )
    parts.append(f"\n## Virtual sensors\n\n{VIRTUAL_LEAD}")
    parts += ["\n" + "\n".join(virtual_table(one, runs)) + "\n" for one in THESIS[:2]]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page(results()))
