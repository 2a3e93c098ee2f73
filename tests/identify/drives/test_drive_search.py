"""Weights of residuals: the memory of autoregressive noise in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from veridyn.identify.drives.drive_search import memory, weights_of


@pytest.mark.parametrize("a", [0.0, 0.5, 0.9])
def test_the_memory_of_first_order_noise(a: float) -> None:
    """Its spectrum is σ²/(1 − a)² at zero, and its variance σ²/(1 − a²): the peak is (1 + a)/(1 − a) of the mean."""
    e = np.random.default_rng(1).normal(size=60_000)
    y = lfilter([1.0], [1.0, -a], e)
    # The spectrum at its peak has a relative deviation of √(2 · 50/N) with some 50 coefficients.
    assert memory([y[:30_000], y[30_000:]]) == pytest.approx((1.0 + a) / (1.0 - a), rel=0.15)


def test_weights_are_of_independent_samples() -> None:
    e = np.random.default_rng(2).normal(size=(20_000, 2)) * [0.5, 2.0]
    assert weights_of(e, [20_000]) == pytest.approx([2.0, 0.5], rel=0.1)
    assert memory([np.zeros(100)]) == 1.0
