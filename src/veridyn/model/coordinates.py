"""Coordinates and rows of a machine, from its description alone.

A spanning tree of the graph chooses which joints carry the bodies and at which its loops are cut open; the coordinates are those of the
joints that carry bodies, in their order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Literal

from veridyn.errors import Faults, ModelError, did_you_mean, part_at
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.graph import MachineGraph
from veridyn.model.link import COURSES, Joint
from veridyn.model.place import GROUND
from veridyn.model.point_parts import Angle

# What is rather kept in the tree, first; those behind are rather cut.
KEPT_FIRST = ("floating", "fixed", "sliding", "turning", "planar", "cylindrical", "universal", "spherical")
PLANAR_BASE = "planar"  # what a floating joint is in the plane
Rows = str | Sequence[str]
Motion1D = Literal["turning", "sliding"]


@dataclass(frozen=True)
class Carrier:
    """The joint that carries a body in the tree; `reversed` where the body is at its end `a`."""

    joint: Joint
    reversed: bool


@dataclass(frozen=True)
class Spanning:
    """Which joint carries each body, and which joints are cut, in the order of the machine."""

    carriers: Mapping[str, Carrier]
    cut: tuple[Joint, ...]


def spanning_of(graph: MachineGraph) -> Spanning:
    """The spanning tree: joints that must not be cut first, then those whose coordinates have names, then by kind, from the ground on.

    Joints that carry a motor, or a coordinate that an element, load or sensor uses, are never cut; a loop of nothing but those is refused
    by name.
    """
    depth = _depths(graph)
    named = {*graph.assembly.hold, *graph.assembly.guess}

    def rank(at: tuple[int, Joint]) -> tuple[int, int, int, int]:
        k, joint = at
        held = joint.cut == "no" or bool(set(joint.coordinate_names) & graph.needed)
        by_name = bool(joint.coordinates) or bool(set(joint.coordinate_names) & named)
        nearest = min(depth[end.body] for end in graph.ends(joint))
        return (0 if held else 1 if by_name else 2, KEPT_FIRST.index(joint.kind), nearest, k)

    candidates = [(k, j) for k, j in enumerate(graph.joints) if j.cut != "yes" and j.kind != "distance"]
    part = {name: name for name in (GROUND, *graph.by_name)}

    def root(name: str) -> str:
        while part[name] != name:
            part[name] = name = part[part[name]]  # half the way for those who ask later
        return name

    kept: list[Joint] = []
    for _, joint in sorted(candidates, key=rank):
        a, b = (root(end.body) for end in graph.ends(joint))
        if a != b:
            part[a] = b
            kept.append(joint)
    faults = Faults()
    held = {id(joint) for joint in kept}
    cut = tuple(j for j in graph.joints if id(j) not in held)
    for joint in cut:
        _check_cut(graph, joint, faults)
    faults.raise_if_any(ModelError, graph.name)
    return Spanning(_carriers(graph, kept), cut)


def _check_cut(graph: MachineGraph, joint: Joint, faults: Faults) -> None:
    used = [c for c in joint.coordinate_names if c in graph.needed]
    if joint.cut == "no":
        faults.add(
            "it closes a loop of joints that must not be cut.",
            where=part_at("joint", joint.name),
            hint="Let one joint of the loop be cut: auto.",
        )
    elif used:
        faults.add(
            f"a loop is cut open here, but its coordinate '{used[0]}' is used by a motor, element, load, sensor or drive.",
            where=part_at("joint", joint.name),
            hint="Cut the loop at another joint, by cut: yes there.",
        )


def _beside(graph: MachineGraph, joints: Sequence[Joint]) -> dict[str, list[tuple[str, Carrier]]]:
    """The bodies that joints lead to from each body, and each joint as what carries the body it leads to."""
    found: dict[str, list[tuple[str, Carrier]]] = {name: [] for name in (GROUND, *graph.by_name)}
    for joint in joints:
        a, b = (end.body for end in graph.ends(joint))
        found[a].append((b, Carrier(joint, False)))
        found[b].append((a, Carrier(joint, True)))
    return found


def _depths(graph: MachineGraph) -> dict[str, int]:
    """How many joints are between each body and the ground, at the least."""
    depth: dict[str, int] = {GROUND: 0}
    waiting: deque[str] = deque((GROUND,))
    beside = _beside(graph, graph.joints)
    while waiting:
        near = waiting.popleft()
        for far, _ in beside[near]:
            if far not in depth:
                depth[far] = depth[near] + 1
                waiting.append(far)
    return depth | {name: len(graph.links) for name in graph.by_name if name not in depth}


def _carriers(graph: MachineGraph, kept: Sequence[Joint]) -> dict[str, Carrier]:
    """Of joints without loops, the one on the way from the ground to each body: always the first of `kept` that leads on."""
    order = {id(joint): k for k, joint in enumerate(kept)}
    beside, found = _beside(graph, kept), {}
    leading = [(order[id(c.joint)], body, c) for body, c in beside[GROUND]]
    heapify(leading)
    while leading:
        _, body, carrier = heappop(leading)
        found[body] = carrier
        for far, c in beside[body]:
            if far != GROUND and far not in found:
                heappush(leading, (order[id(c.joint)], far, c))
    return found


def free_root(graph: MachineGraph, spanning: Spanning) -> str:
    """The body of a free base, or "": only a floating joint without names leads to it from the ground."""
    at_ground = [j for j in graph.joints if GROUND in (end.body for end in graph.ends(j))]
    if graph.dimension == 2 or len(at_ground) != 1 or at_ground[0].kind != "floating" or at_ground[0].coordinates:
        return ""
    joint = at_ground[0]
    if set(joint.coordinate_names) & graph.needed or joint in spanning.cut:
        return ""
    return next(end.body for end in graph.ends(joint) if end.body != GROUND)


@dataclass(frozen=True)
class Coordinate:
    """One joint coordinate: an angle or a way, with or without a motor."""

    name: str
    kind: Motion1D
    actuated: bool


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates of a machine in order, the rows of its equations, and which coordinates its loops tie together.

    `links`: the bodies in the order of the description, each behind the body that carries it. `root`: the body of a free base, or "".
    """

    graph: MachineGraph
    spanning: Spanning
    root: str

    @cached_property
    def links(self) -> tuple[str, ...]:
        number = {name: k for k, name in enumerate(self.graph.by_name)}
        carried: dict[str, list[int]] = {}
        for name, carrier in self.spanning.carriers.items():
            carried.setdefault(carrying(self.graph, carrier), []).append(number[name])
        names = list(self.graph.by_name)
        ready = carried.get(GROUND, [])
        heapq.heapify(ready)
        found: list[str] = []
        while ready:
            name = names[heapq.heappop(ready)]
            found.append(name)
            for k in carried.get(name, ()):
                heapq.heappush(ready, k)
        return tuple(found)

    @cached_property
    def all(self) -> tuple[Coordinate, ...]:
        """The coordinates; one that several joints share is that of the first."""
        found: dict[str, Coordinate] = {}
        for name in self.links:
            for c in self._of(name):
                found.setdefault(c.name, c)
        return tuple(found.values())

    def _of(self, link: str) -> tuple[Coordinate, ...]:
        """The coordinates of the joint that carries a body, from the body before it on."""
        if link == self.root:
            return ()
        carrier = self.spanning.carriers[link]
        own = joint_coordinates(carrier.joint, self.graph.dimension)
        return own[::-1] if carrier.reversed else own

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.all)

    @cached_property
    def kinds(self) -> Mapping[str, Motion1D]:
        """Coordinate → "turning" or "sliding"; those that a user added to points, which no joint may have, included."""
        written = self.graph.description
        found: dict[str, Motion1D] = {}
        if written is not None:
            for e in (*written.points, *written.vectors):
                for axis in "xyz":
                    found[f"{e.name}.{axis}"] = "sliding"
            for a in written.added:
                found[a.name] = "turning" if isinstance(a, Angle) else "sliding"
        for c in self.all:
            found[c.name] = c.kind
        return found

    @property
    def base(self) -> Literal["fixed", "free"]:
        return "free" if self.root else "fixed"

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """All rows, in order: fx fy fz mx my mz of a free base, then one for each coordinate."""
        return (WRENCH_ROWS if self.root else ()) + self.names

    @cached_property
    def looped(self) -> frozenset[str]:
        """The coordinates that loops tie together: those between the two ends of a cut joint, without what carries both ends alike."""
        found: set[str] = set()
        for joint in self.spanning.cut:
            if joint.kind != "floating":
                one, other = (set(self._path(end.body)) for end in self.graph.ends(joint))
                found |= {c.name for link in one ^ other for c in self._of(link)}
        return frozenset(found)

    def moving(self, body: str) -> frozenset[str]:
        """The coordinates that move a body against the ground."""
        return frozenset(c.name for link in self._path(body) for c in self._of(link))

    def _path(self, body: str) -> list[str]:
        """The bodies from one down to the ground, itself first."""
        found = []
        while body != GROUND:
            found.append(body)
            body = carrying(self.graph, self.spanning.carriers[body])
        return found

    @cached_property
    def independent(self) -> tuple[str, ...]:
        """The coordinates that have an equation of their own: all of an open machine; the actuated ones and those outside every loop."""
        return tuple(c.name for c in self.all if c.actuated or c.name not in self.looped)

    def feeding(self, coordinate: str) -> tuple[str, ...]:
        """The coordinates whose equations of the machine cut open enter the equation of an independent one, itself first."""
        if coordinate not in self.looped:
            return (coordinate,)
        return (coordinate, *(c for c in self.names if c in self.looped and c not in self.independent))

    @cached_property
    def turns(self) -> Mapping[str, float]:
        """For each coordinate the largest ratio by which it turns a joint: an angle is at most this times the coordinate."""
        most = dict.fromkeys(self.names, 0.0)
        for link in self.links:
            for c in self._of(link):
                if c.kind == "turning":
                    most[c.name] = max(most[c.name], abs(self.spanning.carriers[link].joint.ratio))
        return most

    @cached_property
    def shared(self) -> bool:
        """Whether one coordinate moves several joints."""
        return sum(len(self._of(link)) for link in self.links) > len(self.names)

    def select_rows(self, rows: Rows) -> tuple[int, ...]:
        """The numbers of the chosen rows: "all", "joints", "base", "actuated", one name, or names in the order wished.

        A passive joint within a loop has no row of its own: its equation holds the unknown force of the cut joint.
        """
        return select_rows(self.graph.name, rows, self.names, self.independent, self._actuated, self.base)

    @property
    def _actuated(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.all if c.actuated)


def coordinates_of(graph: MachineGraph) -> Coordinates:
    """The coordinates of a machine; a loop of joints none of which may be cut is refused by name."""
    spanning = spanning_of(graph)
    return Coordinates(graph, spanning, free_root(graph, spanning))


def joint_coordinates(joint: Joint, dimension: int) -> tuple[Coordinate, ...]:
    """The coordinates of a joint in order; in the plane a floating joint has x, y and yaw."""
    steps, names, motors = joint.course.steps, joint.coordinate_names, joint.motors
    if joint.kind == "floating" and dimension == 2:
        steps = COURSES[PLANAR_BASE].steps
        names, motors = (*names[:2], names[3]), (*motors[:2], motors[3])
    return tuple(Coordinate(n, step.motion, on) for step, n, on in zip(steps, names, motors, strict=True))


def carrying(graph: MachineGraph, carrier: Carrier) -> str:
    """The body from which a joint carries another."""
    a, b = graph.ends(carrier.joint)
    return b.body if carrier.reversed else a.body


def select_rows(
    machine: str, rows: Rows, coordinates: Sequence[str], independent: Sequence[str], actuated: Sequence[str], base: str
) -> tuple[int, ...]:
    """The numbers of rows by word or name among fx fy fz mx my mz of a free `base` and the coordinates."""
    every = (*(WRENCH_ROWS if base == "free" else ()), *coordinates)
    if isinstance(rows, str):
        words = {
            "all": (*every[: len(every) - len(coordinates)], *independent),
            "joints": tuple(independent),
            "actuated": tuple(actuated),
        }
        if rows == "base":
            if base != "free":
                raise ModelError("base rows exist only for a free base.", where=machine, found=f"base: {base}")
            return tuple(range(6))
        if rows in words:
            number = {name: k for k, name in enumerate(every)}
            return tuple(number[name] for name in words[rows])
        rows = [rows]
    unknown = [r for r in rows if r not in every]
    if unknown:
        raise ModelError(
            f"there is no row '{unknown[0]}'.",
            where=machine,
            hint="'all', 'joints', 'base', 'actuated' or names. " + did_you_mean(str(unknown[0]), every),
        )
    dependent = [r for r in rows if r in coordinates and r not in independent]
    if dependent:
        raise ModelError(
            f"'{dependent[0]}' is a passive joint of a closed loop and has no equation of its own.",
            where=machine,
            hint="Its share is in the rows of the actuated joints: rows='actuated'.",
        )
    if len(set(rows)) < len(rows):
        raise ModelError("a row is given twice.", where=machine, found=", ".join(rows))
    return tuple(every.index(r) for r in rows)
