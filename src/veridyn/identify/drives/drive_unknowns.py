"""What is unknown of a drive, with what is known of it before: a prior of each number.

Armature, viscous and dry friction and gains are positive: x = x₀ e^(s z). Zeros, delays and further terms of friction are x = x₀ + s z. z
has mean 0 and standard deviation 1, whatever the unknown. Without a deviation in the model file s is

    armature, viscous and dry friction   ln 4: within a factor of 4      gains        0.1: within 10 %
    encoder zero                         0.02 rad or m                   delays       5 ms, and never below zero
    further terms of friction            the machine's dry friction times 4, of μ and μ_b 0.3
    start of a run                       as the first samples show it

Terms of friction, each beside the dry friction f_s of a joint, with u = −1 … 1 over the positions that the log visits:

    position    f₁ u … f₄ u⁴: dry friction that changes along the way (sealings, preloaded linkages, cables)
    direction   f₊ forwards alone
    speed       f_st/(1 + (v/v_s)²), static above dry friction (Stribeck)
    load        μ |Γ| of the force Γ of the drive, and μ_b |Γ| more where the load drives the motor (gears)

and in place of it

    presliding  f_s z/δ, dz/dt = v − |v| z/δ: dry friction that yields over a distance δ before it slides (Dahl, LuGre without damping)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.errors import Faults, IdentificationError, part_at
from veridyn.identify.drives.drive_log import DriveRecord
from veridyn.model.controller import Controller
from veridyn.model.elements.element import Element, coulomb_along, stribeck
from veridyn.model.machine import Machine

WITHIN_FACTOR = 4.0  # of armature, viscous and dry friction, one standard deviation
GAIN_SHARE = 0.1
ZERO_SIGMA = 0.02  # rad or m
DELAY_SIGMA = 0.005  # s
STRIBECK_SPEED = 0.3  # rad/s or m/s
LOAD_SIGMA = 0.3  # of μ and μ_b: gears lose a tenth to a third of a force
ELEMENTS = {"inertia": "armature", "damper": "viscous", "coulomb": "coulomb"}  # kind of element → key
GAINS = ("kp", "kd")
READINGS = ("zero", "command_delay", "measurement_delay")
KEYS = (*ELEMENTS.values(), *GAINS, *READINGS)
STARTS = ("start", "start_speed")  # of each run: known as well as its first samples show it, and no part of a result
ALONG = {"position": 1, "position_2": 2, "position_3": 3, "position_4": 4}  # powers of u
PRESLIDING = "presliding"
LOAD = ("load_friction", "backdrive_friction")  # constants of controllers
RUNGS = (*ALONG, "direction", "speed", *LOAD, PRESLIDING)  # further terms of friction
WORDS = dict.fromkeys(ALONG, "friction that changes along the way") | {
    "direction": "friction of its own forwards",
    "speed": "static friction",
    "load_friction": "friction that grows with load",
    "backdrive_friction": "friction of the backdriven gear",
    PRESLIDING: "distance over which friction yields",
}


@dataclass(frozen=True, kw_only=True)
class DriveUnknown:
    """One number of the drives of `joints`: x = prior e^(spread z) where it `scales`, else prior + spread z, not below `low`.

    `key`: one of KEYS, RUNGS or STARTS; `run`: the run that it starts. `stated`: whether `spread` is of the model file.
    """

    name: str
    key: str
    joints: tuple[str, ...]
    unit: str
    prior: float
    spread: float
    scales: bool
    low: float = -math.inf
    stated: bool = False
    run: int = 0

    def value(self, z: float) -> float:
        return self.prior * math.exp(self.spread * z) if self.scales else self.prior + self.spread * z

    def slope(self, z: float) -> float:
        """dx/dz."""
        return self.spread * self.value(z) if self.scales else self.spread

    @property
    def lowest(self) -> float:
        """z at `low`."""
        return -math.inf if self.scales else (self.low - self.prior) / self.spread


def drive_unknowns(
    machine: Machine, group: Sequence[str], label: str, estimated: Sequence[str]
) -> tuple[DriveUnknown, ...]:
    """The unknowns of the joints of a group, without further terms of friction; delays are one for the group."""
    found: list[DriveUnknown] = []
    known = _stated(machine)
    for kind, key in ELEMENTS.items():
        if key not in estimated:
            continue
        for e in machine.elements:
            joint = only_joint(e, group)
            if e.kind != kind or joint is None:
                continue
            name, x = e.parameter_name, machine.parameters[e.parameter_name]
            if machine.parameters.states[machine.parameters.index(name)] == "known" or not x > 0.0:
                continue
            spread = known[name] / x if name in known else math.log(WITHIN_FACTOR)
            unit = machine.parameters.units[machine.parameters.index(name)]
            found.append(
                DriveUnknown(
                    name=name,
                    key=key,
                    joints=(joint,),
                    unit=unit,
                    prior=x,
                    spread=spread,
                    scales=True,
                    stated=name in known,
                )
            )
    laws = {c.on: c for c in machine.controllers}
    units = {f"{c.controller}.{c.key}": c.unit for c in machine.controller_constants}
    for key in GAINS:
        for joint in group if key in estimated else ():
            c = laws[joint]
            x, given = c.constant(key), c.sigma.get(key)
            if not x > 0.0:
                continue
            spread = GAIN_SHARE if given is None else given / x
            name = f"{c.name}.{key}"
            unit = units.get(name, "")
            found.append(
                DriveUnknown(
                    name=name,
                    key=key,
                    joints=(joint,),
                    unit=unit,
                    prior=x,
                    spread=spread,
                    scales=True,
                    stated=given is not None,
                )
            )
    if "zero" in estimated:
        for joint in group:
            c = laws[joint]
            given = c.sigma.get("zero")
            unit = "rad" if machine.kinds[joint] == "turning" else "m"
            found.append(
                DriveUnknown(
                    name=f"{c.name}.zero",
                    key="zero",
                    joints=(joint,),
                    unit=unit,
                    prior=c.constant("zero"),
                    spread=ZERO_SIGMA if given is None else given,
                    scales=False,
                    stated=given is not None,
                )
            )
    for key in ("command_delay", "measurement_delay"):
        if key in estimated:
            given = [laws[j].sigma[key] for j in group if key in laws[j].sigma]
            found.append(
                DriveUnknown(
                    name=f"{label}.{key}",
                    key=key,
                    joints=tuple(group),
                    unit="s",
                    prior=float(np.mean([laws[j].constant(key) for j in group])),
                    spread=given[0] if given else DELAY_SIGMA,
                    scales=False,
                    low=0.0,
                    stated=bool(given),
                )
            )
    return tuple(found)


def start_unknowns(joints: Sequence[str], records: Sequence[DriveRecord]) -> tuple[DriveUnknown, ...]:
    """How far each run started from the position that was read first and from the slope of the first positions."""
    found: list[DriveUnknown] = []
    for record in records:
        for key, unit, sigma in zip(STARTS, ("", "/s"), record.start_sigma, strict=True):
            found += [
                DriveUnknown(
                    name=f"{joint}.{key}_{record.run + 1}",
                    key=key,
                    joints=(joint,),
                    unit=unit,
                    prior=0.0,
                    spread=float(sigma[record.coordinates.index(joint)]),
                    scales=False,
                    run=record.run,
                )
                for joint in joints
            ]
    return tuple(found)


def _stated(machine: Machine) -> dict[str, float]:
    """Deviations of parameters that the machine states."""
    own = machine.uncertainty
    return {} if own is None else dict(zip(own.names, np.sqrt(np.diag(own.covariance)).tolist(), strict=True))


def only_joint(e: Element, group: Sequence[str]) -> str | None:
    """The joint of a group that an element acts on directly, and on nothing else."""
    joint = next(iter(e.on), "")
    return joint if len(e.on) == 1 and joint in group and e.on[joint] == 1.0 else None


def rung_terms(machine: Machine, records: Sequence[DriveRecord]) -> tuple[tuple[DriveUnknown, Element], ...]:
    """Further terms of friction of every joint with dry friction, their values zero, for the positions that records visit."""
    found: list[tuple[DriveUnknown, Element]] = []
    for e in machine.elements:
        joint = only_joint(e, machine.coordinates)
        if e.kind != "coulomb" or joint is None:
            continue
        size = machine.parameters[e.parameter_name]
        turning = machine.kinds[joint] == "turning"
        q = np.concatenate([r.position[:, r.coordinates.index(joint)] for r in records])
        middle, half = 0.5 * float(q.max() + q.min()), 0.5 * float(q.max() - q.min())
        if not (size > 0.0 and half > 0.0):
            continue
        unit = "N*m" if turning else "N"
        made = {
            key: replace(
                coulomb_along(joint, middle, half, 0.0, f"fq{power if power > 1 else ''}_{joint}", power), typical=size
            )
            for key, power in ALONG.items()
        } | {
            "direction": Element(kind="coulomb_forward", on={joint: 1.0}, value=0.0, name=f"fsp_{joint}"),
            "speed": stribeck(joint, STRIBECK_SPEED, 0.0, f"fst_{joint}"),
        }
        for key, element in made.items():
            unknown = DriveUnknown(
                name=element.parameter_name,
                key=key,
                joints=(joint,),
                unit=unit,
                prior=0.0,
                spread=WITHIN_FACTOR * size,
                scales=False,
            )
            found.append((unknown, element))
    return tuple(found)


def load_terms(machine: Machine, joints: Sequence[str]) -> tuple[DriveUnknown, ...]:
    """Friction that grows with the force of the drive, of those of some joints that have dry friction and none by load in the model."""
    dry = {only_joint(e, joints) for e in machine.elements if e.kind == "coulomb"}
    return tuple(
        DriveUnknown(
            name=f"{c.name}.{key}",
            key=key,
            joints=(c.on,),
            unit="1",
            prior=0.0,
            spread=LOAD_SIGMA,
            scales=False,
            low=0.0,
        )
        for key in LOAD
        for c in machine.controllers
        if c.on in dry and not c.rubs
    )


def with_drives(machine: Machine, kp: float, kd: float, rate: float) -> Machine:
    """The machine with a PD controller of these gains on every joint that has none."""
    have = {c.on for c in machine.controllers}
    missing = [c for c in machine.actuated_coordinates if c not in have]
    if missing and not kp > 0.0:
        raise IdentificationError(
            "it is not known how its drives follow commands.",
            where=part_at("joint", missing[0]),
            expected="a controller of kind pd in the model file, or Drives(kp=…, kd=…)",
            found=f"{len(missing)} of {machine.n} joints without one",
            source=machine.name,
        )
    added = [Controller(name=f"{c}_drive", kind="pd", on=c, rate=rate, constants={"kp": kp, "kd": kd}) for c in missing]
    return machine.with_controllers([*machine.controllers, *added]) if added else machine


def check_drives(machine: Machine) -> None:
    """Refuse what the simulation of drives does not cover, all of it at once."""
    faults = Faults()
    hint = "Drives are simulated on open machines that stand or hang: load_model(file, base='fixed')."
    if machine.base == "free":
        faults.add("its base is free.", where=machine.name, hint=hint)
    if machine.closed:
        faults.add("it has loops.", where=machine.name, hint=hint)
    if machine.prescribed:
        faults.add("it has prescribed coordinates.", where=machine.name, hint="Release them with with_prescribed(()).")
    have = {c.on for c in machine.controllers}
    for c in machine.coordinates:
        if c not in have:
            faults.add("it has no drive.", where=part_at("joint", c), hint="Lock it with welded(machine, {…}).")
    for c in machine.controllers:
        where = part_at("controller", c.name)
        if c.kind not in ("pd", "pid"):
            faults.add(f"drives of kind {c.kind} are not identified.", where=where, expected="pd or pid")
        if (
            c.motor
            or c.feedforward != "none"
            or c.constant("velocity_feedforward")
            or c.constant("acceleration_feedforward")
        ):
            faults.add("feed-forward and current loops are not identified.", where=where, hint="Leave them out.")
        if "rate_limit" in c.constants:
            faults.add("a rate_limit is not identified.", where=where, hint="Leave it out.")
    rates = {c.rate for c in machine.controllers}
    if len(rates) > 1:
        faults.add(
            "its drives have different rates.", where=machine.name, found=", ".join(f"{r:g} Hz" for r in sorted(rates))
        )
    faults.raise_if_any(IdentificationError, machine.name)
