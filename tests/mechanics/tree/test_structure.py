"""What the bodies of a tree make: coordinates, rows, columns, paths and placements; loops that are refused by name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from model.small_car import car
from veridyn.errors import ModelError
from veridyn.machines import palletizer
from veridyn.mechanics.tree.dynamics.codegen import c_source
from veridyn.mechanics.tree.dynamics.forward import mass_matrix
from veridyn.mechanics.tree.elsewhere import rebased
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.structure import members
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree.weld import welded
from veridyn.model.graph import Body, Loop
from veridyn.model.place import Assembly, Attachment
from veridyn.papers.hexapod.machine import LEGS, hexapod
from veridyn.spatial.rotations import MDH, Placement

BODIES = [Body("a"), Body("b", "a"), Body("c", "ground", actuated=False)]
FAULTS = {
    "kind": (Loop("x", "ball", Attachment("b"), Attachment("c")), "'ball' is no kind of cut joint"),
    "body": (Loop("x", "spherical", Attachment("d"), Attachment("c")), "loop 'x': there is no body 'd'"),
    "same": (Loop("x", "spherical", Attachment("b"), Attachment("b")), "both ends are on 'b'"),
    "length": (Loop("x", "distance", Attachment("b"), Attachment("c")), "a distance needs a length above zero"),
    "no length": (Loop("x", "spherical", Attachment("b"), Attachment("c"), 1.0), "only a distance has a length"),
    "place": (
        Loop("x", "spherical", Attachment("b", Placement(2.0 * np.eye(3))), Attachment("c")),
        "its place on 'b' is not a rotation and a position",
    ),
}


def built(*loops: Loop, **kwargs: object) -> Tree:
    return Tree.build(BODIES, loops=loops, **kwargs)  # pyright: ignore[reportArgumentType]


def test_members() -> None:
    """What carries both ends alike is not part of a loop: the column of the arm turns with all of it."""
    tree = tree_of(palletizer())
    assert set(members(tree.bodies, tree.loops[0])) == {"q2", "q3", "q4", "q5"}
    assert [tree.coordinates[k] for k in tree.independent] == ["q1", "q2", "q4"]
    assert tree.acting_on("q1") == {"q1"} and tree.acting_on("q2") == {"q2", "q3", "q5"}
    assert tree.acting_on("fx") == {"fx"}


def test_independent_coordinates_of_the_hexapod() -> None:
    tree = tree_of(hexapod())
    assert tuple(tree.coordinates[k] for k in tree.independent) == LEGS == tree.actuated_coordinates
    assert len(tree.looped) == 24


def test_open_trees_are_what_they_were() -> None:
    tree = Tree.build(BODIES)
    assert tree.independent == (0, 1, 2) and not tree.looped
    assert tree.select_rows("all") == (0, 1, 2) and tree.select_rows("actuated") == (0, 1)


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    loop, message = FAULTS[name]
    with pytest.raises(ModelError, match=message):
        built(loop)


def test_faults_between_loops_and_assembly() -> None:
    good = Loop("x", "spherical", Attachment("b"), Attachment("c"))
    with pytest.raises(ModelError, match="the name is used 2 times"):
        built(good, good)
    with pytest.raises(ModelError, match="there is no coordinate 'z'"):
        built(good, assembly=Assembly({"z": 1.0}))
    with pytest.raises(ModelError, match="'a' is held and guessed at once"):
        built(good, assembly=Assembly({"a": 1.0}, {"a": 2.0}))
    with pytest.raises(ModelError, match="'a' is not a finite number"):
        built(good, assembly=Assembly({"a": float("inf")}))
    rigid = [Body("a"), Body("b", "a", "fixed")]
    with pytest.raises(ModelError, match="nothing moves between its two ends"):
        Tree.build(rigid, loops=[Loop("x", "spherical", Attachment("a"), Attachment("b"))])
    free = [Body("a", None, "fixed"), Body("b", "a")]
    with pytest.raises(ModelError, match="a machine whose base is free has no loop through the ground"):
        Tree.build(free, base="free", loops=[Loop("x", "spherical", Attachment("b"), Attachment("ground"))])


def test_travels_to_other_processes() -> None:
    tree = pickle.loads(pickle.dumps(tree_of(hexapod())))
    assert tree.loops == tree_of(hexapod()).loops and dict(tree.assembly.hold) == dict(tree_of(hexapod()).assembly.hold)


def test_what_knows_only_open_trees_refuses() -> None:
    """What they would say of the open tree is about another machine."""
    tree = tree_of(hexapod())
    still = np.zeros((1, 24))
    for call in (
        lambda: mass_matrix(tree, still),
        lambda: c_source(tree),
        lambda: welded(tree, {"a1": 0.0}),
        lambda: rebased(tree, "rod1"),
    ):
        with pytest.raises(ModelError, match=r"of a machine with closed loops: (?s:.*)Found 6 closed loops"):
            call()


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
