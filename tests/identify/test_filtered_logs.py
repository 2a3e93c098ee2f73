"""Fits from filtered logs that Pinocchio made, with default settings: true values lie within two deviations as often as they should."""

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import machine, recording, three_joints, truth

LOW, HIGH = 0.91, 0.985  # share of the true values within two stated deviations; of normal errors 0.954
NORMAL = 0.9545
STANDARD_ERRORS = 3.0  # of a binomial share, by which few logs widen the band


def deviations(lowpass: float, seeds: range) -> np.ndarray:
    """(estimate − truth)/σ (seeds, parameters) of a new motion and new noise for every seed."""
    links = three_joints()
    arm, true = machine(links), truth(links)
    values = np.array([true[name] for name in arm.parameters.names])
    out = []
    for seed in seeds:
        log = recording(links, np.random.default_rng(seed)).log
        fit = vd.identify(arm, vd.motion(arm, log, vd.Signals(lowpass=lowpass)), diagnose="off")
        out.append((fit.values - fit.base.matrix @ values) / fit.sigma)
    return np.array(out)


@pytest.mark.parametrize("lowpass", [6.0, 15.0])
def test_few_filtered_logs_are_within_their_deviations(lowpass: float) -> None:
    z = deviations(lowpass, range(500, 508))
    widened = STANDARD_ERRORS * np.sqrt(NORMAL * (1.0 - NORMAL) / z.size)
    assert LOW - widened < np.mean(np.abs(z) < 2.0) < HIGH + widened
    assert np.abs(z).max() < 5.0


@pytest.mark.slow
@pytest.mark.parametrize("lowpass", [6.0, 15.0, 20.0])
def test_a_hundred_filtered_logs_are_within_their_deviations(lowpass: float) -> None:
    z = deviations(lowpass, range(7000, 7100))
    assert z.shape == (100, 21)
    assert LOW < np.mean(np.abs(z) < 2.0) < HIGH
