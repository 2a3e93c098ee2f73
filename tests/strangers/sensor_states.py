"""Random states and random sensors of machines, and the change of a configuration in its tangent, by SciPy's rotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from strangers.random_trees import body_names
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]


def random_state(rng: np.random.Generator, machine: Machine | Tree) -> tuple[Array, Array, Array]:
    """Configuration, rates and accelerations; of a free base (p, e, joints), (V, ω, q̇) and (V̇, ω̇, q̈)."""
    free = machine.base == "free"
    rates = rng.normal(size=(2, machine.n + (6 if free else 0)))
    e = rng.normal(size=4)
    base = [*rng.normal(size=3), *(e / np.linalg.norm(e))] if free else []
    return np.array([*base, *rng.normal(size=machine.n)]), rates[0], rates[1]


def added(machine: Machine | Tree, q: Array, d: Array) -> Array:
    """q changed by d of its tangent: p + dp, R exp(dθ~), joints + dq."""
    if machine.base != "free":
        return q + d
    w, x, y, z = q[3:7]
    turned = Rotation.from_quat([x, y, z, w]) * Rotation.from_rotvec(d[3:6])
    x, y, z, w = turned.as_quat()
    return np.concatenate([q[:3] + d[:3], [w, x, y, z], q[7:] + d[6:]])


def random_sensors(rng: np.random.Generator, machine: Machine | Tree) -> list[Sensor]:
    """Two of each kind, on random bodies, on places with and without axes and on bodies by name."""
    names = body_names(machine)

    def body() -> str:
        return names[int(rng.integers(len(names)))]

    def plain() -> Marker:
        return Marker(body(), rng.normal(size=3))

    def turned() -> Marker:
        return Marker(body(), rng.normal(size=3), rng.normal(size=3), rng.normal(size=3))

    c = [machine.coordinates[int(rng.integers(machine.n))] for _ in range(2)]
    sensors = [
        Sensor("encoder", "coordinate", c[0], 0.1, bias=0.7),
        Sensor("tacho", "rate", c[1], 0.1),
        Sensor("origin", "position", body(), 0.1, axes="zx"),
        Sensor("place", "position", plain(), 0.1),
        Sensor("velocity", "velocity", plain(), 0.1),
        Sensor("along", "velocity", turned(), 0.1, axes="yx"),
        Sensor("velocity_of_origin", "velocity", body(), 0.1, axes="y"),
        Sensor("gyro", "gyroscope", body(), 0.1),
        Sensor("turned_gyro", "gyroscope", turned(), 0.1, axes="zy"),
        Sensor("acc", "accelerometer", plain(), 0.1, bias=-1.5),
        Sensor("turned_acc", "accelerometer", turned(), 0.1),
        Sensor("acc_of_origin", "accelerometer", body(), 0.1),
        Sensor("to_ground", "distance", plain(), 0.1, to=Marker("ground", rng.normal(size=3))),
    ]
    if len(names) > 1:
        one, two = rng.choice(len(names), 2, replace=False)
        ends = [names[int(k)] for k in (one, two)]
        sensors.append(Sensor("between", "distance", Marker(ends[0], rng.normal(size=3)), 0.1, to=ends[1]))
    return sensors
