"""Faults of a graph, and of motions of a machine: all at once, by name."""

from __future__ import annotations

import numpy as np
import pytest

from model.small_car import car
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.link import Joint, Link, LinkCapsule
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import Attachment
from veridyn.spatial.rotations import Placement

BOX = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]
ARM = Link(name="arm", inertia=BOX, frames={"tip": Placement(position=(1, 0, 0))})
FLAT = LinkCapsule((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), 0.0)


def _faults(links: list[Link], joints: list[Joint], **more: object) -> str:
    with pytest.raises(ModelError) as found:
        Machine.build(links, joints, name="m", **more)
    return str(found.value)


def test_all_faults_at_once() -> None:
    text = _faults(
        [
            ARM,
            Link(name="arm", inertia=BOX),
            Link(name="ground"),
            Link(name="rod", inertia=[1.0] * 9, capsules=(FLAT,)),
        ],
        [
            Joint(name="a", kind="hinge", a="ground", b="arm"),
            Joint(name="b", a="ground", b="arn"),
            Joint(name="c", a="arm.tp", b="rod"),
            Joint(name="d", kind="distance", a="ground", b="rod", cut="no"),
            Joint(name="e", kind="universal", a="ground", b="rod", coordinates=("one",), ratio=2.0),
            Joint(name="f", a="rod", b="rod", cut="perhaps"),
            Joint(name="g", kind="planar", a="ground", b="rod", actuated=("h",), length=2.0),
        ],
        formulation="points",
        dimension=4,
    )
    for part in (
        "body 'arm': the name is used 2 times.",
        "body 'ground': this name is taken by the ground.",
        "body 'rod': its inertia is not ten numbers.",
        "body 'rod', capsule 1: a radius must be above zero.",
        "joint 'a': 'hinge' is no kind of joint.",
        "joint 'b': there is no body 'arn'.",
        "Did you mean 'arm'?",
        "joint 'c': the body 'arm' has no frame 'tp'.",
        "joint 'd': a distance needs a length above zero.",
        "joint 'd': a distance is always cut",
        "joint 'e': a universal joint has 2 coordinates.",
        "joint 'e': only a joint of one coordinate has a ratio.",
        "joint 'f': both ends are on 'rod'.",
        "joint 'f': cut cannot be 'perhaps'.",
        "joint 'g': it has no coordinate 'h' to drive.",
        "joint 'g': only a distance has a length.",
        "there is no formulation 'points'.",
        "a machine has two or three dimensions.",
    ):
        assert part in text, part


def test_a_body_that_nothing_carries_is_named() -> None:
    text = _faults([ARM, Link(name="rod", inertia=BOX)], [Joint(name="q", a="ground", b="arm")])
    assert "body 'rod': no joint that is not cut leads from the ground to it." in text
    assert "floating" in text


def test_what_leaves_the_plane_is_named() -> None:
    tilted = Attachment("ground", Placement([[1, 0, 0], [0, 0, -1], [0, 1, 0]]))
    text = _faults(
        [ARM, Link(name="rod", inertia=BOX)],
        [Joint(name="q", a=tilted, b="arm"), Joint(name="ball", kind="spherical", a="arm.tip", b="rod")],
        dimension=2,
        gravity=(0, 0, -9.81),
    )
    assert "joint 'q', frame on 'ground': it does not move in the plane." in text
    assert "joint 'ball': a spherical joint exists in space only." in text
    assert "gravity leaves the plane" in text


def test_impossible_inertia_placements_and_prescribed_coordinates() -> None:
    bad = Link(name="arm", inertia=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1.0])
    text = _faults([bad], [Joint(name="q", a=Attachment("ground", Placement(2 * np.eye(3))), b="arm")])
    assert "body 'arm': no physical body has this inertia" in text
    assert "its placement is not a rotation and a position" in text
    text = _faults([ARM], [Joint(name="q", a="ground", b="arm")], prescribed=("p",))
    assert "there is no coordinate 'p' to prescribe." in text


def still(tree: Tree, **more: object) -> Motion:
    q = np.zeros((2, tree.n))
    return Motion(np.array([0.0, 1.0]), q, q, q, **more)


def test_motions_of_another_machine_are_refused_with_every_reason() -> None:
    tree = car()
    with pytest.raises(DataError) as caught:
        tree.check_motion(still(Tree.build([Body("1")]), wrenches={"wheel": np.zeros((2, 6))}))
    message = str(caught.value)
    for words in (
        "another number of coordinates.\nExpected 3 (steer, roll, right), found 1.",
        "the base is free, and the motion does not say how it moves.",
        "a wrench acts on 'wheel', which is no body.",
        "element 'K_steer' needs the signal 'i', which the motion has not.",
    ):
        assert words in message
    three = np.zeros((2, 3))
    with pytest.raises(DataError, match="drag 'C_chassis_fx' needs the velocity of the base"):
        tree.check_motion(still(tree, base=BaseMotion(three, three, three), signals={"i": np.zeros(2)}))
    tree.check_motion(still(tree, base=BaseMotion(three, three, three, three), signals={"i": np.zeros(2)}))
    fixed = Tree.build([Body("1")])
    with pytest.raises(DataError, match="the base is fixed, but the motion moves it"):
        fixed.check_motion(still(fixed, base=BaseMotion(three, three, three)))
