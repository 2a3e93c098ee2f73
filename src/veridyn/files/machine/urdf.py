"""URDF read: links and joints become a :class:`~veridyn.model.machine.Machine`; every fault is reported at once, by name and line.

A joint of veridyn acts along the z axis of the frame it carries. A link whose joint axis is z of its own frame is one body;
any other joint is carried by a virtual body with z along the axis, and the link is fixed to it. So the inertial parameters
always stand in the link's frame of the file, under the link's name. A planar joint is two sliding joints and a turning one, a floating
joint three sliding and three turning ones, all passive, with links without inertia between them; a mimic joint that cannot share its
leader's coordinate is read as what its relation makes of it. The writing half is :mod:`veridyn.files.machine.urdf_write`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.errors import At, DataWarning, Fault, Faults, FileError, ModelError, did_you_mean, part_at, warn, with_line
from veridyn.files.machine.urdf_reader import (
    KINDS,
    Impossible,
    UrdfJoint,
    UrdfLimits,
    UrdfLink,
    UrdfReader,
    broken_inertias,
    check_word,
    warnings_of,
)
from veridyn.files.machine.urdf_xml import bytes_of, parse_xml, refuse_xacro
from veridyn.mechanics.tree.check import check_tree, cycles
from veridyn.model.elements.element import WRENCH_ROWS, Element
from veridyn.model.graph import GRAVITY, Body
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND
from veridyn.spatial.inertia import INERTIAL
from veridyn.spatial.rotations import Placement, rot_z, rotation_to_axis

Base = Literal["fixed", "free"]
FIRST_MOMENTS = ("MX", "MY", "MZ", "M")
UPRIGHT = (0.0, 0.0, 1.0)
Part = TypeVar("Part", UrdfLink, UrdfJoint)
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


@checked
def load_urdf(
    path: str | Path,
    base: Base | Literal["auto"] = "auto",
    *,
    gravity: ArrayLike = GRAVITY,
    impossible: Impossible = "unknown",
) -> Machine:
    """The machine that a URDF file describes.

    Parameters
    ----------
    path : str or path
        The file.
    base : {"auto", "fixed", "free"}
        "fixed": the root link stands on the ground. "free": the root link moves freely; where the root has no inertia and carries one
        floating joint alone, the root is the ground, and that joint's child moves freely. "auto" is free in the latter case, else fixed.
    gravity : (3,) array_like
        In the root link's axes, m/s^2; (0, 0, −9.81) by default.
    impossible : {"unknown", "keep", "refuse"}
        What to do about an inertia that no physical body has. "unknown": its moments of inertia have no value and are to be identified,
        and so are mass and first moments where the mass is not positive; "keep": the file's values are used as they are. Both
        report the count in a :class:`~veridyn.errors.DataWarning`. "refuse": a :class:`ModelError` names each with the law it breaks.

    Returns
    -------
    Machine
        Coordinates are named after the joints, in the order of the file; joints that mimic share the coordinate of the joint they
        follow. A planar joint has the coordinates NAME_x, NAME_y and NAME_yaw, a floating one inside the machine NAME_x, _y, _z, _yaw,
        _pitch and _roll, all passive. Links without ``<inertial>`` are virtual bodies. Damping and friction other than zero become
        elements that are estimated, with the file's value as prior.

    Raises
    ------
    FileError, ModelError
        With every fault of the file, by name and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from veridyn.files import load_urdf
    >>> link = "<link name='arm'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial></link>"
    >>> joint = "<joint name='slide' type='planar'><parent link='table'/><child link='arm'/><axis xyz='0 0 1'/></joint>"
    >>> _ = Path("cart.urdf").write_text(f"<robot name='cart'><link name='table'/>{link}{joint}</robot>")
    >>> load_urdf("cart.urdf").coordinates
    ('slide_x', 'slide_y', 'slide_yaw')
    """
    check_word("base", base, ("auto", "fixed", "free"))
    check_word("impossible", impossible, ("unknown", "keep", "refuse"))
    file = Path(path)
    content = read_urdf(bytes_of(file), file.name)
    machine = content.machine(base, gravity, impossible)
    for fault in warnings_of([*content.notes.found, *content.tolerated.found], content.links, impossible, file.name):
        warn(DataWarning, fault)
    return machine


@checked
def urdf_limits(path: str | Path) -> dict[str, UrdfLimits]:
    """What a URDF file says of the range, speed and force of each joint that moves, by name: a machine has no place for it.

    The entries are the file's own, also where a joint mimics another; a joint without ``<limit>``, or the range of a
    continuous one, is infinite.
    """
    file = Path(path)
    content = read_urdf(bytes_of(file), file.name)
    read = UrdfReader(content.faults)
    limits = {joint.name: read.limits(joint) for joint in content.joints.values() if joint.moves}
    if read.faults:
        raise ModelError(_by_line(read.faults), file.name)
    for fault in warnings_of(read.notes.found, {}, "keep", file.name):
        warn(DataWarning, fault)
    return limits


def read_urdf(data: bytes, source: str = "model.urdf") -> UrdfFile:
    """What the bytes of a URDF file say. Raises only where this is no URDF at all; other faults are kept in the result."""
    root = parse_xml(data, source)
    if root.tag != "robot":
        hint = {"sdf": "This is an SDF file.", "mujoco": "This is a MuJoCo file."}.get(root.tag, "")
        fault = Fault("this is not a URDF file.", expected="<robot>", found=f"<{root.tag}>", hint=hint, line=root.line)
        raise FileError(fault, source)
    refuse_xacro(root, source)
    read = UrdfReader()
    content = UrdfFile(root.attributes.get("name") or Path(source).stem, source, read.faults, read.notes)
    read.check_tags(root, ("link", "joint"), "robot")
    for node in root.children:
        if node.tag == "link" and (name := read.new_name(node, content.links)):
            content.links[name] = read.link(node, name)
        elif node.tag == "joint" and (name := read.new_name(node, content.joints)):
            content.joints[name] = read.joint(node, name)
    rename_reserved(content.links, content.joints, content.notes)
    settle_mimics(content.joints, content.notes, content.tolerated)
    return content


@dataclass
class UrdfFile:
    """What a file says, with all that is wrong (`faults`), what only a strict reader refuses (`tolerated`) and what is odd (`notes`)."""

    name: str
    source: str
    faults: Faults
    notes: Faults
    links: dict[str, UrdfLink] = field(default_factory=dict)
    joints: dict[str, UrdfJoint] = field(default_factory=dict)
    tolerated: Faults = field(default_factory=Faults)

    def machine(
        self, base: Base | Literal["auto"] = "auto", gravity: ArrayLike = GRAVITY, impossible: Impossible = "refuse"
    ) -> Machine:
        """The machine; a :class:`ModelError` with every fault where it cannot be built."""
        broken = broken_inertias(self.links)
        faults = Faults(
            [*self.faults.found, *([*self.tolerated.found, *broken.values()] if impossible == "refuse" else ())]
        )
        before = len(faults.found)
        root = self._root(faults)
        self._check_followers(faults)
        if root is None or len(faults.found) > before:
            raise ModelError(_by_line(faults), self.source)
        free = self._free_joint(root)
        kind: Base = ("free" if free is not None else "fixed") if base == "auto" else base
        free = free if kind == "free" else None
        plain = self._split(free)
        if kind == "free" and free is None and root == GROUND:  # it moves, so it is not the ground
            root = rename_ground(plain.links, plain.joints)
        bodies, lines = plain._bodies(root, kind, free)
        elements = plain._elements(lines)
        given = {b.name: ten for b in bodies if b.real and (ten := plain.links[b.name].ten) is not None}
        possible = {name: ten for name, ten in given.items() if name not in broken}
        g = np.array(gravity, dtype=np.float64)
        faults.extend(with_line(f, lines) for f in check_tree(bodies, elements, possible, kind, g))
        if faults:
            raise ModelError(_by_line(faults), self.source)
        machine = Machine.of_bodies(bodies, name=self.name, base=kind, gravity=g, inertia=possible, elements=elements)
        kept = {
            b.parameter(symbol): float(x)
            for b in bodies
            if b.name in given and b.name in broken
            for symbol, x in zip(INERTIAL, given[b.name], strict=True)
            if impossible == "keep" or (symbol in FIRST_MOMENTS and given[b.name][9] > 0.0)
        }
        return machine.with_parameters(kept) if kept else machine

    def _root(self, faults: Faults) -> str | None:
        """The one link that no joint carries; None where the joints make no tree."""
        if not self.links:
            faults.add("there is no link.", where="robot", expected="<link name=…>")
            return None
        before, names = len(faults.found), list(self.links)
        carried: dict[str, UrdfJoint] = {}
        for joint in self.joints.values():
            for role, link in (("parent", joint.parent), ("child", joint.child)):
                if link and link not in self.links:
                    what = f"its {role} '{link}' is not a link of this file."
                    faults.add(
                        what, where=part_at("joint", joint.name), hint=did_you_mean(link, names), line=joint.node.line
                    )
            other = carried.setdefault(joint.child, joint)
            if other is not joint and joint.child in self.links:
                what = f"its child '{joint.child}' is carried by joint '{other.name}' (line {other.node.line}) already."
                hint = "A URDF is a tree: cut the loop at one joint."
                faults.add(what, where=part_at("joint", joint.name), hint=hint, line=joint.node.line)
        for cycle in cycles({child: joint.parent for child, joint in carried.items() if child}):
            first = carried[cycle[0]]
            what = "its child is its own ancestor, so this is not a tree."
            found = " → ".join([*cycle, cycle[0]])
            faults.add(what, where=part_at("joint", first.name), found=found, line=first.node.line)
        broken = len(faults.found) > before or any(not (j.parent and j.child) for j in self.joints.values())
        roots = [name for name in names if name not in carried]
        if len(roots) > 1 and not broken:
            faults.add(
                f"{len(roots)} links are carried by no joint: {', '.join(roots[:6])}{', …' if len(roots) > 6 else ''}.",
                where=part_at("link", roots[1]),
                expected="one root",
                hint="Add the joint that carries it, or drop the link.",
                line=self.links[roots[1]].node.line,
            )
        return roots[0] if len(roots) == 1 and not broken else None

    def _check_followers(self, faults: Faults) -> None:
        leaders = {j.name: j.leader for j in self.joints.values() if j.leader and j.moves}
        for cycle in cycles(leaders):
            found, line = " → ".join([*cycle, cycle[0]]), self.joints[cycle[0]].node.line
            faults.add("joints mimic each other in a circle.", where=part_at("joint", cycle[0]), found=found, line=line)

    def followed(self, joint: UrdfJoint) -> tuple[str, float, float]:
        """Coordinate, ratio and offset of a joint: its position is ratio q + offset, along however many mimics."""
        ratio, offset = 1.0, 0.0
        while joint.leader:
            ratio, offset = ratio * joint.ratio, ratio * joint.offset + offset
            joint = self.joints[joint.leader]
        return joint.name, ratio, offset

    def _free_joint(self, root: str) -> UrdfJoint | None:
        """The floating joint that makes its child the free base: alone on a root without inertia."""
        ten = self.links[root].ten
        on_root = [joint for joint in self.joints.values() if joint.parent == root]
        alone = [joint.kind for joint in on_root] == ["floating"] and (ten is None or not ten.any())
        return on_root[0] if alone else None

    def _split(self, free: UrdfJoint | None) -> UrdfFile:
        """The same file with joints of one coordinate at most; `free` stays as it is."""
        links, joints = dict(self.links), dict(self.joints)
        for joint in self.joints.values():
            if joint.kind in PARTS and joint is not free:
                del joints[joint.name]
                split_joint(joint, links, joints)
        order = {id(joint.node): k for k, joint in enumerate(self.joints.values())}
        ordered = sorted(joints.values(), key=lambda joint: order[id(joint.node)])
        return replace(self, links=links, joints={joint.name: joint for joint in ordered})

    def _bodies(self, root: str, base: Base, free: UrdfJoint | None) -> tuple[list[Body], dict[At, int]]:
        """Bodies in the order of the joints, and the line of each."""
        bodies: list[Body] = []
        lines: dict[At, int] = {}
        taken = set(self.links)
        root = root if free is None else free.child
        # A root without inertia that is called as the ground is called is the ground.
        if not (base == "fixed" and root == GROUND):
            under = None if base == "free" else GROUND
            bodies.append(Body(root, under, "fixed", Placement(), real=self.links[root].ten is not None))
            lines["body", root] = self.links[root].node.line
        for joint in self.joints.values():
            if joint.child == root:
                continue
            real = self.links[joint.child].ten is not None
            lines["body", joint.child] = self.links[joint.child].node.line
            if not joint.moves:
                at = Placement(joint.rotation, joint.position)
                bodies.append(Body(joint.child, joint.parent, "fixed", at, real=real))
                continue
            coordinate, ratio, offset = self.followed(joint)
            kind, straight = KINDS[joint.kind], np.array_equal(joint.axis, UPRIGHT)
            turn = np.eye(3) if straight else rotation_to_axis(joint.axis)
            R, p = joint.rotation @ turn, joint.position
            if kind == "turning":
                R = R @ rot_z(offset)
            else:
                p = p + offset * R[:, 2]
            name = joint.child if straight else free_name(f"{joint.name}_axis", taken)
            taken.add(name)
            lines["body", name] = joint.node.line
            body = Body(name, joint.parent, kind, Placement(R, p), real=real and straight)
            bodies.append(replace(body, actuated=joint.actuated, coordinate=coordinate, ratio=ratio))
            if not straight:
                bodies.append(Body(joint.child, name, "fixed", Placement(turn.T), real=real))
        return bodies, lines

    def _elements(self, lines: dict[At, int]) -> list[Element]:
        elements: list[Element] = []
        for joint in self.joints.values():
            if not joint.moves:
                continue
            coordinate, ratio, _ = self.followed(joint)
            for kind, symbol, value in (("damper", "h", joint.damping), ("coulomb", "fs", joint.friction)):
                if value != 0.0:
                    name = f"{symbol}_{joint.name}" if joint.leader else ""
                    elements.append(Element(kind=kind, on={coordinate: ratio}, value=value, name=name))
                    lines["element", elements[-1].parameter_name] = joint.node.line
        return elements


def _by_line(faults: Faults) -> list[Fault]:
    return sorted(faults.found, key=lambda fault: fault.line or 0)


def split_joint(joint: UrdfJoint, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> None:
    """Add to `links` and `joints` what replaces a planar or floating joint: passive joints of one coordinate, in a chain.

    The child sits at p + R (x e₁ + y e₂ + z e₃), turned by R Rz(yaw) Ry(pitch) Rx(roll); e₃ of a planar joint is its axis.
    """
    straight = joint.kind == "floating" or np.array_equal(joint.axis, UPRIGHT)
    axes = np.eye(3) if straight else rotation_to_axis(joint.axis)
    parent, R, p = joint.parent, joint.rotation, joint.position
    parts = PARTS[joint.kind]
    for suffix, kind, k in parts:
        name = free_name(f"{joint.name}_{suffix}", joints)
        last = suffix == parts[-1][0]
        child = joint.child if last else free_name(f"{joint.name}_{suffix}", links)
        # A frame between two joints has its z along the joint that carries it; the child's own is that of the file.
        turn = np.eye(3) if last or (k == 2 and straight) else rotation_to_axis(axes[:, k])
        axis = axes[:, k] if last else np.array(UPRIGHT)
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
