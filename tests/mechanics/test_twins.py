"""One machine as a tree and in natural coordinates: sensors read the same, and loads spend the same power, to 1e-9."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.twins import Twin, crane_twin, linkage_twin, spatial_twin
from veridyn.mechanics.natural.channels import readout
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.forces import forces_of
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.recursion.sensing import load_matrix
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]


def planar(body: str, at: float, point: str, end: Marker, plane: str) -> tuple[list[Sensor], list[Sensor]]:
    """The same sensors in the plane and in space: on a bar, at a place on it, and at its end."""
    flat, deep = Marker(body, (at, 0.1)), Marker(body, (at, 0.1, 0.0))
    across, across_deep = Marker(body, (at, 0.1), (0, 1)), Marker(body, (at, 0.1, 0), (0, 1, 0), (-1, 0, 0))
    kinds = [("p", "position"), ("v", "velocity")]
    natural = [Sensor(n, k, point, 0.1) for n, k in kinds]
    tree = [Sensor(n, k, end, 0.1, axes=plane) for n, k in kinds]
    natural += [Sensor("along", "velocity", across, 0.1), Sensor("gyro", "gyroscope", body, 0.1)]
    tree += [
        Sensor("along", "velocity", across_deep, 0.1, axes="xy"),
        Sensor("gyro", "gyroscope", body, 0.1, axes="z"),
    ]
    natural += [Sensor("acc", "accelerometer", flat, 0.1), Sensor("acc_across", "accelerometer", across, 0.1, axes="y")]
    tree += [
        Sensor("acc", "accelerometer", deep, 0.1, axes="xy"),
        Sensor("acc_across", "accelerometer", across_deep, 0.1, axes="y"),
    ]
    return natural, tree


def compare(twin: Twin, natural: list[Sensor], tree: list[Sensor]) -> None:
    system = system_of(twin.mechanism)
    one, other = readout(system, natural), tree_readout(twin.tree, tree, "numpy")
    assert len(one.names) == len(other.names)
    assert [u.partition("/")[2] for u in one.units] == [u.partition("/")[2] for u in other.units]
    motion = twin.states(np.random.default_rng(1), 4)
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        x, xd, xdd = twin.natural(q, qd, qdd)
        assert np.abs(system.constraints.evaluate(x)[0]).max() < 1e-9  # the same machine, and closed
        wanted, found = one.read(x, xd, xdd), other.read(q, qd, qdd)
        assert np.abs(found - wanted).max() < 1e-9 * max(1.0, np.abs(wanted).max())


def test_the_crane() -> None:
    natural, tree = planar("rope", 2.5, "L", Marker("rope", (6, 0, 0)), "xy")
    coordinates = [Sensor("x", "coordinate", "x", 0.1), Sensor("w", "rate", "swing", 0.1)]
    compare(crane_twin(), natural + coordinates, tree + coordinates)


def test_the_linkage() -> None:
    natural, tree = planar("coupler", 0.3, "2", Marker("rocker", (0.4, 0, 0)), "xz")
    coordinates = [Sensor("e", "coordinate", "q1", 0.1), Sensor("w", "rate", "q3", 0.1)]
    compare(linkage_twin(), natural + coordinates, tree + coordinates)


def test_the_spatial_mechanism() -> None:
    """Its own sensors and more, the same objects on both."""
    twin = spatial_twin()
    turned = Marker("upper_b", (2.05, 0.45, 0.95), (1.0, 2.0, 0.5), (0.0, 1.0, 0.3))
    more = [
        Sensor("elbow", "coordinate", "elbow", 0.1),
        Sensor("rate", "rate", "base_b", 0.1),
        Sensor("place", "position", Marker("rod", (1.0, 0.2, 1.3)), 0.1),
        Sensor("speed", "velocity", Marker("rod", (1.0, 0.2, 1.3)), 0.1, axes="zx"),
        Sensor("along", "velocity", turned, 0.1),
        Sensor("turned", "gyroscope", turned, 0.1),
        Sensor("turned_acc", "accelerometer", turned, 0.1, axes="zy"),
    ]
    compare(twin, [*twin.mechanism.sensors, *more], [*twin.mechanism.sensors, *more])


@pytest.mark.parametrize("make", [crane_twin, spatial_twin])
def test_loads_spend_the_same_power(make: Callable[[], Twin]) -> None:
    twin = make()
    m, deep = twin.mechanism, make is spatial_twin
    if deep:
        loads = [
            Drive("motor", "elbow"),
            Force("push", Marker("rod", (1.0, 0.2, 1.3)), (0, 0, 0)),
            Torque("turn", "upper_b", (0, 0, 0), "rod"),
        ]
        same = loads
    else:
        loads = [Drive("motor", "x"), Force("push", Marker("rope", (2, 0.1)), (0, 0)), Torque("turn", "rope", 0.0)]
        same = [
            Drive("motor", "x"),
            Force("push", Marker("rope", (2, 0.1, 0)), (0, 0, 0)),
            Torque("turn", "rope", (0, 0, 0)),
        ]
    loaded = Mechanism.build(
        m.points, m.bodies, vectors=m.vectors, joints=m.joints, added=m.added, loads=loads, gravity=m.gravity
    )
    table = forces_of(Geometry(loaded))
    motion = twin.states(np.random.default_rng(2), 3)
    B = load_matrix(twin.tree, motion.q, same)
    for b, q, qd in zip(B, motion.q, motion.qd, strict=True):
        x, xd, _ = twin.natural(q, qd, 0 * qd)
        power = xd @ (table.constant + (table.turning @ np.append(x, 1.0)).T)
        found = b.T @ qd
        assert (found if deep else found[[0, 1, 2, 6]]) == pytest.approx(power, abs=1e-9)
