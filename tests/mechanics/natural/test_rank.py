"""Redundant constraints are found and named."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, parallelogram
from veridyn.errors import ModelError
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.position import position
from veridyn.mechanics.natural.rank import mobility, refuse_redundant
from veridyn.mechanics.natural.system import system_of
from veridyn.model.place import Marker
from veridyn.model.point_parts import MechanismJoint, Point, RigidBody, UnitVector


def test_the_four_bar_has_one_degree_of_freedom() -> None:
    system = system_of(fourbar())
    found = refuse_redundant(system, position(system))
    assert (found.rank, found.degrees_of_freedom, found.redundant) == (4, 1, ())
    assert found.gap[0] > 0.1


def test_a_parallelogram_names_its_redundant_crank() -> None:
    system = system_of(parallelogram())
    q = position(system)
    found = mobility(system, q)
    assert found.degrees_of_freedom == 1
    assert len(found.redundant) == 1
    assert found.gap[1] < 1e-12 < 1e-2 < found.gap[0]
    name = found.redundant[0]
    with pytest.raises(ModelError, match=r"(?s)the constraint '.*' is redundant at this pose.*it follows from '"):
        refuse_redundant(system, q)
    assert any("crank" in other for other in (name, *found.among[0]))


def test_a_joint_given_twice() -> None:
    """A turning joint between bodies that already share its point and vector: its five rows say nothing new."""
    points = [Point("O", (0, 0, 0), True), Point("P", (1, 0, 0))]
    vectors = [UnitVector("u", (0, 0, 1), True), UnitVector("v", (0, 1, 0))]
    arm = RigidBody(
        "arm", {"O": (0, 0, 0), "P": (1, 0, 0)}, {"u": (0, 0, 1), "v": (0, 1, 0)}, 1.0, (0.5, 0, 0), np.eye(3)
    )
    joint = MechanismJoint(
        "pin", "turning", Marker("ground", (0, 0, 0), (0, 0, 1)), Marker("arm", (0, 0, 0), (0, 0, 1))
    )
    once = system_of(Mechanism.build(points, [arm], vectors=vectors))
    assert mobility(once, once.guess).degrees_of_freedom == 1
    twice = Mechanism.build(
        [points[0], Point("P", (1, 0, 0)), Point("R", (0, 0, 1))],
        [
            RigidBody(
                "arm", {"O": (0, 0, 0), "P": (1, 0, 0), "R": (0, 0, 1)}, {"v": (0, 1, 0)}, 1.0, (0.5, 0, 0), np.eye(3)
            )
        ],
        vectors=[vectors[1]],
        joints=[joint, MechanismJoint("again", "turning", joint.a, joint.b)],
    )
    system = system_of(twice)
    assert mobility(system, system.guess).degrees_of_freedom == 1
    assert mobility(system, system.guess).redundant == ("again: axis beside", "again: axis above")
