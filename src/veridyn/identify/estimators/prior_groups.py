"""Groups of parameters that a drawing knows differently well: inertias, masses, friction, offsets, and other elements.

A URDF's inertias come from a CAD model, its friction is often zero because nobody wrote one, and the offsets of torque sensors are in no
drawing at all. So a prior has a scale for each group, and a zero of friction or offset is taken for a value that is missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.tree import Tree

Array = NDArray[np.float64]
GROUPS = ("inertia", "mass", "friction", "offset", "other")
UNSTATED = ("friction", "offset")  # groups in which a value of zero says that nobody stated one
UNSTATED_SIZES = 10.0  # typical sizes: the prior deviation of what nobody stated
FRICTION_KINDS = ("stribeck", "tanh_friction", "lugre")


def group_of(tree: Tree) -> tuple[str, ...]:
    """The group of each parameter of a tree."""
    out = []
    for body, number in tree.columns:
        if body >= 0:
            out.append("mass" if number == 9 else "inertia")
            continue
        kind = tree.elements[number].kind
        friction = kind.startswith(("damper", "coulomb")) or kind in FRICTION_KINDS
        out.append("friction" if friction else "offset" if kind == "offset" else "other")
    return tuple(out)


def unstated(tree: Tree, values: Array) -> NDArray[np.bool_]:
    """Which parameters have the zero of a drawing that does not know them."""
    return np.array([g in UNSTATED and v == 0.0 for g, v in zip(group_of(tree), values, strict=True)], dtype=bool)
