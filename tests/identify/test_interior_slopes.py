"""Slopes in blocks do what the whole matrix does, and are used only where limits keep to one block."""

import numpy as np
import pytest

from veridyn.identify.interior_slopes import BlockSlopes, StackedSlopes, WholeSlopes, in_blocks, slopes_of

COLUMNS = np.arange(12).reshape(4, 3).T  # three joints with four coefficients each, as an excitation has them


def separate(rng: np.random.Generator) -> np.ndarray:
    """30 limits in random order, each with slopes in one joint."""
    J = np.zeros((30, 12))
    for k, joint in enumerate(rng.permutation(np.repeat(np.arange(3), 10))):
        J[k, COLUMNS[joint]] = rng.normal(size=4)
    return J


def test_blocks_are_the_matrix() -> None:
    rng = np.random.default_rng(0)
    J = separate(rng)
    found = in_blocks(J, COLUMNS)
    assert isinstance(found, BlockSlopes)
    step, forces, weights = rng.normal(size=12), rng.normal(size=30), rng.uniform(size=30)
    for slopes in (found, slopes_of(J), slopes_of(found)):
        assert slopes.along(step) == pytest.approx(J @ step, abs=1e-13)
        assert slopes.pulled(forces) == pytest.approx(J.T @ forces, abs=1e-13)
        assert slopes.weighed(weights) == pytest.approx(J.T @ np.diag(weights) @ J, abs=1e-13)


def test_two_kinds_one_above_the_other_are_the_matrix() -> None:
    rng = np.random.default_rng(2)
    J = rng.normal(size=(45, 12))
    rows, others = np.split(rng.permutation(45), [30])
    J[rows] = separate(rng)
    found = StackedSlopes(in_blocks(J[rows], COLUMNS), WholeSlopes(J[others]), rows, others)
    step, forces, weights = rng.normal(size=12), rng.normal(size=45), rng.uniform(size=45)
    assert found.along(step) == pytest.approx(J @ step, abs=1e-13)
    assert found.pulled(forces) == pytest.approx(J.T @ forces, abs=1e-13)
    assert found.weighed(weights) == pytest.approx(J.T @ np.diag(weights) @ J, abs=1e-12)


def test_what_does_not_separate_stays_whole() -> None:
    """A limit of two joints, a limit of none, and joints with different numbers of limits."""
    rng = np.random.default_rng(1)
    both, none = separate(rng), separate(rng)
    both[3] = rng.normal(size=12)
    none[5] = 0.0
    for J in (both, none, separate(rng)[:-1]):
        found = in_blocks(J, COLUMNS)
        assert isinstance(found, WholeSlopes) and found.matrix is J
