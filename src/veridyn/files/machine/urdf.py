"""URDF read: links and joints become a :class:`~veridyn.model.tree.Tree`; every fault is reported at once, by name and line.

A joint of veridyn acts along the z axis of the frame it carries. A link whose joint axis is z of its own frame is one body;
any other joint is carried by a virtual body with z along the axis, and the link is fixed to it. So the inertial parameters
always stand in the link's frame of the file, under the link's name. The writing half is :mod:`veridyn.files.machine.urdf_write`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import At, DataWarning, Fault, Faults, FileError, ModelError, did_you_mean, part_at, warn, with_line
from veridyn.files.machine.urdf_reader import (
    KINDS,
    UrdfJoint,
    UrdfLimits,
    UrdfLink,
    UrdfReader,
)
from veridyn.files.machine.urdf_xml import bytes_of, parse_xml, refuse_xacro
from veridyn.model.check import check_tree
from veridyn.model.elements import Element
from veridyn.model.joint import GROUND, Body
from veridyn.model.tree import GRAVITY, Tree
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.spatial.rotations import rot_z
from veridyn.spatial.transforms import Placement, rotation_to_axis

Array = NDArray[np.float64]
Base = Literal["fixed", "free"]


def load_urdf(
    path: str | Path,
    base: Base = "fixed",
    *,
    gravity: ArrayLike = GRAVITY,
    impossible: Literal["refuse", "warn"] = "refuse",
) -> Tree:
    """The machine that a URDF file describes.

    `base`: "fixed" (the root link stands on the ground) or "free" (the root link moves freely; where the root has no
    inertia and carries one floating joint, the root is the ground, and that joint's child moves freely). `gravity` is in
    the root link's axes. `impossible`: an inertia that no distribution of mass has is refused, or kept with a
    :class:`~veridyn.errors.DataWarning`, since drawings have such values.

    Coordinates are named after the joints, in the order of the file; joints that mimic share the coordinate of the joint
    they follow. Links without ``<inertial>`` are virtual bodies. Damping and friction other than zero become elements that
    are estimated, with the file's value as prior. A :class:`FileError` or :class:`ModelError` tells all that is wrong.
    """
    file = Path(path)
    said = read_urdf(bytes_of(file), file.name)
    tree = said.tree(base, gravity, keep_impossible=impossible == "warn")
    if notes := said.notes.found + (said.impossible() if impossible == "warn" else []):
        warn(DataWarning, Fault(str(FileError(sorted(notes, key=lambda note: note.line or 0), file.name))))
    return tree


def urdf_limits(path: str | Path) -> dict[str, UrdfLimits]:
    """What a URDF file says of the range, speed and force of each joint that moves, by name: a tree has no place for it.

    The entries are the file's own, also where a joint mimics another; a joint without ``<limit>``, or the range of a
    continuous one, is infinite.
    """
    file = Path(path)
    said = read_urdf(bytes_of(file), file.name)
    read = UrdfReader(said.faults)
    limits = {joint.name: read.limits(joint) for joint in said.joints.values() if joint.moves}
    if read.faults:
        raise ModelError(_by_line(read.faults), file.name)
    if read.notes:
        warn(DataWarning, Fault(str(FileError(read.notes.found, file.name))))
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
    said = UrdfFile(root.attributes.get("name") or Path(source).stem, source, read.faults, read.notes)
    read.check_tags(root, ("link", "joint"), "robot")
    for node in root.children:
        if node.tag == "link" and (name := read.new_name(node, said.links)):
            said.links[name] = read.link(node, name)
        elif node.tag == "joint" and (name := read.new_name(node, said.joints)):
            said.joints[name] = read.joint(node, name)
    return said


@dataclass
class UrdfFile:
    """What a file says, with all that is wrong (`faults`) and all that is odd (`notes`) about it."""

    name: str
    source: str
    faults: Faults
    notes: Faults
    links: dict[str, UrdfLink] = field(default_factory=dict)
    joints: dict[str, UrdfJoint] = field(default_factory=dict)

    def impossible(self) -> list[Fault]:
        """One fault for each link whose inertia no distribution of mass has."""
        hint = 'Keep it with impossible="warn" if it comes so from a drawing.'
        return [
            Fault(
                f"no distribution of mass has this inertia: {law}.",
                where=part_at("link", link.name),
                hint=hint,
                line=link.node.line,
            )
            for link in self.links.values()
            if link.ten is not None and (law := broken_law(link.ten))
        ]

    def tree(self, base: Base, gravity: ArrayLike = GRAVITY, keep_impossible: bool = False) -> Tree:
        """The machine; a :class:`ModelError` with every fault where it cannot be built."""
        faults = Faults([*self.faults.found, *([] if keep_impossible else self.impossible())])
        before = len(faults.found)
        root = self._root(faults)
        self._check_followers(faults)
        if root is None or len(faults.found) > before:
            raise ModelError(_by_line(faults), self.source)
        ground, root = self._set_free(root, base, faults)
        bodies, lines = self._bodies(root, base, ground)
        elements = self._elements(lines)
        given = {b.name: ten for b in bodies if b.real and (ten := self.links[b.name].ten) is not None}
        possible = {name: ten for name, ten in given.items() if broken_law(ten) is None}
        g = np.array(gravity, dtype=np.float64)
        faults.extend(with_line(f, lines) for f in check_tree(bodies, elements, possible, base, g))
        if faults:
            raise ModelError(_by_line(faults), self.source)
        tree = Tree.build(bodies, name=self.name, base=base, gravity=g, inertia=possible, elements=elements)
        kept = {
            b.parameter(symbol): float(x)
            for b in bodies
            if b.name in given and b.name not in possible
            for symbol, x in zip(INERTIAL, given[b.name], strict=True)
        }
        return tree.with_parameters(kept) if kept else tree

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
                faults.add(
                    f"its child '{joint.child}' is carried by joint '{other.name}' (line {other.node.line}) already.",
                    where=part_at("joint", joint.name),
                    hint="A URDF is a tree: cut the loop at one joint.",
                    line=joint.node.line,
                )
        for cycle in _cycles({child: joint.parent for child, joint in carried.items() if child}):
            first = carried[cycle[0]]
            faults.add(
                "its child is its own ancestor, so this is not a tree.",
                where=part_at("joint", first.name),
                found=" → ".join([*cycle, cycle[0]]),
                line=first.node.line,
            )
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
        if GROUND in self.links and roots != [GROUND]:
            where, line = part_at("link", GROUND), self.links[GROUND].node.line
            faults.add("this name is taken by the ground.", where=where, hint="Call it otherwise.", line=line)
        return roots[0] if len(roots) == 1 and not broken else None

    def _check_followers(self, faults: Faults) -> None:
        for joint in self.joints.values():
            if not joint.leader or not joint.moves:
                continue
            where, line = part_at("joint", joint.name), joint.node.line
            leader = self.joints.get(joint.leader)
            if leader is not None and leader.kind not in KINDS:
                continue  # which is said already
            moving = [other.name for other in self.joints.values() if other.moves and other is not joint]
            if leader is None or not leader.moves:
                state = "does not move" if leader is not None else "is not a joint of this file"
                faults.add(
                    f"it mimics '{joint.leader}', which {state}.",
                    where=where,
                    hint=did_you_mean(joint.leader, moving),
                    line=line,
                )
            elif KINDS[leader.kind] != KINDS[joint.kind]:
                found = f"{joint.kind} after {leader.kind}"
                what = f"it mimics '{leader.name}', which is of another kind: they cannot share a coordinate."
                faults.add(what, where=where, expected="both turning or both sliding", found=found, line=line)
            if joint.ratio == 0.0:
                faults.add("the multiplier of its mimic is zero.", where=where, hint="Make it fixed.", line=line)
        leaders = {j.name: j.leader for j in self.joints.values() if j.leader and j.moves}
        for cycle in _cycles(leaders):
            found, line = " → ".join([*cycle, cycle[0]]), self.joints[cycle[0]].node.line
            faults.add("joints mimic each other in a circle.", where=part_at("joint", cycle[0]), found=found, line=line)

    def followed(self, joint: UrdfJoint) -> tuple[str, float, float]:
        """Coordinate, ratio and offset of a joint: its position is ratio q + offset, along however many mimics."""
        ratio, offset = 1.0, 0.0
        while joint.leader:
            ratio, offset = ratio * joint.ratio, ratio * joint.offset + offset
            joint = self.joints[joint.leader]
        return joint.name, ratio, offset

    def _set_free(self, root: str, base: Base, faults: Faults) -> tuple[str, str]:
        """The link that is the ground itself ("" where none is), and the root of the tree."""
        bare = self.links[root].ten is None
        on_root = [joint for joint in self.joints.values() if joint.parent == root]
        free = on_root[0] if base == "free" and bare and [j.kind for j in on_root] == ["floating"] else None
        for joint in self.joints.values():
            if joint.kind == "floating" and joint is not free:
                expected = "one floating joint, alone on a root without inertia" if base == "free" else "a fixed base"
                hint = "" if base == "free" else 'Load the file with base="free".'
                where, line = part_at("joint", joint.name), joint.node.line
                faults.add("it is floating.", where=where, expected=expected, hint=hint, line=line)
        if free is not None:
            return root, free.child
        return (root if base == "fixed" and root == GROUND and bare else ""), root

    def _bodies(self, root: str, base: Base, ground: str) -> tuple[list[Body], dict[At, int]]:
        """Bodies in the order of the joints, and the line of each."""
        bodies: list[Body] = []
        lines: dict[At, int] = {}
        taken = set(self.links)
        if root != ground:
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
            kind, straight = KINDS[joint.kind], np.array_equal(joint.axis, (0.0, 0.0, 1.0))
            turn = np.eye(3) if straight else rotation_to_axis(joint.axis)
            R, p = joint.rotation @ turn, joint.position
            if kind == "turning":
                R = R @ rot_z(offset)
            else:
                p = p + offset * R[:, 2]
            name = joint.child if straight else _new(f"{joint.name}_axis", taken)
            lines["body", name] = joint.node.line
            own = real and straight
            bodies.append(
                Body(
                    name,
                    joint.parent,
                    kind,
                    Placement(R, p),
                    actuated=True,
                    real=own,
                    coordinate=coordinate,
                    ratio=ratio,
                )
            )
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


def _cycles(before: Mapping[str, str]) -> list[list[str]]:
    """The circles of a mapping from each name to the one before it."""
    seen: set[str] = set()
    found: list[list[str]] = []
    for start in before:
        path: list[str] = []
        at = start
        while at in before and at not in seen:
            seen.add(at)
            path.append(at)
            at = before[at]
        if at in path:
            found.append(path[path.index(at) :])
    return found


def _new(name: str, taken: set[str]) -> str:
    """A name that no link has, and no other body."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _by_line(faults: Faults) -> list[Fault]:
    return sorted(faults.found, key=lambda fault: fault.line or 0)
