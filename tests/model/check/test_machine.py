"""Faults of a graph: all at once, by name."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.model.link import Joint, Link, LinkCapsule
from veridyn.model.machine import Machine
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
