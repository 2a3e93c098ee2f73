"""Mass matrix and forward dynamics against Pinocchio, and as the inverse of inverse dynamics.

And derivatives of both, against finite differences and Pinocchio.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_inertia, random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.forward import (
    forward_derivatives,
    forward_dynamics,
    inverse_derivatives,
    mass_matrix,
)
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import motor_inertia
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH

ROUNDING = 1e-12
SEEDS = range(72)


def case(seed: int, samples: int = 4) -> tuple[Tree, Motion]:
    rng = np.random.default_rng(3000 + seed)
    base = "free" if seed % 2 else "fixed"
    tree = random_tree(rng, base=base, shared=seed % 4 >= 2, mdh=(None, True, False)[seed % 3])
    motion = random_motion(rng, tree, samples)
    return tree, replace(motion, forces=rng.normal(size=(samples, tree.n)))


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_equals_pinocchio(seed: int) -> None:
    tree, motion = case(seed)
    M, expected = mass_matrix(tree, motion.q), PinModel(tree).mass_matrix(motion.q)
    assert M.shape == expected.shape
    assert np.abs(M - expected).max() <= ROUNDING * np.abs(expected).max()
    assert np.abs(M - np.swapaxes(M, 1, 2)).max() <= ROUNDING * np.abs(M).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_equals_pinocchio(seed: int) -> None:
    """To 1e-12 times the condition of the mass matrix: both solve M a = b, and rounding of M moves a by that much."""
    tree, motion = case(seed)
    oracle = PinModel(tree)
    got = forward_dynamics(tree, motion)
    gamma = np.hstack([np.zeros((len(motion), 6)), motion.forces]) if tree.base == "free" else motion.forces
    expected = oracle.forward_dynamics(motion, gamma)
    condition = np.linalg.cond(oracle.mass_matrix(motion.q)).max()
    limit = ROUNDING * max(condition, 1.0)
    scale = max(np.abs(x).max(initial=0.0) for x in expected if x is not None)
    assert np.abs(got.qdd - expected.qdd).max() <= limit * scale
    if tree.base == "free":
        assert np.abs(got.base.acceleration - expected.acceleration).max() <= limit * scale
        assert np.abs(got.base.omega_dot - expected.omega_dot).max() <= limit * scale


@pytest.mark.parametrize("seed", range(0, 72, 3))
def test_inverse_of_forward_gives_the_forces_back(seed: int) -> None:
    tree, motion = case(seed)
    back = inverse_dynamics(tree, forward_dynamics(tree, motion))
    limit = 1e-12 * np.linalg.cond(mass_matrix(tree, motion.q)).max()
    first = len(tree.rows) - tree.n
    assert np.abs(back[:, first:] - motion.forces).max() < limit
    assert np.abs(back[:, :first]).max(initial=0.0) < limit


def test_accelerations_in_the_argument_are_not_looked_at() -> None:
    tree, motion = case(1)
    other = replace(
        motion, qdd=7.0 + motion.qdd, base=replace(motion.base, acceleration=motion.base.acceleration + 1.0)
    )
    a, b = forward_dynamics(tree, motion), forward_dynamics(tree, other)
    assert np.array_equal(a.qdd, b.qdd) and np.array_equal(a.base.acceleration, b.base.acceleration)


def test_motor_inertia_counts_on_its_combination() -> None:
    """M + Ia a aᵀ: the rotor of a coupled wrist turns with q1 − 2 q2."""
    rng = np.random.default_rng(0)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2))]
    inertia = {b.name: random_inertia(rng) for b in bodies}
    bare = Tree.build(bodies, inertia=inertia)
    geared = Tree.build(bodies, inertia=inertia, elements=[motor_inertia({"q1": 1.0, "q2": -2.0}, 0.5)])
    q = rng.normal(size=(3, 2))
    a = np.array([1.0, -2.0])
    assert mass_matrix(geared, q) == pytest.approx(mass_matrix(bare, q) + 0.5 * np.outer(a, a), abs=1e-14)


def test_other_parameters_may_be_given() -> None:
    tree, motion = case(0)
    assert mass_matrix(tree, motion.q, 3.0 * tree.parameters.values) == pytest.approx(3.0 * mass_matrix(tree, motion.q))


def massless_slide() -> Tree:
    bodies = [Body("lift", joint="sliding"), Body("wrist", "lift", "turning", real=False)]
    return Tree.build(bodies, inertia={"lift": random_inertia(np.random.default_rng(0))})


def test_a_coordinate_that_moves_no_mass_is_named() -> None:
    tree = massless_slide()
    motion = Motion(np.zeros(1), *np.ones((3, 1, 2)), forces=np.ones((1, 2)))
    with pytest.raises(ModelError, match="coordinate wrist moves no mass, so no force gives it a finite acceleration"):
        forward_dynamics(tree, motion)


def test_two_joints_on_one_axis_with_nothing_between_are_refused() -> None:
    bodies = [Body("inner", real=False), Body("outer", "inner")]
    X = [0.5, 0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    tree = Tree.build(bodies, inertia={"outer": X})
    motion = Motion(np.zeros(1), *np.zeros((3, 1, 2)), forces=np.ones((1, 2)))
    with pytest.raises(ModelError, match=r"mass matrix is singular.*: some combination of coordinates moves no mass"):
        forward_dynamics(tree, motion)


@pytest.mark.parametrize("seed", range(6))
def test_two_joints_on_one_axis_are_refused_whatever_rounding_says(seed: int) -> None:
    """The same where rounding leaves the determinant a little off zero: no plausible numbers may come out."""
    rng = np.random.default_rng(seed)
    bodies = [
        Body("first", placement=MDH(alpha=0.3, d=0.2)),
        Body("inner", "first", real=False),
        Body("outer", "inner"),
    ]
    tree = Tree.build(bodies, inertia={"first": random_inertia(rng), "outer": random_inertia(rng)})
    motion = Motion(np.arange(5.0), *rng.normal(size=(3, 5, 3)), forces=np.ones((5, 3)))
    with pytest.raises(ModelError, match="singular"):
        forward_dynamics(tree, motion)


def test_forces_must_be_complete() -> None:
    tree, motion = case(0)
    for forces in (None, np.full((len(motion), tree.n), np.nan)):
        with pytest.raises(DataError, match="forward dynamics needs a force on every coordinate"):
            forward_dynamics(tree, replace(motion, forces=forces))


def test_parameters_that_were_refused_are_refused_again() -> None:
    """Machine code with masses turned negative: refused at every call; afterwards the true ones still pass, and the other way round."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 4, kinds=("turning",), branched=False)
    m = replace(random_motion(rng, tree, 5, wrenches=False), forces=rng.normal(size=(5, tree.n)))
    good = forward_dynamics(tree, m, engine="compiled").qdd
    for _ in range(2):
        with pytest.raises(ModelError):
            forward_dynamics(tree, m, -tree.parameters.values, engine="compiled")
        assert np.array_equal(forward_dynamics(tree, m, engine="compiled").qdd, good)


STEP = 1e-6
ENGINES = ("numpy", "compiled")


def nudged(motion: Motion, name: str, k: int, by: float) -> Motion:
    values = np.array(getattr(motion, name))
    values[:, k] += by
    return replace(motion, **{name: values})


def accelerations(tree: Tree, motion: Motion) -> np.ndarray:
    caused = forward_dynamics(tree, motion, engine="numpy")
    if caused.base is None:
        return caused.qdd
    return np.column_stack([caused.base.acceleration, caused.base.omega_dot, caused.qdd])


def differences(tree: Tree, motion: Motion, name: str, function) -> np.ndarray:
    columns = [
        (function(tree, nudged(motion, name, k, STEP)) - function(tree, nudged(motion, name, k, -STEP))) / (2 * STEP)
        for k in range(tree.n)
    ]
    return np.stack(columns, axis=2)


def close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    return np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(4))
def test_inverse_dynamics_by_finite_differences(seed: int, engine: str) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=5, base="free" if seed % 2 else "fixed", shared=seed > 1)
    motion = random_motion(rng, tree, 5)
    found = inverse_derivatives(tree, motion, engine=engine)
    # Central differences of a smooth function: the step's square and rounding over the step leave about 1e-8.
    assert close(found.by_q, differences(tree, motion, "q", inverse_dynamics), 1e-7)
    assert close(found.by_qd, differences(tree, motion, "qd", inverse_dynamics), 1e-7)
    assert close(found.by_drive, differences(tree, motion, "qdd", inverse_dynamics), 1e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(3))
def test_forward_dynamics_by_finite_differences(seed: int, engine: str) -> None:
    rng = np.random.default_rng(40 + seed)
    tree = random_tree(rng, bodies=4, base="free" if seed % 2 else "fixed", kinds=("turning", "sliding"))
    motion = random_motion(rng, tree, 4)
    motion = replace(motion, forces=rng.normal(size=(4, tree.n)))
    found = forward_derivatives(tree, motion, engine=engine)
    assert close(found.by_q, differences(tree, motion, "q", accelerations), 1e-6)
    assert close(found.by_qd, differences(tree, motion, "qd", accelerations), 1e-6)
    assert close(found.by_drive, differences(tree, motion, "forces", accelerations), 1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_pinocchio_agrees(seed: int) -> None:
    rng = np.random.default_rng(80 + seed)
    tree = random_tree(rng, bodies=6, base="fixed", kinds=("turning", "sliding"))
    motion = random_motion(rng, tree, 3, wrenches=False)
    motion = replace(motion, forces=rng.normal(size=(3, tree.n)))
    oracle = PinModel(tree)
    data = oracle.model.createData()
    inverse = inverse_derivatives(tree, motion, engine="numpy")
    forward = forward_derivatives(tree, motion, engine="numpy")
    for k in range(3):
        S = oracle.S  # Pinocchio has its own order of joints
        q = oracle.configuration(motion.q[k])
        pin.computeRNEADerivatives(oracle.model, data, q, S @ motion.qd[k], S @ motion.qdd[k])
        assert close(inverse.by_q[k], S.T @ data.dtau_dq @ S, 1e-11)
        assert close(inverse.by_qd[k], S.T @ data.dtau_dv @ S, 1e-11)
        pin.computeABADerivatives(oracle.model, data, q, S @ motion.qd[k], S @ motion.forces[k])
        # The solve amplifies rounding by the condition of the mass matrix, some thousands on these trees.
        assert close(forward.by_q[k], S.T @ data.ddq_dq @ S, 1e-9)
        assert close(forward.by_qd[k], S.T @ data.ddq_dv @ S, 1e-9)
        assert close(forward.by_drive[k], S.T @ data.Minv @ S, 1e-9)
