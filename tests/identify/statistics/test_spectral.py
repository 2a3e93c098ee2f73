"""Default deviations of whole fits: against the covariance of the noise written out, in any cut of the samples, and in words."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.signal import lfilter

import veridyn as vd
from identify.smooth_arm import path, truth
from veridyn.identify.estimator import Estimator
from veridyn.identify.result import Fit
from veridyn.identify.statistics import spectral as module

Array = NDArray[np.float64]
MEMORY = 0.9
SAMPLES, STEP = 3000, 0.01
NOISE = 0.1  # N*m
WHITE = vd.IdentifySettings(covariance="white")


def moved(seed: int = 0, samples: int = SAMPLES) -> vd.Motion:
    t = STEP * np.arange(samples)
    return vd.Motion(t, *path(seed).at(t))


def noise(seed: int, samples: int = SAMPLES, memory: float = MEMORY, rows: int = 0) -> Array:
    rows = rows or truth().n
    news = np.random.default_rng(seed).normal(size=(samples + 500, rows)) * np.sqrt(1.0 - memory**2)
    return np.asarray(NOISE * lfilter([1.0], [1.0, -memory], news, axis=0)[500:], dtype=np.float64)


def logged(motion: vd.Motion, disturbance: Array) -> vd.Motion:
    return replace(motion, forces=vd.inverse_dynamics(truth(), motion) + disturbance)


def fitted(
    *motions: vd.Motion,
    method: str | Estimator = "ols",
    settings: vd.IdentifySettings | None = None,
    executor: Executor | None = None,
) -> Fit:
    data = motions[0] if len(motions) == 1 else list(motions)
    return vd.identify(truth(), data, method, settings, diagnose="off", executor=executor)


def exact_sigma(fit: Fit, motion: vd.Motion, between_rows: Array, memory: float = MEMORY) -> Array:
    """By W⁺ Σ W⁺ᵀ with Σ written out: first-order noise of deviation NOISE with this correlation between rows."""
    D = vd.regressor(truth(), motion)[:, :, list(fit.base.columns)]
    pinv = np.linalg.pinv(np.moveaxis(D, 1, 0).reshape(-1, D.shape[2]))
    rows, N = D.shape[1], len(motion)
    parts = pinv.reshape(len(pinv), rows, N)
    Sigma = NOISE**2 * toeplitz(memory ** np.arange(N))
    spread = np.einsum("cjn,nm->cjm", parts, Sigma, optimize=True)
    C = np.einsum("cjn,jk,dkn->cd", spread, between_rows, parts, optimize=True)
    return np.sqrt(np.diag(C))


def test_deviations_are_those_of_the_covariance_written_out() -> None:
    motion = moved()
    fits = [fitted(logged(motion, noise(seed))) for seed in range(6)]
    true = exact_sigma(fits[0], motion, np.eye(truth().n))
    ratio = np.mean([f.sigma for f in fits], axis=0) / true
    assert float(np.median(ratio)) == pytest.approx(1.0, abs=0.1)
    assert ratio.min() > 0.7
    assert ratio.max() < 1.4
    white = fitted(logged(motion, noise(0)), settings=WHITE).sigma / true
    assert white.max() < 0.4
    assert any("deviations allow for the spectrum of the residuals" in note for note in fits[0].notes)


def test_rows_whose_noise_is_one_and_the_same() -> None:
    """All rows have the same noise: what adds up in some parameters cancels in others."""
    motion = moved(1)
    one = [np.tile(noise(seed, rows=1), (1, truth().n)) for seed in range(6)]
    fits = [fitted(logged(motion, e)) for e in one]
    true = exact_sigma(fits[0], motion, np.ones((truth().n, truth().n)))
    ratio = np.mean([f.sigma for f in fits], axis=0) / true
    assert float(np.median(ratio)) == pytest.approx(1.0, abs=0.15)


def test_white_noise_keeps_the_deviations_of_white_noise() -> None:
    log = logged(moved(2), noise(3, memory=0.0))
    auto, white = fitted(log), fitted(log, settings=WHITE)
    assert auto.sigma == pytest.approx(white.sigma, rel=1e-9)
    assert not any("spectrum" in note for note in auto.notes)


def test_the_cut_of_the_samples_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logged(moved(3), noise(4))
    whole = fitted(log)
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1.0)
    monkeypatch.setattr(module, "SHORTEST_SEGMENT", 700)
    segments = fitted(log)
    assert segments.sigma == pytest.approx(whole.sigma, rel=0.15)
    with ThreadPoolExecutor(2) as pool:
        shared = fitted(log, executor=pool)
    assert shared.sigma == pytest.approx(segments.sigma, rel=1e-10)


def test_of_a_long_log_some_stretches_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logged(moved(4, 40_000), noise(5, 40_000))
    whole = fitted(log)
    monkeypatch.setattr(module, "MAX_SAMPLES", 33_000)
    assert fitted(log).sigma == pytest.approx(whole.sigma, rel=0.2)


@pytest.mark.parametrize(
    ("samples", "segment", "looked_at"),
    [
        (600, 16384, 600),
        (60_000, 16384, 60_000),
        (10**6, 16384, 4 * 16384),
        (40_000, 4761, 8 * 4761),
        (200_000, 4761, 8 * 4761),
    ],
)
def test_how_much_of_a_log_is_looked_at(samples: int, segment: int, looked_at: int) -> None:
    """All of a log that is not long; else as many stretches as are wanted, or a few more or fewer where jobs do not divide."""
    stride, per_job = module._spread(samples, segment)
    jobs = -(-samples // module.JOB_SAMPLES)
    seen = min(samples, sum(min(per_job * segment, module.JOB_SAMPLES) for k in range(jobs) if k % stride == 0))
    assert 0.7 * looked_at <= seen <= 1.1 * looked_at


def test_a_log_that_is_short_for_its_noise_is_reported() -> None:
    fit = fitted(logged(moved(5, 600), noise(6, 600, memory=0.98)))
    assert any("the log is short for its parameters" in note for note in fit.notes)


@pytest.mark.parametrize(
    "method", ["ols", "robust", vd.estimators.Instrumental(reference="measured")], ids=["ols", "robust", "iv"]
)
def test_logs_that_disagree_are_reported_and_widen_the_deviations(method: str | Estimator) -> None:
    """The second log has twice the viscous friction of the first joint."""
    first, second = logged(moved(6), noise(7)), logged(moved(7), noise(8))
    friction = next(e.parameter_name for e in truth().elements if e.kind == "damper")
    assert second.forces is not None
    more = second.forces.copy()
    more[:, 0] += truth().parameters.values[truth().parameters.index(friction)] * second.qd[:, 0]
    fit = fitted(first, replace(second, forces=more), method=method)
    (note,) = (n for n in fit.notes if "disagree beyond their deviations" in n)
    assert friction in note
    agreeing = fitted(first, second, method=method)
    assert not any("disagree" in n for n in agreeing.notes)
    assert float(np.median(fit.sigma / agreeing.sigma)) > 1.2


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(vd.errors.IdentificationError, match="covariance"):
        vd.IdentifySettings(covariance="robust")  # pyright: ignore[reportArgumentType]


def stretch(residuals: Array, used: NDArray[np.bool_] | None = None) -> module.Stretch:
    used = np.ones(residuals.shape, dtype=np.bool_) if used is None else used
    return module.Stretch(
        np.arange(residuals.shape[1]), np.zeros((len(residuals), 1, residuals.shape[1])), residuals, used
    )


def pair(correlation: float, samples: int = 400) -> Array:
    """Two rows without a mean whose correlation in these samples is exactly this, and whose sizes are 3 and 0.01."""
    x = np.random.default_rng(20).normal(size=(samples, 2))
    x = np.linalg.qr(x - x.mean(axis=0))[0].T * np.sqrt(samples)
    return np.array([3.0 * x[0], 0.01 * (correlation * x[0] + np.sqrt(1.0 - correlation**2) * x[1])])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_are_turned_where_they_are_correlated_beyond_chance(sign: float) -> None:
    """Of 400 white samples a correlation has the deviation 1/20: beyond four of them, .2, rows are made uncorrelated."""
    work = SimpleNamespace(score=None)
    assert module._uncorrelated(work, stretch(pair(0.17 * sign))) is None
    u = pair(0.25 * sign)
    turn = module._uncorrelated(work, stretch(u))
    assert turn is not None and turn @ turn.T == pytest.approx(np.eye(2))
    C = (turn @ u) @ (turn @ u).T
    assert abs(C[0, 1]) < 1e-9 * np.sqrt(C[0, 0] * C[1, 1])
    assert module._uncorrelated(work, stretch(u[:1])) is None
    some = np.zeros(u.shape, dtype=np.bool_)
    some[:, :7] = True  # fewer than eight in which both are measured
    assert module._uncorrelated(work, stretch(u, some)) is None


def test_correlations_of_rows_that_remember_need_more() -> None:
    """Two rows that forget by 0.9 a sample are worth 1/9.5 of them: a correlation of .4 in 400 is chance, four deviations are .62."""
    x = lfilter([1.0], [1.0, -0.9], np.random.default_rng(21).normal(size=(2, 1400)), axis=1)[:, 1000:]
    x = x - x.mean(axis=1, keepdims=True)
    q = np.linalg.qr(x.T)[0].T * 20.0
    u = np.array([q[0], 0.4 * q[0] + np.sqrt(1.0 - 0.16) * q[1]])
    assert module._uncorrelated(SimpleNamespace(score=None), stretch(u)) is None
    assert module._uncorrelated(SimpleNamespace(score=None), stretch(1e-3 * u)) is None  # whatever their size


def test_a_row_that_shares_nothing_is_left_as_it_is() -> None:
    """Of three rows two are correlated: the third is turned into itself, though by chance its correlations are not exactly zero."""
    u = pair(0.6)
    third = np.random.default_rng(22).normal(size=(1, u.shape[1]))
    turn = module._uncorrelated(SimpleNamespace(score=None), stretch(np.vstack([u, third])))
    assert turn is not None
    own = np.flatnonzero(np.abs(turn[:, 2]) > 1e-12)
    assert len(own) == 1 and np.abs(turn[own[0]]) == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)


@pytest.mark.parametrize(
    ("ends", "logs", "expected"),
    [
        ([80, 160, 240, 320], 1, True),
        ([79, 160, 240, 320], 1, False),
        ([79, 160], 2, True),
        ([320], 1, False),
        ([320], 2, False),
    ],
)
def test_parts_of_one_log_are_compared_where_each_holds_twenty_memories(
    ends: list[int], logs: int, expected: bool
) -> None:
    assert module.comparable(SimpleNamespace(memory=4.0), np.array(ends), logs) is expected


def test_stretches_are_joined_and_unmeasured_samples_are_zero() -> None:
    first, second = stretch(np.array([[1.0, 2.0]])), stretch(np.array([[3.0]]))
    assert module.Stretch.joined([first, second]).residuals.tolist() == [[1.0, 2.0, 3.0]]
    assert module.Stretch.joined([second]) is second
    held = module.Stretch.empty(1, 2, 3)
    used = np.array([[True, False, True]])
    block = SimpleNamespace(numbers=np.array([4, 5, 6]), used=used, equations=[np.array([[1.0, 2.0], [3.0, 4.0]])])
    work = object.__new__(module._Pass)
    work._fill(held, block, 10, [np.array([[1.0, 0.0], [0.5, 1.0]])])
    assert held.numbers.tolist() == [14, 15, 16]
    assert held.columns.tolist() == [[[1.0, 0.0, 3.0], [2.5, 0.0, 5.5]]]  # a, and a/2 + y


def test_a_log_that_is_a_little_too_long_loses_no_job() -> None:
    """40,000 samples in 3 jobs, 8 stretches of 4,761 wanted: three of every job, because 3 · 3 is the least that holds 8."""
    assert module._spread(40_000, 4761) == (1, 3)
