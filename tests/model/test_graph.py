"""A table of bodies makes the machine that the same tree makes."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body, Loop
from veridyn.model.machine import Machine
from veridyn.model.place import Attachment
from veridyn.spatial.rotations import MDH

TEN = [0.2, 0.0, 0.0, 0.2, 0.0, 0.1, 0.3, 0.0, 0.0, 2.0]
ROWS = [
    Body("1"),
    Body("2", "1", "sliding", MDH(d=0.4, alpha=0.3), actuated=False),
    Body("tool", "2", "fixed", MDH(r=0.1), real=False),
    Body("3", "tool", placement=MDH(d=0.2), coordinate="q1", ratio=-2.0),
]


def both(**more: object) -> tuple[Machine, Tree]:
    given = {
        "name": "made",
        "inertia": {"1": TEN, "3": TEN},
        "elements": [damper("q1", 0.5), coulomb("q2", 0.1)],
    } | more
    return Machine.of_bodies(ROWS, **given), Tree.build(ROWS, **given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_table_makes_the_same_tree(base: str) -> None:
    rows = ROWS if base == "fixed" else [Body("0", None, "fixed"), *(Body("1", "0"), *ROWS[1:])]
    given = {"base": base, "inertia": {"1": TEN}}
    machine, tree = Machine.of_bodies(rows, **given), Tree.build(rows, **given)  # pyright: ignore[reportArgumentType]
    assert tree_of(machine).bodies == tree.bodies
    assert machine.base == base
    np.testing.assert_array_equal(machine.parameters.values, tree.parameters.values)


def test_coordinates_elements_and_parameters_are_those_of_the_table() -> None:
    machine, tree = both()
    assert machine.coordinates == tree.coordinates == ("q1", "q2")
    assert machine.parameters.names == tree.parameters.names
    np.testing.assert_array_equal(machine.turns, tree.turns)
    assert machine.actuated == tree.actuated == (True, False)


def test_a_loop_is_a_joint_that_is_cut() -> None:
    bars = [Body("a"), Body("b", "a", placement=MDH(d=1.0), actuated=False)]
    loop = Loop("pin", "spherical", Attachment("b"), Attachment("ground"))
    machine, tree = Machine.of_bodies(bars, loops=[loop]), Tree.build(bars, loops=[loop])
    assert machine.closed
    assert [joint.name for joint in machine.cut_joints] == ["pin"]
    assert tree_of(machine).loops[0].name == tree.loops[0].name
    assert machine.independent == tree.independent


def test_the_inertia_of_a_body_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"inertia '4'.*no body"):
        Machine.of_bodies(ROWS, inertia={"4": TEN})
