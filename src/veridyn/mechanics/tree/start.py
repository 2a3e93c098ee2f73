"""Where a tree starts: a configuration and velocity from a few numbers by name, and the attitude of a free base in angles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.mechanics.tree.loops.assembly import splitting
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.tree import Tree
from veridyn.spatial.rotations import angles_of

Array = NDArray[np.float64]
BASE_NAMES = ("base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw")
BASE_RATES = ("base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz")


def named_start(
    tree: Tree, z: Sequence[int], given: Mapping[str, float] | None, rates: Mapping[str, float] | None
) -> tuple[Array, Array, dict[str, float]]:
    """A configuration, the rates of the independent coordinates z, and q.C of prescribed ones, from coordinates and rates by name."""
    free, faults = tree.base == "free", Faults()
    places, speeds = dict(given or {}), dict(rates or {})
    known = {*tree.coordinates, *(BASE_NAMES if free else ())}
    free_names = [tree.coordinates[k] for k in z]
    for what, names in (("start", places), ("rates", speeds)):
        for name, value in names.items():
            if name not in known:
                faults.add(f"there is no coordinate '{name}'.", where=what, hint=did_you_mean(name, sorted(known)))
            elif not np.isfinite(value):
                faults.add(f"that of '{name}' is not a number.", where=what, found=f"{value}")
    for name in speeds:
        if name in tree.coordinates and name not in free_names:
            faults.add(
                f"the rate of '{name}' follows from the others.",
                where="rates",
                expected=f"rates of {', '.join(free_names)}",
            )
    faults.raise_if_any(DataError, tree.name)
    q = np.array([places.get(c, 0.0) for c in tree.coordinates])
    if tree.loops:
        leading = [*free_names, *tree.prescribed]
        home = splitting(tree, leading).home
        wanted = np.array([[places.get(c, float(home[tree.coordinates.index(c)])) for c in leading]])
        q = close(tree, wanted, at=leading, path=False).q[0]
    x, rate = q, np.array([speeds.get(c, 0.0) for c in free_names])
    if free:
        p = [places.get(name, 0.0) for name in BASE_NAMES]
        x = np.concatenate([p[:3], _quaternion(*p[3:]), q])
        rate = np.concatenate([[speeds.get(name, 0.0) for name in BASE_NAMES], rate])
    return x, rate, {f"q.{c}": float(q[tree.coordinates.index(c)]) for c in tree.prescribed}


def reported_attitude(f: int, attitude: Array) -> Array:
    """d(reported z)/d(change of z) (f, f): roll, pitch and yaw, coordinates 3 to 5, against a turn in the base's axes."""
    roll, pitch, _ = angles_of(attitude).tolist()
    s, c, t, q = np.sin(roll), np.cos(roll), np.tan(pitch), np.cos(pitch)
    T = np.eye(f)
    T[3:6, 3:6] = [[1.0, s * t, c * t], [0.0, c, -s], [0.0, s / q, c / q]]
    return T


def _quaternion(roll: float, pitch: float, yaw: float) -> Array:
    """Of Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.array([roll, pitch, yaw]) / 2), np.sin(np.array([roll, pitch, yaw]) / 2)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )
