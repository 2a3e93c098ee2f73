"""Errors and factors from second moments are those of least squares."""

import numpy as np
import pytest

from veridyn.identify.diagnosis.moments import SecondMoments

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 80, 10))
W[:, :, 9] = W[:, :, 0] + W[:, :, 1]  # no full rank
EVERY = [np.arange(10)] * 3


def stacked(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.linalg.norm(y, axis=1)
    return (W / sizes[:, None, None]).reshape(-1, 10), (y / sizes[:, None]).ravel()


@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_the_error_is_that_of_lstsq(noise: float) -> None:
    y = W @ RNG.normal(size=10) + noise * RNG.normal(size=(3, 80))
    A, b = stacked(y)
    left = b - A @ np.linalg.lstsq(A, b, rcond=1e-9)[0]
    assert SecondMoments.of(W, EVERY).error(y) == pytest.approx(np.sqrt(left @ left / 3), abs=1e-5)


def test_the_factor_of_one_row_is_found() -> None:
    y = W @ RNG.normal(size=10) + 0.001 * RNG.normal(size=(3, 80))
    y[1] /= 1.7
    assert SecondMoments.of(W, EVERY).factor(y, 1) == pytest.approx(1.7, rel=1e-3)


def test_rows_that_measure_nothing_count_as_explained() -> None:
    assert SecondMoments.of(W, EVERY).error(np.zeros((3, 80))) == 0.0


def test_columns_that_do_not_act_on_a_row_are_left_out_of_its_products() -> None:
    sparse = W.copy()
    sparse[1, :, 4:] = 0.0
    y = sparse @ RNG.normal(size=10) + RNG.normal(size=(3, 80))
    few = SecondMoments.of(sparse, [np.arange(10), np.arange(4), np.arange(10)])
    np.testing.assert_allclose(few.grams, sparse.transpose(0, 2, 1) @ sparse, atol=1e-12)
    assert few.error(y) == pytest.approx(SecondMoments.of(sparse, EVERY).error(y), abs=1e-12)


def test_what_is_left_of_each_row_is_what_lstsq_leaves() -> None:
    y = W @ RNG.normal(size=10) + RNG.normal(size=(3, 80)) * np.array([[0.1], [1.0], [3.0]])
    A, b = stacked(y)
    left = (b - A @ np.linalg.lstsq(A, b, rcond=1e-9)[0]).reshape(3, -1)
    wanted = np.linalg.norm(left, axis=1) * np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(SecondMoments.of(W, EVERY).left(y), wanted, rtol=1e-5)
