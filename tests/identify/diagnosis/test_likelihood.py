"""The evidence of a column is 2 Δ log L by a plain calculation, and χ² where there is nothing in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import veridyn as vd
from identify.smooth_arm import drawn, noisy
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.regression.sampling import Sampling

ROWS = ("q1", "q2", "q3", "q4")


@pytest.fixture(scope="module")
def samples() -> tuple[Samples, np.ndarray]:
    """Equations at single samples, and the misfit of the fit."""
    m = noisy(np.random.default_rng(1))
    fit = vd.identify(drawn(), m, diagnose="off")
    x = samples_of(fit, [m], list(ROWS), Sampling(), window=1)
    return x, x.misfit(fit.values)


def of_noise(samples: tuple[Samples, np.ndarray], memory: float, seed: int) -> NoisyEquations:
    """The model of the same regressor and autoregressive noise alone."""
    x, _ = samples
    noise = np.random.default_rng(seed).normal(size=(len(x.y) + 300, 4))
    y = lfilter([1.0], [1.0, -memory], noise, axis=0)[300:]
    return NoisyEquations.of(replace(x, y=y), y)


def column(samples: tuple[Samples, np.ndarray], seed: int = 5) -> np.ndarray:
    """A slow random line in the third row, which is in no regressor."""
    x, _ = samples
    out = np.zeros((*x.y.shape, 1))
    out[:, 2, 0] = lfilter([0.3], [1.0, -0.95], np.random.default_rng(seed).normal(size=len(x.y)))
    return out


def test_in_white_noise_it_is_that_of_least_squares(samples: tuple[Samples, np.ndarray]) -> None:
    """n_j ln(RSS_j/RSS_j') of weighted least squares by NumPy, rows weighed by their residual; one row has the column."""
    model, S = of_noise(samples, 0.0, 2), column(samples)
    found = model.evidence(model.with_columns(S))
    W, y = model.W.reshape(-1, model.W.shape[2]), model.y.ravel()
    wide = np.column_stack([W, (S * model.weight[:, :, None]).reshape(-1)])
    before, after = (np.sum((y - A @ np.linalg.lstsq(A, y)[0]).reshape(-1, 4) ** 2, axis=0) for A in (W, wide))
    expected = float(np.sum(len(model.y) * np.log(before / after)))
    assert found == pytest.approx(expected, abs=1.0)  # autoregressions of no order, or of a small one by chance


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_it_is_chi_square_where_there_is_nothing(samples: tuple[Samples, np.ndarray], memory: float) -> None:
    """40 logs: the mean is 1 ± √(2/40), widened for the noise that is estimated anew."""
    found = []
    for seed in range(40):
        model = of_noise(samples, memory, 10 + seed)
        found.append(model.evidence(model.with_columns(column(samples, 100 + seed))))
    assert 0.3 < np.mean(found) < 1.0 + 4.0 * np.sqrt(2.0 / 40.0)


def test_the_filters_whiten(samples: tuple[Samples, np.ndarray]) -> None:
    """First-order noise with memory .9: coefficients 1, −.9, and residuals whose neighbours are not correlated."""
    model = of_noise(samples, 0.9, 3)
    assert all(a[1] == pytest.approx(-0.9, abs=0.12) for a in model.filters)
    r = model.white.residual
    assert np.all(np.abs(np.sum(r[1:] * r[:-1], axis=0) / np.sum(r**2, axis=0)) < 4.0 / np.sqrt(len(r)))


def test_a_damage_does_not_hide_in_its_own_noise(samples: tuple[Samples, np.ndarray]) -> None:
    """A slow line of three deviations looks like noise with a long memory; with its column the noise is white again."""
    x, _ = samples
    S = column(samples)
    y = np.random.default_rng(4).normal(size=x.y.shape) + 3.0 * S[:, :, 0]
    model = NoisyEquations.of(replace(x, y=y), y)
    other = model.with_columns(S)
    assert len(model.filters[2]) > 1
    assert model.evidence(other) > 500.0
    assert np.abs(other.filters[2][1:]).max(initial=0.0) < 0.1


def test_correlated_equations_are_worth_less(samples: tuple[Samples, np.ndarray]) -> None:
    """(1 − a)/(1 + a) of first-order noise with memory a."""
    white, slow = (of_noise(samples, memory, 6).independent for memory in (0.0, 0.9))
    assert white == pytest.approx(4.0 * len(samples[0].y), rel=0.2)
    assert slow == pytest.approx(white * 0.1 / 1.9, rel=0.5)
