"""The base of six virtual joints: a free tree written as a fixed one, so that Lagrange's equations cover its base too.

The actuated coordinates of a closed machine by themselves: what its log holds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.errors import ModelError
from veridyn.mechanics.tree.accept import changes_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.machine import Machine
from veridyn.model.names import GROUND
from veridyn.spatial.transforms import Placement, rotation_to_axis


@changes_machine
def actuators(machine: Machine | Tree) -> Tree:
    """A tree of virtual bodies, one for each coordinate that has an equation of its own, with its name, kind and motor.

    A log of a closed machine has channels of these alone: ``motion(actuators(tree), log, signals)`` makes them a motion, from which
    :func:`~veridyn.mechanics.tree.loops.closure.closed_motion` makes that of all joints.
    """
    tree = tree_of(machine)
    bodies = [
        Body(
            f"drive {tree.coordinates[k]}",
            joint=kind,
            actuated=tree.actuated[k],
            real=False,
            coordinate=tree.coordinates[k],
        )
        for k in tree.independent
        if (kind := tree.coordinate_kinds[k]) in ("turning", "sliding")
    ]
    return Tree.build(bodies, name=tree.name)


SIX = ("x", "y", "z", "yaw", "pitch", "roll")


@changes_machine
def on_six_joints(machine: Machine | Tree, prefix: str = "base_") -> Tree:
    """The same machine on six passive virtual joints: x, y, z along the ground's axes, then yaw, pitch and roll.

    The base sits at (x, y, z) with orientation Rz(yaw) Ry(pitch) Rx(roll). The bodies of the six joints are virtual (paper 000,
    III.B.2, where the sixth is the base itself) and the base is fixed to the last. With these, L₁..₆ = J_bᵀ [f; m] of the free
    tree's base rows. Pitch stays within ±90°.
    """
    tree = tree_of(machine)
    if tree.base != "free":
        raise ModelError("only a free tree can be put on six joints.", where=tree.name, found=f"base: {tree.base}")
    root = tree.bodies[0]
    axes = (np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.eye(3)[2], np.eye(3)[1], np.eye(3)[0])
    bodies: list[Body] = []
    before, frame = GROUND, np.eye(3)
    for k, (name, axis) in enumerate(zip(SIX, axes, strict=True)):
        wanted = np.eye(3) if k == 3 else rotation_to_axis(axis)
        kind = "sliding" if k < 3 else "turning"
        bodies.append(Body(prefix + name, before, kind, Placement(frame.T @ wanted), actuated=False, real=False))
        before, frame = prefix + name, wanted
    # The sixth joint turns about the base's x axis; the base's own frame follows it, fixed.
    bodies.append(replace(root, antecedent=before, joint="fixed", placement=Placement(frame.T)))
    built = Tree.build(
        [*bodies, *tree.bodies[1:]],
        name=tree.name,
        gravity=tree.gravity,
        elements=tree.elements,
        transmission=tree.transmission,
        loops=tree.loops,
        assembly=tree.assembly,
        sensors=tree.sensors,
        loads=tree.loads,
    )
    return built.with_parameters(tree.parameters).with_prescribed(tree.prescribed)
