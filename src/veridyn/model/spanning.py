"""Which joints carry the bodies of a machine, and at which its loops are cut open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
            name = part[name]
        return name

    kept: list[Joint] = []
    for _, joint in sorted(candidates, key=rank):
        a, b = (root(end.body) for end in graph.ends(joint))
        if a != b:
            part[a] = b
            kept.append(joint)
    faults = Faults()
    cut = tuple(j for j in graph.joints if j not in kept)
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


def _depths(graph: MachineGraph) -> dict[str, int]:
    """How many joints are between each body and the ground, at the least."""
    depth = {GROUND: 0}
    while True:
        found = {}
        for joint in graph.joints:
            a, b = (end.body for end in graph.ends(joint))
            for near, far in ((a, b), (b, a)):
                if near in depth and far not in depth:
                    found[far] = min(depth[near] + 1, found.get(far, len(graph.links) + 1))
        if not found:
            return depth | {name: len(graph.links) for name in graph.by_name if name not in depth}
        depth |= found


def _carriers(graph: MachineGraph, kept: Sequence[Joint]) -> dict[str, Carrier]:
    found: dict[str, Carrier] = {}
    reached, waiting = {GROUND}, list(kept)
    while waiting:
        for joint in waiting:
            a, b = (end.body for end in graph.ends(joint))
            if a in reached or b in reached:
                body = b if a in reached else a
                found[body] = Carrier(joint, body == a)
                reached.add(body)
                waiting.remove(joint)
                break
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
