"""MJCF read: bodies and joints of a MuJoCo model become a :class:`~veridyn.model.machine.Machine`; MuJoCo itself is not needed.

A body keeps its frame, and its inertial parameters stand in it. A joint along z of that frame, at its origin, carries the body itself; any
other joint, and each of several on one body, is carried by a virtual body with z along its axis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import At, DataWarning, ModelError, part_at, warn, with_line
from veridyn.files.machine.mjcf_reader import IDENTITY, Frame, MjcfReader, read_drives, read_root, together
from veridyn.files.machine.urdf import ROW_NAMES, free_name
from veridyn.files.machine.urdf_reader import UrdfLimits, UrdfLink, broken_inertias, check_word, warnings_of
from veridyn.files.machine.urdf_xml import XmlNode
from veridyn.mechanics.tree.check import check_tree
from veridyn.model.elements.element import Element
from veridyn.model.graph import Body, BodyJoint
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rot_z, rotation_to_axis, snapped

Base = Literal["auto", "fixed", "free"]
VIRTUAL = 1e-13  # kg and kg*m^2: a body with less is one without inertia that MuJoCo would not take as such
KINDS: dict[str, BodyJoint] = {"hinge": "turning", "slide": "sliding"}
UNREAD_PARTS = ("composite", "replicate", "attach", "flexcomp", "plugin")
UNREAD_SECTIONS = ("equality", "deformable", "sensor", "extension")


@checked
def load_mjcf(path: str | Path, base: Base = "auto", *, strict: bool = False) -> Machine:
    """The machine that an MJCF file describes.

    Parameters
    ----------
    path : str or path
        The file; what it includes lies in its folder or below.
    base : {"auto", "fixed", "free"}
        "auto": free where the root body has a free joint. "fixed" welds it to the ground; "free" lets a root without joints move.
    strict : bool
        Refuse inertias that no physical body has; otherwise they are unknown, with a warning.

    Returns
    -------
    Machine
        Coordinates are named after the joints. Stiffness, damping, armature and frictionloss other than zero become elements that are
        estimated, with the file's value as prior; so do those of fixed tendons. Joints with an actuator are actuated, all of them where
        the file has no ``<actuator>`` section; gears other than one make a transmission. A body whose inertia MuJoCo would compute
        from its geoms has unknown inertia.

    Raises
    ------
    FileError, ModelError
        With every fault of the file, by name and line.

    Warns
    -----
    DataWarning
        One for each kind of thing that is not read: equality constraints, spatial tendons, servo laws, …
    """
    check_word("base", base, ("auto", "fixed", "free"))
    file = Path(path)
    made = MjcfFile(read_root(file), file.name, base)
    machine = made.machine(strict)
    for fault in warnings_of(made.read.notes.found, made.links, "refuse" if strict else "unknown", file.name):
        warn(DataWarning, fault)
    return machine


@checked
def mjcf_limits(path: str | Path) -> dict[str, UrdfLimits]:
    """The range of each hinge and slide of an MJCF file by name, rad or m; infinite where it has none."""
    file = Path(path)
    made = MjcfFile(read_root(file), file.name, "auto")
    made.machine(False)
    return made.limits


@dataclass
class MjcfFile:
    """A file being read: what its bodies and joints make, with the line and the element of each."""

    root: XmlNode
    source: str
    base: Base
    read: MjcfReader = field(default_factory=MjcfReader)
    bodies: list[Body] = field(default_factory=list)
    links: dict[str, UrdfLink] = field(default_factory=dict)
    elements: list[Element] = field(default_factory=list)
    joints: dict[str, XmlNode] = field(default_factory=dict)
    limits: dict[str, UrdfLimits] = field(default_factory=dict)
    rests: dict[str, float] = field(default_factory=dict)
    lines: dict[At, int] = field(default_factory=dict)
    free: str = ""

    def machine(self, strict: bool) -> Machine:
        read, root = self.read, self.root
        read.check_words(root)
        read.read_compiler(root)
        read.read_defaults(root)
        gravity = self._gravity()
        self._walk()
        if not self.bodies and not read.faults:
            read.fault(root, "there is no body.", "worldbody", "<body>")
        drives = read_drives(read, root, self.rests, self.elements)
        for tag in UNREAD_SECTIONS:
            for node in (child for section in root.children if section.tag == tag for child in section.children):
                if node.attributes.get("active", "true") != "false":
                    tail = ": the machine is an open tree." if tag == "equality" else "."
                    read.note(node, f"<{node.tag}> of <{tag}> is not read{tail}")
        broken = broken_inertias(self.links)
        if strict:
            read.faults.extend(broken.values())
        kind = self._base()
        bodies = [self._actuated(b, drives.driven) for b in self.bodies]
        elements = [*self.elements, *drives.elements]
        given = {k: x.ten for k, x in self.links.items() if x.ten is not None and k not in broken}
        faults = list(read.faults.found)
        if not faults:
            faults = [with_line(f, self.lines) for f in check_tree(bodies, elements, given, kind, gravity)]
        if faults:
            raise ModelError(sorted(faults, key=lambda f: f.line or 0), self.source)
        name = root.attributes.get("model") or Path(self.source).stem
        return Machine.of_bodies(
            bodies,
            name=name,
            base=kind,
            gravity=gravity,
            inertia=given,
            elements=elements,
            transmission=drives.transmission,
        )

    def _gravity(self) -> Array:
        g = np.array([0.0, 0.0, -9.81])
        for node in (child for child in self.root.children if child.tag == "option"):
            g = self.read.numbers(node, "gravity", g.tolist(), "option")
            for key, count in (("wind", 3), ("density", 1), ("viscosity", 1)):
                if self.read.numbers(node, key, [0.0] * count, "option").any():
                    self.read.note(node, f"'{key}' of <option> is not read: no fluid acts on the machine.")
            flag = node.first("flag")
            if flag is not None and flag.attributes.get("gravity") == "disable":
                g = np.zeros(3)
        return g

    def _walk(self) -> None:
        """All bodies in the order of the file; a <frame> only places what is inside it."""
        waiting: list[tuple[XmlNode, str, Frame, str]] = []
        for world in reversed([node for node in self.root.children if node.tag == "worldbody"]):
            inside = world.attributes.get("childclass", "main")
            waiting += [(child, GROUND, IDENTITY, inside) for child in reversed(world.children)]
        while waiting:
            node, parent, outer, around = waiting.pop()
            if node.tag not in ("body", "frame"):
                if node.tag in UNREAD_PARTS:
                    self.read.fault(
                        node, f"<{node.tag}> makes bodies that this reader does not see.", f"body '{parent}'"
                    )
                continue
            around = node.attributes.get("childclass", around)
            here = together(outer, self.read.frame(node, f"<{node.tag}>"))
            name = parent if node.tag == "frame" else self._body(node, parent, here, around)
            inner = here if node.tag == "frame" else IDENTITY
            waiting += [(child, name, inner, around) for child in reversed(node.children)]

    def _body(self, node: XmlNode, parent: str, here: Frame, around: str) -> str:
        name = node.attributes.get("name", "") or f"body{len(self.links) + 1}"
        if name == GROUND:
            name = free_name(f"{name}_link", self.links)
            self.read.note(node, f"a body called '{GROUND}' is renamed '{name}'.")
        where = part_at("body", name)
        if name in self.links:
            self.read.fault(node, "there are two bodies of this name.", where)
            name = free_name(name, self.links)
        ten = self._inertial(node, where, around)
        self.links[name] = UrdfLink(name, node, ten, np.eye(3))
        self.lines["body", name] = node.line
        if self.read.number(node, "gravcomp", 0.0, where) != 0.0:
            self.read.note(node, "'gravcomp' is not read: gravity acts on the whole body.", where)
        real = ten is not None or self._weighed_by_geoms(node, where, around)
        joints = [self.read.with_defaults(n, "joint", around) for n in node.children if n.tag == "joint"]
        floats = node.first("freejoint") is not None or any(j.attributes.get("type") == "free" for j in joints)
        if floats:
            self._floating(node, name, parent, len(joints))
            joints = []
        R, p = here
        if floats and self.base != "fixed":
            R, p = IDENTITY
        for k, joint in enumerate(joints):
            last = k == len(joints) - 1
            made = self._joint(joint, name, len(joints))
            if made is None:
                continue
            coordinate, kind, axis, at, ref = made
            straight = last and np.array_equal(axis, (0.0, 0.0, 1.0)) and not at.any()
            turn = np.eye(3) if np.array_equal(axis, (0.0, 0.0, 1.0)) else rotation_to_axis(axis)
            p = p + R @ at
            R = snapped(R @ turn)
            here_R, here_p = (R @ rot_z(-ref), p) if kind == "turning" else (R, p - ref * R[:, 2])
            carrier = name if straight else free_name(f"{coordinate}_axis", self.links)
            own = Placement(here_R, here_p)
            self.bodies.append(Body(carrier, parent, kind, own, real=real and straight, coordinate=coordinate))
            self.lines["body", carrier] = joint.line
            if straight:
                return name
            self.links.setdefault(carrier, UrdfLink(carrier, joint, None, np.eye(3)))
            parent, R, p = carrier, turn.T, turn.T @ -at
        self.bodies.append(Body(name, parent, "fixed", Placement(snapped(R), p), real=real))
        return name

    def _floating(self, node: XmlNode, name: str, parent: str, joints: int) -> None:
        """A free joint makes its body the base."""
        where = part_at("body", name)
        if parent != GROUND:
            self.read.fault(node, "only a body on the ground may have a free joint.", where)
        elif self.free:
            self.read.fault(
                node, "there are two free bodies, and a machine has one base.", where, found=f"'{self.free}' too"
            )
        elif joints > 1 or (joints and node.first("freejoint") is not None):
            self.read.fault(node, "a body with a free joint has no other.", where)
        self.free = name

    def _joint(self, node: XmlNode, body: str, count: int) -> tuple[str, BodyJoint, Array, Array, float] | None:
        """Coordinate, kind, axis, position and reference of a hinge or slide; its elements and limits are kept."""
        read = self.read
        name = node.attributes.get("name", "") or (body if count == 1 else f"{body}_{len(self.rests) + 1}")
        where = part_at("joint", name)
        kind = node.attributes.get("type", "hinge")
        if kind not in KINDS:
            read.fault(
                node, f"a joint of type '{kind}' is not read.", where, "hinge, slide, or a free joint of the root"
            )
            return None
        if name in ROW_NAMES:
            read.note(node, f"a joint called '{name}' is renamed '{name}_joint'.")
            name = f"{name}_joint"
        if name in self.rests:
            read.fault(node, "there are two joints of this name.", where)
            name = free_name(name, self.rests)
        axis = read.numbers(node, "axis", [0.0, 0.0, 1.0], where)
        size = float(np.linalg.norm(axis))
        if size < 1e-12:
            read.fault(node, "its axis has no direction.", where, "a vector", f"'{node.attributes.get('axis')}'")
            axis, size = np.array([0.0, 0.0, 1.0]), 1.0
        scale = read.compiler.angle if kind == "hinge" else float
        ref, rest = (scale(read.number(node, key, 0.0, where)) for key in ("ref", "springref"))
        self.rests[name], self.joints[name] = rest, node
        self._law(node, name, where, rest)
        low, high = read.numbers(node, "range", [0.0, 0.0], where)
        limited = node.attributes.get("limited", "auto")
        if limited == "true" or (limited == "auto" and low < high):
            self.limits[name] = UrdfLimits(scale(float(low)), scale(float(high)))
        else:
            self.limits[name] = UrdfLimits()
        return name, KINDS[kind], snapped(axis / size), read.numbers(node, "pos", [0.0] * 3, where), ref

    def _law(self, node: XmlNode, name: str, where: str, rest: float) -> None:
        read = self.read
        if read.numbers(node, "springdamper", [0.0, 0.0], where).any():
            read.note(node, "'springdamper' is not read: stiffness and damping are those stated.", where)
        stiffness, damping = (read.polynomial(node, key, where) for key in ("stiffness", "damping"))
        armature, friction = (read.number(node, key, 0.0, where) for key in ("armature", "frictionloss"))
        found = (("spring", stiffness), ("damper", damping), ("inertia", armature), ("coulomb", friction))
        for kind, value in found:
            if value != 0.0:
                constants = {"rest": rest} if kind == "spring" and rest != 0.0 else {}
                self.elements.append(Element(kind=kind, on={name: 1.0}, value=value, constants=constants))
                self.lines["element", self.elements[-1].parameter_name] = node.line

    def _inertial(self, node: XmlNode, where: str, around: str) -> Array | None:
        """Ten parameters about the body's origin; None where there are none, or less than a body has."""
        inertial = node.first("inertial")
        if inertial is None or self.read.compiler.inertiafromgeom == "true":
            return None
        read, before = self.read, len(self.read.faults.found)
        if sum(child.tag == "inertial" for child in node.children) > 1:
            read.fault(node, "it has <inertial> more than once.", where)
        if "mass" not in inertial.attributes or "pos" not in inertial.attributes:
            read.fault(inertial, "its <inertial> has no mass or no pos.", where)
        mass = read.number(inertial, "mass", 0.0, where)
        R, centre = read.frame(inertial, where)
        if "fullinertia" in inertial.attributes:
            xx, yy, zz, xy, xz, yz = read.numbers(inertial, "fullinertia", [0.0] * 6, where)
            J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            if "diaginertia" in inertial.attributes:
                read.fault(inertial, "its inertia is given twice.", where, "diaginertia or fullinertia")
        else:
            J = np.diag(read.numbers(inertial, "diaginertia", [0.0] * 3, where))
        if len(read.faults.found) > before or (mass <= VIRTUAL and np.abs(J).max() <= VIRTUAL):
            return None
        return from_centre(mass, centre, R @ J @ R.T)

    def _weighed_by_geoms(self, node: XmlNode, where: str, around: str) -> bool:
        """Whether MuJoCo would compute the body's inertia from its geoms."""
        how = self.read.compiler.inertiafromgeom
        if how == "false" or (how == "auto" and node.first("inertial") is not None):
            return False
        waiting, found = [(child, around) for child in node.children], False
        while waiting and not found:
            child, inside = waiting.pop()
            if child.tag == "frame":
                waiting += [(c, child.attributes.get("childclass", inside)) for c in child.children]
            elif child.tag == "geom":
                full = self.read.with_defaults(child, "geom", inside)
                weightless = any(self.read.number(full, key, 1.0, where) == 0.0 for key in ("mass", "density"))
                found = not weightless and full.attributes.get("type", "sphere") not in ("plane", "hfield")
        if found:
            self.read.note(node, "inertia from geoms is not computed: the body's ten parameters are unknown.", where)
        return found

    def _base(self) -> Literal["fixed", "free"]:
        """What the base is, with the bodies changed to fit."""
        if self.base == "fixed" or (self.base == "auto" and not self.free):
            return "fixed"
        roots = [b for b in self.bodies if b.antecedent == GROUND]
        root = self.free or (roots[0].name if len(roots) == 1 and roots[0].joint == "fixed" else "")
        if not root:
            what = "the root cannot move freely: it has a joint, or there are several."
            self.read.fault(self.root, what, "base", "one body without joints on the ground")
            return "fixed"
        others = [b for b in roots if b.name != root]
        still = self._still([b.name for b in others])
        if others and not still:
            what = "other bodies than the free base move on the ground."
            self.read.fault(self.root, what, "worldbody", found=", ".join(b.name for b in others))
            return "fixed"
        if others:
            self.read.note(self.root, "bodies that stand on the ground beside the free base are left out.")
        kept = [b for b in self.bodies if b.name not in still]
        self.links = {k: v for k, v in self.links.items() if k not in still}
        first = next(b for b in kept if b.name == root)
        kept.remove(first)
        self.bodies = [Body(root, None, "fixed", Placement(), real=first.real), *kept]
        return "free"

    def _still(self, names: list[str]) -> set[str]:
        """These bodies and what they carry, where none of it moves; else nothing."""
        found = set(names)
        for b in self.bodies:
            if b.antecedent in found:
                found.add(b.name)
        return set() if any(b.joint != "fixed" for b in self.bodies if b.name in found) else found

    @staticmethod
    def _actuated(b: Body, driven: set[str] | None) -> Body:
        if b.joint == "fixed" or driven is None or b.coordinate in driven:
            return b
        return Body(b.name, b.antecedent, b.joint, b.placement, actuated=False, real=b.real, coordinate=b.coordinate)
