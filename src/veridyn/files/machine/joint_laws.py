"""What simulators have a place for of a machine: inertias of bodies, what elements do along joints and fixed tendons, dry friction.

An element acts on c = Σ aᵢ qᵢ. On one coordinate, with coefficient a, it is attributes of its joint: stiffness k a² with its springref at
rest/a, damping h a², armature I a², frictionloss |a| fs. On several, the same as those of a fixed tendon of length c. Constant forces are
biases of actuators. Friction that yields before it slides becomes Coulomb friction of the same size. Everything else has no counterpart.

Isaac Lab takes these laws of joints as a configuration of actuators, with ranges for domain randomisation; it is not needed to write one.
Joints that a control law of kind pd moves become an actuator that computes τ = kp (r − q) + kd (ṙ − q̇), delayed where the law's command is;
other joints one without gains. Friction is as PhysX has it: a force at rest, a force that slides, and a part that grows with speed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, ModelError, part_at, warn
from veridyn.files.access import refuse_to_replace, write_atomic
from veridyn.identify.result import Fit
from veridyn.model.controller import Controller
from veridyn.model.elements.element import Element, coulomb
from veridyn.model.graph import Body
from veridyn.model.link import Link
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, to_centre
from veridyn.spatial.rotations import quaternion

LEAST = 1e-14  # kg and kg*m^2: MuJoCo takes no moving body with less than 1e-15
CARRIED = ("spring", "damper", "inertia", "coulomb", "offset")
WORDS = {
    "armature": "armature",
    "frictionloss": "friction",
    "damping": "viscous_friction",
}  # of a joint's law, of Isaac Lab
LOW, HIGH = 0.05, 0.95  # shares of the draws between which a range lies
WIDE = 110  # characters of a line


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


@checked
def save_isaac(
    machine: Machine | Fit,
    path: str | Path,
    step: float = 0.005,
    draws: Sequence[Array] | Array | None = None,
    overwrite: bool = False,
) -> None:
    """Write the drives of a machine as Python that configures actuators of Isaac Lab 2.3.

    Parameters
    ----------
    machine : Machine or Fit
        Its joints are named as in the robot of the simulation; of a fit, the identified machine.
    path : str or path
        The file, which defines ``ACTUATORS`` and, where draws are given, ``RANGES``.
    step : float above 0
        The physics step of the simulation in s, in which it counts delays.
    draws : (n, parameters), or None
        Parameter sets of the same machine, as ``fit.draws`` gives them: ``RANGES`` are from the 5th to the 95th of a hundred.
    overwrite : bool
        Replace a file that exists; it is left alone by default.

    Returns
    -------
    None

    Raises
    ------
    ModelError
        Where armature or friction is below zero, or has no value.

    Warns
    -----
    DataWarning
        For each kind of thing that this configuration has no place for.
    """
    if not step > 0.0:
        raise DataError("a physics step is above zero.", where="step", found=f"{step:g}")
    refuse_to_replace(Path(path), overwrite)
    machine, softened = with_rigid_friction(machine.valued if isinstance(machine, Fit) else machine)
    text = isaac_text(machine, step, draws)
    write_atomic(path, text.encode("utf-8"), overwrite)
    for sentence in (*_left_out(machine), *softened):
        warn(DataWarning, Fault(f"{Path(path).name}: {sentence}"))


def isaac_text(machine: Machine, step: float, draws: Sequence[Array] | Array | None = None) -> str:
    """The text of such a file."""
    laws = Carried.of(machine).joints
    _check(machine)
    driving = {c.on: c for c in machine.controllers if _is_servo(c)}
    delayed = [c for c, law in driving.items() if law.constant("command_delay") > 0.0]
    groups = {
        "delayed_servos": ("DelayedPDActuatorCfg", delayed),
        "servos": ("IdealPDActuatorCfg", [c for c in driving if c not in delayed]),
        "joints": ("ImplicitActuatorCfg", [c for c in machine.coordinates if c not in driving]),
    }
    used = {name: (kind, own) for name, (kind, own) in groups.items() if own}
    imports = ", ".join(sorted({kind for kind, _ in used.values()}))
    lines = [
        f'"""Actuators of {_plain(machine.name)} for Isaac Lab 2.3, written by veridyn. SI units; delays in steps of {step:g} s."""',
        "",
        f"from isaaclab.actuators import {imports}",
        "",
        "ACTUATORS = {",
    ]
    for name, (kind, own) in used.items():
        lines += [f'    "{name}": {kind}(', *_listed("joint_names_expr", [_pattern(c) for c in own])]
        for key, values in _gains(own, driving).items():
            lines += _table(key, values)
        for word, key in WORDS.items():
            lines += _table(key, {c: getattr(laws[c], word) for c in own})
        lines += _table("dynamic_friction", {c: laws[c].frictionloss for c in own})
        if own is delayed:
            ages = [driving[c].constant("command_delay") / step for c in own]
            lines.append(f"        min_delay={math.floor(min(ages) + 1e-9)},")
            lines.append(f"        max_delay={math.ceil(max(ages) - 1e-9)},")
        lines.append("    ),")
    lines.append("}")
    ranges = _ranges(machine, draws)
    if ranges:
        lines += ["", "# From the 5th to the 95th of a hundred machines drawn from the fit.", "RANGES = {"]
        for key, own in ranges.items():
            lines.append(f'    "{key}": {{')
            lines += [f'        "{_pattern(c)}": ({low!r}, {high!r}),' for c, (low, high) in own.items()]
            lines.append("    },")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _is_servo(c: Controller) -> bool:
    return c.kind == "pd" and not c.motor


def _gains(own: Sequence[str], driving: Mapping[str, Controller]) -> dict[str, dict[str, float]]:
    """Gains and limits of a group; none where no control law moves its joints."""
    if not own or own[0] not in driving:
        return {"stiffness": dict.fromkeys(own, 0.0), "damping": dict.fromkeys(own, 0.0)}
    found = {
        "stiffness": {c: driving[c].constant("kp") for c in own},
        "damping": {c: driving[c].constant("kd") for c in own},
    }
    limits = {c: driving[c].constant("limit") for c in own}
    if any(math.isfinite(x) for x in limits.values()):
        found["effort_limit"] = {c: x for c, x in limits.items() if math.isfinite(x)}
    return found


def _ranges(machine: Machine, draws: Sequence[Array] | Array | None) -> dict[str, dict[str, tuple[float, float]]]:
    """For each word of Isaac Lab the range of each joint whose value differs from draw to draw; nothing without draws."""
    where = "save_isaac, draws"
    if draws is None or as_array(draws, where).size == 0:
        return {}
    sets = as_array(draws, where, (None, len(machine.parameters.names)))
    drawn = [Carried.of(machine.with_parameters(phi)).joints for phi in sets]
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for word, key in WORDS.items():
        for c in machine.coordinates:
            values = np.array([getattr(laws[c], word) for laws in drawn])
            if np.ptp(values) > 0.0:
                low, high = np.quantile(values, (LOW, HIGH))
                found.setdefault(key, {})[c] = float(low), float(high)
    return found


def _check(machine: Machine) -> None:
    faults = Faults()
    for c, law in Carried.of(machine).joints.items():
        for word in WORDS:
            value = float(getattr(law, word))
            if not value >= 0.0:
                what = f"its {word} has no value." if math.isnan(value) else f"its {word} is below zero."
                hint = "Identify it, or give a value." if math.isnan(value) else "Estimate with 'consistent'."
                faults.add(what, where=part_at("coordinate", c), found=f"{value:g}", hint=hint)
    faults.raise_if_any(ModelError, machine.name)


def _left_out(machine: Machine) -> list[str]:
    """One sentence for each kind of thing that these actuators do not have."""
    carried = Carried.of(machine)
    found = [
        f"there is no place for elements of the kind '{kind}', left out: {', '.join(names)}."
        for kind, names in carried.left_out.items()
    ]
    for word, what in (("stiffness", "springs"), ("bias", "constant forces")):
        own = [c for c, law in carried.joints.items() if getattr(law, word) != 0.0]
        if own:
            found.append(f"there is no place for {what}, left out: {', '.join(own)}.")
    if carried.tendons:
        found.append(f"there is no place for what acts on combinations of joints: {len(carried.tendons)} left out.")
    others = [f"{c.name} ({c.kind})" for c in machine.controllers if not _is_servo(c)]
    if others:
        found.append(f"control laws that are no PD of a force are left out: {', '.join(others)}.")
    rubbing = [c.name for c in machine.controllers if _is_servo(c) and c.rubs]
    if rubbing:
        found.append(f"there is no place for friction that grows with load, left out: {', '.join(rubbing)}.")
    return found


def _plain(name: str) -> str:
    """A name that can stand in a docstring."""
    return re.sub(r'["\\\n\r]', "'", name)


def _pattern(coordinate: str) -> str:
    """A regular expression for one joint, as the text between quotation marks."""
    return re.escape(coordinate).replace("\\_", "_").replace("\\-", "-").replace("\\", "\\\\").replace('"', '\\"')


def _listed(key: str, names: Sequence[str]) -> list[str]:
    whole = f"        {key}=[" + ", ".join(f'"{n}"' for n in names) + "],"
    return (
        [whole] if len(whole) <= WIDE else [f"        {key}=[", *(f'            "{n}",' for n in names), "        ],"]
    )


def _table(key: str, values: Mapping[str, float]) -> list[str]:
    """A number where all joints have it, else one for each joint."""
    numbers = {float(v) for v in values.values()}
    if len(numbers) == 1:
        return [f"        {key}={numbers.pop()!r},"]
    return [
        f"        {key}={{",
        *(f'            "{_pattern(c)}": {float(v)!r},' for c, v in values.items()),
        "        },",
    ]
