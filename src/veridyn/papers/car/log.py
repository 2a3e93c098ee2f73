"""From the log of a car's instruments to what its model needs: joint coordinates, the chassis' motion, wrenches at the wheels.

    motion = from_log(car_20(), log, CarKinematics.of(vehicle), sensors)

1. All channels come to one clock, and to one band: each sensor's own cut-off is divided out and one zero-phase low-pass, the same
   for all, is put in its place (:func:`veridyn.signals.conditioning.equalised`). Signals of one equation that have met different filters
   contradict each other; the paper's own scheme does that. `common=None` leaves the signals as they come.
2. What no sensor measures comes from the others (paper 000, V.B): half track, wheelbase and kingpin from the kinematic tables, by
   clearance, rack and, where wanted, measured force; tyre deflections from the heights of four points.
3. The chassis' velocity and acceleration are carried from the instruments' places to its origin.

`prepared` gives these as channels that :func:`veridyn.signals.motion.motion` reads. The joints of the car of 2002 come from its sensors
as paper 001, 5.1 derives them:

======================= ====================================================================================================
joints                  from
======================= ====================================================================================================
1, 2 (−y, x)            Correvit speeds, turned into the ground's axes; positions by integration
3 (z)                   four lasers, geometrically
4, 5 (yaw, −pitch)      camera: rates; angles by integration
6 (roll)                inertial unit: rate; angle by integration
7, 10, 13, 17           clearances, from the design position
9, 12, 16, 20           dynamometric wheels
14, 18                  autocollimators: steering
======================= ====================================================================================================

Accelerations, and rates where none is measured, are derivatives and are left to :func:`veridyn.signals.motion.motion`. Integrated
angles drift with the biases of the rates; of pitch and roll the straight line by which they leave the lasers' angles is taken away, since
weight acts through them. The chassis frame has its origin on the line of the rear axle and x to the right, y down, z forward; the
dynamometers' frames have z to the left. In mixed form the base's motion is the inertial unit's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.sensors import UNITS, WHEELS, CarSensors, kind_of, sensors_2006
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.forces import Four
from veridyn.papers.car.simulator.tables import WheelTables
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.conditioning import derivative, equalised, trapezoid
from veridyn.signals.motion import Signals, prepare
from veridyn.signals.naming import unit_faults
from veridyn.signals.quality import inspect_clocks
from veridyn.signals.resample import resample, uniform_rate

FRAME_6 = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])  # from frame 6 to x forward, y left, z up
DYNAMOMETER = np.array(
    [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
)  # from the carrier's axes to frames 8, 11, 15, 19
# By wheel: front left, front right, rear left, rear right.
CLEARANCE, WHEEL = ("q13", "q17", "q7", "q10"), ("q16", "q20", "q9", "q12")
# What remains of every signal: wide enough for dry friction and wheel hop, narrow enough that the inertial unit's 10 Hz can be undone.
COMMON = Butterworth(40.0)


@dataclass(frozen=True)
class CarKinematics:
    """What a maker's benches know of the axles: tables, the clearances they count from, tyre radius, wheel places (x, y) at the design."""

    tables: WheelTables
    design: Four
    radius: float
    places: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, vehicle: Vehicle) -> CarKinematics:
        radius = float(vehicle.packed().tyres.radius[0])
        places = tuple((float(x), float(y)) for x, y in vehicle.places())
        return cls(vehicle.tables, vehicle.suspension.design, radius, places)


@dataclass(frozen=True, eq=False)
class CarRecord:
    """The instruments' channels at common times, each by its name; `name` and `notes` are those of the log."""

    t: Array
    rate: float
    channels: dict[str, Array]
    name: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.channels[name]

    def shifted(self, channel: str, by: float) -> CarRecord:
        """With another zero of one channel, which passes every band as it is."""
        return replace(self, channels=self.channels | {channel: self.channels[channel] + by})

    def stack(self, names: Iterable[str]) -> Array:
        """Several channels as columns (N, k)."""
        return np.stack([self.channels[n] for n in names], axis=1)

    def four(self, family: str) -> Array:
        """One channel of each wheel (N, 4)."""
        return self.stack(f"{family}.{n}" for n in WHEELS)

    def three(self, family: str) -> Array:
        return self.stack(f"{family}.{a}" for a in "xyz")

    @property
    def wrench(self) -> Array:
        """Of the dynamometers (N, 4, 6)."""
        return np.stack([self.stack(f"dynamometer.{n}.{r}" for r in WRENCH_ROWS) for n in WHEELS], axis=1)


def needed(machine: Machine) -> list[str]:
    """The channels without which a car's motion cannot be had from a log."""
    names = [f"inertial.{q}.{a}" for q in ("omega", "acceleration") for a in "xyz"]
    names += [f"{family}.{n}" for family in ("clearance", "steering", "wheel", "height") for n in WHEELS]
    if "camber1" in machine.coordinates:
        names += [f"camber.{n}" for n in WHEELS]
    if "q7" in machine.coordinates and machine.base != "free":
        names += ["camera.yaw_rate", "camera.pitch_rate"]
    return [*names, "correvit.x", "correvit.y", *(f"dynamometer.{n}.{r}" for n in WHEELS for r in WRENCH_ROWS)]


def carrier_of(machine: Machine, coordinate: str) -> str:
    """The body on which the joint of a coordinate sits: of a wheel that turns, the one whose dynamometer measures its wrench."""
    return next(machine.attachment(j.a).body for j in machine.joints if coordinate in j.coordinate_names)


def record(machine: Machine, log: Experiment, sensors: CarSensors, common: Butterworth | None) -> CarRecord:
    """The channels that a car needs, checked for presence, unit, clock and numbers, at one clock and in one band; all faults at once."""
    wanted = needed(machine)
    faults = Faults()
    for name in wanted:
        if name not in log:
            faults.add(f"there is no channel '{name}'.", where=log.name, hint=did_you_mean(name, log.names))
        else:
            faults.extend(unit_faults(log[name], [UNITS[kind_of(name)]]))
    used = Experiment({n: log[n] for n in wanted if n in log}, log.name, log.notes)
    for finding in inspect_clocks(used):
        if finding.severity == "fatal" or finding.kind == "gap":
            faults.extend([finding.fault])
    faults.raise_if_any(DataError)
    first = used[wanted[0]].t
    if not all(used[n].t is first or np.array_equal(used[n].t, first) for n in wanted):
        used = resample(used, max(used[n].rate for n in wanted), "cubic")
    t = used[wanted[0]].t
    rate = uniform_rate(t, where=log.name)
    values = {n: used[n].values for n in wanted}
    if common is not None:
        bands = {n: sensors.band(n) for n in wanted}
        for band in set(bands.values()):
            alike = [n for n in wanted if bands[n] == band]
            made = equalised(np.stack([values[n] for n in alike], axis=1), rate, band, common, log.name)
            values |= {n: made[:, k] for k, n in enumerate(alike)}
    return CarRecord(t, rate, values, log.name, log.notes)


def chassis_motion(known: CarRecord, sensors: CarSensors, omega: Array, at: Array) -> tuple[Array, Array]:
    """Velocity and specific acceleration at a point of the chassis (3,), in its frame, from the instruments at theirs.

    The Correvit does not see the velocity along z: it is left out, and is a thousandth of the speed.
    """
    turning = derivative(omega, known.rate, 1, where="inertial.omega")
    p = np.array(sensors.inertial_place) - at
    acceleration = known.three("inertial.acceleration") - np.cross(turning, p) - np.cross(omega, np.cross(omega, p))
    seen = np.column_stack([known["correvit.x"], known["correvit.y"], np.zeros(len(omega))])
    velocity = seen - np.cross(omega, np.array(sensors.speed_place) - at)
    velocity[:, 2] = 0.0
    return velocity, acceleration


def attitude_over_road(known: CarRecord, sensors: CarSensors) -> tuple[Array, Array, Array]:
    """Height of the chassis origin, pitch and roll of the chassis over the road, by the plane through four laser points.

    hᵢ = h + zᵢ + yᵢ·roll − xᵢ·pitch, in least squares; angles as small ones. A rough road beneath the lasers is a part of it.
    """
    places = np.array(sensors.height_places)
    columns = np.stack([np.ones(4), -places[:, 0], places[:, 1]], axis=1)
    found = np.linalg.lstsq(columns, (known.four("height") - places[:, 2]).T)[0]
    return found[0], found[1], found[2]


def wrench_channels(body: str, wrench: Array) -> dict[str, tuple[Array, str]]:
    """A wrench (N, 6) as channels on a body."""
    return {f"wrench.{body}.{r}": (wrench[:, k], "N" if k < 3 else "N*m") for k, r in enumerate(WRENCH_ROWS)}


def channels_2002(
    machine: Machine, known: CarRecord, kinematics: CarKinematics, sensors: CarSensors
) -> dict[str, tuple[Array, str]]:
    """Name of a channel → its values and unit, for the machine of 2002 in Lagrange or in mixed form."""
    origin = np.array([0.0, 0.0, np.mean(kinematics.design[2:])])
    made = _joints(machine, known, kinematics)
    if machine.base == "free":
        omega = known.three("inertial.omega")
        velocity, acceleration = chassis_motion(known, sensors, omega, origin)
        turned = {"omega": (omega, "rad/s"), "acceleration": (acceleration, "m/s^2"), "velocity": (velocity, "m/s")}
        for name, (x, unit) in turned.items():
            for k, axis in enumerate("xyz"):
                made[f"base.{name}.{axis}"] = ((x @ FRAME_6)[:, k], unit)
    else:
        made |= _chassis(known, sensors, origin)
    for i in range(4):
        f, m = known.wrench[:, i, :3], known.wrench[:, i, 3:]
        made |= wrench_channels(carrier_of(machine, WHEEL[i]), np.hstack([f @ DYNAMOMETER.T, m @ DYNAMOMETER.T]))
    return made


def _joints(machine: Machine, known: CarRecord, kinematics: CarKinematics) -> dict[str, tuple[Array, str]]:
    made = {}
    for i, n in enumerate(WHEELS):
        made[f"q.{CLEARANCE[i]}"] = (known[f"clearance.{n}"] - kinematics.design[i], "m")
        made[f"q.{WHEEL[i]}"] = (known[f"wheel.{n}"], "rad")
    left, right = known["steering.1"], known["steering.2"]
    if "beta" in machine.coordinates:
        return made | {"q.beta": (0.5 * (left + right), "rad")}
    return made | {"q.q14": (left, "rad"), "q.q18": (right, "rad")}


def _chassis(known: CarRecord, sensors: CarSensors, origin: Array) -> dict[str, tuple[Array, str]]:
    rate = known.rate
    height, lying, leaning = attitude_over_road(known, sensors)
    yaw_rate, pitch_rate = known["camera.yaw_rate"], known["camera.pitch_rate"]
    yaw = trapezoid(yaw_rate, rate)
    pitch = _held(trapezoid(pitch_rate, rate), lying)
    roll_rate = known["inertial.omega.x"] + yaw_rate * np.sin(pitch)
    roll = _held(trapezoid(roll_rate, rate), leaning)
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    omega = np.column_stack(
        [known["inertial.omega.x"], cr * pitch_rate + sr * cp * yaw_rate, cr * cp * yaw_rate - sr * pitch_rate]
    )
    up = np.column_stack([-sp, cp * sr, cp * cr])  # the vertical in the chassis' axes
    z = height + up @ origin
    velocity, _ = chassis_motion(known, sensors, omega, origin)
    velocity[:, 2] = (derivative(z, rate, 1) - (velocity * up).sum(axis=1)) / up[:, 2]
    along = cp * velocity[:, 0] + sp * sr * velocity[:, 1] + sp * cr * velocity[:, 2]
    across = cr * velocity[:, 1] - sr * velocity[:, 2]
    xd, yd = np.cos(yaw) * along - np.sin(yaw) * across, np.sin(yaw) * along + np.cos(yaw) * across
    return {
        "q.q1": (-trapezoid(yd, rate), "m"),
        "qd.q1": (-yd, "m/s"),
        "q.q2": (trapezoid(xd, rate), "m"),
        "qd.q2": (xd, "m/s"),
        "q.q3": (z, "m"),
        "q.q4": (yaw, "rad"),
        "qd.q4": (yaw_rate, "rad/s"),
        "q.q5": (-pitch, "rad"),
        "qd.q5": (-pitch_rate, "rad/s"),
        "q.q6": (roll, "rad"),
        "qd.q6": (roll_rate, "rad/s"),
    }


def _held(angle: Array, seen: Array) -> Array:
    """An integrated angle without the straight line by which it leaves the one that is seen."""
    t = np.linspace(-1.0, 1.0, len(angle))
    columns = np.stack([np.ones_like(t), t], axis=1)
    return angle - columns @ np.linalg.lstsq(columns, angle - seen)[0]


def prepared(
    machine: Machine,
    log: Experiment,
    kinematics: CarKinematics,
    sensors: CarSensors | None = None,
    common: Butterworth | None = COMMON,
    forces_in_tables: bool = True,
) -> Experiment:
    """The log as channels of `machine` (car_20, car_38 or car_2002), ready for motion(machine, …); see the head of this file.

    `sensors` gives places and bands. `forces_in_tables` False reads the tables by clearance and rack alone, as V.B of paper 000 has it.
    """
    chosen = sensors or sensors_2006()
    known = record(machine, log, chosen, common)
    if "q7" in machine.coordinates:
        made = channels_2002(machine, known, kinematics, chosen)
    elif "z1" in machine.coordinates:
        made = _channels_2006(machine, known, kinematics, chosen, forces_in_tables)
    else:
        raise DataError("it is none of the papers' cars.", where=machine.name, expected="coordinates z1 … or q7 …")
    channels = {name: Channel(name, known.t, values, unit) for name, (values, unit) in made.items()}
    return Experiment(channels, log.name, log.notes)


def from_log(
    machine: Machine,
    log: Experiment,
    kinematics: CarKinematics,
    sensors: CarSensors | None = None,
    common: Butterworth | None = COMMON,
    signals: Signals | None = None,
    forces_in_tables: bool = True,
    noise: bool = True,
) -> Motion:
    """The motion of a car that its instruments recorded: :func:`prepared`, then derivatives and trimming by `signals`.

    `noise`: with that of its accelerations.
    """
    made = prepared(machine, log, kinematics, sensors, common, forces_in_tables)
    return prepare(machine, made, signals).motion(noise)


def rack_angle(toe: Array, clearance: Array, kinematics: CarKinematics, forces: Array | None = None) -> Array:
    """The rack (N,) at which the tables give the measured mean of the front wheels' steering angles."""
    rack = toe[:, :2].mean(axis=1)
    for _ in range(4):  # the tables' own part is small: each round gains two digits
        given = kinematics.tables.at(clearance, rack, forces)
        rack = rack + (toe[:, :2] - given[:, :2, 2]).mean(axis=1)
    return rack


def _channels_2006(
    machine: Machine, known: CarRecord, kinematics: CarKinematics, sensors: CarSensors, forces_in_tables: bool
) -> dict[str, tuple[Array, str]]:
    omega = known.three("inertial.omega")
    velocity, acceleration = chassis_motion(known, sensors, omega, np.zeros(3))
    z, toe, wrench = known.four("clearance"), known.four("steering"), known.wrench
    height, pitch, roll = attitude_over_road(known, sensors)
    places = np.array(kinematics.places)
    over_road = height[:, None] + z + places[:, 1] * roll[:, None] - places[:, 0] * pitch[:, None]
    joints = {"z": z, "beta": toe, "theta": known.four("wheel"), "zt": kinematics.radius - over_road}
    if "dl1" in machine.coordinates:
        forces = wrench[:, :, [0, 1, 5]] if forces_in_tables else None
        beside = z - np.array(kinematics.design)
        rack = rack_angle(toe, beside, kinematics, forces)
        tables = kinematics.tables.at(beside, rack, forces)
        joints |= {"dl": tables[:, :, 0], "dL": tables[:, :, 1], "kingpin": tables[:, :, 4]}
        joints["camber"] = known.four("camber")
    all_joints = {f"{name}{n}": x[:, i] for name, x in joints.items() for i, n in enumerate(WHEELS)}
    made: dict[str, tuple[Array, str]] = {}
    for name, kind in zip(machine.coordinates, machine.coordinate_kinds, strict=True):
        made[f"q.{name}"] = (all_joints[name], "rad" if kind == "turning" else "m")
    for k, axis in enumerate("xyz"):
        made[f"base.omega.{axis}"] = (omega[:, k], "rad/s")
        made[f"base.acceleration.{axis}"] = (acceleration[:, k], "m/s^2")
        made[f"base.velocity.{axis}"] = (velocity[:, k], "m/s")
    for i, n in enumerate(WHEELS):
        made |= wrench_channels(carrier_of(machine, f"theta{n}"), wrench[:, i])
    return made
