"""Gauss-Markov, against the textbook formula with the whole covariance written down, and over many trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify import slow_reversals as bar
from identify.smooth_arm import clean, forces, truth
from identify.undiagnosed import identify
from veridyn.errors import IdentificationError
from veridyn.identify.estimators.gauss_markov import GaussMarkov, NoiseModel, autocovariances, estimated
from veridyn.identify.regression import equation_plan
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import regressor

S = np.array([0.6, 0.5, 0.2, 0.05])
C = (0.4 * np.eye(4) + 0.6) * np.outer(S, S)
COLOURED = NoiseModel(0.64 * C, 0.6 * np.eye(4)[None])
C_NOISE_MODEL = np.array([[1.0, 0.6, 0.1], [0.6, 4.0, -0.5], [0.1, -0.5, 2.0]])
FULL = NoiseModel(C_NOISE_MODEL, np.array([[[0.5, 0.2, 0.0], [0.0, 0.4, -0.1], [0.1, 0.0, 0.3]], 0.1 * np.eye(3)]))
COMMON = NoiseModel(C_NOISE_MODEL, 0.5 * np.eye(3)[None])


def noisy(seed: int, N: int = 400) -> object:
    motion = clean(N)
    return replace(motion, forces=forces(motion) + COLOURED.drawn(N, np.random.default_rng(seed))[0])


def test_the_textbook_formula() -> None:
    """(9) and (10) with Σ as a matrix: white in time, given covariance, every sample."""
    motion = noisy(0, 60)
    fit = identify(truth(), motion, GaussMarkov(C))
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
    fit = identify(truth(), motion, GaussMarkov(COLOURED))
    A = (regressor(truth(), motion) @ truth().parameters.estimated_matrix())[:, :, list(fit.base.columns)]
    Psi, y = A.reshape(-1, A.shape[2]), np.asarray(motion.forces).ravel()
    whiten = np.kron(np.eye(50), np.eye(4)) - np.kron(np.eye(50, k=-1), 0.6 * np.eye(4))
    whiten = np.kron(np.eye(50), np.linalg.inv(np.linalg.cholesky(0.64 * C))) @ whiten
    Q = whiten[4:]
    values = np.linalg.lstsq(Q @ Psi, Q @ y, rcond=None)[0]
    assert fit.values == pytest.approx(values, rel=1e-5, abs=1e-8)
    r = Q @ (y - Psi @ values)
    assert fit.residual_sigma == pytest.approx(np.sqrt(r @ r / (len(r) - len(values))), rel=1e-6)


def test_it_scatters_less_than_least_squares_and_knows_by_how_much() -> None:
    """30 logs: noise estimated from residuals. A scatter has a deviation of 13 % for each of 30 parameters."""
    found = {"ols": [], "wls": [], "rows": [], "time": []}
    stated = []
    for seed in range(30):
        motion = noisy(seed)
        found["ols"].append(identify(truth(), motion, "ols", settings=IdentifySettings(engine="compiled")).values)
        found["wls"].append(identify(truth(), motion, settings=IdentifySettings(engine="compiled")).values)
        found["rows"].append(
            identify(truth(), motion, "gauss_markov", settings=IdentifySettings(engine="compiled")).values
        )
        fit = identify(truth(), motion, GaussMarkov(order=2), settings=IdentifySettings(engine="compiled"))
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


def dense(noise: NoiseModel, N: int) -> np.ndarray:
    """Σ of N consecutive samples that repeat for ever: block-circulant of the spectrum, from long autocovariances."""
    R = noise.autocovariances(60 * N)
    lags = np.zeros((N, 3, 3))
    for lag, r in enumerate(R):
        lags[lag % N] += r
        if lag:
            lags[-lag % N] += r.T
    return np.block([[lags[(i - j) % N] for j in range(N)] for i in range(N)])


@pytest.mark.parametrize("noise", [FULL, COMMON, NoiseModel.white(C_NOISE_MODEL)])
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
    diagonal = NoiseModel(C_NOISE_MODEL, np.stack([np.diag([0.5, 0.3, 0.7])]))
    true = {"common": COMMON, "own": diagonal, "full": FULL}[kind]
    found = NoiseModel.from_autocovariances(true.autocovariances(true.order), kind)
    if kind == "own":  # rows that are correlated and forget at different rates are not exactly of this kind
        assert np.diagonal(found.coefficients[0]) == pytest.approx([0.5, 0.3, 0.7])
    else:
        assert found.coefficients == pytest.approx(true.coefficients, abs=1e-9)
    assert found.news == pytest.approx(C_NOISE_MODEL, abs=1e-8)


def test_bic_takes_the_simplest_that_does() -> None:
    rng = np.random.default_rng(3)
    for true, order in ((NoiseModel.white(C_NOISE_MODEL), 0), (COMMON, 1)):
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
        NoiseModel(C_NOISE_MODEL, 1.2 * np.eye(3)[None]).autocovariances(1)


def test_the_summary_states_the_largest_correlation() -> None:
    """Of C: 0.6/√(1 · 4) = 0.30, and 0.5/√(4 · 2) = 0.18."""
    assert (
        NoiseModel.white(C_NOISE_MODEL).summary()
        == "noise of the rows is correlated by up to 0.30 and is white in time"
    )
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


def test_samples_after_one_that_is_left_out_have_no_known_past() -> None:
    """Of first-order noise those samples are kept that all rows use and whose neighbour before is used as well: lstsq of these."""
    motion = noisy(2, 200)
    how = Sampling(dead_zone={"q2": 0.5})
    settings = IdentifySettings(sampling=how)
    fit = identify(truth(), motion, GaussMarkov(COLOURED), settings=settings)
    N = len(motion)
    used = np.all([how.uses(truth(), row, motion.qd, np.arange(N), N) for row in truth().rows], axis=0)
    kept = np.flatnonzero(used[1:] & used[:-1]) + 1
    assert not used.all() and 100 < len(kept) < used.sum()
    A = regressor(truth(), motion)[:, :, list(fit.base.columns)]
    half = np.linalg.inv(np.linalg.cholesky(0.64 * C))
    rows, right = half @ (A[kept] - 0.6 * A[kept - 1]), (forces(motion)[kept] - 0.6 * forces(motion)[kept - 1]) @ half.T
    values = np.linalg.lstsq(rows.reshape(-1, A.shape[2]), right.ravel(), rcond=None)[0]
    assert fit.values == pytest.approx(values, rel=1e-5, abs=1e-7)


def test_a_whole_period_has_a_past_for_every_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first sample follows its last, so that all 60 count; of two jobs the second would begin without a past, and is refused."""
    motion, how = noisy(3, 60), GaussMarkov(COLOURED, periodic=True)
    fit = identify(truth(), motion, how)
    A = regressor(truth(), motion)[:, :, list(fit.base.columns)]
    expected = estimated(A, forces(motion), COLOURED)
    assert fit.values == pytest.approx(expected.values, rel=1e-5, abs=1e-7)
    r = COLOURED.whitened((forces(motion) - A @ fit.values)[:, :, None])
    assert fit.residual_sigma**2 == pytest.approx((r**2).sum() / (r.size - len(fit.values)), rel=1e-6)
    monkeypatch.setattr(equation_plan, "JOB_SAMPLES", 40)
    with pytest.raises(IdentificationError, match="one short stretch"):
        identify(truth(), motion, how)


def test_by_default_noise_is_white_in_time() -> None:
    fit = identify(truth(), noisy(4), "gauss_markov")
    assert any("is white in time" in note for note in fit.notes)


@pytest.mark.parametrize("noise", [np.ones((2, 3)), np.ones(4), np.array([[1.0, np.nan], [0.0, 1.0]])])
def test_what_is_no_covariance_is_refused(noise: np.ndarray) -> None:
    with pytest.raises(IdentificationError, match=r"GaussMarkov\.noise"):
        GaussMarkov(noise)


def test_deviations_of_many_trials_are_those_of_matrices_written_out() -> None:
    """(ΨᵀΣ⁻¹Ψ)⁻¹, and (ΨᵀVΨ)⁻¹ ΨᵀVΣVΨ (ΨᵀVΨ)⁻¹ where another noise was assumed, of each of two by two trials."""
    N, rng = 12, np.random.default_rng(6)
    A, y = rng.normal(size=(2, 2, N, 3, 4)), rng.normal(size=(2, 2, N, 3))
    best, other = estimated(A, y, FULL), estimated(A, y, FULL, COMMON)
    Sigma, V = dense(FULL, N), np.linalg.inv(dense(COMMON, N))
    for k in np.ndindex(2, 2):
        Psi, right = A[k].reshape(-1, 4), y[k].ravel()
        P = np.linalg.inv(Psi.T @ np.linalg.solve(Sigma, Psi))
        assert best.covariance[k] == pytest.approx(P, rel=1e-8)
        assert best.values[k] == pytest.approx(P @ Psi.T @ np.linalg.solve(Sigma, right), rel=1e-8)
        bread = np.linalg.inv(Psi.T @ V @ Psi)
        assert other.values[k] == pytest.approx(bread @ Psi.T @ V @ right, rel=1e-8)
        assert other.covariance[k] == pytest.approx(bread @ Psi.T @ V @ Sigma @ V @ Psi @ bread, rel=1e-8)
        assert other.sigma[k] == pytest.approx(np.sqrt(np.diag(other.covariance[k])))


def test_as_many_lags_are_given_as_are_asked_for() -> None:
    second = NoiseModel(C_NOISE_MODEL, np.array([0.3 * np.eye(3), 0.2 * np.eye(3)]))
    assert [len(second.autocovariances(lags)) for lags in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("rests", [0.0, 0.1, 0.3])
def test_samples_near_standstill_of_a_log_are_left_out(rests: float) -> None:
    """Noise with a memory makes differences weigh most, and so each sample in which friction has the wrong sign: −28 to −258 deviations."""
    machine = bar.machine()
    motions = [vd.motion(machine, bar.log(seed, rests)) for seed in range(6)]
    every = [bar.scores(identify(machine, motion, GaussMarkov(order=8))) for motion in motions]
    assert np.abs(every).max() < 3.5  # of 18 normal numbers one in a hundred times more
    whole = identify(machine, motions[-1], GaussMarkov(order=8), settings=IdentifySettings(sampling=Sampling()))
    assert bar.scores(whole)[list(whole.names).index("fs_hinge")] < -10.0
