"""Kolmogorov and Smirnov's law against SciPy's, against closed forms, and against counting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstwo

from veridyn.signals.kolmogorov import EXACT_UP_TO, exceeded, quantile


@pytest.mark.parametrize(
    "n", [1, 2, 3, 7, 20, 100, 140, EXACT_UP_TO, EXACT_UP_TO + 1, 5000, pytest.param(40_000, marks=pytest.mark.slow)]
)
def test_probabilities_are_those_of_scipy(n: int) -> None:
    """To 1e-6 for many numbers, where both are series, to rounding for few; one is far out wherever it is not zero."""
    d = np.linspace(0.0, min(1.0, 4.0 / np.sqrt(n)), 41)
    found, expected = np.array([exceeded(float(x), n) for x in d]), kstwo.sf(d, n)
    assert found == pytest.approx(expected, abs=1e-12 if n <= 140 else 1e-6)
    far = (expected < 1e-3) & (expected > 1e-250)
    assert found[far] == pytest.approx(expected[far], rel=1e-4)
    assert (np.diff(found) <= 1e-6).all()


@pytest.mark.parametrize("n", [2, 9, 140, 700, 20_000])
@pytest.mark.parametrize("level", [0.3, 0.05, 1e-3])
def test_quantiles_invert_it(n: int, level: float) -> None:
    d = quantile(level, n)
    assert exceeded(d, n) == pytest.approx(level, rel=1e-9)
    assert d == pytest.approx(kstwo.isf(level, n), rel=1e-5)


def test_one_and_two_numbers_by_hand() -> None:
    """One number: D ≥ d unless it is within d of both ends. Two: P(D < d) = 2 (2d − ½)² below a half (Birnbaum, 1952)."""
    assert exceeded(0.7, 1) == pytest.approx(2.0 * 0.3, abs=1e-14)
    assert exceeded(0.4, 2) == pytest.approx(1.0 - 2.0 * (0.8 - 0.5) ** 2, abs=1e-14)
    assert (exceeded(0.0, 5), exceeded(1.0, 5)) == (1.0, 0.0)


def test_counting() -> None:
    """Of 4,000 samples of 30 uniform numbers the share beyond the quantile of 10 % is 10 %, within four deviations of the count."""
    u = np.sort(np.random.default_rng(0).random((4000, 30)), axis=1)
    k = np.arange(1, 31)
    D = np.maximum(k / 30 - u, u - (k - 1) / 30).max(axis=1)
    assert (quantile(0.1, 30) <= D).mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 4000))
