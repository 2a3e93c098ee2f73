"""The humanoid of paper 004: what it weighs, its ranks (3.1 and 3.2 of the facts), and the corrected appendix A against Pinocchio.

Plans of the humanoid: kinematics against forward kinematics, and walking against its zero-moment point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD
from strangers.pinocchio_oracle import TEN, PinModel
from strangers.random_trees import random_motion, random_open_machine
from veridyn.errors import DataError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose
from veridyn.model.link import Joint
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.humanoid.machine import (
    CAD_MASS,
    FEET,
    FOOT,
    HEIGHT,
    HIP,
    LEG,
    MASS,
    SIDES,
    SOLE,
    STANCE,
    about,
    bend,
    cad,
    centre_of_pressure,
    leg_angles,
    lowest,
    machine,
    pendulum,
    swing,
    total_mass,
    walk,
)
from veridyn.papers.humanoid.walk import SOLE_AXES
from veridyn.signals.conditioning import derivative
from veridyn.spatial.inertia import broken_law, cross_matrix, inertia_matrix, six
from veridyn.spatial.rotations import rot_x, rot_y, rot_z

FORCES, MOMENTS = ("fx", "fy", "fz"), ("mx", "my", "mz")


@pytest.mark.parametrize(("arms", "links", "joints"), [(False, 13, 12), (True, 21, 20)])
def test_links_freedoms_and_masses_are_those_of_the_paper(arms: bool, links: int, joints: int) -> None:
    drawn, real = cad(arms), machine(arms)
    for robot, mass in ((drawn, CAD_MASS), (real, MASS)):
        assert (len(robot.links), robot.n, robot.n + 6) == (links, joints, joints + 6)
        assert total_mass(robot) == pytest.approx(mass, rel=1e-12)
        assert all(broken_law(x) is None for x in robot.parameters.values.reshape(-1, 10))
    light = 100.0 * (MASS - CAD_MASS) / MASS
    assert light == pytest.approx(16.25)


def test_the_26_freedoms_of_the_robot_have_150_base_parameters() -> None:
    """21 links and 26 freedoms, arms and head included: 10 + 7 · 20, by the closed rules and by the rank of the base rows."""
    robot = cad(arms=True)
    assert (len(robot.links), robot.n + 6) == (21, 26)
    assert base_parameters(robot).count == 150
    assert base_parameters(robot, generic_motion(robot, 300), rows="base").count == 150


def test_ankle_sensors_in_place_of_the_plate_lose_the_feet() -> None:
    """Section 3: six-axis sensors of the ankles in place of a plate. What is above them has the same base rows under their wrenches as the
    whole robot under those of the ground, and the 14 base parameters that the feet bring are in no equation."""
    robot = cad()
    motion = random_motion(np.random.default_rng(6), robot, 5)
    rng = np.random.default_rng(7)
    motion = replace(motion, wrenches={foot: rng.normal(size=(5, 6)) for foot in FEET})
    links = [link for link in robot.links if link.name not in FEET]
    above = Machine.build(links, [j for j in robot.joints if j.b not in FEET], gravity=robot.gravity)
    felt = {}
    for foot in FEET:
        ankle = next(j.a.body for j in robot.joints if j.b == foot)
        free = Joint(name=foot, kind="floating", a="ground", b=foot)
        sole = Machine.build([link for link in robot.links if link.name == foot], [free])
        own = Motion(
            motion.t, *np.zeros((3, 5, 0)), body_motion(robot, motion, foot), wrenches={foot: motion.wrenches[foot]}
        )
        f, m = np.split(inverse_dynamics(sole, own, rows="base"), 2, axis=1)  # what the ankle does to the foot
        (R, p), (S, o) = (body_pose(robot, motion.q, name) for name in (foot, ankle))
        f, m = (np.einsum("nij,nj->ni", R, x) for x in (f, m))
        m = m + np.cross(p - o, f)
        felt[ankle] = -np.hstack([np.einsum("nji,nj->ni", S, x) for x in (f, m)])
    kept = [robot.coordinates.index(c) for c in above.coordinates]
    half = Motion(motion.t, motion.q[:, kept], motion.qd[:, kept], motion.qdd[:, kept], motion.base, wrenches=felt)
    whole = inverse_dynamics(robot, motion, rows="base")
    assert np.abs(inverse_dynamics(above, half, rows="base") - whole).max() < 1e-10 * np.abs(whole).max()
    assert base_parameters(above).count == base_parameters(robot).count - 14 == 80


def test_it_is_as_tall_as_the_paper_says() -> None:
    machine = cad()
    hang = max(-body_pose(machine, np.zeros((1, machine.n)), foot)[1][0, 2] for foot in FEET)
    head = 0.26  # m above the hips (chosen)
    assert hang + SOLE + head == pytest.approx(HEIGHT)


@pytest.mark.parametrize("robot", [cad(), machine(), cad(arms=True)], ids=["cad", "machine", "with arms"])
def test_base_rows_tell_all_that_any_row_can(robot: Machine) -> None:
    count = 10 + 7 * robot.n
    assert base_parameters(robot).count == count
    assert base_parameters(robot).source == "by the closed rules"
    motion = generic_motion(robot, 2 * count)
    for rows, rank in (
        ("base", count),
        ("all", count),
        ("joints", count - 10),
        (FORCES, 10 + 7 * robot.n - 6 - 5 * robot.n),
        (MOMENTS, count - 1),
    ):
        assert base_parameters(robot, motion, rows=rows).count == rank, rows
    numeric, closed = base_parameters(robot, motion, rows="base"), base_parameters(robot)
    assert numeric.columns == closed.columns and numeric.matrix == pytest.approx(closed.matrix, abs=1e-9)


def frozen(what: str) -> Motion:
    """A generic motion of the 13 links with something held still."""
    robot = machine()
    m = generic_motion(robot, 400)
    assert m.base is not None
    zero = np.zeros_like(m.base.omega)
    down = np.tile([0.0, 0.0, 9.81], (400, 1))
    still = replace(m, qd=0 * m.qd, qdd=0 * m.qdd)
    if what == "base not rotating":
        return replace(m, base=BaseMotion(zero, zero, m.base.acceleration))
    if what == "base fixed":
        return replace(m, base=BaseMotion(zero, zero, down))
    if what == "static, all orientations":
        tilt = m.base.acceleration / np.linalg.norm(m.base.acceleration, axis=1, keepdims=True)
        return replace(still, base=BaseMotion(zero, zero, 9.81 * tilt))
    if what == "static, one orientation":
        return replace(still, base=BaseMotion(zero, zero, down))
    if what == "all joints frozen":
        return replace(still, q=0 * m.q + 0.3)
    k = robot.coordinates.index("right_hip_yaw")
    held = [x.copy() for x in (m.q, m.qd, m.qdd)]
    for x in held:
        x[:, k] = 0.0
    return replace(m, q=held[0], qd=held[1], qdd=held[2])


@pytest.mark.parametrize(
    ("what", "rank"),
    [
        ("base not rotating", 84),
        ("base fixed", 83),
        ("static, all orientations", 28),
        ("static, one orientation", 27),
        ("one hip yaw frozen", 87),
        ("all joints frozen", 10),
    ],
)
def test_motions_that_hold_something_still_tell_less(what: str, rank: int) -> None:
    found = base_parameters(machine(), frozen(what), rows="base")
    assert found.count == rank and found.gap > 1e4


def appendix_a(machine: Machine, X: np.ndarray, literal: bool = False) -> tuple[np.ndarray, list[int]]:
    """φ_B and its columns by (11) to (17), summed over children, all joints turning; `literal` with the two misprints left in.

    (14) must read MS_i,z and not MS_i−1,z; (17) must read J_i,xx − J_i,yy and not J_i,xx for i > 0.
    """
    tree = tree_of(machine)
    M, MS, J = X[:, 9].copy(), X[:, 6:9].copy(), np.array([inertia_matrix(x) for x in X])
    for i in range(len(tree.bodies) - 1, 0, -1):
        a = tree.antecedent[i]
        R, p = tree.bodies[i].placement.rotation, tree.bodies[i].placement.position
        z = X[a, 8] if literal else MS[i, 2]
        r = R @ np.array([0.0, 0.0, z])  # (14)
        P, S = cross_matrix(p), cross_matrix(r)
        M[a] += M[i]  # (11)
        MS[a] += M[i] * p + r  # (12)
        J[a] += M[i] * P.T @ P + P.T @ S + S.T @ P + J[i, 1, 1] * R @ np.diag([1.0, 1.0, 0.0]) @ R.T  # (13), (15)
    values, columns = [], []
    for i in range(len(tree.bodies)):
        ten = np.concatenate([six(J[i]), MS[i], [M[i]]])
        if i > 0:
            ten[0] -= 0.0 if literal else ten[3]
        kept = range(10) if i == 0 else (0, 1, 2, 4, 5, 6, 7)
        values += [ten[k] for k in kept]
        columns += [10 * i + k for k in kept]
    return np.array(values), columns


@pytest.mark.parametrize("seed", range(10))
def test_the_corrected_appendix_reproduces_the_dynamics_of_a_stranger(seed: int) -> None:
    rng = np.random.default_rng(seed)
    machine = random_open_machine(rng, bodies=3 + seed, base="free", kinds=("turning",))
    X = machine.parameters.values.reshape(-1, 10)
    motion = random_motion(rng, machine, 8, wrenches=False)
    Y = PinModel(machine).regressor(motion)[:, :6]
    wrench = PinModel(machine).inverse_dynamics(motion)[:, :6]
    chi, columns = appendix_a(machine, X)
    assert len(chi) == 10 + 7 * machine.n
    off = np.abs(Y[:, :, columns] @ chi - wrench).max() / np.abs(wrench).max()
    assert off < 1e-12
    printed, _ = appendix_a(machine, X, literal=True)
    assert np.abs(Y[:, :, columns] @ printed - wrench).max() / np.abs(wrench).max() > 1e-3
    base = base_parameters(machine)
    assert base.columns == tuple(columns)
    assert base.reduce(machine.parameters.values) == pytest.approx(chi, rel=1e-9, abs=1e-9)
    assert len(TEN) == 10


def test_the_regressor_with_the_lost_block_of_equation_8() -> None:
    """(8) with its bottom row [0, −[p̈ ×], [ω̇ •] + [ω ×][ω •]], orders of (6) and (10), against Pinocchio, one body."""
    rng = np.random.default_rng(4)
    machine = random_open_machine(rng, bodies=2, base="free", kinds=("turning",))
    single = Machine.build(machine.links[:1], machine.joints[:1])
    motion = random_motion(rng, single, 3, wrenches=False)
    assert motion.base is not None

    def dot(w: np.ndarray) -> np.ndarray:  # (10): columns xx, yy, zz, yz, zx, xy
        x, y, z = w
        return np.array([[x, 0, 0, 0, z, y], [0, y, 0, z, 0, x], [0, 0, z, y, x, 0]])

    order = [9, 6, 7, 8, 0, 3, 5, 4, 2, 1]  # (6) among XX XY XZ YY YZ ZZ MX MY MZ M
    D = PinModel(single).regressor(motion)
    for k in range(3):
        w, wd, a = motion.base.omega[k], motion.base.omega_dot[k], motion.base.acceleration[k]
        W = cross_matrix(w)
        y = np.zeros((6, 10))
        y[:3, 0], y[:3, 1:4] = a, cross_matrix(wd) + W @ W
        y[3:, 1:4], y[3:, 4:] = -cross_matrix(a), dot(wd) + W @ dot(w)
        assert D[k][:, order] == pytest.approx(y, abs=1e-12)


def test_the_legs_reach_where_they_are_sent() -> None:
    """Closed inverse kinematics against the forward kinematics of the tree."""
    rng = np.random.default_rng(0)
    N = 40
    R = about(2, rng.normal(size=N) * 0.2) @ about(1, rng.normal(size=N) * 0.2) @ about(0, rng.normal(size=N) * 0.2)
    p = np.array([0.0, 0.0, STANCE - 0.02]) + 0.01 * rng.normal(size=(N, 3))
    Rf, pf = R, p
    for side in SIDES:
        Rf = about(2, rng.normal(size=N) * 0.3) @ about(0, rng.normal(size=N) * 0.1)
        pf = np.array([0.02, HIP if side == "left" else -HIP, SOLE]) + 0.01 * rng.normal(size=(N, 3))
        q = np.zeros((N, CAD.n))
        q[:, [CAD.coordinates.index(f"{side}_{part}") for part in LEG]] = leg_angles(side, (R, p), (Rf, pf))
        Rb, pb = body_pose(CAD, q, f"{side}_foot")
        assert p + np.einsum("nij,nj->ni", R, pb) == pytest.approx(pf, abs=1e-12)
        assert R @ Rb @ SOLE_AXES == pytest.approx(Rf, abs=1e-12)
    with pytest.raises(DataError, match="out of reach"):
        leg_angles("left", (R, p + 0.1), (Rf, pf))


def test_turns_are_those_of_single_rotations() -> None:
    for axis, one in enumerate((rot_x, rot_y, rot_z)):
        assert about(axis, np.array([0.3]))[0] == pytest.approx(one(0.3))


def test_the_pendulum_solves_its_equation() -> None:
    t = np.arange(2000) * 0.003
    zmp = np.column_stack([np.where((t > 2) & (t < 4), 0.03, 0.0), 0.01 * np.sin(t)])
    x = pendulum(zmp, 0.3)
    back = x - 0.3 / 9.81 * derivative(x, 1 / 0.003, 2, "central")
    assert np.abs(back - zmp)[50:600].max() < 1e-4


def test_walking_keeps_its_zero_moment_point_under_its_feet() -> None:
    plan = walk(CAD, 4)
    cop = centre_of_pressure(CAD, plan)
    (back, front), (inner, outer) = FOOT
    ankles = {
        s: plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, body_pose(CAD, plan.q, f"{s}_foot")[1])
        for s in SIDES
    }
    low = {s: ankles[s][:, 2] < SOLE + 1e-4 for s in SIDES}
    x = np.stack([np.where(low[s], ankles[s][:, 0], np.nan) for s in SIDES])
    y = np.stack([np.where(low[s], ankles[s][:, 1], np.nan) for s in SIDES])
    assert (cop[:, 0] > np.nanmin(x, axis=0) + back).all() and (cop[:, 0] < np.nanmax(x, axis=0) + front).all()
    assert (cop[:, 1] > np.nanmin(y, axis=0) + inner).all() and (cop[:, 1] < np.nanmax(y, axis=0) + outer).all()
    assert len(plan) * 0.003 == pytest.approx(2 * 0.8 + 4 * 0.5, abs=0.01)


def test_a_flat_foot_and_an_upright_torso_leave_parameters_in_the_dark() -> None:
    """How many depends on the gait; that it is fewer does not."""
    counts = {}
    for name, turn, sway in (("turning", 0.17, 0.06), ("flat", 0.0, 0.06), ("flat and upright", 0.0, 0.0)):
        found = base_parameters(CAD, walk(CAD, 4, foot_turn=turn, sway=sway).motion(CAD)[::3], rows="base")
        counts[name] = found.count
        print(f"{name}: rank {found.count}, gap {found.gap:.1e}")
    assert counts["turning"] == 94
    assert counts["flat and upright"] < counts["flat"] < 94


def test_a_swing_keeps_its_strapped_foot_still_and_the_other_above_the_ground() -> None:
    plan = swing(CAD, "left", np.random.default_rng(1), duration=4.0)
    R, p = body_pose(CAD, plan.q, "left_foot")
    ankle = plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, p)
    assert np.ptp(ankle, axis=0).max() < 1e-12 and np.ptp(plan.pose.rotation @ R, axis=0).max() < 1e-12
    corners = np.array([[x, y, -SOLE] for x in FOOT[0] for y in FOOT[1]])
    assert lowest(CAD, plan, corners)["right"] > 0.0


def test_bending_turns_about_each_axis_with_both_feet_still() -> None:
    plan = bend(CAD)
    for side in SIDES:
        _, p = body_pose(CAD, plan.q, f"{side}_foot")
        assert np.ptp(plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, p), axis=0).max() < 1e-12
    assert np.abs(plan.velocity[:, 3:]).max(axis=0).min() > 0.3
