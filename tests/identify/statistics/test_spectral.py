"""Default deviations of whole fits: against the covariance of the noise written out, in any cut of the samples, and in words."""

from __future__ import annotations

from collections.abc import Iterator
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
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression import equation_plan
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.regression.workers import MadeMotions
from veridyn.identify.result import Fit
from veridyn.identify.settings import Auto
from veridyn.identify.statistics import spectral as module
from veridyn.inference.agreement import PartSums, agreement
from veridyn.inference.noise_spectrum import Bands

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


def test_logs_that_are_made_one_by_one_all_count() -> None:
    """Each is counted from its own first sample: two short ones give the deviations that they give when they are held."""
    logs = [logged(moved(k, 400), noise(k, 400)) for k in (0, 1)]
    made = vd.identify(truth(), MadeMotions((0, 1), logs.__getitem__), "ols", diagnose="off")
    assert made.sigma == pytest.approx(fitted(*logs).sigma, rel=1e-9)


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
    for size in (1e-3, 1e3):  # whatever their size
        assert module._uncorrelated(SimpleNamespace(score=None), stretch(size * u)) is None


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


class _Multiple:
    """ψ = c u: the equations Zᵀψ = 0 are those of least squares."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def psi(self, u: Array) -> Array:
        return self.factor * u

    def slope(self, u: Array) -> Array:
        return np.full_like(u, self.factor)


def test_a_multiple_of_the_score_changes_nothing() -> None:
    """A third of least squares' score solves the same equations, so that its estimates scatter alike."""
    data = stream(truth(), logged(moved(8, 900), noise(9, 900)))
    s = solve(data.observe())
    plain, third = (module.spectral(data, s, score) for score in (None, _Multiple(1.0 / 3.0)))
    assert plain.spectrum is not None and not plain.spectrum.is_white
    own = np.sqrt(np.diag(plain.covariance))
    assert third.covariance / np.outer(own, own) == pytest.approx(plain.covariance / np.outer(own, own), abs=1e-8)
    assert third.residual_sigma == pytest.approx(plain.residual_sigma, rel=1e-9)


def passing(p: int, rows: int, **more: object) -> module._Pass:
    """A pass over made samples, of which nothing but what is given is read."""
    none = np.zeros(0)
    given = {"bands": Bands.for_samples(8), "parts": np.array([8]), "segment": 8, "stride": 1, "per_job": 1} | more
    return module._Pass(none, tuple(range(p)), none, np.ones(rows), given.pop("score", None), **given)  # pyright: ignore[reportArgumentType]


def test_samples_that_a_row_leaves_out_count_nothing() -> None:
    """Sums over two rows, some of whose samples are left out, are those of the others: numbers of equations, slopes, scores, power."""
    rng = np.random.default_rng(23)
    used = np.array([[True] * 8, [True, False, False, True, True, True, False, True]])
    Z, u = rng.normal(size=(2, 1, 8)) * used[:, None], rng.normal(size=(2, 8)) * used
    shifted = SimpleNamespace(psi=lambda u: 0.5 * u + 2.0, slope=lambda u: np.full_like(u, 0.5))
    found = passing(1, 2, score=shifted).summed(module.Stretch(np.arange(8), Z, u, used))
    psi = (0.5 * u + 2.0) * used
    assert (found.equations, found.slopes) == (13, 6.5)
    assert found.parts.score[0, 0] == pytest.approx((Z[:, 0] * psi).sum())
    assert found.parts.gram[0, 0, 0] == pytest.approx(0.5 * (Z**2).sum())
    assert found.bands.power.sum(axis=1) == pytest.approx((psi**2).sum(axis=1))
    assert found.bands.freedom.sum(axis=1) == pytest.approx(used.sum(axis=1))
    twice = found + found
    assert (twice.equations, twice.slopes) == (26, 13.0)
    assert twice.bands.power == pytest.approx(2.0 * found.bands.power)
    assert twice.parts.score == pytest.approx(2.0 * found.parts.score)


class _Counting(module._Pass):
    """Stretches are the numbers 1, 2, …, of which sums are made."""

    def stretches(self, plan: object, job: object) -> Iterator[int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        yield from range(1, 9)

    def summed(self, stretch: int, parts: bool = True) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return stretch


@pytest.mark.parametrize(
    ("before", "start", "stop", "done", "expected"),
    [
        (0, 0, 16384, 0, 6),
        (0, 16384, 32768, 0, None),  # of three jobs one is looked at
        (0, 49152, 60000, 0, 6),
        (16384, 32768, 40000, 0, 6),  # counted over all logs
        (16384, 16384, 20000, 0, None),
        (0, 49152, 60000, 60000, None),  # looked at already
        (0, 49152, 60000, 59999, 6),
    ],
)
def test_some_stretches_of_some_jobs_are_summed(
    before: int, start: int, stop: int, done: int, expected: int | None
) -> None:
    work = passing(1, 1, stride=3, per_job=3, done=done)
    counting = _Counting(**{name: getattr(work, name) for name in work.__dataclass_fields__})
    job = SimpleNamespace(before=before, start=start, stop=stop)
    assert counting(SimpleNamespace(), job) == expected  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("segment", [40, 100, 5000])
def test_stretches_hold_every_sample_once_and_orthonormal_columns(
    segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two logs in jobs of 211 samples and blocks of 17: numbers of all kept samples in order, Σ Z Zᵀ = 1, residuals as written out."""
    monkeypatch.setattr(equation_plan, "JOB_SAMPLES", 211)
    logs = [logged(moved(10, 700), noise(10, 700)), logged(moved(11, 300), noise(11, 300))]
    data = stream(truth(), logs, settings=vd.IdentifySettings(sampling=Sampling(block=17, decimate=3)))
    s = solve(data.observe())
    data = replace(data, device="cpu").with_columns(s.columns)
    work = module._Pass(
        s.all_values, s.columns, s.inverse, s.row_sigma, None, Bands.for_samples(64), np.array([1000]), segment, 1, 9
    )
    jobs = list(data.each(lambda plan, job: [replace(x, columns=x.columns.copy()) for x in work.stretches(plan, job)]))
    made = [one for job in jobs for one in job]
    kept = np.concatenate([np.arange(0, 700, 3), 700 + np.arange(0, 300, 3)])
    assert np.concatenate([one.numbers for one in made]).tolist() == kept.tolist()
    for job in jobs:
        sizes = [len(one.numbers) for one in job]
        assert all(segment <= size <= segment + 17 for size in sizes[:-1])
    Z = np.concatenate([one.columns for one in made], axis=2)
    assert np.einsum("jpn,jqn->pq", Z, Z) == pytest.approx(np.eye(len(s.columns)), abs=1e-8)
    u = [(np.asarray(log.forces) - vd.regressor(truth(), log)[:, :, list(s.columns)] @ s.values)[::3] for log in logs]
    assert np.concatenate([one.residuals for one in made], axis=1) == pytest.approx(
        (np.vstack(u) / s.row_sigma).T, abs=1e-8
    )


def test_columns_that_are_held_at_once_weigh_no_more_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubles of four rows and 30 parameters: 64 MB hold 64e6/(8 · 4 · 30) samples of them."""
    held: list[int] = []
    spread = module._spread

    def spied(samples: int, segment: int) -> tuple[int, int]:
        held.append(segment)
        return spread(samples, segment)

    monkeypatch.setattr(module, "_spread", spied)
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2e6)
    data = stream(truth(), logged(moved(12, 600), noise(12, 600)))
    s = solve(data.observe())
    module.spectral(data, s)
    assert held == [int(2e6 / (8 * 4 * len(s.values)))]


def test_parts_are_logs_or_quarters_of_one() -> None:
    one = SimpleNamespace(motions=[range(1001)])
    assert module.part_ends(one, 1001).tolist() == [250, 500, 750, 1001]  # pyright: ignore[reportArgumentType]
    two = SimpleNamespace(motions=[range(5), range(7)])
    assert module.part_ends(two, 12).tolist() == [5, 12]  # pyright: ignore[reportArgumentType]
    three = SimpleNamespace(motions=[range(5), range(7), range(2)])
    assert module.part_ends(three, 14).tolist() == [5, 12, 14]  # pyright: ignore[reportArgumentType]


def test_parts_are_compared_by_the_scores_that_were_seen() -> None:
    """Of half the equations the scores have half the covariance; the covariance of parameters is widened by the ratio."""
    rng = np.random.default_rng(24)
    A = rng.normal(size=(2, 3, 6))
    parts = PartSums(A @ np.swapaxes(A, 1, 2), 9.0 * rng.normal(size=(2, 3)))
    S, triangle = 2.0 * np.eye(3) + 0.5, np.triu(rng.normal(size=(3, 3))) + 3.0 * np.eye(3)
    found = SimpleNamespace(memory=1.0, stated_scores=S)
    made = module.Sandwich(covariance=np.eye(3), lags=0, residual_sigma=1.0)
    ends = np.array([50, 100])
    got = module.compared(made, found, parts, ends, 1, triangle, 0.5)  # pyright: ignore[reportArgumentType]
    expected = agreement(parts, 0.5 * S, triangle)
    assert got.agreement is not None and got.agreement.ratio == pytest.approx(expected.ratio)
    assert got.covariance == pytest.approx(expected.widening * np.eye(3)) and expected.widening > 1.0


@pytest.mark.parametrize(
    ("white", "widening", "stays"),
    [(True, None, True), (True, 1.0, True), (True, 1.5, False), (False, None, False), (False, 1.0, False)],
)
def test_the_covariance_of_white_noise_stays_where_nothing_else_shows(
    white: bool, widening: float | None, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = None if widening is None else SimpleNamespace(widening=widening)
    made = SimpleNamespace(spectrum=SimpleNamespace(is_white=white), agreement=same)
    monkeypatch.setattr(module, "spectral", lambda *given: made)
    found = module.noise_covariance(SimpleNamespace(), SimpleNamespace(), Auto())  # pyright: ignore[reportArgumentType]
    assert found is (None if stays else made)


def test_many_rows_with_a_short_memory_are_not_taken_for_white() -> None:
    """Seven bars beside each other, noise of first order with .3: z² is 1.9 with white deviations, (1 + .3)/(1 − .3) of slow columns."""
    links = [vd.Link(name=f"bar{k}", inertia=[0.5, 0, 0, 0.5, 0, 1.0, 0, 0, 0, 1.0]) for k in range(7)]
    joints = [vd.Joint(name=f"q{k}", a="ground", b=f"bar{k}", actuated=True) for k in range(7)]
    bars = vd.Machine.build(links, joints, gravity=(0, 0, 0), name="bars")
    t, squares = 0.02 * np.arange(400), dict[str, list[float]]()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        w, a = (rng.uniform(*span, (3, 1, 7)) for span in ((1.2, 6.3), (0.2, 0.5)))
        x = w * t[:, None] + rng.uniform(0.0, 2.0 * np.pi, (3, 1, 7))
        q, qd, qdd = (np.sum(part, axis=0) for part in (a * np.sin(x), a * w * np.cos(x), -a * w**2 * np.sin(x)))
        motion = vd.Motion(t, q, qd, qdd, forces=qdd + noise(seed, 400, memory=0.3, rows=7))
        for name, settings in (("auto", None), ("white", WHITE)):
            fit = vd.identify(bars, motion, settings=settings, diagnose="off")
            squares.setdefault(name, []).extend(((fit.values - 1.0) / fit.sigma) ** 2)
    assert len(squares["auto"]) == 140  # whose mean is known to √(2/140) = .12
    assert np.mean(squares["auto"]) == pytest.approx(1.0, abs=0.36)
    assert np.mean(squares["white"]) > 1.5
