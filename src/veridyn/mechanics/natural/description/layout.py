"""Points and unit vectors for a graph of bodies: joint places become shared points, joint axes shared vectors.

Bodies that are fixed to each other form one cluster and share everything. Clusters joined by sliding joints have one orientation and
share their vectors. Vectors are added only until every body's mass lies in what its points and vectors span, or until a place or direction
on it is used that they do not span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, part_at
from veridyn.model.coordinates import Spanning
from veridyn.model.graph import MachineGraph, unique
from veridyn.model.link import chained, inverted, moved_by
from veridyn.model.place import GROUND, Marker, PointRef, numbers
from veridyn.model.point_parts import MechanismJoint as PointJoint
from veridyn.model.point_parts import Point, RigidBody, UnitVector, rigid_body
from veridyn.spatial.inertia import inertia_matrix
from veridyn.spatial.rotations import MDH, Placement

Pose = tuple[Array, Array]
SAME_PLACE = 1e-9  # m: two joints of one body at one place
PARALLEL = 1e-9  # sine of the angle below which two directions of a body are one
CARRIED = 1e-11  # of the largest second moment: mass outside the span that counts as none
NEW_DIRECTION = 1e-3  # sine above which a direction counts as independent of others when vectors are added


@dataclass
class Cluster:
    """Bodies fixed to each other; `places` of the bodies, and `points`, are in the frame of the cluster.

    `group`: clusters of one orientation; `turned`: the rotation of the cluster's frame in that of the group.
    """

    places: dict[str, MDH | Placement]
    points: dict[str, Array] = field(default_factory=dict)
    group: int = 0
    turned: Array = field(default_factory=lambda: np.eye(3))

    @property
    def ground(self) -> bool:
        return GROUND in self.places


def clusters_of(graph: MachineGraph) -> list[Cluster]:
    """Bodies grouped by fixed joints, and clusters by sliding ones."""
    places: dict[str, tuple[int, MDH | Placement]] = {}
    fixed = [(graph.ends(j), j) for j in graph.joints if j.kind == "fixed"]
    used: set[str] = set()
    for k, root in enumerate((GROUND, *graph.by_name)):
        if root in places:
            continue
        places[root] = (k, Placement())
        grown = True
        while grown:
            grown = False
            for (a, b), joint in fixed:
                for near, far in ((a, b), (b, a)):
                    if joint.name not in used and near.body in places and far.body not in places:
                        at = chained(chained(places[near.body][1], near.placement), inverted(far.placement))
                        places[far.body] = (places[near.body][0], at)
                        used.add(joint.name)
                        grown = True
    faults = Faults()
    for _, joint in fixed:
        if joint.name not in used:
            faults.add("it closes a loop in which nothing moves.", where=part_at("joint", joint.name), hint="Drop it.")
    faults.raise_if_any(ModelError, graph.name)
    clusters = []
    for k in dict.fromkeys(k for k, _ in places.values()):
        clusters.append(Cluster({body: at for body, (own, at) in places.items() if own == k}, group=len(clusters)))
    _orient(graph, clusters)
    return clusters


def _orient(graph: MachineGraph, clusters: list[Cluster]) -> None:
    """Give clusters that slide against each other one group."""
    of = {body: c for c in clusters for body in c.places}
    for joint in graph.joints:
        if joint.kind != "sliding":
            continue
        a, b = graph.ends(joint)
        ca, cb = of[a.body], of[b.body]
        if ca.group == cb.group:
            continue
        Ra = ca.turned @ ca.places[a.body].rotation @ a.placement.rotation
        Rb = cb.turned @ cb.places[b.body].rotation @ b.placement.rotation
        turn, old = Ra @ Rb.T, cb.group
        for c in clusters:
            if c.group == old:
                c.group, c.turned = ca.group, turn @ c.turned


def start_poses(graph: MachineGraph, spanning: Spanning) -> dict[str, Pose]:
    """Rotation and position of every body where the assembly puts its coordinates; loops need not be closed there."""
    home = {**graph.assembly.guess, **graph.assembly.hold}
    poses: dict[str, Pose] = {GROUND: (np.eye(3), np.zeros(3))}
    for body, carrier in spanning.carriers.items():
        a, b = graph.ends(carrier.joint)
        M, m = moved_by(carrier.joint, [home.get(c, 0.0) for c in carrier.joint.coordinate_names])
        step = chained(chained(a.placement, Placement(M, m)), inverted(b.placement))
        near = a.body
        if carrier.reversed:
            step, near = inverted(step), b.body
        R, p = poses[near]
        poses[body] = (R @ step.rotation, p + R @ step.position)
    return poses


@dataclass(kw_only=True)
class PointsLayout:
    """The points and vectors of one machine while they are laid out. `vectors`: name → group → components in the group's frame."""

    graph: MachineGraph
    clusters: list[Cluster]
    poses: Mapping[str, Pose]
    reserved: set[str]
    vectors: dict[str, dict[int, Array]] = field(default_factory=dict)
    joints: list[PointJoint] = field(default_factory=list)
    crosses: list[tuple[str, str, dict[str, Array]]] = field(default_factory=list)

    @property
    def plane(self) -> bool:
        return self.graph.dimension == 2

    @cached_property
    def _of_body(self) -> dict[str, Cluster]:
        return {body: c for c in reversed(self.clusters) for body in c.places}

    @cached_property
    def _in_group(self) -> Counter[int]:
        """How many clusters each group has."""
        return Counter(c.group for c in self.clusters)

    def cluster(self, body: str) -> Cluster:
        return self._of_body[body]

    def local(self, body: str, at: Array) -> Array:
        """A place on a body, in its cluster's frame."""
        place = self.cluster(body).places[body]
        return place.position + place.rotation @ at

    def in_group(self, body: str, direction: Array) -> Array:
        """A direction on a body, in the frame of its group."""
        c = self.cluster(body)
        return c.turned @ c.places[body].rotation @ direction

    def name(self, wanted: str, word: str) -> str:
        made = unique(wanted.replace(".", "_"), self.reserved, word)
        self.reserved.add(made)
        return made

    def point_at(self, body: str, at: Array, wanted: str) -> str:
        """The point of a body's cluster at a place, made where there is none."""
        c, x = self.cluster(body), self.local(body, at)
        for name, place in c.points.items():
            if np.linalg.norm(place - x) <= SAME_PLACE * max(1.0, float(np.linalg.norm(x))):
                return name
        made = self.name(wanted, "point")
        c.points[made] = x
        return made

    def share_point(self, a: str, at_a: Array, b: str, at_b: Array, wanted: str) -> str:
        """One point that both clusters have at these places."""
        first = self.point_at(a, at_a, wanted)
        c, x = self.cluster(b), self.local(b, at_b)
        other = next(
            (
                n
                for n, p in c.points.items()
                if np.linalg.norm(p - x) <= SAME_PLACE * max(1.0, float(np.linalg.norm(x)))
            ),
            "",
        )
        if other and other != first:
            for cluster in self.clusters:
                cluster.points = {first if n == other else n: p for n, p in cluster.points.items()}
        else:
            c.points[first] = x
        return first

    def vector_along(self, body: str, direction: Array, wanted: str) -> tuple[str, float]:
        """The vector of a body's group along a direction and the sign with which it is, made where there is none."""
        group, d = self.cluster(body).group, self.in_group(body, direction)
        for name, on in self.vectors.items():
            if group in on and np.linalg.norm(np.cross(on[group], d)) <= PARALLEL:
                return name, float(np.sign(on[group] @ d))
        made = self.name(wanted, "2")
        self.vectors[made] = {group: d}
        return made, 1.0

    def share_vector(self, a: str, along_a: Array, b: str, along_b: Array, wanted: str) -> str:
        """One vector that both groups have along these directions."""
        first, sign = self.vector_along(a, along_a, wanted)
        group, d = self.cluster(b).group, self.in_group(b, along_b)
        for other, on in list(self.vectors.items()):
            if group in on and np.linalg.norm(np.cross(on[group], d)) <= PARALLEL:
                turn = sign * float(np.sign(on[group] @ d))
                if other != first:
                    del self.vectors[other]
                    self.vectors[first] = {g: turn * x for g, x in on.items()} | self.vectors[first]
                return first
        self.vectors[first][group] = sign * d
        return first

    def group_vectors(self, c: Cluster) -> dict[str, Array]:
        """Vectors of a cluster, in its own frame."""
        return {name: c.turned.T @ on[c.group] for name, on in self.vectors.items() if c.group in on}

    def directions(self, c: Cluster) -> Array:
        """An orthonormal basis (3, k) of what a cluster's points and vectors span."""
        found = list(self.group_vectors(c).values())
        if self._in_group[c.group] == 1:
            points = list(c.points.values())
            found += [p - points[0] for p in points[1:]]
        if not found or c.ground:
            return np.eye(3) if c.ground else np.zeros((3, 0))
        U, s, _ = np.linalg.svd(np.column_stack([d / max(np.linalg.norm(d), 1e-300) for d in found]))
        return U[:, : int((s > NEW_DIRECTION).sum())]

    def is_complete(self, body: str) -> bool:
        """Whether every direction on a body is a combination of its points and vectors."""
        c = self.cluster(body)
        return c.ground or self.directions(c).shape[1] >= (1 if self.plane else 3)

    def complete(self, body: str) -> None:
        """Add vectors to a body until they span every direction."""
        if body == GROUND or self.is_complete(body):
            return
        self._add(self.cluster(body), np.eye(3)[:, :1] if self.plane else np.eye(3), body)

    def _add(self, c: Cluster, wanted: Array, body: str) -> None:
        """Vectors until the columns of `wanted` are spanned; each is chosen across what is there already."""
        while True:
            Q = self.directions(c)
            left = wanted - Q @ (Q.T @ wanted)
            U, s, _ = np.linalg.svd(left)
            if self.plane and Q.shape[1]:
                return
            if not len(s) or s[0] <= NEW_DIRECTION:
                return
            d = U[:, 0]
            k = int(np.argmax(np.abs(d)))
            d = d * np.sign(d[k])
            d = np.where(np.abs(d) < 1e-15, 0.0, d)
            self.vectors[self.name(f"{body}_{'uvw'[min(Q.shape[1], 2)]}", "axis")] = {
                c.group: c.turned @ (d / np.linalg.norm(d))
            }

    def carry(self) -> None:
        """A point for every cluster, and vectors until each body's mass lies in what they span."""
        for c in self.clusters:
            if c.ground:
                continue
            first = next(iter(c.places))
            if not c.points:
                self.point_at(first, np.zeros(3), f"{first}_origin")
            if sum(other.group == c.group for other in self.clusters) > 1:
                self.complete(first)  # one orientation is shared by vectors alone
            for body, place in c.places.items():
                self._add(c, self._mass_directions(c, body, place), body)

    def _mass_directions(self, c: Cluster, body: str, place: MDH | Placement) -> Array:
        """Columns that span the second moment of a body's mass about the first point of its cluster, in the cluster's frame."""
        X = self.graph.by_name[body].ten
        m = X[9]
        J = np.array(inertia_matrix(X))
        second = 0.5 * np.trace(J) * np.eye(3) - J  # ∫ x xᵀ dm about the origin of the body
        R, p = place.rotation, place.position - next(iter(c.points.values()))
        s = R @ X[6:9]
        second = R @ second @ R.T + np.outer(p, s) + np.outer(s, p) + m * np.outer(p, p)
        if self.plane:  # one direction and the one across it carry any body; a particle at its point needs none
            spread = second[0, 0] + second[1, 1]
            return np.eye(3)[:, :1] if spread > CARRIED * max(m, 1e-300) else np.zeros((3, 0))
        values, vectors = np.linalg.eigh(second)
        return vectors[:, np.abs(values) > CARRIED * max(float(np.abs(values).max()), 1e-300)]

    def marker(self, body: str, at: Array, axis: Array | None = None, side: Array | None = None) -> Marker:
        """A marker on a body, which is then complete."""
        self.complete(body)
        k = self.graph.dimension
        return Marker(body, numbers(at[:k]), *(() if d is None else numbers(d[:k]) for d in (axis, side)))

    def place(self, body: str, at: Array) -> PointRef:
        """A place on a body: the name of its point there, or a marker."""
        c, x = self.cluster(body), self.local(body, at)
        for name, point in c.points.items():
            if np.linalg.norm(point - x) <= SAME_PLACE * max(1.0, float(np.linalg.norm(x))):
                return name
        return self.marker(body, at)

    def bodies(self) -> list[RigidBody]:
        """The rigid bodies, with the masses of the links, and the crosses of universal joints."""
        k = self.graph.dimension
        made = []
        for link in self.graph.links:
            c = self.cluster(link.name)
            R, p = c.places[link.name].rotation, c.places[link.name].position
            points = {n: (R.T @ (x - p))[:k] for n, x in c.points.items()}
            vectors = {n: (R.T @ d)[:k] for n, d in self.group_vectors(c).items()}
            made.append(rigid_body(link.name, points, vectors, link.ten, k))
        for name, point, vectors in self.crosses:
            made.append(RigidBody(name, {point: np.zeros(3)}, vectors))
        return made

    def points(self) -> list[Point]:
        k = self.graph.dimension
        names = dict.fromkeys(n for c in self.clusters for n in c.points)
        made = []
        for name in names:
            owners = [c for c in self.clusters if name in c.points]
            owner = next((c for c in owners if c.ground), owners[0])
            R, p = self._pose(owner)
            made.append(Point(name, numbers(_clean(p + R @ owner.points[name])[:k]), owner.ground))
        return made

    def unit_vectors(self) -> list[UnitVector]:
        k = self.graph.dimension
        still = {c.group for c in self.clusters if c.ground}
        made = []
        for name, on in self.vectors.items():
            group = next((g for g in on if g in still), next(iter(on)))
            owner = next(c for c in self.clusters if c.group == group)
            along = _clean(self._pose(owner)[0] @ owner.turned.T @ on[group])
            made.append(UnitVector(name, numbers((along / np.linalg.norm(along))[:k]), group in still))
        return made

    def _pose(self, c: Cluster) -> Pose:
        """Where a cluster's frame starts."""
        body, place = next(iter(c.places.items()))
        R, p = self.poses[body]
        back = inverted(place)
        return R @ back.rotation, p + R @ back.position


def _clean(x: Array) -> Array:
    return np.where(np.abs(x) < 1e-15, 0.0, x)
