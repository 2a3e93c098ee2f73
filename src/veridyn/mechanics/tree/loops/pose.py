"""The pose that 'assembly' leads to, closed or not: where every cut joint comes to lie, and how far it stays open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, nearest_pose
from veridyn.mechanics.tree.loops.equations import names_of
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.assembly import Attachment
from veridyn.model.machine import Machine
from veridyn.model.names import GROUND

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AssembledPose:
    """`coordinates`: name → rad or m. `pins`: loop → where both ends of its cut joint lie, m, in the ground's frame or that of a free base.

    `openings`: loop → largest of what its equations leave, in m and in products of unit axes.
    """

    coordinates: Mapping[str, float]
    pins: Mapping[str, tuple[Array, Array]]
    openings: Mapping[str, float]

    @property
    def closed(self) -> bool:
        """Whether every loop closes."""
        return max(self.openings.values(), default=0.0) <= CLOSED_TOLERANCE_M


@takes_machine
def assembled_pose(machine: Machine | Tree) -> AssembledPose:
    """The pose nearest to 'assembly' in which the loops of a machine are as closed as they get; refused where it has none."""
    tree = tree_of(machine)
    q, opening = nearest_pose(tree)
    openings = dict.fromkeys((loop.name for loop in tree.loops), 0.0)
    for name, x in zip(names_of(tree.loops), opening, strict=True):
        openings[name] = max(openings[name], float(x))
    pins = {loop.name: (_place(tree, q, loop.first), _place(tree, q, loop.second)) for loop in tree.loops}
    return AssembledPose(dict(zip(tree.coordinates, q.tolist(), strict=True)), pins, openings)


def _place(tree: Tree, q: Array, end: Attachment) -> Array:
    """Where an end of a cut joint lies (3,)."""
    at = np.asarray(end.placement.position, dtype=np.float64)
    if end.body == GROUND:
        return at
    R, p = body_pose(tree, q[None], end.body)
    return p[0] + R[0] @ at
