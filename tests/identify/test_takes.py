"""Variation from log to log, against random effects of known size."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.takes import take_variation


def estimates(rng: np.random.Generator, logs: int, effect: float, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Noise of stated deviation 2 for each log, and an effect of each log of so many deviations."""
    return rng.normal(size=(logs, count)) * 2.0 * np.sqrt(1.0 + effect**2), np.full((logs, count), 2.0)


@pytest.mark.parametrize("effect", [0.0, 0.5, 2.0])
def test_the_whole_deviation_is_that_of_the_mean(effect: float) -> None:
    """The mean of k logs with noise σ and effect τ has the variance (σ² + τ²)/k; 400 pooled parameters state it to 5 %."""
    rng = np.random.default_rng(4)
    values, sigma = estimates(rng, 3, effect)
    whole = np.full(400, 2.0 / np.sqrt(3.0))
    found = take_variation(values, sigma, whole, ["all"] * 400)
    stated = np.sqrt(whole**2 + found.sigma**2)
    assert stated == pytest.approx(np.full(400, 2.0 * np.sqrt((1.0 + effect**2) / 3.0)), rel=0.05)
    assert found.logs == 3 and found.ratio["all"] == pytest.approx(np.sqrt(1.0 + effect**2), rel=0.05)


def test_groups_have_their_own_and_missing_ones_none() -> None:
    rng = np.random.default_rng(5)
    (calm, sigma), (wild, _) = estimates(rng, 2, 0.0), estimates(rng, 2, 3.0)
    values = np.hstack([calm, wild])
    values[0, 400] = np.nan  # a log that does not determine it: pooled with its group all the same
    found = take_variation(values, np.hstack([sigma, sigma]), np.ones(800), ["calm"] * 400 + ["wild"] * 400)
    assert found.ratio["calm"] == pytest.approx(1.0, abs=0.15) and found.ratio["wild"] == pytest.approx(
        np.sqrt(10.0), rel=0.15
    )
    assert found.sigma[400] == found.sigma[401] > 2.0 and found.sigma[:400].max() < 0.6
    lonely = take_variation(np.array([[1.0], [np.nan]]), np.ones((2, 1)), np.ones(1), ["x"])
    assert lonely.ratio == {} and lonely.sigma[0] == 0.0


def test_one_log_says_nothing() -> None:
    with pytest.raises(DataError, match="at least two logs"):
        take_variation(np.ones((1, 2)), np.ones((1, 2)), np.ones(2), ["a", "b"])
