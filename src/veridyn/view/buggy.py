"""The buggy of paper 003 as lines, with round wheels; the fixes of its receiver, and how far its observer may be off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.machines.buggy import CONTACT, CORNERS
from veridyn.model.machine import Machine
from veridyn.spatial.rotations import matrix_of
from veridyn.view.machine import body_poses, tree_layer
from veridyn.view.scene import Layer, Meaning

Array = NDArray[np.float64]
RIM = 12  # corners of a wheel
RING = 24  # corners of a band
CROSS = 0.25  # m, half the width of a fix


def buggy_layer(machine: Machine, x: Array, label: str, dashed: bool = False, meaning: Meaning | None = None) -> Layer:
    """The buggy at configurations (N, 7 + n): place, attitude and joints."""
    p, R, q = x[:, :3], matrix_of(x[:, 3:7]), x[:, 7:]
    lines = tree_layer(machine, q, label, position=p, rotation=R, dashed=dashed)
    points, edges = [np.asarray(lines.points)], list(lines.segments)
    first = points[0].shape[1]
    radius, turn = CONTACT["UNLOADED_RADIUS"], 2.0 * np.pi * np.arange(RIM) / RIM
    rim = radius * np.column_stack([np.cos(turn), np.zeros(RIM), np.sin(turn)])  # a wheel turns about its y axis
    poses = body_poses(machine, q)
    for corner in CORNERS:
        A, centre = poses[f"wheel_{corner}"]
        own = centre[:, None, :] + np.einsum("nij,kj->nki", A, rim)
        points.append(p[:, None, :] + np.einsum("nij,nkj->nki", R, own))
        edges += [(first + k, first + (k + 1) % RIM) for k in range(RIM)] + [(first, first + RIM // 2)]
        first += RIM
    return Layer(label, np.concatenate(points, axis=1), edges, dashed=dashed, meaning=meaning)


def fixes_layer(t: Array, heard: Array, fixes: Array, label: str) -> Layer:
    """Crosses at the `fixes` (k, 3) of a receiver, each from the time at which it was `heard` (k,); before that it lies on the last one."""
    arms = CROSS * np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    last = np.maximum(np.searchsorted(heard, t, side="right") - 1, 0)
    which = np.minimum(np.arange(len(heard))[None, :], last[:, None])  # (frames, k)
    points = (fixes[which][:, :, None, :] + arms).reshape(len(t), -1, 3)
    edges = [(4 * k + a, 4 * k + a + 1) for k in range(len(heard)) for a in (0, 2)]
    return Layer(label, points, edges, meaning="measured")


def band_layer(p: Array, covariance: Array, deviations: float, label: str) -> Layer:
    """A ring of so many deviations around places (frames, 3), by the covariance (frames, 2, 2) of x and y."""
    turn = 2.0 * np.pi * np.arange(RING) / RING
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    values, vectors = np.linalg.eigh(covariance)
    axes = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    flat = deviations * np.einsum("nij,kj->nki", axes, ring)
    points = p[:, None, :] + np.concatenate([flat, np.zeros((len(p), RING, 1))], axis=2)
    return Layer(label, points, [(k, (k + 1) % RING) for k in range(RING)], meaning="estimate")
