"""Equations behind a low-pass that are taken too often: reported where residuals show it, with a remedy that works."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import NOISE, drawn, path, truth
from veridyn.errors import IdentificationWarning
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.signals.butterworth import Butterworth

RATE, LOW = 200.0, Butterworth(5.0)
TOO_OFTEN = "residuals correlated"


@cache
def recorded(seed: int = 0) -> vd.Motion:
    t = np.arange(int(20.0 * RATE)) / RATE
    m = vd.Motion(t, *path().at(t))
    noise = NOISE * np.random.default_rng(seed).normal(size=m.q.shape)
    return replace(m, forces=vd.inverse_dynamics(truth(), m) + noise)


def fit_of(step: int, seed: int = 0, low: Butterworth | None = LOW, **how: object) -> Fit:
    return vd.identify(drawn(), recorded(seed), sampling=Sampling(filter=low, decimate=step, trim=100), **how)


def test_it_is_named_with_a_remedy() -> None:
    with pytest.warns(IdentificationWarning, match=rf"{TOO_OFTEN}[\s\S]*covariance='hac'[\s\S]*decimate=22") as told:
        fit_of(1)
    assert len([w for w in told if TOO_OFTEN in str(w.message)]) == 1


@pytest.mark.parametrize(
    "how",
    [{"step": 22}, {"step": 1, "covariance": "hac"}, {"step": 1, "low": None}, {"step": 1, "method": "gauss_markov"}],
)
def test_it_is_not_where_residuals_are_white_or_allowed_for(how: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", TOO_OFTEN, IdentificationWarning)
        fit_of(**how)  # pyright: ignore[reportArgumentType]


def test_the_factor_is_that_of_repeated_logs() -> None:
    """Twelve logs: the spread over stated deviations is within a quarter of √(1/g²), and within a third of 1 with the remedy."""
    for step, expected in ((1, 1.0 / LOW.white_gain(RATE)), (22, 1.0)):
        fits = [fit_of(step, seed, diagnose="off") for seed in range(12)]
        true = fits[0].base.reduce(truth().parameters.values)
        z = np.array([(f.values - true) / f.sigma for f in fits])
        print(f"one in {step}: rms z {np.sqrt(np.mean(z**2)):.2f}, expected {expected:.2f}")
        assert np.sqrt(np.mean(z**2)) == pytest.approx(expected, rel=0.33)
