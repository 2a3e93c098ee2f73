"""A tree as a machine: the way back from :mod:`~veridyn.model.spanning`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.tree.body import Body
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.assembly import Attachment
from veridyn.model.graph import unique
from veridyn.model.link import Joint, JointKind, Link
from veridyn.model.machine import Machine
from veridyn.model.names import GROUND
from veridyn.spatial.inertia import INERTIAL, broken_law

Array = NDArray[np.float64]


def machine_of_tree(tree: Tree) -> Machine:
    """The same machine as a graph: ``machine_of_tree(tree).tree`` has the bodies, coordinates, rows, loops and parameters of `tree`.

    Inertias that no physical body has, as a fit may give them, are kept: the values of the parameters are those of `tree`.
    """
    values = tree.parameters
    own = Tree.build(tree.bodies, base=tree.base, gravity=tree.gravity, elements=tree.elements).parameters
    if (own.names, own.units) != (values.names, values.units):
        raise ModelError(
            Fault(
                "its parameters or their units are not those of its bodies and elements.",
                where=tree.name,
                hint="Make it with Tree.build and change its parameters with with_parameters.",
            )
        )
    links = []
    for b in tree.bodies:
        ten = np.array([values[b.parameter(s)] for s in INERTIAL]) if b.real else None
        links.append(Link(name=b.name, inertia=ten if _usable(ten) else None, real=b.real, label=b.label))
    loops = [
        Joint(name=loop.name, kind=_kind(loop.joint), a=loop.first, b=loop.second, cut="yes", length=loop.length)
        for loop in tree.loops
    ]
    machine = Machine.build(
        links,
        [*joints_of_bodies(tree.bodies, tree.base, [loop.name for loop in loops]), *loops],
        name=tree.name,
        elements=tree.elements,
        loads=tree.loads,
        sensors=tree.sensors,
        prescribed=tree.prescribed,
        transmission=tree.transmission,
        assembly=tree.assembly,
        gravity=tree.gravity,
    ).with_parameters(values)
    return machine if tree.uncertainty is None else machine.with_uncertainty(tree.uncertainty)


def _usable(ten: Array | None) -> bool:
    """Whether these are numbers of a physical body, some of them perhaps unknown."""
    if ten is None or np.isnan(ten).all() or np.isinf(ten).any():
        return False
    return bool(np.isnan(ten).any()) or not broken_law(ten)


def joints_of_bodies(bodies: Iterable[Body], base: str, taken: Iterable[str] = ()) -> list[Joint]:
    """The joints that carry bodies described by antecedents; each has its body's name unless that is `taken` by another joint.

    The first body of a free `base` floats.
    """
    joints: list[Joint] = []
    used = set(taken)
    for j, b in enumerate(bodies):
        name = unique(b.name, used, "joint")
        used.add(name)
        joints.append(_joint(b, name, floats=base == "free" and j == 0))
    return joints


def _joint(b: Body, name: str, floats: bool) -> Joint:
    if floats:
        return Joint(name=name, kind="floating", a=Attachment(GROUND, b.placement), b=b.name, cut="no")
    own = b.coordinate_name
    explicit = b.coordinate or (own if own and name != b.name else "")
    return Joint(
        name=name,
        kind=b.joint,
        a=Attachment(b.antecedent or GROUND, b.placement),
        b=b.name,
        coordinates=(explicit,) if explicit else (),
        ratio=b.ratio if b.joint != "fixed" else 1.0,
        actuated=b.actuated,
        cut="no",
    )


def _kind(word: str) -> JointKind:
    return word  # pyright: ignore[reportReturnType]
