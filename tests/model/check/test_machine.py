"""Faults of a graph: all at once, by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.graph_machines import rssr, slider_crank
from strangers.natural_mechanisms import rack_and_pinion, turning_fourbar
from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.model.check.machine import differences, equal_parts
from veridyn.model.elements.element import Element, damper
from veridyn.model.link import Joint, Link, LinkCapsule
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.model.place import Assembly, Attachment
from veridyn.spatial.transforms import Placement

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


CAPSULE = LinkCapsule((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), 0.02)


def test_a_machine_is_the_same_as_itself_made_again() -> None:
    assert differences(rssr(), rssr()) == ()
    assert differences(*(machine_of_mechanism(rack_and_pinion()) for _ in range(2))) == ()  # it has no tree


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("name", lambda m: replace(m, name="other")),
        ("gravity", lambda m: replace(m, gravity=np.array([0.0, 0.0, -9.82]))),
        ("joints", lambda m: replace(m, joints=(replace(m.joints[0], cut="no"), *m.joints[1:]))),
        ("bodies", lambda m: replace(m, links=(replace(m.links[0], capsules=(CAPSULE,)), *m.links[1:]))),
        ("loads", lambda m: replace(m, loads=(Drive("motor", m.coordinates[0]),))),
        ("assembly", lambda m: replace(m, assembly=Assembly({}, {m.coordinates[0]: 0.1}))),
        ("uncertainty", lambda m: m.with_uncertainty(Uncertainty(("M_rod",), np.eye(1)))),
        ("formulation", lambda m: m.with_formulation("natural")),
        ("parameters", lambda m: m.with_parameters(m.parameters.known(["M_rod"]))),
    ],
)
def test_each_part_is_compared(part: str, change) -> None:
    assert differences(rssr(), change(rssr())) == (part,)


def test_values_are_those_of_bodies_and_parameters() -> None:
    assert differences(rssr(), rssr().with_parameters({"M_rod": 1.0})) == ("bodies", "parameters")
    assert differences(slider_crank(), slider_crank().with_elements([damper("phi", 0.1)])) == ("elements", "parameters")


def test_dampers_are_elements_and_points_count() -> None:
    one = machine_of_mechanism(turning_fourbar())
    two = replace(one, elements=(*one.elements, damper("phi", 0.2, "h")))
    three = replace(one, elements=(*one.elements, Element(kind="damper", on={"phi": 1.0}, value=0.2, name="h")))
    assert differences(two, three) == ()
    assert one.description is not None
    point = replace(one.description.points[-1], at=(0.0, 1.0, 0.0))
    moved = replace(one.description, points=(*one.description.points[:-1], point))
    assert "points" in differences(one, replace(one, description=moved))


def test_nan_is_equal_to_itself_and_minus_zero_is_not_zero() -> None:
    assert equal_parts(Link(name="a", inertia=[np.nan] * 10).ten, [float("nan")] * 10)
    assert not equal_parts(0.0, -0.0)
    assert equal_parts((1, 2.0), [1.0, 2])
    assert not equal_parts(True, 1.0)
