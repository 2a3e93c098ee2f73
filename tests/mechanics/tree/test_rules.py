"""Base parameters by closed rules against rank: on every kind of tree that could break them."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.mechanics.tree.rules import combinations, freedoms, structural
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.place import GROUND
from veridyn.spatial.rotations import MDH, Placement, rot_z, rotation_to_axis

RIGHT = np.pi / 2
NO_GRAVITY = (0.0, 0.0, 0.0)
DIRECTIONS = [
    np.array(v, dtype=float) / np.linalg.norm(v) for v in [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 2, 3)]
]


def few_of(count: int) -> list[object]:
    """Seeds below `count`; of four one runs in the quick suite."""
    return [pytest.param(k, marks=pytest.mark.slow if k >= count // 4 else ()) for k in range(count)]


def chain(*rows: tuple[str, MDH | Placement], gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> Tree:
    """Bodies 1, 2, … in a row, each (joint, placement)."""
    kinds = {"R": "turning", "P": "sliding", "F": "fixed"}
    bodies = [
        Body(str(j + 1), GROUND if j == 0 else str(j), kinds[kind], place) for j, (kind, place) in enumerate(rows)
    ]
    return Tree.build(bodies, gravity=gravity)


def dense(tree: Tree) -> np.ndarray:
    """The regressor of unrelated states, columns scaled by typical sizes."""
    motion = generic_motion(tree, 40 + 20 * len(tree.bodies) // max(1, tree.n))
    return regressor(tree, motion).reshape(-1, len(tree.parameters)) * tree.parameters.typical


def rank_of(A: np.ndarray) -> int:
    s = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(1)
    return int((s > 1e-9 * s[0]).sum()) if s[0] > 0 else 0


def agree(tree: Tree) -> None:
    """Same rank, same null space, same columns kept, same relations, and the rules' combinations are independent."""
    B, D = structural(tree) * tree.parameters.typical, dense(tree)
    rank = rank_of(D)
    assert rank_of(B) == rank
    assert len(B) == rank or not all(b.real for b in tree.bodies)  # of virtual bodies some combinations say nothing
    if rank == 0:
        return
    null = np.linalg.svd(B)[2][rank:]
    assert np.abs(D @ null.T).max(initial=0.0) < 1e-9 * np.abs(D).max()
    rules, found = (
        base_parameters(machine_of_tree(tree)),
        base_parameters(machine_of_tree(tree), generic_motion(tree, 300)),
    )
    assert rules.columns == found.columns
    assert rules.matrix == pytest.approx(found.matrix, abs=1e-8)
    assert rules.source == "by the closed rules"


@pytest.mark.parametrize("seed", few_of(64))
def test_free_trees_have_ten_and_seven_and_four(seed: int) -> None:
    """10 + 7 n_turning + 4 n_sliding, by the rules, by rank of all rows, and by rank of the six base rows alone (FACTS 0.2, 0.3)."""
    tree = random_tree(np.random.default_rng(seed), bodies=2 + seed % 9, base="free")
    kinds = [b.joint for b in tree.bodies]
    count = 10 + 7 * kinds.count("turning") + 4 * kinds.count("sliding")
    rules = base_parameters(machine_of_tree(tree))
    assert rules.count == count == len(combinations(tree))
    motion = generic_motion(tree, 2 * count // 6 + 60)
    found = base_parameters(machine_of_tree(tree), motion)
    assert found.count == count and found.columns == rules.columns
    assert base_parameters(machine_of_tree(tree), motion, rows="base").count == count


@pytest.mark.parametrize("seed", range(12))
def test_the_rank_of_a_stranger(seed: int) -> None:
    """The count by the rules is the rank of Pinocchio's regressor, fixed and free."""
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, bodies=5, base="free" if seed % 2 else "fixed")
    D = PinModel(tree).regressor(random_motion(rng, tree, 60, wrenches=False))
    assert base_parameters(machine_of_tree(tree)).count == rank_of(D.reshape(-1, D.shape[2]) * tree.parameters.typical)


@pytest.mark.parametrize("seed", range(30))
def test_fixed_trees_without_symmetry(seed: int) -> None:
    agree(random_tree(np.random.default_rng(200 + seed), bodies=1 + seed % 7))


def signed_permutation(rng: np.random.Generator) -> np.ndarray:
    R = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)[:, None]
    return R if np.linalg.det(R) > 0 else -R


def aligned_tree(rng: np.random.Generator) -> Tree:
    """Axes along x, y or z of the antecedent, most offsets zero, gravity along an axis, oblique, or none."""
    n = int(rng.integers(1, 7))
    zero, straight = rng.choice([0.2, 0.5, 0.8, 1.0]), rng.choice([0.0, 0.3, 0.7])
    bodies: list[Body] = []
    for j in range(n):
        kind = ("turning", "sliding", "fixed")[rng.choice(3, p=[0.6, 0.3, 0.1])]
        R = np.eye(3) if rng.random() < straight else signed_permutation(rng)
        p = np.where(rng.random(3) < zero, 0.0, rng.choice([0.3, -0.4, 0.5], 3))
        before = int(rng.integers(j)) if j and rng.random() < 0.3 else j - 1
        on_ground = j == 0 or rng.random() < 0.08
        bodies.append(Body(str(j + 1), GROUND if on_ground else bodies[before].name, kind, Placement(R, p)))
    return Tree.build(bodies, gravity=_gravity(rng))


def oblique_tree(rng: np.random.Generator) -> Tree:
    """Axes along few directions through few points of the ground, so that they are parallel, coaxial or meet, in turned frames."""
    n = int(rng.integers(1, 7))
    directions = [DIRECTIONS[k] for k in rng.choice(len(DIRECTIONS), int(rng.integers(1, 4)))]
    points = [np.zeros(3), *(rng.choice([0.0, 0.3, -0.5], 3) for _ in range(int(rng.integers(0, 3))))]
    frames: list[tuple[np.ndarray, np.ndarray]] = []
    bodies: list[Body] = []
    for j in range(n):
        kind = ("turning", "sliding", "fixed")[rng.choice(3, p=[0.6, 0.33, 0.07])]
        along = directions[rng.integers(len(directions))] * rng.choice([-1.0, 1.0])
        R = rotation_to_axis(along) @ rot_z(rng.choice([0.0, RIGHT, rng.uniform(-3, 3)]))
        p = points[rng.integers(len(points))] + along * rng.choice([0.0, 0.2, rng.normal()])
        i = -1 if j == 0 or rng.random() < 0.08 else j - 1 if rng.random() < 0.7 else int(rng.integers(j))
        Ri, pi = frames[i] if i >= 0 else (np.eye(3), np.zeros(3))
        frames.append((R, p))
        bodies.append(Body(str(j + 1), GROUND if i < 0 else str(i + 1), kind, Placement(Ri.T @ R, Ri.T @ (p - pi))))
    return Tree.build(bodies, gravity=_gravity(rng))


def _gravity(rng: np.random.Generator) -> np.ndarray:
    choices = [(0, 0, -9.81), NO_GRAVITY, (9.81, 0, 0), (0, 9.81, 0), (1.0, 2.0, -9.0)]
    return np.array(choices[rng.choice(5, p=[0.4, 0.25, 0.15, 0.1, 0.1])], dtype=float)


@pytest.mark.parametrize("seed", few_of(160))
def test_aligned_trees(seed: int) -> None:
    agree(aligned_tree(np.random.default_rng(seed)))


@pytest.mark.parametrize("seed", few_of(160))
def test_oblique_trees(seed: int) -> None:
    agree(oblique_tree(np.random.default_rng(seed)))


ACROSS = MDH(alpha=RIGHT)
SPECIAL = {
    "planar 3R, gravity in the plane": chain(
        ("R", MDH()), ("R", MDH(d=0.5)), ("R", MDH(d=0.4)), gravity=(0.0, -9.81, 0.0)
    ),
    "planar 3R, gravity across the plane": chain(("R", MDH()), ("R", MDH(d=0.5)), ("R", MDH(d=0.4))),
    "planar 3R without gravity": chain(("R", MDH()), ("R", MDH(d=0.5)), ("R", MDH(d=0.4)), gravity=NO_GRAVITY),
    "vertical first axis": chain(("R", MDH()), ("R", ACROSS), ("R", MDH(d=0.4)), ("R", ACROSS)),
    "vertical first axis, offset shoulder": chain(("R", MDH(r=0.3)), ("R", MDH(alpha=RIGHT, d=0.2)), ("R", MDH(d=0.4))),
    "horizontal first axis": chain(("R", ACROSS), ("R", ACROSS), ("R", MDH(d=0.4))),
    "gantry": chain(("P", MDH()), ("P", ACROSS), ("P", MDH(alpha=RIGHT, theta=RIGHT)), ("R", MDH())),
    "gantry with a wrist": chain(("P", MDH()), ("P", ACROSS), ("R", MDH()), ("R", ACROSS)),
    "spherical wrist without gravity": chain(("R", MDH()), ("R", ACROSS), ("R", ACROSS), gravity=NO_GRAVITY),
    "spherical wrist with gravity": chain(("R", MDH()), ("R", ACROSS), ("R", ACROSS)),
    "spherical wrist, origins apart, without gravity": chain(
        ("R", MDH(r=0.2)), ("R", MDH(alpha=RIGHT, r=0.3)), ("R", MDH(alpha=RIGHT, r=0.0)), gravity=NO_GRAVITY
    ),
    "two axes that meet away from the origins, without gravity": chain(
        ("R", MDH()), ("R", Placement(rotation_to_axis((0, 1, 0)), (0.0, 0.3, 0.3))), gravity=NO_GRAVITY
    ),
    "coaxial": chain(("R", MDH()), ("R", MDH(r=0.3)), ("R", MDH(r=0.1)), ("R", ACROSS)),
    "coaxial and vertical only": chain(("R", MDH()), ("R", MDH(r=0.3))),
    "slide along the one axis of turning": chain(("R", MDH()), ("P", MDH(r=0.2))),
    "slide along it, beside it": chain(("R", MDH()), ("P", MDH(d=0.3))),
    "slide across the one axis of turning": chain(("R", MDH()), ("P", ACROSS)),
    "slide at an angle": chain(("R", MDH()), ("P", MDH(alpha=0.6))),
    "slide at an angle without gravity": chain(("R", MDH()), ("P", MDH(alpha=0.6, d=0.1)), gravity=NO_GRAVITY),
    "PRPR": chain(("P", MDH()), ("R", MDH()), ("P", ACROSS), ("R", MDH(alpha=RIGHT, d=0.2))),
    "PRPR, all along one line": chain(("P", MDH()), ("R", MDH()), ("P", MDH()), ("R", MDH())),
    "RPRP": chain(("R", ACROSS), ("P", MDH(alpha=0.4)), ("R", MDH(alpha=RIGHT)), ("P", MDH(alpha=RIGHT))),
    "SCARA": chain(("R", MDH()), ("R", MDH(d=0.4)), ("R", MDH(d=0.3)), ("P", MDH())),
    "fixed parts between": chain(("F", MDH(d=0.1)), ("R", MDH()), ("F", ACROSS), ("R", MDH()), ("F", MDH(d=1.0))),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_chains(name: str) -> None:
    agree(SPECIAL[name])


# Counted by hand, or from the literature where a source is named.
COUNTS = {
    "planar 3R, gravity in the plane": 9,  # ZZ, MX, MY of each
    "planar 3R without gravity": 7,  # the first link's MX, MY do nothing
    "coaxial and vertical only": 2,  # ZZ of each
    "slide along the one axis of turning": 2,  # ZZ1R and M2
    "PRPR, all along one line": 4,
    "SCARA": 8,  # ZZ1, (ZZ, MX, MY)2, (ZZ, MX, MY)3, M4
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_by_hand(name: str) -> None:
    assert base_parameters(machine_of_tree(SPECIAL[name])).count == COUNTS[name]


def test_two_arms_on_the_ground_do_not_know_each_other() -> None:
    left = [Body("1"), Body("2", "1", placement=ACROSS), Body("3", "2", placement=MDH(d=0.4))]
    right = [Body("4", placement=MDH(d=1.0)), Body("5", "4", "sliding", ACROSS)]
    both = Tree.build([*left, *right])
    agree(both)
    alone = (
        base_parameters(machine_of_tree(Tree.build(left))).count,
        base_parameters(machine_of_tree(Tree.build(right))).count,
    )
    assert base_parameters(machine_of_tree(both)).count == sum(alone)


def test_a_bracket_on_the_ground_has_no_effect() -> None:
    tree = Tree.build([Body("1", joint="fixed"), Body("2", "1")])
    base = base_parameters(machine_of_tree(tree))
    assert set(base.dead) >= set(range(10)) and base.count == 1


def test_virtual_bodies_have_no_columns() -> None:
    tree = random_tree(np.random.default_rng(5), bodies=8, base="free", virtual=0.5)
    assert not all(b.real for b in tree.bodies)
    agree(tree)


def test_freedoms_of_a_shoulder() -> None:
    """A column about the vertical, a shoulder across it, a slide: turning about one direction, then generally."""
    tree = SPECIAL["vertical first axis"]
    assert [f.turns for f in freedoms(tree)] == ["one", "generally", "generally", "generally"]
    assert [f.shifts for f in freedoms(tree)] == [False, True, True, True]
    gantry = freedoms(SPECIAL["gantry"])
    assert [f.turns for f in gantry] == ["not", "not", "not", "one"]
    assert all(
        f.turns == "generally" and f.shifts for f in freedoms(random_tree(np.random.default_rng(0), base="free"))
    )
