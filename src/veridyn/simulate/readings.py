"""What the sensors of a machine read along a simulated motion, without any error, and the truth of a motion in natural coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from veridyn.arrays import Array
from veridyn.mechanics.formulated import in_joints
from veridyn.mechanics.natural.measurement import exact_readings as natural_readings
from veridyn.mechanics.natural.steps.driven import MechanismRun
from veridyn.mechanics.system.simulation import Trajectory
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import channels
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.simulate.imperfection import Imperfection


def exact_readings(machine: Machine, trajectory: Trajectory, sensors: Sequence[Sensor]) -> dict[str, Channel]:
    """The outputs of `sensors` by name, their known bias included."""
    if not sensors:
        return {}
    table = in_joints(machine).readout(sensors)
    values, t = table.read(*configurations(machine, trajectory)), trajectory.motion.t
    return {name: Channel(name, t, values[:, k], unit) for k, (name, unit) in enumerate(zip(table.names, table.units))}


def configurations(machine: Machine, trajectory: Trajectory) -> tuple[Array, Array, Array]:
    """Configurations (N, nq), rates and accelerations (N, nv) as :mod:`veridyn.mechanics.tree.recursion.sensing` orders them."""
    m, R = trajectory.motion, trajectory.base_rotation
    if machine.base != "free":
        return m.q, m.qd, m.qdd
    base = m.base
    place = trajectory.base_position
    assert base is not None and base.velocity is not None  # a simulated motion of a free base has them,
    assert R is not None and place is not None  # and its pose
    x, y, z, w = Rotation.from_matrix(R).as_quat().T
    e = np.column_stack([w, x, y, z])
    e *= _continued(e)
    V = np.einsum("nij,nj->ni", R, base.velocity)
    Vd = np.einsum("nij,nj->ni", R, base.acceleration) + machine.gravity
    q = np.hstack([place, e, m.q])
    return q, np.hstack([V, base.omega, m.qd]), np.hstack([Vd, base.omega_dot, m.qdd])


def _continued(e: Array) -> Array:
    """Signs (N, 1) that make quaternions (N, 4) follow each other without a jump."""
    turned = (e[1:] * e[:-1]).sum(axis=1) < 0.0
    return np.concatenate([[1.0], np.cumprod(np.where(turned, -1.0, 1.0))])[:, None]


def imperfections_of(sensors: Sequence[Sensor], rng: np.random.Generator | None) -> dict[str, Imperfection]:
    """The sensors of a machine, output by output, each with a bias drawn as the sensor has it."""
    found = {}
    for sensor in sensors:
        for channel in sensor.channels(3):
            drawn = 0.0 if rng is None or sensor.bias_sigma == 0.0 else float(rng.standard_normal())
            found[channel] = imperfection_of(sensor, sensor.bias_sigma * drawn)
    return found


def imperfection_of(sensor: Sensor, bias: float) -> Imperfection:
    """What a sensor of a machine adds to the truth, with the bias it has this time."""
    return Imperfection(
        noise=sensor.sigma,
        bias=bias,
        quantum=sensor.quantum,
        rate=sensor.rate,
        delay=sensor.delay,
        walk=sensor.bias_walk,
    )


def wrapped(sensors: Sequence[Sensor], log: Experiment) -> Experiment:
    """The same log with readings between −π and π where a sensor reads an angle modulo a full turn."""
    turning = [s.name for s in sensors if s.wraps and s.name in log]
    return log.replacing(
        *(Channel(c, log[c].t, (log[c].values + np.pi) % (2.0 * np.pi) - np.pi, log[c].unit) for c in turning)
    )


def mechanism_truth(run: MechanismRun) -> Experiment:
    """Everything about a run without error: its sensors' outputs by name, then q.C, qd.C and qdd.C of coordinates, and load.L."""
    m, motion = run.system.mechanism, run.motion
    found = dict(natural_readings(run.system, motion).channels)
    for prefix, values, per in (("q", motion.q, ""), ("qd", motion.qd, "/s"), ("qdd", motion.qdd, "/s^2")):
        for k, name in enumerate(m.coordinates):
            channel = f"{prefix}.{name}"
            found[channel] = Channel(channel, motion.t, values[:, k], m.unit_of(name) + per)
    for load in m.loads:
        for k, name in enumerate(channels(load)):
            channel, unit = f"load.{name}", m.force_unit(load.name)
            found[channel] = Channel(channel, motion.t, run.loads[load.name][:, k], unit)
    return Experiment(found, f"simulation of {m.name}", {"source": "simulated", "machine": m.name})


def own_sensors(machine: Machine, rng: np.random.Generator) -> dict[str, Imperfection]:
    """The sensors of a machine's file, output by output, each with a bias drawn as its file says."""
    return {
        channel: imperfection_of(i, float(i.bias_sigma * rng.standard_normal()))
        for i in machine.sensors
        for channel in i.channels(machine.dimension)
    }
