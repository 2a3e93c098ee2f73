"""Motions that are not those of a tree, refused with every reason."""

import numpy as np
import pytest

from model.small_car import car
from veridyn.errors import DataError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.motion import BaseMotion, Motion


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
