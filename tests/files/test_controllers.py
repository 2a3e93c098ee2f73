"""Settings of controllers: the same body read back from each, with SciPy's rotations; a trajectory message read back as YAML."""

from __future__ import annotations

import numpy as np
import pytest
from ruamel.yaml import YAML
from scipy.spatial.transform import Rotation

from veridyn.files.controllers import controller_settings, joint_trajectory, principal_axes

MASS, CENTRE = 2.5, np.array([0.01, -0.02, 0.06])
INERTIA = np.array([[0.012, 0.002, -0.001], [0.002, 0.009, 0.0015], [-0.001, 0.0015, 0.014]])


def test_every_controller_gets_the_same_load() -> None:
    """UR in its order, Franka column by column, KUKA with principal axes by A about z, B about y, C about x, lengths in mm."""
    s = controller_settings(MASS, CENTRE, INERTIA)
    xx, yy, zz, xy, xz, yz = s["ur"]["inertia"]
    assert np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) == pytest.approx(INERTIA)
    assert s["ur"]["cog"] == pytest.approx(CENTRE) and s["ur"]["payload"] == MASS
    assert np.reshape(s["franka"]["load_inertia"], (3, 3), order="F") == pytest.approx(INERTIA)
    cm, moments = s["kuka"]["CM"], np.array([s["kuka"]["J"][k] for k in "XYZ"])
    R = Rotation.from_euler("ZYX", [cm["A"], cm["B"], cm["C"]], degrees=True).as_matrix()
    assert R @ np.diag(moments) @ R.T == pytest.approx(INERTIA, abs=1e-15)
    assert [cm["X"], cm["Y"], cm["Z"]] == pytest.approx(1e3 * CENTRE)
    assert s["ur"]["script"].startswith("set_target_payload(2.5, [0.01, -0.02, 0.06], [0.012, 0.009, 0.014, 0.002,")
    assert s["kuka"]["script"].startswith("$LOAD = {M 2.5, CM {X 10.000, Y -20.000, Z 60.000, A ")
    assert s["inertia_known"] and set(s["conventions"]) >= {"ur", "franka", "kuka", "mass", "inertia"}


def test_a_diagonal_inertia_needs_no_turning() -> None:
    moments, angles = principal_axes(np.diag([0.3, 0.1, 0.2]))
    assert moments == pytest.approx([0.3, 0.1, 0.2]) and angles == pytest.approx((0.0, 0.0, 0.0))


@pytest.mark.parametrize("seed", range(8))
def test_principal_axes_are_right_handed_and_near_the_frame(seed: int) -> None:
    rng = np.random.default_rng(seed)
    turned = Rotation.random(random_state=seed).as_matrix()
    J = turned @ np.diag(rng.uniform(0.1, 1.0, 3)) @ turned.T
    moments, angles = principal_axes(J)
    R = Rotation.from_euler("ZYX", angles, degrees=True)
    assert R.as_matrix() @ np.diag(moments) @ R.as_matrix().T == pytest.approx(J, abs=1e-12)
    assert R.magnitude() <= np.radians(62.9)  # no frame is further than this from one of the 24 ways to name axes


def test_an_unknown_inertia_is_zero_and_named() -> None:
    s = controller_settings(MASS, CENTRE, None)
    assert not s["inertia_known"] and s["ur"]["inertia"] == [0.0] * 6


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_a_message_is_read_back(version: tuple[int, int]) -> None:
    """Fields of trajectory_msgs/JointTrajectory; numbers stay numbers in YAML 1.1 too, the times add up."""
    rng = np.random.default_rng(0)
    t = np.arange(130) / 100.0
    q, qd, qdd, effort = (rng.normal(size=(130, 2)) * 10.0 ** rng.integers(-9, 2, (130, 2)) for _ in range(4))
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    said = reader.load(joint_trajectory(("a", "yes"), t, q, qd, qdd, effort))
    assert list(said) == ["header", "joint_names", "points"] and said["joint_names"] == ["a", "yes"]
    assert said["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    points = said["points"]
    assert list(points[0]) == ["positions", "velocities", "accelerations", "effort", "time_from_start"]
    for key, values in (("positions", q), ("velocities", qd), ("accelerations", qdd), ("effort", effort)):
        assert np.array([p[key] for p in points], dtype=np.float64) == pytest.approx(values, abs=1e-9)
    times = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points]
    assert times == pytest.approx(t) and all(isinstance(p["time_from_start"]["sec"], int) for p in points)


def test_without_efforts_the_list_is_empty() -> None:
    one = np.ones((1, 1))
    said = YAML(typ="safe").load(joint_trajectory(("a",), np.zeros(1), one, one, one))
    assert said["points"][0]["effort"] == []
