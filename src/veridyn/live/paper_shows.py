"""The car and the buggy of the papers, live: what is measured of them is simulated, their observers are real."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.live.machine import DRAW_ON, CarTracker, MachineTracker, drive_samples, picture_of, prepared_observer
from veridyn.live.session import log_samples
from veridyn.live.tracker import LiveTracker, Sample
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.observe.car.observation import observed_car
from veridyn.observe.car.system import lateral_measurements
from veridyn.observe.filters.methods import EKF
from veridyn.observe.settings import ObserveSettings
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import INPUTS, REFRESH, error_ekf, standing_start
from veridyn.papers.buggy.page_sections import buggy_layer
from veridyn.papers.buggy.trials import CRUISE, EASED, FULL, RACK
from veridyn.papers.car.simulator.description import Vehicle, VehicleManoeuvre
from veridyn.papers.car.simulator.run import drive
from veridyn.progress import Progress
from veridyn.signals.drive import DriveLog

CAR_S, BUGGY_S = 40.0, 60.0


def buggy_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """The buggy on a circle, observed by the errorEKF of its thesis; its receiver can be switched off, and dead reckoning goes on."""
    model = buggy(rolling_resistance=0.015)
    truth = driven(
        model,
        BuggyDrive(duration=BUGGY_S, rack=RACK),
        torque=lambda t: FULL if t < EASED else CRUISE,
        progress=progress,
    )
    log = truth.log(np.random.default_rng(DRAW_ON), model.sensors)
    return buggy_tracker(model, log), buggy_samples(model, log), "a simulated drive"


def buggy_tracker(model: Machine, log: Experiment) -> MachineTracker:
    """The errorEKF of the buggy beside a drive."""
    how = error_ekf()
    machine, _ = how.prepared(model, log, model.sensors)
    setup = how.setup(standing_start(model), INPUTS)
    prepared = prepared_observer(machine, setup, ())
    x = prepared.system.belief(*setup.system(machine)[1:]).x
    picture = picture_of(lambda q: buggy_layer(model, q, ""), prepared.system.split(x)[0], moving=True)
    notes = (f"errorEKF of paper 003 at 500 Hz, derivatives every {REFRESH} steps; readings are simulated",)
    return MachineTracker(prepared, picture, notes)


def buggy_samples(model: Machine, log: Experiment) -> list[Sample]:
    """The readings of a drive as they come in."""
    machine, log = error_ekf().prepared(model, log, model.sensors)
    setup = error_ekf().setup(standing_start(model), INPUTS)
    return log_samples(prepared_observer(machine, setup, ()).system, log)


def car_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A saloon, simulated in detail, in ever harder bends; a model of a few lines knows its masses and lengths, and learns its tyres.

    The observer has speed, steering wheel, yaw rate and lateral acceleration; sideslip and axle forces are virtual sensors.
    """
    drive_log, car = car_drive(Vehicle(), np.random.default_rng(DRAW_ON)), saloon(Vehicle())
    progress("making the observer ready", 0.0, None)
    log = lateral_measurements(drive_log, car)
    observed = observed_car(car, ObserveSettings(parameters=("front_stiffness", "rear_stiffness")), log)
    notes = ("readings are simulated; cornering stiffnesses start 30 % uncertain and are learned on the way",)
    tracker = CarTracker(observed, ("sideslip", "front_force", "rear_force"), EKF(), notes)
    return tracker, drive_samples(log), "a simulated drive"


def saloon(vehicle: Vehicle) -> Machine:
    """The car of the simulator as its driver knows it: masses and lengths, and tyres as of any passenger car."""
    mass, ahead = _mass_and_centre(vehicle)
    given = {
        "mass": PriorValue(mass, 20.0),
        "front": PriorValue(vehicle.wheelbase - ahead),
        "rear": PriorValue(ahead),
        "height": PriorValue(0.55),
        "track": PriorValue(2.0 * vehicle.half_tracks[0]),
        "front_stiffness": PriorValue(15.0, 4.5, 2.0, 60.0),
        "rear_stiffness": PriorValue(18.0, 5.4, 2.0, 60.0),
        "front_friction": PriorValue(1.0, 0.15),
        "rear_friction": PriorValue(1.0, 0.15),
        "steering_ratio": PriorValue(vehicle.steering.ratio),
    }
    sensors = (Sensor("yaw_rate", "reading", "yaw_rate", 0.003), Sensor("ay", "reading", "ay", 0.1))
    return car_machine(vehicle.name, given, sensors=sensors)


def car_drive(vehicle: Vehicle, rng: np.random.Generator) -> DriveLog:
    """What a car measures in bends of two frequencies whose size grows to the limit of everyday driving; `sideslip` is the true one."""
    bends = VehicleManoeuvre(
        "growing bends",
        speed=lambda t: 22.0 + 3.0 * np.sin(0.15 * t),
        steering=lambda t: (0.15 + 0.015 * t) * (np.sin(0.9 * t) + 0.4 * np.sin(2.3 * t)),
    )
    run = drive(vehicle, bends, duration=CAR_S, step=1e-3, every=20)
    c = np.array([_mass_and_centre(vehicle)[1], 0.0, 0.0])
    base, w = run.base, run.base.omega
    assert base.velocity is not None
    a = base.acceleration + np.cross(base.omega_dot, c) + np.cross(w, np.cross(w, c))
    v = base.velocity + np.cross(w, c)
    clean = {"speed": v[:, 0], "steer": run.steering_wheel, "ax": a[:, 0], "ay": a[:, 1], "yaw_rate": w[:, 2]}
    deviation = {"speed": 0.05, "steer": 0.002, "ax": 0.1, "ay": 0.1, "yaw_rate": 0.003}
    channels = {name: x + deviation[name] * rng.standard_normal(len(run)) for name, x in clean.items()}
    sideslip = np.arctan2(v[:, 1], v[:, 0])
    return DriveLog(t=run.t, channels={**channels, "sideslip": sideslip}, rate=50.0)


def _mass_and_centre(vehicle: Vehicle) -> tuple[float, float]:
    """The whole mass, and how far ahead of the rear axle its centre is."""
    (front, rear) = (2.0 * (k.mass + w.mass) for k, w in zip(vehicle.carriers, vehicle.wheels, strict=True))
    mass = vehicle.chassis[9] + front + rear
    return mass, (vehicle.chassis[6] + front * vehicle.wheelbase) / mass
