"""How a free base moves, from where motion capture sees it or from what an inertial unit on it reads.

From a pose: ω of Rᵀ Ṙ, ω̇ its derivative, and the specific acceleration Rᵀ (p̈ − g). From an inertial unit that sits at (R_s, r) in the
base: ω = R_s ω_s and a = R_s a_s − ω̇ × r − ω × (ω × r), so no attitude is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Channel
from veridyn.model.motion import BaseMotion, Pose
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.derivative import Method, derivative
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.transforms import MDH, Placement

Array = NDArray[np.float64]
PREFIX = "pose."
NAMES = tuple(f"{PREFIX}r{i}{k}" for i in range(3) for k in range(3)) + tuple(f"{PREFIX}{a}" for a in "xyz")


def nearest_rotations(A: ArrayLike) -> Array:
    """The rotations (N, 3, 3) nearest to matrices (N, 3, 3) that are almost rotations."""
    U, _, Vt = np.linalg.svd(np.asarray(A, dtype=np.float64))
    U[..., -1] *= np.linalg.det(U @ Vt)[..., None]
    return U @ Vt


def pose_channels(pose: Pose) -> tuple[Channel, ...]:
    """The twelve numbers of a pose as channels, for a common clock with others."""
    table = np.concatenate([pose.rotation.reshape(-1, 9), pose.position], axis=1)
    return tuple(Channel(name, pose.t, table[:, k], "1" if k < 9 else "m") for k, name in enumerate(NAMES))


@checked
def smoothed_pose(pose: Pose, low: Butterworth | None) -> Pose:
    """A pose on a uniform clock through a zero-phase low-pass: entries of R and p, then the nearest rotation."""
    if low is None:
        return pose
    rate = uniform_rate(pose.t, where="pose.t")
    R = zero_phase(pose.rotation.reshape(-1, 9), rate, low, "pose.rotation").reshape(-1, 3, 3)
    return Pose(pose.t, nearest_rotations(R), zero_phase(pose.position, rate, low, "pose.position"))


@checked
def pose_at(pose: Pose, t: ArrayLike) -> Pose:
    """A pose at other times within its own, by cubic interpolation."""
    times = np.asarray(t, dtype=np.float64)
    if np.array_equal(times, pose.t):
        return pose
    slack = 1e-9
    if len(times) == 0 or times[0] < pose.t[0] - slack or times[-1] > pose.t[-1] + slack:
        found = f"{times[0]:.6g} s to {times[-1]:.6g} s" if len(times) else "no times"
        raise DataError(
            Fault("the pose was not measured then.", "pose", f"{pose.t[0]:.6g} s to {pose.t[-1]:.6g} s", found)
        )
    table = CubicSpline(pose.t, np.concatenate([pose.rotation.reshape(-1, 9), pose.position], axis=1))(times)
    return Pose(times, nearest_rotations(table[:, :9].reshape(-1, 3, 3)), table[:, 9:])


def base_from_pose(pose: Pose, gravity: ArrayLike, method: Method = "compensated") -> BaseMotion:
    """ω, ω̇, v̇ − g and v in the base's frame, from a pose at a uniform clock; low-pass it first where it is noisy."""
    rate = uniform_rate(pose.t, where="pose.t")
    back = np.swapaxes(pose.rotation, 1, 2)
    turn = back @ derivative(pose.rotation.reshape(-1, 9), rate, 1, method, "pose.rotation").reshape(-1, 3, 3)
    omega = 0.5 * np.stack(
        [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], axis=1
    )
    specific = derivative(pose.position, rate, 2, method, "pose.position") - np.asarray(gravity, dtype=np.float64)
    speed = derivative(pose.position, rate, 1, method, "pose.position")
    return BaseMotion(
        omega,
        derivative(omega, rate, 1, method, "pose.rotation"),
        np.einsum("nij,nj->ni", back, specific),
        np.einsum("nij,nj->ni", back, speed),
    )


@checked
def moved_to_base(read: BaseMotion, unit: Placement | MDH) -> BaseMotion:
    """The base's motion from what an inertial unit reads that sits at `unit` in the base's frame, in the unit's own axes."""
    R, r = unit.rotation, unit.position
    omega, omega_dot = read.omega @ R.T, read.omega_dot @ R.T
    lever = np.cross(omega_dot, r) + np.cross(omega, np.cross(omega, r))
    velocity = None if read.velocity is None else read.velocity @ R.T - np.cross(omega, r)
    return BaseMotion(omega, omega_dot, read.acceleration @ R.T - lever, velocity)
