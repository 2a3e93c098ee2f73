"""A tree as a machine: the way back from :mod:`~veridyn.mechanics.tree.of_machine`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, broken_law

Array = NDArray[np.float64]


def machine_of_tree(tree: Tree) -> Machine:
    """The same machine as a graph: ``tree_of(machine_of_tree(tree))`` has the bodies, coordinates, rows, loops and parameters of `tree`.

    Inertias that no physical body has, as a fit may give them, are kept: the values of the parameters are those of `tree`.
    """
    values = tree.parameters
    own = Tree.build(tree.bodies, base=tree.base, gravity=tree.gravity, elements=tree.elements).parameters
    if (own.names, own.units) != (values.names, values.units):
        raise ModelError(
            "its parameters or their units are not those of its bodies and elements.",
            where=tree.name,
            hint="Make it with Tree.build and change its parameters with with_parameters.",
        )
    tens = {b.name: np.array([values[b.parameter(s)] for s in INERTIAL]) for b in tree.bodies if b.real}
    machine = Machine.of_bodies(
        tree.bodies,
        name=tree.name,
        base=tree.base,
        gravity=tree.gravity,
        inertia={name: ten for name, ten in tens.items() if _usable(ten)},
        elements=tree.elements,
        transmission=tree.transmission,
        loops=tree.loops,
        assembly=tree.assembly,
        sensors=tree.sensors,
        loads=tree.loads,
        prescribed=tree.prescribed,
    ).with_parameters(values)
    return machine if tree.uncertainty is None else machine.with_uncertainty(tree.uncertainty)


def _usable(ten: Array) -> bool:
    """Whether these are numbers of a physical body, some of them perhaps unknown."""
    if np.isnan(ten).all() or np.isinf(ten).any():
        return False
    return bool(np.isnan(ten).any()) or not broken_law(ten)
