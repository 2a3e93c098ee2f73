"""The elements of a URDF file: links, joints and limits with their numbers, every fault noted by name and line.

What is read all the same is reported by one warning for each kind of oddity, with the count of places.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, FileError, did_you_mean, part_at
from veridyn.files.expressions import MAX_NUMBER
from veridyn.files.machine.urdf_xml import XmlNode, XmlReader
from veridyn.model.graph import BodyJoint
from veridyn.spatial.inertia import broken_law, from_centre, inertia_matrix
from veridyn.spatial.rotations import rpy, snapped

KINDS: dict[str, BodyJoint] = {
    "revolute": "turning",
    "continuous": "turning",
    "prismatic": "sliding",
    "fixed": "fixed",
    "floating": "fixed",
    "planar": "fixed",
}
SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
LINK_TAGS = ("inertial", "visual", "collision")
INERTIAL_TAGS = ("origin", "mass", "inertia")
JOINT_TAGS = ("origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic", "safety_controller")

DEFAULT_AXIS = (1.0, 0.0, 0.0)  # as the format has it

LONGEST = 30.0  # m; a longer offset is rather one in millimetres
DENSEST = 1e5  # kg/m^3; osmium has 2.3e4
NOT_SI = "its inertia does not look like SI units."
MOST_TURNS = 4.0  # of a joint with limits
THINNEST = 1e-4  # kg/m^3 of a ball of the same gyration; a metre of thin wire is near 1e-2
Impossible = Literal["unknown", "keep", "refuse"]
SHOWN_LINKS = 4


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
    actuated: bool = True

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


class UrdfReader(XmlReader):
    """Takes values out of nodes; what is wrong goes to `faults` with its line, and a harmless value comes back."""

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
        where = part_at("link", name)
        self.check_tags(node, LINK_TAGS, where)
        inertial = self.one(node, "inertial", where)
        if inertial is None:
            return UrdfLink(name, node, None, np.eye(3))
        return UrdfLink(name, node, *self._inertial(inertial, where))

    def joint(self, node: XmlNode, name: str) -> UrdfJoint:
        where = part_at("joint", name)
        self.check_tags(node, JOINT_TAGS, where)
        kind = node.attributes.get("type", "").strip()
        if kind not in KINDS:
            self.fault(node, f"'{kind}' is no type of joint.", where, hint=did_you_mean(kind, list(KINDS)))
        R, p = self._origin(self.one(node, "origin", where), where, exact=True)
        ends = {role: self._end(node, role, where) for role in ("parent", "child")}
        joint = UrdfJoint(name, kind, ends["parent"], ends["child"], R, p, np.array(DEFAULT_AXIS), node)
        if kind in ("planar", "floating"):
            return self._passive(joint, where)
        return self._moving(joint, where) if joint.moves else joint

    def limits(self, joint: UrdfJoint) -> UrdfLimits:
        where = part_at("joint", joint.name)
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

    def placed(self, node: XmlNode, where: str) -> tuple[Array, Array]:
        """R and p of the <origin> of an element; the identity where it has none."""
        return self._origin(self.one(node, "origin", where), where)

    def positive(self, node: XmlNode, key: str, where: str) -> float:
        """A length above zero; 1 where it is none, which is a fault."""
        before, value = len(self.faults.found), self._number(node, key, where)
        if value <= 0.0 and len(self.faults.found) == before:
            self.fault(node, f"'{key}' of <{node.tag}> must be above zero.", where, found=f"{value:g}")
        return value if value > 0.0 else 1.0

    def three(self, node: XmlNode, key: str, where: str) -> Array:
        """Three numbers that are not zero; ones where they are not, which is a fault."""
        before, value = len(self.faults.found), self._vector(node, key, where)
        if not np.all(value) and len(self.faults.found) == before:
            found = "nothing" if key not in node.attributes else f"'{node.attributes[key]}'"
            self.fault(node, f"'{key}' of <{node.tag}> takes three numbers that are not zero.", where, found=found)
        return value if np.all(value) else np.ones(3)

    def check_tags(self, node: XmlNode, known: Sequence[str], where: str) -> None:
        """A tag that is nearly one that is known is a slip of the pen, and what it says would be lost."""
        for child in node.children:
            if child.tag not in known and difflib.get_close_matches(child.tag.lower(), known, 1, 0.8):
                self.fault(child, f"there is no tag <{child.tag}> here.", where, hint=did_you_mean(child.tag, known))

    def one(self, node: XmlNode, tag: str, where: str) -> XmlNode | None:
        """The first child of this tag; others that say something else are noted."""
        found = [child for child in node.children if child.tag == tag]
        other = next(
            (child for child in found[1:] if tags_and_attributes(child) != tags_and_attributes(found[0])), None
        )
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
            self.note(node, NOT_SI, where, "kg and kg*m^2", found, hint)

    def _passive(self, joint: UrdfJoint, where: str) -> UrdfJoint:
        """A planar joint with its axis, or a floating one; what belongs to one coordinate has no meaning here."""
        for tag in ("dynamics", "mimic"):
            if (node := joint.node.first(tag)) is not None:
                self.note(node, f"<{tag}> of a {joint.kind} joint is not read.", where)
        node = self.one(joint.node, "axis", where) if joint.kind == "planar" else None
        return joint if node is None else replace(joint, axis=self._read_axis(node, where))

    def _moving(self, joint: UrdfJoint, where: str) -> UrdfJoint:
        """The joint with its axis, dynamics and mimic."""
        if (node := self.one(joint.node, "axis", where)) is not None:
            joint = replace(joint, axis=self._read_axis(node, where))
        if (node := self.one(joint.node, "dynamics", where)) is not None:
            if other := sorted(set(node.attributes) - {"damping", "friction"}):
                listed = ", ".join(f"'{key}'" for key in other)
                self.note(node, f"{listed} of its <dynamics> {'is' if len(other) == 1 else 'are'} not read.", where)
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

    def _read_axis(self, node: XmlNode, where: str) -> Array:
        self._check_attributes(node, ("xyz",), where)
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

    def _origin(
        self, node: XmlNode | None, where: str, what: str = "offset", exact: bool = False
    ) -> tuple[Array, Array]:
        """R and p; the identity where nothing is said. `exact`: rounded quarter turns are made exact, and noted."""
        if node is None:
            return np.eye(3), np.zeros(3)
        self._check_attributes(node, ("xyz", "rpy"), where)
        p, angles = self._vector(node, "xyz", where), self._vector(node, "rpy", where)
        if np.abs(p).max() > LONGEST:
            self.note(node, f"its {what} looks like millimetres.", where, "metres", f"xyz {node.attributes['xyz']}")
        if np.abs(angles).max() > 2.001 * math.pi:
            self.note(node, "its angles look like degrees.", where, "radians", f"rpy {node.attributes['rpy']}")
        return rpy(*(self.exact(node, where, angles.tolist()) if exact else angles.tolist())), p

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


def tags_and_attributes(node: XmlNode) -> list[tuple[str, Mapping[str, str]]]:
    return [(inner.tag, inner.attributes) for inner in node.walk()]


def broken_inertias(links: Mapping[str, UrdfLink]) -> dict[str, Fault]:
    """Link → fault, for each link whose inertia no physical body has."""
    hint = "Without strict the file is read, and such inertias are unknown."
    return {
        link.name: Fault(
            f"no distribution of mass has this inertia: {law}.",
            where=part_at("link", link.name),
            hint=hint,
            line=link.node.line,
        )
        for link in links.values()
        if link.ten is not None and (law := broken_law(link.ten))
    }


def warnings_of(
    notes: Sequence[Fault], links: Mapping[str, UrdfLink], impossible: Impossible, source: str
) -> list[Fault]:
    """What a reader warns of: one line about inertias that no body has, and one warning for all notes of a kind."""
    broken = broken_inertias(links)
    found = [_inertia_line(list(broken), sum(x.ten is not None for x in links.values()), impossible)] if broken else []
    if impossible == "unknown":  # then their size does not matter either
        notes = [n for n in notes if not (n.what == NOT_SI and n.at[-1:] and n.at[-1] in broken)]
    kinds: dict[str, list[Fault]] = {}
    for note in sorted(notes, key=lambda note: note.line or 0):
        kinds.setdefault(_kind(note), []).append(note)
    found += [_together(group) for group in kinds.values()]
    return [Fault(str(FileError(fault, source))) for fault in found]


def _kind(note: Fault) -> str:
    """Notes that differ in numbers only are of one kind."""
    return re.sub(r"\d+", "#", note.what)


def _together(group: Sequence[Fault]) -> Fault:
    """The first note of a kind, which says how many others there are."""
    first = group[0]
    if len(group) == 1:
        return first
    return replace(first, where=f"{first.where} (line {first.line}) and {len(group) - 1} more", line=None, at=())


def _inertia_line(names: Sequence[str], bodies: int, impossible: Impossible) -> Fault:
    listed = ", ".join(names[:SHOWN_LINKS]) + (", …" if len(names) > SHOWN_LINKS else "")
    has, it = ("has an inertia", "it is") if len(names) == 1 else ("have inertias", "they are")
    done = "taken as unknown, to be identified" if impossible == "unknown" else "kept as in the file"
    return Fault(f"{len(names)} of {bodies} links {has} that no physical body has ({listed}); {it} {done}.")


def check_word(name: str, word: str, known: Sequence[str]) -> None:
    """Refuse a word that an argument does not have."""
    if word not in known:
        hint = "'warn' is now called 'keep'." if word == "warn" else ""
        expected = " or ".join(f"'{w}'" for w in known)
        raise DataError("this word is unknown.", where=name, expected=expected, found=f"'{word}'", hint=hint)
