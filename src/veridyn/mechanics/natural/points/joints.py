"""What each joint of a machine is in natural coordinates: shared points and vectors, and equations where sharing does not say it all.

Loops of a machine that move in one plane: their cut joint keeps less than it says.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.points.clusters import clusters_of, start_poses
from veridyn.mechanics.natural.points.layout import PointsLayout
from veridyn.model.graph import MachineGraph, unique
from veridyn.model.link import Joint
from veridyn.model.names import GROUND
from veridyn.model.point_parts import JointKind as PointJointKind
from veridyn.model.point_parts import MechanismJoint as PointJoint
from veridyn.model.spanning import Spanning, spanning_of

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


Array = NDArray[np.float64]


def layout_of(graph: MachineGraph, reserved: Iterable[str]) -> PointsLayout:
    """Clusters, shared points and vectors, and joints with equations of a machine. `reserved`: names that points may not take."""
    spanning = spanning_of(graph)
    clusters = clusters_of(graph)
    layout = PointsLayout(graph=graph, clusters=clusters, poses=start_poses(graph, spanning), reserved=set(reserved))
    carriers = [c.joint for c in spanning.carriers.values()]
    for joint in carriers:
        _lay(layout, joint, shared=True)
    for joint in spanning.cut:
        _lay(layout, joint, shared=layout.plane or not in_plane(graph, spanning, joint))
    layout.carry()
    for joint in (*carriers, *spanning.cut):
        _equations(layout, joint, layout.plane or joint in carriers or not in_plane(graph, spanning, joint))
    return layout


def _lay(layout: PointsLayout, joint: Joint, shared: bool) -> None:
    """Points and vectors that a joint shares."""
    a, b = layout.graph.ends(joint)
    pa, pb = a.placement.position, b.placement.position
    za, zb = a.placement.rotation[:, 2], b.placement.rotation[:, 2]
    if joint.kind in ("turning", "spherical", "universal") and shared:
        point = layout.share_point(a.body, pa, b.body, pb, joint.name)
        if joint.kind == "turning" and not layout.plane:
            layout.share_vector(a.body, za, b.body, zb, f"{joint.name}_axis")
        if joint.kind == "universal":
            ends = [layout.vector_along(*end, f"{joint.name}_axis") for end in ((a.body, za), (b.body, zb))]
            axes = {n: s * np.eye(3)[k] for k, (n, s) in enumerate(ends)}
            layout.crosses.append((joint.name, point, axes))
    elif joint.kind in ("cylindrical", "planar") and not layout.plane:
        layout.share_vector(a.body, za, b.body, zb, f"{joint.name}_axis")
    if joint.kind in ("sliding", "cylindrical") or (joint.kind == "planar" and not layout.plane):
        for body, at in _line_ends(layout, joint)[1:]:
            layout.point_at(body, at, joint.name)


def _line_ends(layout: PointsLayout, joint: Joint) -> list[tuple[str, Array]]:
    """Body and place of the end that has the line or plane, then of the end that is a point on it; the ground has lines rather."""
    ends = [(end.body, end.placement.position) for end in layout.graph.ends(joint)]
    return ends[::-1] if layout.cluster(ends[1][0]).ground else ends


def _equations(layout: PointsLayout, joint: Joint, shared: bool) -> None:
    """The joints that need equations besides what is shared."""
    kind = joint.kind
    a, b = layout.graph.ends(joint)
    if kind == "distance":
        ends = [layout.place(end.body, end.placement.position) for end in (a, b)]
        layout.joints.append(PointJoint(layout_name(layout, joint), "distance", ends[0], ends[1], joint.length))
        return
    line = kind in ("sliding", "cylindrical") or (kind == "turning" and not shared)
    if not line and not (kind == "planar" and not layout.plane):
        return
    (body, at), (other, there) = _line_ends(layout, joint)
    end = a if body == a.body else b
    marker = layout.marker(
        body, at, end.placement.rotation[:, 2], None if layout.plane else end.placement.rotation[:, 0]
    )
    equation: PointJointKind = "inline" if line else "inplane"
    layout.joints.append(PointJoint(layout_name(layout, joint), equation, marker, layout.place(other, there)))


def layout_name(layout: PointsLayout, joint: Joint) -> str:
    """The joint's name, or another where a body or a cross has it."""
    taken = {*layout.graph.by_name, *(c[0] for c in layout.crosses), *(j.name for j in layout.joints)}
    return unique(joint.name, taken, "joint")
