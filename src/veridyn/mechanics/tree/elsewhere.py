"""A machine whose bodies sit elsewhere: a joint or an end of a cut joint moved, all distances longer, or on another base.

A diagnosis tries hundreds of moved machines, so the tree is changed along with the description and is not made anew. Another base is one
of the machine's other bodies, whose rows and motion are then those of the base; or six virtual joints, with which a free tree is written
as a fixed one, so that Lagrange's equations cover its base too.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.tree.of_machine import FORM, changes_machine, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, Marker
from veridyn.model.graph import Body
from veridyn.model.link import Joint, is_identity
from veridyn.model.load import moved_load
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Assembly, Attachment
from veridyn.spatial.inertia import moved as moved_inertia
from veridyn.spatial.rotations import MDH, Placement, rotation_to_axis

Frame = tuple[Array, Array]
SIX = ("x", "y", "z", "yaw", "pitch", "roll")


@dataclass(frozen=True)
class End:
    """One end of a joint, `side` "a" or "b".

    `body`: what the joint carries; of a joint at which a loop is `cut` open, what the end is on. `far`: the end on the carried body.
    """

    joint: str
    side: str
    body: str
    cut: bool = False
    far: bool = False

    @property
    def ways(self) -> int:
        """Along three axes and about three; about none where the joint is cut."""
        return 3 if self.cut else 6


def ends_of(machine: Machine) -> list[End]:
    """What can sit elsewhere: joints on the bodies that carry them, the bodies on their joints where those are not in the bodies'
    origins, then both ends of cut joints."""
    found: list[End] = []
    for link in machine.described.links:
        carrier = machine.described.spanning.carriers[link]
        if link == machine.root or (machine.dimension == 2 and carrier.joint.kind == "floating"):
            continue
        near, far = ("b", "a") if carrier.reversed else ("a", "b")
        found.append(End(carrier.joint.name, near, link))
        if not is_identity(_end(machine, carrier.joint, far).placement):
            found.append(End(carrier.joint.name, far, link, far=True))
    for joint in machine.cut_joints:
        found += [End(joint.name, side, _end(machine, joint, side).body, cut=True) for side in ("a", "b")]
    return found


def moved(machine: Machine, end: End, way: int, amount: float) -> Machine:
    """The machine with one end of a joint elsewhere: along axis `way` of its body's frame, or turned about axis `way` − 3 of its own."""
    joint = next(j for j in machine.joints if j.name == end.joint)
    own = _end(machine, joint, end.side)
    R, p = np.asarray(own.placement.rotation), np.asarray(own.placement.position)
    if way < 3:
        p = p + amount * np.eye(3)[way]
    else:
        a = np.zeros((3, 3))
        i, j = (way - 2) % 3, (way - 1) % 3
        a[j, i], a[i, j] = 1.0, -1.0
        # Rodrigues about a unit axis: 1 + sin θ A + (1 − cos θ) A².
        R = R @ (np.eye(3) + np.sin(amount) * a + (1.0 - np.cos(amount)) * a @ a)
    place = Attachment(own.body, Placement(rotation=R, position=p))
    other = replace(joint, **{end.side: place})
    made = replace(machine, joints=tuple(other if j.name == joint.name else j for j in machine.joints))
    tree = _changed(machine, end, joint, place)
    if tree is not None:
        made.forms[FORM] = tree
    return made


def stretched(machine: Machine, factor: float) -> Machine:
    """The machine with all distances between joints that many times as long."""
    longer = [
        replace(
            j,
            a=_longer(machine.attachment(j.a), factor),
            b=_longer(machine.attachment(j.b), factor),
            length=factor * j.length,
        )
        for j in machine.joints
    ]
    made, tree = replace(machine, joints=tuple(longer)), tree_of(machine)
    bodies = tuple(replace(b, placement=_scaled(b.placement, factor)) for b in tree.bodies)
    loops = tuple(
        replace(c, first=_longer(c.first, factor), second=_longer(c.second, factor), length=factor * c.length)
        for c in tree.loops
    )
    made.forms[FORM] = replace(tree, bodies=bodies, loops=loops)
    return made


def assembled_at(machine: Machine, q: Array) -> Machine:
    """The machine put together near a pose."""
    near = Assembly(guess=dict(zip(machine.coordinates, q.tolist(), strict=True)))
    made = replace(machine, assembly=near)
    made.forms[FORM] = replace(tree_of(machine), assembly=near)
    return made


def _end(machine: Machine, joint: Joint, side: str) -> Attachment:
    return machine.attachment(joint.a if side == "a" else joint.b)


def _changed(machine: Machine, end: End, joint: Joint, place: Attachment) -> Tree | None:
    """The tree with that change, where it is one of a single placement in it; None where the tree has to be made of the description."""
    tree = tree_of(machine)
    if end.cut:
        side = "first" if end.side == "a" else "second"
        return replace(
            tree, loops=tuple(replace(c, **{side: place}) if c.name == joint.name else c for c in tree.loops)
        )
    body = tree.bodies[tree.index(end.body)]
    chain = joint.kind == "fixed" and not is_identity(machine.attachment(joint.b).placement)
    if (
        end.side == "b" or body.joint != joint.kind or chain
    ):  # a joint turned round, or one for which more than its body stands
        return None
    other = replace(body, placement=place.placement)
    return replace(tree, bodies=tuple(other if b is body else b for b in tree.bodies))


def _longer(end: Attachment, factor: float) -> Attachment:
    return replace(end, placement=_scaled(end.placement, factor))


def _scaled(p: MDH | Placement, factor: float) -> MDH | Placement:
    if isinstance(p, MDH):
        return replace(p, b=factor * p.b, d=factor * p.d, r=factor * p.r)
    return Placement(p.rotation, factor * p.position)


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
            inertia[b.name] = X if frame is None else moved_inertia(X, frame[0].T, -frame[0].T @ frame[1])
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
