"""The instruments of the papers' cars, and the log they make of a drive: place, rate, cut-off, noise and bias of each.

    log = sensed(run, rng, sensors_2006())

Paper 000, V.A: an inertial unit (10 Hz), four clearances (20 Hz), a Correvit for the speeds along and across (15 Hz), lasers for the four
steering angles (10 Hz), dynamometric wheels for wrenches and wheel angles (100 Hz), lasers for the height of four points of the
chassis (20 Hz). Camber is among the lasers' angles: VI.B speaks of its measurement, and V.B does not list it among what is missing.
Paper 001, 5.1, adds a camera for yaw and pitch rates. The cut-offs are the papers'; that each is a Butterworth low-pass of second order
which lags, the places, rates, noises and biases are chosen, noises as good instruments have them.

Channels, wheels 1 to 4 being front left, front right, rear left, rear right; SI units:

================================ =========================================================================
inertial.omega.x, y, z           angular velocity of the chassis, in its frame
inertial.acceleration.x, y, z    specific acceleration v̇ − g at the place of the unit
clearance.1                      from the chassis origin to the wheel centre along z, upwards
correvit.x, correvit.y           velocity of its place over the ground, along and across the chassis
steering.1, camber.1             of the carrier in the chassis
dynamometer.1.fx … mz            wrench of the wheel on its carrier at the wheel centre, in the carrier's frame
wheel.1                          angle of the wheel in its carrier
height.1                         of a point of the chassis over the road beneath it
camera.yaw_rate, .pitch_rate     rates of the chassis' angles (2002)
================================ =========================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.car.simulator.run import VehicleRun
from veridyn.signals.conditioning import Band
from veridyn.simulate.imperfection import Imperfection

Place = tuple[float, float, float]
WHEELS = ("1", "2", "3", "4")

# Unit and standard deviation of the bias of each kind of channel: what is left after a careful zeroing before the drive, chosen.
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "gyro": "rad/s",
        "accelerometer": "m/s^2",
        "clearance": "m",
        "speed": "m/s",
        "steering": "rad",
        "force": "N",
        "moment": "N*m",
        "wheel_angle": "rad",
        "height": "m",
        "camera": "rad/s",
    }
)
BIASES: Mapping[str, float] = MappingProxyType(
    {
        "gyro": 2e-4,
        "accelerometer": 0.01,
        "clearance": 1e-4,
        "speed": 0.01,
        "steering": 2e-4,
        "force": 5.0,
        "moment": 2.0,
        "wheel_angle": 0.0,
        "height": 2e-4,
        "camera": 2e-4,
    }
)


def _corners() -> tuple[Place, ...]:
    return ((3.4, 0.7, -0.2), (3.4, -0.7, -0.2), (-0.8, 0.7, -0.2), (-0.8, -0.7, -0.2))


@dataclass(frozen=True)
class CarSensors:
    """One :class:`Imperfection` for each kind of channel, the places in the chassis frame (m), and the size of the biases by kind.

    A bias is one number for each channel and drive, drawn when the drive is sensed. `camera` None: there is none.
    """

    gyro: Imperfection
    accelerometer: Imperfection
    clearance: Imperfection
    speed: Imperfection
    steering: Imperfection
    force: Imperfection
    moment: Imperfection
    wheel_angle: Imperfection
    height: Imperfection
    camera: Imperfection | None = None
    inertial_place: Place = (1.30, 0.0, -0.05)
    speed_place: Place = (-0.95, 0.0, -0.30)
    height_places: tuple[Place, ...] = field(default_factory=_corners)
    biases: Mapping[str, float] = field(default_factory=lambda: BIASES)

    @property
    def kinds(self) -> dict[str, Imperfection]:
        """The sensors by kind, those that exist."""
        found = {kind: getattr(self, kind) for kind in UNITS}
        return {kind: sensor for kind, sensor in found.items() if sensor is not None}

    def band(self, channel: str) -> Band | None:
        """The band in which a channel was measured; None: all frequencies."""
        sensor = self.kinds[kind_of(channel)]
        return Band(sensor.cutoff, sensor.order) if sensor.cutoff > 0.0 else None

    def quiet(self) -> CarSensors:
        """The same places, rates and bands without noise and bias."""
        calm = {kind: replace(s, noise=0.0, bias=0.0) for kind, s in self.kinds.items()}
        return replace(self, **calm, biases=dict.fromkeys(UNITS, 0.0))

    def perfect(self) -> CarSensors:
        """The same places; every sample is true."""
        true = {kind: Imperfection() for kind in self.kinds}
        return replace(self, **true, biases=dict.fromkeys(UNITS, 0.0))


def sensors_2006(rate: float = 500.0) -> CarSensors:
    """Paper 000, V.A, all channels recorded at one rate (Hz; chosen)."""

    def at(cutoff: float, noise: float) -> Imperfection:
        return Imperfection(noise=noise, rate=rate, cutoff=cutoff, causal=True)

    return CarSensors(
        gyro=at(10.0, 0.002),
        accelerometer=at(10.0, 0.03),
        clearance=at(20.0, 1e-4),
        speed=at(15.0, 0.02),
        steering=at(10.0, 2e-4),
        force=at(100.0, 15.0),
        moment=at(100.0, 5.0),
        wheel_angle=at(100.0, 2e-3),
        height=at(20.0, 3e-4),
    )


def sensors_2002() -> CarSensors:
    """Paper 001, 5.1: a sample every 16 ms. It names no cut-offs: those of paper 000, the wheels' 20 Hz, below half the rate (chosen)."""
    base = sensors_2006(1.0 / 0.016)
    wheels = {kind: replace(base.kinds[kind], cutoff=20.0) for kind in ("force", "moment", "wheel_angle")}
    return replace(base, **wheels, camera=replace(base.gyro, noise=0.001))


def kind_of(channel: str) -> str:
    """Which kind of sensor measures a channel of a car's log."""
    family, _, rest = channel.partition(".")
    kinds = {
        "clearance": "clearance",
        "correvit": "speed",
        "steering": "steering",
        "camber": "steering",
        "wheel": "wheel_angle",
        "height": "height",
        "camera": "camera",
    }
    if family == "inertial":
        return "gyro" if rest.startswith("omega") else "accelerometer"
    if family == "dynamometer":
        return "force" if rest.partition(".")[2].startswith("f") else "moment"
    if family not in kinds:
        raise DataError(f"no instrument of the car makes a channel '{channel}'.", expected=", ".join(kinds))
    return kinds[family]


def sensed(run: VehicleRun, rng: np.random.Generator | None, sensors: CarSensors | None = None) -> Experiment:
    """The log of a drive. Samples of the run must follow closely enough for the bands: 1 kHz is, 100 Hz is not."""
    chosen = sensors or sensors_2006()
    channels = {}
    for name, values in _true(run, chosen):
        kind = kind_of(name)
        sensor = chosen.kinds[kind]
        size = chosen.biases[kind]
        if size > 0.0:
            if rng is None:
                raise DataError("biased sensors need random numbers.", where=name, expected="rng", found="none")
            sensor = replace(sensor, bias=sensor.bias + size * float(rng.standard_normal()))
        channels[name] = sensor.read(Channel(name, run.t, values, UNITS[kind]), rng)
    notes = {"source": "simulated", "machine": run.vehicle.name, "manoeuvre": run.manoeuvre}
    return Experiment(channels, f"{run.manoeuvre}, {run.vehicle.name}", notes)


def _true(run: VehicleRun, sensors: CarSensors) -> Iterator[tuple[str, Array]]:
    """What each instrument would read if it had no error."""
    w, wd = run.base.omega, run.base.omega_dot
    assert run.base.velocity is not None
    p = np.array(sensors.inertial_place)
    acceleration = run.base.acceleration + np.cross(wd, p) + np.cross(w, np.cross(w, p))
    over_ground = run.base.velocity + np.cross(w, np.array(sensors.speed_place))
    for k, axis in enumerate("xyz"):
        yield f"inertial.omega.{axis}", w[:, k]
    for k, axis in enumerate("xyz"):
        yield f"inertial.acceleration.{axis}", acceleration[:, k]
    for i, n in enumerate(WHEELS):
        yield f"clearance.{n}", run.clearance[0][:, i]
    yield "correvit.x", over_ground[:, 0]
    yield "correvit.y", over_ground[:, 1]
    for i, n in enumerate(WHEELS):
        yield f"steering.{n}", run.wheel_place[0][:, i, 2]
        yield f"camber.{n}", run.wheel_place[0][:, i, 3]
    for i, n in enumerate(WHEELS):
        for k, row in enumerate(WRENCH_ROWS):
            yield f"dynamometer.{n}.{row}", run.wheel_wrench[:, i, k]
        yield f"wheel.{n}", run.wheel_angle[0][:, i]
    R = run.attitude
    for n, place in zip(WHEELS, sensors.height_places, strict=True):
        at = run.position + R @ np.array(place)
        yield f"height.{n}", at[:, 2] - run.road.height(at[:, 0], at[:, 1])
    if sensors.camera is not None:
        _, pitch, roll = yaw_pitch_roll(R)
        across = np.sin(roll) * w[:, 1] + np.cos(roll) * w[:, 2]
        yield "camera.yaw_rate", across / np.cos(pitch)
        yield "camera.pitch_rate", np.cos(roll) * w[:, 1] - np.sin(roll) * w[:, 2]


def yaw_pitch_roll(R: Array) -> tuple[Array, Array, Array]:
    """The angles of R = Rz(yaw) Ry(pitch) Rx(roll), (N, 3, 3) → three of (N,); yaw runs on beyond half a turn."""
    yaw = np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    return yaw, np.arcsin(-R[:, 2, 0]), np.arctan2(R[:, 2, 1], R[:, 2, 2])
