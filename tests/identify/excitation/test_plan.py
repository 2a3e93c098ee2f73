"""What a plan promises: information with noise across rows and in time, priors, efficiency."""

from __future__ import annotations

import numpy as np
import pytest

from identify.smooth_arm import truth
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.excitation.design import design_excitation
from veridyn.identify.excitation.interior import Barrier
from veridyn.identify.excitation.plan import Noise, information_of
from veridyn.identify.excitation.shape import Fourier
from veridyn.signals.trajectory import JointLimits

ARM = JointLimits(np.full(4, -2.0), np.full(4, 2.0), np.full(4, 2.0), np.full(4, 8.0))


def test_information_is_that_of_the_whitened_equations() -> None:
    rng = np.random.default_rng(0)
    A, L = rng.normal(size=(20, 3, 5)), np.tril(rng.normal(size=(3, 3))) + 2.0 * np.eye(3)
    C = L @ L.T
    noise = NoiseModel((1.0 - 0.25) * C, 0.5 * np.eye(3)[None])
    W = noise.whitened(A).reshape(-1, 5)
    assert information_of(A, Noise(C), 0.5) == pytest.approx(W.T @ W)


def test_priors_and_promises() -> None:
    values = truth().parameters.values.copy()
    values[truth().parameters.index("ZZ4")] = np.nan
    machine = truth().with_parameters(values)
    plan = design_excitation(machine, ARM, Fourier(harmonics=2), starts=1, barrier=Barrier(iterations=3), periods=4)
    lost = [name for name, prior in zip(plan.names, plan.priors, strict=True) if np.isnan(prior)]
    assert lost and all(
        "ZZ4" in relation for relation in plan.base.relations() for name in lost if relation.startswith(name + " ")
    )
    assert np.isfinite(plan.relative_sigma).sum() == len(plan.names) - len(lost)
    assert plan.efficiency(plan) == pytest.approx(1.0)
    longer = design_excitation(machine, ARM, Fourier(harmonics=2), starts=1, barrier=Barrier(iterations=3), periods=16)
    assert longer.sigma == pytest.approx(plan.sigma / 2.0)
    t, x, *_ = plan.samples()
    assert len(t) == len(x) == plan.skipped + 4 * round(plan.rate * plan.trajectory.period)
    assert plan.reference.at(0.0)[0] == pytest.approx(x[0])
