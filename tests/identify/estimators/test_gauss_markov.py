"""Gauss-Markov, against the textbook formula with the whole covariance written down, and over many trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.smooth_arm import clean, forces, truth
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.gauss_markov import GaussMarkov, estimated
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import regressor

S = np.array([0.6, 0.5, 0.2, 0.05])
C = (0.4 * np.eye(4) + 0.6) * np.outer(S, S)
COLOURED = NoiseModel(0.64 * C, 0.6 * np.eye(4)[None])


def noisy(seed: int, N: int = 400) -> object:
    motion = clean(N)
    return replace(motion, forces=forces(motion) + COLOURED.drawn(N, np.random.default_rng(seed))[0])


def test_the_textbook_formula() -> None:
    """(9) and (10) with Σ as a matrix: white in time, given covariance, every sample."""
    motion = noisy(0, 60)
    fit = identify(truth(), motion, GaussMarkov(C), diagnose="off")
    A = (regressor(truth(), motion) @ truth().parameters.estimated_matrix())[:, :, list(fit.base.columns)]
    Psi, y = A.reshape(-1, A.shape[2]), np.asarray(motion.forces).ravel()
    W = np.kron(np.eye(len(motion)), np.linalg.inv(C))
    half = np.kron(np.eye(len(motion)), np.linalg.inv(np.linalg.cholesky(C)))
    pseudo = np.linalg.pinv(half @ Psi)
    P = pseudo @ pseudo.T  # (ΨᵀΣ⁻¹Ψ)⁻¹; inverting the product itself would lose half the digits
    assert fit.values == pytest.approx(pseudo @ half @ y, rel=1e-6)
    r = y - Psi @ fit.values
    scale = r @ W @ r / (len(y) - len(fit.values))
    assert fit.residual_sigma**2 == pytest.approx(scale, rel=1e-6)
    assert fit.covariance == pytest.approx(scale * P, rel=1e-6, abs=1e-9 * np.abs(P).max())


def test_noise_with_a_memory_by_a_whole_matrix() -> None:
    """Not periodic: the first sample, whose past is not known, is left out; the rest is generalised least squares."""
    motion = noisy(1, 50)
    fit = identify(truth(), motion, GaussMarkov(COLOURED), diagnose="off")
    A = (regressor(truth(), motion) @ truth().parameters.estimated_matrix())[:, :, list(fit.base.columns)]
    Psi, y = A.reshape(-1, A.shape[2]), np.asarray(motion.forces).ravel()
    whiten = np.kron(np.eye(50), np.eye(4)) - np.kron(np.eye(50, k=-1), 0.6 * np.eye(4))
    whiten = np.kron(np.eye(50), np.linalg.inv(np.linalg.cholesky(0.64 * C))) @ whiten
    Q = whiten[4:]
    values = np.linalg.lstsq(Q @ Psi, Q @ y, rcond=None)[0]
    assert fit.values == pytest.approx(values, rel=1e-5, abs=1e-8)


def test_it_scatters_less_than_least_squares_and_knows_by_how_much() -> None:
    """30 logs: noise estimated from residuals. A scatter has a deviation of 13 % for each of 30 parameters."""
    found = {"ols": [], "wls": [], "rows": [], "time": []}
    stated = []
    for seed in range(30):
        motion = noisy(seed)
        found["ols"].append(
            identify(truth(), motion, "ols", settings=IdentifySettings(engine="compiled"), diagnose="off").values
        )
        found["wls"].append(
            identify(truth(), motion, settings=IdentifySettings(engine="compiled"), diagnose="off").values
        )
        found["rows"].append(
            identify(
                truth(), motion, "gauss_markov", settings=IdentifySettings(engine="compiled"), diagnose="off"
            ).values
        )
        fit = identify(
            truth(), motion, GaussMarkov(order=2), settings=IdentifySettings(engine="compiled"), diagnose="off"
        )
        found["time"].append(fit.values)
        stated.append(fit.sigma)
    scatter = {name: np.std(values, axis=0) for name, values in found.items()}
    print({name: float(np.median(s / scatter["ols"])) for name, s in scatter.items()})
    assert np.median(scatter["time"] / scatter["ols"]) < 0.9
    assert np.median(scatter["rows"] / scatter["wls"]) < 1.0
    honest = np.mean(stated, axis=0) / scatter["time"]
    assert 0.85 < np.median(honest) < 1.15


def test_trials_at_once_are_trials_one_by_one() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 30, 4, 5))
    y = rng.normal(size=(3, 30, 4))
    whole = estimated(A, y, COLOURED)
    for k in range(3):
        assert whole.values[k] == pytest.approx(estimated(A[k], y[k], COLOURED).values)
    ols = estimated(A, y, COLOURED, NoiseModel.white(np.eye(4)))
    assert ols.values[0] == pytest.approx(np.linalg.lstsq(A[0].reshape(-1, 5), y[0].ravel(), rcond=None)[0])
    assert (ols.sigma >= whole.sigma * (1.0 - 1e-9)).all()


def test_refused_by_name() -> None:
    motion = noisy(0, 60)
    with pytest.raises(IdentificationError, match="not that of these rows"):
        identify(truth(), motion, GaussMarkov(np.eye(2)))
    with pytest.raises(IdentificationError, match=r"GaussMarkov\.order: .*\nExpected a whole number of at least 0"):
        GaussMarkov(order=-1)
    how = GaussMarkov(C, periodic=True)
    with pytest.raises(IdentificationError, match="no sample left out"):
        identify(truth(), motion, how, settings=IdentifySettings(sampling=Sampling(trim=3)))
    with pytest.raises(IdentificationError, match="models the autocorrelation of the noise itself"):
        identify(truth(), motion, "gauss_markov", settings=IdentifySettings(covariance="hac"))
