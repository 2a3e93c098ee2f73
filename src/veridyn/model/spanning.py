"""A machine as a tree with cut joints, which the recursion of Newton and Euler takes.

Each loop of the graph is cut open at one joint. A joint of several coordinates becomes a chain of turning and sliding ones with
bodies without mass between them. Every body keeps its own frame, so that inertial parameters, wrenches, loads and sensors mean the same in
the graph and in the tree: where the joint that carries a body does not sit in the origin of its frame, a body without mass moves in the
joint and the body itself is fixed to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, ModelError, part_at
from veridyn.model.graph import MachineGraph, unique
from veridyn.model.joint import GROUND, Body
from veridyn.model.link import COURSES, Joint, Link, chained, inverted, is_identity
from veridyn.model.loop import Attachment, Loop
from veridyn.model.tree import Tree
from veridyn.model.tree_parts import tree_element, tree_load, tree_sensor
from veridyn.spatial.inertia import broken_law
from veridyn.spatial.transforms import MDH, Placement

Array = NDArray[np.float64]
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


def tree_of(graph: MachineGraph) -> Tree:
    """The tree with cut joints of a machine.

    Racks, and coordinates that no joint has, are refused by name: they belong to natural coordinates.
    """
    faults = Faults()
    if graph.description is not None:
        _refuse_described(graph, faults)
    faults.raise_if_any(ModelError, graph.name)
    spanning = spanning_of(graph)
    base = free_root(graph, spanning)
    taken = set(graph.by_name)
    bodies: list[Body] = []
    for link in graph.links:
        made = _bodies(graph, link.name, spanning.carriers[link.name], taken, link.name == base)
        taken |= {b.name for b in made}
        bodies += made
    tree = Tree.build(
        bodies,
        name=graph.name,
        base="free" if base else "fixed",
        gravity=graph.gravity,
        inertia={link.name: link.ten for link in graph.links if _has_inertia(graph, link)},
        elements=[tree_element(graph, acting) for acting in graph.elements],
        transmission=graph.transmission,
        loops=[_loop(graph, joint) for joint in spanning.cut if joint.kind != "floating"],
        assembly=graph.assembly,
        sensors=[tree_sensor(graph, sensor) for sensor in graph.sensors],
        loads=[tree_load(graph, load) for load in graph.loads],
        prescribed=graph.prescribed,
    )
    tree = tree if graph.stated is None else tree.with_parameters(graph.stated)
    return tree if graph.uncertainty is None else replace(tree, uncertainty=graph.uncertainty)


def _has_inertia(graph: MachineGraph, link: Link) -> bool:
    """Whether a tree is built with the inertia of a link: stated parameters, as a fit gives them, may be those of no physical body."""
    if not link.real or link.inertia is None:
        return False
    ten = link.ten
    return graph.stated is None or not (np.isinf(ten).any() or (np.isfinite(ten).all() and broken_law(ten)))


def free_root(graph: MachineGraph, spanning: Spanning) -> str:
    """The body of a free base, or "": only a floating joint without names leads to it from the ground."""
    at_ground = [j for j in graph.joints if GROUND in (end.body for end in graph.ends(j))]
    if graph.dimension == 2 or len(at_ground) != 1 or at_ground[0].kind != "floating" or at_ground[0].coordinates:
        return ""
    joint = at_ground[0]
    if set(joint.coordinate_names) & graph.needed or joint in spanning.cut:
        return ""
    return next(end.body for end in graph.ends(joint) if end.body != GROUND)


def _bodies(graph: MachineGraph, name: str, carrier: Carrier, taken: set[str], free: bool) -> list[Body]:
    """The chain of bodies that ends in one body of the machine."""
    link, joint = graph.by_name[name], carrier.joint
    near, far = graph.ends(joint)
    before = GROUND
    if free:
        place = near.placement if is_identity(far.placement) else MDH()
        return [Body(name, None, "fixed", place, real=link.real, label=link.label)]
    steps = list(_steps(graph, joint))
    if carrier.reversed:
        near, far = far, near
        steps = _turned_round(steps)
    before = near.body
    at: MDH | Placement = near.placement
    out: list[Body] = []
    motors = dict(zip(joint.coordinate_names, joint.motors, strict=True))
    for k, (turned, kind, coordinate, ratio) in enumerate(steps[:-1]):
        last = k == len(steps) - 2 and is_identity(steps[-1][0]) and is_identity(far.placement)
        word = name if last else unique(joint.name if len(steps) == 2 else coordinate, taken, "joint")
        place = chained(at, turned)
        real, label = (link.real, link.label) if last else (False, "")
        out.append(
            Body(
                word,
                before,
                kind,
                place,
                actuated=motors[coordinate],
                real=real,
                coordinate="" if Body(word, joint=kind).coordinate_name == coordinate else coordinate,
                ratio=ratio,
                label=label,
            )
        )
        taken.add(word)
        before, at = word, Placement()
        if last:
            return out
    place = chained(chained(at, steps[-1][0]), inverted(far.placement))
    fixed = Body(
        name,
        before,
        "fixed",
        place,
        actuated=bool(joint.actuated) or joint.kind != "fixed",
        real=link.real,
        label=link.label,
    )
    return [*out, fixed]


Stage = tuple[Placement, Literal["turning", "sliding", "fixed"], str, float]


def _steps(graph: MachineGraph, joint: Joint) -> list[Stage]:
    """Rotation before, motion, coordinate and ratio of each step, and the rotation behind the last one."""
    course, names = joint.course, joint.coordinate_names
    if joint.kind == "floating" and graph.dimension == 2:
        course, names = COURSES[PLANAR_BASE], (*names[:2], names[3])
    stages: list[Stage] = [
        (Placement(step.turned), step.motion, name, joint.ratio) for step, name in zip(course.steps, names, strict=True)
    ]
    return [*stages, (Placement(course.last), "fixed", "", 1.0)]


def _turned_round(steps: list[Stage]) -> list[Stage]:
    """The steps of the inverse motion: from the other end, each backwards."""
    rotations = [inverted(at) for at, *_ in steps][::-1]
    moves = steps[-2::-1]
    turned: list[Stage] = [
        (at, kind, coordinate, -ratio) for at, (_, kind, coordinate, ratio) in zip(rotations, moves, strict=False)
    ]
    return [*turned, (rotations[-1], "fixed", "", 1.0)]


def _loop(graph: MachineGraph, joint: Joint) -> Loop:
    first, second = (
        Attachment(e.body, Placement(e.placement.rotation, e.placement.position)) for e in graph.ends(joint)
    )
    return Loop(joint.name, joint.kind, first, second, joint.length)


def _refuse_described(graph: MachineGraph, faults: Faults) -> None:
    """What the points of natural coordinates say and a tree cannot."""
    description = graph.description
    assert description is not None
    faults.extend(description.without_tree)
    for rack in description.racks:
        faults.add("a tree has no racks.", where=part_at("rack", rack.name), hint="Use formulation: natural.")
    joined = {c for joint in graph.joints for c in joint.coordinate_names}
    places = [f"{e.name}.{axis}" for e in (*description.points, *description.vectors) for axis in "xyz"]
    for name in (*(a.name for a in description.added), *places):
        if name in graph.needed and name not in joined:
            faults.found.append(
                Fault(
                    "it is no coordinate of a joint, and an element, load or sensor uses it.",
                    where=part_at("coordinate", name),
                    expected="an angle between two bodies at their turning joint, or a distance along a sliding one",
                    hint="Use formulation: natural.",
                )
            )
