"""What of a machine a simulator's file has a place for: inertias of bodies, what elements do along joints and fixed tendons, dry friction.

An element acts on c = Σ aᵢ qᵢ. On one coordinate, with coefficient a, it is attributes of its joint: stiffness k a² with its springref at
rest/a, damping h a², armature I a², frictionloss |a| fs. On several, the same as those of a fixed tendon of length c. Constant forces are
biases of actuators. Friction that yields before it slides becomes Coulomb friction of the same size. Everything else has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.model.elements.element import Element, coulomb
from veridyn.model.graph import Body
from veridyn.model.link import Link
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, to_centre
from veridyn.spatial.rotations import quaternion

LEAST = 1e-14  # kg and kg*m^2: MuJoCo takes no moving body with less than 1e-15
CARRIED = ("spring", "damper", "inertia", "coulomb", "offset")


def ten_of(machine: Machine, body: Body | Link) -> Array:
    """The inertial parameters of a body."""
    return np.array([machine.parameters[body.parameter(symbol)] for symbol in INERTIAL])


def text_of_numbers(values: ArrayLike) -> str:
    """Numbers as an attribute has them, none lost."""
    return " ".join(repr(float(v) + 0.0) for v in np.asarray(values, dtype=np.float64))


def inertial_attributes(ten: Array | None, moving: bool = True) -> dict[str, str]:
    """Mass, centre, and principal moments with their axes; a `moving` body has at least what MuJoCo asks for."""
    if ten is None or ten[9] == 0.0:
        least = repr(LEAST)
        return {"pos": "0 0 0", "mass": least, "diaginertia": f"{least} {least} {least}"}
    mass, centre, J = to_centre(ten)
    if np.array_equal(J, np.diag(np.diag(J))):
        moments, axes = np.diag(J).copy(), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(J)
        axes = axes * np.sign(np.linalg.det(axes))
    moments = np.maximum(moments, LEAST) if moving else np.maximum(moments, 0.0)
    largest = int(np.argmax(moments))  # of a rod or a plate, rounding may leave it above the sum of the others
    moments[largest] = min(moments[largest], np.nextafter(moments.sum() - moments[largest], 0.0))
    made = {"pos": text_of_numbers(centre), "mass": repr(mass), "diaginertia": text_of_numbers(moments)}
    if not np.array_equal(axes, np.eye(3)):
        made["quat"] = text_of_numbers(quaternion(axes))
    return made


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
    within = any(set(e.on) <= machine.described.moving(body) for body in machine.body_names)
    return "" if within else "across branches"


def with_rigid_friction(machine: Machine) -> tuple[Machine, list[str]]:
    """The machine whose LuGre elements on coordinates are Coulomb friction with the same parameters, and a sentence where it has some."""
    soft = {e: coulomb(e.on, e.value, e.parameter_name) for e in machine.elements if e.kind == "lugre" and e.on}
    if not soft:
        return machine, []
    names = ", ".join(f"{e.parameter_name} ({e.constant('deflection'):.2g})" for e in soft)
    made = replace(machine, elements=tuple(soft.get(e, e) for e in machine.elements))
    return made, [f"dry friction that yields over a distance (rad or m) is written as friction that does not: {names}."]
