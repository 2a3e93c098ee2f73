"""Encoder offsets of a machine that stands: angles follow from feet that do not move.

An encoder offset is not identifiable from base rows: turning the frame of a link turns its parameters, and the equations fit as well.
Geometry gives it. A sole flat on the ground has a known height and level, and stays where it is while the body above it moves; what the
chain from the measured base pose to the sole says otherwise is, to first order, J δ, with δ the offsets. Where a sole stands (x, y,
yaw) need not be known, nor how far all soles together sink into the ground.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.recursion.kinematics import body_pose, jacobian
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Pose
from veridyn.spatial.rotations import MDH, Placement

TURN_ARM_M = 0.3  # m: a turn counts as much as the shift it makes at this distance
UNOBSERVABLE = 1e-6  # of the largest singular value: what moves the soles less is not identifiable
CLEAR, SMALLEST = 5.0, 0.005  # deviations, rad or m: less is not called a fault
ROUNDS = 4
CORRELATED_SAMPLES = 10.0  # samples that share their noise behind a low-pass: variance is that much larger


@dataclass(frozen=True, eq=False)
class Offsets:
    """For each coordinate on the way to a sole: how much its encoder reads too much, in rad or m, with σ (infinite if not identifiable).

    `rms`: what is left of the soles' pose, in m (turns at 0.3 m), before and after.
    """

    names: tuple[str, ...]
    values: Array
    sigma: Array
    rms_before: float
    rms_after: float

    @property
    def faulty(self) -> tuple[str, ...]:
        """Encoders whose offset is clear and large enough to matter."""
        large = (np.abs(self.values) > CLEAR * self.sigma) & (np.abs(self.values) > SMALLEST)
        return tuple(n for n, bad in zip(self.names, large, strict=True) if bad)

    def summary(self) -> str:
        by = dict(zip(self.names, zip(self.values, self.sigma, strict=True), strict=True))
        lines = [
            f"the encoder of '{n}' reads {1e3 * by[n][0]:+.1f} ± {1e3 * by[n][1]:.1f} mrad too much"
            for n in self.faulty
        ]
        tail = (
            f"soles stray by {1e3 * self.rms_before:.2g} mm, {1e3 * self.rms_after:.2g} mm with all offsets taken off"
        )
        return "\n".join([*(lines or ["no encoder is off"]), tail])


@takes_machine
def encoder_offsets(
    machine: Machine, trials: Sequence[tuple[Motion, Pose]], soles: Mapping[str, Placement | MDH], *, every: int = 10
) -> Offsets:
    """Offsets from recordings in which all `soles` stand still on the ground, z = 0, while the body moves.

    `soles`: body → where its sole's frame is in the body's frame, origin on the ground, z up. `pose`: the base's in the world, at the
    times of the motion.
    """
    _check(machine, trials, soles)
    six = 6
    coordinates = _on_the_way(machine, soles)
    q_off = np.zeros(machine.n)
    before = after = 0.0
    sigma = np.full(len(coordinates), np.inf)
    for k in range(ROUNDS):
        blocks, right, stands = [], [], len(trials) * len(soles)
        for i, (motion, pose) in enumerate(trials):
            thin = slice(None, None, every)
            q = motion.q[thin] - q_off
            for j, (body, sole) in enumerate(soles.items()):
                R, p, J = _sole(machine, q, body, sole, pose.rotation[thin], pose.position[thin])
                where = np.zeros((len(q), six, 3 * stands + 1))
                where[:, [0, 1, 5], 3 * (i * len(soles) + j) + np.arange(3)] = 1.0
                where[:, 2, -1] = 1.0
                error = _error(R, p)
                scale = np.array([1.0, 1.0, 1.0, TURN_ARM_M, TURN_ARM_M, TURN_ARM_M])
                A = np.concatenate([J[:, :, six:][:, :, coordinates], where], axis=2)
                blocks.append((A * scale[:, None]).reshape(-1, A.shape[2]))
                right.append((error * scale).ravel())
        A, y = np.concatenate(blocks), np.concatenate(right)
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        identifiable = s > UNOBSERVABLE * s[0]
        x = Vt[identifiable].T @ ((U.T @ y)[identifiable] / s[identifiable])
        left = y - A @ x
        if k == 0:
            nothing = A[:, len(coordinates) :]
            before = float(np.sqrt(np.mean((y - nothing @ np.linalg.lstsq(nothing, y, rcond=None)[0]) ** 2)))
        after = float(np.sqrt(np.mean(left**2)))
        spread = (Vt[identifiable].T / s[identifiable]) @ (Vt[identifiable].T / s[identifiable]).T
        hidden = (Vt[~identifiable] ** 2).sum(axis=0)[: len(coordinates)] > UNOBSERVABLE
        sigma = after * np.sqrt(max(CORRELATED_SAMPLES / every, 1.0) * np.diag(spread)[: len(coordinates)])
        sigma = np.where(hidden, np.inf, sigma)
        q_off[coordinates] += np.where(hidden, 0.0, x[: len(coordinates)])
    names = tuple(machine.coordinates[c] for c in coordinates)
    return Offsets(names, q_off[coordinates], sigma, before, after)


def _on_the_way(machine: Machine, soles: Mapping[str, Placement | MDH]) -> list[int]:
    on = {c for body in soles for c in machine.described.moving(machine.body(body).name)}
    return sorted(machine.coordinates.index(c) for c in on)


def _sole(
    machine: Machine, q: Array, body: str, sole: Placement | MDH, Rb: Array, pb: Array
) -> tuple[Array, Array, Array]:
    """Pose of the sole in the world, and J (N, 6, 6 + n) of its origin in the world's axes."""
    R, p = body_pose(machine, q, body)
    J = jacobian(machine, q, body)  # of the body's origin, in the base's axes
    arm = R @ sole.position
    J = np.concatenate([J[:, :3] - np.cross(arm[:, :, None], J[:, 3:], axisa=1, axisb=1, axisc=1), J[:, 3:]], axis=1)
    J = np.concatenate([Rb @ J[:, :3], Rb @ J[:, 3:]], axis=1)
    return Rb @ R @ sole.rotation, pb + np.einsum("nij,nj->ni", Rb, p + arm), J


def _error(R: Array, p: Array) -> Array:
    """(N, 6): position from its mean on the ground, and the small turn that would level the sole and bring it to its mean heading."""
    heading = np.arctan2(R[:, 1, 0].mean(), R[:, 0, 0].mean())
    c, s = np.cos(heading), np.sin(heading)
    level = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    E = R @ level.T
    turn = 0.5 * np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], axis=1)
    mean = np.array([p[:, 0].mean(), p[:, 1].mean(), 0.0])
    return np.concatenate([p - mean, turn], axis=1)


def _check(machine: Machine, trials: Sequence[tuple[Motion, Pose]], soles: Mapping[str, Placement | MDH]) -> None:
    faults = Faults()
    names = machine.body_names
    if machine.base != "free":
        faults.add("only a free base has a pose to compare with.", where=machine.name, found=f"base: {machine.base}")
    if not trials or not soles:
        faults.add("a recording and a sole are needed.", where="encoder offsets")
    for body in soles:
        if body not in names:
            faults.add(f"'{body}' is no body.", where="soles", hint=did_you_mean(body, names))
    for k, (motion, pose) in enumerate(trials):
        if len(pose) != len(motion):
            faults.add(
                "pose and motion are not of the same samples.",
                where=f"trial {k}",
                expected=f"{len(motion)}",
                found=f"{len(pose)}",
            )
    faults.raise_if_any(IdentificationError)
