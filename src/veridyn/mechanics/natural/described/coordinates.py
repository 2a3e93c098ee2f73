"""Added angles and distances of a mechanism as coordinates of its joints: the joint's frames are laid so that both have the same value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.described.pose import Pose, in_space
from veridyn.mechanics.natural.held import held
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.model.assembly import Attachment
from veridyn.model.link import Joint
from veridyn.model.names import GROUND
from veridyn.model.place import Marker, PointRef
from veridyn.model.point_parts import Angle, Distance
from veridyn.spatial.rotations import rot_x
from veridyn.spatial.transforms import Placement

Array = NDArray[np.float64]
PERPENDICULAR_COSINE = 1e-9  # cosine below which two directions are perpendicular
ON_AXIS_M = 1e-9  # m
TURN_AT = {"turning": 0, "cylindrical": 1, "planar": 2}  # which coordinate of a joint is its turn about z
SLIDE_AT = {"sliding": 0, "cylindrical": 0}


class CoordinateNaming:
    """Gives joints the names of added coordinates; those that no joint has stay with natural coordinates."""

    def __init__(
        self,
        m: Mechanism,
        joints: Sequence[Joint],
        poses: Mapping[str, Pose],
        pins: Mapping[str, tuple[str, Array]],
    ) -> None:
        self.m, self.poses, self.pins = m, poses, pins
        self.joints = list(joints)
        self.names: dict[tuple[int, int], str] = {}
        self.groups = self._groups(("sliding", "fixed"))
        self.rigid = self._groups(("fixed",))

    def named(self) -> list[Joint]:
        for a in self.m.added:
            if isinstance(a, Angle):
                self._angle(a)
            elif isinstance(a, Distance):
                self._distance(a)
        out = []
        for k, joint in enumerate(self.joints):
            own = list(joint.coordinate_names)
            given = [self.names.get((k, i), c) for i, c in enumerate(own)]
            out.append(joint if given == own else replace(joint, coordinates=tuple(given)))
        return out

    def _groups(self, kinds: tuple[str, ...]) -> dict[str, tuple[str, Array, Array]]:
        """Body → a body of the same orientation (or fixed to it), and the constant rotation and, where fixed, place there."""
        found: dict[str, tuple[str, Array, Array]] = {}
        bodies = dict.fromkeys([GROUND, *(end.body for j in self.joints for end in _ends(j))])
        for root in bodies:
            if root in found:
                continue
            found[root] = (root, np.eye(3), np.zeros(3))
            grown = True
            while grown:
                grown = False
                for j in self.joints:
                    a, b = _ends(j)
                    for near, far in ((a, b), (b, a)):
                        if j.kind in kinds and near.body in found and far.body not in found:
                            top, R, p = found[near.body]
                            turn = near.placement.rotation @ far.placement.rotation.T
                            way = near.placement.position - turn @ far.placement.position
                            found[far.body] = (top, R @ turn, p + R @ way)
                            grown = True
        return found

    def _seen(self, body: str, from_: str, d: Array) -> Array | None:
        """A direction on one body as seen from another of the same orientation."""
        if body not in self.groups or from_ not in self.groups or self.groups[body][0] != self.groups[from_][0]:
            return None
        return self.groups[from_][1].T @ self.groups[body][1] @ d

    def _angle(self, a: Angle) -> bool:
        of = {body: in_space(x) for body, x in held(self.m, a.of).items()}
        start = {body: in_space(x) for body, x in held(self.m, a.reference).items()}
        towards = None if a.towards is None else {body: in_space(x) for body, x in held(self.m, a.towards).items()}
        for k, joint in enumerate(self.joints):
            if joint.kind not in TURN_AT or (k, TURN_AT[joint.kind]) in self.names:
                continue
            ends = _ends(joint)
            for near, far in (ends, ends[::-1]):
                frames = self._turning(near, far, of, start, towards)
                if frames is not None:
                    self.joints[k] = replace(joint, a=frames[0], b=frames[1])
                    self.names[k, TURN_AT[joint.kind]] = a.name
                    return True
        return False

    def _turning(
        self,
        near: Attachment,
        far: Attachment,
        of: Mapping[str, Array],
        start: Mapping[str, Array],
        towards: Mapping[str, Array] | None,
    ) -> tuple[Attachment, Attachment] | None:
        """Frames of a joint whose angle is that of `of`, on the far body, counted from `start` towards `towards` on the near one."""
        d = next((x for body, v in of.items() if (x := self._seen(body, far.body, v)) is not None), None)
        e = next((x for body, v in start.items() if (x := self._seen(body, near.body, v)) is not None), None)
        if d is None or e is None:
            return None
        z_near, z_far = near.placement.rotation[:, 2], far.placement.rotation[:, 2]
        if towards is None:
            n = np.array([0.0, 0.0, 1.0])
        else:
            f = next((x for body, v in towards.items() if (x := self._seen(body, near.body, v)) is not None), None)
            if f is None:
                return None
            n = np.cross(e / np.linalg.norm(e), f / np.linalg.norm(f))
        along = float(n @ z_near)
        if abs(abs(along) - 1.0) > PERPENDICULAR_COSINE or abs(
            float(e @ z_near)
        ) > PERPENDICULAR_COSINE * np.linalg.norm(e):
            return None
        z_near, z_far = np.sign(along) * z_near, np.sign(along) * z_far
        d = d - (d @ z_far) * z_far
        if np.linalg.norm(d) < 1e-6:
            return None
        return _framed(near, e, z_near), _framed(far, d, z_far)

    def _distance(self, s: Distance) -> bool:
        for k, joint in enumerate(self.joints):
            if joint.kind not in SLIDE_AT or (k, SLIDE_AT[joint.kind]) in self.names:
                continue
            ends = _ends(joint)
            for near, far in (ends, ends[::-1]):
                frames = self._sliding(near, far, s)
                if frames is not None:
                    self.joints[k] = replace(joint, a=frames[0], b=frames[1])
                    self.names[k, SLIDE_AT[joint.kind]] = s.name
                    return True
        return False

    def _sliding(self, near: Attachment, far: Attachment, s: Distance) -> tuple[Attachment, Attachment] | None:
        """Frames of a joint whose way is the distance from `s.a`, on the near body, to `s.b` on the far one."""
        A, B = self._on(s.a, near.body), self._on(s.b, far.body)
        if A is None or B is None:
            return None
        z_near, z_far = near.placement.rotation[:, 2], far.placement.rotation[:, 2]
        off_near, off_far = near.placement.position - A, B - far.placement.position
        offset = float(z_near @ off_near + z_far @ off_far)
        if s.along is None:
            across = [off_near - (off_near @ z_near) * z_near, off_far - (off_far @ z_far) * z_far]
            if max(np.linalg.norm(x) for x in across) > ON_AXIS_M:
                return None
            (R, p), (Q, o) = self.poses[near.body], self.poses[far.body]
            sign = float(np.sign((R @ z_near) @ (o + Q @ B - p - R @ A)))
        else:
            along = next(
                (
                    x
                    for body, v in held(self.m, s.along).items()
                    if (x := self._seen(body, near.body, in_space(v))) is not None
                ),
                None,
            )
            if along is None:
                return None
            cosine = float(along @ z_near) / float(np.linalg.norm(along))
            if abs(abs(cosine) - 1.0) > PERPENDICULAR_COSINE:
                return None
            sign = float(np.sign(cosine))
        flip = np.eye(3) if sign > 0.0 else rot_x(np.pi)
        a = Placement(near.placement.rotation @ flip, near.placement.position - offset * z_near)
        b = Placement(far.placement.rotation @ flip, far.placement.position)
        return Attachment(near.body, a), Attachment(far.body, b)

    def _on(self, ref: PointRef, body: str) -> Array | None:
        """A place in a body's frame, where the body, or one fixed to it, has it."""
        if isinstance(ref, Marker):
            places = {ref.body: in_space(ref.at)}
        else:
            places = {b.name: in_space(b.points[ref]) for b in self.m.bodies if ref in b.points}
            fixed = next((p for p in self.m.points if p.name == ref and p.fixed), None)
            places |= {} if fixed is None else {GROUND: in_space(fixed.at)}
        if body in self.pins and (pin := self.pins[body])[0] in places:
            return np.zeros(3) if np.linalg.norm(places[pin[0]] - pin[1]) <= ON_AXIS_M else None
        for owner, at in places.items():
            if owner in self.rigid and body in self.rigid and self.rigid[owner][0] == self.rigid[body][0]:
                _, R, p = self.rigid[owner]
                _, S, o = self.rigid[body]
                return S.T @ (p + R @ at - o)
        return None


def _ends(joint: Joint) -> tuple[Attachment, Attachment]:
    assert isinstance(joint.a, Attachment) and isinstance(joint.b, Attachment)
    return joint.a, joint.b


def _framed(end: Attachment, x: Array, z: Array) -> Attachment:
    x = x / np.linalg.norm(x)
    return Attachment(end.body, Placement(np.column_stack([x, np.cross(z, x), z]), end.placement.position))
