"""Tendons and actuators of an MJCF file: elements on combinations of coordinates, motors, their gears, and constant forces.

The length of an actuator is l = G q, with its gear and the coefficients of its tendon in a row of G, and its force acts on the joints as
Γ = Gᵀ f. So motors of a regular G are a :class:`~veridyn.model.load.Transmission` with T = G⁻¹.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from veridyn.files.machine.mjcf_reader import ACTUATORS, MjcfReader
from veridyn.files.machine.urdf_xml import XmlNode
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.load import Transmission

Line = dict[str, float]
LARGEST_CONDITION = 1e10  # of the gears: beyond it no transmission is made


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
