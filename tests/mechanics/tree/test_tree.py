"""Trees: the order of their bodies, what belongs to them, and changes of them."""

import pickle

import numpy as np
import pytest

from model.small_car import car
from strangers.random_trees import random_tree
from veridyn.errors import ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import offset, spring
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.spatial.rotations import Placement


def test_antecedents_come_first_and_the_order_is_kept_otherwise() -> None:
    tree = car()
    assert [b.name for b in tree.bodies] == ["chassis", "steer_left", "left", "steer_right", "right"]
    assert tree.antecedent == (-1, 0, 1, 0, 3)
    for seed in range(10):
        tree = random_tree(np.random.default_rng(seed))
        shuffled = [tree.bodies[i] for i in np.random.default_rng(seed).permutation(len(tree.bodies))]
        again = Tree.build(shuffled)
        assert all(a < j for j, a in enumerate(again.antecedent))
        assert Tree.build(tree.bodies).bodies == tree.bodies


def test_transmission_must_drive_coordinates() -> None:
    one = Transmission(("m",), ("q2",), np.eye(1))
    with pytest.raises(
        ModelError, match=r"transmission: the transmission drives 'q2', which is no coordinate.\nKnown: q1"
    ):
        Tree.build([Body("1")], transmission=one)
    assert Tree.build([Body("2")], transmission=one).transmission is one


def test_trees_pickle() -> None:
    tree = car()
    again = pickle.loads(pickle.dumps(tree))
    assert again.bodies == tree.bodies
    assert again.parameters.names == tree.parameters.names
    placed = Body("1", placement=Placement(np.eye(3), [1, 2, 3]))
    assert pickle.loads(pickle.dumps(placed)) == placed


def test_elements_are_added_and_nothing_else_changes() -> None:
    tree = Tree.build(
        [Body("1")],
        inertia={"1": np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0])},
        elements=[spring("q1", -30.0)],
    )
    tree = tree.with_parameters(tree.parameters.known({"M1": 2.5}).tied({"YY1": "XX1"}))
    more = tree.with_elements([offset("q1", 3.0)])
    own, new = tree.parameters, more.parameters
    assert new.names == (*own.names, "off_q1")
    np.testing.assert_array_equal(new.values, [*own.values, 3.0])
    np.testing.assert_array_equal(new.typical[:-1], own.typical)
    assert new.states == (*own.states, "estimated")
    assert dict(new.ties) == dict(own.ties)
    assert tree.elements == (spring("q1", -30.0),)  # the first tree is as it was
    with pytest.raises(ModelError, match=r"no coordinate 'q9'"):
        tree.with_elements([offset("q9")])
    with pytest.raises(ModelError, match=r"used by 2 elements"):
        more.with_elements([offset("q1")])
