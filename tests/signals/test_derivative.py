"""Derivatives of sinusoids and polynomials in closed form, and the published gains of equation (29)."""

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid

from veridyn.errors import DataError, DataWarning
from veridyn.signals.conditioning import (
    apply,
    central_difference,
    central_gain,
    centred,
    derivative,
    derivative_gain,
    derivative_weights,
    trapezoid,
    warn_if_biased,
    worst_gain_error,
)

WHEEL_HOP = 12.7  # Hz


@pytest.mark.parametrize(("rate", "gain"), [(62.5, 0.562), (100.0, 0.805), (500.0, 0.9915)])
def test_equation_29_twice_has_the_known_gain_at_the_wheel_hop(rate, gain):
    # (sin ωT/ωT)² at 12.7 Hz; the unsprung mass comes out 1/gain too large (+78, +24, +0.9 %). Printed to 3 to 4 digits.
    assert central_gain(WHEEL_HOP, rate, times=2) == pytest.approx(gain, abs=6e-4)
    t = np.arange(400) / rate
    found = derivative(np.sin(2 * np.pi * WHEEL_HOP * t), rate, order=2, method="central")
    true = -((2 * np.pi * WHEEL_HOP) ** 2) * np.sin(2 * np.pi * WHEEL_HOP * t)
    assert found[2:-2] == pytest.approx(central_gain(WHEEL_HOP, rate, 2) * true[2:-2], abs=1e-8)


def test_equation_29_by_hand():
    x = np.array([0.0, 1.0, 4.0, 9.0, 16.0])
    assert central_difference(x, 10.0) == pytest.approx([0.0, 20.0, 40.0, 60.0, 80.0], abs=1e-12)
    assert np.array_equal(derivative(x, 10.0, 1, "central"), central_difference(x, 10.0))


@pytest.mark.parametrize("method", ["compensated", "central"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.35])
def test_gain_is_what_a_sinusoid_sees(method, order, share):
    rate = 200.0
    frequency = share * rate
    angle = 2 * np.pi * frequency * np.arange(300) / rate
    found = derivative(np.sin(angle), rate, order, method)
    true = 2 * np.pi * frequency * np.cos(angle) if order == 1 else -((2 * np.pi * frequency) ** 2) * np.sin(angle)
    gain = derivative_gain(frequency, rate, method, order)
    inner = slice(10, -10)
    assert found[inner] == pytest.approx(gain * true[inner], abs=1e-9 * (2 * np.pi * frequency) ** order)


def test_compensated_is_unbiased_where_equation_29_is_not():
    assert worst_gain_error(WHEEL_HOP, 100.0, "central", 2) == pytest.approx(1 - 0.805, abs=1e-3)
    assert worst_gain_error(WHEEL_HOP, 100.0, "compensated", 2) < 2e-7
    assert worst_gain_error(WHEEL_HOP, 62.5, "compensated", 1) < 3e-4
    assert worst_gain_error(20.0, 500.0, "compensated", 2) < 1e-12


def test_gain_is_one_at_zero_and_keeps_shape():
    for method in ("compensated", "central"):
        for order in (1, 2):
            gain = derivative_gain([[0.0, 1e-6], [1e-3, 0.1]], 100.0, method, order)
            assert gain.shape == (2, 2)
            assert gain[0] == pytest.approx([1.0, 1.0], rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_quartic_is_exact_everywhere_ends_included(order):
    rate = 50.0
    t = np.arange(40) / rate
    polynomial = np.polynomial.Polynomial([1.0, -2.0, 3.0, 4.0, -5.0])
    x = np.column_stack([polynomial(t), t**2])
    found = derivative(x, rate, order)
    assert found[:, 0] == pytest.approx(polynomial.deriv(order)(t), abs=1e-8)
    assert found[:, 1] == pytest.approx(2 * t if order == 1 else 2.0 + 0 * t, abs=1e-8)


def test_ends_follow_a_slow_signal():
    rate = 1000.0
    t = np.arange(2000) / rate
    found = derivative(np.sin(2 * np.pi * 2.0 * t + 0.3), rate, 2)
    true = -((4 * np.pi) ** 2) * np.sin(4 * np.pi * t + 0.3)
    # fourth order: (ωT)⁴ = 2.5e-8 times a constant near one, plus rounding 1e-16·rate²
    assert np.abs(found - true).max() < 1e-6 * (4 * np.pi) ** 2


def test_bias_is_said_once_it_matters():
    with pytest.warns(DataWarning, match=r"channel 'z1': the second derivative by 'central' .* biased") as record:
        worst = warn_if_biased(WHEEL_HOP, 100.0, where="channel 'z1'")
    assert worst == pytest.approx(19.5, abs=0.1)
    assert "found 19.5 % at 12.7 Hz with 100 samples per second. Use method='compensated'" in str(record[0].message)
    assert record[0].filename == __file__
    assert warn_if_biased(WHEEL_HOP, 500.0) == pytest.approx(0.846, abs=1e-3)  # below 1 %: nothing is said
    assert warn_if_biased(WHEEL_HOP, 100.0, method="compensated") < 1e-4


def test_bad_requests_are_refused():
    with pytest.raises(DataError, match="at least 17 samples, found 16"):
        derivative(np.zeros(16), 100.0)
    with pytest.raises(DataError, match="at least 3 samples"):
        central_difference(np.zeros(2), 100.0)
    with pytest.raises(DataError, match="order 1 or 2, found 3"):
        derivative(np.zeros(40), 100.0, order=3)
    with pytest.raises(DataError, match="Did you mean 'central'"):
        derivative(np.zeros(40), 100.0, method="centrl")
    with pytest.raises(DataError, match=r"0 < cutoff ≤ 50 Hz, found 60 Hz"):
        worst_gain_error(60.0, 100.0)
    with pytest.raises(DataError, match="sampling rate"):
        derivative(np.zeros(40), 0.0)


def test_five_point_weights_are_those_of_the_tables():
    # Fornberg 1988, tables 1 and 2: (1, −8, 0, 8, −1)/12 and (−1, 16, −30, 16, −1)/12.
    assert derivative_weights(centred(2), 1) == pytest.approx(np.array([1, -8, 0, 8, -1]) / 12, abs=1e-16)
    assert derivative_weights(centred(2), 2) == pytest.approx(np.array([-1, 16, -30, 16, -1]) / 12, abs=1e-16)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("offsets", [centred(8), centred(3), tuple(range(6)), (-1, 0, 1, 2, 3)])
def test_derivative_of_every_polynomial_the_points_can_hold(offsets, order):
    rng = np.random.default_rng(3)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(len(offsets)) / 8.0 ** np.arange(len(offsets)))
    at = 10
    x = polynomial(np.arange(40.0) - at)
    found = apply(x, offsets, derivative_weights(offsets, order), at)
    assert found == pytest.approx(polynomial.deriv(order)(0.0), rel=1e-11, abs=1e-12)


def test_apply_works_on_columns():
    x = np.arange(24.0).reshape(6, 2, 2)
    assert np.allclose(apply(x, (-1, 1), (-0.5, 0.5), 3), 4.0)


def test_equation_30_equals_scipy():
    x = np.random.default_rng(0).standard_normal((50, 2))
    assert trapezoid(x, 20.0) == pytest.approx(cumulative_trapezoid(x, dx=0.05, axis=0, initial=0.0), abs=1e-14)
    assert trapezoid(x, 20.0, initial=[1.0, 2.0])[0] == pytest.approx([1.0, 2.0])


def test_bad_requests_are_refused_of_integral():
    with pytest.raises(DataError, match="sample 3"):
        trapezoid([0.0, 1.0, 2.0, np.nan], 10.0)
