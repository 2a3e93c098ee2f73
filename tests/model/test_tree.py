"""Trees: order, coordinates, rows, columns and typical sizes."""

import pickle

import numpy as np
import pytest

from strangers.random_trees import random_tree
from veridyn.errors import DataError, ModelError
from veridyn.model.elements import drag, drive_gain, offset, spring
from veridyn.model.joint import Body
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.transmission import Transmission
from veridyn.model.tree import Tree
from veridyn.spatial.inertia import INERTIAL, from_centre
from veridyn.spatial.transforms import MDH, Placement

SPHERE = from_centre(2.0, [0.0, 0.0, 0.0], np.eye(3))


def car() -> Tree:
    """A body on two steered wheels that share one angle, and a passive one; listed out of order."""
    return Tree.build(
        [
            Body("left", "steer_left", actuated=False, coordinate="roll"),
            Body("chassis", None, "fixed"),
            Body("steer_left", "chassis", coordinate="steer", real=False),
            Body("steer_right", "chassis", coordinate="steer", ratio=0.9, real=False),
            Body("right", "steer_right", "sliding", actuated=False),
        ],
        name="car",
        base="free",
        elements=[spring("steer"), drag("chassis.fx"), drive_gain("steer", "i")],
    )


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


def test_coordinates_and_rows() -> None:
    tree = car()
    assert tree.coordinates == ("steer", "roll", "right")
    assert tree.coordinate == (-1, 0, 1, 0, 2)
    assert tree.n == 3
    assert tree.shares_coordinates
    assert tree.actuated == (True, False, False)
    assert tree.coordinate_kinds == ("turning", "turning", "sliding")
    assert tree.sigma == (2, 0, 0, 0, 1)
    assert tree.rows == ("fx", "fy", "fz", "mx", "my", "mz", "steer", "roll", "right")


def test_rows_chosen() -> None:
    tree = car()
    assert tree.select_rows("all") == tuple(range(9))
    assert tree.select_rows("base") == tuple(range(6))
    assert tree.select_rows("joints") == (6, 7, 8)
    assert tree.select_rows("actuated") == (6,)
    assert tree.select_rows("right") == (8,)
    assert tree.select_rows(["right", "fx"]) == (8, 0)
    with pytest.raises(ModelError, match=r"there is no row 'rigth'.\n.*Did you mean 'right'\?"):
        tree.select_rows("rigth")
    with pytest.raises(ModelError, match="a row is given twice"):
        tree.select_rows(["fx", "fx"])
    with pytest.raises(ModelError, match="base rows exist only for a free base"):
        Tree.build([Body("1")]).select_rows("base")


@pytest.mark.parametrize(
    ("body", "coordinate", "parameter"),
    [
        (Body("7"), "q7", "ZZ7"),
        (Body("elbow"), "elbow", "ZZ_elbow"),
        (Body("elbow", coordinate="q2"), "q2", "ZZ_elbow"),
        (Body("elbow", label="2"), "elbow", "ZZ2"),
        (Body("7", label="arm"), "q7", "ZZ_arm"),
        (Body("7", joint="fixed"), "", "ZZ7"),
    ],
)
def test_names_of_bodies(body: Body, coordinate: str, parameter: str) -> None:
    assert body.coordinate_name == coordinate
    assert body.parameter("ZZ") == parameter


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


def test_right_angles_fold() -> None:
    R, p = Tree.build([Body("1", placement=MDH(alpha=-np.pi / 2, theta=np.pi, r=0.3))]).placements[0]
    assert R == ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    assert p == (0.0, 0.3, 0.0)
    assert all(type(x) is float for row in R for x in row)


def test_paths_and_names() -> None:
    tree = car()
    assert tree.path(tree.index("left")) == (2, 1, 0)
    with pytest.raises(ModelError, match=r"car: there is no body 'chasis'.\n.*Did you mean 'chassis'\?"):
        tree.index("chasis")


def test_transmission_must_drive_coordinates() -> None:
    one = Transmission(("m",), ("q2",), np.eye(1))
    with pytest.raises(
        ModelError, match=r"transmission: the transmission drives 'q2', which is no coordinate.\nKnown: q1"
    ):
        Tree.build([Body("1")], transmission=one)
    assert Tree.build([Body("2")], transmission=one).transmission is one


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
