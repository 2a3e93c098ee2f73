"""Where the identified car differs from the true one, and how each difference vanishes: one step at a time, without noise.

First the treatment is mended, step by step, on the detailed car: the air's tables, a filter for each row, rows along the wheels' paths.
Then the simulator is simplified until it is the model: carriers as points, a rigid driveline, straight springs and bars, straight
dampers, straight paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veridyn.identify.estimate import identify
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.mechanics.ground.road import rough_road
from veridyn.model.motion import Motion
from veridyn.papers.car.budget import FAST, KEPT, TRIM, corrected, plain_rows
from veridyn.papers.car.drive import EVERY, STEP
from veridyn.papers.car.knowledge import informed
from veridyn.papers.car.log import CarKinematics
from veridyn.papers.car.machine import TEN_ROWS, car_38, estimated_33
from veridyn.papers.car.simulator.description import Vehicle, sinusoidal_steering, speed_variation
from veridyn.papers.car.simulator.run import VehicleRun, drive, to_motion, truth
from veridyn.papers.car.simulator.tables import WheelTables
from veridyn.progress import Progress, silent

GROUPS = {
    "M_c, MX_c": ("M_c", "MX_c"),
    "inertia": ("XX_c", "YY_c", "ZZ_c"),
    "M_j": ("M1", "M2", "M3", "M4"),
    "k": ("k_1", "k_2", "k_3", "k_4"),
    "k_ar": ("k_arf", "k_arr"),
    "h": ("h_1", "h_2", "h_3", "h_4"),
    "Cx": ("Cx",),
}


@dataclass(frozen=True)
class Rung:
    """A step: the largest error of each group of parameters in percent of the truth, and of rows fx and the worst in cross-validation."""

    step: str
    errors: Mapping[str, float]
    fx_percent: float
    worst_percent: float


def steps(vehicle: Vehicle) -> list[tuple[str, Vehicle, bool, str]]:
    """What each step is called, its car, whether the air's tables are used, and how equations are made."""
    simple = vehicle.simplified()
    points = replace(vehicle, carriers=simple.carriers)
    rigid = replace(points, driveline=simple.driveline)
    bent = vehicle.suspension
    straight = replace(
        bent, square=simple.suspension.square, cube=simple.suspension.cube, stop_stiffness=0.0, bar_cube=(0.0, 0.0)
    )
    springs = replace(rigid, suspension=straight)
    dampers = replace(rigid, suspension=simple.suspension)
    paths = replace(dampers, tables=WheelTables.none(), steering=simple.steering)
    return [
        ("as paper 000 has its rows, all at 20 Hz", vehicle, False, "fast"),
        ("the air's other components from tables", vehicle, True, "fast"),
        ("3.125 Hz for the chassis' rows", vehicle, True, "rows"),
        ("suspension rows along the wheels' paths", vehicle, True, "paths"),
        ("carriers are points", points, True, "paths"),
        ("the engine sits fast", rigid, True, "paths"),
        ("springs and bars are straight", springs, True, "paths"),
        ("dampers are straight", dampers, True, "paths"),
        ("wheels rise straight up", paths, True, "paths"),
        ("drag alone: the model itself", replace(paths, aerodynamics=simple.aerodynamics), True, "paths"),
    ]


def ladder(
    rng: np.random.Generator, vehicle: Vehicle | None = None, duration: float = 20.0, progress: Progress = silent
) -> tuple[Rung, ...]:
    """All steps, on one rough road, with exact motion and wrenches."""
    roads = [rough_road("C", rng, length=45.0 * duration + 200.0, track=1.5) for _ in range(2)]
    every = steps(vehicle or Vehicle())
    driven: dict[int, tuple[VehicleRun, VehicleRun]] = {}
    out = []
    for k, (name, car, air, how) in enumerate(every):
        progress("climbing down", float(k), float(len(every)))
        if id(car) not in driven:
            runs = [
                drive(car, manoeuvre, road, duration, STEP, EVERY)
                for manoeuvre, road in zip((speed_variation(), sinusoidal_steering()), roads, strict=True)
            ]
            driven = {id(car): (runs[0], runs[1])}
        out.append(_rung(name, *driven[id(car)], air, how))
    progress("climbing down", float(len(every)), float(len(every)))
    return tuple(out)


def _rung(name: str, seen: VehicleRun, unseen: VehicleRun, air: bool, how: str) -> Rung:
    machine = estimated_33(car_38())
    car, kinematics = seen.vehicle, CarKinematics.of(seen.vehicle)

    def known(run: VehicleRun) -> Motion:
        return informed(to_motion(run, machine), machine, kinematics, car.aerodynamics if air else None)

    ways = {
        "fast": Sampling(filter=FAST, decimate=KEPT, trim=TRIM),
        "rows": plain_rows(machine),
        "paths": corrected(machine),
    }
    fit = identify(machine, known(seen), rows=TEN_ROWS, settings=IdentifySettings(sampling=ways[how]), diagnose="off")
    check = validate(fit, known(unseen), settings=IdentifySettings(sampling=ways[how]))
    values, true = dict(zip(fit.names, fit.values, strict=True)), truth(seen)
    errors = {
        group: max(100.0 * abs(float(values[n]) / true[n] - 1.0) for n in names) for group, names in GROUPS.items()
    }
    return Rung(name, errors, 100.0 * check["fx"].relative_error, 100.0 * check.worst_relative_error)
