"""Machines that come with veridyn and run live without any file: what is measured of them is simulated, their observers are real."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from veridyn.files.log.load import load_log
from veridyn.files.shipped import shipped
from veridyn.live.car import CarTracker, drive_samples
from veridyn.live.machine import MachineTracker
from veridyn.live.picture import picture_of
from veridyn.live.replay import log_samples
from veridyn.live.sample import Sample
from veridyn.live.tracker import LiveTracker
from veridyn.machines.arm import FRICTION_SPEED, arm, exciting, perturb_inertias, tracking
from veridyn.machines.buggy import buggy
from veridyn.machines.buggy_drive import BuggyDrive
from veridyn.machines.buggy_log import driven
from veridyn.machines.spatial import CRANE, crane
from veridyn.mechanics.formulated import GivenMachine
from veridyn.mechanics.integrate import Inputs
from veridyn.mechanics.natural.system import system_of
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.observe.car.log import lateral_measurements
from veridyn.observe.car.noise import CarNoise
from veridyn.observe.car.observation import observed_car
from veridyn.observe.ekf import EKF
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.virtual import Virtual
from veridyn.progress import Progress
from veridyn.signals.drive import DriveLog
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.simulator import simulate
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import VehicleManoeuvre
from veridyn.simulate.vehicle.run import drive
from veridyn.studies.papers.buggy.observers import INPUTS, REFRESH, BuggyObserver, error_ekf, standing_start
from veridyn.studies.papers.buggy.outage import CRUISE, EASED, FULL, RACK
from veridyn.studies.run.observer import PreparedObserver
from veridyn.view.buggy import buggy_layer

Array = NDArray[np.float64]
Show = Callable[[Progress], tuple[LiveTracker, Sequence[Sample], str]]
ARM_S, CAR_S, BUGGY_S = 15.0, 40.0, 60.0
CRANE_UNITS = {"time": "s", "travel": "mm", "tilt": "deg"}  # of the shipped log's columns
ARM_RATE = 100.0  # Hz, of the samples that are used
PUSHED_S = (6.0, 9.0)  # when somebody pushes the arm
PUSH_N = 30.0  # along x of its hand
DRAW_ON = 5  # seed of what is simulated


def crane_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A crane whose motor pushes with a force that walks at random and that nobody measures; rope and load are virtual sensors."""
    progress("making the observer ready", 0.0, None)
    file = shipped("veridyn:crane.csv")
    machine = system_of(crane())
    wanted = (
        Virtual("load", "position", "L"),
        Virtual("load_speed", "velocity", "L"),
        Virtual("rope", "reaction", ("rope", "L")),
    )
    prepared = prepared_observer(machine, CRANE.setup(EKF(gate=0.9999)), wanted)
    log = load_log(file, {"time": "time", "travel": "trolley", "tilt": "angle"}, CRANE_UNITS, "time")
    notes = ("the readings are simulated; the force of the motor is estimated",)
    return MachineTracker(prepared, notes=notes), log_samples(prepared.system, log), "crane.csv"


def arm_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A six-joint arm under its controller, whose model is up to 20 % wrong; from 6 to 9 s somebody pushes its hand.

    The observer has encoders and motor torques; torques that its model does not explain are estimated at every joint.
    """
    rng, truth = np.random.default_rng(DRAW_ON), arm()
    encoders = [Sensor(f"encoder_{c}", "coordinate", c, 2e-5) for c in truth.coordinates]
    truth = replace(truth, sensors=tuple(encoders))
    hand = truth.body_names[-1]

    def pushed(t: float, q: Array, qd: Array) -> dict[str, Array]:
        on = PUSHED_S[0] <= t < PUSHED_S[1]
        return {hand: np.array([PUSH_N if on else 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])}

    how = tracking(exciting(rng, 4), perturb_inertias(truth, rng), ARM_S)
    log = simulate(
        truth,
        replace(how, rate=ARM_RATE, inputs=Inputs(wrenches=pushed)),
        rng=rng,
        imperfections={"force.*": Imperfection()},
        progress=progress,
    )
    motors = tuple(f"force.{c}" for c in truth.coordinates)
    noise = ProcessNoise(force=100.0, start=1e-3, start_rate=1e-3, start_force=2.0)
    setup = ObserverSetup(
        method=EKF(),
        process_noise=noise,
        start=first_pose(truth, log),
        inputs=motors,
        step=1.0 / ARM_RATE,
        friction_speed=FRICTION_SPEED,
    )
    wanted = (Virtual("hand", "position", Marker(hand, (0.0, 0.0, 0.0))),)
    prepared = prepared_observer(truth, setup, wanted)
    notes = (
        f"simulated; a push of {PUSH_N:g} N at the hand from {PUSHED_S[0]:g} to {PUSHED_S[1]:g} s is not measured",
    )
    return MachineTracker(prepared, notes=notes), log_samples(prepared.system, log), "a simulated arm"


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


def buggy_observer() -> BuggyObserver:
    """The errorEKF of the thesis."""
    return error_ekf()


def buggy_tracker(model: Machine, log: Experiment) -> MachineTracker:
    """The errorEKF of the buggy beside a drive."""
    how = buggy_observer()
    machine, _ = how.prepared(model, log, model.sensors)
    setup = ObserverSetup(**how.settings(standing_start(model)), inputs=INPUTS)
    prepared = prepared_observer(machine, setup, ())
    x = prepared.system.belief(*setup.system(machine, how.noise)[1:]).x
    picture = picture_of(lambda q: buggy_layer(model, q, ""), prepared.system.split(x)[0], moving=True)
    notes = (f"errorEKF of paper 003 at 500 Hz, derivatives every {REFRESH} steps; readings are simulated",)
    return MachineTracker(prepared, picture, notes)


def buggy_samples(model: Machine, log: Experiment) -> list[Sample]:
    """The readings of a drive as they come in."""
    machine, log = buggy_observer().prepared(model, log, model.sensors)
    setup = ObserverSetup(**buggy_observer().settings(standing_start(model)), inputs=INPUTS)
    return log_samples(prepared_observer(machine, setup, ()).system, log)


def car_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A saloon, simulated in detail, in ever harder bends; a model of a few lines knows its masses and lengths, and learns its tyres.

    The observer has speed, steering wheel, yaw rate and lateral acceleration; sideslip and axle forces are virtual sensors.
    """
    drive_log, car = car_drive(Vehicle(), np.random.default_rng(DRAW_ON)), saloon(Vehicle())
    progress("making the observer ready", 0.0, None)
    log = lateral_measurements(drive_log, car)
    observed = observed_car(car, CarNoise(), log, ("front_stiffness", "rear_stiffness"))
    notes = ("readings are simulated; cornering stiffnesses start 30 % uncertain and are learned on the way",)
    tracker = CarTracker(observed, ("sideslip", "front_force", "rear_force"), notes)
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


def prepared_observer(machine: GivenMachine, setup: ObserverSetup, wanted: Sequence[Virtual]) -> PreparedObserver:
    """An observer made ready without a study file."""
    assert setup.process_noise is not None
    return PreparedObserver(machine, setup, setup.system(machine, setup.process_noise)[0], tuple(wanted))


def first_pose(machine: Machine, log: Experiment) -> dict[str, float]:
    """The first reading of each encoder, by coordinate."""
    return {str(s.on): float(log[s.name].values[0]) for s in machine.sensors}


SHOWS: Mapping[str, Show] = MappingProxyType(
    {"crane": crane_show, "arm": arm_show, "car": car_show, "buggy": buggy_show}
)
