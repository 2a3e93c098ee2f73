"""Robust regression: against SciPy's Huber, against its own definition, and against gross errors."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import least_squares

from identify.smooth_arm import NOISE, clean, forces, noisy, spoilt, truth
from identify.undiagnosed import identify
from veridyn.errors import IdentificationError, IdentificationWarning
from veridyn.identify.estimators.least_squares import EXACT_RESIDUAL, solve
from veridyn.identify.estimators.robust import MAD_TO_SIGMA, Robust, _median, _Pass, _passed, reweighted
from veridyn.identify.regression import equation_plan
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.motion import Motion

SIGMA = dict(zip(truth().coordinates, NOISE, strict=True))


def stored(motion: Motion, columns: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """W and Y of all rows in units of NOISE, held whole: (rows × N, p) and (rows × N,)."""
    D = regressor(truth(), motion)[:, :, list(columns)] / NOISE[:, None]
    return D.reshape(-1, len(columns)), (motion.forces / NOISE).reshape(-1)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_slopes_are_derivatives(loss: str) -> None:
    how = Robust(loss)
    u = np.linspace(-8.0, 8.0, 401)
    u = u[np.abs(np.abs(u) - how.c) > 0.01]
    numeric = (how.psi(u + 1e-6) - how.psi(u - 1e-6)) / 2e-6
    assert how.slope(u) == pytest.approx(numeric, abs=1e-8)
    assert how.psi(u) == pytest.approx(u * how.weight(u))
    assert how.weight(np.zeros(1))[0] == 1.0 and how.weight(np.array([20.0]))[0] < 0.1


def test_the_values_of_scipy() -> None:
    """Huber's loss with the scale stated, minimised by SciPy's trust region on the stored matrix; to 1e-4 deviations."""
    motion = spoilt(np.random.default_rng(0))
    fit = identify(truth(), motion, "robust", settings=IdentifySettings(sigma=SIGMA))
    W, y = stored(motion, fit.base.columns)
    scale = 1.0 / np.linalg.norm(W, axis=0)
    found = least_squares(
        lambda z: W @ (scale * z) - y,
        np.zeros(len(scale)),
        lambda z: W * scale,
        loss="huber",
        f_scale=1.345,
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-12,
    )
    assert np.abs((scale * found.x - fit.values) / fit.sigma).max() < 1e-4


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_the_scores_cancel(loss: str) -> None:
    """Σ Wᵀψ(r/σ) = 0 with the scales it reports, far below one equation's worth."""
    motion = spoilt(np.random.default_rng(1))
    how = Robust(loss, tolerance=1e-8, iterations=200)
    fit = identify(truth(), motion, how)
    scale = np.array([r.sigma for r in fit.rows])
    D = regressor(truth(), motion)[:, :, list(fit.base.columns)]
    u = (forces(motion) - D @ fit.values) / scale
    score = np.einsum("njp,nj->p", D / scale[:, None], how.psi(u))
    size = np.sqrt(np.einsum("njp->p", (D / scale[:, None]) ** 2))
    assert np.abs(score / size).max() < 1e-6
    half = MAD_TO_SIGMA * np.median(np.abs(forces(motion) - D @ fit.values), axis=0)
    assert scale == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize("logs", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_gross_errors_do_little(logs: int) -> None:
    """5 % of the samples wrong by 30 deviations: the error of wls is at least four times that of either loss; 4 logs, or 8, slow."""
    errors: dict[str, list[np.ndarray]] = {"wls": [], "huber": [], "tukey": []}
    for seed in range(logs):
        motion = spoilt(np.random.default_rng(seed))
        for name, found in errors.items():
            method = "wls" if name == "wls" else Robust(name)
            fit = identify(truth(), motion, method)
            found.append(fit.values - fit.base.reduce(truth().parameters.values))
    rms = {name: np.sqrt(np.mean(np.square(x), axis=0)) for name, x in errors.items()}
    gain = {name: float(np.median(rms["wls"] / rms[name])) for name in ("huber", "tukey")}
    print(f"error of wls over that of robust, median over the parameters: {gain}")
    assert gain["huber"] > 4.0 and gain["tukey"] > 4.0
    assert np.all(rms["huber"] < rms["wls"])


def test_the_share_of_low_weights_is_stated() -> None:
    motion = spoilt(np.random.default_rng(2))
    samples = stream(truth(), motion)
    found = reweighted(samples, solve(samples.observe()), Robust("tukey"))
    assert found.converged and 3 < found.iterations < 40
    for share in found.low_weight.values():
        assert 0.04 < share < 0.09  # 5 % gross errors, and the 1 % of Gaussian noise beyond 2.5 deviations
    fit = identify(truth(), motion, Robust("tukey"))
    assert any(note.startswith("tukey weights with c = 4.685") for note in fit.notes)
    assert any("count less than half" in note for note in fit.notes)
    assert fit.rows[0].rms > 4.0 * fit.rows[0].sigma  # the row reports the gross errors too


def test_stated_scales_are_kept() -> None:
    fit = identify(truth(), noisy(np.random.default_rng(0)), "robust", settings=IdentifySettings(sigma={"q2": 0.77}))
    assert fit.rows[1].sigma == 0.77 and fit.rows[0].sigma == pytest.approx(NOISE[0], rel=0.08)


def test_medians_from_bins() -> None:
    rng = np.random.default_rng(0)
    u = np.abs(rng.normal(size=20001))
    bins = ((np.log10(u) + 8) * 256 + 1).astype(int)
    counts = np.bincount(bins, minlength=4098)
    assert _median(counts) == pytest.approx(np.median(u), rel=2e-3)
    assert _median(np.bincount([0] * 5, minlength=4098)) == 1e-8


def test_no_convergence_is_said() -> None:
    motion = spoilt(np.random.default_rng(0))
    with pytest.warns(IdentificationWarning, match="the weights have not settled after 2 iterations"):
        fit = identify(truth(), motion, Robust(iterations=2))
    assert any("NOT CONVERGED" in note for note in fit.notes)


def test_wrong_settings_are_refused() -> None:
    for how, text in (
        ({"loss": "cauchy"}, r"Robust\.loss: .*\nExpected 'huber' or 'tukey', found 'cauchy'"),
        ({"tuning": 0.0}, r"Robust\.tuning: .*\nExpected a number above 0 or None, found 0\.0"),
        ({"iterations": 0}, r"Robust\.iterations: .*\nExpected a whole number of at least 1, found 0"),
    ):
        with pytest.raises(IdentificationError, match=text):
            Robust(**how)


def test_what_forgetting_leaves_must_fix_every_parameter() -> None:
    """With c of a hundredth of a deviation Tukey's loss keeps next to nothing; that is refused, not answered."""
    motion = noisy(np.random.default_rng(0))
    motion = replace(motion, forces=forces(motion) + 40.0 * np.sign(np.sin(np.arange(len(motion))))[:, None] * NOISE)
    with pytest.raises(IdentificationError, match="too many equations count as outliers"):
        identify(truth(), motion, Robust("tukey", tuning=0.01))


def test_a_residual_beyond_all_bins_counts_in_the_last() -> None:
    """1e15 N*m in one of 1,500 samples, where bins end at 1e8 deviations: by less than a deviation, values are those without it."""
    motion = noisy(np.random.default_rng(11))
    wild = forces(motion).copy()
    wild[40, 1] = 1e15
    start = solve(stream(truth(), motion).observe())
    found, plain = (
        reweighted(stream(truth(), m), start, Robust()).solution for m in (replace(motion, forces=wild), motion)
    )
    assert np.abs((found.values - plain.values) / np.sqrt(np.diag(plain.covariance))).max() < 1.0


def scaled(motion: Motion, columns: tuple[int, ...], values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Residuals (N, rows) over the scales of the rows."""
    return (forces(motion) - regressor(truth(), motion)[:, :, list(columns)] @ values) / scale


def test_tallies_of_jobs_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logs in jobs of 211 samples: medians and low weights of a pass are those of all residuals, held at once."""
    monkeypatch.setattr(equation_plan, "JOB_SAMPLES", 211)
    logs = [spoilt(np.random.default_rng(4)), noisy(np.random.default_rng(5), clean(500, 3))]
    samples = stream(truth(), logs)
    start = solve(samples.observe())
    _, tally = _passed(samples, Robust(), start, start.row_sigma)
    u = np.abs(np.vstack([scaled(log, start.columns, start.values, start.row_sigma) for log in logs]))
    assert tally.low.tolist() == np.count_nonzero(u > 2.0 * 1.345, axis=0).tolist()  # where c/|u| is below a half
    assert tally.sizes.sum(axis=1).tolist() == [len(u)] * 4
    assert [_median(c) for c in tally.sizes] == pytest.approx(np.median(u, axis=0), rel=4e-3)  # of bins 0.9 % wide


def test_bins_begin_below_1e_8_and_end_beyond_1e8() -> None:
    """256 to a decade: 1 begins bin 1 + 8 · 256; nothing at all and 1e-9 share the first, 1e12 is in the last. Huber's √w scales."""
    A = np.array([[1.0, 0.0], [1.0, 1e-9], [1.0, 1.0 + 1e-9], [1.0, 1e12]])
    plan = SimpleNamespace(rows=(0,), columns=[(0,)], factors=lambda job, weigh: weigh(0, A))
    _, tally = _Pass(Robust(), np.zeros(1), np.ones(1))(plan, None)  # pyright: ignore[reportArgumentType]
    assert {int(k): int(tally.sizes[0, k]) for k in np.flatnonzero(tally.sizes[0])} == {0: 2, 2049: 1, 4097: 1}
    assert tally.low.tolist() == [1]
    assert A[:, 0] == pytest.approx([1.0, 1.0, 1.0, np.sqrt(1.345e-12)])


def test_a_median_divides_its_bin_as_it_divides_the_counts() -> None:
    """One size in the bin that begins at 1 and three in the next: half of four lies a third into that one."""
    counts = np.zeros(4098, dtype=np.intp)
    counts[[2049, 2050]] = 1, 3
    assert _median(counts) == pytest.approx(10.0 ** ((1.0 + 1.0 / 3.0) / 256.0), rel=1e-12)


def test_it_stops_at_the_first_step_below_the_tolerance() -> None:
    """With stated scales weights are Huber's from the start: ‖T Δx‖/√p of the last step is below 1e-3 and that before is not."""
    motion = spoilt(np.random.default_rng(6))
    samples = stream(truth(), motion)
    start, how = solve(samples.observe(), sigma=SIGMA), Robust(tolerance=1e-3)
    found = reweighted(samples, start, how, SIGMA)
    passes = [start]
    for count in range(1, found.iterations):
        with pytest.warns(IdentificationWarning, match="have not settled"):
            passes.append(reweighted(samples, start, replace(how, iterations=count), SIGMA).solution)
    passes.append(found.solution)
    steps = [
        float(np.linalg.norm(new.triangle @ (new.values - old.values))) / np.sqrt(len(new.values))
        for old, new in pairwise(passes)
    ]
    assert found.converged and len(steps) > 2
    assert steps[-1] < 1e-3 <= steps[-2]
    D = regressor(truth(), motion)[:, :, list(start.columns)] / start.row_sigma[:, None]
    w = how.weight(scaled(motion, start.columns, passes[-2].values, start.row_sigma))
    information = np.einsum("nj,njp,njq->pq", w, D, D)
    own = np.sqrt(np.diag(information))
    T = found.solution.triangle / own
    assert pytest.approx(information / np.outer(own, own), abs=1e-9) == T.T @ T


def test_notes_state_the_share_of_low_weights_of_the_worst_row() -> None:
    """Tukey's weight (1 − v)² is below a half where v = (u/c)² > 1 − √½."""
    motion = spoilt(np.random.default_rng(2))
    fit = identify(truth(), motion, Robust("tukey"))
    u = scaled(motion, fit.base.columns, fit.values, np.array([r.sigma for r in fit.rows]))
    share = (np.abs(u) > 4.685 * np.sqrt(1.0 - np.sqrt(0.5))).mean(axis=0)
    (note,) = (n for n in fit.notes if "count less than half" in n)
    match = re.search(r"up to ([0-9.]+) % \(row '(.*)'\)", note)
    assert match is not None and float(match[1]) == pytest.approx(100.0 * share.max(), abs=0.15)
    assert match[2] == truth().rows[int(share.argmax())]


def test_residuals_are_smaller_than_errors_by_what_the_fit_took() -> None:
    """75 samples of four rows for 30 parameters: scales are medians over √(1 − p/n) = .95; 3 %: of 75 sizes a median lies in a gap."""
    motion = noisy(np.random.default_rng(8))
    samples = stream(truth(), motion, settings=IdentifySettings(sampling=Sampling(decimate=20)))
    start = solve(samples.observe())
    found = reweighted(samples, start, Robust()).solution
    u = scaled(motion, start.columns, found.values, np.ones(4))[::20]
    left = np.sqrt(1.0 - len(found.values) / u.size)
    assert left < 0.96
    assert found.row_sigma == pytest.approx(MAD_TO_SIGMA * np.median(np.abs(u), axis=0) / left, rel=0.03)


def test_exact_data_have_the_scale_of_rounding_and_end_at_once() -> None:
    """Without noise a scale is 1e-7 of the measurement's rms, and no step can be smaller than rounding, whatever is asked for."""
    motion = clean()
    samples = stream(truth(), motion)
    found = reweighted(samples, solve(samples.observe()), Robust(tolerance=1e-300))
    assert found.converged
    rms = np.sqrt((forces(motion) ** 2).mean(axis=0))
    assert found.solution.row_sigma == pytest.approx(EXACT_RESIDUAL * rms, rel=1e-9)
