"""Derivatives of inverse and forward dynamics against finite differences and Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.mechanics.tree.dynamics.derivatives import forward_derivatives, inverse_derivatives
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion

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
