"""The judge is judged: identities that the Pinocchio oracle must satisfy, and closed forms by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel, moments, seen_from, ten_of
from strangers.random_trees import random_inertia, random_motion, random_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import MDH

TIGHT = 1e-11  # rounding of two algorithms on up to 13 bodies
SEEDS = range(12)


def close(a: np.ndarray, b: np.ndarray, tolerance: float = TIGHT) -> bool:
    assert a.shape == b.shape
    return bool(np.abs(a - b).max(initial=0.0) <= tolerance * max(np.abs(b).max(initial=0.0), 1.0))


def case(seed: int, shared: bool = False, N: int = 4) -> tuple[Tree, Motion, PinModel]:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, base="free" if seed % 2 else "fixed", shared=shared)
    return tree, random_motion(rng, tree, N), PinModel(tree)


def inertial(tree: Tree) -> np.ndarray:
    return tree.parameters.values[: 10 * sum(b.real for b in tree.bodies)]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_is_regressor_times_parameters_less_wrenches(seed: int, shared: bool) -> None:
    tree, motion, oracle = case(seed, shared)
    gamma = oracle.regressor(motion) @ inertial(tree)
    for body, w in motion.wrenches.items():
        J = oracle.jacobian(motion.q, body, local=True)
        gamma -= np.einsum("kir,ki->kr", J, w)
    assert close(gamma, oracle.inverse_dynamics(motion))
    assert gamma.shape == (len(motion), len(tree.rows))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_is_mass_matrix_times_acceleration_and_the_rest(seed: int, shared: bool) -> None:
    _, motion, oracle = case(seed, shared)
    still = replace(motion, qdd=0.0 * motion.qdd)
    x = motion.qdd
    if motion.base is not None:
        nothing = np.zeros((len(motion), 3))
        still = replace(still, base=BaseMotion(motion.base.omega, nothing, nothing, motion.base.velocity))
        x = np.hstack([motion.base.acceleration, motion.base.omega_dot, x])
    M = oracle.mass_matrix(motion.q)
    assert close(np.einsum("kij,kj->ki", M, x) + oracle.inverse_dynamics(still), oracle.inverse_dynamics(motion))
    assert close(np.swapaxes(M, 1, 2), M)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_undoes_inverse_dynamics(seed: int, shared: bool) -> None:
    _, motion, oracle = case(seed, shared)
    found = oracle.forward_dynamics(motion, oracle.inverse_dynamics(motion))
    tolerance = 1e-9  # condition of the mass matrix
    assert close(found.qdd, motion.qdd, tolerance)
    if motion.base is not None:
        assert close(found.acceleration, motion.base.acceleration, tolerance)
        assert close(found.omega_dot, motion.base.omega_dot, tolerance)
    else:
        assert found.acceleration is None


def test_a_constant_velocity_of_the_base_changes_nothing() -> None:
    _, motion, oracle = case(3)
    unmoved = replace(motion, base=BaseMotion(motion.base.omega, motion.base.omega_dot, motion.base.acceleration))
    assert motion.base.velocity is not None
    assert close(oracle.inverse_dynamics(unmoved), oracle.inverse_dynamics(motion))
    assert close(oracle.regressor(unmoved), oracle.regressor(motion))


def test_free_base_rows_are_newton_and_euler_of_one_rigid_body() -> None:
    """With no joint moving: f = M a + ω̇×MS + ω×(ω×MS), m = J ω̇ + ω×Jω + MS×a, a the specific acceleration."""
    rng = np.random.default_rng(7)
    tree = random_tree(rng, bodies=1, base="free", kinds=("fixed",))
    motion = random_motion(rng, tree, 5, wrenches=False)
    X, b = tree.parameters.values, motion.base
    J = np.array([[X[0], X[1], X[2]], [X[1], X[3], X[4]], [X[2], X[4], X[5]]])
    MS = X[6:9]
    f = X[9] * b.acceleration + np.cross(b.omega_dot, MS) + np.cross(b.omega, np.cross(b.omega, MS))
    m = b.omega_dot @ J + np.cross(b.omega, b.omega @ J) + np.cross(MS, b.acceleration)
    assert close(PinModel(tree).inverse_dynamics(motion), np.hstack([f, m]))


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("kind", ["turning", "sliding"])
def test_one_joint_alone_keeps_its_shapes(base: str, kind: str) -> None:
    rng = np.random.default_rng(9)
    tree = random_tree(rng, bodies=2 if base == "free" else 1, base=base, kinds=(kind,))
    motion, oracle = random_motion(rng, tree, 3, wrenches=False), PinModel(tree)
    rows = len(tree.rows)
    assert oracle.regressor(motion).shape == (3, rows, len(tree.parameters))
    assert close(oracle.regressor(motion) @ inertial(tree), oracle.inverse_dynamics(motion))
    assert oracle.mass_matrix(motion.q).shape == (3, rows, rows)
    assert oracle.jacobian(motion.q, tree.bodies[-1].name).shape == (3, 6, rows)


def test_a_wrench_acts_on_the_body() -> None:
    """A slider along the vertical: Γ = M (q̈ + g) − fz, so a force that lifts the body relieves the motor."""
    tree = Tree.build([Body("1", joint="sliding")], inertia={"1": [1, 0, 0, 1, 0, 1, 0, 0, 0, 2.0]})
    one = np.array([[0.3]])
    motion = Motion(np.zeros(1), one, one, one, wrenches={"1": np.array([[0, 0, 5.0, 0, 0, 0]])})
    assert PinModel(tree).inverse_dynamics(motion)[0, 0] == pytest.approx(2.0 * (0.3 + 9.81) - 5.0, rel=1e-14)


def test_a_pendulum_has_its_textbook_energy() -> None:
    """A mass m on a rod along x turning about the horizontal y axis: T = ½ m l² q̇², V = m g·height."""
    m, l, q, qd = 2.0, 0.7, 0.4, 1.3
    X = [0, 0, 0, m * l * l, 0, m * l * l, m * l, 0, 0, m]
    tree = Tree.build([Body("1", placement=MDH(alpha=np.pi / 2))], inertia={"1": X})  # z along −y: q > 0 lifts the mass
    energy = PinModel(tree).energy(np.array([[q]]), np.array([[qd]]))
    assert energy.kinetic[0] == pytest.approx(0.5 * m * l**2 * qd**2, rel=1e-14)
    assert energy.potential[0] == pytest.approx(m * 9.81 * l * np.sin(q), rel=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_is_the_sum_over_the_bodies(seed: int) -> None:
    """½ vᵀ(…)v of each body by its local Jacobian, and −g·Σ(R MS + M p)."""
    tree, motion, oracle = case(seed)
    rng = np.random.default_rng(seed)
    N, free = len(motion), tree.base == "free"
    base = rng.standard_normal((N, 6)) if free else None
    energy = oracle.energy(motion.q, motion.qd, base)
    rates = np.hstack([base, motion.qd]) if free else motion.qd
    kinetic, potential = np.zeros(N), np.zeros(N)
    for b in tree.bodies:
        P = moments(oracle.ten[b.name])
        R, p = oracle.frame_pose(motion.q, b.name)
        potential -= (R @ P[:3, 3] + P[3, 3] * p) @ tree.gravity
        twist = np.einsum("kir,kr->ki", oracle.jacobian(motion.q, b.name, local=True), rates)
        for k in range(N):
            v, w = twist[k, :3], twist[k, 3:]
            W = np.zeros((3, 4))  # the velocity of a point r of the body is W (r, 1)
            W[:, :3], W[:, 3] = np.cross(w, np.eye(3)).T, v
            kinetic[k] += 0.5 * np.trace(W @ P @ W.T)
    assert close(kinetic, energy.kinetic)
    assert close(potential, energy.potential)


@pytest.mark.parametrize("seed", SEEDS)
def test_poses_chain_the_modified_denavit_hartenberg_formula(seed: int) -> None:
    """iTj by the printed entries: P = (d cγ + r sγ sα, d sγ − r cγ sα, r cα + b), and R = Rz(γ) Rx(α) Rz(θ)."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, mdh=True)
    q = rng.standard_normal(tree.n)
    oracle = PinModel(tree)
    poses: list[np.ndarray] = []
    for b, i, k in zip(tree.bodies, tree.antecedent, tree.coordinate, strict=True):
        a = b.placement
        theta = a.theta + (q[k] if b.joint == "turning" else 0.0)
        r = a.r + (q[k] if b.joint == "sliding" else 0.0)
        cg, sg, ca, sa = np.cos(a.gamma), np.sin(a.gamma), np.cos(a.alpha), np.sin(a.alpha)
        ct, st = np.cos(theta), np.sin(theta)
        T = np.array(
            [
                [cg * ct - sg * ca * st, -cg * st - sg * ca * ct, sg * sa, a.d * cg + r * sg * sa],
                [sg * ct + cg * ca * st, -sg * st + cg * ca * ct, -cg * sa, a.d * sg - r * cg * sa],
                [sa * st, sa * ct, ca, r * ca + a.b],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )
        poses.append(poses[i] @ T if i >= 0 else T)
        R, p = oracle.frame_pose(q, b.name)
        assert close(R, poses[-1][:3, :3], 1e-13)
        assert close(p, poses[-1][:3, 3], 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_are_the_derivatives_of_poses(seed: int) -> None:
    tree, motion, oracle = case(seed, shared=seed % 3 == 0, N=1)
    q, h = motion.q[0], 1e-6
    body = tree.bodies[-1].name
    J = oracle.jacobian(q, body)[:, -tree.n :]
    R, _ = oracle.frame_pose(q, body)
    for c in range(tree.n):
        step = h * np.eye(tree.n)[c]
        (Ra, pa), (Rb, pb) = oracle.frame_pose(q + step, body), oracle.frame_pose(q - step, body)
        W = (Ra - Rb) @ R.T / (2 * h)
        slope = np.concatenate([(pa - pb) / (2 * h), [W[2, 1], W[0, 2], W[1, 0]]])
        assert close(slope, J[:, c], 1e-8)  # central differences at h = 1e-6


def test_moved_parameters_are_those_of_the_moved_points() -> None:
    rng = np.random.default_rng(5)
    X = random_inertia(rng)
    assert close(ten_of(moments(X)), X, 1e-15)
    tree = random_tree(rng, bodies=1, kinds=("fixed",), mdh=False)
    H = PinModel(tree).placement["1"].homogeneous
    m, r = np.array([0.5, 2.0]), rng.standard_normal((2, 3))
    before = sum(mk * np.outer([*rk, 1.0], [*rk, 1.0]) for mk, rk in zip(m, r, strict=True))
    after = sum(mk * np.outer(H @ [*rk, 1.0], H @ [*rk, 1.0]) for mk, rk in zip(m, r, strict=True))
    assert close(seen_from(H) @ ten_of(before), ten_of(after), 1e-14)


def test_unknown_inertia_gives_a_regressor_and_no_forces() -> None:
    rng = np.random.default_rng(11)
    tree = random_tree(rng, bodies=5, inertia=False)
    motion = random_motion(rng, tree, 2)
    assert np.isfinite(PinModel(tree).regressor(motion)).all()
    with pytest.raises(ValueError, match="unknown inertia"):
        PinModel(tree).inverse_dynamics(motion)


def test_random_trees_are_what_was_asked_for() -> None:
    rng = np.random.default_rng(0)
    chain = random_tree(rng, bodies=6, base="free", kinds=("sliding",), branched=False, mdh=True)
    assert chain.antecedent == (-1, 0, 1, 2, 3, 4)
    assert chain.sigma == (2, 1, 1, 1, 1, 1)
    assert all(isinstance(b.placement, MDH) for b in chain.bodies)
    sizes = {len(random_tree(rng, base=base).bodies) for base in ("fixed", "free") for _ in range(60)}
    assert min(sizes) == 2
    assert max(sizes) == 13
    assert all(random_tree(rng, bodies=2, base="free").n == 1 for _ in range(20))
    assert any(not b.real for b in random_tree(rng, bodies=13, virtual=0.7).bodies)
    assert any(random_tree(rng, bodies=13, shared=True).shares_coordinates for _ in range(3))
    assert np.linalg.norm(chain.gravity) == pytest.approx(9.81)
