"""The vehicle simulator: how many times faster than the road, on one core at a step of 1 ms, and how long its first drive takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

from benchmarks.clock import best_of
from veridyn.mechanics.ground.road import rough_road
from veridyn.papers.car.simulator.description import Vehicle, speed_variation
from veridyn.papers.car.simulator.run import drive, settle

DURATION, STEP = 20.0, 1e-3  # s

FIRST = """
import time
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.description import straight
from veridyn.papers.car.simulator.run import drive
start = time.perf_counter()
drive(Vehicle(), straight(), duration=0.1)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Driving:
    """Seconds of driving for each second of the processor and of the wall; seconds of the first drive ever, and of a later process's."""

    factor: float
    wall_factor: float
    spread: float
    first: float
    later: float


def driving() -> Driving:
    """The detailed saloon, steering and speed varied, on a rough road of class C, every step's outputs computed, every second one kept."""
    car, road = Vehicle(), rough_road("C", np.random.default_rng(0), length=900.0, track=1.5)
    start = settle(car, road, speed=25.0)
    spent = best_of(lambda: drive(car, speed_variation(), road, DURATION, STEP, every=2, start=start), repeat=3)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"VERIDYN_CACHE": folder}
        first, later = (
            float(
                subprocess.run(
                    [sys.executable, "-c", FIRST], env=environment, check=True, capture_output=True, text=True
                ).stdout
            )
            for _ in range(2)
        )
    return Driving(DURATION / spent.cpu, DURATION / spent.wall, spent.spread, first, later)


def said(found: Driving) -> str:
    """One line for the report."""
    return (
        f"- The vehicle simulator (87 states, Magic Formula tyres, rough road) at a step of {1e3 * STEP:g} ms runs {found.factor:.0f} "
        f"times faster than real time on one core ({found.wall_factor:.0f} by the wall, spread {found.spread:.0f} %). Its first drive "
        f"compiles for {found.first:.0f} s; from the code kept on disk a process starts in {found.later:.1f} s."
    )


if __name__ == "__main__":
    print(said(driving()))
