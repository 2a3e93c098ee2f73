"""A wave along the way of a joint, put on recordings whose other errors are noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.flexible import flexible_arm as arm
from veridyn.identify.flexible.recording import joint_recording, samples_of
from veridyn.identify.flexible.ripple import find_ripple
from veridyn.identify.flexible.two_encoders import identify_flexible

WAVE, AMPLITUDE, NOISE = 290.0, 1e-4, 2e-6  # 1/rad, rad, rad


@pytest.fixture(scope="module")
def run():
    return arm.simulated(slowly, 12.0)


def slowly(t: float, theta: float, speed: float) -> float:
    """Both ways at up to 0.4 rad/s, faster and slower."""
    wanted = -np.pi / 2 + 0.25 * np.sin(0.9 * t) + 0.05 * np.sin(2.3 * t)
    rate = 0.225 * np.cos(0.9 * t) + 0.115 * np.cos(2.3 * t)
    return 3000.0 * (wanted - theta) + 200.0 * (rate - speed)


def waved(log: vd.Experiment, phase: float) -> vd.Experiment:
    """The log with a link encoder that is off by a wave."""
    link, motor = log["q.hip"], log["q.hip_motor"]
    return log.replacing(replace(link, values=link.values - AMPLITUDE * np.cos(WAVE * motor.values + phase)))


def test_a_wave_is_found_and_predicted_with_another_phase(run) -> None:
    """Wave number and amplitude; another part of the motion is predicted four times as well as without it."""
    first, second = (tuple(x[part] for x in run) for part in (slice(0, 7000, 4), slice(5000, None, 4)))
    fit = identify_flexible(arm.machine(), waved(arm.log(*first, delay=2.8e-3, noise=NOISE), 0.4))
    joint = fit.joints["hip"]
    assert joint.ripple is not None
    assert joint.ripple.wave == pytest.approx(WAVE, rel=2e-3)
    assert joint.ripple.amplitude == pytest.approx(AMPLITUDE, rel=0.05)
    assert "ripple" in fit.summary()
    other = waved(arm.log(*second, delay=2.8e-3, noise=NOISE, seed=1), 2.0)
    assert joint.std_percent(other, moving=True) < 0.25 * replace(joint, ripple=None).std_percent(other, moving=True)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 8), marks=pytest.mark.slow)])
def test_noise_is_no_wave(run, seeds: range) -> None:
    """White noise: what the best of hundreds of waves explains is paid for. Two recordings are quick, six more slow."""
    log = arm.log(*(x[::8] for x in run), delay=2.8e-3, noise=NOISE)
    samples = samples_of(joint_recording(log, "hip"), arm.ROTOR, 15.0, step=1)
    for seed in seeds:
        white = np.random.default_rng(seed).normal(size=len(samples.kept))
        assert find_ripple([samples], [1e-5 * samples.passed(white)[samples.kept]], 3.0, 15.0, 0.05) is None
