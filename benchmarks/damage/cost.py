"""What the default diagnosis adds to a fit, warm, on logs of measured robots: ``python -m benchmarks.damage --cost``.

Logs of 15, 60 and 300 s are made of the measured one: cut, or repeated as logs of their own. Times are processor times of ``identify`` on
motions that are prepared already, the median of a few, of a machine that was met before; the limit is 4 times the bare fit plus 1 s.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import veridyn as vd
from benchmarks.damage.bench import Bench
from benchmarks.damage.real import ROBOTS
from veridyn.identify.diagnosis.fit_check import Diagnose

COST_SECONDS = (15.0, 60.0, 300.0)
COST_ROBOTS = ("panda", "ur10e")
REPETITIONS = 3  # of which the median counts
LIMIT_TIMES, LIMIT_MORE_S = 4.0, 1.0  # of the bare fit, and s beside it


@dataclass(frozen=True)
class Cost:
    """Seconds of the bare fit, and of the fit with its default diagnosis, of a log of so many seconds."""

    robot: str
    seconds: float
    bare: float
    diagnosed: float

    @property
    def limit(self) -> float:
        return LIMIT_TIMES * self.bare + LIMIT_MORE_S

    @property
    def within(self) -> bool:
        return self.diagnosed <= self.limit


def motions_of(bench: Bench, seconds: float) -> list[vd.Motion]:
    """The log again and again, the last one cut, `seconds` long together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vd.errors.VeridynWarning)
        whole = vd.motion(bench.machine, bench.experiment(bench.log()), bench.signals)
    rate = 1.0 / float(np.median(np.diff(whole.t)))
    out, left = [], round(seconds * rate)
    while left > 0:
        out.append(whole[: min(left, len(whole))])
        left -= len(out[-1])
    return out


def cost(bench: Bench, seconds: float) -> Cost:
    """Both times of one robot."""
    motions, settings = motions_of(bench, seconds), vd.IdentifySettings(sampling=bench.sampling)

    def spent(level: Diagnose) -> float:
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", vd.errors.VeridynWarning)
            vd.identify(bench.machine, motions, settings=settings, diagnose=level)
        return time.process_time() - begin

    spent("fast")  # compiles
    times = np.array([[spent("off"), spent("fast")] for _ in range(REPETITIONS)])
    bare, diagnosed = np.median(times, axis=0)
    return Cost(bench.name, seconds, float(bare), float(diagnosed))


def costs(robots: Sequence[str] = COST_ROBOTS, seconds: Sequence[float] = COST_SECONDS, seed: int = 1) -> list[Cost]:
    """Each robot at each length."""
    return [cost(bench, s) for bench in (ROBOTS[name](seed) for name in robots) for s in seconds]


def line(c: Cost) -> str:
    return (
        f"{c.robot:8}{c.seconds:8.0f} s: bare fit {c.bare:7.2f} s, with its diagnosis {c.diagnosed:7.2f} s "
        f"({c.diagnosed / c.bare:.1f} times); limit {c.limit:.2f} s: {'kept' if c.within else 'missed'}"
    )
