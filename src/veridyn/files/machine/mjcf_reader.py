"""Values out of the elements of an MJCF file: numbers, orientations, default classes and included files, every fault noted by line.

Tendons and actuators: the length of an actuator is l = G q, with its gear and the coefficients of its tendon in a row of G, and its force
acts on the joints as Γ = Gᵀ f. So motors of a regular G are a :class:`~veridyn.model.load.Transmission` with T = G⁻¹.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, FileError, did_you_mean
from veridyn.files.expressions import MAX_NUMBER
from veridyn.files.machine.urdf_xml import XmlNode, XmlReader, bytes_of, parse_xml
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.load import Transmission
from veridyn.spatial.inertia import cross_matrix
from veridyn.spatial.rotations import matrix_of, rot_x, rot_y, rot_z, snapped

Frame = tuple[Array, Array]

IDENTITY: Frame = (np.eye(3), np.zeros(3))
TURNS = {"x": rot_x, "y": rot_y, "z": rot_z}
ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
ACTUATORS = (
    *("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "dcmotor"),
    "plugin",
)
MAX_FILES = 100
SECTIONS = (
    *("compiler", "option", "size", "statistic", "asset", "visual", "default", "worldbody", "contact", "deformable"),
    *("equality", "tendon", "actuator", "sensor", "keyframe", "custom", "extension"),
)
PARTS = (
    *("body", "inertial", "joint", "freejoint", "geom", "site", "camera", "light", "frame"),
    *("composite", "flexcomp", "plugin", "replicate", "attach"),
)
ATTRIBUTES = {
    "body": ("name", "childclass", "pos", *ORIENTATIONS, "mocap", "gravcomp", "sleep", "user"),
    "inertial": ("pos", *ORIENTATIONS, "mass", "diaginertia", "fullinertia"),
    "joint": (
        *("name", "class", "type", "group", "pos", "axis", "range", "limited", "ref", "springref", "springdamper"),
        *("margin", "stiffness", "damping", "armature", "frictionloss", "user", "actuatorfrcrange"),
        *("actuatorfrclimited", "actuatorgravcomp", "solreflimit", "solimplimit", "solreffriction", "solimpfriction"),
    ),
    "compiler": ("angle", "eulerseq", "coordinate", "inertiafromgeom", "autolimits", "balanceinertia", "settotalmass"),
}
Line = dict[str, float]
LARGEST_CONDITION = 1e10  # of the gears: beyond it no transmission is made


def read_root(file: Path) -> XmlNode:
    """The root element with included files, which lie in the folder of `file` or below, in place of each <include>."""
    root = parse_xml(bytes_of(file, "xml"), file.name, "MJCF")
    if root.tag != "mujoco":
        hint = {"sdf": "This is an SDF file.", "robot": "This is a URDF file."}.get(root.tag, "")
        raise FileError(Fault("this is not an MJCF file.", "", "<mujoco>", f"<{root.tag}>", hint, root.line), file.name)
    folder, seen, waiting = file.parent.resolve(), {file.resolve()}, [root]
    while waiting:
        node = waiting.pop()
        children: list[XmlNode] = []
        for child in node.children:
            children += [child] if child.tag != "include" else _included(child, folder, seen, file.name)
        node.children = children
        waiting += children
        if any(child.tag == "include" for child in children):
            waiting.append(node)
    return root


def _included(node: XmlNode, folder: Path, seen: set[Path], source: str) -> list[XmlNode]:
    name = node.attributes.get("file", "")
    path = (folder / name).resolve()
    what = ""
    if not name or Path(name).is_absolute() or not path.is_relative_to(folder):
        what = "an included file lies in the folder of this one."
    elif path in seen:
        what = "a file is included twice."
    elif len(seen) >= MAX_FILES:
        what = f"more than {MAX_FILES} files are included."
    elif not path.is_file():
        what = "the included file does not exist."
    if what:
        raise FileError(Fault(what, where="<include>", found=f"'{name}'", line=node.line), source)
    seen.add(path)
    return parse_xml(bytes_of(path, "xml"), path.name, "MJCF").children


@dataclass(frozen=True)
class Compiler:
    """What an MJCF file says of its own units: angles in degrees by default, and the sequence of Euler angles."""

    degree: bool = True
    eulerseq: str = "xyz"
    inertiafromgeom: str = "auto"

    def angle(self, value: float) -> float:
        """An angle of the file in radians."""
        return math.radians(value) if self.degree else value


@dataclass
class MjcfReader(XmlReader):
    """Takes values out of nodes; what is wrong goes to `faults` with its line, what is not read to `notes`."""

    compiler: Compiler = field(default_factory=Compiler)
    defaults: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    def check_words(self, root: XmlNode) -> None:
        """A tag or attribute that is nearly one that is read is a slip of the pen, and what it says would be lost."""
        for node in root.walk(without=("asset", "custom", "extension", "sensor", "visual", "contact")):
            tags = {"mujoco": SECTIONS, "body": PARTS, "worldbody": PARTS}.get(node.tag, ())
            words = [(child.tag, f"tag <{child.tag}>", tags, child) for child in node.children if tags]
            own = ATTRIBUTES.get(node.tag, ())
            words += [(key, f"attribute '{key}' of <{node.tag}>", own, node) for key in node.attributes if own]
            for word, what, known, at in words:
                if word not in known and difflib.get_close_matches(word.lower(), known, 1, 0.8):
                    hint = did_you_mean(word, known)
                    self.faults.add(f"there is no {what}.", where=f"<{node.tag}>", hint=hint, line=at.line)

    def read_compiler(self, root: XmlNode) -> None:
        """The settings of all <compiler> elements; those that would change masses behind the reader's back are faults."""
        for node in (child for child in root.children if child.tag == "compiler"):
            at = node.attributes
            c = self.compiler
            angle = at.get("angle", "degree" if c.degree else "radian")
            if angle not in ("degree", "radian"):
                self.fault(node, "this angle is unknown.", "<compiler>", "degree or radian", f"'{angle}'")
            seq = at.get("eulerseq", c.eulerseq)
            if len(seq) != 3 or any(letter not in "xyzXYZ" for letter in seq):
                self.fault(
                    node, "this sequence of Euler angles is unknown.", "<compiler>", "three of xyzXYZ", f"'{seq}'"
                )
                seq = "xyz"
            if at.get("coordinate", "local") != "local":
                self.fault(node, "only local coordinates are read.", "<compiler>", "coordinate local", at["coordinate"])
            for key, neutral in (
                ("balanceinertia", "false"),
                ("boundmass", "0"),
                ("boundinertia", "0"),
                ("settotalmass", "-1"),
            ):
                if at.get(key, neutral) not in (neutral, "0", "false"):
                    self.note(node, f"'{key}' of <compiler> is not applied: inertias are read as they stand.")
            geoms = at.get("inertiafromgeom", c.inertiafromgeom)
            self.compiler = Compiler(angle == "degree", seq, geoms)

    def read_defaults(self, root: XmlNode) -> None:
        """Class → tag → attributes, each class with those of the classes around it."""
        self.defaults.setdefault("main", {})
        waiting: list[tuple[XmlNode, str]] = [(node, "") for node in reversed(root.children) if node.tag == "default"]
        while waiting:
            node, outer = waiting.pop()
            name = node.attributes.get("class", "main" if not outer else "")
            if not name:
                self.fault(node, "a default inside another has no class.", "<default>")
                continue
            before = self.defaults.get(name, {}) if not outer else self.defaults[outer]
            made = {tag: dict(values) for tag, values in before.items()}
            for child in node.children:
                if child.tag != "default":
                    tag = "actuator" if child.tag in ACTUATORS else "tendon" if child.tag == "tendon" else child.tag
                    made[tag] = {**made.get(tag, {}), **child.attributes}
            self.defaults[name] = made
            waiting += [(child, name) for child in reversed(node.children) if child.tag == "default"]

    def with_defaults(self, node: XmlNode, tag: str, around: str) -> XmlNode:
        """The element with the attributes of its class, or of the class `around` it, where it does not state them."""
        name = node.attributes.get("class", around) or "main"
        if name not in self.defaults:
            self.fault(node, f"there is no default class '{name}'.", f"<{node.tag}>", found=", ".join(self.defaults))
            return node
        values = dict(self.defaults[name].get(tag, {}))
        if any(key in node.attributes for key in ORIENTATIONS):
            values = {key: value for key, value in values.items() if key not in ORIENTATIONS}
        return replace(node, attributes={**values, **node.attributes})

    def numbers(self, node: XmlNode, key: str, default: Sequence[float], where: str, least: int = 0) -> Array:
        """The numbers of an attribute, at most as many as the default has and, beyond `least`, padded with it."""
        text = node.attributes.get(key)
        if text is None:
            return np.array(default, dtype=np.float64)
        values: list[float] = []
        for word in text.split():
            try:
                values.append(float(word.replace("_", "?")))
            except ValueError:
                self.fault(node, f"'{key}' of <{node.tag}> is not a number.", where, found=f"'{word}'")
                return np.array(default, dtype=np.float64)
        least = least or len(default)
        if not least <= len(values) <= len(default):
            count = str(least) if least == len(default) else f"{least} to {len(default)}"
            self.fault(
                node, f"'{key}' of <{node.tag}> has {len(values)} numbers.", where, f"{count} numbers", f"'{text}'"
            )
        elif not np.isfinite(values).all() or max(abs(v) for v in values) > MAX_NUMBER:
            self.fault(
                node, f"'{key}' of <{node.tag}> is not finite, or above {MAX_NUMBER:g}.", where, found=f"'{text}'"
            )
        else:
            return np.array([*values, *default[len(values) :]], dtype=np.float64)
        return np.array(default, dtype=np.float64)

    def number(self, node: XmlNode, key: str, default: float, where: str) -> float:
        return float(self.numbers(node, key, [default], where)[0])

    def polynomial(self, node: XmlNode, key: str, where: str) -> float:
        """The linear coefficient of a stiffness or damping; others that are not zero are noted."""
        text = node.attributes.get(key, "")
        values = self.numbers(node, key, [0.0] * max(1, len(text.split())), where)
        if values[1:].any():
            self.note(node, f"terms of higher order of '{key}' are not read.", where, found=f"'{text}'")
        return float(values[0])

    def frame(self, node: XmlNode, where: str) -> Frame:
        """Rotation and position of an element in the one around it."""
        return self.rotation(node, where), self.numbers(node, "pos", [0.0] * 3, where)

    def rotation(self, node: XmlNode, where: str) -> Array:
        """R of whichever of quat, axisangle, euler, xyaxes and zaxis the element has."""
        given = [key for key in ORIENTATIONS if key in node.attributes]
        if len(given) > 1:
            self.fault(node, "its orientation is given more than once.", where, "one of them", ", ".join(given))
            return np.eye(3)
        if not given:
            return np.eye(3)
        before = len(self.faults.found)
        if given == ["euler"]:
            angles = [self.compiler.angle(float(a)) for a in self.numbers(node, "euler", [0.0] * 3, where)]
            return self._euler(self._exact(node, where, angles))
        count = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3}[given[0]]
        x = self.numbers(node, given[0], [0.0] * count, where)
        first = x[:3] if count != 4 or given[0] == "axisangle" else x
        size = float(np.linalg.norm(first))
        if size < 1e-12:
            if len(self.faults.found) == before:
                self.fault(node, f"its {given[0]} has no direction.", where, found=f"'{node.attributes[given[0]]}'")
            return np.eye(3)
        if given[0] == "quat":
            return snapped(matrix_of(x / size))
        if given[0] == "axisangle":
            return _about(x[:3] / size, *self._exact(node, where, [self.compiler.angle(float(x[3]))]))
        if given[0] == "zaxis":
            return _from_z(x / size)
        return self._axes(node, x[:3] / size, x[3:], where)

    def _axes(self, node: XmlNode, x: Array, y: Array, where: str) -> Array:
        y = y - (x @ y) * x
        size = float(np.linalg.norm(y))
        if size < 1e-12:
            self.fault(node, "its xyaxes are parallel.", where, found=f"'{node.attributes['xyaxes']}'")
            return np.eye(3)
        return snapped(np.column_stack([x, y / size, np.cross(x, y / size)]))

    def _exact(self, node: XmlNode, where: str, angles: Sequence[float]) -> list[float]:
        """Angles (rad) of a body with rounded quarter turns made exact; those of other elements as they are."""
        return self.exact(node, where, angles) if node.tag == "body" else list(angles)

    def _euler(self, angles: Sequence[float]) -> Array:
        """Of angles in rad. Small letters turn about axes that move with the frame, capital ones about fixed axes."""
        R = np.eye(3)
        for letter, angle in zip(self.compiler.eulerseq, angles, strict=True):
            turn = TURNS[letter.lower()](angle)
            R = R @ turn if letter.islower() else turn @ R
        return snapped(R)


def _about(axis: Array, angle: float) -> Array:
    """The rotation about a unit vector."""
    C = cross_matrix(axis)
    return snapped(np.eye(3) + math.sin(angle) * C + (1.0 - math.cos(angle)) * C @ C)


def _from_z(z: Array) -> Array:
    """The smallest rotation that takes (0, 0, 1) to `z`."""
    axis = np.array([-z[1], z[0], 0.0])
    size = float(np.linalg.norm(axis))
    if size < 1e-12:
        return np.eye(3) if z[2] > 0.0 else rot_x(math.pi)
    return _about(axis / size, math.atan2(size, float(z[2])))


def together(outer: Frame, inner: Frame) -> Frame:
    """A frame inside another."""
    return snapped(outer[0] @ inner[0]), outer[1] + outer[0] @ inner[1]


@dataclass
class MjcfDrives:
    """What tendons and actuators add: elements, the coordinates with a motor (None: the file has no actuators), the transmission."""

    elements: list[Element] = field(default_factory=list)
    driven: set[str] | None = None
    transmission: Transmission | None = None


def read_drives(read: MjcfReader, root: XmlNode, rests: Mapping[str, float], elements: Sequence[Element]) -> MjcfDrives:
    """`rests`: each coordinate with its springref; `elements`: those of joints, whose names are taken."""
    out = MjcfDrives()
    taken = {e.parameter_name for e in elements}
    lines = _tendons(read, root, rests, out, taken)
    sections = [node for node in root.children if node.tag == "actuator"]
    if not sections:
        return out
    out.driven = set()
    rows: dict[str, Line] = {}
    plain = True
    for node in (child for section in sections for child in section.children):
        full = read.with_defaults(node, "actuator", "main")
        name = node.attributes.get("name", f"actuator{len(rows) + 1}")
        where = f"actuator '{name}'"
        line = _acts(read, full, where, rests, lines)
        if line is None:
            continue
        gear = float(read.numbers(full, "gear", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], where, least=1)[0])
        row = {c: gear * a for c, a in line.items()}
        gain, bias, linear = _law(read, full, where)
        if bias != 0.0:
            _add(out.elements, taken, "offset", row, -bias, name)
        if gain == 0.0 and linear:
            continue
        out.driven |= set(row)
        if linear:
            rows[name] = {c: gain * a for c, a in row.items()}
        else:
            plain = False
            what = f"the law of <{node.tag}> is not read: its joint counts as driven by a force."
            read.note(node, what, where)
    out.transmission = _transmission(read, sections[0], rows, plain)
    return out


def _acts(
    read: MjcfReader, node: XmlNode, where: str, joints: Mapping[str, float], tendons: Mapping[str, Line]
) -> Line | None:
    """The coordinates whose combination is the actuator's length over its gear; None where it acts on something else."""
    at = node.attributes
    if node.tag not in ACTUATORS:
        read.note(node, f"<{node.tag}> of <actuator> is not read.", where)
        return None
    for key in ("joint", "jointinparent"):
        if key in at:
            if at[key] in joints:
                return {at[key]: 1.0}
            read.fault(node, f"its joint '{at[key]}' is not one of this file.", where, found=f"'{at[key]}'")
            return None
    if at.get("tendon", "") in tendons:
        return tendons[at["tendon"]]
    read.note(node, "an actuator that acts neither on a hinge or slide nor on a fixed tendon is not read.", where)
    return None


def _law(read: MjcfReader, node: XmlNode, where: str) -> tuple[float, float, bool]:
    """gain and bias of force = gain · ctrl + bias, and whether the law is that."""
    at = node.attributes
    if node.tag == "motor":
        return 1.0, 0.0, True
    if node.tag != "general":
        return 1.0, 0.0, False
    gain = float(read.numbers(node, "gainprm", [1.0, *[0.0] * 9], where, least=1)[0])
    bias = read.numbers(node, "biasprm", [0.0] * 10, where, least=1)
    affine = at.get("biastype", "none") == "affine"
    plain = at.get("gaintype", "fixed") == "fixed" and at.get("dyntype", "none") == "none"
    linear = plain and (at.get("biastype", "none") == "none" or (affine and not bias[1:].any()))
    return gain, float(bias[0]) if affine and linear else 0.0, linear


def _tendons(
    read: MjcfReader, root: XmlNode, rests: Mapping[str, float], out: MjcfDrives, taken: set[str]
) -> dict[str, Line]:
    """Name → combination of each fixed tendon, with its spring, damper, inertia and friction as elements."""
    lines: dict[str, Line] = {}
    for node in (child for section in root.children if section.tag == "tendon" for child in section.children):
        if node.tag != "fixed":
            read.note(node, f"<{node.tag}> of <tendon> is not read.")
            continue
        full = read.with_defaults(node, "tendon", "main")
        name = node.attributes.get("name", f"tendon{len(lines) + 1}")
        where = f"tendon '{name}'"
        line: Line = {}
        for part in node.children:
            joint = part.attributes.get("joint", "")
            if joint not in rests:
                read.fault(part, f"its joint '{joint}' is not one of this file.", where)
                continue
            line[joint] = line.get(joint, 0.0) + read.number(part, "coef", 0.0, where)
        if not line:
            continue
        lines[name] = line
        ends = read.numbers(full, "springlength", [-1.0, np.nan], where, least=1)
        rest = float(ends[0])
        if np.isfinite(ends[1]) and ends[1] != ends[0]:
            read.note(node, "the dead band of a tendon's spring is not read.", where)
        if rest == -1.0:
            rest = sum(a * rests[c] for c, a in line.items())
        for kind, key in (("spring", "stiffness"), ("damper", "damping")):
            if (value := read.polynomial(full, key, where)) != 0.0:
                _add(out.elements, taken, kind, line, value, name, rest if kind == "spring" else 0.0)
        for kind, key in (("inertia", "armature"), ("coulomb", "frictionloss")):
            if (value := read.number(full, key, 0.0, where)) != 0.0:
                _add(out.elements, taken, kind, line, value, name)
    return lines


def _add(
    elements: list[Element], taken: set[str], kind: str, line: Line, value: float, name: str, rest: float = 0.0
) -> None:
    """An element under its usual name, or that of its tendon or actuator where that is taken.

    A constant force on one coordinate states its force on that coordinate.
    """
    if kind == "offset" and len(line) == 1:
        (coordinate, a), line = next(iter(line.items())), {}
        line, value = {coordinate: 1.0}, value * a
    constants = {"rest": rest} if rest != 0.0 else {}
    e = Element(kind=kind, on=line, value=value, constants=constants)
    if e.parameter_name in taken:
        e = Element(kind=kind, on=line, value=value, constants=constants, name=f"{KINDS[kind].symbol}_{name}")
    taken.add(e.parameter_name)
    elements.append(e)


def _transmission(read: MjcfReader, node: XmlNode, rows: Mapping[str, Line], plain: bool) -> Transmission | None:
    """T = G⁻¹ of motors with a gear other than one; None where all have gear one, or where G is not regular, which is noted."""
    if all(list(row.values()) == [1.0] for row in rows.values()):
        return None
    joints = tuple(dict.fromkeys(c for row in rows.values() for c in row))
    G = np.array([[row.get(c, 0.0) for c in joints] for row in rows.values()])
    if not plain or G.shape[0] != G.shape[1] or not np.linalg.cond(G) < LARGEST_CONDITION:
        what = "gears of actuators are not read: there is not one motor with a linear law for each joint."
        read.note(node, what, "actuator")
        return None
    return Transmission(tuple(rows), joints, np.linalg.inv(G))
