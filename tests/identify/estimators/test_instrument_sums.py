"""Instruments from other periods against draws of known truth: no bias by noisy columns, deviations as wide as estimates scatter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.estimators.instrument_sums import CrossPeriods, across_periods

Array = NDArray[np.float64]
PERIODS, N, ROWS = 4, 60, 2
TRUE = np.array([2.0, -1.0, 0.5])
FORCE = np.array([[0.04, 0.02], [0.02, 0.09]])
WHITE = NoiseModel.white(FORCE)


def columns() -> Array:
    """(N, rows, p) of one exact period."""
    angle = 2.0 * np.pi * np.arange(N) / N
    one = np.stack([np.sin(angle), np.cos(2.0 * angle), np.sin(3.0 * angle)], axis=-1)
    return np.stack([one, one[:, ::-1]], axis=1)


def measured(rng: np.random.Generator, blur: float, answer: float = 0.0) -> tuple[Array, Array]:
    """Periods of noisy columns and forces; forces answer to the noise of the first column, as a controller makes them."""
    A = np.broadcast_to(columns(), (PERIODS, N, ROWS, 3))
    noise = blur * rng.standard_normal(A.shape)
    y = A @ TRUE + rng.multivariate_normal(np.zeros(ROWS), FORCE, (PERIODS, N)) + answer * noise[..., 0]
    return A + noise, y


def test_exact_data() -> None:
    """Without noise in the columns the estimate is that of least squares on any period: exact for forces without noise."""
    A = np.broadcast_to(columns(), (PERIODS, N, ROWS, 3))
    y = A @ TRUE + 1e-9 * np.random.default_rng(0).standard_normal((PERIODS, N, ROWS))
    assert across_periods(A, y, WHITE).values == pytest.approx(TRUE, abs=1e-8)


def test_noisy_columns_bias_averages_and_not_products_of_different_periods() -> None:
    """200 draws with columns of half their size in noise, forces answering to it: least squares of the average is off by more than ten
    standard errors of its mean, this is within four; stated deviations are within 20 % of the scatter."""
    rng = np.random.default_rng(1)
    found, stated, plain = [], [], []
    for _ in range(200):
        A, y = measured(rng, 0.35, answer=0.5)
        one: CrossPeriods = across_periods(A, y, WHITE)
        found.append(one.values)
        stated.append(one.sigma)
        plain.append(np.linalg.lstsq(A.mean(0).reshape(-1, 3), y.mean(0).ravel(), rcond=None)[0])
    scatter, usual = np.std(found, axis=0, ddof=1), np.std(plain, axis=0, ddof=1)
    root = np.sqrt(200.0)
    assert np.all(np.abs(np.mean(found, axis=0) - TRUE) < 4.0 * scatter / root)
    assert np.any(np.abs(np.mean(plain, axis=0) - TRUE) > 10.0 * usual / root)
    assert np.mean(stated, axis=0) / scatter == pytest.approx(np.ones(3), abs=0.2)


def test_what_every_period_repeats_widens_deviations() -> None:
    """A force that no column has, the same in every period, is in the lack of fit and not in the noise between periods."""
    A, y = measured(np.random.default_rng(2), 0.0)
    repeated = 0.5 * np.sign(np.sin(14.0 * np.pi * np.arange(N) / N))[:, None]
    clean, odd = across_periods(A, y, WHITE), across_periods(A, y + repeated, WHITE)
    assert clean.lack_of_fit == pytest.approx(1.0, abs=0.4)  # 117 degrees of freedom: a deviation of 0.13
    assert odd.lack_of_fit > 4.0
    assert np.all(odd.sigma > 1.5 * clean.sigma)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_noise_that_the_weights_do_not_follow_is_in_the_deviations(sign: float) -> None:
    """Noise u_t ± .8 u_(t−1), weighted as white, with a third of the samples left out: the mean of 40 stated deviations is within 10 % of
    the closed form K Σ° Kᵀ of these weights; those for white noise are more than twice (−) or less than .8 (+) of it."""
    rng = np.random.default_rng(6)
    A, used = np.broadcast_to(columns(), (PERIODS, N, ROWS, 3)), np.arange(N) % 15 < 10
    stated = []
    for _ in range(40):
        u = rng.multivariate_normal(np.zeros(ROWS), FORCE, (PERIODS, N))
        y = A @ TRUE + u + sign * 0.8 * np.roll(u, 1, axis=1)
        stated.append(across_periods(A, y, WHITE, 0, used).sigma)
    weighted = np.linalg.inv(FORCE) @ (A[0] * used[:, None, None])  # Σ⁻¹A of every sample, (N, rows, 3)
    K = np.linalg.inv(np.einsum("nri,nrj->ij", weighted, A[0]))
    beside = 0.8 * sign * (np.eye(N, k=1) + np.eye(N, k=-1) + np.eye(N, k=N - 1) + np.eye(N, k=1 - N))

    def deviations(in_time: Array) -> Array:
        S = np.einsum("nri,rs,nm,msj->ij", weighted, FORCE / PERIODS, in_time, weighted, optimize=True)
        return np.sqrt(np.diag(K @ S @ K))

    exact, white = deviations(1.64 * np.eye(N) + beside), deviations(1.64 * np.eye(N))
    print(np.mean(stated, axis=0) / exact, white / exact)
    assert np.mean(stated, axis=0) / exact == pytest.approx(np.ones(3), abs=0.1)
    assert np.all(white > 2.0 * exact) if sign < 0.0 else np.all(white < 0.8 * exact)


def test_samples_left_out_do_not_count() -> None:
    A, y = measured(np.random.default_rng(3), 0.0)
    used = np.arange(N) % 7 != 0
    spoilt = np.where(used[None, :, None], y, y + 1e3)
    assert across_periods(A, spoilt, WHITE, 1, used).values == pytest.approx(
        across_periods(A, y, WHITE, 1, used).values
    )


def test_refused() -> None:
    """One period has no other; columns of noise alone have nothing in common."""
    A, y = measured(np.random.default_rng(4), 0.1)
    with pytest.raises(DataError, match="another period"):
        across_periods(A[:1], y[:1], WHITE)
    noise = np.random.default_rng(5).standard_normal(A.shape)
    with pytest.raises(IdentificationError, match="hardly resemble"):
        across_periods(noise, y, WHITE)
