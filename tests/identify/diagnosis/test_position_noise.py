"""Noise of positions in the columns: the stated bias against the mean error of many logs; steps of encoders against those that rounded."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import NOISE, drawn, path, truth
from veridyn.errors import DataError, IdentificationWarning
from veridyn.identify.diagnosis.position_noise import (
    beyond_noise,
    noise_behind,
    noise_bias,
    position_noise,
    with_position_noise,
)
from veridyn.identify.diagnosis.structure import LATE_FORCE
from veridyn.identify.estimate import identify
from veridyn.identify.logged import motion
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.finding import FoundCause, Mistake
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals

RATE, STEP = 500.0, 2.0 * np.pi / 2**14
SIGNALS = Signals(lowpass=20.0, trim=0.2)
NAMES = truth().coordinates
QUANTUM = 2.0 * np.pi / 2**16
HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)}, trim=50)
SEEDS = range(40, 46)


@cache
def exact() -> Motion:
    t = np.arange(0.0, 6.0, 1.0 / RATE)
    m = Motion(t, *path().at(t))
    return Motion(m.t, m.q, m.qd, m.qdd, forces=inverse_dynamics(truth(), m))


def recorded(rng: np.random.Generator, step: float = STEP) -> Experiment:
    """Positions rounded to steps of an encoder whose zero is drawn, forces with little noise."""
    m = exact()
    assert m.forces is not None
    zero = rng.uniform(0.0, step, 4)
    q = step * np.round((m.q - zero) / step) + zero if step > 0.0 else m.q
    forces = m.forces + 0.1 * NOISE * rng.normal(size=m.forces.shape)
    values = {f"q.{c}": q[:, k] for k, c in enumerate(NAMES)} | {
        f"force.{c}": forces[:, k] for k, c in enumerate(NAMES)
    }
    units = {f"q.{c}": "rad" for c in NAMES} | {f"force.{c}": "N*m" for c in NAMES}
    return Experiment.from_arrays(m.t, values, units)


def fitted(log: Experiment, method: str = "wls") -> Fit:
    return identify(
        truth(),
        motion(truth(), log, SIGNALS),
        method,
        IdentifySettings(covariance="white", sampling=Sampling()),
        diagnose="off",
    )


@pytest.mark.parametrize("method", ["wls", pytest.param("ols", marks=pytest.mark.slow)])
def test_the_bias_is_the_mean_error_of_many_logs(method: str) -> None:
    """25 logs with encoders of 14 bit, against the same logs unrounded (the filter has a bias of its own): the mean difference is some
    three deviations, rms over parameters, and what one log states of it is off by less than 30 % of that."""
    errors = []
    for seed in range(25):
        fit, plain = (fitted(recorded(np.random.default_rng(seed), step), method) for step in (STEP, 0.0))
        errors.append(fit.values - plain.values)
    log = recorded(np.random.default_rng(100))
    fit = fitted(log, method)
    found = position_noise(truth(), log, SIGNALS, fit, sigma={c: STEP / np.sqrt(12.0) for c in NAMES})
    mean = np.mean(errors, axis=0)
    size, off = (float(np.sqrt(np.mean((x / fit.sigma) ** 2))) for x in (mean, found.bias - mean))
    print(f"bias of {size:.2f} deviations, stated to {off:.2f}")
    assert size > 2.0 and off < 0.3 * size


def test_behind_a_filter_of_the_equations_the_bias_is_that_of_the_noise_it_leaves() -> None:
    """The same through equations behind a second low-pass of the same band; the noise is that of the spectrum."""
    how = Sampling(filter=Butterworth(20.0), decimate=10)

    def through(log: Experiment) -> tuple[Fit, Motion]:
        m = motion(truth(), log, SIGNALS)
        return identify(truth(), m, settings=IdentifySettings(covariance="white", sampling=how), diagnose="off"), m

    errors = []
    for seed in range(25):
        fit, plain = (through(recorded(np.random.default_rng(seed), step))[0] for step in (STEP, 0.0))
        errors.append(fit.values - plain.values)
    fit, m = through(recorded(np.random.default_rng(100)))
    rows = [r.row for r in fit.rows]
    noise = noise_behind([m], how, rows)
    assert noise is not None and m.qdd_noise is not None
    assert noise_behind([m], Sampling(), rows) == pytest.approx(np.tile(m.qdd_noise, (4, 1)))
    mean, bias, all_of_it = np.mean(errors, axis=0), noise_bias(fit, m, noise), noise_bias(fit, m)
    assert bias is not None and all_of_it is not None
    size, off, without = (float(np.sqrt(np.mean((x / fit.sigma) ** 2))) for x in (mean, bias - mean, all_of_it))
    print(
        f"bias of {size:.2f} deviations, stated to {off:.2f}; {without:.2f} with all the noise; share {np.mean(noise / m.qdd_noise):.2f}"
    )
    assert size > 0.7 and off < 0.3 * size and without > 1.5 * size


def test_deviations_with_the_bias_hold_and_the_method_without_it_is_named(tmp_path: Path) -> None:
    log = recorded(np.random.default_rng(3))
    fit = fitted(log)
    found = position_noise(truth(), log, SIGNALS, fit, sigma={c: STEP / np.sqrt(12.0) for c in NAMES})
    with pytest.warns(IdentificationWarning, match=r"is in the columns[\s\S]*Instrumental\(reference=…\)"):
        wide = with_position_noise(fit, found)
    off = fit.values - fit.base.reduce(truth().parameters.values)
    before, after = np.mean((off / fit.sigma) ** 2), np.mean((off / wide.sigma) ** 2)
    print(f"mean z² {before:.2f} without the bias, {after:.2f} with it")
    assert before > 1.5 and after < 1.5
    assert wide.budget["noise of positions"] == pytest.approx(np.abs(found.bias))
    squares = sum(part**2 for part in wide.budget.values())
    assert np.sqrt(squares) == pytest.approx(wide.sigma) and wide.budget["noise"] == pytest.approx(fit.sigma)
    back = vd.load(vd.save(wide, tmp_path / "fit.json"))
    assert back.position_bias == pytest.approx(wide.position_bias)


def test_what_cannot_be_stated_is_refused() -> None:
    log = recorded(np.random.default_rng(0))
    fit = fitted(log)
    with pytest.raises(DataError, match=r"no channel 'q\.q9'[\s\S]*not negative"):
        position_noise(truth(), log, SIGNALS, fit, sigma={"q9": 1.0, "q1": -1.0})


@cache
def recorded_noisy(rate: float, seed: int) -> vd.Experiment:
    t = np.arange(int(15.0 * rate)) / rate
    m = vd.Motion(t, *path().at(t))
    f = vd.inverse_dynamics(truth(), m) + NOISE * np.random.default_rng(seed).normal(size=m.q.shape)
    q = QUANTUM * np.round(m.q / QUANTUM)
    values = {f"q.q{k + 1}": q[:, k] for k in range(4)} | {f"force.q{k + 1}": f[:, k] for k in range(4)}
    return vd.Experiment.from_arrays(t, values, {n: "rad" if n[0] == "q" else "N*m" for n in values}, "bench")


def errors(
    signals: vd.Signals | None, rate: float, method: object = "wls", covariance: str = "white", **how: object
) -> np.ndarray:
    """(seeds, parameters): errors in deviations."""
    out = []
    for seed in SEEDS:
        motion = vd.motion(drawn(), recorded_noisy(rate, seed), signals)
        fit = vd.identify(
            drawn(), motion, method, settings=vd.IdentifySettings(covariance=covariance, sampling=HOW), **how
        )
        out.append((fit.values - fit.base.reduce(truth().parameters.values)) / fit.sigma)
    return np.array(out)


@pytest.mark.parametrize("rate", [100.0, pytest.param(1000.0, marks=pytest.mark.slow)])
def test_the_default_is_not_biased_and_covers_the_truth(rate: float) -> None:
    raw = errors(vd.Signals(lowpass=None), rate, diagnose="off")
    found = errors(None, rate, covariance="auto")  # and no warning
    print(
        f"{rate:g} Hz: largest mean error {np.abs(raw.mean(0)).max():.3g} σ raw, {np.abs(found.mean(0)).max():.2f} σ by default"
    )
    assert np.abs(raw.mean(axis=0)).max() > 8.0
    assert np.abs(found.mean(axis=0)).max() < 2.0  # the mean of six has a deviation of 0.41
    assert np.mean(np.abs(found) < 2.0) > 0.85


def test_the_bias_is_foretold_and_instruments_are_proposed_which_have_none() -> None:
    raw = vd.Signals(lowpass=None)
    motion = vd.motion(drawn(), recorded_noisy(100.0, 40), raw)
    with pytest.warns(IdentificationWarning, match=r"noise in the regressor biases[\s\S]*Instrumental\(reference=…\)"):
        fit = vd.identify(drawn(), motion, settings=vd.IdentifySettings(covariance="white", sampling=HOW))
    bias = noise_bias(fit, motion)
    assert bias is not None
    foretold = bias / fit.sigma
    seen = errors(raw, 100.0, diagnose="off").mean(axis=0)
    large = np.abs(seen) > 5.0
    assert large.any() and np.allclose(foretold[large] / seen[large], 1.0, atol=0.25)
    instruments = errors(raw, 100.0, vd.estimators.Instrumental(reference=path()))  # and no warning
    assert np.sqrt(np.mean(instruments**2)) < 1.3


def test_a_delay_that_moves_less_than_noise_of_positions_is_not_told_from_it() -> None:
    motion = vd.motion(drawn(), recorded_noisy(100.0, 40), vd.Signals(lowpass=None))
    fit = vd.identify(drawn(), motion, settings=vd.IdentifySettings(covariance="white", sampling=HOW), diagnose="off")
    bias = noise_bias(fit, motion)
    assert bias is not None
    largest = float(np.max(np.abs(bias) / fit.sigma))

    def late(shift: float) -> Mistake:
        measured = FoundCause(cause=LATE_FORCE, place="forces", rank=1, shift=shift)
        return replace(Mistake.of(LATE_FORCE, "late", "forces"), measured=measured)

    less, more, other = late(0.9 * largest), late(1.1 * largest), Mistake.of("another", "cause", "q1")
    noise = noise_behind([motion], HOW, fit.described.coordinates)
    assert beyond_noise([less, more, other], fit, motion, noise, LATE_FORCE) == [more, other]
    assert beyond_noise([less, other], fit, motion, None, LATE_FORCE) == [less, other]


def test_where_nothing_is_known_of_noise_nothing_is_foretold() -> None:
    t = 0.01 * np.arange(1500)
    m = vd.Motion(t, *path().at(t))
    m = vd.Motion(t, m.q, m.qd, m.qdd, forces=vd.inverse_dynamics(truth(), m))
    assert noise_bias(vd.identify(drawn(), m, settings=vd.IdentifySettings(sampling=HOW)), m) is None
