"""Machines put together: rank of their loops, equations that count, home positions that are none, and poses that stay open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_loops import PinLoops
from studies.excavator_log import MODEL, truth
from veridyn.errors import ModelError
from veridyn.files.machine.load import load_model
from veridyn.machines import delta, linkage, palletizer
from veridyn.mechanics.tree.loops.assembly import assembled, assembled_pose, splitting, units
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body, Loop
from veridyn.model.place import Assembly, Attachment
from veridyn.papers.hexapod.machine import hexapod
from veridyn.spatial.rotations import MDH, Placement


@pytest.mark.parametrize(
    ("tree", "equations", "freedom"),
    [(tree_of(hexapod()), 18, 6), (tree_of(linkage()), 2, 1), (tree_of(delta()), 18, 3), (tree_of(palletizer()), 2, 3)],
    ids=["hexapod", "linkage", "delta", "palletizer"],
)
def test_freedom(tree: Tree, equations: int, freedom: int) -> None:
    """Grübler's count where every joint counts; of a planar loop only two of the five equations of its pin do."""
    home = assembled(tree)
    assert (len(home.rows), home.freedom) == (equations, freedom)
    assert tree.n - equations == freedom


def test_shapes_are_put_together_once() -> None:
    """Other parameters, same joints: the same object comes back."""
    tree = tree_of(hexapod())
    again = tree.with_parameters({"r1": 3.0})
    assert assembled(tree) is assembled(again)
    assert splitting(tree) is splitting(again)


def test_units() -> None:
    tree = tree_of(hexapod())
    unit = dict(zip(tree.coordinates, units(tree), strict=True))
    assert unit["a1"] == 1.0 and unit["l1"] == pytest.approx(0.6)


def square(angle: float) -> Tree:
    """A four-bar linkage with equal bars, which folds flat at 0: there it may go on as a parallelogram or as an antiparallelogram."""
    place = MDH(d=1.0)
    bodies = [
        Body("1"),
        Body("2", "1", actuated=False, placement=place),
        Body("3", "ground", actuated=False, placement=place),
    ]
    end = Placement(position=(1.0, 0.0, 0.0))
    loops = [Loop("pin", "turning", Attachment("2", end), Attachment("3", end))]
    home = Assembly({"q1": angle}, {"q2": -angle, "q3": angle})
    return Tree.build(bodies, name="square", loops=loops, assembly=home)


def test_a_singular_home_is_refused() -> None:
    assert assembled(square(0.5)).freedom == 1
    with pytest.raises(ModelError, match=r"its home position is a singular one|do not determine this machine"):
        splitting(square(0.0))


def test_a_machine_with_too_few_or_too_many_motors() -> None:
    idle = [Body(b.name, b.antecedent, b.joint, b.placement, actuated=False) for b in square(0.5).bodies]
    tree = Tree.build(idle, loops=square(0.5).loops, assembly=square(0.5).assembly)
    with pytest.raises(ModelError, match=r"0 coordinates .* cannot determine this machine"):
        splitting(tree)
    busy = [Body(b.name, b.antecedent, b.joint, b.placement) for b in square(0.5).bodies]
    tree = Tree.build(busy, loops=square(0.5).loops, assembly=square(0.5).assembly)
    with pytest.raises(ModelError, match=r"3 coordinates .* cannot determine this machine.\nExpected 1 of them"):
        splitting(tree)


def test_distance_is_a_rod() -> None:
    """A rod without mass between two pins is the coupler of a four-bar linkage: the same rocker."""
    bars = tree_of(linkage())
    bodies = [b for b in bars.bodies if b.name != "coupler"]
    first = Attachment("crank", Placement(position=(0.20, 0.0, 0.0)))
    second = Attachment("rocker", Placement(position=(0.40, 0.0, 0.0)))
    rod = Tree.build(
        bodies, loops=[Loop("rod", "distance", first, second, 0.5)], assembly=Assembly({"q1": 1.0}, {"q3": 1.5})
    )
    assert assembled(rod).home[1] == pytest.approx(assembled(bars).home[2], abs=1e-9)
    assert np.isclose(assembled(rod).freedom, 1)


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
