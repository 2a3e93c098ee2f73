"""The car on the road: two simulated drives of a detailed saloon, as its sensors record them, for the identification of paper 000.

The simulator shares no equations with the model that is identified. It has springs that are not straight, dampers that pull harder than
they push, axles that steer and lean as they travel: what the model of 20 degrees of freedom leaves out is an error of the model, and shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
from veridyn.simulate.vehicle_run import VehicleRun, drive, to_motion

Array = NDArray[np.float64]
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
    truth = model.with_parameters(model.parameters.replacing(true_values(saloon, runs[0])))
    believed = model.with_parameters(mistrusted(model, rng))
    # One filter for all columns and measurements; every fifth sample is left, 100 Hz for a band of 20 Hz.
    sampling = Sampling(filter=Butterworth(20.0), decimate=5, trim=100)
    return CarDemo(truth, believed, logs[0], logs[1], Signals(trim=0.2), sampling, TEN_ROWS, quick)


def mistrusted(model: Tree, rng: np.random.Generator, share: float = 0.15) -> dict[str, float]:
    """Priors of what is asked, wrong by up to `share` each, as a manufacturer's are who knows neither driver nor load."""
    p = model.parameters
    factors = 1.0 + share * rng.uniform(-1.0, 1.0, len(p))
    return {p.names[c]: float(p.values[c] * factors[c]) for c in p.select("asked")}


def true_values(vehicle: Vehicle, run: VehicleRun) -> dict[str, float]:
    """What the parameters of the model are in truth; of curved springs and dampers, their secants over the range travelled.

    The chassis, the unsprung masses and the drag are the vehicle's own. k, h, fs, off and k_ar are those of the straight law that comes
    nearest (least squares over the samples of the run) to the force of the spring, damper, friction and bar of each wheel.
    """
    names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    found = {f"{name}_c": value for name, value in zip(names, vehicle.chassis, strict=True)}
    found |= {f"M{i + 1}": vehicle.carriers[i // 2].mass for i in range(4)}
    found["Cx"] = vehicle.aerodynamics.coefficients[0][0]
    return found | secants(vehicle, run)


def secants(vehicle: Vehicle, run: VehicleRun) -> dict[str, float]:
    """The straight suspension nearest to the true one along a run, both wheels of an axle and their bar together."""
    z, zd, _ = run.clearance
    found: dict[str, float] = {}
    for axle, (left, bar) in enumerate(((0, "k_arf"), (2, "k_arr"))):
        rows, forces = [], []
        for i in (left, left + 1):
            d = z[:, i] - z[:, left + (i == left)]
            own = np.zeros((len(z), 9))
            own[:, 4 * (i - left) : 4 * (i - left) + 4] = np.column_stack(
                [z[:, i], np.sign(zd[:, i]), zd[:, i], np.ones(len(z))]
            )
            own[:, 8] = d
            rows.append(own)
            forces.append(
                vehicle.suspension.spring(i, z[:, i]) + vehicle.suspension.damper(i, zd[:, i]) + _bar(vehicle, axle, d)
            )
        solution = np.linalg.lstsq(np.vstack(rows), np.concatenate(forces), rcond=None)[0]
        for k, i in enumerate((left, left + 1)):
            found |= dict(
                zip((f"k_{i + 1}", f"fs_{i + 1}", f"h_{i + 1}", f"off_{i + 1}"), solution[4 * k : 4 * k + 4].tolist())
            )
        found[bar] = float(solution[8])
    return found


def _bar(vehicle: Vehicle, axle: int, d: Array) -> Array:
    s = vehicle.suspension
    return s.bar[axle] * d + s.bar_cube[axle] * d**3
