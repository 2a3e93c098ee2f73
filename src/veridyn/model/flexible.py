"""Flexible joints: a spring and a damper between the motor side and the link side of a joint.

The coordinate of a flexible joint is its link side q. Its motor side θ, in the units of the joint (the motor's angle behind the gear), is
a coordinate of its own, named after it with ``_motor`` behind. It moves a body without mass beside the link, on which the rotor acts by
its inertia J as seen from the joint (that of the rotor times the gear ratio squared):

    J θ̈ + K (θ − q) + D (θ̇ − q̇) = Γ_motor             motor side; its own friction is an element on θ
    M q̈ + … − K (θ − q) − D (θ̇ − q̇) = 0               link side, which has no motor

With a `backlash` b the spring has play, K (δ ∓ b/2) outside ±b/2 and nothing inside, where δ = θ − q. A `hysteresis` h is the friction
inside the gear, half the width of the loop of torque over deflection: h z/w beside the spring, with dz/dδ = 1 − sign(δ̇) z/w, where w is
the `hysteresis_deflection` over which it builds up (P. R. Dahl, "Solid friction damping of mechanical vibrations", AIAA J. 14, 1976).

The turning of the rotor with the body that carries it is left out, as usual for gear ratios well above one (M. W. Spong, "Modeling and
control of elastic joint robots", J. Dyn. Sys. Meas. Control 109, 1987). These are ordinary joints and elements, so that every formulation,
regressor and filter treats them as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from veridyn.arguments import checked
from veridyn.errors import Faults, ModelError, did_you_mean, part_at
from veridyn.model.elements.element import Element
from veridyn.model.graph import Body, MachineGraph
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND

NAN = float("nan")
FLEXIBLE_KINDS = ("turning", "sliding")
# Of bristles, as good as none, which is Dahl's law: the joint's own damper is beside them, and a longer time would act as a lead
BRISTLE_DAMPING_S = 1e-5


@dataclass(frozen=True, kw_only=True)
class Flexible:
    """What is between the motor side and the link side of a joint; NaN where it is unknown.

    Parameters
    ----------
    stiffness : N*m/rad, or N/m of a sliding joint.
    damping : N*m*s/rad or N*s/m; none by default.
    inertia : of the rotor as seen from the joint, that is, times the gear ratio squared; kg*m^2 or kg.
    backlash : the whole play of the gear, rad or m; none by default.
    hysteresis : half the width of its loop of torque over deflection, N*m or N; none by default.
    hysteresis_deflection : over which the hysteresis builds up, rad or m; above zero where there is a hysteresis.
    """

    stiffness: float = NAN
    damping: float = 0.0
    inertia: float = NAN
    backlash: float = 0.0
    hysteresis: float = 0.0
    hysteresis_deflection: float = 0.0

    @property
    def out_of_range(self) -> dict[str, str]:
        """What cannot have its value → what it may be."""
        above, least = "above zero", "zero or more"
        words = {"stiffness": above, "inertia": above}
        words |= dict.fromkeys(("damping", "backlash", "hysteresis", "hysteresis_deflection"), least)
        if self.hysteresis != 0.0:
            words["hysteresis_deflection"] = above
        value = {key: getattr(self, key) for key in words}
        return {k: word for k, word in words.items() if value[k] < 0.0 or (value[k] == 0.0 and word == above)}


def motor_side(coordinate: str) -> str:
    """The name of the motor side of a flexible joint."""
    return f"{coordinate}_motor"


def flexible_elements(coordinate: str, flexible: Flexible) -> tuple[Element, ...]:
    """Spring, with play where there is backlash, damper, the inertia of the rotor and, where there is one, the hysteresis of a joint."""
    motor = motor_side(coordinate)
    between = {motor: 1.0, coordinate: -1.0}
    play = {"gap": 0.5 * flexible.backlash} if flexible.backlash != 0.0 else {}
    kind = "dead_zone" if play else "spring"
    made = (
        Element(kind=kind, on=between, value=flexible.stiffness, name=f"stiffness_{coordinate}", constants=play),
        Element(kind="damper", on=between, value=flexible.damping, name=f"damping_{coordinate}"),
        Element(kind="inertia", on={motor: 1.0}, value=flexible.inertia),
    )
    if flexible.hysteresis == 0.0:
        return made
    inner = {"deflection": flexible.hysteresis_deflection, "time": BRISTLE_DAMPING_S}
    name = f"hysteresis_{coordinate}"
    return (*made, Element(kind="lugre", on=between, value=flexible.hysteresis, name=name, constants=inner))


def motor_body(link: Body) -> Body:
    """The row of a table that is the motor side of the joint that carries `link`."""
    name = motor_side(link.coordinate_name)
    on = link.antecedent or GROUND
    return replace(link, name=name, antecedent=on, actuated=True, real=False, coordinate="", label="")


def motor_joint(joint: Joint) -> tuple[Link, Joint]:
    """The massless body and the joint that are the motor side of a joint."""
    name = motor_side(joint.coordinate_names[0])
    return Link(name=name, real=False), replace(joint, name=name, b=name, coordinates=(), actuated=True, cut="no")


def flexible_joints(machine: MachineGraph) -> dict[str, Flexible]:
    """The flexible joints of a machine by the coordinates of their link sides, in order."""
    found: dict[str, Flexible] = {}
    elements = {e.parameter_name: e for e in machine.elements}
    links = {link.name for link in machine.links if not link.real}
    for joint in machine.joints:
        if joint.kind not in FLEXIBLE_KINDS or motor_side(c := joint.coordinate_names[0]) not in links:
            continue
        own = _stated(elements, c)
        if own is not None:
            found[c] = own
    return found


def _stated(elements: Mapping[str, Element], c: str) -> Flexible | None:
    """What elements by name say of the flexible joint of a coordinate; None where one of them is missing or acts otherwise."""
    names = [e.parameter_name for e in flexible_elements(c, Flexible(hysteresis=1.0, hysteresis_deflection=1.0))]
    spring, damper, rotor = (elements.get(name) for name in names[:3])
    if spring is None or damper is None or rotor is None:
        return None
    soft = elements.get(names[3])
    own = Flexible(
        stiffness=spring.value,
        damping=damper.value,
        inertia=rotor.value,
        backlash=2.0 * spring.constants.get("gap", 0.0),
        hysteresis=0.0 if soft is None else soft.value,
        hysteresis_deflection=0.0 if soft is None else soft.constants.get("deflection", 0.0),
    )
    alike = zip((spring, damper, rotor, *(() if soft is None else (soft,))), flexible_elements(c, own), strict=False)
    return own if all((e.kind, e.on, e.constants) == (f.kind, f.on, f.constants) for e, f in alike) else None


@checked
def with_flexible_joints(machine: Machine, joints: Mapping[str, Flexible]) -> Machine:
    """The same machine with flexible joints, by the coordinates of their link sides: their motors move to the motor sides.

    Parameters
    ----------
    machine : Machine
        Motors, friction and rotor inertias that it has on these coordinates stay where they are, except that the motor moves.
    joints : mapping of coordinates to Flexible
        Stiffness, damping, rotor inertia, backlash and hysteresis of each.

    Returns
    -------
    Machine
        Whose coordinates are those of `machine`, then one for each motor side: ``joint1_motor``.

    Examples
    --------
    >>> import veridyn as vd
    >>> bar = vd.Link(name="bar", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0.6, 0, 0, 2.0])
    >>> arm = vd.Machine.build([bar], [vd.Joint(name="hip", a="ground", b="bar", actuated=True)])
    >>> vd.model.with_flexible_joints(arm, {"hip": vd.model.Flexible(stiffness=500.0, inertia=0.2)}).coordinates
    ('hip', 'hip_motor')
    """
    by_coordinate = {j.coordinate_names[0]: j for j in machine.joints if j.kind in FLEXIBLE_KINDS}
    faults = Faults()
    for c in joints:
        if c not in by_coordinate:
            hint = did_you_mean(c, [*by_coordinate])
            faults.add("it is no coordinate of a turning or sliding joint.", where=part_at("flexible", c), hint=hint)
    faults.raise_if_any(ModelError, machine.name)
    check_flexible(machine.joints, machine.elements, joints, faults)
    faults.raise_if_any(ModelError, machine.name)
    sides = [motor_joint(by_coordinate[c]) for c in joints]
    passive = [replace(j, actuated=False) if set(j.coordinate_names) & set(joints) else j for j in machine.joints]
    return Machine.build(
        [*machine.links, *(link for link, _ in sides)],
        [*passive, *(joint for _, joint in sides)],
        name=machine.name,
        elements=[e for c, flexible in joints.items() for e in flexible_elements(c, flexible)] + [*machine.elements],
        loads=machine.loads,
        sensors=machine.sensors,
        controllers=machine.controllers,
        prescribed=machine.prescribed,
        transmission=machine.transmission,
        assembly=machine.assembly,
        gravity=machine.gravity,
        dimension=machine.dimension,
        formulation=machine.formulation,
    )


def check_flexible(
    joints: Iterable[Joint], elements: Iterable[Element], flexible: Mapping[str, Flexible], faults: Faults
) -> None:
    """Add what is wrong with flexible joints: shared coordinates, rotor inertias on the link side, values of no spring."""
    moved = [c for j in joints for c in j.coordinate_names]
    for c, own in flexible.items():
        where = part_at("joint", c)
        if moved.count(c) > 1:
            what = f"it is flexible, but its coordinate '{c}' moves {moved.count(c)} joints."
            faults.add(what, where=where, hint="Give the flexible joint a coordinate of its own.")
        for key, least in own.out_of_range.items():
            faults.add(f"its {key} is not {least}.", where=f"{where}, flexible", found=f"{getattr(own, key):g}")
        for e in elements:
            if e.kind == "inertia" and set(e.on) == {c}:
                what = f"'{e.parameter_name}' is a motor inertia on the link side of the flexible joint '{c}'."
                hint = f"Write on: {motor_side(c)}, or flexible: {{inertia: …}}."
                faults.add(what, where=part_at("element", e.parameter_name), hint=hint)
