"""Runs of equal readings that noise, speed or a way to go rules out at rest, and rests of coarse and noisy sensors."""

import math

import numpy as np
import pytest

from veridyn.signals.hangs import ROUNDING, hangs, noise

CHANCE = 1e-9
T = np.arange(400) / 200.0
STEP = 2.0 * np.pi / 4096.0


def brakes(seed: int, length: int, grain: float, sigma: float) -> np.ndarray:
    """A move of least jerk and a rest that begins `length` samples before the end, rounded to a grain, with noise before rounding."""
    rng = np.random.default_rng(seed)
    s = np.clip(1.0 + (np.arange(400.0) - (400 - length)) / (200.0 * rng.uniform(0.6, 2.0)), 0.0, 1.0)
    x = rng.uniform(-1.0, 1.0) + rng.uniform(-2.0, 2.0) * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return grain * np.round((x + sigma * rng.standard_normal(400)) / grain)


def called(x: np.ndarray, grain: float) -> bool:
    run = int(np.argmax(x[::-1] != x[-1]))
    return hangs(x, len(x) - run, grain, CHANCE)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
def test_a_machine_that_brakes_to_a_rest_does_not_hang(share: float) -> None:
    """Coarse steps show as noise of their own: at half a step per reading the third differences are two steps each."""
    assert not any(called(brakes(seed, 20 + seed % 80, STEP, share * STEP), STEP) for seed in range(300))


def test_a_slow_coarse_encoder_shows_no_noise_but_its_rounding() -> None:
    """Half a step per reading: rounding repeats itself in pairs, which looks like white noise of 0.66 steps, the most it can."""
    pairs = STEP * np.round(0.5 * np.arange(101.0) + 0.25)
    assert pytest.approx(1.4826 * 2.0 / math.sqrt(20.0)) == ROUNDING
    assert noise(pairs) == pytest.approx(ROUNDING * STEP)
    x = np.append(pairs, np.full(80, pairs[-1]))
    assert not hangs(x, 100, STEP, CHANCE)


def test_noise_is_seen_with_its_size() -> None:
    rng = np.random.default_rng(0)
    for sigma in (2.0, 5.0, 20.0):
        found = [noise(np.round(0.7 * np.arange(101.0) + sigma * rng.standard_normal(101))) for _ in range(200)]
        assert np.median(found) == pytest.approx(sigma, rel=0.1)


def test_noise_that_is_gone_is_a_sensor_that_hangs() -> None:
    """Also where the machine turns round, and has no way to go."""
    x = 0.5 * np.cos(2.0 * np.pi * 0.25 * T) + 1e-3 * np.random.default_rng(1).standard_normal(400)
    x[380:] = x[380]
    assert hangs(x, 380, 1e-6, CHANCE) and not hangs(x[:382], 380, 1e-6, CHANCE)


def test_noise_of_as_much_as_a_step_does_not_stop_dead() -> None:
    """Five equal readings behind two large steps come by chance now and then: noise makes both."""
    k = np.arange(100_000.0)
    x = STEP * np.round(20.0 * np.sin(1e-3 * k) + np.random.default_rng(2).standard_normal(len(k)))
    ends = 4 + np.flatnonzero((np.lib.stride_tricks.sliding_window_view(np.diff(x), 4) == 0.0).all(axis=1))
    assert len(ends) > 500
    assert not any(hangs(x[k - 104 : k + 1], 100, STEP, CHANCE) for k in ends[ends > 104].tolist())


def test_a_signal_that_stops_dead_or_had_a_way_to_go_hangs() -> None:
    moving = np.sin(2.0 * np.pi * 0.25 * T)
    moving[320:] = moving[320]
    assert hangs(moving[:326], 320, 0.0, CHANCE)
    slowing = np.where(T < 1.6, 0.5 * np.cos(0.4 * np.pi * T), 0.5 * np.cos(0.4 * np.pi * 1.6))
    assert hangs(slowing, 320, 0.0, CHANCE)
