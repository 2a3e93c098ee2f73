"""Noise and band of signals whose noise and band are known."""

import numpy as np
import pytest

from veridyn.signals.butterworth import Butterworth
from veridyn.signals.derivative import derivative
from veridyn.signals.noise_floor import chosen_cutoff, noise_floor

RATE = 500.0
T = np.arange(8000) / RATE
MOTION = np.sin(2 * np.pi * 0.3 * T) + 0.3 * np.sin(2 * np.pi * 2.0 * T + 1.0)


@pytest.mark.parametrize("sigma", [1e-6, 1e-4, 1e-2])
def test_the_density_of_white_noise_and_the_band_of_the_motion(sigma: float) -> None:
    x = MOTION + sigma * np.random.default_rng(0).normal(size=len(T))
    found = noise_floor(x, RATE)
    assert found is not None
    assert found.density == pytest.approx(2.0 * sigma**2 / RATE, rel=0.2)  # white: σ² over the band to rate/2
    assert 2.0 < found.band < 8.0
    cutoff = chosen_cutoff([found], RATE)
    assert cutoff is not None and 2.5 < cutoff < 12.0


def test_noise_of_a_quantised_signal_is_a_twelfth_of_its_square() -> None:
    quantum = 2 * np.pi / 2**16
    found = noise_floor(np.round(MOTION / quantum) * quantum, RATE)
    assert found is not None and found.density == pytest.approx(2.0 * quantum**2 / 12.0 / RATE, rel=0.3)


@pytest.mark.parametrize("low", [None, Butterworth(20.0)])
@pytest.mark.parametrize("order", [1, 2])
def test_noise_of_a_derivative_is_what_differentiating_noise_gives(low: Butterworth | None, order: int) -> None:
    from veridyn.signals.butterworth import zero_phase

    noise = 1e-4 * np.random.default_rng(1).normal(size=len(T))
    found = noise_floor(MOTION + noise, RATE)
    through = noise if low is None else zero_phase(noise, RATE, low)
    measured = np.std(derivative(through, RATE, order)[200:-200])
    assert found.derivative_noise(order, "compensated", low) == pytest.approx(measured, rel=0.15)


def test_a_line_of_the_mains_is_not_motion() -> None:
    x = MOTION + 1e-4 * np.random.default_rng(2).normal(size=len(T)) + 1e-4 * np.sin(2 * np.pi * 50.0 * T)
    assert noise_floor(x, RATE).band < 8.0


def test_what_fills_the_band_is_not_filtered_and_short_or_constant_signals_have_no_floor() -> None:
    broad = np.cumsum(np.random.default_rng(3).normal(size=len(T)))
    assert chosen_cutoff([noise_floor(broad, RATE)], RATE) is None or noise_floor(broad, RATE).band > 40.0
    assert noise_floor(MOTION[:100], RATE) is None and noise_floor(np.ones(8000), RATE) is None
