"""The same free machine with another of its bodies as the base: base rows and base motion are then those of that body."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.tree.accept import changes_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements.element import Element, Marker
from veridyn.model.load import moved_load
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import moved
from veridyn.spatial.transforms import Placement

Array = NDArray[np.float64]
Frame = tuple[Array, Array]


@changes_machine
def rebased(machine: Machine | Tree, body: str) -> Tree:
    """The free tree with `body` as its base; coordinates keep their names, order of meaning and values.

    Joints on the way from the old base are turned round (their ratio changes sign), so a body of that way has a new frame: where its joint
    towards the new base sits. Its parameters, and wrenches that act on it, are in that frame; all other bodies keep theirs.
    Sensors and loads stay where they are.
    """
    tree = tree_of(machine)
    tree.check_open("another base")
    if tree.base != "free":
        raise ModelError("only a free tree can have another base.", where=tree.name, found=f"base: {tree.base}")
    on_bodies = [e.parameter_name for e in tree.elements if e.on_body is not None]
    if on_bodies:
        raise ModelError(
            "an element that acts on a body cannot follow it into another frame.", where=", ".join(on_bodies)
        )
    way = tree.path(tree.index(body))  # the new base first
    outside: dict[int, Frame] = {}  # a body of the way → its new frame, in its old one
    for child, parent in itertools.pairwise(way):
        place = tree.bodies[child].placement
        outside[parent] = (place.rotation, place.position)
    made: list[Body] = [
        replace(tree.bodies[way[0]], antecedent=None, joint="fixed", placement=Placement(), ratio=1.0, coordinate="")
    ]
    for child, parent in itertools.pairwise(way):
        joint = tree.bodies[child]
        made.append(
            replace(
                tree.bodies[parent],
                antecedent=joint.name,
                joint=joint.joint,
                placement=_seen_from(outside.get(child), (np.eye(3), np.zeros(3))),
                ratio=-joint.ratio,
                coordinate=joint.coordinate_name,
                actuated=joint.actuated,
            )
        )
    for j, b in enumerate(tree.bodies):
        if j not in way:
            carrier = outside.get(tree.antecedent[j])
            here = (b.placement.rotation, b.placement.position)
            made.append(b if carrier is None else replace(b, placement=_seen_from(carrier, here)))
    values = iter(tree.parameters.values[: 10 * sum(b.real for b in tree.bodies)].reshape(-1, 10))
    inertia = {}
    for j, b in enumerate(tree.bodies):
        if b.real:
            X = next(values)
            frame = outside.get(j)
            inertia[b.name] = X if frame is None else moved(X, frame[0].T, -frame[0].T @ frame[1])
    homes = {tree.bodies[j].name: (tree.bodies[j].name, R.T, -R.T @ p) for j, (R, p) in outside.items()}
    built = Tree.build(
        made,
        name=tree.name,
        base="free",
        gravity=tree.gravity,
        inertia={n: x for n, x in inertia.items() if np.isfinite(x).all()},
        elements=[_seen_again(tree, e, outside) for e in tree.elements],
        transmission=tree.transmission,
        sensors=[sensor.moved(homes) for sensor in tree.sensors],
        loads=[moved_load(load, homes) for load in tree.loads],
        prescribed=tree.prescribed,
    )
    typical = dict(zip(tree.parameters.names, tree.parameters.typical, strict=True))
    return built.with_parameters(
        replace(built.parameters, typical=np.array([typical[n] for n in built.parameters.names]))
    )


def _seen_again(tree: Tree, e: Element, outside: Mapping[int, Frame]) -> Element:
    """An element between two places or on a wheel, which are given in the bodies' new frames."""
    if e.wheel is not None:
        frame = outside.get(tree.index(e.wheel.body))
        if frame is None:
            return e
        return replace(e, wheel=e.wheel.moved(e.wheel.body, frame[0].T, -frame[0].T @ frame[1]))
    if e.between is None:
        return e
    a, b = (_moved_place(m, outside.get(tree.index(m.body))) for m in e.between)
    return replace(e, between=(a, b))


def _moved_place(place: Marker, frame: Frame | None) -> Marker:
    return place if frame is None else replace(place, at=frame[0].T @ (np.array(place.at) - frame[1]))


def _seen_from(frame: Frame | None, at: Frame) -> Placement:
    """Where `at` is, seen from `frame`, both in one old frame."""
    if frame is None:
        return Placement(*at)
    R, p = frame
    return Placement(R.T @ at[0], R.T @ (at[1] - p))
