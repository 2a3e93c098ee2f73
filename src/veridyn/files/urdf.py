"""URDF read: links and joints become a :class:`~veridyn.model.tree.Tree`; every fault is reported at once, by name and line.

A joint of veridyn acts along the z axis of the frame it carries. A link whose joint axis is z of its own frame is one body;
any other joint is carried by a virtual body with z along the axis, and the link is fixed to it. So the inertial parameters
always stand in the link's frame of the file, under the link's name. The writing half is :mod:`veridyn.files.urdf_write`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataWarning, Fault, Faults, FileError, ModelError, at_line, did_you_mean, warn
from veridyn.files.expressions import MAX_NUMBER
from veridyn.files.yaml_nodes import text_of
from veridyn.model.check import check_tree
from veridyn.model.elements import Element
from veridyn.model.joint import GROUND, Body, JointKind
from veridyn.model.tree import GRAVITY, Tree
from veridyn.spatial.inertia import INERTIAL, broken_law, from_centre, inertia_matrix
from veridyn.spatial.rotations import rot_z, rpy, snapped
from veridyn.spatial.transforms import Placement, rotation_to_axis

Array = NDArray[np.float64]
Base = Literal["fixed", "free"]

KINDS: dict[str, JointKind] = {
    "revolute": "turning",
    "continuous": "turning",
    "prismatic": "sliding",
    "fixed": "fixed",
    "floating": "fixed",
}
SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
LINK_TAGS = ("inertial", "visual", "collision")
INERTIAL_TAGS = ("origin", "mass", "inertia")
JOINT_TAGS = ("origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic", "safety_controller")

DEFAULT_AXIS = (1.0, 0.0, 0.0)  # as the format has it

LONGEST = 30.0  # m; a longer offset is rather one in millimetres
DENSEST = 1e5  # kg/m^3; osmium has 2.3e4
MOST_TURNS = 4.0  # of a joint with limits
THINNEST = 1e-4  # kg/m^3 of a ball of the same gyration; a metre of thin wire is near 1e-2


@dataclass
class XmlNode:
    """An element of the file. `start` is the byte of its ``<``; `end` that of its ``</``, or what follows ``<…/>``."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    start: int
    end: int = -1
    children: list[XmlNode] = field(default_factory=list)

    def walk(self, without: Sequence[str] = ()) -> Iterator[XmlNode]:
        """This element and all below it, except those under the tags named, in the order of the file."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if child.tag not in without]

    def first(self, tag: str) -> XmlNode | None:
        return next((child for child in self.children if child.tag == tag), None)


@dataclass(frozen=True, eq=False)
class UrdfLink:
    """A link; `ten` are its inertial parameters about the link's origin, in the link's axes, None where it has none.

    `turned` is the rotation of the axes in which the file states the inertia.
    """

    name: str
    node: XmlNode
    ten: Array | None
    turned: Array


@dataclass(frozen=True, eq=False)
class UrdfJoint:
    """A joint at (`rotation`, `position`) in its parent; it follows `leader` by `ratio` and `offset` where that is named."""

    name: str
    kind: str
    parent: str
    child: str
    rotation: Array
    position: Array
    axis: Array
    node: XmlNode
    damping: float = 0.0
    friction: float = 0.0
    leader: str = ""
    ratio: float = 1.0
    offset: float = 0.0

    @property
    def moves(self) -> bool:
        return KINDS.get(self.kind, "fixed") != "fixed"


@dataclass(frozen=True)
class UrdfLimits:
    """What a joint may do: position in rad or m, speed in rad/s or m/s, force in N*m or N; infinite where nothing is said."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


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
    are asked, with the file's value as prior. A :class:`FileError` or :class:`ModelError` tells all that is wrong.
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
    read = _Reader(said.faults)
    limits = {joint.name: read.limits(joint) for joint in said.joints.values() if joint.moves}
    if read.faults:
        raise ModelError(_by_line(read.faults), file.name)
    if read.notes:
        warn(DataWarning, Fault(str(FileError(read.notes.found, file.name))))
    return limits


def read_urdf(data: bytes, source: str = "model.urdf") -> UrdfFile:
    """What the bytes of a URDF file say. Raises only where this is no URDF at all; other faults are kept in the result."""
    root = _parse(data, source)
    if root.tag != "robot":
        hint = {"sdf": "This is an SDF file.", "mujoco": "This is a MuJoCo file."}.get(root.tag, "")
        fault = Fault("this is not a URDF file.", expected="<robot>", found=f"<{root.tag}>", hint=hint, line=root.line)
        raise FileError(fault, source)
    _refuse_xacro(root, source)
    read = _Reader()
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
                where=f"link '{link.name}'",
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
        faults.extend(at_line(f, lines.get(f.where)) for f in check_tree(bodies, elements, possible, base, g))
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
                        what, where=f"joint '{joint.name}'", hint=did_you_mean(link, names), line=joint.node.line
                    )
            other = carried.setdefault(joint.child, joint)
            if other is not joint and joint.child in self.links:
                faults.add(
                    f"its child '{joint.child}' is carried by joint '{other.name}' (line {other.node.line}) already.",
                    where=f"joint '{joint.name}'",
                    hint="A URDF is a tree: cut the loop at one joint.",
                    line=joint.node.line,
                )
        for cycle in _cycles({child: joint.parent for child, joint in carried.items() if child}):
            first = carried[cycle[0]]
            faults.add(
                "its child is its own ancestor, so this is not a tree.",
                where=f"joint '{first.name}'",
                found=" → ".join([*cycle, cycle[0]]),
                line=first.node.line,
            )
        broken = len(faults.found) > before or any(not (j.parent and j.child) for j in self.joints.values())
        roots = [name for name in names if name not in carried]
        if len(roots) > 1 and not broken:
            faults.add(
                f"{len(roots)} links are carried by no joint: {', '.join(roots[:6])}{', …' if len(roots) > 6 else ''}.",
                where=f"link '{roots[1]}'",
                expected="one root",
                hint="Add the joint that carries it, or drop the link.",
                line=self.links[roots[1]].node.line,
            )
        if GROUND in self.links and roots != [GROUND]:
            where, line = f"link '{GROUND}'", self.links[GROUND].node.line
            faults.add("this name is taken by the ground.", where=where, hint="Call it otherwise.", line=line)
        return roots[0] if len(roots) == 1 and not broken else None

    def _check_followers(self, faults: Faults) -> None:
        for joint in self.joints.values():
            if not joint.leader or not joint.moves:
                continue
            where, line = f"joint '{joint.name}'", joint.node.line
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
            faults.add("joints mimic each other in a circle.", where=f"joint '{cycle[0]}'", found=found, line=line)

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
                where, line = f"joint '{joint.name}'", joint.node.line
                faults.add("it is floating.", where=where, expected=expected, hint=hint, line=line)
        if free is not None:
            return root, free.child
        return (root if base == "fixed" and root == GROUND and bare else ""), root

    def _bodies(self, root: str, base: Base, ground: str) -> tuple[list[Body], dict[str, int]]:
        """Bodies in the order of the joints, and the line of each."""
        bodies: list[Body] = []
        lines: dict[str, int] = {}
        taken = set(self.links)
        if root != ground:
            under = None if base == "free" else GROUND
            bodies.append(Body(root, under, "fixed", Placement(), real=self.links[root].ten is not None))
            lines[f"body '{root}'"] = self.links[root].node.line
        for joint in self.joints.values():
            if joint.child == root:
                continue
            real = self.links[joint.child].ten is not None
            lines[f"body '{joint.child}'"] = self.links[joint.child].node.line
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
            lines[f"body '{name}'"] = joint.node.line
            own = real and straight
            bodies.append(Body(name, joint.parent, kind, Placement(R, p), True, own, coordinate, ratio))
            if not straight:
                bodies.append(Body(joint.child, name, "fixed", Placement(turn.T), real=real))
        return bodies, lines

    def _elements(self, lines: dict[str, int]) -> list[Element]:
        elements: list[Element] = []
        for joint in self.joints.values():
            if not joint.moves:
                continue
            coordinate, ratio, _ = self.followed(joint)
            for kind, symbol, value in (("damper", "h", joint.damping), ("coulomb", "fs", joint.friction)):
                if value != 0.0:
                    name = f"{symbol}_{joint.name}" if joint.leader else ""
                    elements.append(Element(kind, {coordinate: ratio}, value, name))
                    lines[f"element '{elements[-1].parameter_name}'"] = joint.node.line
        return elements


@dataclass
class _Reader:
    """Takes values out of nodes; what is wrong goes to `faults` with its line, and a harmless value comes back."""

    faults: Faults = field(default_factory=Faults)
    notes: Faults = field(default_factory=Faults)

    def fault(
        self, node: XmlNode, what: str, where: str = "", expected: str = "", found: str = "", hint: str = ""
    ) -> None:
        self.faults.add(what, where=where, expected=expected, found=found, hint=hint, line=node.line)

    def note(
        self, node: XmlNode, what: str, where: str = "", expected: str = "", found: str = "", hint: str = ""
    ) -> None:
        self.notes.add(what, where=where, expected=expected, found=found, hint=hint, line=node.line)

    def new_name(self, node: XmlNode, taken: Mapping[str, UrdfLink] | Mapping[str, UrdfJoint]) -> str:
        name = node.attributes.get("name", "").strip()
        if not name:
            self.fault(node, f"a {node.tag} has no name.", expected=f'<{node.tag} name="…">')
        elif name in taken:
            found, hint = f"the first on line {taken[name].node.line}", "Give each a name of its own."
            self.fault(node, "the name stands twice.", f"{node.tag} '{name}'", found=found, hint=hint)
            return ""
        return name

    def link(self, node: XmlNode, name: str) -> UrdfLink:
        where = f"link '{name}'"
        self.check_tags(node, LINK_TAGS, where)
        inertial = self.one(node, "inertial", where)
        if inertial is None:
            return UrdfLink(name, node, None, np.eye(3))
        return UrdfLink(name, node, *self._inertial(inertial, where))

    def joint(self, node: XmlNode, name: str) -> UrdfJoint:
        where = f"joint '{name}'"
        self.check_tags(node, JOINT_TAGS, where)
        kind = node.attributes.get("type", "").strip()
        if kind == "planar":
            hint = "Write it as two prismatic joints and a revolute one, with links without inertia between them."
            self.fault(node, "planar joints are not read.", where, hint=hint)
        elif kind not in KINDS:
            self.fault(node, f"'{kind}' is no type of joint.", where, hint=did_you_mean(kind, list(KINDS)))
        R, p = self._origin(self.one(node, "origin", where), where)
        ends = {role: self._end(node, role, where) for role in ("parent", "child")}
        joint = UrdfJoint(name, kind, ends["parent"], ends["child"], R, p, np.array(DEFAULT_AXIS), node)
        return self._moving(joint, where) if joint.moves else joint

    def limits(self, joint: UrdfJoint) -> UrdfLimits:
        where = f"joint '{joint.name}'"
        node = self.one(joint.node, "limit", where)
        if node is None:
            return UrdfLimits()
        speed, force = (self._number(node, key, where, math.inf) for key in ("velocity", "effort"))
        if joint.kind == "continuous":
            return UrdfLimits(velocity=speed, effort=force)
        low, high = (self._number(node, key, where, 0.0) for key in ("lower", "upper"))
        found = f"{low:g} and {high:g}"
        if low > high:
            self.fault(node, "its lower limit is above its upper one.", where, found=found)
        elif low == high:
            self.note(node, "its limits leave no room to move.", where, found=found)
        elif KINDS[joint.kind] == "turning" and max(abs(low), abs(high)) > MOST_TURNS * 2.0 * math.pi:
            self.note(node, "its limits look like degrees.", where, "radians", found)
        return UrdfLimits(low, high, speed, force)

    def check_tags(self, node: XmlNode, known: Sequence[str], where: str) -> None:
        """A tag that is nearly one that is known is a slip of the pen, and what it says would be lost."""
        for child in node.children:
            if child.tag not in known and difflib.get_close_matches(child.tag.lower(), known, 1, 0.8):
                self.fault(child, f"there is no tag <{child.tag}> here.", where, hint=did_you_mean(child.tag, known))

    def one(self, node: XmlNode, tag: str, where: str) -> XmlNode | None:
        """The first child of this tag; others that say something else are noted."""
        found = [child for child in node.children if child.tag == tag]
        other = next((child for child in found[1:] if _said(child) != _said(found[0])), None)
        if other is not None:
            what = f"<{tag}> stands {len(found)} times; the first counts, on line {found[0].line}."
            self.note(other, what, where)
        return found[0] if found else None

    def _inertial(self, node: XmlNode, where: str) -> tuple[Array | None, Array]:
        """Ten parameters about the link's origin, in the link's axes, None where they cannot be read; and the file's axes."""
        self.check_tags(node, INERTIAL_TAGS, where)
        before = len(self.faults.found)
        R, centre = self._origin(self.one(node, "origin", where), where, "centre of mass")
        read: dict[str, list[float]] = {}
        for tag, keys in (("mass", ("value",)), ("inertia", SIX)):
            part = self.one(node, tag, where)
            if part is None:
                self.fault(node, f"its <inertial> has no <{tag}>.", where)
            else:
                self._check_attributes(part, keys, where)
                read[tag] = [self._number(part, key, where) for key in keys]
        if len(self.faults.found) > before:
            return None, R
        (mass,), J = read["mass"], np.array(inertia_matrix(np.array(read["inertia"])))
        self._check_density(node, mass, float(np.trace(J)), where)
        return from_centre(mass, centre, R @ J @ R.T), R

    def _check_density(self, node: XmlNode, mass: float, trace: float, where: str) -> None:
        """Of all bodies of one mass and density a ball turns most easily, so its density is the least these numbers allow."""
        if mass <= 0.0 or trace <= 0.0:
            return
        radius = math.sqrt(5.0 / 6.0 * trace / mass)  # of a ball, tr J = 6/5 m r²
        density = mass / (4.0 / 3.0 * math.pi * radius * radius * radius) if radius > 1e-50 else math.inf
        if not THINNEST <= density <= DENSEST:
            found = f"mass {mass:g}, ixx + iyy + izz {trace:g}, as of a ball of {density:.2g} kg/m^3"
            hint = "Is the mass in grams, or the inertia in other units?"
            self.note(node, "its inertia does not look like SI units.", where, "kg and kg*m^2", found, hint)

    def _moving(self, joint: UrdfJoint, where: str) -> UrdfJoint:
        """The joint with its axis, dynamics and mimic."""
        if (node := self.one(joint.node, "axis", where)) is not None:
            self._check_attributes(node, ("xyz",), where)
            joint = replace(joint, axis=self._axis(node, where))
        if (node := self.one(joint.node, "dynamics", where)) is not None:
            for key in sorted(set(node.attributes) - {"damping", "friction"}):
                self.note(node, f"'{key}' of its <dynamics> is not read.", where)
            damping, friction = (self._number(node, key, where, 0.0) for key in ("damping", "friction"))
            if min(damping, friction) < 0.0:
                self.note(node, "its friction is below zero.", where, found=f"{min(damping, friction):g}")
            joint = replace(joint, damping=damping, friction=friction)
        if (node := self.one(joint.node, "mimic", where)) is not None:
            self._check_attributes(node, ("joint", "multiplier", "offset"), where)
            leader = node.attributes.get("joint", "").strip()
            if not leader:
                self.fault(node, "its <mimic> names no joint.", where, expected='<mimic joint="…"/>')
            ratio, offset = self._number(node, "multiplier", where, 1.0), self._number(node, "offset", where, 0.0)
            joint = replace(joint, leader=leader, ratio=ratio, offset=offset)
        return joint

    def _axis(self, node: XmlNode, where: str) -> Array:
        before = len(self.faults.found)
        axis = self._vector(node, "xyz", where, DEFAULT_AXIS)
        length = float(np.linalg.norm(axis))
        if length < 1e-6 or len(self.faults.found) > before:
            if len(self.faults.found) == before:
                found = f"'{node.attributes['xyz']}'"
                self.fault(node, "its axis has no direction.", where, "a vector of length 1", found)
            return np.array(DEFAULT_AXIS)
        if abs(length - 1.0) > 1e-3:
            what = "its axis is not of length 1; only its direction counts."
            self.note(node, what, where, found=f"length {length:.6g}")
        return snapped(axis / length)

    def _end(self, node: XmlNode, role: str, where: str) -> str:
        """The link that a joint names as its parent or child."""
        part = self.one(node, role, where)
        if part is not None:
            self._check_attributes(part, ("link",), where)
        name = "" if part is None else part.attributes.get("link", "").strip()
        if not name:
            self.fault(part or node, f"it names no {role}.", where, expected=f'<{role} link="…"/>')
        return name

    def _origin(self, node: XmlNode | None, where: str, what: str = "offset") -> tuple[Array, Array]:
        """R and p; the identity where nothing is said."""
        if node is None:
            return np.eye(3), np.zeros(3)
        self._check_attributes(node, ("xyz", "rpy"), where)
        p, angles = self._vector(node, "xyz", where), self._vector(node, "rpy", where)
        if np.abs(p).max() > LONGEST:
            self.note(node, f"its {what} looks like millimetres.", where, "metres", f"xyz {node.attributes['xyz']}")
        if np.abs(angles).max() > 2.001 * math.pi:
            self.note(node, "its angles look like degrees.", where, "radians", f"rpy {node.attributes['rpy']}")
        return rpy(*(float(a) for a in angles)), p

    def _check_attributes(self, node: XmlNode, known: Sequence[str], where: str) -> None:
        for key in node.attributes:
            if key not in known:
                self.fault(node, f"<{node.tag}> has no attribute '{key}'.", where, hint=did_you_mean(key, known))

    def _number(self, node: XmlNode, key: str, where: str, default: float | None = None) -> float:
        text = node.attributes.get(key)
        if text is not None:
            return self._value(text, node, key, where)
        if default is None:
            self.fault(node, f"<{node.tag}> has no '{key}'.", where)
        return default or 0.0

    def _vector(self, node: XmlNode, key: str, where: str, default: Sequence[float] = (0.0, 0.0, 0.0)) -> Array:
        text = node.attributes.get(key)
        words = [] if text is None else text.split()
        if text is not None and len(words) != 3:
            what, hint = f"'{key}' of <{node.tag}> is no vector.", "Spaces part the numbers." if "," in text else ""
            self.fault(node, what, where, "three numbers", f"'{text}'", hint)
            words = []
        return np.array([self._value(word, node, key, where) for word in words] or default, dtype=np.float64)

    def _value(self, text: str, node: XmlNode, key: str, where: str) -> float:
        name, found = f"'{key}' of <{node.tag}>", f"'{text}'"
        try:
            value = float(text.replace("_", "?"))
        except ValueError:
            hint = "Numbers have a decimal point." if "," in text else ""
            self.fault(node, f"{name} is not a number.", where, found=found, hint=hint)
            return 0.0
        if not math.isfinite(value):
            self.fault(node, f"{name} is not a finite number.", where, found=found)
        elif abs(value) > MAX_NUMBER:
            self.fault(node, f"{name} is too large a number.", where, f"at most {MAX_NUMBER:g}", found)
        else:
            return value
        return 0.0


def bytes_of(file: Path) -> bytes:
    """The text of a file as UTF-8 without a byte-order mark."""
    try:
        missing = file.parent.is_dir() and not file.exists()
    except OSError:
        missing = False  # what hinders it is said below
    if missing:
        beside = sorted(p.name for p in file.parent.glob("*.urdf"))
        fault = Fault("there is no such file.", found=str(file), hint=did_you_mean(file.name, beside))
        raise FileError(fault, file.name)
    return text_of(file).encode("utf-8")


def _parse(data: bytes, source: str) -> XmlNode:
    """The root element. No document type is read, so no entity can be declared, expanded or fetched."""
    if not data.strip():
        raise FileError(Fault("the file is empty.", expected="a URDF file"), source)
    parser = expat.ParserCreate("utf-8")
    opened: list[XmlNode] = []
    roots: list[XmlNode] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = XmlNode(tag, attributes, parser.CurrentLineNumber, parser.CurrentByteIndex)
        (opened[-1].children if opened else roots).append(node)
        opened.append(node)

    def end(_: str) -> None:
        opened.pop().end = parser.CurrentByteIndex

    def refuse(*_: object) -> None:
        fault = Fault("a document type is declared.", found="<!DOCTYPE", hint="Drop it: a URDF needs none.")
        raise FileError(at_line(fault, parser.CurrentLineNumber), source)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = f"this is not XML: {expat.ErrorString(error.code)}."
        hint = f"<{opened[-1].tag}> of line {opened[-1].line} is never closed. Is the file complete?" if opened else ""
        raise FileError(Fault(what, hint=hint, line=error.lineno), source) from error
    return roots[0]


def _refuse_xacro(root: XmlNode, source: str) -> None:
    """Refuse a file that xacro has not expanded alone: all else about it would be noise."""
    left = [node for node in root.walk() if node.tag.startswith("xacro:")]
    for part in root.children:
        if part.tag in ("link", "joint"):
            left += [
                node
                for node in part.walk(without=("visual", "collision"))
                if any("${" in value or "$(" in value for value in node.attributes.values())
            ]
    if left:
        first = min(left, key=lambda node: node.start)
        fault = Fault(
            "this is a xacro file, not yet a URDF.",
            found=f"{len(left)} elements to expand, the first <{first.tag}>",
            hint="Expand it first: xacro robot.urdf.xacro > robot.urdf",
            line=first.line,
        )
        raise FileError(fault, source)


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


def _said(node: XmlNode) -> list[tuple[str, Mapping[str, str]]]:
    return [(inner.tag, inner.attributes) for inner in node.walk()]


def _new(name: str, taken: set[str]) -> str:
    """A name that no link has, and no other body."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _by_line(faults: Faults) -> list[Fault]:
    return sorted(faults.found, key=lambda fault: fault.line or 0)
