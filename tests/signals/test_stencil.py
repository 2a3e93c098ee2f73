"""Weights are exact for polynomials, and equal the tables in the books."""

import numpy as np
import pytest

from veridyn.signals.stencil import apply, centred, derivative_weights, integral_weights


def test_five_point_weights_are_those_of_the_tables():
    # Fornberg 1988, tables 1 and 2: (1, −8, 0, 8, −1)/12 and (−1, 16, −30, 16, −1)/12.
    assert derivative_weights(centred(2), 1) == pytest.approx(np.array([1, -8, 0, 8, -1]) / 12, abs=1e-16)
    assert derivative_weights(centred(2), 2) == pytest.approx(np.array([-1, 16, -30, 16, -1]) / 12, abs=1e-16)


def test_integral_weights_are_those_of_the_tables():
    # Trapezoid; the cubic through four points centred on the step; and its one-sided (Adams-Moulton) form.
    assert integral_weights((0, 1)) == (0.5, 0.5)
    assert integral_weights((-1, 0, 1, 2)) == pytest.approx(np.array([-1, 13, 13, -1]) / 24, abs=1e-16)
    assert integral_weights((0, 1, 2, 3)) == pytest.approx(np.array([9, 19, -5, 1]) / 24, abs=1e-16)


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
