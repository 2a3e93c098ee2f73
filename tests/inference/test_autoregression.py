"""Autoregressions: coefficients are those of other programs, and orders what the samples are worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_toeplitz

from veridyn.inference.autoregression import NO_POWER, autoregressions, penalties


def test_coefficients_solve_the_equations_of_yule_and_walker() -> None:
    R = np.array([[1.0, 0.8, 0.5, 0.3, 0.2], 0.95 ** np.arange(5.0)])
    second, first = autoregressions(R, np.array([1e9, 1e9]))
    k = len(second[0]) - 1
    assert k >= 2
    assert second[0][1:] == pytest.approx(-solve_toeplitz(R[0, :k], R[0, 1 : k + 1]))
    assert first[0] == pytest.approx([1.0, -0.95])
    assert first[1] == pytest.approx(1.0 - 0.95**2)


def test_few_samples_are_not_worth_many_coefficients() -> None:
    """AICc (Hurvich and Tsai, 1989, Biometrika 76): at 20 samples an order of ten costs 2·10·20/8, not 2·10."""
    news = np.exp(
        -2.2 * np.arange(11.0) / 20.0
    )  # each coefficient gains 2.2 in −2 log L, a little more than AIC charges
    R, a = np.ones(1), np.ones(1)
    for k in range(1, 11):  # autocovariances that have these variances of the news, by Levinson's recursion
        reflection = np.sqrt(1.0 - news[k] / news[k - 1])
        R = np.append(R, -reflection * news[k - 1] - a[1:] @ R[k - 1 : 0 : -1])
        a = np.append(a, 0.0) + reflection * np.append(a, 0.0)[::-1]
    ((many, _),) = autoregressions(R[None], np.array([1e6]))
    ((few, _),) = autoregressions(R[None], np.array([20.0]))
    assert len(many) == 11
    assert len(few) == 1


def test_autocovariances_of_no_process_end_the_recursion() -> None:
    ((a, news),) = autoregressions(np.array([[1.0, 1.2, 0.9]]), np.array([100.0]))
    assert a == pytest.approx([1.0])
    assert news == 1.0


def test_rows_together_are_what_each_is_by_itself() -> None:
    """A row of no process, and one without noise, beside others."""
    R = np.array(
        [[1.0, 0.8, 0.5, 0.3], [1.0, 1.2, 0.9, 0.1], np.zeros(4), 0.6 ** np.arange(4.0), (-0.6) ** np.arange(4.0)]
    )
    samples = np.array([1e4, 100.0, 50.0, 500.0, 500.0])
    together = autoregressions(R, samples)
    for (a, news), own, n in zip(together, R, samples, strict=True):
        ((alone, variance),) = autoregressions(own[None], np.array([n]))
        assert a == pytest.approx(alone)
        assert news == pytest.approx(variance)
    assert together[2][1] == NO_POWER
    assert together[4][0] == pytest.approx([1.0, 0.6])


def test_a_row_without_noise_has_no_coefficients() -> None:
    ((a, news),) = autoregressions(np.zeros((1, 4)), np.array([50.0]))
    assert a.tolist() == [1.0] and news == NO_POWER


def test_penalties_are_those_of_hurvich_and_tsai() -> None:
    """2 k n/(n − k − 2) for n = 10: 140 at the last order that leaves a sample, and no order without one."""
    expected = [0.0, 20 / 7, 40 / 6, 60 / 5, 80 / 4, 100 / 3, 120 / 2, 140 / 1, np.inf]
    assert penalties(np.array([10.0]), 8)[0] == pytest.approx(expected)
