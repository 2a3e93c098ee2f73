"""Where an assembly leads, beside Pinocchio, and what stays open where it does not close."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_loops import PinLoops
from studies.excavator_log import MODEL, truth
from veridyn.errors import ModelError
from veridyn.files.machine.load import load_model
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.mechanics.tree.loops.pose import assembled_pose
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body


def test_both_ends_of_every_pin_lie_where_pinocchio_has_them() -> None:
    tree = tree_of(truth())
    pose, stranger = assembled_pose(tree), PinLoops(tree)
    assert pose.closed and list(pose.coordinates.values()) == pytest.approx(closed_home(tree))
    q = np.array(list(pose.coordinates.values()))
    model, data = stranger.open.model, stranger.open.data
    pin.framesForwardKinematics(model, data, stranger.open.configuration(q))
    for loop in tree.loops:
        for side, place in zip(("first", "second"), pose.pins[loop.name], strict=True):
            np.testing.assert_allclose(data.oMf[stranger.frames[loop.name, side]].translation, place, atol=1e-9)


def test_what_stays_open_is_the_distance_of_the_ends() -> None:
    """The stick's cylinder is held a metre too long."""
    tree = tree_of(load_model(MODEL))
    far = replace(tree, assembly=replace(tree.assembly, hold={**tree.assembly.hold, "s2": 2.31}))
    pose = assembled_pose(far)
    assert not pose.closed and pose.openings["stick pin"] > 0.1
    for name, (one, two) in pose.pins.items():
        assert pose.openings[name] == pytest.approx(np.abs(one - two).max(), rel=1e-9)
    with pytest.raises(ModelError, match="no loops to close"):
        assembled_pose(Tree.build([Body("1")]))
