"""Joint coordinates as added angles and distances of natural coordinates, with the names they have in the tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, part_at
from veridyn.mechanics.natural.points.layout import PointsLayout
from veridyn.model.assembly import Attachment
from veridyn.model.link import Joint
from veridyn.model.names import GROUND
from veridyn.model.point_parts import Added, Angle, DirectionRef, Distance, Elevation

Array = NDArray[np.float64]
X, Y, Z = np.eye(3)
MIN_REFERENCE_SINE = 0.1  # sine: a direction at least so far from the axis shows the turning


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
        return _way(layout, joint, a, b, joint.ratio * axis, name)
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


def _way(layout: PointsLayout, joint: Joint, a: Attachment, b: Attachment, axis: Array, name: str) -> Distance:
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
