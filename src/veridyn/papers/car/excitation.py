"""Which manoeuvre to drive, judged before any is driven: on the a-priori car, by what its equations would tell.

Paper 000, IV.D takes the condition number of the observation matrix. It says how the worst combination fares; the deviations that the row
noise would leave on each parameter say the rest, and both are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.ground.road import Flat, Road
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.papers.car.machine import TEN_ROWS, car_20, estimated_33
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.manoeuvre import (
    KMH,
    VehicleManoeuvre,
    ramp_steer,
    sinusoidal_steering,
    speed_variation,
    standstill,
    straight,
    straight_braking,
)
from veridyn.papers.car.simulator.run import drive, to_motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
# What the instruments would leave on each row, after filtering: chosen, as in a study of the same 33 parameters by others.
ROW_NOISE: dict[str, float] = {row: 20.0 if row.startswith("z") else 40.0 for row in TEN_ROWS}


@dataclass(frozen=True, eq=False)
class Excitation:
    """A manoeuvre: how many of the 33 it separates, the condition of its regressor with columns scaled by typical sizes, and the
    deviation in percent that each parameter would have (infinite where it is not told).
    """

    manoeuvre: str
    separable: int
    condition: float
    percent: Mapping[str, float]

    @property
    def well(self) -> int:
        return sum(p < 10.0 for p in self.percent.values())


def candidates() -> dict[str, tuple[VehicleManoeuvre, bool]]:
    """Manoeuvre, and whether on a rough road (class C) instead of a flat one."""
    return {
        "standstill": (standstill(), False),
        "straight on, rough": (straight(), True),
        "braking": (straight_braking(), False),
        "ramp steer, 90 km/h": (ramp_steer(90.0 * KMH), False),
        "sinusoidal, 90 km/h": (sinusoidal_steering(90.0 * KMH), False),
        "sinusoidal, 160 km/h": (sinusoidal_steering(160.0 * KMH, angle=0.3), False),
        "sinusoidal, 110 km/h, rough": (sinusoidal_steering(110.0 * KMH), True),
        "varied speed, rough": (speed_variation(), True),
    }


def ranked(
    rng: np.random.Generator, vehicle: Vehicle | None = None, duration: float = 11.0, progress: Progress = silent
) -> tuple[Excitation, ...]:
    """The candidates, best first: those that tell most parameters well, then by condition."""
    car = (vehicle or Vehicle()).simplified()
    machine = estimated_33(car_20())
    road = rough_road("C", rng, length=45.0 * duration + 200.0, track=1.5)
    found = []
    every = candidates()
    for k, (name, (manoeuvre, rough)) in enumerate(every.items()):
        progress("ranking manoeuvres", float(k), float(len(every)))
        under: Road = road if rough else Flat()
        run = drive(car, manoeuvre, under, duration, 1e-3, 10)
        s = solve(
            observation(machine, to_motion(run, machine), TEN_ROWS, IdentifySettings(sampling=Sampling())),
            sigma=ROW_NOISE,
        )
        found.append(_judged(name, s))
    progress("ranking manoeuvres", float(len(every)), float(len(every)))
    return tuple(sorted(found, key=lambda e: (-e.well, e.condition)))


def _judged(name: str, s: Solution) -> Excitation:
    p = s.observation.parameters
    inverse = solve_triangular(s.triangle, np.eye(len(s.triangle)))
    sigma = np.sqrt((inverse**2).sum(axis=1))
    alone = [int((row != 0.0).sum()) == 1 for row in s.groups.matrix]
    percent = {p.names[c]: float("inf") for c in p.select("estimated")}
    for c, deviation, single in zip(s.columns, sigma, alone, strict=True):
        size = abs(float(p.values[c])) or float(p.typical[c])
        if single:
            percent[p.names[c]] = 100.0 * float(deviation) / size
    return Excitation(name, len(s.columns), s.condition_scaled, percent)
