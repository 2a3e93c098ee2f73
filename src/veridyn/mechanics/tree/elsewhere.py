"""A machine whose bodies sit elsewhere: one joint moved or turned, one end of a cut joint moved, or all distances longer.

A diagnosis tries hundreds of them, so the tree is changed along with the description and is not made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.of_machine import FORM, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.assembly import Assembly, Attachment
from veridyn.model.link import Joint, is_identity
from veridyn.model.machine import Machine
from veridyn.spatial.transforms import MDH, Placement

Array = NDArray[np.float64]


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
