"""Elements of a machine as MJCF has them: attributes of a joint, or of a fixed tendon where they act on several coordinates.

An element acts on c = Σ aᵢ qᵢ. On one coordinate, with coefficient a: stiffness k a² with its springref at rest/a, damping h a²,
armature I a², frictionloss |a| fs. On several, the same as those of a tendon of length c. Constant forces are biases of actuators.
Everything else has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements import Element
from veridyn.model.machine import Machine

CARRIED = ("spring", "damper", "inertia", "coulomb", "offset")


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
