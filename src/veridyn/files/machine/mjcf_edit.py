"""An MJCF file with the values of a machine: inertias, joints and servos change in a copy, shapes, sites, sensors and comments stay.

A body keeps the frame that it has in the file, so its inertia is stated there as it is. Of joints the attributes change whose value
differs. A control law of kind pd becomes the <position> actuator of its joint, kp (u − q) − kd q̇, also where that was a <motor>.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from veridyn.errors import Fault, Faults, ModelError, part_at
from veridyn.files.machine.mjcf import MjcfFile
from veridyn.files.machine.mjcf_parts import Carried, JointLaw, inertial_attributes, ten_of, text_of_numbers
from veridyn.files.machine.urdf_xml import XmlEdits, XmlNode, bytes_of, check_same_machine, parse_xml
from veridyn.model.controller import Controller
from veridyn.model.machine import Machine

LAWS = ("stiffness", "damping", "armature", "frictionloss")
KEPT = ("name", "joint", "group", "user")  # of an actuator whose law changes
STEP_S = 0.002  # of MuJoCo where a file states none


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
