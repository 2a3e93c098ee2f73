"""The terms of a friction ladder, each as elements of one coordinate: c its position, v its speed.

============= ============================================== ====================================================
term          force                                          elements
============= ============================================== ====================================================
viscous       h v                                            damper
coulomb       fs sign(v)                                     coulomb
asymmetric    off + ha |v|                                   offset, and a law: friction that differs by direction
stribeck      fst sign(v)/(1 + (v/vs)²)                      stribeck; vs is searched
load          fm |load| sign(v)                              a law of the joint force that the rigid machine needs
quadratic     hq v |v|                                       a law
temperature   (ht v + ft sign(v)) (T − T₀)                   two laws of a measured temperature, T₀ its mean
============= ============================================== ====================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from veridyn.model.elements.element import Element, coulomb, damper, law, offset, stribeck
from veridyn.model.machine import Machine

Term = Literal["viscous", "coulomb", "asymmetric", "stribeck", "load", "quadratic", "temperature"]
TERMS: tuple[Term, ...] = get_args(Term)
# Kinds of elements that a term stands for
PRESENT: Mapping[str, tuple[str, ...]] = {
    "viscous": ("damper", "damper_forward"),
    "coulomb": ("coulomb", "coulomb_forward", "tanh_friction", "lugre"),
    "asymmetric": ("damper_forward", "coulomb_forward"),
    "stribeck": ("stribeck", "lugre"),
}


@dataclass(frozen=True)
class Measured:
    """What terms need of a log: the signal of a coordinate's temperature and its mean, both empty where there is none; a bank of speeds."""

    temperature: str
    mean: float
    speeds: tuple[float, ...]


def load_signal(coordinate: str) -> str:
    """The signal of the force that the rigid machine needs at a coordinate, as a formula can name it."""
    return "load_" + re.sub(r"\W", "_", coordinate)


def candidates(machine: Machine, term: str, c: str, measured: Measured) -> list[list[Element]]:
    """The ways to add a term to a coordinate, each a list of elements: one, but for Stribeck's curve one for each speed."""
    turning = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))[c] == "turning"
    force, angle = ("N*m", "rad") if turning else ("N", "m")
    if term == "viscous":
        return [[damper(c)]]
    if term == "coulomb":
        return [[coulomb(c)]]
    if term == "asymmetric":
        one_way = law(c, "abs(v)", name=f"ha_{c}", unit=f"{force}*s/{angle}")
        return [[one_way] if _has(machine, ("offset",), c) else [offset(c), one_way]]
    if term == "stribeck":
        return [[stribeck(c, speed)] for speed in measured.speeds]
    if term == "load":
        return [[law(c, f"abs(signal({load_signal(c)}))*sign(v)", name=f"fm_{c}", unit="1")]]
    if term == "quadratic":
        return [[law(c, "v*abs(v)", name=f"hq_{c}", unit=f"{force}*s^2/{angle}^2")]]
    warmer = f"(signal({measured.temperature}) - {measured.mean:g})"
    return [
        [
            law(c, f"v*{warmer}", name=f"ht_{c}", unit=f"{force}*s/{angle}/K"),
            law(c, f"sign(v)*{warmer}", name=f"ft_{c}", unit=f"{force}/K"),
        ]
    ]


def why_not(machine: Machine, term: str, c: str, measured: Measured) -> str:
    """Why a term is not tried on a coordinate; empty where it is."""
    if _has(machine, PRESENT.get(term, ()), c):
        return "in the model already"
    if term == "load" and machine.closed:
        return "not tried: in closed loops the force at one joint is not determined"
    if term == "temperature" and not measured.temperature:
        return "not tried: no temperature is named"
    return ""


def _has(machine: Machine, kinds: tuple[str, ...], c: str) -> bool:
    return any(e.kind in kinds and set(e.on) == {c} for e in machine.elements)
