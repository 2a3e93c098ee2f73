"""From the log of a car's instruments to what its model needs: joint coordinates, the chassis' motion, wrenches at the wheels.

    motion = from_log(car_20(), log, CarKinematics.of(vehicle), sensors)

1. All channels come to one clock, and to one band: each sensor's own cut-off is divided out and one zero-phase low-pass, the same
   for all, is put in its place (:func:`veridyn.signals.band.equalised`). Signals of one equation that have met different filters contradict
   each other; the paper's own scheme does that. `common=None` leaves the signals as they come.
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

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.record import (
    CarKinematics,
    CarRecord,
    attitude_over_road,
    carrier_of,
    chassis_motion,
    record,
    wrench_channels,
)
from veridyn.papers.car.sensors import WHEELS, CarSensors, sensors_2006
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.derivative import derivative, trapezoid
from veridyn.signals.motion import Signals, prepare

FRAME_6 = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])  # from frame 6 to x forward, y left, z up
DYNAMOMETER = np.array(
    [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
)  # from the carrier's axes to frames 8, 11, 15, 19
# By wheel: front left, front right, rear left, rear right.
CLEARANCE, WHEEL = ("q13", "q17", "q7", "q10"), ("q16", "q20", "q9", "q12")
Array = NDArray[np.float64]
# What remains of every signal: wide enough for dry friction and wheel hop, narrow enough that the inertial unit's 10 Hz can be undone.
COMMON = Butterworth(40.0)


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
        raise DataError(Fault("it is none of the papers' cars.", machine.name, "coordinates z1 … or q7 …"))
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
