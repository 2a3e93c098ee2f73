"""Held-out errors from R factors: against dense least squares, and standard errors against the scatter of many logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from strangers.random_trees import random_motion, random_tree
from veridyn.errors import IdentificationError
from veridyn.identify.held_out_blocks import HeldOutBlocks, fall, held_out_blocks
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.regressor import regressor
from veridyn.model.elements import coulomb, damper

FOLDS = 5


def test_sums_of_squares_are_those_of_dense_fits() -> None:
    """Each fold predicted by a fit to the others, with the whole regressor in memory."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, bodies=2, base="fixed", kinds=("turning",))
    tree = tree.with_elements([damper(tree.coordinates[0], 0.4), coulomb(tree.coordinates[1], 0.7)])
    m = random_motion(rng, tree, 600, wrenches=False)
    m = replace(m, forces=inverse_dynamics(tree, m) + 0.1 * rng.normal(size=(600, 2)))
    sigma = np.array([0.5, 2.0])
    held = held_out_blocks(tree, [m], "joints", None, sigma, blocks=20, folds=FOLDS)
    D = regressor(tree, m) / sigma[:, None]
    y = np.asarray(m.forces) / sigma
    columns = [
        *range(len(tree.parameters) - 2, len(tree.parameters)),
        tree.parameters.index("ZZ1" if "ZZ1" in tree.parameters.names else tree.parameters.names[5]),
    ]
    found = held.squares(columns)
    expected = []
    for b in range(20):
        f = b * FOLDS // 20
        own = slice(30 * b, 30 * (b + 1))
        rest = np.ones(600, dtype=bool)
        rest[120 * f : 120 * (f + 1)] = False
        x = np.linalg.lstsq(D[rest][:, :, columns].reshape(-1, 3), y[rest].reshape(-1), rcond=None)[0]
        expected.append(np.sum((y[own] - D[own][:, :, columns] @ x) ** 2))
    assert found == pytest.approx(np.array(expected), rel=1e-9)
    x, rest = np.linalg.lstsq(D[:, :, columns].reshape(-1, 3), y.reshape(-1), rcond=None)[:2]
    assert held.training_square(columns) == pytest.approx(float(rest[0]), rel=1e-9)
    assert held.measured == pytest.approx(float(np.sum(y**2)), rel=1e-9)
    assert held.separates(columns, 1) and not held.separates([*columns, columns[0]], 1)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_the_standard_error_is_the_scatter_over_many_logs(memory: float) -> None:
    """Stated σ of the fall over its standard deviation in 300 logs of 2000 samples in 40 blocks, white and AR(1) noise."""
    rng = np.random.default_rng(2)
    t = np.arange(2000)
    A = np.column_stack([np.sin(0.11 * t), np.cos(0.017 * t)])
    fold = np.arange(40) * FOLDS // 40
    falls = []
    for _ in range(300):
        noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.normal(size=2000))
        rows = np.column_stack([A, A @ [1.0, 0.3] + noise]).reshape(40, 50, 3)
        held = HeldOutBlocks((0, 1), np.linalg.qr(rows, mode="r"), fold)
        before, after = held.squares([0]), held.squares([0, 1])
        assert before is not None and after is not None
        falls.append(fall(before, after))
    share, sigma = (np.array([getattr(f, name) for f in falls]) for name in ("share", "sigma"))
    assert 0.8 < np.median(sigma) / share.std() < 1.25


def test_too_few_samples_are_refused() -> None:
    rng = np.random.default_rng(3)
    tree = random_tree(rng, bodies=1, base="fixed", kinds=("turning",))
    m = random_motion(rng, tree, 8, wrenches=False)
    m = replace(m, forces=inverse_dynamics(tree, m))
    with pytest.raises(IdentificationError, match="too few blocks of samples"):
        held_out_blocks(tree, [m], "joints", None, np.ones(1), blocks=40, folds=FOLDS)
