"""The car on the road: two simulated drives of a detailed saloon, as its sensors record them, for the identification of paper 000.

The simulator shares no equations with the model that is identified. It has springs that are not straight, dampers that pull harder than
they push, axles that steer and lean as they travel: what the model of 20 degrees of freedom leaves out is an error of the model, and shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veridyn.identify.observation import Sampling
from veridyn.machines.car import TEN_ROWS, asked_33, car_20
from veridyn.mechanics.integrate import Trajectory
from veridyn.mechanics.road_rough import rough_road
from veridyn.model.experiment import Experiment
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals
from veridyn.simulate.imperfection import Sensor, Sensors
from veridyn.simulate.simulator import record
from veridyn.simulate.vehicle import Vehicle
from veridyn.simulate.vehicle_manoeuvre import VehicleManoeuvre, sinusoidal_steering, speed_variation
from veridyn.simulate.vehicle_run import drive, to_motion
from veridyn.simulate.vehicle_truth import truth

STEP = 1e-3  # s, of the simulation
EVERY = 2  # steps from one recorded sample to the next: 500 Hz


@dataclass(frozen=True, eq=False)
class CarDemo:
    """What an identification of the car needs: the truth, the model believed, two logs, and how to treat them."""

    truth: Tree
    model: Tree
    training: Experiment
    validation: Experiment
    signals: Signals
    sampling: Sampling
    rows: Rows
    quick: bool


def sensors() -> Sensors:
    """White noise for each sample at 500 Hz; all chosen, of the size of good instruments.

    Inertial unit 0.002 rad/s and 0.03 m/s², clearances 0.1 mm, speed 0.02 m/s, dynamometric wheels 15 N and 5 N m. Angles of steering and
    wheels, which hardly enter the ten rows, are taken as they are.
    """
    return Sensors(
        {
            "q.z[1-4]": Sensor(noise=1e-4),
            "q.*": Sensor(),
            "base.omega.*": Sensor(noise=0.002),
            "base.acceleration.*": Sensor(noise=0.03),
            "base.velocity.*": Sensor(noise=0.02),
            "wrench.*.f?": Sensor(noise=15.0),
            "wrench.*.m?": Sensor(noise=5.0),
        }
    )


def demonstration(
    rng: np.random.Generator, quick: bool = False, progress: Progress = silent, vehicle: Vehicle | None = None
) -> CarDemo:
    """Drive twice on rough roads (class C): steering and speed varied to learn from, then sinusoidal steering at 110 km/h to check with."""
    saloon = vehicle or Vehicle()
    model = asked_33(car_20())
    drives: tuple[tuple[str, VehicleManoeuvre, float], ...] = (
        ("training", speed_variation(), 8.0 if quick else 20.0),
        ("validation", sinusoidal_steering(), 6.0 if quick else 15.0),
    )
    logs, runs = [], []
    for k, (name, manoeuvre, duration) in enumerate(drives):
        progress("driving", float(k), float(len(drives)))
        road = rough_road("C", rng, length=45.0 * duration + 200.0, track=1.5)
        run = drive(saloon, manoeuvre, road, duration, STEP, EVERY)
        log = record(model, Trajectory(to_motion(run, model)), sensors(), rng)
        logs.append(replace(log, name=f"{name} of the car (simulated)"))
        runs.append(run)
    progress("driving", float(len(drives)), float(len(drives)))
    true = model.with_parameters(model.parameters.replacing(truth(runs[0])))
    believed = model.with_parameters(mistrusted(model, rng))
    # One filter for all columns and measurements; every fifth sample is left, 100 Hz for a band of 20 Hz.
    sampling = Sampling(filter=Butterworth(20.0), decimate=5, trim=100)
    return CarDemo(true, believed, logs[0], logs[1], Signals(trim=0.2), sampling, TEN_ROWS, quick)


def mistrusted(model: Tree, rng: np.random.Generator, share: float = 0.15) -> dict[str, float]:
    """Priors of what is asked, wrong by up to `share` each, as a manufacturer's are who knows neither driver nor load."""
    p = model.parameters
    factors = 1.0 + share * rng.uniform(-1.0, 1.0, len(p))
    return {p.names[c]: float(p.values[c] * factors[c]) for c in p.select("asked")}
