"""The buggy of paper 003 as lines, with round wheels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.machines.buggy import CONTACT, CORNERS
from veridyn.mechanics.kinematics import body_pose
from veridyn.model.tree import Tree
from veridyn.spatial.rotations import matrix_of
from veridyn.view.machine import tree_layer
from veridyn.view.scene import Layer

Array = NDArray[np.float64]
RIM = 12  # corners of a wheel


def buggy_layer(tree: Tree, x: Array, label: str, dashed: bool = False) -> Layer:
    """The buggy at configurations (N, 7 + n): place, attitude and joints."""
    p, R, q = x[:, :3], matrix_of(x[:, 3:7]), x[:, 7:]
    lines = tree_layer(tree, q, label, position=p, rotation=R, dashed=dashed)
    points, edges = [np.asarray(lines.points)], list(lines.segments)
    first = points[0].shape[1]
    radius, turn = CONTACT["UNLOADED_RADIUS"], 2.0 * np.pi * np.arange(RIM) / RIM
    rim = radius * np.column_stack([np.cos(turn), np.zeros(RIM), np.sin(turn)])  # a wheel turns about its y axis
    for corner in CORNERS:
        A, centre = body_pose(tree, q, f"wheel_{corner}")
        own = centre[:, None, :] + np.einsum("nij,kj->nki", A, rim)
        points.append(p[:, None, :] + np.einsum("nij,nkj->nki", R, own))
        edges += [(first + k, first + (k + 1) % RIM) for k in range(RIM)] + [(first, first + RIM // 2)]
        first += RIM
    return Layer(label, np.concatenate(points, axis=1), edges, dashed=dashed)
