"""The gradient of a weighted regressor, against finite differences of Pinocchio's regressor and of our own."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.machines.arm import arm
from veridyn.mechanics.tree.dynamics.adjoint import regressor_adjoint
from veridyn.mechanics.tree.dynamics.regressor import regressor
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import hexapod


def differences(tree: Tree, motion: Motion, G: np.ndarray, step: float = 1e-6) -> np.ndarray:
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
    expected = differences(tree, motion, G)
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
