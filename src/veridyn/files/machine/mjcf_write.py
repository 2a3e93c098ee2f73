"""MJCF written: an open machine as the model file of MuJoCo, with the same frames, inertias, passive forces and motors.

Bodies keep their frames, so each joint acts along z. MuJoCo's equations of motion are then those of veridyn: inertia, armature, springs and
damping agree to rounding; dry friction (frictionloss) is a soft constraint in MuJoCo, which at rest creeps and slides with the same force.

In a copy of a file that exists a body keeps its frame, so its inertia is stated there as it is. Of joints the attributes change whose value
differs. A control law of kind pd becomes the <position> actuator of its joint, kp (u − q) − kd q̇, also where that was a <motor>.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import DataWarning, Fault, Faults, ModelError, part_at, warn
from veridyn.files.access import refuse_to_replace, write_atomic
from veridyn.files.machine.joint_laws import (
    Carried,
    JointLaw,
    inertial_attributes,
    ten_of,
    text_of_numbers,
    with_rigid_friction,
)
from veridyn.files.machine.mjcf import MjcfFile
from veridyn.files.machine.urdf import free_name
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.files.machine.urdf_xml import XmlEdits, XmlNode, bytes_of, check_same_machine, parse_xml
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.controller import Controller
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND
from veridyn.spatial.inertia import broken_law
from veridyn.spatial.rotations import quaternion

WORLD = "world"  # the name of MuJoCo's ground
LAWS = ("stiffness", "damping", "armature", "frictionloss")
KEPT = ("name", "joint", "group", "user")  # of an actuator whose law changes
STEP_S = 0.002  # of MuJoCo where a file states none


@checked
def save_mjcf(
    machine: Machine | Fit,
    path: str | Path,
    limits: Mapping[str, UrdfLimits] | None = None,
    overwrite: bool = False,
    like: str | Path | None = None,
) -> None:
    """Write a machine as an MJCF file, which MuJoCo and :func:`~veridyn.files.machine.load.load_model` read.

    Parameters
    ----------
    machine : Machine or Fit
        An open machine on a fixed or free base; of a fit, the identified machine (``fit.standard``).
    path : str or path
        The file, which appears whole or not at all.
    limits : mapping of coordinates to limits, or None
        Ranges of joints (rad or m) and of motors (N*m or N), as :func:`~veridyn.files.machine.urdf.urdf_limits` gives them.
    overwrite : bool
        Replace a file that exists; it is left alone by default.
    like : str or path, or None
        An MJCF file of this machine, a copy of which gets its values: inertias, stiffness, damping, armature and dry friction of joints,
        and <position> actuators for control laws of kind pd. Shapes, sites, sensors, comments and limits stay as they are.

    Returns
    -------
    None

    Raises
    ------
    ModelError
        Where the model would move otherwise: closed loops, shared coordinates, tyres, values that are missing or that no body has.

    Warns
    -----
    DataWarning
        One for each kind of element without a counterpart, for sensors, loads and prescribed coordinates: they are left out.

    Examples
    --------
    >>> from veridyn.files import load_model, save_mjcf
    >>> save_mjcf(load_model("veridyn:arm.yaml"), "arm.xml")
    >>> load_model("arm.xml").coordinates == load_model("veridyn:arm.yaml").coordinates
    True
    """
    refuse_to_replace(Path(path), overwrite)
    machine, softened = with_rigid_friction(machine.valued if isinstance(machine, Fit) else machine)
    if like is None:
        data, left_out = mjcf_text(machine, limits).encode("utf-8"), _left_out(machine)
    else:
        _refuse_missing(machine, Carried.of(machine), Faults())
        data, left_out = (edited := edited_mjcf(machine, Path(like))).data, edited.notes
    write_atomic(path, data, overwrite)
    for fault in (*left_out, *softened):
        warn(DataWarning, Fault(f"{Path(path).name}: {fault}"))


def mjcf_text(machine: Machine, limits: Mapping[str, UrdfLimits] | None = None) -> str:
    """The text of an MJCF file of an open machine; see :func:`save_mjcf`."""
    carried = Carried.of(machine)
    _check(machine, carried)
    root = ElementTree.Element("mujoco", model=machine.name)
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="true")
    ElementTree.SubElement(root, "option", gravity=text_of_numbers(machine.gravity))
    nodes = {GROUND: ElementTree.SubElement(root, "worldbody")}
    bodies = bodies_of(machine)
    names = _names([b.name for b in bodies])
    for j, b in enumerate(bodies):
        here = ElementTree.SubElement(nodes[b.antecedent or GROUND], "body", name=names[b.name])
        nodes[b.name] = here
        R, p = b.placement.rotation, b.placement.position
        if np.any(p != 0.0):
            here.set("pos", text_of_numbers(p))
        if not np.array_equal(R, np.eye(3)):
            here.set("quat", text_of_numbers(quaternion(R)))
        if machine.base == "free" and j == 0:
            ElementTree.SubElement(here, "freejoint", name=free_name(f"{names[b.name]}_free", machine.coordinates))
        elif b.joint != "fixed":
            _joint(here, b, carried.joints[b.coordinate_name], limits or {})
        moving = machine.base == "free" or b.joint != "fixed"
        ten = ten_of(machine, b) if b.real else None
        if moving or (ten is not None and ten[9] != 0.0):
            ElementTree.SubElement(here, "inertial", inertial_attributes(ten, moving))
    _tendons(root, carried)
    _actuators(root, machine, carried, limits or {})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _joint(here: ElementTree.Element, b: Body, law: JointLaw, limits: Mapping[str, UrdfLimits]) -> None:
    kind = "hinge" if b.joint == "turning" else "slide"
    made = {"name": b.coordinate_name, "type": kind, "axis": "0 0 1"}
    if (limit := limits.get(b.coordinate_name)) is not None and np.isfinite([limit.lower, limit.upper]).all():
        made["range"] = text_of_numbers([limit.lower, limit.upper])
    ElementTree.SubElement(here, "joint", {**made, **law.attributes("springref")})


def _tendons(root: ElementTree.Element, carried: Carried) -> None:
    """A fixed tendon for each combination of coordinates on which elements act."""
    if not carried.tendons:
        return
    section = ElementTree.SubElement(root, "tendon")
    for k, (line, law) in enumerate(carried.tendons.items()):
        tendon = ElementTree.SubElement(
            section, "fixed", {"name": f"combined{k + 1}", **law.attributes("springlength")}
        )
        for coordinate, a in line:
            ElementTree.SubElement(tendon, "joint", joint=coordinate, coef=repr(-a if law.flipped else a))


def _actuators(root: ElementTree.Element, machine: Machine, carried: Carried, limits: Mapping[str, UrdfLimits]) -> None:
    """A motor for each actuated coordinate, of gear 1 or as the transmission has it, and constant forces as biases.

    A transmission q = T q_m makes the length of motor m Σ (T⁻¹)ₘᵢ qᵢ: a gear where that is one coordinate, else a fixed tendon.
    """
    section = ElementTree.SubElement(root, "actuator")
    driven: list[tuple[str, dict[str, float]]] = []
    through = machine.transmission
    geared = () if through is None else through.joints
    if through is not None:
        back = np.linalg.inv(through.matrix)
        for m, motor in enumerate(through.motors):
            driven.append((motor, {c: float(x) for c, x in zip(geared, back[m], strict=True) if x != 0.0}))
    driven += [(c, {c: 1.0}) for c in machine.actuated_coordinates if c not in geared]
    bias = {c: law.bias for c, law in carried.joints.items() if law.bias != 0.0}
    for motor, acts in driven:
        made = {"name": motor}
        if len(acts) == 1:
            coordinate, gear = next(iter(acts.items()))
            made["joint"] = coordinate
            made |= {} if gear == 1.0 else {"gear": repr(gear)}
            limit = limits.get(coordinate)
            if limit is not None and 0.0 < limit.effort < np.inf:
                reach = limit.effort / abs(gear)
                made["ctrlrange"] = text_of_numbers([-reach, reach])
            off = bias.pop(coordinate, 0.0)
            if off != 0.0:
                made |= {"biastype": "affine", "biasprm": text_of_numbers([-off / gear, 0.0, 0.0])}
                ElementTree.SubElement(section, "general", made)
                continue
        else:
            made["tendon"] = _line(root, f"{motor} transmission", acts)
        ElementTree.SubElement(section, "motor", made)
    still = {"gainprm": "0", "biastype": "affine"}
    for coordinate, off in bias.items():
        value = text_of_numbers([-off, 0.0, 0.0])
        ElementTree.SubElement(
            section, "general", {"name": f"off_{coordinate}", "joint": coordinate, **still, "biasprm": value}
        )
    for k, law in enumerate(carried.tendons.values()):
        if law.bias != 0.0:
            acts = {"name": f"off_combined{k + 1}", "tendon": f"combined{k + 1}"}
            value = text_of_numbers([law.bias if law.flipped else -law.bias, 0.0, 0.0])
            ElementTree.SubElement(section, "general", {**acts, **still, "biasprm": value})


def _line(root: ElementTree.Element, name: str, acts: Mapping[str, float]) -> str:
    """A fixed tendon without forces of its own, for a motor that moves several joints."""
    section = root.find("tendon")
    if section is None:
        section = ElementTree.Element("tendon")
        root.insert(list(root).index(next(n for n in root if n.tag == "actuator")), section)
    tendon = ElementTree.SubElement(section, "fixed", name=name)
    for coordinate, a in acts.items():
        ElementTree.SubElement(tendon, "joint", joint=coordinate, coef=repr(a))
    return name


def _check(machine: Machine, carried: Carried) -> None:
    """Refuse what would move otherwise in MuJoCo."""
    faults = Faults()
    where, bodies = machine.name, bodies_of(machine)
    if machine.closed:
        hint = "MuJoCo holds loops by soft constraints; cut the machine open first."
        what = f"an MJCF file of an open tree cannot hold its {len(machine.cut_joints)} closed loops."
        faults.add(what, where=where, hint=hint)
    if machine.shares_coordinates:
        counts = {c: sum(b.coordinate_name == c for b in bodies) for c in machine.coordinates}
        shared = ", ".join(c for c, n in counts.items() if n > 1)
        faults.add("joints that share a coordinate have no counterpart in MJCF.", where=where, found=shared)
    for b in bodies:
        if b.joint != "fixed" and b.ratio != 1.0 and not machine.shares_coordinates:
            what = "a joint that moves by a ratio of its coordinate has no counterpart in MJCF."
            faults.add(what, where=part_at("body", b.name), found=f"ratio {b.ratio:g}")
    if machine.wheels:
        names = ", ".join(e.parameter_name for e in machine.wheels)
        faults.add("tyres have no counterpart in MJCF.", where=where, found=names)
    _refuse_missing(machine, carried, faults)
    for b in bodies:
        if b.real and (law := broken_law(ten_of(machine, b))):
            what, hint = f"no distribution of mass has this inertia: {law}.", "MuJoCo takes physical bodies only;"
            faults.add(what, where=part_at("body", b.name), hint=f"{hint} estimate with 'consistent'.")
    for name, law in [
        *carried.joints.items(),
        *((" and ".join(c for c, _ in k), v) for k, v in carried.tendons.items()),
    ]:
        for word in law.negative():
            found = f"{getattr(law, word):g}"
            faults.add(f"its {word} is below zero.", where=part_at("coordinate", name), found=found)
    faults.raise_if_any(ModelError, machine.name)


def _refuse_missing(machine: Machine, carried: Carried, faults: Faults) -> None:
    """Every parameter that the file holds needs a value; with other `faults`, which were found before."""
    gone = {name for names in carried.left_out.values() for name in names}
    unknown = [name for name in machine.parameters.missing() if name not in gone]
    if unknown:
        listed = ", ".join(unknown[:8]) + (", …" if len(unknown) > 8 else "")
        hint = "Identify them, or give values."
        faults.add(f"{len(unknown)} parameters have no value: {listed}.", where=machine.name, hint=hint)
        faults.raise_if_any(ModelError, machine.name)


def _left_out(machine: Machine) -> list[str]:
    """One sentence for each kind of thing that an MJCF file of this machine does not have."""
    sentences = [
        f"MJCF has no counterpart of elements of the kind '{kind}', left out: {', '.join(names)}."
        for kind, names in Carried.of(machine).left_out.items()
    ]
    parts = (("sensors", machine.sensors), ("loads", machine.loads), ("controllers", machine.controllers))
    sentences += [f"its {len(part)} {word} are left out." for word, part in parts if part]
    if machine.prescribed:
        sentences.append(f"prescribed coordinates are driven by motors in MJCF: {', '.join(machine.prescribed)}.")
    return sentences


def _names(taken: list[str]) -> dict[str, str]:
    """Bodies by the names they get: that of MuJoCo's ground is taken."""
    return {name: free_name(f"{name}_link", taken) if name == WORLD else name for name in taken}


@dataclass(frozen=True)
class Edited:
    """The new file, and a sentence for each thing that it could not take, or took in another sense."""

    data: bytes
    notes: tuple[str, ...]


def edited_mjcf(machine: Machine, like: Path) -> Edited:
    """The file `like` with the values of a machine that it describes."""
    data = bytes_of(like, "xml")
    file = MjcfFile(parse_xml(data, like.name, "MJCF"), like.name, machine.base)
    _refuse_included(file)
    before = file.machine(False)
    check_same_machine(machine, before, like.name)
    edit = _Edit(machine, before, file, XmlEdits(data))
    edit.bodies()
    edit.joints()
    edit.servos()
    edit.faults.raise_if_any(ModelError, like.name)
    text = edit.edits.applied()
    _check_read_back(machine, text, like.name)
    return Edited(text, tuple(edit.notes))


def _refuse_included(file: MjcfFile) -> None:
    included = [node for node in file.root.walk() if node.tag == "include"]
    if included:
        what = "values in included files are not changed, so that a file is edited that has no <include>."
        names = ", ".join(node.attributes.get("file", "") for node in included)
        hint = "Save it as one file in MuJoCo (mj_saveLastXML), or leave --like out."
        raise ModelError(Fault(what, "<include>", found=names, hint=hint, line=included[0].line), file.source)


@dataclass
class _Edit:
    """The changes to one file."""

    machine: Machine
    before: Machine
    file: MjcfFile
    edits: XmlEdits
    notes: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def bodies(self) -> None:
        """<inertial> of each body whose inertia is another."""
        for link in self.machine.links:
            if not link.real:
                continue
            ten = ten_of(self.machine, link)
            if np.array_equal(ten, ten_of(self.before, link)):
                continue
            node = self.file.links[link.name].node
            made = inertial_attributes(ten)
            where = part_at("body", link.name)
            if self.file.read.compiler.inertiafromgeom == "true":
                hint = 'Write inertiafromgeom="auto" into its <compiler>.'
                self.faults.add(
                    "this file takes inertias from geoms, whatever a body states.",
                    where=where,
                    line=node.line,
                    hint=hint,
                )
            elif (inertial := node.first("inertial")) is not None:
                self.edits.replace(inertial, "inertial", made)
            elif not node.children:
                self.faults.add("this body has no place for an inertia.", where=where, line=node.line)
            else:
                self.edits.insert(node, "inertial", made)

    def joints(self) -> None:
        """What acts along each joint; combinations and constant forces stay as the file has them."""
        new, old = Carried.of(self.machine), Carried.of(self.before)
        for coordinate, law in new.joints.items():
            self.faults.extend(
                Fault(f"its {word} is below zero.", part_at("coordinate", coordinate), found=f"{getattr(law, word):g}")
                for word in law.negative()
            )
            changed = self._changed(coordinate, law, old.joints[coordinate])
            if changed:
                self.edits.set(self.file.joints[coordinate], changed)
        forces = [c for c, law in new.joints.items() if law.bias != old.joints[c].bias]
        if forces:
            self.notes.append(f"constant forces stay as in the file: {', '.join(forces)}.")
        if {k: vars(v) for k, v in new.tendons.items()} != {k: vars(v) for k, v in old.tendons.items()}:
            self.notes.append("what acts on combinations of joints stays as in the file.")
        self.notes += [
            f"MJCF has no counterpart of elements of the kind '{kind}', left out: {', '.join(names)}."
            for kind, names in new.left_out.items()
        ]

    def _changed(self, coordinate: str, law: JointLaw, old: JointLaw) -> dict[str, str]:
        made = {word: repr(float(getattr(law, word))) for word in LAWS if getattr(law, word) != getattr(old, word)}
        if law.stiffness != 0.0 and law.rest != old.rest:
            turning = self.machine.kinds[coordinate] == "turning"
            degrees = turning and self.file.read.compiler.degree
            made["springref"] = repr(math.degrees(law.rest) if degrees else float(law.rest))
        return made

    def servos(self) -> None:
        """<position> for each control law of kind pd on a joint that an actuator drives."""
        actuators = {node.attributes.get("joint", ""): node for node in self._actuators()}
        turned: list[str] = []
        for c in self.machine.controllers:
            node = actuators.get(c.on)
            if c.kind != "pd" or c.motor or node is None or node.tag not in ("motor", "position"):
                what = "no actuator of its joint" if node is None else f"<{node.tag}> of its joint stays"
                self.notes.append(f"control law '{c.name}' of kind {c.kind} is left out: {what}.")
                continue
            made = {key: node.attributes[key] for key in KEPT if key in node.attributes}
            self.edits.replace(node, "position", made | self._servo(c))
            turned += [c.on] if node.tag == "motor" else []
            lost = self._lost(c)
            if lost:
                self.notes.append(f"of control law '{c.name}' {', '.join(lost)} have no place in MJCF.")
        if turned:
            self.notes.append(f"actuators that took forces take positions now: {', '.join(turned)}.")

    def _actuators(self) -> Iterator[XmlNode]:
        for section in self.file.root.children:
            if section.tag == "actuator":
                yield from section.children

    def _servo(self, c: Controller) -> dict[str, str]:
        made = {"kp": repr(c.constant("kp")), "kv": repr(c.constant("kd")), "ctrllimited": "false"}
        limit, delay = c.constant("limit"), c.constant("command_delay")
        if math.isfinite(limit):
            made["forcerange"] = text_of_numbers([-limit, limit])
        if delay > 0.0:  # as many past commands as the delay takes, and two for rounding
            options = [node for node in self.file.root.children if node.tag == "option"]
            steps = [self.file.read.number(node, "timestep", STEP_S, "option") for node in options]
            samples = math.ceil(delay / (steps[-1] if steps else STEP_S)) + 2
            made |= {"delay": repr(delay), "nsample": str(samples), "interp": "linear"}
        return made

    def _lost(self, c: Controller) -> list[str]:
        """What a <position> actuator does not have: it acts on q̇ and not on ė, and at every step."""
        zero = (
            "velocity_feedforward",
            "acceleration_feedforward",
            "measurement_delay",
            "load_friction",
            "backdrive_friction",
        )
        found = [key for key in zero if c.constant(key) != 0.0]
        found += ["rate_limit"] if math.isfinite(c.constant("rate_limit")) else []
        found += [f"feedforward: {c.feedforward}"] if c.feedforward != "none" else []
        return [*found, "its rate and the command's speed"]


def _check_read_back(machine: Machine, data: bytes, source: str) -> None:
    """Refuse to write a file whose bodies and joints, read again, are not those of the machine."""
    again = MjcfFile(parse_xml(data, source, "MJCF"), source, machine.base).machine(False)
    faults = Faults()
    for link in machine.links:
        if link.real and not np.allclose(
            ten_of(again, link), ten_of(machine, link), rtol=1e-9, atol=1e-9 * np.abs(ten_of(machine, link)).max()
        ):
            faults.add("read again, its inertia is another; nothing was written.", where=part_at("body", link.name))
    new, old = Carried.of(machine).joints, Carried.of(again).joints
    for c in new:
        if any(getattr(new[c], word) != getattr(old[c], word) for word in LAWS):
            faults.add("read again, what acts on it is another; nothing was written.", where=part_at("coordinate", c))
    faults.raise_if_any(ModelError, source)
