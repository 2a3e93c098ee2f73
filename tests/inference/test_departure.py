"""Estimates of values that are right depart from them as often as chance says."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.inference.departure import chance_of_departure


def test_estimates_depart_as_chance_says() -> None:
    rng = np.random.default_rng(8)
    root = rng.standard_normal((6, 6))
    C = root @ root.T
    chances = [chance_of_departure(np.linalg.cholesky(C) @ rng.standard_normal(6), C) for _ in range(2000)]
    assert np.mean(np.array(chances) < 0.05) == pytest.approx(0.05, abs=0.015)  # three deviations of a share of 2000
    assert chance_of_departure(np.zeros(0), np.zeros((0, 0))) == 1.0
