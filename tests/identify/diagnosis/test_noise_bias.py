"""Encoders of 16 bits: the default low-pass removes the bias of their noise, and without it the bias is foretold and reported."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import NOISE, drawn, path, truth
from veridyn.errors import IdentificationWarning
from veridyn.identify.position_noise import noise_bias
from veridyn.identify.sampling import Sampling

QUANTUM = 2.0 * np.pi / 2**16
HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)}, trim=50)
SEEDS = range(40, 46)


@cache
def recorded(rate: float, seed: int) -> vd.Experiment:
    t = np.arange(int(15.0 * rate)) / rate
    m = vd.Motion(t, *path().at(t))
    f = vd.inverse_dynamics(truth(), m) + NOISE * np.random.default_rng(seed).normal(size=m.q.shape)
    q = QUANTUM * np.round(m.q / QUANTUM)
    values = {f"q.q{k + 1}": q[:, k] for k in range(4)} | {f"force.q{k + 1}": f[:, k] for k in range(4)}
    return vd.Experiment.from_arrays(t, values, {n: "rad" if n[0] == "q" else "N*m" for n in values}, "bench")


def errors(signals: vd.Signals | None, rate: float, method: object = "wls", **how: object) -> np.ndarray:
    """(seeds, parameters): errors in deviations."""
    out = []
    for seed in SEEDS:
        motion = vd.motion(drawn(), recorded(rate, seed), signals)
        fit = vd.identify(drawn(), motion, method, sampling=HOW, **how)
        out.append((fit.values - fit.base.reduce(truth().parameters.values)) / fit.sigma)
    return np.array(out)


@pytest.mark.parametrize("rate", [100.0, 1000.0])
def test_the_default_is_not_biased_and_covers_the_truth(rate: float) -> None:
    raw = errors(vd.Signals(lowpass=None), rate, diagnose="off")
    found = errors(None, rate)  # and no warning
    print(
        f"{rate:g} Hz: largest mean error {np.abs(raw.mean(0)).max():.3g} σ raw, {np.abs(found.mean(0)).max():.2f} σ by default"
    )
    assert np.abs(raw.mean(axis=0)).max() > 8.0
    assert np.abs(found.mean(axis=0)).max() < 2.0  # the mean of six has a deviation of 0.41
    assert np.mean(np.abs(found) < 2.0) > 0.85


def test_the_bias_is_foretold_and_instruments_are_proposed_which_have_none() -> None:
    raw = vd.Signals(lowpass=None)
    motion = vd.motion(drawn(), recorded(100.0, 40), raw)
    with pytest.warns(IdentificationWarning, match=r"noise in the regressor biases[\s\S]*Instrumental\(reference=…\)"):
        fit = vd.identify(drawn(), motion, sampling=HOW)
    bias = noise_bias(fit, motion)
    assert bias is not None
    foretold = bias / fit.sigma
    seen = errors(raw, 100.0, diagnose="off").mean(axis=0)
    large = np.abs(seen) > 5.0
    assert large.any() and np.allclose(foretold[large] / seen[large], 1.0, atol=0.25)
    instruments = errors(raw, 100.0, vd.Instrumental(reference=path()))  # and no warning
    assert np.sqrt(np.mean(instruments**2)) < 1.3


def test_where_nothing_is_known_of_noise_nothing_is_foretold() -> None:
    t = 0.01 * np.arange(1500)
    m = vd.Motion(t, *path().at(t))
    m = vd.Motion(t, m.q, m.qd, m.qdd, forces=vd.inverse_dynamics(truth(), m))
    assert noise_bias(vd.identify(drawn(), m, sampling=HOW), m) is None
