"""Noise with a memory: Yule-Walker, whitening and its transpose, against long simulations and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import IdentificationError
from veridyn.identify.estimators.noise_model import NoiseModel, autocovariances

C = np.array([[1.0, 0.6, 0.1], [0.6, 4.0, -0.5], [0.1, -0.5, 2.0]])
FULL = NoiseModel(C, np.array([[[0.5, 0.2, 0.0], [0.0, 0.4, -0.1], [0.1, 0.0, 0.3]], 0.1 * np.eye(3)]))
COMMON = NoiseModel(C, 0.5 * np.eye(3)[None])


def dense(noise: NoiseModel, N: int) -> np.ndarray:
    """Σ of N consecutive samples that repeat for ever: block-circulant of the spectrum, from long autocovariances."""
    R = noise.autocovariances(60 * N)
    lags = np.zeros((N, 3, 3))
    for lag, r in enumerate(R):
        lags[lag % N] += r
        if lag:
            lags[-lag % N] += r.T
    return np.block([[lags[(i - j) % N] for j in range(N)] for i in range(N)])


@pytest.mark.parametrize("noise", [FULL, COMMON, NoiseModel.white(C)])
def test_whitening_and_its_transpose_make_the_inverse(noise: NoiseModel) -> None:
    N = 12
    A = np.random.default_rng(0).normal(size=(N, 3, 4))
    found = noise.unwhitened(noise.whitened(A)).reshape(3 * N, 4)
    assert found == pytest.approx(np.linalg.solve(dense(noise, N), A.reshape(3 * N, 4)), rel=1e-9, abs=1e-9)
    V = np.random.default_rng(1).normal(size=(N, 3, 2))
    flat = V.reshape(3 * N, 2)
    assert noise.spread(V) == pytest.approx(flat.T @ dense(noise, N) @ flat, rel=1e-9)


def test_autocovariances_are_those_of_a_long_simulation() -> None:
    e = FULL.drawn(60_000, np.random.default_rng(2))
    assert autocovariances(e, 3) == pytest.approx(FULL.autocovariances(3), abs=0.15)  # four deviations of such a run


@pytest.mark.parametrize("kind", ["common", "own", "full"])
def test_yule_and_walker_find_the_model_again(kind: str) -> None:
    diagonal = NoiseModel(C, np.stack([np.diag([0.5, 0.3, 0.7])]))
    true = {"common": COMMON, "own": diagonal, "full": FULL}[kind]
    found = NoiseModel.from_autocovariances(true.autocovariances(true.order), kind)
    if kind == "own":  # rows that are correlated and forget at different rates are not exactly of this kind
        assert np.diagonal(found.coefficients[0]) == pytest.approx([0.5, 0.3, 0.7])
    else:
        assert found.coefficients == pytest.approx(true.coefficients, abs=1e-9)
    assert found.news == pytest.approx(C, abs=1e-8)


def test_bic_takes_the_simplest_that_does() -> None:
    rng = np.random.default_rng(3)
    for true, order in ((NoiseModel.white(C), 0), (COMMON, 1)):
        found = NoiseModel.from_runs(true.drawn(4000, rng), 4)
        assert found.order == order
    shared = NoiseModel.from_runs(COMMON.drawn(4000, rng), 4).coefficients[0]
    assert shared == pytest.approx(shared[0, 0] * np.eye(3))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(IdentificationError, match="not positive definite"):
        NoiseModel.white(np.ones((2, 2))).whitened(np.zeros((4, 2, 1)))
    with pytest.raises(IdentificationError, match="too little noise"):
        NoiseModel.from_runs(np.zeros((1, 3, 3)), 0)
    with pytest.raises(IdentificationError, match="does not forget"):
        NoiseModel(C, 1.2 * np.eye(3)[None]).autocovariances(1)


def test_the_summary_states_the_largest_correlation() -> None:
    """Of C: 0.6/√(1 · 4) = 0.30, and 0.5/√(4 · 2) = 0.18."""
    assert NoiseModel.white(C).summary() == "noise of the rows is correlated by up to 0.30 and is white in time"
    assert COMMON.summary() == "noise of the rows is correlated by up to 0.30 and remembers 1 sample(s)"


def test_autocovariances_of_several_runs_are_sums_over_pairs() -> None:
    e = np.random.default_rng(5).normal(size=(3, 7, 2))
    freedom = 14.0  # deviations from the mean of three runs have lost one
    found = autocovariances(e, 2, freedom)
    for lag in range(3):
        pairs = [np.outer(run[t], run[t - lag]) for run in e for t in range(lag, 7)]
        assert found[lag] == pytest.approx(np.mean(pairs, axis=0) * 21.0 / freedom)


def test_one_coefficient_for_all_rows_costs_as_one() -> None:
    """R_0 = 1, R_1 = ρ: the gain −2 n ln(1 − ρ²) of two rows is 7 for n = 100, above ln n = 4.6 and below 2 ln n."""
    rho = np.sqrt(1.0 - np.exp(-7.0 / 200.0))
    assert NoiseModel.chosen(np.array([np.eye(2), rho * np.eye(2)]), 100).order == 1
    rho = np.sqrt(1.0 - np.exp(-4.0 / 200.0))
    assert NoiseModel.chosen(np.array([np.eye(2), rho * np.eye(2)]), 100).order == 0


def test_the_covariance_of_few_samples_is_widened_as_wishart_asks() -> None:
    """E Σ̂⁻¹ = Σ⁻¹ f/(f − r − 1) (Wishart): of white noise the news are Σ̂ times that, exactly."""
    e = np.random.default_rng(4).normal(size=(3, 4, 2)) @ np.array([[1.0, 0.0], [0.6, 0.5]])
    sample = np.einsum("kti,ktj->ij", e, e) / 12.0
    assert NoiseModel.from_runs(e, 0).news == pytest.approx(sample * 12.0 / (12.0 - 2.0 - 1.0), rel=1e-12)
    few = NoiseModel.from_runs(e, 0, 3.5)  # half a sample's worth more than the least
    assert few.news == pytest.approx(sample * 12.0 / 3.5 * 3.5 / 0.5, rel=1e-12)


def test_the_mean_of_four_periods_has_a_quarter_of_the_variance() -> None:
    """At every lag, and in what is whitened: equations count twice as much."""
    one = NoiseModel(np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[[0.5, 0.1], [0.0, -0.3]]]))
    mean = one.scaled(0.25)
    assert mean.autocovariances(3) == pytest.approx(0.25 * one.autocovariances(3), rel=1e-12)
    A = np.random.default_rng(5).normal(size=(8, 2, 1))
    assert mean.whitened(A) == pytest.approx(2.0 * one.whitened(A), rel=1e-12)
