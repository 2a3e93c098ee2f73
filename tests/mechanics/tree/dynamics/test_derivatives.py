"""Derivatives of inverse and forward dynamics, and the adjoint of the regressor, against finite differences and Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.machines.arm import arm
from veridyn.mechanics.tree.dynamics.derivatives import forward_derivatives, inverse_derivatives, regressor_adjoint
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import hexapod

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


def gradient_by_differences(tree: Tree, motion: Motion, G: np.ndarray, step: float = 1e-6) -> np.ndarray:
    out = np.zeros((len(motion), 3, tree.n))
    for order, name in enumerate(("q", "qd", "qdd")):
        for k in range(tree.n):
            sides = []
            for sign in (1.0, -1.0):
                moved = {n: getattr(motion, n).copy() for n in ("q", "qd", "qdd")}
                moved[name][:, k] += sign * step
                sides.append((regressor(tree, Motion(motion.t, **moved)) * G).sum(axis=(1, 2)))
            out[:, order, k] = (sides[0] - sides[1]) / (2.0 * step)
    return out


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_it_is_the_gradient(engine: str) -> None:
    """Central differences of step 1e-6 are good to about 1e-9 of the largest entry of D'' times 1e-12: 1e-6 of the gradient is safe."""
    tree = arm()
    rng = np.random.default_rng(0)
    motion = Motion(np.arange(9.0), *(rng.normal(size=(9, tree.n)) for _ in range(3)))
    G = rng.normal(size=(9, len(tree.rows), len(tree.parameters)))
    found = regressor_adjoint(tree, motion, G, engine=engine)
    expected = gradient_by_differences(tree, motion, G)
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_it_is_the_gradient_of_pinocchios_regressor() -> None:
    tree = random_tree(np.random.default_rng(3), 4, base="fixed")
    motion = random_motion(np.random.default_rng(4), tree, 5, wrenches=False)
    pin = PinModel(tree)
    G = np.random.default_rng(5).normal(size=(5, len(tree.rows), len(tree.parameters)))
    found = regressor_adjoint(tree, motion, G, engine="numpy")
    step = 1e-6
    for k in range(tree.n):
        sides = []
        for sign in (1.0, -1.0):
            q = motion.q.copy()
            q[:, k] += sign * step
            moved = Motion(motion.t, q, motion.qd, motion.qdd)
            sides.append((pin.regressor(moved) * G).sum(axis=(1, 2)))
        assert found[:, 0, k] == pytest.approx((sides[0] - sides[1]) / (2.0 * step), rel=1e-5, abs=1e-5)


def test_some_rows_and_columns() -> None:
    tree = arm()
    rng = np.random.default_rng(1)
    motion = Motion(np.arange(4.0), *(rng.normal(size=(4, tree.n)) for _ in range(3)))
    rows, columns = [tree.rows[4], tree.rows[1]], [7, 3, 40]
    G = rng.normal(size=(4, 2, 3))
    whole = np.zeros((4, len(tree.rows), len(tree.parameters)))
    whole[np.ix_(range(4), [4, 1], columns)] = G
    assert regressor_adjoint(tree, motion, G, rows, columns) == pytest.approx(regressor_adjoint(tree, motion, whole))


def test_rounded_friction_has_a_slope() -> None:
    """With a friction speed the derivative of friction at standstill is that of the rounded one: 1/speed for a unit coefficient."""
    tree = arm()
    column = tree.parameters.index("fs2")
    motion = Motion(np.arange(1.0), *(np.zeros((1, tree.n)) for _ in range(3)))
    G = np.zeros((1, len(tree.rows), 1))
    G[0, :, 0] = 1.0
    found = regressor_adjoint(tree, motion, G, wanted=[column], friction_speed=0.1, engine="numpy")
    assert found[0, 1].max() == pytest.approx(10.0)
    assert not regressor_adjoint(tree, motion, G, wanted=[column], engine="numpy").any()


def test_refused() -> None:
    tree = arm()
    motion = Motion(np.arange(1.0), *(np.zeros((1, tree.n)) for _ in range(3)))
    with pytest.raises(DataError, match="weights have the wrong shape"):
        regressor_adjoint(tree, motion, np.zeros((1, 2, 3)))
    closed = hexapod()
    still = Motion(np.arange(1.0), *(np.zeros((1, closed.n)) for _ in range(3)))
    with pytest.raises(ModelError, match="open tree"):
        regressor_adjoint(closed, still, np.zeros((1, 6, 1)))
