"""What the bodies of a tree make: coordinates, rows, columns, paths and placements."""

import numpy as np
import pytest

from model.small_car import car
from veridyn.errors import ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.spatial.transforms import MDH


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
