"""Joints of a URDF that are more, or less, than one coordinate of their own: planar, floating and mimic joints; and names that are taken.

A planar joint is two sliding joints and a turning one, a floating joint three sliding and three turning ones, all passive, with links
without inertia between them. A mimic joint that cannot share its leader's coordinate is read as what its relation makes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from veridyn.errors import Faults, did_you_mean, part_at
from veridyn.files.machine.urdf_reader import KINDS, UrdfJoint, UrdfLink
from veridyn.mechanics.tree.check import cycles
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.place import GROUND
from veridyn.spatial.rotations import rot_z, rotation_to_axis

Part = TypeVar("Part", UrdfLink, UrdfJoint)

X, Y, Z = np.eye(3)
ROW_NAMES = (*WRENCH_ROWS, "all", "joints", "base", "actuated")  # what names rows cannot name a coordinate
PARTS: Mapping[str, tuple[tuple[str, str, int], ...]] = {  # suffix, kind, which axis of the joint's own frame
    "planar": (("x", "prismatic", 0), ("y", "prismatic", 1), ("yaw", "revolute", 2)),
    "floating": (
        ("x", "prismatic", 0),
        ("y", "prismatic", 1),
        ("z", "prismatic", 2),
        ("yaw", "revolute", 2),
        ("pitch", "revolute", 1),
        ("roll", "revolute", 0),
    ),
}


def split_joint(joint: UrdfJoint, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> None:
    """Add to `links` and `joints` what replaces a planar or floating joint: passive joints of one coordinate, in a chain.

    The child sits at p + R (x e₁ + y e₂ + z e₃), turned by R Rz(yaw) Ry(pitch) Rx(roll); e₃ of a planar joint is its axis.
    """
    straight = joint.kind == "floating" or np.array_equal(joint.axis, Z)
    axes = np.eye(3) if straight else rotation_to_axis(joint.axis)
    parent, R, p = joint.parent, joint.rotation, joint.position
    parts = PARTS[joint.kind]
    for suffix, kind, k in parts:
        name = free_name(f"{joint.name}_{suffix}", joints)
        last = suffix == parts[-1][0]
        child = joint.child if last else free_name(f"{joint.name}_{suffix}", links)
        # A frame between two joints has its z along the joint that carries it; the child's own is that of the file.
        turn = np.eye(3) if last or (k == 2 and straight) else rotation_to_axis(axes[:, k])
        axis = axes[:, k] if last else Z
        joints[name] = UrdfJoint(name, kind, parent, child, R @ turn, p, axis, joint.node, actuated=False)
        if not last:
            links[child] = UrdfLink(child, joint.node, None, np.eye(3))
        parent, R, p = child, turn.T, np.zeros(3)


def settle_mimics(joints: dict[str, UrdfJoint], notes: Faults, tolerated: Faults) -> None:
    """Mimic joints whose position is constant become fixed; those that cannot share a coordinate get one of their own.

    The latter lose what the file says of them, so they go to `tolerated`.
    """
    if cycles({j.name: j.leader for j in joints.values() if j.leader and j.moves}):
        return  # a fault of the file, reported when the tree is built
    settled: dict[str, UrdfJoint] = {}
    own = "Its mimic is not read, and it has a coordinate of its own."
    for joint in joints.values():
        leader = joints.get(joint.leader)
        if not (joint.moves and joint.leader) or (leader is not None and leader.kind not in KINDS):
            continue
        where, line = part_at("joint", joint.name), joint.node.line
        if (constant := _constant(joint, joints)) is not None:
            settled[joint.name] = _fixed_at(joint, constant)
            reason = "the multiplier of its mimic is zero" if joint.ratio == 0.0 else "it mimics a joint that is fixed"
            notes.add(f"{reason}: it is read as fixed.", where=where, found=f"'{joint.leader}'", line=line)
        elif leader is None:
            moving = [other.name for other in joints.values() if other.moves and other is not joint]
            hint = f"{own} {did_you_mean(joint.leader, moving)}"
            what, found = "it mimics a joint that is not in this file.", f"'{joint.leader}'"
            tolerated.add(what, where=where, found=found, hint=hint, line=line)
        elif KINDS[leader.kind] != KINDS[joint.kind]:
            expected, found = "both turning or both sliding", f"{joint.kind} after {leader.kind} ('{leader.name}')"
            what = "it mimics a joint of another kind: they cannot share a coordinate."
            tolerated.add(what, where=where, expected=expected, found=found, hint=own, line=line)
        else:
            continue
        settled.setdefault(joint.name, replace(joint, leader="", ratio=1.0, offset=0.0))
    joints.update(settled)


def _constant(joint: UrdfJoint, joints: Mapping[str, UrdfJoint]) -> float | None:
    """The position of a joint that follows, by however many mimics, one that never moves; None where it moves."""
    if joint.kind == "fixed":
        return 0.0
    if joint.ratio == 0.0 and joint.leader:
        return joint.offset
    leader = joints.get(joint.leader)
    led = _constant(leader, joints) if leader is not None and joint.moves else None
    return None if led is None else joint.ratio * led + joint.offset


def _fixed_at(joint: UrdfJoint, position: float) -> UrdfJoint:
    R, p = joint.rotation, joint.position
    if KINDS[joint.kind] == "sliding":
        p = p + position * R @ joint.axis
    else:
        turn = rotation_to_axis(joint.axis)
        R = R @ turn @ rot_z(position) @ turn.T
    return replace(joint, kind="fixed", rotation=R, position=p, leader="", damping=0.0, friction=0.0)


def rename_reserved(links: dict[str, UrdfLink], joints: dict[str, UrdfJoint], notes: Faults) -> None:
    """Other names for a link called "ground" that is not the ground, and for joints called as rows are."""
    ground = links.get(GROUND)
    carried = any(joint.child == GROUND for joint in joints.values())
    if ground is not None and (carried or ground.ten is not None):
        name = rename_ground(links, joints)
        what = f"'{GROUND}' is what the machine stands on, so this link is called '{name}'."
        notes.add(what, where=part_at("link", GROUND), line=ground.node.line)
    for old in [name for name in joints if name in ROW_NAMES and joints[name].kind in KINDS]:
        name = free_name(f"{old}_joint", joints)
        line = joints[old].node.line
        _rename(joints, old, replace(joints[old], name=name))
        for joint in [j for j in joints.values() if j.leader == old]:
            joints[joint.name] = replace(joint, leader=name)
        if joints[name].kind != "fixed":
            notes.add(f"'{old}' names rows, so this joint is called '{name}'.", where=part_at("joint", old), line=line)


def rename_ground(links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> str:
    """Call the link "ground" otherwise; its new name."""
    name = free_name(f"{GROUND}_link", links)
    _rename(links, GROUND, replace(links[GROUND], name=name))
    for joint in list(joints.values()):
        parent, child = (name if end == GROUND else end for end in (joint.parent, joint.child))
        joints[joint.name] = replace(joint, parent=parent, child=child)
    return name


def _rename(parts: dict[str, Part], old: str, new: Part) -> None:
    """Put `new` in the place of `old`, in the order of the file."""
    renamed = {(new.name if key == old else key): (new if key == old else part) for key, part in parts.items()}
    parts.clear()
    parts.update(renamed)


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that nothing has yet."""
    while name in taken:
        name += "_"
    return name
