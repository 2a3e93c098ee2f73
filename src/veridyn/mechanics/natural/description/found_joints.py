"""The joints of a mechanism in natural coordinates, between frames on its bodies: those by shared points and vectors, and those written.

Two bodies that share a point are joined there: by a spherical joint where they share nothing else, by a turning joint where they share one
direction too, and fixed where they share more; in the plane by a pin or fixed. The start of the bodies places their frames.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import Faults, part_at
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.graph import unique
from veridyn.model.link import Joint, JointKind
from veridyn.model.place import GROUND, Attachment, Marker, PointRef
from veridyn.model.point_parts import MechanismJoint as PointJoint
from veridyn.model.point_parts import RigidBody
from veridyn.spatial.rotations import Placement, rot_x, rot_y, rot_z, rotation_to_axis

Pose = tuple[Array, Array]
NEW_DIRECTION_SINE = 1e-6  # sine from which on a direction counts as a new one, as in mechanics/natural
PARALLEL = 1e-9
HALF_TURNS = (np.eye(3), rot_x(np.pi), rot_y(np.pi), rot_z(np.pi))
TREE_HINT = "A tree has no such joint: use formulation: natural."


def in_space(x: ArrayLike) -> Array:
    """A place or direction of the plane as one in space; one in space as it is."""
    a = np.asarray(x, dtype=np.float64)
    return np.append(a, 0.0) if a.shape == (2,) else a


def body_directions(body: RigidBody) -> list[Array]:
    """Unit vectors along a body's vectors and from its first point to the others, in its frame."""
    points = [in_space(x) for x in body.points.values()]
    found = [x - points[0] for x in points[1:]] + [in_space(x) for x in body.vectors.values()]
    return [x / n for x in found if (n := float(np.linalg.norm(x))) > 0.0]


def rank_of(directions: Sequence[Array]) -> int:
    """How many of these directions are independent."""
    if not directions:
        return 0
    s = np.linalg.svd(np.column_stack(directions), compute_uv=False)
    return int((s > NEW_DIRECTION_SINE * s[0]).sum())


def orientation_left(body: RigidBody, dimension: int) -> int:
    """How many turns of a body its points and vectors do not show: 3 or 1 of a particle, 1 of a rod in space, else none."""
    rank = rank_of(body_directions(body))
    if dimension == 2:
        return 0 if rank else 1
    return {0: 3, 1: 1}.get(rank, 0)


def fitted_rotation(here: Sequence[Array], there: Sequence[Array]) -> Array:
    """The rotation that takes directions `there` nearest to those `here`; turns that they do not show are left out."""
    if not here:
        return np.eye(3)
    U, _, Vt = np.linalg.svd(sum((np.outer(g, x) for g, x in zip(here, there, strict=True)), np.zeros((3, 3))))
    return U @ np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))]) @ Vt


def mechanism_poses(m: Mechanism) -> dict[str, Pose]:
    """Rotation and position of every body, and of the ground, about where the description starts them."""
    at = {p.name: in_space(p.at) for p in m.points} | {v.name: in_space(v.along) for v in m.vectors}
    poses: dict[str, Pose] = {GROUND: (np.eye(3), np.zeros(3))}
    for b in m.bodies:
        points = list(b.points)
        local = {name: in_space(x) for name, x in (*b.points.items(), *b.vectors.items())}
        here = [_unit(at[p] - at[points[0]]) for p in points[1:]] + [at[v] for v in b.vectors]
        there = [_unit(local[p] - local[points[0]]) for p in points[1:]] + [local[v] for v in b.vectors]
        if m.dimension == 2:
            turn = sum(float(x[0] * g[1] - x[1] * g[0]) for g, x in zip(here, there, strict=True))
            R = rot_z(float(np.arctan2(turn, sum(float(g @ x) for g, x in zip(here, there, strict=True)))))
        else:
            R = fitted_rotation(here, there)
        poses[b.name] = (R, np.mean([at[p] - R @ local[p] for p in points], axis=0))
    return poses


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-300)


class MechanismJoints:
    """Collects joints; knows which bodies have a turn that moves no mass, and holds it at their first joint."""

    def __init__(self, m: Mechanism, faults: Faults) -> None:
        self.m, self.faults = m, faults
        self.joints: list[Joint] = []
        self.slides: dict[str, Pose] = {}  # bodies without mass in slots, and where they start
        self.pins: dict[str, tuple[str, Array]] = {}  # where those in slots carry another body: body and place on it
        self.poses = mechanism_poses(m)
        self.elements: dict[str, dict[str, Array]] = {
            b.name: {name: in_space(x) for name, x in (*b.points.items(), *b.vectors.items())} for b in m.bodies
        }
        fixed = {p.name: in_space(p.at) for p in m.points if p.fixed} | {
            v.name: in_space(v.along) for v in m.vectors if v.fixed
        }
        self.elements = {GROUND: fixed} | self.elements
        self.points = {p.name for p in m.points}
        self.left = {b.name: orientation_left(b, m.dimension) for b in m.bodies} | {GROUND: 0}

    def collect(self) -> None:
        """All joints: of shared elements first, then those of the description, then floating ones."""
        guided = [j for j in self.m.joints if self._guides_particle(j)]
        for j in guided:  # before anything else holds the particle
            self._written(j, {})
        ties = self._shared()
        for j in self.m.joints:
            if j not in guided:
                self._written(j, ties)
        for (x, y), names in ties.items():
            self.faults.add(
                f"bodies '{x}' and '{y}' share {', '.join(names)} and no point.",
                where=part_at("body", y),
                hint=TREE_HINT,
            )
        self._floating()

    def _guides_particle(self, j: PointJoint) -> bool:
        """Whether a joint leads a particle along a line."""
        line = j.kind == "inline" or (j.kind == "cylindrical" and self.m.dimension == 2)
        return line and self.left.get(self._end(j.b)[0], 0) == (1 if self.m.dimension == 2 else 3)

    def _name(self, wanted: str) -> str:
        return unique(wanted.replace(".", "_"), [j.name for j in self.joints], "joint")

    def _add(self, name: str, kind: JointKind, a: Attachment, b: Attachment, length: float = 0.0) -> None:
        self.joints.append(Joint(name=self._name(name), kind=kind, a=a, b=b, length=length))

    # Shared points and vectors

    def _shared(self) -> dict[tuple[str, str], list[str]]:
        """Joints of shared points; returned: what pairs of bodies share that no joint accounts for, vectors all of it."""
        pairs = []
        for x, y in itertools.combinations(self.elements, 2):
            names = [e for e in self.elements[y] if e in self.elements[x]]
            points = [e for e in names if e in self.points]
            if names:
                rank = rank_of(self._directions(x, names))
                pairs.append((0 if points else 1, -rank, len(pairs), x, y, names))
        parts = {e: {b: b for b in self.elements if e in self.elements[b]} for e in (n for x in pairs for n in x[5])}

        def root(e: str, b: str) -> str:
            while parts[e][b] != b:
                b = parts[e][b]
            return b

        ties: dict[tuple[str, str], list[str]] = {}
        for without_point, _, _, x, y, names in sorted(pairs, key=lambda pair: pair[:3]):
            fresh = [e for e in names if root(e, x) != root(e, y)]
            if not fresh:
                continue
            for e in names:
                parts[e][root(e, x)] = root(e, y)
            if without_point:
                ties[x, y] = names
            else:
                self._joined(x, y, names)
        return ties

    def _directions(self, body: str, names: Sequence[str]) -> list[Array]:
        """Shared directions in the frame of a body: vectors, and from the first shared point to the others."""
        at = self.elements[body]
        points = [e for e in names if e in self.points]
        found = [at[p] - at[points[0]] for p in points[1:]] + [at[v] for v in names if v not in self.points]
        return [x / max(float(np.linalg.norm(x)), 1e-300) for x in found]

    def _joined(self, x: str, y: str, names: Sequence[str]) -> None:
        point = next(e for e in names if e in self.points)
        at = [self.elements[b][point] for b in (x, y)]
        one, two = self._directions(x, names), self._directions(y, names)
        rank = rank_of(one)
        if rank >= (1 if self.m.dimension == 2 else 2):
            turn = self._relative(one, two)
            self._fix(point, x, at[0], y, at[1], turn)
        elif rank == 1:
            k = next(k for k, d in enumerate(one) if np.any(d))
            ends = [Attachment(b, Placement(rotation_to_axis(d[k]), p)) for b, d, p in zip((x, y), (one, two), at)]
            self._add(point, "turning", ends[0], ends[1])
        else:
            self._pinned(point, x, at[0], y, at[1])

    def _relative(self, one: Sequence[Array], two: Sequence[Array]) -> Array:
        """The constant rotation of y's frame in x's from directions that both have."""
        if self.m.dimension == 2:
            x, y = one[0], two[0]
            return rot_z(float(np.arctan2(x[1], x[0]) - np.arctan2(y[1], y[0])))
        return fitted_rotation(one, two)

    def _fix(self, name: str, x: str, at_x: Array, y: str, at_y: Array, turn: Array) -> None:
        """Fixed to each other, y turned by `turn` against x."""
        self._add(name, "fixed", Attachment(x, Placement(np.eye(3), at_x)), Attachment(y, Placement(turn.T, at_y)))

    def _pinned(self, name: str, x: str, at_x: Array, y: str, at_y: Array) -> None:
        """A point in common and nothing else; what can turn without moving any mass is held."""
        plane = self.m.dimension == 2
        loose = next((b for b in (y, x) if self.left.get(b, 0)), None)
        if loose is not None and self.left[loose] == (1 if plane else 3):
            self.left[loose] = 0
            turn = self.poses[x][0].T @ self.poses[y][0]
            self._fix(name, x, at_x, y, at_y, turn)
        elif loose is not None:
            self.left[loose] = 0
            self._rod(name, x, at_x, y, at_y, loose)
        else:
            ends = Attachment(x, Placement(np.eye(3), at_x)), Attachment(y, Placement(np.eye(3), at_y))
            self._add(name, "turning" if plane else "spherical", *ends)

    def _rod(self, name: str, x: str, at_x: Array, y: str, at_y: Array, rod: str) -> None:
        """A universal joint that lets a rod point anywhere and does not turn it about its line; at the start both angles are zero."""
        b = self.m.body(rod)
        ends = [in_space(p) for p in b.points.values()]
        line = ends[1] - ends[0] if len(ends) > 1 else in_space(next(iter(b.vectors.values())))
        u = self.poses[rod][0] @ (line / np.linalg.norm(line))
        across = rotation_to_axis(u)[:, 0]  # the axis on the rod
        other = np.cross(u, across)  # the axis on the other body, across both
        on_a, on_b = (other, across) if rod == y else (across, other)
        F = np.column_stack([np.cross(-on_b, on_a), -on_b, on_a])
        G = F @ rot_x(np.pi / 2)
        a = Attachment(x, Placement(self.poses[x][0].T @ F, at_x))
        self._add(name, "universal", a, Attachment(y, Placement(self.poses[y][0].T @ G, at_y)))

    # Joints of the description

    def _end(self, ref: PointRef) -> tuple[str, Array]:
        """Body and place of an end; a point belongs to the ground where it is fixed, else to the first body that has it."""
        if isinstance(ref, Marker):
            return ref.body, in_space(ref.at)
        body = next((b for b, at in self.elements.items() if ref in at), GROUND)
        return body, self.elements[body][ref]

    def _written(self, j: PointJoint, ties: dict[tuple[str, str], list[str]]) -> None:
        (x, px), (y, py) = self._end(j.a), self._end(j.b)
        kind, plane = j.kind, self.m.dimension == 2
        if kind == "distance":
            ends = Attachment(x, Placement(np.eye(3), px)), Attachment(y, Placement(np.eye(3), py))
            self._add(j.name, "distance", *ends, length=j.length)
            return
        if kind == "spherical" or (plane and kind == "turning"):
            self._pinned(j.name, x, px, y, py)
            return
        assert isinstance(j.a, Marker)
        R = marker_frame(j.a)
        if kind == "inline" or (plane and kind == "cylindrical"):
            self._line(j.name, x, px, R, y, py, ties)
            return
        if kind == "inplane":
            shared = self._tied(x, y, ties)
            if (
                rank_of(self._directions(x, shared)) == 1
                and abs(self._directions(x, shared)[0] @ R[:, 2]) > 1.0 - PARALLEL
            ):
                S = rotation_to_axis(np.sign(self._directions(x, shared)[0] @ R[:, 2]) * self._directions(y, shared)[0])
                self._add(j.name, "planar", Attachment(x, Placement(R, px)), Attachment(y, Placement(S, py)))
            else:
                self.faults.add(
                    "a point stays in a plane of another body, which it turns against.",
                    where=part_at("joint", j.name),
                    hint=TREE_HINT,
                )
            return
        assert isinstance(j.b, Marker)
        S = marker_frame(j.b)
        S = S @ self._nearest(x, R, y, S, sliding=kind == "sliding") if kind != "universal" else S
        same: JointKind = kind  # pyright: ignore[reportAssignmentType]
        self._add(j.name, same, Attachment(x, Placement(R, px)), Attachment(y, Placement(S, py)))

    def _nearest(self, x: str, R: Array, y: str, S: Array, sliding: bool) -> Array:
        """The half turn of the frame on y with which it starts nearest the one on x: equations hold for lines, frames have signs."""
        here, there = self.poses[x][0] @ R, self.poses[y][0] @ S
        turns = HALF_TURNS if sliding else HALF_TURNS[:2]
        if sliding:
            return max(turns, key=lambda T: float(np.trace(here.T @ there @ T)))
        return max(turns, key=lambda T: float(here[:, 2] @ (there @ T)[:, 2]))

    def _tied(self, x: str, y: str, ties: dict[tuple[str, str], list[str]]) -> list[str]:
        """Vectors that two bodies share, which a joint along a line takes up."""
        ties.pop((x, y), None)
        ties.pop((y, x), None)
        return [e for e in self.elements[x] if e in self.elements[y] and e not in self.points]

    def _line(
        self, name: str, x: str, px: Array, R: Array, y: str, py: Array, ties: dict[tuple[str, str], list[str]]
    ) -> None:
        """A point of y stays on the axis of a frame R on x; what they share besides decides how y may turn."""
        shared = self._tied(x, y, ties)
        one, two = self._directions(x, shared), self._directions(y, shared)
        rank, plane = rank_of(one), self.m.dimension == 2
        a = Attachment(x, Placement(R, px))
        if rank >= (1 if plane else 2):
            self._add(name, "sliding", a, Attachment(y, Placement(self._relative(one, two).T @ R, py)))
        elif rank == 1 and abs(float(one[0] @ R[:, 2])) > 1.0 - PARALLEL:
            S = rotation_to_axis(np.sign(one[0] @ R[:, 2]) * two[0])
            self._add(name, "cylindrical", a, Attachment(y, Placement(S, py)))
        elif self.left.get(y, 0) == (1 if plane else 3):
            self.left[y] = 0
            turn = self.poses[x][0].T @ self.poses[y][0]
            self._add(name, "sliding", a, Attachment(y, Placement(turn.T @ R, py)))
        elif rank:
            self.faults.add(
                "a point stays on a line of a body it turns against otherwise.",
                where=part_at("joint", name),
                hint=TREE_HINT,
            )
        else:
            slide = unique(f"{name}_slide", [*self.elements, *self.slides])
            Rx, _ = self.poses[x]
            Ry, oy = self.poses[y]
            self.slides[slide] = (Rx, oy + Ry @ py)
            self.poses[slide] = self.slides[slide]
            self.left[slide] = 0
            self.pins[slide] = (y, py)
            self._add(name, "sliding", a, Attachment(slide, Placement(R)))
            self._pinned(f"{name}_pin", slide, np.zeros(3), y, py)

    # Bodies that nothing joins to the ground

    def _floating(self) -> None:
        plane = self.m.dimension == 2
        order = sorted((b.name for b in self.m.bodies), key=lambda name: self.left[name])
        for name in order:
            if name in self._reached():
                continue
            place = Attachment(name)
            if self.left[name] == 0:
                self._add(f"{name}_float", "planar" if plane else "floating", Attachment(GROUND), place)
            elif self.left[name] == (1 if plane else 3):
                self._slides(name)
            else:
                what = "it floats, and is a rod without inertia about its line."
                self.faults.add(what, where=part_at("body", name), hint=TREE_HINT)
                self._add(f"{name}_float", "floating", Attachment(GROUND), place)

    def _slides(self, particle: str) -> None:
        """A particle that floats: slides along the axes, with bodies without mass between them."""
        before = GROUND
        R, p = self.poses[particle]
        words = "xyz"[: self.m.dimension]
        for k, word in enumerate(words):
            last = k == len(words) - 1
            here = particle if last else unique(f"{particle}_{word}", [*self.elements, *self.slides])
            if not last:
                start = np.zeros(3)
                start[: k + 1] = p[: k + 1]
                self.slides[here] = self.poses[here] = (np.eye(3), start)
                self.left[here] = 0
            frame = rotation_to_axis(np.eye(3)[k])
            self._add(
                f"{particle}_{word}",
                "sliding",
                Attachment(before, Placement(frame)),
                Attachment(here, Placement((R.T if last else np.eye(3)) @ frame)),
            )
            before = here
        self.left[particle] = 0

    def _reached(self) -> set[str]:
        reached, grown = {GROUND}, True
        while grown:
            grown = False
            for j in self.joints:
                a, b = (end.body for end in (j.a, j.b) if isinstance(end, Attachment))
                if j.kind != "distance" and (a in reached) != (b in reached):
                    reached |= {a, b}
                    grown = True
        return reached


def marker_frame(marker: Marker) -> Array:
    """The frame of a joint at a marker: z along its axis, x along its side; in the plane y is the normal."""
    axis = in_space(marker.axis)
    z = axis / np.linalg.norm(axis)
    if len(marker.axis) == 2:
        return np.column_stack([[-z[1], z[0], 0.0], [0.0, 0.0, 1.0], z])
    side = in_space(marker.side) if marker.side else np.eye(3)[int(np.argmin(np.abs(z)))]
    x = side - (side @ z) * z
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
