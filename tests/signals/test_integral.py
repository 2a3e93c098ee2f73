"""Integrals of sinusoids and polynomials in closed form."""

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid

from veridyn.errors import DataError
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.integral import integral, integral_gain, integrate, trapezoid


def test_equation_30_equals_scipy():
    x = np.random.default_rng(0).standard_normal((50, 2))
    assert trapezoid(x, 20.0) == pytest.approx(cumulative_trapezoid(x, dx=0.05, axis=0, initial=0.0), abs=1e-14)
    assert trapezoid(x, 20.0, initial=[1.0, 2.0])[0] == pytest.approx([1.0, 2.0])
    assert np.array_equal(integral(x, 20.0), trapezoid(x, 20.0))


@pytest.mark.parametrize("method", ["trapezoid", "compensated"])
@pytest.mark.parametrize("frequency", [1.0, 10.0, 30.0])
def test_gain_is_what_a_sinusoid_sees(method, frequency):
    rate = 100.0
    angle = 2 * np.pi * frequency * np.arange(400) / rate
    found = integral(np.cos(angle + 0.4), rate, method=method)
    true = np.sin(angle + 0.4) / (2 * np.pi * frequency)
    gain = integral_gain(frequency, rate, method)
    inner = slice(20, -20)
    moving = found[inner] - found[inner][0] - gain * (true[inner] - true[inner][0])
    assert np.abs(moving).max() < 1e-12


def test_trapezoid_gain_in_closed_form_and_compensated_flat():
    # (ωT/2) cot(ωT/2) at a tenth of the rate: 0.31416·cot(0.31416).
    assert integral_gain(10.0, 100.0) == pytest.approx(0.1 * np.pi / np.tan(0.1 * np.pi), rel=1e-14)
    assert integral_gain([0.0, 1.0], 100.0)[0] == 1.0
    assert abs(integral_gain(10.0, 100.0) - 1.0) > 0.03
    assert abs(integral_gain(10.0, 100.0, "compensated") - 1.0) < 1e-8


def test_compensated_is_exact_for_a_cubic_ends_included():
    rate = 40.0
    t = np.arange(60) / rate
    found = integral(4 * t**3 - 3 * t**2, rate, initial=2.0, method="compensated")
    assert found == pytest.approx(2.0 + t**4 - t**3, abs=1e-13)


@pytest.mark.parametrize("method", ["trapezoid", "compensated"])
def test_high_pass_integral_is_zero_phase_without_drift(method):
    """A 2 Hz velocity from its acceleration, measured with an offset: right away from the ends, and no drift."""
    rate, offset = 200.0, 0.5
    t = np.arange(int(60 * rate)) / rate
    highpass = Butterworth(0.1, order=2, kind="high")
    acceleration = 2 * np.pi * 2.0 * np.cos(2 * np.pi * 2.0 * t) + offset
    found = integrate(acceleration, rate, highpass, method)
    gain = integral_gain(2.0, rate, method) * highpass.gain(2.0, rate)
    inner = slice(int(22 * rate), -int(22 * rate))  # transients decay as exp(−0.444 t/s): 6e-5 of their start by then
    assert np.abs(found - gain * np.sin(2 * np.pi * 2.0 * t))[inner].max() < 5e-5
    assert np.abs(found).max() < 1.5
    assert abs(found[inner].mean()) < 1e-4


def test_offset_alone_integrates_to_nothing():
    found = integrate(np.full((3000, 2), 3.7), 100.0, Butterworth(0.2, order=2, kind="high"))
    assert np.abs(found).max() < 1e-10


def test_bad_requests_are_refused():
    with pytest.raises(DataError, match="kind 'high' or 'band', found kind 'low'"):
        integrate(np.zeros(100), 10.0, Butterworth(1.0))
    with pytest.raises(DataError, match="Did you mean 'trapezoid'"):
        integral(np.zeros(100), 10.0, method="trapez")
    with pytest.raises(DataError, match="at least 16 samples"):
        integral(np.zeros(10), 10.0, method="compensated")
    with pytest.raises(DataError, match="sample 3"):
        trapezoid([0.0, 1.0, 2.0, np.nan], 10.0)
