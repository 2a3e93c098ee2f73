"""Covariances of parameters: what is refused, and draws that have the covariance."""

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.model.uncertainty import Uncertainty

C = np.array([[4.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("names", "covariance", "message"),
    [
        (("a",), C, "does not fit"),
        (("a", "a"), C, "named twice"),
        (("a", "b"), [[1.0, 2.0], [2.0, 1.0]], "not positive semi-definite"),
        (("a", "b"), [[-1.0, 0.0], [0.0, 1.0]], "not positive semi-definite"),
        (("a", "b"), [[np.nan, 0.0], [0.0, 1.0]], "does not fit"),
    ],
)
def test_what_is_no_covariance_is_refused(names: tuple[str, ...], covariance, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Uncertainty(names, covariance)


def test_deviations_and_parts() -> None:
    u = Uncertainty(("a", "b"), C)
    np.testing.assert_allclose(u.sigma, [2.0, 1.0])
    assert u.without(("a",)).names == ("b",) and u.without(("a",)).covariance[0, 0] == 1.0


def test_draws_have_the_covariance() -> None:
    drawn = Uncertainty(("a", "b"), C).draw(np.array([1.0, 2.0]), np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(np.cov(drawn.T), C, atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 2.0], atol=0.02)
