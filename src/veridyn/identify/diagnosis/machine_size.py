"""What forces become where all distances between joints are longer than the model's: the column of a log of a larger or smaller machine.

s = ∂Γ̂/∂c,     every distance (1 + c) times the model's, with the parameters of the fit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion
from veridyn.spatial.transforms import MDH, Placement

Array = NDArray[np.float64]
MACHINE = ""  # in place of a coordinate, of what is said of the machine as a whole
STEP = 1e-5  # of c


def size_slopes(tree: Tree, values: Array, m: Motion, rows: Sequence[str], forces: Array) -> Array:
    """s (N, rows) along a motion with standard parameters `values` (p,), which ask for the `forces` (N, rows) as the model has it."""
    longer = inverse_dynamics(stretched(tree, 1.0 + STEP), m, list(rows), values, engine="numpy")
    return (longer - forces) / STEP


def stretched(tree: Tree, factor: float) -> Tree:
    """The machine with all distances between joints that many times as long."""
    return replace(tree, bodies=tuple(replace(b, placement=_longer(b.placement, factor)) for b in tree.bodies))


def _longer(p: MDH | Placement, factor: float) -> MDH | Placement:
    if isinstance(p, MDH):
        return replace(p, b=factor * p.b, d=factor * p.d, r=factor * p.r)
    return Placement(p.rotation, factor * p.position)
