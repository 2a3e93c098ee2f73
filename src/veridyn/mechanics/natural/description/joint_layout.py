"""What each joint of a machine is in natural coordinates: shared points and vectors, and equations where sharing does not say it all.

The cut joint of a loop that moves in one plane constrains less than its kind says. Joint coordinates that something uses are added angles
and distances, with the names they have in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, part_at
from veridyn.mechanics.natural.description.layout import PointsLayout, clusters_of, start_poses
from veridyn.model.coordinates import Spanning, spanning_of
from veridyn.model.graph import MachineGraph, unique
from veridyn.model.link import Joint
from veridyn.model.place import GROUND, Attachment
from veridyn.model.point_parts import Added, Angle, DirectionRef, Distance, Elevation
from veridyn.model.point_parts import JointKind as PointJointKind
from veridyn.model.point_parts import MechanismJoint as PointJoint

PARALLEL_SINE = 1e-9  # sine of the angle below which two directions of a body are one
X, Y, Z = np.eye(3)
MIN_REFERENCE_SINE = 0.1  # sine: a direction at least so far from the axis shows the turning


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


def added_coordinates(layout: PointsLayout, names: set[str], faults: Faults) -> list[Added]:
    """An angle or distance for each of these coordinates, in the order of the joints."""
    made: list[Added] = []
    for joint in layout.graph.joints:
        wanted = [k for k, c in enumerate(joint.coordinate_names) if c in names]
        where = part_at("joint", joint.name)
        if wanted and abs(joint.ratio) != 1.0:
            faults.add(
                f"natural coordinates have no ratio of {joint.ratio:g} between a joint and its coordinate.",
                where=where,
                hint="Use formulation: tree.",
            )
            continue
        for k in wanted:
            name = joint.coordinate_names[k]
            if any(a.name == name for a in made):
                faults.add(
                    f"natural coordinates do not share the coordinate '{name}' between joints.",
                    where=where,
                    hint="Use formulation: tree.",
                )
                continue
            made.append(_coordinate(layout, joint, k, name))
    return made


def _coordinate(layout: PointsLayout, joint: Joint, k: int, name: str) -> Added:
    a, b = layout.graph.ends(joint)
    word = joint.course.steps[k].word
    if joint.course.steps[k].motion == "sliding":
        axis = {"x": X, "y": Y}.get(word, Z)
        if joint.kind not in ("planar", "floating"):
            axis = Z
        return _distance(layout, joint, a, b, joint.ratio * axis, name)
    start = {**layout.graph.assembly.guess, **layout.graph.assembly.hold}.get(name, float("nan"))
    if joint.kind in ("turning", "cylindrical", "planar"):
        return _turn(layout, a, b, joint.ratio, name, start)
    if joint.kind == "universal":  # z of b counted from −y of a towards x; z of a counted from y of b towards x
        near, far, reference = (a, b, -Y) if k == 0 else (b, a, Y)
        return _angle(layout, far, Z, near, reference, X, name, start)
    if layout.plane and word == "yaw":
        return _turn(layout, a, b, 1.0, name, start)
    if word == "yaw":
        return _angle(layout, b, X, a, X, Y, name, start)
    if word == "roll":
        return _angle(layout, a, Z, b, Z, Y, name, start)
    return Elevation(name, _direction(layout, b, X), _direction(layout, a, -Z))  # the pitch: sin θ = −x of b · z of a


def _direction(layout: PointsLayout, end: Attachment, along: Array) -> DirectionRef:
    d = end.placement.rotation @ along
    if end.body == GROUND:
        return tuple(float(x) for x in np.where(np.abs(d) < 1e-15, 0.0, d)[: layout.graph.dimension])
    return layout.marker(end.body, end.placement.position, d)


def _angle(
    layout: PointsLayout, of: Attachment, d: Array, to: Attachment, e: Array, f: Array, name: str, start: float
) -> Angle:
    return Angle(name, _direction(layout, of, d), _direction(layout, to, e), _direction(layout, to, f), start)


def _distance(layout: PointsLayout, joint: Joint, a: Attachment, b: Attachment, axis: Array, name: str) -> Distance:
    along = _direction(layout, a, axis)
    ends = [layout.place(end.body, end.placement.position) for end in (a, b)]
    return Distance(name, ends[0], ends[1], along)


def _turn(layout: PointsLayout, a: Attachment, b: Attachment, ratio: float, name: str, start: float) -> Angle:
    """The angle of x of b from x of a about z; where only b is complete, counted from there."""
    if layout.plane:
        normal = float(a.placement.rotation[2, 2])
        far, near = (b, a) if normal * ratio > 0.0 else (a, b)
        return Angle(name, _direction(layout, far, X), _direction(layout, near, X), None, start)
    if not layout.is_complete(a.body) and layout.is_complete(b.body):
        a, b, ratio = b, a, -ratio
    layout.complete(a.body)
    of, at = _seen(layout, b)
    c, s = np.cos(at), np.sin(at)  # x of a, turned by where the direction is in b at zero
    return Angle(
        name,
        of,
        _direction(layout, a, np.array([c, s, 0.0])),
        _direction(layout, a, ratio * np.array([-s, c, 0.0])),
        start,
    )


def _seen(layout: PointsLayout, b: Attachment) -> tuple[DirectionRef, float]:
    """A direction of a body that is across its joint's axis, and its angle from x of the joint's frame there."""
    if layout.is_complete(b.body):
        return _direction(layout, b, X), 0.0
    cluster = layout.cluster(b.body)
    R = cluster.places[b.body].rotation @ b.placement.rotation
    best: tuple[float, DirectionRef, float] = (0.0, "", 0.0)
    candidates: list[tuple[DirectionRef, Array]] = [(n, d) for n, d in layout.group_vectors(cluster).items()]
    points = list(cluster.points.items())
    candidates += [((points[0][0], n), p - points[0][1]) for n, p in points[1:]]
    for ref, d in candidates:
        local = R.T @ d / np.linalg.norm(d)
        across = float(np.hypot(local[0], local[1]))
        if across > best[0] + 1e-9:
            best = (across, ref, float(np.arctan2(local[1], local[0])))
    if best[0] < MIN_REFERENCE_SINE:
        layout.complete(b.body)
        return _direction(layout, b, X), 0.0
    return best[1], best[2]
