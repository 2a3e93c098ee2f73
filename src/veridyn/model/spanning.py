"""Which joints carry the bodies of a machine, and at which its loops are cut open."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from veridyn.errors import Faults, ModelError, part_at
from veridyn.model.graph import MachineGraph
from veridyn.model.link import Joint
from veridyn.model.names import GROUND

# What is rather kept in the tree, first; those behind are rather cut.
KEPT_FIRST = ("floating", "fixed", "sliding", "turning", "planar", "cylindrical", "universal", "spherical")
PLANAR_BASE = "planar"  # what a floating joint is in the plane


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
