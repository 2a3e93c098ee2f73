"""Base motions from poses and inertial units against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from veridyn.errors import DataError
from veridyn.model.body import Body
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Pose
from veridyn.signals.base_motion import base_from_pose, moved_to_base, nearest_rotations, pose_at, smoothed_pose
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion
from veridyn.spatial.transforms import MDH, Placement

G = np.array([0.0, 0.0, -9.81])
TREE = Machine.of_bodies(
    [Body("torso", None, "fixed"), Body("leg", "torso", "turning", MDH(d=0.1), coordinate="hip")],
    base="free",
    gravity=G,
)


def coning(rate: float = 500.0, seconds: float = 2.0) -> tuple[Pose, BaseMotion]:
    """Turning at Ω about a body axis that itself is carried at ν about the vertical, on a circle: ω, ω̇ and v̇ in closed form."""
    t = np.arange(round(seconds * rate)) / rate
    nu, spin, r = 2.0, 3.0, 0.4
    carried = Rotation.from_rotvec(np.outer(nu * t, [0.0, 0.0, 1.0]))
    turned = Rotation.from_rotvec(np.outer(spin * t, [1.0, 0.0, 0.0]))
    R = (carried * turned).as_matrix()
    p = r * np.stack([np.cos(nu * t), np.sin(nu * t), 0.0 * t], axis=1)
    c, s, zero = np.cos(spin * t), np.sin(spin * t), 0.0 * t
    omega = np.stack([spin + zero, nu * s, nu * c], axis=1)
    omega_dot = np.stack([zero, nu * spin * c, -nu * spin * s], axis=1)
    back = np.swapaxes(R, 1, 2)
    specific = np.einsum("nij,nj->ni", back, -(nu**2) * p - G)
    velocity = np.einsum("nij,nj->ni", back, nu * np.stack([-p[:, 1], p[:, 0], zero], axis=1))
    return Pose(t, R, p), BaseMotion(omega, omega_dot, specific, velocity)


def test_the_motion_of_a_pose_is_that_of_the_closed_form() -> None:
    pose, exact = coning()
    found = base_from_pose(pose, G)
    inner = slice(10, -10)
    for name in ("omega", "omega_dot", "acceleration", "velocity"):
        assert getattr(found, name)[inner] == pytest.approx(getattr(exact, name)[inner], abs=1e-8), name


def test_a_motion_takes_its_base_from_a_pose() -> None:
    pose, exact = coning()
    log = Experiment.from_arrays(pose.t, {"q.hip": np.sin(pose.t)}, {"q.hip": "rad"})
    whole = motion(TREE, log, Signals(trim=0.1), pose=pose)
    assert whole.base is not None and len(whole) == len(pose) - 100
    assert whole.base.acceleration == pytest.approx(exact.acceleration[50:-50], abs=1e-8)
    low = motion(TREE, log, Signals(lowpass=20.0, trim=0.4), pose=pose)
    assert low.base is not None
    assert low.base.omega == pytest.approx(exact.omega[200:-200], abs=1e-3)


def test_a_pose_of_a_machine_on_the_ground_is_refused() -> None:
    pose, _ = coning(seconds=0.2)
    fixed = Machine.of_bodies([Body("arm", "ground", "turning", MDH(), coordinate="q")])
    log = Experiment.from_arrays(pose.t, {"q.q": pose.t}, {"q.q": "rad"})
    with pytest.raises(DataError, match="base is fixed"):
        motion(fixed, log, pose=pose)


def test_an_inertial_unit_elsewhere_on_the_body_tells_the_same() -> None:
    _, exact = coning()
    unit = Placement(Rotation.from_euler("xyz", [0.3, -1.0, 2.0]).as_matrix(), (0.05, -0.02, 0.11))
    R, r = unit.rotation, unit.position
    lever = np.cross(exact.omega_dot, r) + np.cross(exact.omega, np.cross(exact.omega, r))
    assert exact.velocity is not None
    read = BaseMotion(
        exact.omega @ R,
        exact.omega_dot @ R,
        (exact.acceleration + lever) @ R,
        (exact.velocity + np.cross(exact.omega, r)) @ R,
    )
    found = moved_to_base(read, unit)
    for name in ("omega", "omega_dot", "acceleration", "velocity"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), abs=1e-12), name
    assert moved_to_base(BaseMotion(read.omega, read.omega_dot, read.acceleration), unit).velocity is None


def test_poses_between_samples_and_behind_a_low_pass() -> None:
    pose, _ = coning(rate=100.0)
    between = pose_at(pose, pose.t[20:30] + 0.005)
    exact, _ = coning(rate=200.0)
    assert np.abs(between.rotation - exact.rotation[41:61:2]).max() < 1e-5
    assert pose_at(pose, pose.t) is pose and smoothed_pose(pose, None) is pose
    calm = smoothed_pose(pose, Butterworth(15.0))
    assert np.abs(calm.rotation - pose.rotation)[30:-30].max() < 1e-3
    with pytest.raises(DataError, match="was not measured then"):
        pose_at(pose, [5.0])


def test_the_nearest_rotation_is_one() -> None:
    rng = np.random.default_rng(0)
    A = np.eye(3) + 0.1 * rng.standard_normal((50, 3, 3))
    R = nearest_rotations(A)
    assert np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max() < 1e-14 and np.linalg.det(R) == pytest.approx(np.ones(50))
