"""An observed machine as points and lines, one pose at a time: what the page draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.to_machine import machine_of_tree
from veridyn.model.machine import Machine
from veridyn.observe.machine import MachineSystem
from veridyn.spatial.rotations import matrix_of
from veridyn.view.machine import tree_layer
from veridyn.view.mechanism import mechanism_layer
from veridyn.view.scene import Layer

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Picture:
    """How a machine is drawn: `layer` makes points of configurations (N, nq); `moving`: whether the eye goes with it."""

    layer: Callable[[Array], Layer]
    segments: tuple[tuple[int, int], ...]
    up: str = "z"
    trail: int | None = None
    moving: bool = False

    def points(self, q: Array) -> Array:
        """Points (p, 3) in m at a configuration (nq,)."""
        return self.layer(q[None]).points[0]


def picture_of(layer: Callable[[Array], Layer], q: Array, up: str = "z", moving: bool = False) -> Picture:
    """A picture whose lines are those of the machine at `q` (nq,) and beside it: one without length there may get one later."""
    near = np.stack([q, q + 0.05, q - 0.03])
    made = layer(near)
    trail = made.trails[0] if made.trails else made.points.shape[1] - 1
    return Picture(layer, tuple(made.segments), up, trail, moving)


def machine_picture(system: MachineSystem, x: Array) -> Picture | None:
    """The picture of an observed machine from its state `x`; None where its formulation cannot be drawn."""
    q, model = system.split(x)[0], cast(Any, system.model)
    if system.formulation == "tree":
        return tree_picture(machine_of_tree(model.tree), q)
    if system.formulation == "natural":
        natural = model.system
        flat = natural.mechanism.dimension == 2
        return picture_of(lambda many: mechanism_layer("", natural, many), q, "y" if flat else "z")
    return None


def tree_picture(machine: Machine, q: Array) -> Picture:
    """The picture of a machine in joint coordinates; of a free base the configuration begins with place and attitude."""
    if machine.base != "free":
        return picture_of(lambda many: tree_layer(machine, many, ""), q)

    def layer(many: Array) -> Layer:
        unit = many[:, 3:7] / np.linalg.norm(many[:, 3:7], axis=1, keepdims=True)
        return tree_layer(machine, many[:, 7:], "", position=many[:, :3], rotation=matrix_of(unit))

    return picture_of(layer, q, moving=True)
