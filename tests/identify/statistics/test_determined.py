"""Covariances of unknowns with priors, by draws of data and truth, and what counts as determined."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.statistics.determined import DETERMINED_INFORMATION, DETERMINED_SHARE, posterior_covariance


@pytest.mark.parametrize("widening", [1.0, 6.0])
def test_errors_have_the_covariance(widening: float) -> None:
    """z ~ N(0, 1) and y = J z + e with var e = B, estimated as if it were 1: 40 000 draws show a variance to 1 % (√(2/40 000))."""
    rng = np.random.default_rng(0)
    J = np.array([[1.5, 0.3], [0.2, 0.4], [0.0, 0.6]])
    G = J.T @ J
    z = rng.standard_normal((40_000, 2))
    y = z @ J.T + np.sqrt(widening) * rng.standard_normal((40_000, 3))
    error = y @ J @ np.linalg.inv(G + np.eye(2)) - z
    assert np.cov(error.T) == pytest.approx(posterior_covariance(G, widening), abs=0.03 * widening)


def test_information_that_just_determines() -> None:
    C = posterior_covariance(np.diag([DETERMINED_INFORMATION]))
    assert np.sqrt(C[0, 0]) == pytest.approx(DETERMINED_SHARE)
