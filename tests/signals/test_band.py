"""Bands of sensors: against scipy's analogue filters, closed forms of lines and sines, and the zero-phase filter of the house."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.signal import butter, freqs, lsim

from veridyn.errors import DataError
from veridyn.signals.band import Band, equalised, noise_gain, within
from veridyn.signals.butterworth import Butterworth, zero_phase

RATE = 500.0
T = np.arange(4000) / RATE


def analogue(order: int) -> tuple[np.ndarray, np.ndarray]:
    """scipy's filter of 10 Hz: numerator and denominator."""
    made = butter(order, 2 * np.pi * 10.0, analog=True)
    assert isinstance(made, tuple)
    return np.asarray(made[0]), np.asarray(made[1])


def band_limited(rng: np.random.Generator, highest: float) -> np.ndarray:
    """A signal of many sines below `highest` Hz."""
    f = np.linspace(0.2, highest, 40)
    return (np.sin(2 * np.pi * np.outer(T, f) + rng.uniform(0, 6, 40)) / np.sqrt(f)).sum(axis=1)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_response_is_scipy_s_analogue_butterworth(order: int) -> None:
    f = np.array([0.0, 1.0, 9.0, 10.0, 40.0, 200.0])
    b, a = analogue(order)
    assert np.allclose(Band(10.0, order).response(f), freqs(b, a, 2 * np.pi * f)[1], rtol=1e-12)
    slow = 1e-3
    assert Band(10.0, order).delay == pytest.approx(
        -np.angle(Band(10.0, order).response(slow)) / (2 * np.pi * slow), rel=1e-6
    )


def test_a_sensor_lags_as_the_differential_equation_of_its_filter() -> None:
    x = band_limited(np.random.default_rng(1), 15.0) + 3.0 * T
    b, a = analogue(2)
    fine = np.linspace(0.0, T[-1], 16 * (len(T) - 1) + 1)
    # lsim holds its input by straight lines; sixteen times finer its own error is 1e-5 at 15 Hz.
    _, y, _ = lsim((b, a), CubicSpline(T, x)(fine), fine)
    seen = within(x, RATE, Band(10.0))
    assert np.abs(seen - y[::16])[500:].max() < 1e-4 * np.abs(x).max()
    assert np.abs(seen - x)[500:].max() > 0.1  # and that is far from the truth


def test_a_line_comes_late_by_the_delay() -> None:
    x = 5.0 - 2.0 * T
    assert np.allclose(within(x, RATE, Band(10.0)), 5.0 - 2.0 * (T - Band(10.0).delay), atol=1e-12)


def test_equalised_signals_of_different_sensors_are_one_again() -> None:
    x = band_limited(np.random.default_rng(2), 25.0)
    common = Butterworth(40.0)
    wanted = zero_phase(x, RATE, common)
    middle = slice(200, -200)
    for cutoff in (10.0, 15.0, 20.0, 100.0):
        same = equalised(within(x, RATE, Band(cutoff)), RATE, Band(cutoff), common)
        assert np.abs(same - wanted)[middle].max() < 1e-6 * np.abs(x).max(), cutoff
    assert np.abs(equalised(x, RATE, None, common) - wanted)[middle].max() < 1e-6 * np.abs(x).max()


def test_noise_grows_as_said() -> None:
    own, common = Band(10.0), Butterworth(30.0)
    noise = np.random.default_rng(3).standard_normal((40000, 4))
    grown = equalised(noise, RATE, own, common).std() / zero_phase(noise, RATE, common).std()
    assert grown == pytest.approx(noise_gain(own, common, RATE), rel=0.03)
    assert noise_gain(own, Butterworth(5.0), RATE) < 1.1 < 2.0 < noise_gain(own, common, RATE)


def test_columns_are_filtered_each_by_itself() -> None:
    x = np.stack([band_limited(np.random.default_rng(k), 20.0) for k in (4, 5)], axis=1)
    assert np.allclose(within(x, RATE, Band(10.0))[:, 1], within(x[:, 1], RATE, Band(10.0)), atol=1e-12)


def test_unusable_bands_are_named() -> None:
    with pytest.raises(DataError, match="cutoff is not usable"):
        Band(0.0)
    with pytest.raises(DataError, match="order is not usable"):
        Band(10.0, 0)
    with pytest.raises(DataError, match="too short"):
        within([1.0, 2.0], RATE, Band(10.0))
