"""MJCF written: an open machine as the model file of MuJoCo, with the same frames, inertias, passive forces and motors.

Bodies keep their frames, so each joint acts along z. MuJoCo's equations of motion are then those of veridyn: inertia, armature, springs and
damping agree to rounding; dry friction (frictionloss) is a soft constraint in MuJoCo, which at rest creeps and slides with the same force.

An element acts on c = Σ aᵢ qᵢ. On one coordinate, with coefficient a, it is attributes of its joint: stiffness k a² with its springref at
rest/a, damping h a², armature I a², frictionloss |a| fs. On several, the same as those of a fixed tendon of length c. Constant forces are
biases of actuators. Everything else has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.errors import DataWarning, Fault, Faults, ModelError, part_at, warn
from veridyn.files.access import refuse_to_replace, write_atomic
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import Element
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, broken_law, to_centre
from veridyn.spatial.rotations import quaternion

Array = NDArray[np.float64]
LEAST = 1e-14  # kg and kg*m^2: MuJoCo takes no moving body with less than 1e-15
WORLD = "world"  # the name of MuJoCo's ground
CARRIED = ("spring", "damper", "inertia", "coulomb", "offset")


@checked
def save_mjcf(
    machine: Machine | Fit, path: str | Path, limits: Mapping[str, UrdfLimits] | None = None, overwrite: bool = False
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
    machine = machine.described.with_parameters(machine.standard) if isinstance(machine, Fit) else machine
    text = mjcf_text(machine, limits)
    write_atomic(path, text.encode("utf-8"), overwrite)
    for fault in _left_out(machine):
        warn(DataWarning, Fault(f"{Path(path).name}: {fault}"))


def mjcf_text(machine: Machine, limits: Mapping[str, UrdfLimits] | None = None) -> str:
    """The text of an MJCF file of an open machine; see :func:`save_mjcf`."""
    carried = Carried.of(machine)
    _check(machine, carried)
    root = ElementTree.Element("mujoco", model=machine.name)
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="true")
    ElementTree.SubElement(root, "option", gravity=_text(machine.gravity))
    nodes: list[ElementTree.Element] = []
    world = ElementTree.SubElement(root, "worldbody")
    tree = tree_of(machine)
    names = _names([b.name for b in tree.bodies])
    for j, b in enumerate(tree.bodies):
        i = tree.antecedent[j]
        here = ElementTree.SubElement(world if i < 0 else nodes[i], "body", name=names[b.name])
        nodes.append(here)
        R, p = b.placement.rotation, b.placement.position
        if np.any(p != 0.0):
            here.set("pos", _text(p))
        if not np.array_equal(R, np.eye(3)):
            here.set("quat", _text(quaternion(R)))
        if machine.base == "free" and j == 0:
            ElementTree.SubElement(here, "freejoint", name=_free(f"{names[b.name]}_free", machine.coordinates))
        elif b.joint != "fixed":
            _joint(here, b, carried.joints[b.coordinate_name], limits or {})
        _inertial(here, b, _ten(machine, b) if b.real else None, moving=machine.base == "free" or b.joint != "fixed")
    _tendons(root, carried)
    _actuators(root, machine, carried, limits or {})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _joint(here: ElementTree.Element, b: Body, law: JointLaw, limits: Mapping[str, UrdfLimits]) -> None:
    kind = "hinge" if b.joint == "turning" else "slide"
    made = {"name": b.coordinate_name, "type": kind, "axis": "0 0 1"}
    if (limit := limits.get(b.coordinate_name)) is not None and np.isfinite([limit.lower, limit.upper]).all():
        made["range"] = _text([limit.lower, limit.upper])
    ElementTree.SubElement(here, "joint", {**made, **law.attributes("springref")})


def _inertial(here: ElementTree.Element, b: Body, ten: Array | None, moving: bool) -> None:
    """Mass, centre, and principal moments with their axes; a moving body has at least what MuJoCo asks for."""
    if ten is None or ten[9] == 0.0:
        if moving:
            least = repr(LEAST)
            ElementTree.SubElement(here, "inertial", pos="0 0 0", mass=least, diaginertia=f"{least} {least} {least}")
        return
    mass, centre, J = to_centre(ten)
    if np.array_equal(J, np.diag(np.diag(J))):
        moments, axes = np.diag(J).copy(), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(J)
        axes = axes * np.sign(np.linalg.det(axes))
    moments = np.maximum(moments, LEAST) if moving else np.maximum(moments, 0.0)
    largest = int(np.argmax(moments))  # of a rod or a plate, rounding may leave it above the sum of the others
    moments[largest] = min(moments[largest], np.nextafter(moments.sum() - moments[largest], 0.0))
    made = {"pos": _text(centre), "mass": repr(mass), "diaginertia": _text(moments)}
    if not np.array_equal(axes, np.eye(3)):
        made["quat"] = _text(quaternion(axes))
    ElementTree.SubElement(here, "inertial", made)


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
                made["ctrlrange"] = _text([-reach, reach])
            off = bias.pop(coordinate, 0.0)
            if off != 0.0:
                made |= {"biastype": "affine", "biasprm": _text([-off / gear, 0.0, 0.0])}
                ElementTree.SubElement(section, "general", made)
                continue
        else:
            made["tendon"] = _line(root, f"{motor} transmission", acts)
        ElementTree.SubElement(section, "motor", made)
    still = {"gainprm": "0", "biastype": "affine"}
    for coordinate, off in bias.items():
        value = _text([-off, 0.0, 0.0])
        ElementTree.SubElement(
            section, "general", {"name": f"off_{coordinate}", "joint": coordinate, **still, "biasprm": value}
        )
    for k, law in enumerate(carried.tendons.values()):
        if law.bias != 0.0:
            acts = {"name": f"off_combined{k + 1}", "tendon": f"combined{k + 1}"}
            value = _text([law.bias if law.flipped else -law.bias, 0.0, 0.0])
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
    where, bodies = machine.name, tree_of(machine).bodies
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
    gone = {name for names in carried.left_out.values() for name in names}
    unknown = [name for name in machine.parameters.missing() if name not in gone]
    if unknown:
        listed = ", ".join(unknown[:8]) + (", …" if len(unknown) > 8 else "")
        hint = "Identify them, or give values."
        faults.add(f"{len(unknown)} parameters have no value: {listed}.", where=where, hint=hint)
        faults.raise_if_any(ModelError, machine.name)
    for b in bodies:
        if b.real and (law := broken_law(_ten(machine, b))):
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
    return {name: _free(f"{name}_link", taken) if name == WORLD else name for name in taken}


def _free(name: str, taken: list[str] | tuple[str, ...]) -> str:
    while name in taken:
        name += "_"
    return name


def _ten(machine: Machine, body: Body) -> Array:
    return np.array([machine.parameters[body.parameter(symbol)] for symbol in INERTIAL])


def _text(values: ArrayLike) -> str:
    return " ".join(repr(float(v) + 0.0) for v in np.asarray(values, dtype=np.float64))


@dataclass
class JointLaw:
    """What acts along one length: stiffness about `rest`, damping, armature and dry friction, and the constant force `bias` against it."""

    stiffness: float = 0.0
    moment: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    frictionloss: float = 0.0
    bias: float = 0.0

    def add(self, e: Element, value: float, a: float) -> None:
        """An element of this value on a times the length."""
        if e.kind == "spring":
            self.stiffness += value * a * a
            self.moment += value * a * e.constant("rest")
        elif e.kind == "damper":
            self.damping += value * a * a
        elif e.kind == "inertia":
            self.armature += value * a * a
        elif e.kind == "coulomb":
            self.frictionloss += value * abs(a)
        else:
            self.bias += value * a

    @property
    def rest(self) -> float:
        """Where the springs together are relaxed."""
        return self.moment / self.stiffness if self.stiffness != 0.0 else 0.0

    def settle(self) -> None:
        """Springs whose stiffnesses cancel leave a constant force."""
        if self.stiffness == 0.0:
            self.bias -= self.moment
            self.moment = 0.0

    def negative(self) -> list[str]:
        """The attributes that are below zero, which MJCF does not have."""
        return [word for word in ("stiffness", "damping", "armature", "frictionloss") if getattr(self, word) < 0.0]

    def attributes(self, rest: str) -> dict[str, str]:
        """Those that are not zero, as texts; `rest` is the attribute of the relaxed position, and a tendon always states it."""
        found = {
            word: repr(value)
            for word in ("stiffness", "damping", "armature", "frictionloss")
            if (value := float(getattr(self, word))) != 0.0
        }
        if self.stiffness != 0.0 and (self.rest != 0.0 or rest == "springlength"):
            found[rest] = repr(float(abs(self.rest) if rest == "springlength" else self.rest))
        return found

    @property
    def flipped(self) -> bool:
        """Whether a tendon runs the other way: its springlength cannot be negative."""
        return self.rest < 0.0


@dataclass
class Carried:
    """Laws by coordinate and by combination of coordinates; and the elements that MJCF has no place for, by kind."""

    joints: dict[str, JointLaw] = field(default_factory=dict)
    tendons: dict[tuple[tuple[str, float], ...], JointLaw] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, machine: Machine) -> Carried:
        """The elements of a machine, sorted."""
        out = cls({c: JointLaw() for c in machine.coordinates})
        for e in machine.elements:
            if e.kind not in CARRIED or _way(machine, e):
                kind = f"{e.kind} {_way(machine, e)}".rstrip()
                out.left_out.setdefault(kind, []).append(e.parameter_name)
                continue
            value = machine.parameters[e.parameter_name]
            if len(e.on) == 1:
                coordinate, a = next(iter(e.on.items()))
                out.joints[coordinate].add(e, value, a)
                continue
            out.tendons.setdefault(tuple(e.on.items()), JointLaw()).add(e, value, 1.0)
        for law in out.laws():
            law.settle()
        return out

    def laws(self) -> Iterable[JointLaw]:
        return (*self.joints.values(), *self.tendons.values())


def _way(machine: Machine, e: Element) -> str:
    """How an element acts that neither a joint nor a fixed tendon carries; empty for others.

    MuJoCo's mass matrix has no entry between joints of different branches, so the armature of a tendon acts within one branch only.
    """
    if e.between is not None or e.wheel is not None or e.on_body is not None:
        return "between two places" if e.between is not None else "on a wheel" if e.wheel is not None else "on a body"
    if e.kind != "inertia" or len(e.on) == 1:
        return ""
    tree = tree_of(machine)
    carriers = [next(j for j, b in enumerate(tree.bodies) if b.coordinate_name == c) for c in e.on]
    outermost = max(carriers, key=lambda j: len(tree.path(j)))
    return "" if set(carriers) <= set(tree.path(outermost)) else "across branches"
