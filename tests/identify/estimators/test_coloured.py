"""Deviations under coloured residuals: against the double sum they abbreviate, and against how estimates really scatter."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import eigh

import veridyn.identify.regression.equation_plan as streaming
from identify.smooth_arm import NOISE, clean, forces, noisy, truth
from identify.undiagnosed import identify
from veridyn.errors import IdentificationError
from veridyn.identify.estimators.coloured import (
    Hac,
    _stride,
    sandwich,
    window_of,
)
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.motion import Motion

MEMORY = 0.9


def double_sum(motions: list[Motion], how: Sampling, lags: int) -> np.ndarray:
    """M⁻¹ S M⁻¹ of weighted least squares with everything held whole: S_W and S_{W/2} as double sums, Q from windows cut out of columns."""
    s = solve(stream(truth(), motions, settings=IdentifySettings(sampling=how)).observe())
    p, W = len(s.values), window_of(lags)
    M, Q, count, sums = np.zeros((p, p)), np.zeros((p, p)), 0, {W: np.zeros((p, p)), W // 2: np.zeros((p, p))}
    half = np.linalg.inv(s.triangle)
    stride = max(1, -(-p // max(1, W // 4)))
    for motion in motions:
        D = regressor(truth(), motion)[:, :, list(s.columns)]
        r = forces(motion) - D @ s.values
        Z, u = D @ half / s.row_sigma[:, None], r / s.row_sigma
        N = len(motion)
        used = np.zeros((N, 4), dtype=bool)
        for j, row in enumerate(truth().rows):
            used[:, j] = how.uses(truth(), row, motion.qd, np.arange(N), N)
        grid = np.arange(0, N, how.decimate)
        Z, u = (Z * used[:, :, None])[grid], (u * used)[grid]
        h = np.einsum("njp,nj->np", Z, u)
        M += np.einsum("njp,njq->pq", Z, Z)
        count += int(used[grid].sum())
        lag = np.abs(np.subtract.outer(np.arange(len(h)), np.arange(len(h))))
        for width in sums:
            sums[width] += h.T @ np.maximum(0.0, 1.0 - lag / max(width, 1)) @ h
        for end in range(W // 4, len(h) + W, stride * (W // 4)) if W > 1 else ():
            for width, sign in ((W, 2.0), (W // 2, -1.0)):
                cut = Z[max(0, end - width) : end].reshape(-1, p)
                Q += sign * stride * (W // 4) / width * (cut.T @ cut) @ (cut.T @ cut)
    assert pytest.approx(np.eye(p), abs=1e-9) == M
    if W == 1:
        return count / (count - p) * half @ sums[1] @ half.T
    S = 2.0 * sums[W] - sums[W // 2]
    share, U = eigh(S, sums[W])  # S = S_W U diag(share) Uᵀ S_W, with a share of at least a quarter in every direction
    S = sums[W] @ (U * np.maximum(share, 0.25)) @ U.T @ sums[W]
    values, V = np.linalg.eigh(np.eye(p) - Q)
    F = (V / np.sqrt(values)) @ V.T
    return half @ F @ S @ F @ half.T


@pytest.mark.parametrize("lags", [0, 1, 7, 40])
@pytest.mark.parametrize("how", [Sampling(block=97), Sampling(decimate=3, dead_zone={"q2": 0.3, "q4": 0.1}, trim=5)])
def test_windows_are_the_double_sum(lags: int, how: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    """Across blocks, across the jobs that samples are shared out in, with dropped samples, and not across two logs."""
    monkeypatch.setattr(streaming, "JOB_SAMPLES", 211)
    rng = np.random.default_rng(0)
    logs = [noisy(rng, clean(900), memory=MEMORY), noisy(rng, clean(500, 3), memory=MEMORY)]
    samples = stream(truth(), logs, settings=IdentifySettings(sampling=how))
    found = sandwich(samples, solve(samples.observe()), hac=Hac(lags))
    expected = double_sum(logs, how, lags)
    own = np.sqrt(np.diag(expected))
    assert np.abs((found.covariance - expected) / np.outer(own, own)).max() < 1e-8
    assert found.lags == window_of(lags) - 1 and np.linalg.eigvalsh(found.covariance / np.outer(own, own))[0] > -1e-12


@pytest.mark.parametrize(("samples", "logs"), [(2000, 24), pytest.param(8000, 12, marks=pytest.mark.slow)])
def test_deviations_are_those_of_the_estimates(samples: int, logs: int) -> None:
    """First-order residuals, ρ = 0.9: stated over true σ has a median within 5 % of 1 and no parameter beyond 20 %; white below .6."""
    motion = clean(samples)
    sigma = dict(zip(truth().coordinates, NOISE, strict=True))
    columns = identify(truth(), motion, settings=IdentifySettings(sigma=sigma)).base.columns
    W = (regressor(truth(), motion)[:, :, list(columns)] / NOISE[:, None]).reshape(-1, len(columns))
    solver = np.linalg.pinv(W)
    rng = np.random.default_rng(0)
    errors, hac, white, notes = [], [], [], ()
    for trial in range(600):
        log = noisy(rng, motion, memory=MEMORY)
        errors.append(solver @ ((forces(log) - forces(motion)) / NOISE).reshape(-1))
        if trial < logs:
            fit = identify(truth(), log, settings=IdentifySettings(covariance="hac"))
            hac.append(fit.sigma**2)
            notes = fit.notes
            white.append(identify(truth(), log, settings=IdentifySettings(covariance="white")).sigma ** 2)
    empirical = np.std(errors, axis=0)
    ratio, plain = (np.sqrt(np.mean(x, axis=0)) / empirical for x in (hac, white))
    print(f"HAC/empirical {ratio.min():.2f} to {ratio.max():.2f}, median {np.median(ratio):.3f}")
    assert np.median(ratio) == pytest.approx(1.0, abs=0.05) and np.abs(ratio - 1.0).max() < 0.2
    assert np.all(plain < 0.6)
    assert any("deviations allow for residuals that remember" in note for note in notes)


def test_white_residuals_need_no_lags() -> None:
    """Then HAC and the white formula agree: within 8 % for every parameter, over 15 logs."""
    hac, white = [], []
    for seed in range(15):
        log = noisy(np.random.default_rng(seed), clean(3000))
        fit = identify(truth(), log, settings=IdentifySettings(covariance="hac"))
        hac.append(fit.sigma**2)
        white.append(identify(truth(), log, settings=IdentifySettings(covariance="white")).sigma ** 2)
    assert np.sqrt(np.mean(hac, axis=0) / np.mean(white, axis=0)) == pytest.approx(1.0, abs=0.08)


def test_values_are_not_touched() -> None:
    log = noisy(np.random.default_rng(0), memory=MEMORY)
    plain = identify(truth(), log, settings=IdentifySettings(covariance="white"))
    fit = identify(truth(), log, settings=IdentifySettings(covariance=Hac(20)))
    assert np.array_equal(plain.values, fit.values) and plain.rows == fit.rows
    assert np.all(fit.sigma > plain.sigma)
    ordinary = identify(truth(), log, "ols", settings=IdentifySettings(covariance=Hac(20)))
    assert np.all(ordinary.sigma > 0.0)


def test_robust_and_coloured_together() -> None:
    log = noisy(np.random.default_rng(0), clean(3000), memory=MEMORY)
    white = identify(truth(), log, "robust", settings=IdentifySettings(covariance="white"))
    fit = identify(truth(), log, "robust", settings=IdentifySettings(covariance="hac"))
    plain = identify(truth(), log, settings=IdentifySettings(covariance="hac"))
    assert np.array_equal(white.values, fit.values)
    assert np.median(fit.sigma / white.sigma) > 2.0
    assert np.median(fit.sigma / plain.sigma) == pytest.approx(1.0, abs=0.1)


def test_rows_that_share_their_noise() -> None:
    """One disturbance in all joints: L = 0 already sees it, where (27) takes the four rows for four witnesses."""
    errors, stated, plain = [], [], []
    for seed in range(120):
        shared = np.random.default_rng(seed).normal(size=(600, 1)) * NOISE
        log = replace(clean(600), forces=forces(clean(600)) + shared)
        fit = identify(truth(), log, settings=IdentifySettings(covariance=Hac(0), engine="compiled"))
        errors.append(fit.values - fit.base.reduce(truth().parameters.values))
        stated.append(fit.sigma**2)
        plain.append(
            identify(truth(), log, settings=IdentifySettings(covariance="white", engine="compiled")).sigma ** 2
        )
    empirical = np.sqrt(np.mean(np.square(errors), axis=0))
    off, white = (np.sqrt(np.mean((np.sqrt(np.mean(x, axis=0)) / empirical - 1.0) ** 2)) for x in (stated, plain))
    print(f"off by {100 * off:.0f} %, (27) by {100 * white:.0f} %; 120 trials alone make 6 %")
    assert off < 0.13 and off < 0.7 * white


def test_a_log_that_is_too_short_says_so() -> None:
    log = noisy(np.random.default_rng(0), clean(300), memory=0.98)
    fit = identify(truth(), log, settings=IdentifySettings(covariance="hac"))
    assert any(note.startswith("note: the residuals remember longer than this log can show") for note in fit.notes)


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(IdentificationError, match=r"Hac\.lags: .*\nExpected a whole number of at least 0"):
        Hac(-1)
    with pytest.raises(
        IdentificationError, match=r"IdentifySettings\.covariance: .*\nExpected 'auto' or 'white' or 'hac' or Hac"
    ):
        identify(truth(), clean(), settings=IdentifySettings(covariance="grey"))


def test_scores_that_fix_nothing_are_refused() -> None:
    class Backwards(Robust):
        def slope(self, u: np.ndarray) -> np.ndarray:
            return -np.ones_like(u)

    samples = stream(truth(), noisy(np.random.default_rng(0)))
    with pytest.raises(IdentificationError, match="too many equations count as outliers"):
        sandwich(samples, solve(samples.observe()), Backwards())


def test_windows_are_multiples_of_four() -> None:
    assert [window_of(lags) for lags in (0, 1, 3, 4, 7, 8, 40)] == [1, 4, 4, 8, 8, 12, 44]


def test_without_lags_the_scale_is_that_of_the_residuals() -> None:
    """(26): √(Σ r²/(n − p)) over all rows, whatever the blocks in which samples come."""
    data = stream(truth(), noisy(np.random.default_rng(3)))
    s = solve(data.observe())
    assert sandwich(data, s).residual_sigma == pytest.approx(s.sigma, rel=1e-9)


class _Halved:
    """ψ = u/2: the equations Zᵀψ = 0 are those of least squares."""

    def psi(self, u: np.ndarray) -> np.ndarray:
        return 0.5 * u

    def slope(self, u: np.ndarray) -> np.ndarray:
        return np.full_like(u, 0.5)


@pytest.mark.parametrize("lags", [0, 12])
def test_a_multiple_of_the_score_changes_nothing(lags: int) -> None:
    """Half of least squares' score solves the same equations, so that its estimates scatter alike; 1e-9: sums in another order."""
    data = stream(truth(), noisy(np.random.default_rng(3), clean(900), memory=MEMORY))
    s = solve(data.observe())
    plain, halved = (sandwich(data, s, score, Hac(lags)) for score in (None, _Halved()))
    assert halved.covariance == pytest.approx(plain.covariance, rel=1e-9, abs=1e-9 * plain.covariance.max())
    assert halved.residual_sigma == pytest.approx(plain.residual_sigma, rel=1e-9)


@pytest.mark.parametrize(
    ("p", "samples", "window", "stride"),
    [(1, 900, 4, 1), (3, 900, 4, 3), (30, 900, 40, 3), (5, 900, 40, 1), (1, 9000, 4, 5), (1, 50_000, 40, 3)],
)
def test_windows_are_evaluated_as_often_as_there_is_time_for(p: int, samples: int, window: int, stride: int) -> None:
    """Quarters of W/4 samples from one evaluation to the next: as much work as the meat, at least p samples, and 2,000 in all."""
    rows = [SimpleNamespace(samples=samples), SimpleNamespace(samples=samples // 2)]
    s = SimpleNamespace(values=np.zeros(p), observation=SimpleNamespace(rows=rows))
    assert _stride(s, window) == stride  # pyright: ignore[reportArgumentType]


def test_residuals_that_remember_have_lost_more_than_one_degree_of_freedom_a_parameter() -> None:
    """√(Σu²/(n − tr S/σ²)), σ² = Σu²/n, with the S of the stated covariance in coordinates of orthonormal columns."""
    motion = noisy(np.random.default_rng(5), clean(900), memory=MEMORY)
    data = stream(truth(), motion)
    s = solve(data.observe())
    found = sandwich(data, s, hac=Hac(12))
    r = (forces(motion) - regressor(truth(), motion)[:, :, list(s.columns)] @ s.values) / s.row_sigma
    S = s.triangle @ found.covariance @ s.triangle.T
    taken = np.trace(S) * r.size / (r**2).sum()
    assert len(s.values) < taken < 0.5 * r.size
    assert found.residual_sigma == pytest.approx(np.sqrt((r**2).sum() / (r.size - taken)), rel=1e-6)
