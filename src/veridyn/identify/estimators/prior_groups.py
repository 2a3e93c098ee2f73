"""Groups of parameters that a drawing knows differently well: inertias, masses, friction, offsets, and other elements.

A URDF's inertias come from a CAD model, its friction is often zero because nobody wrote one, and the offsets of torque sensors are in no
drawing at all. So a prior has a scale for each group, and a zero of friction or offset is taken for a value that is missing. Friction and
offsets without a value, such as the terms that a friction ladder adds, are the same: zero, with a deviation that decides nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.model.elements import Element
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
GROUPS = ("inertia", "mass", "friction", "offset", "other")
UNSTATED = ("friction", "offset")  # groups in which a value of zero, or none, says that nobody stated one
UNSTATED_SIZES = 10.0  # typical sizes: the prior deviation of what nobody stated
FRICTION_KINDS = ("stribeck", "tanh_friction", "lugre")


def group_of(machine: Machine) -> tuple[str, ...]:
    """The group of each parameter of a tree."""
    out = []
    for body, number in machine.columns:
        if body:
            out.append("mass" if number == 9 else "inertia")
            continue
        out.append(_group_of_element(machine.elements[number]))
    return tuple(out)


def _group_of_element(e: Element) -> str:
    """Friction is what is made for it, and every law of the speed of its coordinate."""
    of_speed = e.own_law is not None and "v" in e.own_law.own
    if of_speed or e.kind.startswith(("damper", "coulomb")) or e.kind in FRICTION_KINDS:
        return "friction"
    return "offset" if e.kind == "offset" else "other"


def unstated(machine: Machine, values: Array) -> NDArray[np.bool_]:
    """Which parameters have no value, or the zero of a drawing that does not know them, where that says no more than the other."""
    none = ~np.isfinite(values) | (values == 0.0)
    return np.array([g in UNSTATED and n for g, n in zip(group_of(machine), none, strict=True)], dtype=bool)
