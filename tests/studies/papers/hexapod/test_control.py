"""Identified from a run under control: near the truth, good for feed-forward, and with a bias that is shown and not hidden."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.base import base_parameters
from veridyn.identify.result import Fit
from veridyn.machines.hexapod import hexapod, prior, truth
from veridyn.machines.hexapod_experiment import SensorNoise, controlled, recorded, task
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.studies.papers.hexapod.control import loop_bias, period_fit, tracking

NOISE = SensorNoise()


def wide() -> FourierTrajectory:
    """A motion that uses the workspace, not designed for anything: five harmonics of random amplitudes."""
    rng = np.random.default_rng(11)
    reach = np.array([0.05, 0.05, 0.05, 0.12, 0.12, 0.12])[:, None] / np.sqrt(np.arange(1, 6))
    sine, cosine = (reach * rng.uniform(-1, 1, (6, 5)) for _ in range(2))
    return FourierTrajectory(np.array([0.0, 0.0, -0.95, 0.0, 0.0, 0.0]), sine, cosine, 0.32)


@pytest.fixture(scope="module")
def fit() -> Fit:
    rng = np.random.default_rng(5)
    made = controlled(task(wide().at, 1.0 / 0.32, prior()), 4, NOISE, rng)[0]
    return period_fit(recorded(made, NOISE, rng, skip=1.0 / 0.32, fresh=False), 0.32, 30)


def test_identified_under_control(fit: Fit) -> None:
    """24 parameters; the mass of the platform to 3 %, dry friction of the strongest drive to 10 %; no error beyond 8 deviations."""
    assert fit.base.count == 24
    true = dict(zip(fit.names, fit.base.reduce(truth().parameters.values), strict=True))
    found = dict(zip(fit.names, fit.values, strict=True))
    assert found["M_ER"] == pytest.approx(true["M_ER"], rel=0.03)
    assert found["r3"] == pytest.approx(true["r3"], rel=0.10)
    away = np.abs(fit.values - np.array(list(true.values()))) / fit.sigma
    assert away.max() < 8.0


def test_feedforward(fit: Fit) -> None:
    """The bars of the paper's Fig. 6 as asked here: half of the a-priori model's error, a fifth of control alone, at the highest speed."""
    models = {"none": None, "prior": prior(), "identified": hexapod().with_parameters(fit.standard)}
    found = tracking(models, NOISE, np.random.default_rng(6), (1.2,))
    print({name: f"{1e6 * found.at(name):.1f} µm" for name in models})
    assert found.at("identified") <= 0.5 * found.at("prior")
    assert found.at("identified") <= 0.2 * found.at("none")
    t, error = found.traces["identified"]
    assert len(t) == len(error) == 800


@pytest.mark.slow
def test_bias_of_the_loop() -> None:
    """Noise in the loop bends estimates from unfiltered positions; filtered ones stay within a few deviations."""
    found = loop_bias(wide().at, 0.32, 30, NOISE, np.random.default_rng(7), prior(), trials=2)
    assert found.names == base_parameters(hexapod()).names
    filtered, raw = (np.sqrt(np.mean(x**2)) for x in (found.fed_back, found.raw))
    print(f"bias, rms in deviations: filtered {filtered:.1f}, raw {raw:.1f}")
    assert filtered < raw
