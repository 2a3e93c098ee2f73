"""From the log of a car's instruments to what its model needs: joint coordinates, the chassis' motion, wrenches at the wheels.

    motion = from_log(car_20(), log, CarKinematics.of(vehicle), sensors)

1. All channels come to one clock, and to one band: each sensor's own cut-off is divided out and one zero-phase low-pass, the same
   for all, is put in its place (:func:`veridyn.signals.band.equalised`). Signals of one equation that have met different filters contradict
   each other; the paper's own scheme does that. `common=None` leaves the signals as they come.
2. What no sensor measures comes from the others (paper 000, V.B): half track, wheelbase and kingpin from the kinematic tables, by
   clearance, rack and, where wanted, measured force; tyre deflections from the heights of four points.
3. The chassis' velocity and acceleration are carried from the instruments' places to its origin.

`prepared` gives these as channels that :func:`veridyn.signals.motion.motion` reads, for the car of 20 or of 38 degrees of freedom;
the car of 2002 has a file of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.machines.car_log_2002 import channels_2002
from veridyn.machines.car_record import (
    CarKinematics,
    CarRecord,
    attitude_over_road,
    carrier_of,
    chassis_motion,
    record,
    wrench_channels,
)
from veridyn.machines.car_sensors import WHEELS, CarSensors, sensors_2006
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, prepare

Array = NDArray[np.float64]
# What remains of every signal: wide enough for dry friction and wheel hop, narrow enough that the inertial unit's 10 Hz can be undone.
COMMON = Butterworth(40.0)


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
