"""Loops of a machine that move in one plane: their cut joint keeps less than it says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.model.graph import MachineGraph
from veridyn.model.link import Joint
from veridyn.model.names import GROUND
from veridyn.model.spanning import Spanning

Array = NDArray[np.float64]
PARALLEL_SINE = 1e-9  # sine of the angle below which two directions of a body are one


def in_plane(graph: MachineGraph, spanning: Spanning, joint: Joint) -> bool:
    """Whether a cut turning joint closes a loop of joints that move in one plane, so that only two of its equations say something new."""
    if joint.kind != "turning":
        return False
    a, b = graph.ends(joint)
    ways = [_way(graph, spanning, end.body) for end in (a, b)]
    common = {body for body, _ in ways[0]} & {body for body, _ in ways[1]}
    normals = []
    for end, way in zip((a, b), ways, strict=True):
        n = end.placement.rotation[:, 2]
        for body, _ in way:
            if body in common:
                break
            found = _through(graph, spanning, body, n)
            if found is None:
                return False
            n = found
        normals.append(n)
    return bool(np.linalg.norm(np.cross(normals[0], normals[1])) <= PARALLEL_SINE)


def _way(graph: MachineGraph, spanning: Spanning, body: str) -> list[tuple[str, Joint | None]]:
    """The bodies from one down to the ground."""
    found: list[tuple[str, Joint | None]] = []
    while body != GROUND:
        carrier = spanning.carriers[body]
        found.append((body, carrier.joint))
        a, b = graph.ends(carrier.joint)
        body = b.body if carrier.reversed else a.body
    return [*found, (GROUND, None)]


def _through(graph: MachineGraph, spanning: Spanning, body: str, n: Array) -> Array | None:
    """The normal n of a plane on a body, as seen from the body before it; None where the joint between them leaves the plane."""
    carrier = spanning.carriers[body]
    near, far = graph.ends(carrier.joint)
    if carrier.reversed:
        near, far = far, near
    local = far.placement.rotation.T @ n
    along = abs(float(local[2]))
    kind = carrier.joint.kind
    stays = (
        kind == "fixed"
        or (kind == "sliding" and along <= PARALLEL_SINE)
        or (kind in ("turning", "planar") and 1.0 - along <= PARALLEL_SINE)
    )
    return near.placement.rotation @ local if stays else None
