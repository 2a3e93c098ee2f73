"""What the world does to a free machine: wrenches of force plates and of sensors in a link, brought to the link they act on.

A force plate is fixed in the world, a link's sensor in the link. :attr:`Motion.wrenches` wants force and moment about the origin of the
body they act on, in its frame, acting **on** it. For base rows only the sum matters: the total wrench on any one link does as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.kinematics import root_pose
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Pose
from veridyn.spatial.rotations import MDH, Placement


@checked
def plate_wrench(force: ArrayLike, moment: ArrayLike, plate: Placement | MDH | None = None) -> Array:
    """(N, 6) about the world's origin, in the world's axes, from `force` and `moment` (N, 3) about the origin of a `plate`, in its axes.

    Both act on the machine: turn the sign of a plate that reports what the machine does to it.
    """
    f, m = (np.asarray(x, dtype=np.float64) for x in (force, moment))
    _check_pair(f, m)
    R, p = (np.eye(3), np.zeros(3)) if plate is None else (plate.rotation, plate.position)
    f, m = f @ R.T, m @ R.T
    return np.concatenate([f, m + np.cross(p, f)], axis=1)


@checked
def pressure_wrench(force: ArrayLike, centre: ArrayLike, free_moment: ArrayLike | None = None) -> Array:
    """(N, 6) about the world's origin from a `force` (N, 3) that acts at the `centre` of pressure (N, 3), in the world's axes.

    `free_moment` (N,) or (N, 3) is what is left about that point: a number turns about the vertical, z. Where nothing is touched a centre
    of pressure is often NaN: there the force must be zero, and so is the wrench.
    """
    f, c = (np.asarray(x, dtype=np.float64) for x in (force, centre))
    _check_pair(f, c)
    idle = np.logical_not(np.isfinite(c).all(axis=1))
    if (np.abs(f[idle]) > 0.0).any():
        first = int(np.flatnonzero(idle & (np.abs(f) > 0.0).any(axis=1))[0])
        raise DataError("a force acts where the centre of pressure is unknown.", where="plate", found=f"sample {first}")
    twist = np.zeros_like(f)
    if free_moment is not None:
        given = np.asarray(free_moment, dtype=np.float64)
        as_array(given, "pressure_wrench, free_moment", (len(f),) if given.ndim == 1 else f.shape)
        twist[:, 2 if given.ndim == 1 else slice(None)] = given
    return np.concatenate([f, np.cross(np.where(idle[:, None], 0.0, c), f) + twist], axis=1)


@checked
def sensor_wrench(read: ArrayLike, sensor: Placement | MDH) -> Array:
    """(N, 6) at a link's origin, in its frame, from what a six-axis sensor at `sensor` in that link reads, acting on the link.

    An ankle sensor measures what is below it: the model it belongs to is that of the machine above, with the foot's part below left out.
    """
    w = as_array(read, "sensor_wrench, read", (None, 6))
    f, m = w[:, :3] @ sensor.rotation.T, w[:, 3:] @ sensor.rotation.T
    return np.concatenate([f, m + np.cross(sensor.position, f)], axis=1)


@takes_machine
def with_contacts(machine: Machine | Tree, motion: Motion, pose: Pose, world: Mapping[str, ArrayLike]) -> Motion:
    """The motion with wrenches of the world on bodies: body → (N, 6) about the world's origin, in its axes, several bodies or one.

    `pose` is the base's in the world at the times of the motion. Wrenches already there stay, and are added to on the same body.
    """
    tree = tree_of(machine)
    faults = Faults()
    names = [b.name for b in tree.bodies]
    for body, wrench in world.items():
        if body not in names:
            faults.add(
                f"a wrench acts on '{body}', which is no body.", where="contacts", hint=did_you_mean(body, names)
            )
        elif np.shape(wrench) != (len(motion), 6):
            faults.add(
                "wrong shape.", where=f"contacts['{body}']", expected=f"({len(motion)}, 6)", found=f"{np.shape(wrench)}"
            )
    if tree.base != "free":
        faults.add("contacts in the world need a free base.", where=tree.name, found=f"base: {tree.base}")
    if len(pose) != len(motion) or not np.allclose(pose.t, motion.t, rtol=0.0, atol=1e-9):
        faults.add(
            "pose and motion are not of the same times.",
            where="pose",
            expected=f"{len(motion)} samples, as the motion",
            found=f"{len(pose)}",
            hint="veridyn.signals.pose_at(pose, motion.t) brings it there.",
        )
    faults.raise_if_any(DataError)
    wrenches = dict(motion.wrenches)
    for body, wrench in world.items():
        w = np.asarray(wrench, dtype=np.float64)
        R, p = root_pose(tree, motion.q, body)
        R, p = pose.rotation @ R, pose.position + np.einsum("nij,nj->ni", pose.rotation, p)
        back = np.swapaxes(R, 1, 2)
        about = w[:, 3:] - np.cross(p, w[:, :3])
        here = np.concatenate([np.einsum("nij,nj->ni", back, x) for x in (w[:, :3], about)], axis=1)
        wrenches[body] = here + wrenches[body] if body in wrenches else here
    return replace(motion, wrenches=wrenches)


def _check_pair(f: Array, m: Array) -> None:
    if f.ndim != 2 or f.shape[1:] != (3,) or m.shape != f.shape:
        raise DataError(
            "force and moment do not belong together.",
            where="plate",
            expected="(N, 3) each",
            found=f"{f.shape} and {m.shape}",
        )
