"""The cars of papers 000 and 001 as model files: against trees written apart from them, Pinocchio, and the papers' numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers import cars as stranger
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion
from veridyn.files.native import parse_model
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.identify.estimate import identify
from veridyn.identify.explain import explain
from veridyn.machines.car import (
    LOADS_2002,
    TABLE_II,
    TABLE_IV,
    TEN_ROWS,
    UNSPRUNG_2002,
    all_real,
    asked_33,
    car_20,
    car_38,
    car_2002,
    chassis_centre,
    estimated,
    static_loads,
    symmetric_wheels,
    weight_check,
    without_elements,
)
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.mechanics.kinematics import body_motion, body_pose, jacobian
from veridyn.mechanics.regressor import regressor
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.tree import Tree
from veridyn.spatial.inertia import INERTIAL, broken_law

Array = NDArray[np.float64]
BOTH = pytest.mark.parametrize("make", [car_20, car_38])


# The files against the trees of tests/strangers/cars.py, which were written from the tables by someone else.


def with_lengths(name: str, lengths: dict[str, float]) -> Tree:
    """A car's file with other lengths among its constants."""
    text = resources.files("veridyn.machines").joinpath(name).read_text(encoding="utf-8")
    for constant, length in lengths.items():
        text, times = re.subn(rf"^  {constant}: [\d.]+", f"  {constant}: {length}", text, flags=re.MULTILINE)
        assert times == 1
    return parse_model(text, source=name)


def lengths_2006() -> dict[str, float]:
    """Those of the stranger, unequal so that no symmetry hides a wheel in the wrong corner."""
    return {"L": stranger.WHEELBASE} | {f"l{w}": x for w, x in enumerate(stranger.HALF_TRACK, 1)}


def lengths_2002() -> dict[str, float]:
    tracks = {f"D{w}": x for w, x in enumerate(stranger.HALF_TRACK, 1)}
    return tracks | {"B13": stranger.WHEELBASE, "B17": stranger.WHEELBASE + 0.01}


@pytest.mark.parametrize(("name", "other"), [("car_20.yaml", stranger.car_20), ("car_38.yaml", stranger.car_38)])
def test_files_of_2006_are_the_cars_of_the_tables(name: str, other: type) -> None:
    """The same regressor, elements included, column by column; 1e-12 of the largest is rounding."""
    mine, theirs = with_lengths(name, lengths_2006()), other("wheels", elements=True)
    motion = random_motion(np.random.default_rng(0), theirs, 6, wrenches=False)
    D, E = regressor(mine, motion), regressor(theirs, motion)
    assert D.shape == E.shape
    assert np.abs(D - E).max() < 1e-12 * np.abs(E).max()


@pytest.mark.parametrize("shared", [False, True])
def test_file_of_2002_is_the_car_of_its_table(shared: bool) -> None:
    theirs = stranger.car_2002(shared_steering=shared)
    mine = with_lengths("car_2002.yaml", lengths_2002())
    if shared:
        bodies = [replace(b, coordinate="beta") if b.name in ("14", "18") else b for b in mine.bodies]
        mine = Tree.build(bodies)
        assert car_2002(shared_steering=True).coordinates == mine.coordinates
    motion = random_motion(np.random.default_rng(0), theirs, 6, wrenches=False)
    D, E = regressor(mine, motion)[:, :, :50], regressor(theirs, motion)
    assert np.abs(D - E).max() < 1e-12 * np.abs(E).max()


def test_ten_rows_and_names_are_those_of_the_papers() -> None:
    for tree in (car_38(), car_20()):
        assert set(asked_33(tree).parameters.select("asked")) == {tree.parameters.index(n) for n in TABLE_II}
        assert len(tree.parameters) == 69 and not tree.parameters.missing()
        assert {f"{c}{w}" for c in ("z", "beta", "theta", "zt") for w in (1, 2)} <= set(tree.coordinates)
        assert [r for r, on in zip(tree.coordinates, tree.actuated, strict=True) if not on] == ["z3", "z4", "z1", "z2"]
    assert TEN_ROWS == stranger.TEN_ROWS
    assert {"off7", "ks10", "h13", "MX6", "M20"} <= set(car_2002().parameters.names)


def test_degrees_of_freedom() -> None:
    assert (car_38().n, len(car_38().rows), car_38("lagrange").n, len(car_38().bodies)) == (32, 38, 38, 37)
    assert (car_20().n, len(car_20().rows), car_20("lagrange").n, len(car_20().bodies)) == (14, 20, 20, 20)
    assert (car_2002().n, car_2002(shared_steering=True).n, len(car_2002().bodies)) == (16, 15, 20)
    assert (car_2002(form="mixed").n, len(car_2002(form="mixed").rows)) == (10, 16)


# Frames.


@BOTH
def test_wheels_sit_at_the_corners(make: type) -> None:
    """FACTS 2.1, 2.2: frames parallel to the chassis at (0, ±l, z) and (L, ±l, z); wheel axes to the left."""
    tree = make(wheels=True)
    q = np.zeros((1, tree.n))
    corners = {1: (2.7, 0.75), 2: (2.7, -0.75), 3: (0.0, 0.745), 4: (0.0, -0.745)}
    for w in corners:
        q[0, tree.coordinates.index(f"z{w}")] = -0.1 * w
    for w, (x, y) in corners.items():
        R, p = body_pose(tree, q, f"unsprung{w}")
        assert R[0] == pytest.approx(np.eye(3), abs=1e-15)
        assert p[0] == pytest.approx([x, y, -0.1 * w], abs=1e-14)
        assert body_pose(tree, q, f"wheel{w}")[0][0][:, 2] == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)
        assert body_pose(tree, q, f"tyre{w}")[0][0] == pytest.approx(np.eye(3), abs=1e-15)


def test_posture_of_the_car_of_2002() -> None:
    """FACTS 1.1, 1.2: q = (−y, x, z, ψ, −φ, θ) puts frame 6 at (x, y, z), turned by Rz(ψ) Ry(φ) Rx(θ); x right, y down, z forward."""
    tree = car_2002()
    x, y, z, yaw, pitch, roll = 1.0, 2.0, 3.0, 0.3, -0.2, 0.1
    q = np.zeros((1, tree.n))
    q[0, :6] = -y, x, z, yaw, -pitch, roll
    R, p = body_pose(tree, q, "6")
    axes = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    assert p[0] == pytest.approx([x, y, z])
    assert R[0] == pytest.approx(turned(2, yaw) @ turned(1, pitch) @ turned(0, roll) @ axes)
    level = np.zeros((1, tree.n))
    corners = {"7": (0.0, 0.745, 0.0), "10": (0.0, -0.745, 0.0), "13": (2.7, 0.75, 0.0), "17": (2.7, -0.75, 0.0)}
    for body, corner in corners.items():
        R, p = body_pose(tree, level, body)
        assert p[0] == pytest.approx(corner) and R[0] == pytest.approx(np.eye(3), abs=1e-15)
    assert body_pose(tree, level, "20")[0][0][:, 2] == pytest.approx([0.0, 1.0, 0.0])


def turned(axis: int, angle: float) -> Array:
    """About x, y or z by the right-hand rule."""
    i, k = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[k, k] = np.cos(angle)
    R[k, i], R[i, k] = np.sin(angle), -np.sin(angle)
    return R


# The two forms, and Pinocchio.


@pytest.mark.parametrize(
    ("mixed", "lagrange", "chassis", "felt"),
    [
        (car_20(wheels=True), car_20("lagrange", wheels=True), "chassis", [f"wheel{w}" for w in range(1, 5)]),
        (car_38(wheels=True), car_38("lagrange", wheels=True), "chassis", [f"wheel{w}" for w in range(1, 5)]),
        (car_2002(form="mixed"), car_2002(), "6", ["8", "11", "15", "19"]),
        (car_2002(True, "mixed"), car_2002(True), "6", ["8", "11", "15", "19"]),
    ],
    ids=["20", "38", "2002", "2002 shared"],
)
def test_mixed_and_lagrange_are_the_same_equations(mixed: Tree, lagrange: Tree, chassis: str, felt: list[str]) -> None:
    """FACTS 2.6: joint rows equal, and L = J_cᵀ [f; m] for the chassis, with wheel wrenches and every element; 1e-10."""
    rng = np.random.default_rng(1)
    motion = random_motion(rng, lagrange, 12, wrenches=False)
    motion = replace(motion, wrenches={b: 100.0 * rng.normal(size=(12, 6)) for b in felt})
    base = body_motion(lagrange, motion, chassis)
    newton = Motion(motion.t, motion.q[:, 6:], motion.qd[:, 6:], motion.qdd[:, 6:], base, wrenches=motion.wrenches)
    L, rows = inverse_dynamics(lagrange, motion), inverse_dynamics(mixed, newton)
    Jc = jacobian(lagrange, motion.q, chassis, frame="body")[:, :, :6]
    size = np.abs(L).max()
    assert np.abs(L[:, 6:] - rows[:, 6:]).max() < 1e-10 * size
    assert np.abs(L[:, :6] - np.einsum("nij,ni->nj", Jc, rows[:, :6])).max() < 1e-10 * size


@pytest.mark.parametrize(
    "tree",
    [car_20(wheels=True), car_20("lagrange"), car_38(wheels=True), car_2002(), car_2002(True), car_2002(form="mixed")],
    ids=["20", "20 lagrange", "38", "2002", "2002 shared", "2002 mixed"],
)
def test_pinocchio_agrees(tree: Tree) -> None:
    """Inverse dynamics and regressor of the bodies to 1e-12 of the largest."""
    bodies = without_elements(tree)
    oracle = PinModel(bodies)
    motion = random_motion(np.random.default_rng(2), bodies, 5)
    expected = oracle.inverse_dynamics(motion)
    assert np.abs(inverse_dynamics(bodies, motion) - expected).max() < 1e-12 * np.abs(expected).max()
    still = replace(motion, wrenches={})
    D = oracle.regressor(still)
    assert np.abs(regressor(bodies, still) - D).max() < 1e-12 * np.abs(D).max()


# Ranks and groups: paper 001.


def test_car_of_2002_has_twenty() -> None:
    """FACTS 1.4: 20, not the 23 of Table 3, with exactly two groups; twelve more with the elements."""
    tree = symmetric_wheels(without_elements(car_2002()))
    base = base_parameters(tree)
    assert len(tree.parameters.select("asked")) == 22 and base.count == 20
    assert base.relations() == ["YY6R = YY6 + XX9 + XX12", "ZZ6R = ZZ6 + XX9 + XX12"]
    chassis = ["XX6", "XY6", "XZ6", "YY6R", "YZ6", "ZZ6R", "MX6", "MY6", "MZ6", "M6"]
    wheels = ["ZZ9", "M9", "ZZ12", "M12", "XX16", "ZZ16", "M16", "XX20", "ZZ20", "M20"]
    assert list(base.names) == chassis + wheels
    assert base_parameters(tree, generic_motion(tree, 200)).count == 20
    whole = base_parameters(symmetric_wheels(car_2002()))
    assert whole.count == 32 and whole.relations() == base.relations()


def test_car_of_2002_without_symmetry() -> None:
    """FACTS 1.7: 48 of 50; 78 with inertia on all twenty bodies."""
    base = base_parameters(without_elements(car_2002()))
    assert base.count == 48
    groups = ["YY6R = YY6 + YY9 + YY12", "ZZ6R = ZZ6 + YY9 + YY12", "XX9R = XX9 - YY9", "XX12R = XX12 - YY12"]
    assert base.relations() == groups
    assert base_parameters(all_real(car_2002())).count == 78


def test_car_of_2002_with_one_steering_angle() -> None:
    """FACTS 1.8: two rows with equal angles 20; one shared coordinate 19 and 47, from the six chassis rows as well."""
    two = symmetric_wheels(without_elements(car_2002()))
    assert base_parameters(two, equal_steering(two, generic_motion(two, 200), ("q14", "q18"))).count == 20
    shared = without_elements(car_2002(shared_steering=True))
    base = base_parameters(symmetric_wheels(shared))
    assert base.count == 19 and "XX16R = XX16 + XX20" in base.relations()
    assert base_parameters(shared).count == 47
    six = shared.coordinates[:6]
    assert [base_parameters(t, rows=six).count for t in (symmetric_wheels(shared), shared)] == [19, 47]


@pytest.mark.parametrize(("shared", "symmetric", "general"), [(False, 20, 48), (True, 19, 47)])
def test_the_mixed_form_of_2002_tells_as_much(shared: bool, symmetric: int, general: int) -> None:
    tree = without_elements(car_2002(shared, "mixed"))
    assert (base_parameters(symmetric_wheels(tree)).count, base_parameters(tree).count) == (symmetric, general)


def equal_steering(tree: Tree, motion: Motion, pair: tuple[str, str]) -> Motion:
    a, b = (tree.coordinates.index(c) for c in pair)
    same = [x.copy() for x in (motion.q, motion.qd, motion.qdd)]
    for x in same:
        x[:, b] = x[:, a]
    return replace(motion, q=same[0], qd=same[1], qdd=same[2])


# Ranks and groups: paper 000.


@pytest.mark.parametrize(("make", "bodies", "wheels", "every"), [(car_20, 36, 64, 84), (car_38, 50, 78, 186)])
def test_ranks_of_the_cars_of_2006(make: type, bodies: int, wheels: int, every: int) -> None:
    """FACTS 2.7, 2.8: of 50, of 90, of all bodies; from all rows, from the ten and from the six of the chassis; +10 on six joints."""
    for tree, count in ((without_elements(make()), bodies), (without_elements(make(wheels=True)), wheels)):
        assert base_parameters(tree).count == count
        motion = generic_motion(tree, 120)
        assert [base_parameters(tree, motion, rows=r).count for r in ("all", TEN_ROWS, "base")] == [count] * 3
    assert base_parameters(all_real(make())).count == every
    assert base_parameters(all_real(make("lagrange"))).count == every + 10


def test_groups_of_the_car_of_twenty() -> None:
    """FACTS 2.8: rear unsprung inertias go to the chassis whole, of the front ones YY, twice."""
    lines = base_parameters(without_elements(car_20())).relations()
    assert lines == [
        "XX_cR = XX_c + XX3 + XX4 + YY1 + YY2",
        "XY_cR = XY_c + XY3 + XY4",
        "XZ_cR = XZ_c + XZ3 + XZ4",
        "YY_cR = YY_c + YY3 + YY4 + YY1 + YY2",
        "YZ_cR = YZ_c + YZ3 + YZ4",
        "ZZ_cR = ZZ_c + ZZ3 + ZZ4",
        "XX1R = XX1 - YY1",
        "XX2R = XX2 - YY2",
    ]
    assert not base_parameters(without_elements(car_38())).relations()


@pytest.mark.parametrize(("wheels", "every", "few"), [(False, 36, 31), (True, 64, 59)])
def test_equal_steering_hides_five_from_the_ten_rows(wheels: bool, every: int, few: int) -> None:
    """FACTS 2.8: with β1 = β2 all rows still separate everything, the ten (or six) do not."""
    tree = without_elements(car_20(wheels=wheels))
    motion = equal_steering(tree, generic_motion(tree, 200), ("beta1", "beta2"))
    assert [base_parameters(tree, motion, rows=r).count for r in ("all", TEN_ROWS, "base")] == [every, few, few]


@BOTH
def test_the_identification_model_has_thirty_three(make: type) -> None:
    """FACTS 2.9, from the ten rows, with and without wheels."""
    for wheels in (False, True):
        base = base_parameters(asked_33(make(wheels=wheels)), rows=TEN_ROWS)
        assert base.count == 33 and not base.relations() and set(base.names) == set(TABLE_II)


# What poor motions hide (FACTS 2.13), by rank and by name.

TREE = asked_33(car_20())
Z = [TREE.coordinates.index(f"z{w}") for w in range(1, 5)]
INERTIAS = {"XX_c", "XY_c", "XZ_c", "YY_c", "YZ_c", "ZZ_c"}
BARS = {"k_arf", "k_arr"}
SUSPENSION = {f"{s}_{w}" for s in ("k", "fs", "h", "off") for w in range(1, 5)}


def drive(missing: str = "", N: int = 200) -> Motion:
    """A motion of the 20-dof car, unrelated from sample to sample, with something missing."""
    rng = np.random.default_rng(11)
    q, qd, qdd = 0.05 * rng.normal(size=(3, N, TREE.n))
    q[:, Z] -= 0.3
    omega, omega_dot, acceleration = rng.normal(size=(3, N, 3))
    acceleration[:, 2] += 9.81
    speed = rng.uniform(20.0, 30.0, N)
    if missing in ("heave of the axles", "and pitch"):
        for x, mean in ((q, -0.3), (qd, 0.0), (qdd, 0.0)):
            x[:, Z[1]], x[:, Z[3]] = 2 * mean - x[:, Z[0]], 2 * mean - x[:, Z[2]]
    if missing == "and pitch":  # rolling about x alone: no pitch rate, no product of rates in the pitch equation
        omega[:, 1:], omega_dot[:, 1:] = 0.0, 0.0
        omega_dot[:, 2] = rng.normal(size=N)
    if missing in ("suspension", "all but the plane", "motion"):
        q[:, Z], qd[:, Z], qdd[:, Z] = (-0.30, -0.29, -0.31, -0.28), 0.0, 0.0
    if missing == "all but the plane":
        omega[:, :2], omega_dot[:, :2], acceleration[:, 0], acceleration[:, 2] = 0.0, 0.0, 0.0, 9.81
    if missing in ("rotation", "all but heave", "motion"):
        omega[:], omega_dot[:], acceleration[:, 1] = 0.0, 0.0, 0.0
    if missing in ("all but heave", "motion"):
        acceleration[:, 0], speed[:] = 0.0, 25.0
    if missing == "motion":
        qd[:], qdd[:], acceleration[:, 2], speed[:] = 0.0, 0.0, 9.81, 0.0
    velocity = np.column_stack([speed, np.zeros((N, 2))])
    return Motion(0.01 * np.arange(N), q, qd, qdd, BaseMotion(omega, omega_dot, acceleration, velocity))


@pytest.mark.parametrize(
    ("missing", "rank", "dead"),
    [
        ("", 33, set()),
        ("heave of the axles", 31, set()),
        ("and pitch", 30, {"YY_c"}),
        ("suspension", 19, BARS | {f"{s}_{w}" for s in ("fs", "h") for w in range(1, 5)}),
        ("rotation", 27, INERTIAS),
        ("all but heave", 26, INERTIAS | {"MZ_c"}),
    ],
)
def test_poor_motions_hide_parameters_by_name(missing: str, rank: int, dead: set[str]) -> None:
    motion = drive(missing)
    base = base_parameters(TREE, motion, rows=TEN_ROWS)
    assert base.count == rank
    assert {TREE.parameters.names[k] for k in base.dead} >= dead
    for name in sorted(dead)[:2]:
        assert explain(TREE, name, motion, rows=TEN_ROWS).verdict == "without effect"
