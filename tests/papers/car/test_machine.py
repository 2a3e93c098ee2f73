"""The cars of papers 000 and 001 as model files: against trees written apart from them, Pinocchio, and the papers' numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers import cars as stranger
from strangers.cars import all_real
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion
from veridyn.files.access import shipped
from veridyn.files.machine.load import parse_machine
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.identify.diagnosis.explain import explain
from veridyn.identify.estimate import identify
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose, jacobian
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.car.machine import (
    LOADS_2002,
    TABLE_II,
    TABLE_IV,
    TEN_ROWS,
    UNSPRUNG_2002,
    car_20,
    car_38,
    car_2002,
    estimated,
    estimated_33,
    static_loads,
    symmetric_wheels,
    weight_check,
    without_elements,
)
from veridyn.spatial.inertia import INERTIAL, broken_law

Array = NDArray[np.float64]
BOTH = pytest.mark.parametrize("make", [car_20, car_38])
CORNERS = {1: (2.7, 0.75), 2: (2.7, -0.75), 3: (0.0, 0.745), 4: (0.0, -0.745)}  # of the files of 2006: x and y in m


# The files against the trees of tests/strangers/cars.py, which were written from the tables by someone else.


def chassis_centre(machine: Machine) -> NDArray[np.float64]:
    """The chassis' centre of mass before, left of and above its frame's origin, (3,) in m; any of the cars."""
    p = machine.parameters
    if "M_c" in p.names:
        return np.array([p["MX_c"], p["MY_c"], p["MZ_c"]]) / p["M_c"]
    return np.array([p["MZ6"], -p["MX6"], -p["MY6"]]) / p["M6"]  # frame 6: x right, y down, z forward


def with_lengths(name: str, lengths: dict[str, float]) -> Machine:
    """A car's file with other lengths among its constants."""
    text = shipped(f"veridyn:{name}").read_text(encoding="utf-8")
    for constant, length in lengths.items():
        text, times = re.subn(rf"^  {constant}: [\d.]+", f"  {constant}: {length}", text, flags=re.MULTILINE)
        assert times == 1
    return parse_machine(text, source=name)


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
        joints = [replace(j, coordinates=("beta",)) if j.name in ("14", "18") else j for j in mine.joints]
        mine = Machine.build(mine.links, joints)
        assert car_2002(shared_steering=True).coordinates == mine.coordinates
    motion = random_motion(np.random.default_rng(0), theirs, 6, wrenches=False)
    D, E = regressor(mine, motion)[:, :, :50], regressor(theirs, motion)
    assert np.abs(D - E).max() < 1e-12 * np.abs(E).max()


def test_ten_rows_and_names_are_those_of_the_papers() -> None:
    for machine in (car_38(), car_20()):
        assert set(estimated_33(machine).parameters.select("estimated")) == {
            machine.parameters.index(n) for n in TABLE_II
        }
        assert len(machine.parameters) == 69 and not machine.parameters.missing()
        assert {f"{c}{w}" for c in ("z", "beta", "theta", "zt") for w in (1, 2)} <= set(machine.coordinates)
        assert [r for r, on in zip(machine.coordinates, machine.actuated, strict=True) if not on] == [
            "z3",
            "z4",
            "z1",
            "z2",
        ]
    assert TEN_ROWS == stranger.TEN_ROWS
    assert {"off7", "ks10", "h13", "MX6", "M20"} <= set(car_2002().parameters.names)


def test_degrees_of_freedom() -> None:
    assert (car_38().n, len(car_38().rows), car_38("lagrange").n, len(car_38().links)) == (32, 38, 38, 37)
    assert (car_20().n, len(car_20().rows), car_20("lagrange").n, len(car_20().links)) == (14, 20, 20, 20)
    assert (car_2002().n, car_2002(shared_steering=True).n, len(car_2002().links)) == (16, 15, 20)
    assert (car_2002(form="mixed").n, len(car_2002(form="mixed").rows)) == (10, 16)


def test_every_wheel_has_eight_freedoms() -> None:
    """Section V.A: half track, wheelbase, clearance, toe or steering, camber, kingpin, the wheel's turn and its tyre, at each corner."""
    for corner in (1, 2, 3, 4):
        own = [c for c in car_38().coordinates if c.endswith(str(corner))]
        assert own == [f"{c}{corner}" for c in ("dl", "dL", "z", "beta", "camber", "kingpin", "theta", "zt")]
    assert 6 + 4 * 8 == 38 == len(car_38().rows)


# Frames.


@BOTH
def test_wheels_sit_at_the_corners(make: type) -> None:
    """FACTS 2.1, 2.2: frames parallel to the chassis at (0, ±l, z) and (L, ±l, z); wheel axes to the left."""
    machine = make(wheels=True)
    q = np.zeros((1, machine.n))
    for w in CORNERS:
        q[0, machine.coordinates.index(f"z{w}")] = -0.1 * w
    for w, (x, y) in CORNERS.items():
        R, p = body_pose(machine, q, f"unsprung{w}")
        assert R[0] == pytest.approx(np.eye(3), abs=1e-15)
        assert p[0] == pytest.approx([x, y, -0.1 * w], abs=1e-14)
        assert body_pose(machine, q, f"wheel{w}")[0][0][:, 2] == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)
        assert body_pose(machine, q, f"tyre{w}")[0][0] == pytest.approx(np.eye(3), abs=1e-15)


def test_posture_of_the_car_of_2002() -> None:
    """FACTS 1.1, 1.2: q = (−y, x, z, ψ, −φ, θ) puts frame 6 at (x, y, z), turned by Rz(ψ) Ry(φ) Rx(θ); x right, y down, z forward."""
    machine = car_2002()
    x, y, z, yaw, pitch, roll = 1.0, 2.0, 3.0, 0.3, -0.2, 0.1
    q = np.zeros((1, machine.n))
    q[0, :6] = -y, x, z, yaw, -pitch, roll
    R, p = body_pose(machine, q, "6")
    axes = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    assert p[0] == pytest.approx([x, y, z])
    assert R[0] == pytest.approx(turned(2, yaw) @ turned(1, pitch) @ turned(0, roll) @ axes)
    level = np.zeros((1, machine.n))
    corners = {"7": (0.0, 0.745, 0.0), "10": (0.0, -0.745, 0.0), "13": (2.7, 0.75, 0.0), "17": (2.7, -0.75, 0.0)}
    for body, corner in corners.items():
        R, p = body_pose(machine, level, body)
        assert p[0] == pytest.approx(corner) and R[0] == pytest.approx(np.eye(3), abs=1e-15)
    assert body_pose(machine, level, "20")[0][0][:, 2] == pytest.approx([0.0, 1.0, 0.0])


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
def test_mixed_and_lagrange_are_the_same_equations(
    mixed: Machine, lagrange: Machine, chassis: str, felt: list[str]
) -> None:
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
    "machine",
    [car_20(wheels=True), car_20("lagrange"), car_38(wheels=True), car_2002(), car_2002(True), car_2002(form="mixed")],
    ids=["20", "20 lagrange", "38", "2002", "2002 shared", "2002 mixed"],
)
def test_pinocchio_agrees(machine: Machine) -> None:
    """Inverse dynamics and regressor of the bodies to 1e-12 of the largest."""
    bodies = without_elements(machine)
    oracle = PinModel(bodies)
    motion = random_motion(np.random.default_rng(2), bodies, 5)
    expected = oracle.inverse_dynamics(motion)
    assert np.abs(inverse_dynamics(bodies, motion) - expected).max() < 1e-12 * np.abs(expected).max()
    still = replace(motion, wrenches={})
    D = oracle.regressor(still)
    assert np.abs(regressor(bodies, still) - D).max() < 1e-12 * np.abs(D).max()


def test_the_car_of_2002_is_simulated_by_its_own_model() -> None:
    """Section 1 of 001: the dynamic model simulates the car. Accelerations are those of Pinocchio, by articulated bodies; the model, driven
    by the forces of a manoeuvre (a smooth motion of all sixteen coordinates), runs along it; Runge and Kutta's fourth order, 2 ms."""
    machine = without_elements(car_2002())
    rng = np.random.default_rng(8)
    motion = random_motion(rng, machine, 4, wrenches=False)
    gamma = inverse_dynamics(machine, motion)
    found = forward_dynamics(machine, replace(motion, forces=gamma)).qdd
    theirs = PinModel(machine).forward_dynamics(motion, gamma).qdd
    assert np.abs(found - theirs).max() < 1e-8 * np.abs(theirs).max()
    size, phase = 0.2 * rng.uniform(0.5, 1.0, machine.n), rng.uniform(0.0, 6.0, machine.n)
    step, N = 2e-3, 100

    def wanted(t: np.ndarray) -> Motion:
        w = 2.0 * np.pi
        q, qd = size * np.sin(w * t[:, None] + phase), w * size * np.cos(w * t[:, None] + phase)
        return Motion(t, q, qd, -w * w * q)

    half = wanted(0.5 * step * np.arange(2 * N + 1))
    forces, one = inverse_dynamics(machine, half), Evaluator(machine)

    def rates(x: np.ndarray, k: int) -> np.ndarray:
        q, qd = np.split(x, 2)
        return np.concatenate([qd, one.forward_dynamics(q, qd, forces[k])])

    x = np.concatenate([half.q[0], half.qd[0]])
    for k in range(0, 2 * N, 2):
        a = rates(x, k)
        b = rates(x + 0.5 * step * a, k + 1)
        c = rates(x + 0.5 * step * b, k + 1)
        d = rates(x + step * c, k + 2)
        x = x + step / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    assert np.abs(x - np.concatenate([half.q[-1], half.qd[-1]])).max() < 1e-6  # of motions of .2 m or rad


# Ranks and groups: paper 001.


def test_car_of_2002_has_twenty() -> None:
    """FACTS 1.4: 20, not the 23 of Table 3, with exactly two groups; twelve more with the elements."""
    machine = symmetric_wheels(without_elements(car_2002()))
    base = base_parameters(machine)
    assert len(machine.parameters.select("estimated")) == 22 and base.count == 20
    assert base.relations() == ["YY6R = YY6 + XX9 + XX12", "ZZ6R = ZZ6 + XX9 + XX12"]
    chassis = ["XX6", "XY6", "XZ6", "YY6R", "YZ6", "ZZ6R", "MX6", "MY6", "MZ6", "M6"]
    wheels = ["ZZ9", "M9", "ZZ12", "M12", "XX16", "ZZ16", "M16", "XX20", "ZZ20", "M20"]
    assert list(base.names) == chassis + wheels
    assert base_parameters(machine, generic_motion(machine, 200)).count == 20
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
    machine = without_elements(car_2002(shared, "mixed"))
    assert (base_parameters(symmetric_wheels(machine)).count, base_parameters(machine).count) == (symmetric, general)


def equal_steering(machine: Machine, motion: Motion, pair: tuple[str, str]) -> Motion:
    a, b = (machine.coordinates.index(c) for c in pair)
    same = [x.copy() for x in (motion.q, motion.qd, motion.qdd)]
    for x in same:
        x[:, b] = x[:, a]
    return replace(motion, q=same[0], qd=same[1], qdd=same[2])


# Ranks and groups: paper 000.


@pytest.mark.parametrize(("make", "bodies", "wheels", "every"), [(car_20, 36, 64, 84), (car_38, 50, 78, 186)])
def test_ranks_of_the_cars_of_2006(make: type, bodies: int, wheels: int, every: int) -> None:
    """FACTS 2.7, 2.8: of 50, of 90, of all bodies; from all rows, from the ten and from the six of the chassis; +10 on six joints."""
    for machine, count in ((without_elements(make()), bodies), (without_elements(make(wheels=True)), wheels)):
        assert base_parameters(machine).count == count
        motion = generic_motion(machine, 120)
        assert [base_parameters(machine, motion, rows=r).count for r in ("all", TEN_ROWS, "base")] == [count] * 3
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
    machine = without_elements(car_20(wheels=wheels))
    motion = equal_steering(machine, generic_motion(machine, 200), ("beta1", "beta2"))
    assert [base_parameters(machine, motion, rows=r).count for r in ("all", TEN_ROWS, "base")] == [every, few, few]


@BOTH
def test_the_identification_model_has_thirty_three(make: type) -> None:
    """FACTS 2.9, from the ten rows, with and without wheels."""
    for wheels in (False, True):
        base = base_parameters(estimated_33(make(wheels=wheels)), rows=TEN_ROWS)
        assert base.count == 33 and not base.relations() and set(base.names) == set(TABLE_II)


# What poor motions hide (FACTS 2.13), by rank and by name.

TREE = estimated_33(car_20())
Z = [TREE.coordinates.index(f"z{w}") for w in range(1, 5)]
INERTIAS = {"XX_c", "XY_c", "XZ_c", "YY_c", "YZ_c", "ZZ_c"}
BARS = {"k_arf", "k_arr"}


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
    if missing == "and pitch":
        omega[:, 1], omega_dot[:, 1] = 0.0, 0.0
    if missing in ("suspension", "suspension, askew", "all but the plane", "motion"):
        level = (-0.30, -0.30, -0.31, -0.31)
        q[:, Z] = (-0.30, -0.29, -0.31, -0.28) if missing == "suspension, askew" else level
        qd[:, Z], qdd[:, Z] = 0.0, 0.0
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


STILL = {f"{s}_{w}" for s in ("fs", "h") for w in range(1, 5)}


@pytest.mark.parametrize(
    ("missing", "rank", "dead"),
    [
        ("", 33, set()),
        ("heave of the axles", 31, set()),
        ("and pitch", 30, {"YY_c"}),
        ("suspension", 19, BARS | STILL),
        ("suspension, askew", 19, STILL),
        ("all but the plane", 12, BARS | STILL | {"XX_c", "XY_c", "YY_c"}),
        ("rotation", 27, INERTIAS),
        ("all but heave", 26, INERTIAS | {"MZ_c"}),
        ("motion", 7, BARS | STILL | INERTIAS | {"MZ_c", "Cx"}),
    ],
)
def test_poor_motions_hide_parameters_by_name(missing: str, rank: int, dead: set[str]) -> None:
    motion = drive(missing)
    base = base_parameters(TREE, motion, rows=TEN_ROWS)
    assert base.count == rank
    assert {TREE.parameters.names[k] for k in base.dead} == dead
    if dead:
        told = explain(TREE, min(dead), motion, rows=TEN_ROWS)
        assert told.verdict == "without effect" and f"{min(dead)} has no effect in this motion" in str(told)


def hidden(motion: Motion, change: dict[str, float]) -> float:
    """The effect of a change of parameters on the ten rows, relative to the sum of the effects of its parts."""
    D = regressor(TREE, motion, TEN_ROWS).reshape(-1, len(TREE.parameters))
    parts = [a * D[:, TREE.parameters.index(name)] for name, a in change.items()]
    return float(np.linalg.norm(sum(parts)) / sum(np.linalg.norm(part) for part in parts))


def test_pure_roll_of_the_clearances_hides_the_springs_of_each_axle() -> None:
    """One direction per axle: k = +a left and right, k_ar = −a/2, off = −a q0; moving one clearance by itself shows it."""
    motion = drive("heave of the axles")
    for left, right, bar in (("1", "2", "k_arf"), ("3", "4", "k_arr")):
        change = {f"k_{left}": 1.0, f"k_{right}": 1.0, bar: -0.5, f"off_{left}": 0.3, f"off_{right}": 0.3}
        assert hidden(motion, change) < 1e-14 and hidden(drive(), change) > 1e-3
        told = explain(TREE, f"k_{left}", motion, rows=TEN_ROWS)
        assert told.verdict == "grouped"
        assert {f"z{left} moves by itself", f"z{right} moves by itself"} == set(told.motions)
        assert explain(TREE, bar, motion, rows=TEN_ROWS).verdict == "grouped"


def test_what_would_help() -> None:
    """FACTS 2.13: pitch for YY_c, the suspension for h and fs, pushing along or across for MZ_c."""

    def remedies(name: str, missing: str) -> tuple[str, ...]:
        return explain(TREE, name, drive(missing), rows=TEN_ROWS).motions

    assert remedies("YY_c", "and pitch") == ("the base turns about y",)
    assert remedies("h_1", "suspension") == ("z1 moves by itself",)
    assert {"the base accelerates along x", "the base accelerates along y"} <= set(remedies("MZ_c", "all but heave"))
    assert remedies("XX_c", "rotation") == ("the base turns about x",)
    assert explain(TREE, "Cx", drive("suspension"), rows=TEN_ROWS).verdict == "identifiable"


def test_locked_suspension_joins_spring_and_offset() -> None:
    base = base_parameters(TREE, drive("suspension"), rows=TEN_ROWS)
    assert base.relations()[0].startswith("k_1R = k_1 - 3.3333") and len(base.relations()) == 4
    assert {base.fate(f"{s}_{w}") for s in ("k", "off") for w in range(1, 5)} == {"grouped"}
    askew = base_parameters(TREE, drive("suspension, askew"), rows=TEN_ROWS)
    assert {askew.fate(bar) for bar in BARS} == {"grouped"}  # dead only where left and right stand alike


def test_standstill_weighs_wheels_with_their_offsets() -> None:
    """FACTS 2.13: seven, M_jR = M_j + off_j/g; what is left of the chassis is M_c, MX_c and MY_c, less what the suspensions carry."""
    base = base_parameters(TREE, drive("motion"), rows=TEN_ROWS)
    assert set(base.names) == {"M_cR", "MX_cR", "MY_cR", "M1R", "M2R", "M3R", "M4R"}
    p = TREE.parameters
    for w, (x, y) in CORNERS.items():
        row = base.matrix[base.names.index(f"M{w}R")]
        assert row[p.index(f"off_{w}")] == pytest.approx(1.0 / 9.81, rel=1e-9)
        # Mass taken from the chassis above a wheel and given to the wheel: only the suspension between them carries less.
        change = {f"M{w}": 1.0, f"off_{w}": -9.81, "M_c": -1.0, "MX_c": -x, "MY_c": -y}
        assert hidden(drive("motion"), change) < 1e-14 and hidden(drive(), change) > 1e-3
    chassis = base.matrix[base.names.index("M_cR")]
    assert [chassis[p.index(f"off_{w}")] for w in range(1, 5)] == pytest.approx([-1.0 / 9.81] * 4, rel=1e-9)
    assert explain(TREE, "M1", drive("motion"), rows=TEN_ROWS).verdict == "grouped"


def test_constant_speed_keeps_the_drag() -> None:
    """FACTS 2.13: Cx stays, as a constant in row fx."""
    motion = drive()
    steady = replace(motion, base=replace(motion.base, velocity=np.tile([25.0, 0.0, 0.0], (len(motion), 1))))
    assert base_parameters(TREE, steady, rows=TEN_ROWS).fate("Cx") == "alone"


# Identification without noise.


def held_by_wheels(machine: Machine, motion: Motion) -> Motion:
    """The motion with the smallest wheel wrenches that balance the ten rows, its vertical acceleration made such that they can.

    Wheel wrenches enter row fz as they enter the rows z1 to z4 together: the chassis is carried by its suspensions alone. So fz less
    these four, which is affine in the vertical acceleration, has to be zero by itself.
    """
    carried = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0, -1.0, -1.0, -1.0])
    step = np.array([0.0, 0.0, 1.0])
    faster = replace(motion, base=replace(motion.base, acceleration=motion.base.acceleration + step))
    before, after = (inverse_dynamics(machine, m, TEN_ROWS) @ carried for m in (motion, faster))
    more = -before / (after - before)
    base = replace(motion.base, acceleration=motion.base.acceleration + more[:, None] * step)
    motion = replace(motion, base=base)
    wanted = list(machine.select_rows(TEN_ROWS))
    hubs = [f"unsprung{w}" for w in range(1, 5)]
    units = []
    for hub in hubs:
        for one in np.eye(6):
            push = {hub: np.tile(one, (len(motion), 1))}
            units.append(external_rows(machine, replace(motion, wrenches=push))[:, wanted])
    G = np.stack(units, axis=2)
    assert np.abs(carried @ G).max() < 1e-12
    needed = inverse_dynamics(machine, motion, TEN_ROWS)
    w = -np.einsum("nij,nj->ni", np.linalg.pinv(G), needed).reshape(-1, 4, 6)
    return replace(motion, wrenches={hub: w[:, k] for k, hub in enumerate(hubs)})


@BOTH
@pytest.mark.parametrize("values", ["a priori", "estimated"])
def test_all_thirty_three_come_back_without_noise(make: type, values: str) -> None:
    """FACTS 2.10: to 1e-8, each relative to itself, or to its typical size where it is zero; from wheel wrenches and ten rows."""
    machine = estimated_33(make() if values == "a priori" else estimated(make()))
    rng = np.random.default_rng(21)
    N = 120
    q, qd, qdd = rng.normal(size=(3, N, machine.n)) * np.array([0.05, 0.3, 3.0])[:, None, None]
    q[:, [machine.coordinates.index(f"z{w}") for w in range(1, 5)]] -= 0.3
    omega, omega_dot, acceleration = rng.normal(size=(3, N, 3)) * np.array([0.5, 2.0, 3.0])[:, None, None]
    acceleration[:, 2] += 9.81
    velocity = np.column_stack([rng.uniform(20.0, 30.0, N), rng.normal(size=(N, 2))])
    motion = Motion(0.01 * np.arange(N), q, qd, qdd, BaseMotion(omega, omega_dot, acceleration, velocity))
    recorded = held_by_wheels(machine, motion)
    p = machine.parameters
    assert np.abs(inverse_dynamics(machine, recorded, TEN_ROWS)).max() < 1e-9  # N, N*m: the wheels carry all
    fit = identify(machine.with_parameters(dict.fromkeys(TABLE_II, 1.0)), recorded, rows=TEN_ROWS)
    assert set(fit.names) == set(TABLE_II)
    for name, value in zip(fit.names, fit.values, strict=True):
        assert abs(value - p[name]) < 1e-8 * (abs(p[name]) or p.typical[p.index(name)])


# Numbers of the papers.


def test_centre_of_mass_of_the_car_of_2002() -> None:
    """FACTS 1.3: 1.668 m before the rear axle, 4.9 mm to the left, .464 m above O6."""
    for machine in (car_2002(), car_2002(form="mixed")):
        assert chassis_centre(machine) == pytest.approx([1.668, 0.0049, 0.464], abs=5e-4)
    assert chassis_centre(car_20()) == pytest.approx([1.605, 0.0, -0.00995], abs=5e-4)  # FACTS 2.4


def test_static_weight_of_the_car_of_2002() -> None:
    """FACTS 1.3: 1604 kg, 1471 kg, and 6.47 % once 1471 is rounded as in the print; 6.45 % otherwise."""
    check = weight_check(car_2002().parameters["M6"])
    assert pytest.approx(132.8) == UNSPRUNG_2002 and sum(LOADS_2002) == 15720.0
    assert (round(check.total), round(check.sprung)) == (1604, 1471)
    assert check.difference == pytest.approx(0.0645, abs=5e-5)
    printed = weight_check(1566.20, loads=[1604 * 9.8], unsprung=133.0)
    assert printed.sprung == pytest.approx(1471.0) and printed.difference == pytest.approx(0.0647, abs=5e-5)
    p = car_2002().parameters
    assert sum(p[f"M{j}"] for j in (9, 12, 16, 20)) == pytest.approx(UNSPRUNG_2002)


def test_a_car_of_2006_stands_level() -> None:
    """The offsets were chosen for it: all clearances −.295 m, loads by the lever rule."""
    p = car_20().parameters
    front = 9.81 * p["MX_c"] / 2.7 / 2
    for machine, hub in ((car_20(), 24.0), (car_38("lagrange"), 24.0), (car_20(wheels=True), 24.0 + 18.8)):
        found = static_loads(machine)
        assert list(found.clearances.values()) == pytest.approx([-0.295] * 4, abs=1e-10)
        assert found.loads["z1"] == pytest.approx(front + 9.81 * hub, rel=1e-10)
        assert found.loads["z1"] == pytest.approx(found.loads["z2"]) and found.loads["z3"] < found.loads["z1"]
        assert found.total == pytest.approx(9.81 * (p["M_c"] + 4 * hub), rel=1e-12)


def test_clearances_at_rest_with_the_estimates_of_table_two() -> None:
    """FACTS 2.4: near −.30 m, from wheel loads that were measured; the model's own loads give the same within 1 cm."""
    found = static_loads(estimated(car_20()))
    expected = {"z1": -0.300, "z2": -0.297, "z3": -0.291, "z4": -0.294}
    assert found.clearances == pytest.approx(expected, abs=0.01)
    measured = dict(zip(("z3", "z4", "z1", "z2"), LOADS_2002, strict=True))
    assert found.loads == pytest.approx(measured, rel=0.07)


@pytest.mark.parametrize(
    "machine", [car_2002(), car_2002(form="mixed"), estimated(car_20())], ids=["lagrange", "mixed", "20"]
)
def test_loads_balance_the_car(machine: Machine) -> None:
    """Sums of forces and moments by hand, and every suspension's own balance (17), to rounding."""
    found = static_loads(machine)
    p = machine.parameters
    if "M_c" in p.names:
        centre, mass = chassis_centre(machine), p["M_c"]
        corners = {f"z{w}": corner for w, corner in CORNERS.items()}
        unsprung = {f"z{w}": p[f"M{w}"] for w in range(1, 5)}
        z = found.clearances
        bar = {"z1": z["z1"] - z["z2"], "z2": z["z2"] - z["z1"], "z3": z["z3"] - z["z4"], "z4": z["z4"] - z["z3"]}
        spring = {
            c: p[f"k_{c[1]}"] * z[c] + p[f"off_{c[1]}"] + p["k_arf" if c in ("z1", "z2") else "k_arr"] * bar[c]
            for c in corners
        }
    else:
        centre, mass = chassis_centre(machine), p["M6"]
        corners = {"q7": (0.0, 0.745), "q10": (0.0, -0.745), "q13": (2.7, 0.75), "q17": (2.7, -0.75)}
        unsprung = {"q7": p["M9"], "q10": p["M12"], "q13": p["M16"], "q17": p["M20"]}
        spring = {c: p[f"ks{c[1:]}"] * found.clearances[c] + p[f"off{c[1:]}"] for c in corners}
    sprung = {c: found.loads[c] - 9.81 * unsprung[c] for c in corners}
    assert sprung == pytest.approx(spring, rel=1e-9)
    for arm in (0, 1):
        assert sum(sprung[c] * corners[c][arm] for c in corners) == pytest.approx(9.81 * mass * centre[arm], abs=1e-7)
    assert found.total == pytest.approx(9.81 * (mass + sum(unsprung.values())), rel=1e-12)


def test_a_priori_values_of_the_files_are_those_of_table_two() -> None:
    for machine in (car_20(), car_38()):
        for name, line in TABLE_II.items():
            if np.isfinite(line.a_priori):
                assert machine.parameters[name] == line.a_priori
    absent = {n for n, line in TABLE_II.items() if np.isnan(line.a_priori)}
    assert absent == {f"{s}_{w}" for s in ("fs", "off") for w in range(1, 5)} | {"Cx"}


def test_tables_two_and_four_are_copied_right() -> None:
    """FACTS 2.9: 26 of 33 pass σ % < 10 and 23 pass 2σ % < 10; percentages follow from the values within one point or a tenth."""
    percent = [line.percent for line in TABLE_II.values()]
    assert (len(percent), sum(x < 10 for x in percent), sum(2 * x < 10 for x in percent)) == (33, 26, 23)
    assert list(TABLE_IV) == list(TABLE_II)
    for table in (TABLE_II, TABLE_IV):
        for line in table.values():
            assert line.percent == pytest.approx(100 * line.sigma / abs(line.estimate), rel=0.1, abs=1.0)
    for name, line in TABLE_II.items():
        both = 4 * np.hypot(line.sigma, TABLE_IV[name].sigma)
        assert abs(line.estimate - TABLE_IV[name].estimate) < both or name == "Cx"  # printed as 1.1 in Table IV


def test_no_body_has_the_estimated_inertia() -> None:
    """Roll and pitch about the centre of mass cannot be less than yaw; the a priori values are possible."""

    def law(column: str) -> str | None:
        return broken_law(np.array([getattr(TABLE_II[f"{s}_c"], column) for s in INERTIAL]))

    assert not law("a_priori")
    assert "triangle inequality" in str(law("estimate"))


def test_the_two_rules_accept_26_and_23_of_table_ii() -> None:
    """Section VII.A, σ % < 10, and section IV.B, 2 σ % < 10."""
    percent = np.array([line.percent for line in TABLE_II.values()])
    assert int((percent < 10.0).sum()) == 26
    assert int((2.0 * percent < 10.0).sum()) == 23
