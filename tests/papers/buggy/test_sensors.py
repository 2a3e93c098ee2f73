"""Every H of the buggy's sensors by differences: antenna and inertial unit on lever arms, the unit mounted turned, wheel angles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.model.place import Marker
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import check_jacobian
from veridyn.papers.buggy.drive import settle
from veridyn.papers.buggy.machine import buggy

Array = NDArray[np.float64]
AXIS, SIDE = (0.36, 0.48, 0.8), (-0.8, 0.6, 0.0)  # orthogonal, far from the chassis' axes
INERTIAL = ("gyro", "accelerometer")


@pytest.fixture(scope="module")
def driving() -> tuple[MachineSystem, Array]:
    """The buggy in a bend at 5 m/s, heading 2 rad, with slips, and its inertial unit mounted turned."""
    machine = buggy()
    at = settle(machine)
    sensors = tuple(
        replace(s, on=Marker(s.on.body, s.on.at, AXIS, SIDE)) if s.name in INERTIAL and isinstance(s.on, Marker) else s
        for s in machine.sensors
    )
    tree = replace(machine, sensors=sensors)
    system, _, _ = machine_system(
        tree, ObserveSettings(process_noise=ProcessNoise(acceleration=1.0), unknown=(), step=2e-3)
    )
    f, n = system.f, len(system.states)
    x = np.zeros(
        len(system.belief(np.concatenate([at.base.position, at.base.quaternion, at.q]), np.zeros(system.nv)).x)
    )
    x[: system.nq] = np.concatenate([at.base.position, at.base.quaternion, at.q])
    d = np.zeros(n)
    place = {name: k for k, name in enumerate(system.states)}
    given = {
        "base.x": 12.0,
        "base.y": -3.0,
        "base.roll": 0.02,
        "base.pitch": -0.01,
        "base.vz": 0.05,
        "base.wx": 0.1,
        "base.wy": -0.05,
    }
    given |= {"base.vx": 5.0 * np.cos(2.03), "base.vy": 5.0 * np.sin(2.03), "base.wz": 0.17, "lower_fl_dot": 0.3}
    given |= {f"spin_{c}_dot": 5.0 / 0.337 for c in ("fl", "fr", "rl", "rr")}
    given |= {f"state.tyre_{c}.kappa": 0.01 for c in ("rl", "rr")} | {
        f"state.tyre_{c}.tan_alpha": -0.03 for c in ("fl", "fr")
    }
    for name, value in given.items():
        d[place[name]] = value
    turn = np.zeros(n)
    turn[place["base.yaw"]] = 2.0
    assert f == 14
    return system, system.add(system.add(x, turn), d)


def test_every_derivative_of_every_output(driving: tuple[MachineSystem, Array]) -> None:
    system, x = driving
    u = np.zeros(0)
    sizes = np.where([name.startswith("state.") for name in system.states], 0.01, 0.02)
    check_jacobian(
        lambda a: system.sense(a, u, 0.0),
        lambda a: system.sense_and_jacobian(a, u, 0.0)[1],
        x,
        scales=sizes,
        add=system.add,
        outputs=system.outputs,
        states=system.states,
    )
    for name, derivative in _of_gps_velocity(system, x).items():
        assert np.abs(derivative).max() < 1e-6, name


def _of_gps_velocity(system: MachineSystem, x: Array) -> dict[str, Array]:
    """Rows of H of the receiver's velocity less central differences, in sizes of the states and of the largest entry of the row."""
    u, n, step = np.zeros(0), len(system.states), 1e-5
    H = system.sense_and_jacobian(x, u, 0.0)[1]
    rows = [system.outputs.index(f"gps_velocity.{axis}") for axis in "xy"]
    slopes = np.column_stack(
        [
            (system.sense(system.add(x, d), u, 0.0) - system.sense(system.add(x, -d), u, 0.0))[rows] / (2.0 * step)
            for d in step * np.eye(n)
        ]
    )
    return {system.outputs[r]: (H[r] - slopes[k]) / np.abs(H[r]).max() for k, r in enumerate(rows)}


def test_the_angle_of_a_wheel_is_its_coordinate(driving: tuple[MachineSystem, Array]) -> None:
    """Equations 119 and 120: the rows of the four angles are those of the unit matrix, and nothing else is in them."""
    system, x = driving
    y, H = system.sense_and_jacobian(x, np.zeros(0), 0.0)
    corners = ("fl", "fr", "rl", "rr")
    rows = [system.outputs.index(f"angle_{c}") for c in corners]
    columns = [system.states.index(f"spin_{c}") for c in corners]
    assert np.array_equal(H[rows], np.eye(len(system.states))[columns])
    assert np.array_equal(y[rows], system.reduced(x)[columns])


def test_lever_arms_are_in_the_columns(driving: tuple[MachineSystem, Array]) -> None:
    """Paper 003 drops the lever arm and the attitude's columns of GPS in (89) and (91); roll moves this antenna 0.84 m off p₁."""
    system, x = driving
    y, H = system.sense_and_jacobian(x, np.zeros(0), 0.0)
    rows = {name: k for k, name in enumerate(system.outputs)}
    place = {name: k for k, name in enumerate(system.states)}
    lever = 1.60 - 0.7634
    roll = H[[rows["gps.x"], rows["gps.y"]], place["base.roll"]]
    assert np.hypot(*roll) == pytest.approx(lever, rel=2e-3)  # the body is nearly upright
    rolling = H[[rows["gps_velocity.x"], rows["gps_velocity.y"]], place["base.wx"]]
    assert np.hypot(*rolling) == pytest.approx(lever, rel=2e-3)
    gyro = H[[rows[f"gyro.{a}"] for a in "xyz"], place["base.wz"]]
    assert gyro == pytest.approx(
        [0.8, 0.0, 0.6], abs=1e-9
    )  # the chassis' z in the unit's axes: axis, side, axis × side
    assert np.linalg.norm(y[[rows[f"gyro.{a}"] for a in "xyz"]]) == pytest.approx(np.linalg.norm([0.1, -0.05, 0.17]))
