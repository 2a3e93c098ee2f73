"""Damaged logs with a score: ``python -m benchmarks.damage --logs 20 --seed 1``, or ``--real`` for logs of measured robots.

Twenty-two kinds of damage at three strengths on logs of a simulated four-joint arm. Where a damage has a size, the weakest is that which
moves a parameter by 5 standard deviations, found by bisection; the others are 4 and 16 times as strong. A damage is *named* where a
warning has one of the words that belong to it, *warned* of where there is any other warning, *silent* where a parameter moved by more
than 3 deviations without one, *harmless* where none did. A silent change is *undetectable* in principle where the damage changes the
equations by what the parameters explain, to within the noise: with δ the change of the weighted equations and δ_⊥ its part beside the
regressor, the likelihood ratio of a test that knew the kind of damage, and not the joint, would see ‖δ_⊥‖ deviations, and find it in fewer
than half of such logs at one false alarm in a hundred. Of a damage that is silent all the same, it is said how often such a test finds it,
one that knows the joint as well, and one that knows neither. False alarms are warnings on logs that are not damaged. `--level full` asks
what the command line asks; `--level cli` is ``veridyn identify`` but for its report, and its equations are filtered and decimated as those
of a study are. The last lines are what preparing a clean log, its fit and its fast diagnosis take, in one thread.

``--real`` damages logs in the folder that VERIDYN_DATA names in the same ways. What the undamaged log is warned of is listed first, and a
warning of a damaged log counts where it is not among these. For the log without noise stands that with the forces of its fit, and all that
the fit leaves counts as noise.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import veridyn as vd
from benchmarks.damage.bench import Bench, Level
from benchmarks.damage.kinds import DAMAGES, Damage
from benchmarks.damage.real import ROBOTS
from benchmarks.damage.score import HALF, KINDS, Kind, Outcome, outcome, power, weakest
from benchmarks.damage.simulated import DEAD_ZONE, clean, simulated
from identify.smooth_arm import drawn
from veridyn.identify.diagnosis.fit_check import Diagnose
from veridyn.identify.regression.sampling import Sampling

COSTS = 21  # repetitions of which the median counts
COST_SECONDS = (15.0, 60.0, 300.0)
STRENGTHS = (1.0, 4.0, 16.0)


def scored(benches: Sequence[Bench], damages: Sequence[Damage], level: Level) -> list[Outcome]:
    """The table of all kinds of damage, printed, and its entries."""
    width = max(len(d.name) for d in damages) + 1
    print(" " * width + "".join(f"{k:>13}" for k in KINDS), flush=True)
    every: list[Outcome] = []
    for d in damages:
        found, left = [], []
        for bench in benches:
            first = 1.0 if d.sizes is None else weakest(d, bench)
            for strength in (1.0,) if d.sizes is None else STRENGTHS:
                done = outcome(d, first * strength, bench, level)
                found.append(done)
                if done.kind == "silent":
                    left.append(
                        f"    {bench.name}, {strength:g} times the weakest ({done.size:.3g}): {explained(done, bench)}"
                    )
        print("\n".join([f"{d.name:{width}}{_counts(found)}", *left]), flush=True)
        every += found
    print(f"{'all':{width}}{_counts(every)}")
    shares = ", ".join(f"{100 * _count(every, k) / max(len(every), 1):.1f} % {k}" for k in KINDS)
    print(f"{len(every)} damaged logs: {shares}")
    strict = sum(o.kind in ("silent", "undetectable") and power(o.visible, 1) >= HALF for o in every)
    print(
        f"{100 * strict / max(len(every), 1):.1f} % silent where a test that knows the joint as well counts", flush=True
    )
    return every


def explained(o: Outcome, bench: Bench) -> str:
    """How often tests would find a silent damage."""
    joints = len(bench.machine.coordinates)
    odds = [100.0 * power(o.visible, shapes) for shapes in (1, joints, len(DAMAGES) * joints)]
    return (
        f"{o.visible:.2f} deviations visible, found in {odds[0]:.0f} % by a test that knows kind and joint, "
        f"in {odds[1]:.0f} % by one that knows the kind, in {odds[2]:.0f} % by one that knows neither"
    )


def _count(found: Sequence[Outcome], kind: Kind) -> int:
    return sum(o.kind == kind for o in found)


def _counts(found: Sequence[Outcome]) -> str:
    return "".join(f"{_count(found, k):13d}" for k in KINDS)


def costs(seed: int, seconds: float) -> tuple[float, float, float]:
    """Milliseconds of processor time of preparing a clean log of so many seconds, of its fit, and of the fast diagnosis.

    Medians of fits without and with diagnosis in turn, each of a machine that was not met before.
    """
    how, bench = Sampling(dead_zone=DEAD_ZONE), simulated(seed, seconds)
    log = bench.experiment(bench.log())
    levels: tuple[Diagnose, ...] = ("off", "fast")
    times = np.zeros((COSTS, 1 + len(levels)))
    for row in times:
        begin = time.process_time()
        motion = vd.motion(bench.machine, log)
        row[0] = 1e3 * (time.process_time() - begin)
        for k, level in enumerate(levels, start=1):
            machine = drawn(seed)
            begin = time.process_time()
            vd.identify(machine, motion, settings=vd.IdentifySettings(sampling=how), diagnose=level)
            row[k] = 1e3 * (time.process_time() - begin)
    prepared, alone, both = np.median(times, axis=0)
    return float(prepared), float(alone), float(both - alone)


def false_alarms(first: int, count: int, level: Level) -> int:
    """Logs in order that raise a warning; each is printed."""
    alarms = 0
    for seed in range(first, first + count):
        bench = simulated(seed)
        said = bench.identified(clean(seed), bench.machine, level).said
        alarms += bool(said)
        print("".join(f"    clean log {seed}: {text}\n" for text in said), end="", flush=True)
    return alarms


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.damage")
    asked.add_argument("--logs", type=int, default=3)
    asked.add_argument("--clean", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--level", choices=("fast", "full", "cli"), default="fast")
    asked.add_argument("--only", nargs="*", default=[], help="names of damages")
    asked.add_argument("--real", nargs="*", choices=tuple(ROBOTS), help="measured robots; all where none is named")
    given = asked.parse_args()
    damages = [d for d in DAMAGES if not given.only or d.name in given.only]
    if given.real is not None:
        for name in given.real or ROBOTS:
            bench = ROBOTS[name](given.seed)
            said = bench.good(given.level).said
            print(f"{name}: {len(said)} warnings on the undamaged log")
            print("".join(f"    {text.replace(chr(10), ' ')}\n" for text in said), end="", flush=True)
            scored([bench], damages, given.level)
        return
    scored([simulated(seed) for seed in range(given.seed, given.seed + given.logs)], damages, given.level)
    alarms = false_alarms(1000 * given.seed, given.clean, given.level)
    print(f"{alarms} false alarms on {given.clean} clean logs")
    for seconds in COST_SECONDS:
        before, alone, more = costs(given.seed, seconds)
        print(
            f"log of {seconds:g} s: preparing it {before:.1f} ms, fit {alone:.1f} ms, fast diagnosis {more:.1f} ms: "
            f"{more / (before + alone):.2f} times preparing and fitting, {more / alone:.2f} times the fit",
            flush=True,
        )


if __name__ == "__main__":
    main()
