"""A day of test drives with a car full of instruments: which manoeuvre to drive, and the papers' manoeuvres, simulated, as their logs.

The simulator shares no equations with the models that are identified. It has springs that are not straight, dampers that pull harder than
they push, wheels on curved paths, an engine on soft mounts: what a model leaves out is an error of the model, and shows.

Manoeuvres are compared before any is driven, on the a-priori car, by what its equations would tell. Paper 000, IV.D takes the condition
number of the observation matrix. It says how the worst combination fares; the deviations that the row noise would leave on each parameter
say the rest, and both are given.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.ground.road import Flat, Road, rough_road
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.papers.car.knowledge import CarKnown, informed
from veridyn.papers.car.log import CarKinematics, from_log
from veridyn.papers.car.machine import TEN_ROWS, car_20, estimated_33
from veridyn.papers.car.sensors import CarSensors, kind_of, sensed, sensors_2002, sensors_2006
from veridyn.papers.car.simulator.description import (
    KMH,
    Vehicle,
    VehicleManoeuvre,
    ramp_steer,
    restless,
    sinusoidal_steering,
    speed_variation,
    standstill,
    straight,
    straight_braking,
)
from veridyn.papers.car.simulator.run import VehicleRun, drive, to_motion, truth
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog
from veridyn.signals.motion import Signals

STEP = 1e-3  # s, of the simulation
EVERY = 2  # steps from one recorded sample to the next: 500 Hz
ENDS = 0.3  # s that are cut off a log at both ends, where undoing the sensors' bands knows less
TRAINING = ("varied speed, slow", "varied speed, fast")
VALIDATION = "sinusoidal steering"
RAMPS = ("ramp to the left", "ramp to the right")
BRAKING, STANDING = "braking", "standstill"
GROWING_S = 40.0  # of the bends that ``veridyn live car`` shows
# What the instruments would leave on each row, after filtering: chosen, as in a study of the same 33 parameters by others.
ROW_NOISE: dict[str, float] = {row: 20.0 if row.startswith("z") else 40.0 for row in TEN_ROWS}


@dataclass(frozen=True, eq=False)
class CarDrive:
    """One drive: what happened, and what the instruments say of it."""

    run: VehicleRun
    log: Experiment


@dataclass(frozen=True, eq=False)
class Campaign:
    """Drives of one car with one set of instruments, by name; what its maker hands in of it; and how fast the simulator was."""

    vehicle: Vehicle
    known: CarKnown
    drives: Mapping[str, CarDrive]
    real_time_factor: float

    @property
    def sensors(self) -> CarSensors:
        """Places and bands of the instruments as handed in."""
        return self.known.sensors

    @property
    def kinematics(self) -> CarKinematics:
        return self.known.kinematics

    def motion(self, machine: Machine, name: str, known: CarKnown | None = None, **how: object) -> Motion:
        """A drive as the motion of a model, with what the maker's tables give; `known`: by other tables; `how` as for ``from_log``."""
        given = known or self.known
        settings = {"signals": Signals(lowpass=None, trim=ENDS)} | how
        made = from_log(machine, self.drives[name].log, given.kinematics, given.sensors, **settings)  # pyright: ignore[reportArgumentType]
        return given.placed(informed(made, machine, given.kinematics, given.aerodynamics), machine)

    def part(self, seconds: float) -> Campaign:
        """The same drives as if each had ended after so many seconds."""
        drives = {name: replace(d, log=_first(d.log, seconds)) for name, d in self.drives.items()}
        return replace(self, drives=drives)

    def truth(self, names: Sequence[str]) -> dict[str, float]:
        """True values of the 33 parameters, secants of springs, dampers and bars being those over these drives together.

        The ends of the drives that :meth:`motion` cuts off are no part of it: a damper that blows off has another secant with them.
        """
        return truth(joined([inner(self.drives[name].run) for name in names]))


def _first(log: Experiment, seconds: float) -> Experiment:
    begin = log.span[0]
    channels = {}
    for name, c in log.channels.items():
        kept = c.t <= begin + seconds
        channels[name] = replace(c, t=c.t[kept], values=c.values[kept])
    return Experiment(channels, log.name, log.notes)


def inner(run: VehicleRun) -> VehicleRun:
    """A run without its first and last ENDS seconds."""
    cut = round(ENDS / (STEP * EVERY))
    kept = slice(cut, len(run) - cut)
    return replace(run, **{name: getattr(run, name)[kept] for name in ("t", "states", "outputs", "inputs")})


def joined(runs: Sequence[VehicleRun]) -> VehicleRun:
    """Several runs of one car behind each other; their clock starts anew with each."""
    parts = {name: np.concatenate([getattr(r, name) for r in runs]) for name in ("t", "states", "outputs", "inputs")}
    return replace(runs[0], **parts)


def drives_2006(rng: np.random.Generator, quick: bool = False) -> dict[str, tuple[VehicleManoeuvre, str, float]]:
    """Two drives to learn from and one to check with, each with the class of its road and its duration (s).

    Steering with speed varied, slowly at 90 and faster at 120 km/h; then sinusoidal steering at 110 km/h, the manoeuvre of paper 000.
    All chosen. The engine is never quite even, so that the driveline's modes show as they do in the paper's logs.
    """
    slow = speed_variation()
    fast = speed_variation(speed=120.0 * KMH, change=4.0, every=8.0, angle=0.36, frequency=0.35)
    check = sinusoidal_steering(speed=110.0 * KMH)
    long, short = (10.0, 6.0) if quick else (30.0, 15.0)
    return {
        TRAINING[0]: (restless(slow, rng), "C", long),
        TRAINING[1]: (restless(fast, rng), "C", long),
        VALIDATION: (restless(check, rng), "C", short),
    }


def drives_2002(quick: bool = False) -> dict[str, tuple[VehicleManoeuvre, str, float]]:
    """Paper 001, section 6: ramps of steering to the left at 90 and to the right at 110 km/h, together some 3000 samples of 16 ms.

    And braking in a straight line, and standing still. Roads of class A, as of a proving ground: chosen.
    """
    long, short = (10.0, 4.0) if quick else (24.0, 6.0)
    return {
        RAMPS[0]: (ramp_steer(90.0 * KMH, 0.06), "A", long),
        RAMPS[1]: (ramp_steer(110.0 * KMH, -0.05), "A", long),
        BRAKING: (straight_braking(), "A", short),
        STANDING: (standstill(), "A", 2.0),
    }


def campaign(
    rng: np.random.Generator,
    drives: Mapping[str, tuple[VehicleManoeuvre, str, float]],
    vehicle: Vehicle | None = None,
    sensors: CarSensors | None = None,
    progress: Progress = silent,
    known: CarKnown | None = None,
) -> Campaign:
    """Drive each manoeuvre on a road of its own, and log it. The instruments are zeroed once, so their zeros are those of all drives.

    `known`: what is handed in of car and instruments; exactly the truth by default.
    """
    car, chosen = vehicle or Vehicle(), sensors or sensors_2006()
    exact = replace(chosen, biases=dict.fromkeys(chosen.biases, 0.0))
    zeros: dict[str, float] = {}
    made: dict[str, CarDrive] = {}
    spent = driven = 0.0
    for k, (name, (manoeuvre, road_class, duration)) in enumerate(drives.items()):
        progress("driving", float(k), float(len(drives)))
        road = rough_road(road_class, rng, length=45.0 * duration + 200.0, track=1.5)
        began = time.process_time()
        run = drive(car, manoeuvre, road, duration, STEP, EVERY)
        if k:  # the first drive of a process compiles the simulator
            spent += time.process_time() - began
            driven += duration + manoeuvre.lead_in
        log = sensed(run, rng, exact)
        for channel in log.names:
            if channel not in zeros:
                zeros[channel] = chosen.biases[kind_of(channel)] * float(rng.standard_normal())
        made[name] = CarDrive(run, shifted(log, zeros))
    progress("driving", float(len(drives)), float(len(drives)))
    return Campaign(car, known or CarKnown.of(car, chosen), made, driven / spent if spent else float("nan"))


def shifted(log: Experiment, zeros: Mapping[str, float]) -> Experiment:
    """The log of instruments whose zeros are off."""
    channels = {n: Channel(n, c.t, c.values + zeros[n], c.unit) for n, c in log.channels.items()}
    return Experiment(channels, log.name, log.notes)


def campaign_2002(
    rng: np.random.Generator,
    quick: bool = False,
    vehicle: Vehicle | None = None,
    progress: Progress = silent,
    known: CarKnown | None = None,
) -> Campaign:
    """The drives of paper 001 through its instruments: a sample every 16 ms. `known` as for :func:`campaign`."""
    return campaign(rng, drives_2002(quick), vehicle, sensors_2002(), progress, known)


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
        found.append(_excitation_of(name, s))
    progress("ranking manoeuvres", float(len(every)), float(len(every)))
    return tuple(sorted(found, key=lambda e: (-e.well, e.condition)))


def _excitation_of(name: str, s: Solution) -> Excitation:
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


def saloon(vehicle: Vehicle) -> Machine:
    """The car of the simulator as its driver knows it, in a few numbers: masses and lengths, and tyres as of any passenger car."""
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
    run = drive(vehicle, bends, duration=GROWING_S, step=1e-3, every=20)
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
