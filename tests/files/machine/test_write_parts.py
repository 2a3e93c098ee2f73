"""Two machines are compared part by part, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.graph_machines import rssr, slider_crank
from strangers.natural_mechanisms import rack_and_pinion, turning_fourbar
from veridyn.files.machine.write_parts import differences, equal_parts
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.model.elements.element import Element, damper
from veridyn.model.link import Link, LinkCapsule
from veridyn.model.load import Drive
from veridyn.model.parameters import Uncertainty
from veridyn.model.place import Assembly

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
