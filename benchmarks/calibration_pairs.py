"""``python -m benchmarks.calibration --pairs``: two logs of one real machine, each identified by itself with default deviations.

Nobody knows the true parameters of a real machine, but both logs are of the same one: d = χ̂₁ − χ̂₂ has the covariance C = C₁ + C₂. Of p
parameters:

    inside_two_sigma   share with |d_k| ≤ 2 √C_kk (normal errors: .954; at least .88)
    median             median of |d_k|/√C_kk (.67; .4 to 1)
    joint              dᵀ C⁻¹ d / p (1; at most 3)

Machines are those of studies in examples/studies, by weighted least squares. "study": signals and sampling of the study file, in which
a log may have to be mended first; "plain": ``identify(machine, log)`` and nothing else. Bands, signals and logs are fixed, and no
choice is made with these logs: what is learned from them could not be tested on them.

Data: the folder that VERIDYN_DATA names.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from benchmarks.calibration_foreign import joint_square
from veridyn.errors import VeridynWarning
from veridyn.identify.pipeline.recording import plain
from veridyn.identify.result import Fit
from veridyn.studies.config.identify import IdentifyFile
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.identify import pipeline_of
from veridyn.studies.run.machine import study_machine
from veridyn.studies.run.recordings import Recordings

Array = NDArray[np.float64]
STUDIES = Path(__file__).resolve().parents[1] / "examples" / "studies"
LEAST_INSIDE, MEDIAN, LARGEST_JOINT = 0.88, (0.4, 1.0), 3.0
SAME_GROUP = 1e-6  # largest difference of coefficients with which two fits group parameters alike


@dataclass(frozen=True)
class Pair:
    """Two logs of a `study`: numbers of its training logs and the share of each that is taken; `prepared`: as the study does."""

    study: str
    logs: tuple[tuple[int, float, float], tuple[int, float, float]]
    prepared: bool = True


WHOLE = ((0, 0.0, 1.0), (1, 0.0, 1.0))
HALVES = ((0, 0.0, 0.5), (0, 0.5, 1.0))
PAIRS = {
    "KUKA, study": Pair("kuka", WHOLE),
    "UR10e, study": Pair("ur10e", WHOLE),
    "Panda, study": Pair("panda", HALVES),
    "KUKA, plain": Pair("kuka", WHOLE, prepared=False),
    "UR10e, plain": Pair("ur10e", WHOLE, prepared=False),
}


@dataclass(frozen=True)
class Agreement:
    """What a pair showed: of `parameters` that both fits have in common, `left_out` of them grouped otherwise by one; `seconds` of both."""

    pair: str
    parameters: int
    left_out: int
    inside_two_sigma: float
    median: float
    joint: float
    seconds: float

    @property
    def within(self) -> bool:
        """Whether it keeps the bands."""
        median = MEDIAN[0] <= self.median <= MEDIAN[1]
        return self.inside_two_sigma >= LEAST_INSIDE and median and self.joint <= LARGEST_JOINT


def compared(name: str, first: Fit, second: Fit, seconds: float = 0.0) -> Agreement:
    """The agreement of two fits of one machine, of the parameters that both group alike."""
    own, other = (dict(zip(f.base.columns, range(f.base.count), strict=True)) for f in (first, second))
    both = [
        (own[c], other[c])
        for c in own
        if c in other and np.abs(first.base.matrix[own[c]] - second.base.matrix[other[c]]).max() < SAME_GROUP
    ]
    a, b = (np.array(k) for k in zip(*both, strict=True))
    apart = first.values[a] - second.values[b]
    covariance = first.covariance[np.ix_(a, a)] + second.covariance[np.ix_(b, b)]
    ratio = np.abs(apart) / np.sqrt(np.diag(covariance))
    return Agreement(
        pair=name,
        parameters=len(both),
        left_out=max(first.base.count, second.base.count) - len(both),
        inside_two_sigma=float(np.mean(ratio <= 2.0)),
        median=float(np.median(ratio)),
        joint=joint_square(apart, covariance),
        seconds=seconds,
    )


def fits(pair: Pair) -> list[Fit]:
    """The fit of each of the two logs."""
    loaded = load_study(STUDIES / f"{pair.study}.yaml", "identify")
    machine = study_machine(loaded, ("model",), loaded.study.model, "unknown")
    if not pair.prepared:
        logs = Recordings(loaded).logs
        return [vd.identify(machine, logs[k], validation="none") for k, _, _ in pair.logs]
    return [_prepared(_with_log(loaded, *part), machine) for part in pair.logs]


def _with_log(loaded: Loaded[IdentifyFile], number: int, start: float, end: float) -> Loaded[IdentifyFile]:
    """The study with this share of one of its training logs, and nothing to validate with."""
    part = loaded.study.training[number].model_copy(update={"share": (start, end), "speeds": (0.0, 1.0)})
    return replace(loaded, study=loaded.study.model_copy(update={"training": (part,), "validation": "none"}))


def _prepared(loaded: Loaded[IdentifyFile], machine: vd.Machine) -> Fit:
    work = pipeline_of(loaded, machine, Recordings(loaded)).start().logs
    lowpass = work.lowpass()[1]
    training, _ = work.motions(lowpass)
    sampling, _ = work.samplings(training, [], lowpass)
    return vd.identify(
        machine, plain(training), settings=vd.IdentifySettings(sampling=sampling), rows=loaded.study.rows
    )


def agreement(name: str) -> Agreement:
    """One pair by name; what is reported beside the deviations is not shown."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        first, second = fits(PAIRS[name])
    return compared(name, first, second, time.perf_counter() - begin)


def table(found: Sequence[Agreement]) -> list[str]:
    """The results as a table of Markdown."""
    lines = [
        "| pair | parameters | left out | within 2σ | median | joint | within the bands |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {a.pair} | {a.parameters} | {a.left_out} | {a.inside_two_sigma:.3f} | {a.median:.2f} | {a.joint:.1f} | "
        f"{'yes' if a.within else 'no'} |"
        for a in found
    ]
    return lines


def report(names: Sequence[str] = (), as_json: bool = False) -> int:
    """Print the pairs asked for, or all; 0 where all keep the bands, 1 where one does not, 2 where they cannot be compared."""
    unknown = [name for name in names if name not in PAIRS]
    if unknown or not os.environ.get("VERIDYN_DATA"):
        there = f"there is no pair {unknown[0]!r}; there are: {'; '.join(PAIRS)}" if unknown else ""
        print(there or "VERIDYN_DATA does not name the folder of the logs.", file=sys.stderr)
        return 2
    found, chosen, begin = [], list(names or PAIRS), time.perf_counter()
    for k, name in enumerate(chosen, 1):
        found.append(agreement(name))
        left = (time.perf_counter() - begin) / k * (len(chosen) - k)
        print(f"{table(found)[-1]} {found[-1].seconds:.0f} s, {left:.0f} s left", file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps({"pairs": [asdict(a) | {"within": a.within} for a in found]}, indent=1))
    else:
        print("\n".join(table(found)))
    return 0 if all(a.within for a in found) else 1
