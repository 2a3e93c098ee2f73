"""``flexible`` of a joint in a model file: one line for a spring, a damper and the motor side, which are ordinary bodies and elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ruamel.yaml.nodes import Node, ScalarNode

from veridyn.errors import At
from veridyn.files.machine.keys import FLEXIBLE
from veridyn.files.yaml_reader import Reader
from veridyn.model.elements.element import Element
from veridyn.model.flexible import (
    FLEXIBLE_KINDS,
    Flexible,
    flexible_elements,
    flexible_joints,
    motor_body,
    motor_joint,
    motor_side,
)
from veridyn.model.graph import Body
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine

UNKNOWN = ("stiffness", "damping", "inertia")  # may be so; others are constants inside laws


def read_flexible(read: Reader, at: Mapping[str, Node], where: str, kind: str) -> Flexible | None:
    """The key ``flexible`` of a joint of this kind, from the keys of its entry; None where it is rigid."""
    if "flexible" not in at:
        return None
    node, here = at["flexible"], f"{where}, flexible"
    if kind not in FLEXIBLE_KINDS:
        expected = " or ".join(FLEXIBLE_KINDS)
        read.fault(node, "a joint of this kind cannot be flexible.", where, f"a {expected} joint", kind)
        return None
    for key in ("actuated", "mu"):
        told = at.get(key)
        if isinstance(told, ScalarNode) and str(told.value).lower() in ("false", "0"):
            hint = f"Drop '{key}': the motor acts on the motor side, the link side is passive."
            read.fault(told, "a flexible joint has a motor.", where, hint=hint)
    own = read.mapping(node, here, FLEXIBLE, required=("stiffness",))
    given = {key: read.number(value, here, key, unknown=key in UNKNOWN) for key, value in own.items()}
    for key, least in Flexible(**given).out_of_range.items():
        found = f"{given.pop(key):g}" if key in given else "none"
        read.fault(own.get(key, node), f"its {key} cannot be this.", here, f"a number {least}", found)
    return Flexible(**given)


@dataclass(frozen=True)
class Expanded:
    """Bodies and joints with the motor sides of flexible joints behind them, the elements of these, and the lines they come from."""

    links: list[Link]
    carried: list[Body | None]
    joints: list[Joint]
    elements: list[Element]
    lines: dict[At, int]


def expand(
    bodies: Iterable[tuple[Link, Body | None, Flexible | None]],
    joints: Iterable[tuple[Joint, Flexible | None]],
    lines: Mapping[At, int],
) -> Expanded:
    """The description without the key ``flexible``: link sides become passive, motor sides follow all others."""
    out = Expanded([], [], [], [], {})
    sides: list[tuple[Link, Body | None]] = []
    for link, carried, flexible in bodies:
        own = carried
        if carried is not None and flexible is not None:
            own = replace(carried, actuated=False)
            side = motor_body(carried)
            sides.append((Link(name=side.name, real=False), side))
            out.elements.extend(flexible_elements(carried.coordinate_name, flexible))
            out.lines["body", side.name] = lines.get(("body", link.name), 0)
        out.links.append(link)
        out.carried.append(own)
    behind: list[Joint] = []
    for joint, flexible in joints:
        out.joints.append(joint if flexible is None else replace(joint, actuated=False))
        if flexible is not None:
            link, side = motor_joint(joint)
            sides.append((link, None))
            behind.append(side)
            out.elements.extend(flexible_elements(joint.coordinate_names[0], flexible))
            line = lines.get(("joint", joint.name), 0)
            out.lines.update({("body", link.name): line, ("joint", side.name): line})
    out.links.extend(link for link, _ in sides)
    out.carried.extend(body for _, body in sides)
    out.joints.extend(behind)
    return out


def collapsed(machine: Machine) -> tuple[Machine, dict[str, Flexible]]:
    """The machine without the motor sides and elements of its flexible joints, and these by coordinate: what a file says of it.

    Estimates may have values that no spring or damper has; such joints stay written out.
    """
    flexible = {c: own for c, own in flexible_joints(machine).items() if not own.out_of_range}
    motors = {motor_side(c) for c in flexible}
    gone = {e.parameter_name for c, own in flexible.items() for e in flexible_elements(c, own)}
    joints = [
        replace(j, actuated=True) if set(j.coordinate_names) & set(flexible) else j
        for j in machine.joints
        if j.name not in motors
    ]
    links = tuple(link for link in machine.links if link.name not in motors)
    elements = tuple(e for e in machine.elements if e.parameter_name not in gone)
    return replace(machine, links=links, joints=tuple(joints), elements=elements), flexible
