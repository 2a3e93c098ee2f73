"""Remedies are tried where they were not fitted: against fits of NumPy, and how often chance passes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from veridyn.identify.diagnosis.held_out_gain import BLOCKS, held_out_fall, lowers_error


def equations(seed: int, size: float = 0.0, samples: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    W, S = rng.normal(size=(samples, 2, 5)), rng.normal(size=(samples, 2, 1))
    y = W @ np.arange(1.0, 6.0) + size * S[:, :, 0] + rng.normal(size=(samples, 2))
    return W, y, S


def test_each_block_is_predicted_by_the_others() -> None:
    W, y, S = equations(1, 0.2)
    found, ends = held_out_fall(W, y, S), np.linspace(0, len(y), BLOCKS + 1).astype(int)
    squares = []
    for A in (W, np.concatenate([W, S], axis=2)):
        total = 0.0
        for a, b in pairwise(ends):
            rest = np.r_[0:a, b : len(y)]
            x = np.linalg.lstsq(A[rest].reshape(-1, A.shape[2]), y[rest].ravel(), rcond=None)[0]
            total += float(np.sum((y[a:b] - A[a:b] @ x) ** 2))
        squares.append(total)
    assert found is not None
    assert found.share == pytest.approx(1.0 - squares[1] / squares[0], rel=1e-6)


def test_chance_seldom_passes_and_damage_does() -> None:
    """A column that is none passes less often than the one in forty that its standard error allows: fitting it costs besides."""
    assert sum(lowers_error(*equations(seed)) for seed in range(200)) <= 8
    assert all(lowers_error(*equations(seed, 0.3)) for seed in range(20))


def test_what_one_stretch_alone_shows_does_not_pass() -> None:
    """A tenth of the log shows ten deviations of a column, and the rest none: by likelihood that is beyond doubt."""
    W, y, S = equations(3)
    here = np.arange(len(y)) < len(y) // BLOCKS
    y = y + np.where(here[:, None], 1.5 * S[:, :, 0], 0.0)
    size = float(np.sum(S[:, :, 0] * (y - W @ np.arange(1.0, 6.0))) / np.sum(S**2))
    assert size * np.sqrt(np.sum(S**2)) > 3.5
    assert not lowers_error(W, y, S)


def test_a_log_of_one_memory_says_nothing() -> None:
    assert held_out_fall(*equations(1), memory=20.0) is None
    assert not lowers_error(*equations(1, 1.0), memory=20.0)


def test_blocks_with_much_motion_count_as_those_with_little() -> None:
    """One block in ten moves thirty times as much: what lowers the error of every block by as large a share lowers it alike."""
    rng = np.random.default_rng(5)
    W, S = rng.normal(size=(400, 2, 5)), rng.normal(size=(400, 2, 1))
    S[:40] *= 30.0
    y = W @ np.arange(1.0, 6.0) + 2.0 * S[:, :, 0] + 0.01 * rng.normal(size=(400, 2))
    assert not lowers_error(W, y, S) and lowers_error(W, y, S, alike=True)
    assert sum(lowers_error(*equations(seed), alike=True) for seed in range(200)) <= 8
    W, y, S = equations(3)
    here = np.arange(len(y)) < len(y) // BLOCKS
    assert not lowers_error(W, y + np.where(here[:, None], 1.5 * S[:, :, 0], 0.0), S, alike=True)
