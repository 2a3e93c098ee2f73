"""``python -m benchmarks.buggy_tables [RUNS]``: Tables 5 to 8 of paper 003 on a buggy of another engine.

The truth is driven in MuJoCo (:mod:`benchmarks.foreign.buggy`): tyres slip at the wheel's centre, their stiffness is within 10 % of the
model's and the mass within 2 %, loops are soft, and the rolling resistance is not the model's .030. The observers are those of
``veridyn demo buggy``. The two last tables are three turns on flat ground in place of the thesis' real drive, the last with a receiver of a
metre from a start that is uncertain by .5 m and 2 degrees, whose errors count from 5 s on. Run k has the seed 3100 + k for vehicle, noise
and start; rms and largest errors are means over the runs, of the worst wheel.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from benchmarks.calibration_observers import SKIP, SLALOM, STEERED, WRONG_RESISTANCE, driven, model
from benchmarks.foreign.buggy import NOISE, Drive, Manoeuvre
from veridyn.model.experiment import Experiment
from veridyn.papers.buggy.ground import CAUGHT_S, COARSE_GPS, coarse_sensors, drawn_start, uncertain
from veridyn.papers.buggy.machine import CORNERS
from veridyn.papers.buggy.observers import QUANTITIES, UNITS, best_observer, error_ekf, force_observer
from veridyn.papers.buggy.page_sections import REAL_DRIVE
from veridyn.papers.buggy.study import LARGEST, TABLES

Array = NDArray[np.float64]
Pair = tuple[float, float]  # rms and largest error
SEED, RUNS = 3100, 3
OBSERVERS = {"errorEKF": error_ekf, "with forces": force_observer, "EKF": best_observer}


@dataclass(frozen=True)
class Case:
    """A drive, whether the receiver has a deviation of a metre and the start is uncertain, and the thesis' errors."""

    how: Manoeuvre
    coarse: bool
    thesis: Mapping[str, Pair]


CASES = {
    "Table 5, straight": Case(
        Manoeuvre(20.0), False, {q: (TABLES["straight"][q], LARGEST["straight"][q]) for q in UNITS}
    ),
    "Table 6, circle": Case(
        Manoeuvre(20.0, ((0.0, STEERED),)), False, {q: (TABLES["circular"][q], LARGEST["circular"][q]) for q in UNITS}
    ),
    "Table 7, three turns": Case(Manoeuvre(20.0, SLALOM), False, {q: both[0] for q, both in REAL_DRIVE.items()}),
    "Table 8, receiver of 1 m": Case(Manoeuvre(20.0, SLALOM), True, {q: both[1] for q, both in REAL_DRIVE.items()}),
}


def true_states(drive: Drive) -> dict[str, Array]:
    """What happened by the names of an observer's states; speeds of wheels are differences of their exact angles."""
    found = {"base.x": drive.place[:, 0], "base.y": drive.place[:, 1], "base.yaw": drive.yaw, "base.wz": drive.yaw_rate}
    found |= {"base.vx": drive.velocity[:, 0], "base.vy": drive.velocity[:, 1]}
    for c in CORNERS:
        angle = drive.exact[f"angle_{c}"]
        found |= {f"spin_{c}": angle, f"spin_{c}_dot": np.gradient(angle, drive.t)}
    return found


def roughened(log: Experiment, rng: np.random.Generator) -> Experiment:
    """The log of a receiver of a metre: its own noise, and more."""
    more = float(np.sqrt(COARSE_GPS**2 - NOISE["gps"] ** 2))
    channels = [log[f"gps.{axis}"] for axis in "xyz"]
    return log.replacing(*(replace(c, values=c.values + more * rng.standard_normal(len(c))) for c in channels))


def errors(case: Case, seed: int) -> dict[str, dict[str, Pair]]:
    """Observer → quantity → rms and largest error along one log."""
    rng = np.random.default_rng([seed, 39])
    drive, log = driven(case.how, seed)
    machine, start = model(WRONG_RESISTANCE)
    if case.coarse:
        log, machine, start = (
            roughened(log, rng),
            machine.with_sensors(coarse_sensors(machine)),
            drawn_start(start, rng),
        )
    late = np.arange(len(drive.t)) >= (np.searchsorted(drive.t, CAUGHT_S) if case.coarse else SKIP)
    true, out = true_states(drive), {}
    for name, make in OBSERVERS.items():
        observer = uncertain(make()) if case.coarse else make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", vd.errors.VeridynWarning)  # whatever is reported, errors are counted
            found = observer.observe(machine, log, start)
        out[name] = {
            q: _worst([(found.reduced[:, found.states.index(n)] - true[n])[late] for n in names])
            for q, names in QUANTITIES.items()
        }
    return out


def _worst(each: Sequence[Array]) -> Pair:
    return max(float(np.sqrt(np.mean(e**2))) for e in each), max(float(np.abs(e).max()) for e in each)


def table(name: str, case: Case, runs: Sequence[Mapping[str, Mapping[str, Pair]]]) -> list[str]:
    """One table of Markdown: rms, and the largest error in brackets."""
    lines = [f"| {name} | thesis | " + " | ".join(OBSERVERS) + " |", "|---" * (2 + len(OBSERVERS)) + "|"]
    for q, unit in UNITS.items():
        cells = [_cell(case.thesis.get(q))]
        cells += [_cell(tuple(np.mean([run[who][q] for run in runs], axis=0).tolist())) for who in OBSERVERS]
        lines.append(f"| {q.replace('_', ' ')} ({unit}) | " + " | ".join(cells) + " |")
    return lines


def _cell(pair: Pair | None) -> str:
    return "–" if pair is None else f"{pair[0]:.2g} ({pair[1]:.2g})"


def main(arguments: Sequence[str]) -> int:
    """Print all four tables."""
    count = int(arguments[0]) if arguments else RUNS
    for name, case in CASES.items():
        print("\n".join(table(name, case, [errors(case, SEED + k) for k in range(count)])), "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
