"""Stiffness from the motor encoder alone, against an arm that MuJoCo simulated and the closed form of its two masses."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from identify.flexible import flexible_arm as arm
from veridyn.errors import DataError
from veridyn.identify.flexible.one_encoder import ResonanceSettings, identify_resonance

BAND = ResonanceSettings(low=2.0, high=30.0)
GRAVITY = arm.MASS * 9.81 * arm.REACH  # N·m/rad about the hanging pose
LINES = np.arange(1.0, 32.0, 0.125)
PHASES = 2 * np.pi * np.random.default_rng(6).random(len(LINES))
STEPS_PER_S = 4.0 * arm.RATE  # of the simulation
PERIOD = np.arange(round(8.0 * STEPS_PER_S)) / STEPS_PER_S  # the lines are multiples of 1/8 Hz
SINES = np.sum([np.sin(2 * np.pi * f * PERIOD + phase) for f, phase in zip(LINES, PHASES, strict=True)], axis=0)


def shaken(t: float, theta: float, speed: float) -> float:
    """Many sines, and a weak controller that keeps the pose."""
    hold = 100.0 * (-np.pi / 2 - theta) - 10.0 * speed
    return float(SINES[round(t * STEPS_PER_S) % len(SINES)]) + hold


@pytest.fixture(scope="module")
def log() -> vd.Experiment:
    t, theta, q, torque = arm.simulated(shaken, 24.0)
    made = arm.log(t, theta, q, torque, noise=2e-6)
    return vd.Experiment({n: c for n, c in made.channels.items() if n != "q.hip"}, "shaken")


def test_stiffness_and_resonance(log):
    """Stiffness within 2 % and resonance within 1 %, from a first value a third too low."""
    fit = identify_resonance(arm.machine(), log, "hip", settings=BAND)
    print(fit.summary())
    # eigenvalues of the two masses, gravity on the link included
    A = np.array([[arm.STIFFNESS, -arm.STIFFNESS], [-arm.STIFFNESS, arm.STIFFNESS + GRAVITY]])
    M = np.array([arm.ROTOR, arm.ZZ])
    resonance = np.sqrt(np.linalg.eigvals(A / M[:, None]).max()) / (2 * np.pi)
    assert fit.stiffness == pytest.approx(arm.STIFFNESS, rel=0.02)
    assert fit.resonance == pytest.approx(resonance, rel=0.01)
    assert fit.antiresonance == pytest.approx(np.sqrt((arm.STIFFNESS + GRAVITY) / arm.ZZ) / (2 * np.pi), rel=0.01)
    assert fit.link_inertia == pytest.approx(arm.ZZ, rel=0.03)
    assert 0.0 < fit.stiffness_sigma < 0.05 * fit.stiffness


def test_bad_input_is_named(log):
    with pytest.raises(DataError, match="no resonance lies in the excited band"):
        identify_resonance(arm.machine(), log, "hip", settings=ResonanceSettings(low=1.0, high=5.0))
    with pytest.raises(DataError, match="coherent at"):
        identify_resonance(arm.machine(), log, "hip", settings=ResonanceSettings(low=200.0, high=201.0))
    with pytest.raises(DataError, match="no flexible joint"):
        identify_resonance(arm.machine(), log, "knee")
    with pytest.raises(DataError, match="is unknown"):
        identify_resonance(arm.machine(inertia=float("nan")), log, "hip")
    short = vd.Experiment({n: c for n, c in log.channels.items() if n != "force.hip_motor"}, "shaken")
    with pytest.raises(DataError, match="needed, and missing"):
        identify_resonance(arm.machine(), short, "hip")
