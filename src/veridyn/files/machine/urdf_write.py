"""URDF written: identified parameters put into a copy of the file the machine came from, where every other byte stays as it is; or anew.

In a new URDF the ground is a root link called "ground" without inertia; a free base hangs on it by a floating joint. It has no meshes.

Servos are written as ``<ros2_control>`` in the form that Gazebo's plugin reads: a joint with the gains of its position loop. What the tags
have no place for is named: delays, encoder zeros, limits and rates, laws other than PD and PID.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataWarning, Fault, Faults, ModelError, part_at, warn
from veridyn.files.access import refuse_to_replace, write_atomic
from veridyn.files.machine.joint_laws import ten_of, with_rigid_friction
from veridyn.files.machine.urdf import UrdfFile, read_urdf
from veridyn.files.machine.urdf_reader import SIX, UrdfJoint, UrdfLink
from veridyn.files.machine.urdf_xml import XmlEdits, bytes_of, check_same_machine
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.controller import Controller
from veridyn.model.elements.element import Element
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import GROUND
from veridyn.spatial.inertia import broken_law, six, to_centre
from veridyn.spatial.rotations import angles_of

AGREE = 1e-9  # of each row's largest force
SAMPLES = 12
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SYMBOLS = {"damper": "h", "coulomb": "fs"}
WORDS = {"damper": "damping", "coulomb": "friction"}
SERVO_PLUGIN = "gazebo_ros2_control/GazeboSystem"
SERVO_GAINS = {"kp": "pos_kp", "ki": "pos_ki", "kd": "pos_kd"}
SERVO_TAG = b"<ros2_control"
ROBOT_END = b"</robot>"
SERVO_LOST = {
    "command_delay": "delays of commands",
    "measurement_delay": "delays of measurements",
    "zero": "encoder zeros",
    "limit": "limits of force",
    "rate_limit": "limits of the force's rate",
    "load_friction": "friction that grows with load",
    "backdrive_friction": "friction of backdriven gears",
    "velocity_feedforward": "feed-forward of speed",
    "acceleration_feedforward": "feed-forward of acceleration",
}


@checked
def save_urdf(
    machine: Machine | Fit,
    path: str | Path,
    like: str | Path | None = None,
    overwrite: bool = False,
    allow_impossible: bool = False,
) -> None:
    """Write a copy of the URDF file `like` that has the parameters of a machine, or those that a fit identified.

    Without `like` a new URDF of the machine is written, with frames, inertias, damping and friction, and without shapes.

    Mass, centre of mass and inertia of each link, damping and friction of each joint are replaced where they differ;
    comments, meshes, limits and all else stay byte for byte. The new text is read again, and its inverse dynamics must
    agree with the machine's to 1e-9 of each row's largest force before the file appears. The machine must be that of
    `like`: the same links, joints and placements.

    Data determine base parameters, a URDF holds standard ones. A fit is written as ``fit.standard``: in each group the
    leading parameter takes what the data say, and its other members stay at their priors. These numbers give the forces
    of the fit, on what it excited; how a group is split among its links is the prior's word and not the data's. They may
    therefore belong to no real body. Such a set, or friction below zero, is refused with the law it breaks unless
    `allow_impossible` is given; estimate under the laws of physics to get one that is possible.

    A joint whose element the machine does not have gets zero. Elements that a URDF has no place for (springs, offsets, motor
    inertias, friction of combined joints, …) are left out with a :class:`~veridyn.errors.DataWarning` that names them. PD and PID
    controllers become joints of a ``<ros2_control>`` with the gains of Gazebo's position loop, where the file has none of its own.
    """
    machine, softened = with_rigid_friction(machine.valued if isinstance(machine, Fit) else machine)
    refuse_to_replace(Path(path), overwrite)
    name = Path(path).name
    data = _bare(machine) if like is None else bytes_of(Path(like))
    content = read_urdf(data, name if like is None else Path(like).name)
    if like is not None:
        check_same_machine(machine, content.machine(machine.base, machine.gravity, "keep"), content.source)
    placed = _placed(machine, content)
    _check_values(machine, placed, allow_impossible)
    text = _new_text(machine, placed.values).encode() if like is None else _edited(data, content, machine, placed)
    _check_agreement(_in_urdf(machine, placed.left_out), text, name)
    joints = [j.name for j in content.joints.values() if j.moves]
    text, notes = with_servos(text, machine, joints)
    marked = like is not None and Path(like).read_bytes().startswith(BYTE_ORDER_MARK)
    write_atomic(path, (BYTE_ORDER_MARK if marked else b"") + text, overwrite)
    lost = ", ".join(e.parameter_name for e in placed.left_out)
    for what in (*([f"a URDF has no place for {lost}: left out."] if lost else []), *notes, *softened):
        warn(DataWarning, Fault(what, where=Path(path).name, hint="A model file keeps them: save_model."))


def _bare(machine: Machine) -> bytes:
    """The URDF of a machine without what acts on its joints: it says which joint carries which coordinate."""
    _refuse_missing(machine, machine.parameters.missing())
    return _new_text(machine, {}).encode()


@dataclass
class _Placed:
    """Where elements go: joint → damping or friction, and those that go nowhere."""

    values: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    left_out: list[Element] = field(default_factory=list)


def _placed(machine: Machine, content: UrdfFile) -> _Placed:
    """A damper of value v on a q acts on the coordinate as one of v (a/ρ)² on a joint that moves by ρ q; dry friction as v |a/ρ|."""
    out = _Placed()
    followed = {j.name: content.followed(j) for j in content.joints.values() if j.moves}
    for e in machine.elements:
        if e.kind not in SYMBOLS or len(e.on) != 1 or next(iter(e.on)) not in followed:
            out.left_out.append(e)
            continue
        coordinate, a = next(iter(e.on.items()))
        # On its own joint by name where several share the coordinate, else on the one that leads them.
        named = [j for j in followed if e.parameter_name == f"{SYMBOLS[e.kind]}_{j}" and followed[j][0] == coordinate]
        joint = named[0] if named else coordinate
        share = abs(a / followed[joint][1])
        value = machine.parameters[e.parameter_name] * (share**2 if e.kind == "damper" else share)
        out.values[joint][WORDS[e.kind]] += value
    return out


def _check_values(machine: Machine, placed: _Placed, allow_impossible: bool) -> None:
    """Refuse what has no value, what a URDF cannot say, and, unless allowed, what no body can have."""
    faults = Faults()
    lost = {e.parameter_name for e in placed.left_out}
    _refuse_missing(machine, [name for name in machine.parameters.missing() if name not in lost])
    hint = "Estimate under the laws of physics, or pass allow_impossible=True."
    for link in machine.links:
        if not link.real:
            continue
        x = ten_of(machine, link)
        where = part_at("link", link.name)
        if x[9] == 0.0 and x[6:9].any():
            what = "a URDF states the centre of mass, and there is none: the mass is zero, the first moments are not."
            faults.add(what, where=where, found=", ".join(f"{v:g}" for v in x[6:9]))
        elif not allow_impossible and (law := broken_law(x)):
            faults.add(f"no distribution of mass has this inertia: {law}.", where=where, hint=hint)
    for joint, words in placed.values.items():
        for word, value in words.items():
            if value < 0.0 and not allow_impossible:
                what = f"its {word} is below zero, so it would drive the joint."
                faults.add(what, where=part_at("joint", joint), found=f"{value:g}", hint=hint)
    faults.raise_if_any(ModelError, machine.name)


def _refuse_missing(machine: Machine, unknown: Sequence[str]) -> None:
    if unknown:
        listed = ", ".join(unknown[:8]) + (", …" if len(unknown) > 8 else "")
        raise ModelError(f"{len(unknown)} parameters have no value: {listed}.", where=machine.name)


def _edited(data: bytes, content: UrdfFile, machine: Machine, placed: _Placed) -> bytes:
    edits = XmlEdits(data)
    for link in machine.links:
        if link.real:
            _edit_link(edits, content.links[link.name], ten_of(machine, link))
    for joint in content.joints.values():
        if joint.moves:
            _edit_joint(edits, joint, placed.values.get(joint.name, {}))
    return edits.applied()


def _edit_link(edits: XmlEdits, link: UrdfLink, x: Array) -> None:
    """Mass, centre and the inertia about it, in the axes the file's own rpy gives."""
    node = link.node.first("inertial")
    if node is None or link.ten is None or np.array_equal(x, link.ten):
        return
    mass, centre, J = to_centre(x)
    J = link.turned.T @ J @ link.turned
    xyz, origin = {"xyz": _text(centre)}, node.first("origin")
    if origin is None:
        edits.insert(node, "origin", xyz | {"rpy": "0 0 0"})
    else:
        edits.set(origin, xyz)
    moments = {str(key): _number(moment) for key, moment in zip(SIX, six(J), strict=True)}
    for tag, values in (("mass", {"value": _number(mass)}), ("inertia", moments)):
        if (part := node.first(tag)) is not None:
            edits.set(part, values)


def _edit_joint(edits: XmlEdits, joint: UrdfJoint, values: Mapping[str, float]) -> None:
    before = {"damping": joint.damping, "friction": joint.friction}
    new = {word: _number(v) for word, old in before.items() if (v := values.get(word, 0.0)) != old}
    node = joint.node.first("dynamics")
    if new and node is not None:
        edits.set(node, new)
    elif new:
        edits.insert(joint.node, "dynamics", new)


def _in_urdf(machine: Machine, left_out: list[Element]) -> Machine:
    """The machine as a URDF has it: without these elements, and without what a URDF says nothing of."""
    kept = machine.without_elements(e.parameter_name for e in left_out)
    return replace(kept, transmission=None, sensors=(), controllers=(), loads=(), prescribed=())


def _check_agreement(machine: Machine, text: bytes, source: str) -> None:
    again = read_urdf(text, source).machine(machine.base, machine.gravity, "keep")
    motion = _trial(machine)
    order = [machine.coordinates.index(name) for name in again.coordinates]
    other = Motion(motion.t, motion.q[:, order], motion.qd[:, order], motion.qdd[:, order], base=motion.base)
    wanted = inverse_dynamics(machine, motion, engine="numpy")
    found = inverse_dynamics(again, other, rows=machine.rows, engine="numpy")
    peak = np.abs(wanted).max(axis=0, initial=0.0)
    miss = np.abs(found - wanted).max(axis=0, initial=0.0)
    far = miss > AGREE * np.maximum(peak, 1e-6 * peak.max(initial=0.0))
    if far.any():
        k = int(np.argmax(miss * far))
        what = "read again, the file does not give the forces of the machine; nothing was written."
        expected, found = f"agreement to {AGREE:g} of {peak[k]:.6g}", f"{miss[k]:.3g}"
        hint = "A mass that is very small beside its first moments cannot be written as a centre of mass."
        raise ModelError(
            what, where=f"row '{machine.rows[k]}'", expected=expected, found=found, hint=hint, source=source
        )


def _trial(machine: Machine) -> Motion:
    """A motion in which no two coordinates, rates or accelerations are alike."""

    def spread(kind: int, columns: int) -> Array:
        # Multiples of an irrational number, modulo 1, fill the interval evenly.
        k = np.arange(SAMPLES * columns, dtype=np.float64).reshape(SAMPLES, columns) + 1000.0 * kind + 1.0
        return 4.0 * np.mod(0.5 * (math.sqrt(5.0) - 1.0) * k, 1.0) - 2.0

    q, qd, qdd = (spread(kind, machine.n) for kind in range(3))
    base = BaseMotion(*(spread(kind, 3) for kind in (3, 4, 5))) if machine.base == "free" else None
    return Motion(np.arange(float(SAMPLES)), q, qd, qdd, base=base)


def _number(x: float) -> str:
    """The shortest text that is read back as this number."""
    return repr(float(x) + 0.0)


def _new_text(machine: Machine, dynamics: Mapping[str, Mapping[str, float]]) -> str:
    """The text of a URDF of an open machine. `dynamics`: joint → damping and friction. Joints are called as their coordinates.

    Joints that share a coordinate mimic the first of them. A sliding joint has the limits ±1e9 m, as the format wants some.
    """
    _check_tree(machine)
    root = ElementTree.Element("robot", name=machine.name)
    ElementTree.SubElement(root, "link", name=GROUND)
    leaders: dict[str, Body] = {}
    bodies = bodies_of(machine)
    for b in bodies:
        _link(root, machine, b)
    for j, b in enumerate(bodies):
        free = machine.base == "free" and j == 0
        leader = leaders.setdefault(b.coordinate_name, b) if b.coordinate_name else b
        name = b.coordinate_name if b.coordinate_name and leader is b else f"{b.name}_joint"
        kind = "floating" if free else {"turning": "continuous", "sliding": "prismatic", "fixed": "fixed"}[b.joint]
        joint = ElementTree.SubElement(root, "joint", name=name, type=kind)
        R, p = b.placement.rotation, b.placement.position
        ElementTree.SubElement(joint, "origin", xyz=_text(p), rpy=_text(angles_of(R)))
        ElementTree.SubElement(joint, "parent", link=b.antecedent or GROUND)
        ElementTree.SubElement(joint, "child", link=b.name)
        if b.joint == "fixed":
            continue
        ElementTree.SubElement(joint, "axis", xyz="0 0 1")
        if leader is not b:
            ElementTree.SubElement(joint, "mimic", joint=b.coordinate_name, multiplier=repr(b.ratio), offset="0")
        if kind == "prismatic":
            ElementTree.SubElement(joint, "limit", lower="-1e9", upper="1e9", effort="1e9", velocity="1e9")
        if words := {word: repr(float(v)) for word, v in dynamics.get(name, {}).items() if v != 0.0}:
            ElementTree.SubElement(joint, "dynamics", words)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _link(root: ElementTree.Element, machine: Machine, b: Body) -> None:
    link = ElementTree.SubElement(root, "link", name=b.name)
    if not b.real:
        return
    mass, centre, J = to_centre(ten_of(machine, b))
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_text(centre), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=_number(mass))
    ElementTree.SubElement(inertial, "inertia", {k: repr(float(v)) for k, v in zip(SIX, six(J), strict=True)})


def _check_tree(machine: Machine) -> None:
    faults = Faults()
    if machine.closed:
        what = f"a URDF is a tree and cannot hold its {len(machine.cut_joints)} closed loops."
        faults.add(what, where=machine.name, hint="yaml keeps them.")
    leaders: dict[str, Body] = {}
    for b in bodies_of(machine):
        if b.name == GROUND:
            faults.add("a body cannot be called as the ground is.", where=part_at("body", b.name))
        if b.joint != "fixed" and leaders.setdefault(b.coordinate_name, b) is b and b.ratio != 1.0:
            what = "a joint that moves by a ratio of its own coordinate has no counterpart in URDF."
            faults.add(what, where=part_at("body", b.name), found=f"ratio {b.ratio:g}")
    faults.raise_if_any(ModelError, machine.name)


def _text(values: Array) -> str:
    return " ".join(_number(v) for v in values)


def is_servo(c: Controller) -> bool:
    """Whether a law is one that these tags carry: PD or PID of a position, which sets a force."""
    return c.kind in ("pd", "pid") and not c.motor and c.feedforward == "none"


def with_servos(text: bytes, machine: Machine, joints: Sequence[str]) -> tuple[bytes, list[str]]:
    """The text of a URDF with the servos of these joints, and sentences about what of the controllers it does not have."""
    own = [c for c in machine.controllers if is_servo(c) and c.on in joints]
    others = [f"controller {c.name}" for c in machine.controllers if c not in own]
    notes = [f"a URDF has no place for {', '.join(others)}: left out."] if others else []
    if not own:
        return text, notes
    if SERVO_TAG in text:
        left = "the file has <ros2_control> of its own, which stays as it is: gains are not written."
        return text, [*notes, left]
    at = text.rindex(ROBOT_END)
    lost = [
        words for key, words in SERVO_LOST.items() if any(c.constants.get(key, 0.0) not in (0.0, math.inf) for c in own)
    ]
    notes += [f"<ros2_control> has no place for {', '.join(lost)}: left out."] if lost else []
    return text[:at] + _servo_block(machine.name, own).encode("utf-8") + text[at:], notes


def _servo_block(name: str, servos: Sequence[Controller]) -> str:
    lines = [
        f'  <ros2_control name={quoteattr(name or "machine")} type="system">',
        f"    <hardware><plugin>{escape(SERVO_PLUGIN)}</plugin></hardware>",
    ]
    for c in servos:
        lines.append(f"    <joint name={quoteattr(c.on)}>")
        for key, word in SERVO_GAINS.items():
            value = float(c.constants.get(key, 0.0))
            lines.append(f'      <param name="{word}">{value!r}</param>')
        lines += [
            '      <command_interface name="position_pid"/>',
            '      <state_interface name="position"/>',
            '      <state_interface name="velocity"/>',
            "    </joint>",
        ]
    return "\n".join([*lines, "  </ros2_control>", ""])
