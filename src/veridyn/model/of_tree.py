"""A tree as a machine: the way back from :mod:`~veridyn.model.spanning`."""

from __future__ import annotations

import numpy as np

from veridyn.model.graph import unique
from veridyn.model.joint import GROUND, Body
from veridyn.model.link import Joint, JointKind, Link
from veridyn.model.loop import Attachment
from veridyn.model.machine import Machine
from veridyn.model.tree import Tree
from veridyn.spatial.inertia import INERTIAL


def machine_of_tree(tree: Tree) -> Machine:
    """The same machine as a graph: ``machine_of_tree(tree).tree`` has the bodies, coordinates, rows, loops and parameters of `tree`."""
    values = tree.parameters
    links = []
    for b in tree.bodies:
        ten = np.array([values[b.parameter(s)] for s in INERTIAL]) if b.real else None
        known = ten is not None and not np.isnan(ten).all()
        links.append(Link(name=b.name, inertia=ten if known else None, real=b.real, label=b.label))
    cut_names = {loop.name for loop in tree.loops}
    joints: list[Joint] = []
    for j, b in enumerate(tree.bodies):
        name = unique(b.name, {*cut_names, *(made.name for made in joints)}, "joint")
        joints.append(_joint(tree, j, b, name))
    joints += [
        Joint(name=loop.name, kind=_kind(loop.joint), a=loop.first, b=loop.second, cut="yes", length=loop.length)
        for loop in tree.loops
    ]
    return Machine.build(
        links,
        joints,
        name=tree.name,
        elements=tree.elements,
        loads=tree.loads,
        sensors=tree.sensors,
        prescribed=tree.prescribed,
        parameters=values,
        transmission=tree.transmission,
        assembly=tree.assembly,
        gravity=tree.gravity,
    )


def _joint(tree: Tree, j: int, b: Body, name: str) -> Joint:
    carrier = b.antecedent or GROUND
    if tree.base == "free" and j == 0:
        return Joint(name=name, kind="floating", a=Attachment(GROUND, b.placement), b=b.name, cut="no")
    own = b.coordinate_name
    explicit = b.coordinate or (own if own and name != b.name else "")
    return Joint(
        name=name,
        kind=b.joint,
        a=Attachment(carrier, b.placement),
        b=b.name,
        coordinates=(explicit,) if explicit else (),
        ratio=b.ratio if b.joint != "fixed" else 1.0,
        actuated=b.actuated,
        cut="no",
    )


def _kind(word: str) -> JointKind:
    return word  # pyright: ignore[reportReturnType]
