"""Loads as data: what a tree refuses by name, and where they are when bodies get other frames; transmissions and virtual work."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.load import Drive, Force, Load, Torque, Transmission, check_loads, moved_load
from veridyn.model.place import Marker
from veridyn.spatial.rotations import rot_z

WRIST = Transmission(("m5", "m6"), ("q5", "q6"), np.array([[1.0, 0.0], [-1.0, 1.0]]))


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (Drive("m", "arn"), "load 'm': there is no coordinate 'arn'.*Did you mean 'arm'"),
        (Drive("m", "arm", float("nan")), "load 'm': its value is not finite"),
        (Force("f", "tool", (0, 0, 1)), "load 'f': there is no body 'tool'"),
        (Force("f", Marker("tool", (0, 0, 0)), (0, 0, 1)), "load 'f': there is no body 'tool'"),
        (Force("f", Marker("arm", (0, 0)), (0, 0, 1)), "this is no place or direction here"),
        (Force("f", "arm", (0, 1)), "load 'f', value: this is no place or direction here.*3 finite numbers"),
        (Force("f", "ground", (0, 0, 1)), "load 'f': it acts on the ground"),
        (Torque("t", "arm", 1.0), "load 't', value"),
        (Torque("t", "arm", (0, 0, 1), "arm"), "load 't': it acts on 'arm' against itself"),
        (Torque("t", "arm", (0, 0, 1), "leg"), "load 't': there is no body 'leg'"),
        (Drive("", "arm"), "it has no name"),
    ],
)
def test_faults_are_named(load: Load, message: str) -> None:
    with pytest.raises(ModelError, match=f"(?s){message}"):
        Tree.build([Body("arm")], loads=[load])


def test_good_loads_and_names_used_twice() -> None:
    loads = [Drive("a", "arm"), Force("b", "arm", (1, 2, 3)), Torque("c", "arm", (1, 2, 3))]
    assert not check_loads(loads, ["arm"], ["arm"]) and [x.components for x in loads] == [1, 3, 3]
    assert Tree.build([Body("arm")], loads=loads).loads == tuple(loads)
    with pytest.raises(ModelError, match="load 'a': the name is used 2 times"):
        Tree.build([Body("arm")], loads=[*loads, Drive("a", "arm")])


def test_loads_follow_their_bodies() -> None:
    homes = {"hand": ("arm", rot_z(np.pi / 2), np.array([1.0, 0.0, 0.0]))}
    assert moved_load(Force("f", "hand", (0, 0, 1)), homes) == Force("f", Marker("arm", (1, 0, 0)), (0, 0, 1))
    assert moved_load(Force("f", Marker("hand", (2, 0, 0)), (0, 0, 1)), homes).at.at == pytest.approx((1, 2, 0))
    assert moved_load(Torque("t", "leg", (0, 0, 1), "hand"), homes) == Torque("t", "leg", (0, 0, 1), "arm")
    assert moved_load(Drive("m", "arm"), homes) == Drive("m", "arm")


def test_virtual_work() -> None:
    """Γ_mᵀ q̇_m = Γᵀ q̇ for every motion and every force."""
    rng = np.random.default_rng(1)
    for n in (1, 2, 5):
        names = tuple(str(k) for k in range(n))
        t = Transmission(names, names, rng.standard_normal((n, n)) + 2 * np.eye(n))
        rates, forces = rng.standard_normal((2, 50, n))
        joint_power = (forces * t.joints_from_motors(rates)).sum(axis=1)
        motor_power = (t.motor_forces(forces) * rates).sum(axis=1)
        np.testing.assert_allclose(motor_power, joint_power, rtol=0, atol=1e-13 * np.abs(forces).max() * n**2)


def test_there_and_back() -> None:
    rng = np.random.default_rng(2)
    t = Transmission(("a", "b", "c"), ("x", "y", "z"), rng.standard_normal((3, 3)) + 3 * np.eye(3))
    x = rng.standard_normal((20, 3))
    # A well-conditioned 3 by 3 solve loses a few units in the last place.
    np.testing.assert_allclose(t.joints_from_motors(t.motors_from_joints(x)), x, atol=1e-13)
    np.testing.assert_allclose(t.motor_forces(t.joint_forces(x)), x, atol=1e-13)


def test_coupled_wrist() -> None:
    """Joint 6 lags behind motor 6 by joint 5; the torque of joint 6 loads motor 5 with the opposite sign."""
    np.testing.assert_array_equal(WRIST.joints_from_motors([[0.2, 0.5]]), [[0.2, 0.3]])
    np.testing.assert_array_equal(WRIST.motor_forces([[3.0, 1.0]]), [[2.0, 1.0]])


@pytest.mark.parametrize(
    ("motors", "joints", "matrix", "message"),
    [
        (
            ("a",),
            ("x", "y"),
            np.ones((2, 1)),
            r"does not fit its motors and joints.\nExpected .*\(2, 2\), found 1 motors and \(2, 1\)",
        ),
        (("a", "b"), ("x", "y"), np.ones(2), "does not fit"),
        (("a", "b"), ("x", "y"), np.ones((2, 2)), "singular: some joint motion moves no motor"),
    ],
)
def test_faults(motors: tuple[str, ...], joints: tuple[str, ...], matrix: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Transmission(motors, joints, matrix)


def test_a_matrix_with_nan_is_refused() -> None:
    with pytest.raises(DataError, match="NaN or infinite"):
        Transmission(("m",), ("q",), [[np.nan]])


def test_a_motor_named_twice_is_refused() -> None:
    with pytest.raises(DataError, match="motor 'm' is named twice"):
        Transmission(("m", "m"), ("a", "b"), np.eye(2))
