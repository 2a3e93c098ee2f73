"""The parameter set of a tree: columns, values by name and typical sizes."""

import numpy as np
import pytest

from model.small_car import car
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import offset, spring
from veridyn.model.graph import Body
from veridyn.spatial.inertia import INERTIAL, from_centre
from veridyn.spatial.rotations import MDH

SPHERE = from_centre(2.0, [0.0, 0.0, 0.0], np.eye(3))


def test_columns_are_inertias_then_elements() -> None:
    tree = car()
    assert tree.parameters.names[:10] == tuple(f"{s}_chassis" for s in INERTIAL)
    assert tree.parameters.names[-3:] == ("k_steer", "C_chassis_fx", "K_steer")
    assert len(tree.columns) == len(tree.parameters) == 33  # three real bodies and three elements
    assert tree.columns[10] == (2, 0)  # the virtual body 1 has none
    assert tree.columns[-3:] == ((-1, 0), (-1, 1), (-1, 2))
    assert np.isnan(tree.parameters.values).all()


def test_inertia_given_by_name() -> None:
    tree = Tree.build([Body("1"), Body("2", "1")], inertia={"2": SPHERE})
    np.testing.assert_array_equal(tree.parameters.values[10:], SPHERE)
    assert tree.parameters.missing() == tuple(f"{s}1" for s in INERTIAL)
    assert tree.with_parameters({"M1": 3.0}).parameters["M1"] == 3.0
    assert tree.with_parameters(np.arange(20.0)).parameters["M2"] == 19.0


def test_typical_sizes_follow_the_machine() -> None:
    tree = Tree.build(
        [Body("1", placement=MDH(d=0.5)), Body("2", "1")],
        inertia={"1": SPHERE},
        elements=[spring("q1", -30.0), offset("q1")],
    )
    p = tree.parameters
    size = dict(zip(p.names, p.typical, strict=True))
    assert (size["M1"], size["MX1"], size["XX1"]) == (2.0, 1.0, 0.5)
    assert (size["M2"], size["MX2"]) == (2.0, 1.0)  # unknown: that of the others
    assert size["k_q1"] == 30.0
    assert size["off_q1"] == pytest.approx(2.0 * 9.81 * 0.5, rel=1e-15)
    assert (p.typical > 0).all()
