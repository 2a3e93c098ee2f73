"""Four numbers side by side against NumPy: arithmetic and choices to the last bit, functions to a few units in the last place."""

import numpy as np
import pytest

from veridyn.mechanics.compiled import compiled
from veridyn.papers.car.simulator.lanes import (
    anywhere,
    arctangent,
    below,
    each,
    exponential,
    four,
    hyperbolic_tangent,
    least,
    most,
    nearest,
    of_four,
    put_four,
    root,
    sine_cosine,
    size,
    total,
    totals,
    transposed,
    where,
    with_sign,
)

NAN, INF = float("nan"), float("inf")


@compiled
def worked(x, y, out):
    a, b = four(x, 0), four(y, 0)
    small = (a < b) & (a <= b)
    rows = (
        a + b, a - b, a * b, a / b, -a, 2.0 * a, a - 1.0, 1.0 / b, root(size(a)), below(a), nearest(a), with_sign(a, b),
        least(a, b), most(a, b), where(small, a, b), where((a > b) | (b >= 2.0), 1.0, 0.0), least(a, 1.0),
    )  # fmt: skip
    for k in range(17):
        put_four(out, 4 * k, rows[k])
    return anywhere(a > 3.0), total(a), each(b), totals(a, b, a, b)


def test_arithmetic_and_choices_are_numpy_s():
    a, b = np.array([1.5, -2.5, 0.3, 4.0]), np.array([0.7, 2.0, 0.3, -3.0])
    out = np.empty((17, 4))
    any_above, sum_a, b_again, sums = worked(a, b, out)
    expected = [
        a + b, a - b, a * b, a / b, -a, 2.0 * a, a - 1.0, 1.0 / b, np.sqrt(np.abs(a)), np.floor(a), np.rint(a),
        np.copysign(a, b), np.minimum(a, b), np.maximum(a, b), np.where(a < b, a, b), (a > b) | (b >= 2.0),
        np.minimum(a, 1.0),
    ]  # fmt: skip
    assert np.array_equal(out, np.array(expected))
    assert any_above and b_again == tuple(b)
    assert (sum_a, *sums) == pytest.approx((a.sum(), a.sum(), b.sum(), a.sum(), b.sum()), rel=1e-15)
    assert not worked(-a, b, out)[0]
    worked(np.full(4, NAN), b, out)
    assert np.isnan(out[[12, 13, 16]]).all()  # a limit does not make a number of what is none


@compiled
def turned(x, out):
    rows = transposed(four(x, 0), four(x, 4), four(x, 8), four(x, 12))
    for k in range(4):
        put_four(out, 4 * k, rows[k])
    put_four(out, 16, of_four(x[3], x[2], x[1], x[0]))


def test_rows_become_columns():
    x = np.arange(16.0).reshape(4, 4)
    out = np.empty((5, 4))
    turned(x.ravel(), out.ravel())
    assert np.array_equal(out[:4], x.T) and np.array_equal(out[4], x[0, ::-1])


@compiled
def evaluated(x, out):
    for k in range(0, len(x), 4):
        v = four(x, k)
        s, c = sine_cosine(v)
        put_four(out[0], k, s)
        put_four(out[1], k, c)
        put_four(out[2], k, arctangent(v))
        put_four(out[3], k, exponential(v))
        put_four(out[4], k, hyperbolic_tangent(v))


FUNCTIONS = (np.sin, np.cos, np.arctan, np.exp, np.tanh)


def test_functions_are_exact_to_three_units_in_the_last_place():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([np.full(8000, 8.0), np.full(2000, 600.0), 10.0 ** rng.uniform(-12, 0, 2000)])
    x = rng.uniform(-1.0, 1.0, len(sizes)) * sizes
    # Where the arguments are reduced: multiples of π/4, tan π/8 and tan 3π/8, multiples of ½ ln 2.
    edges = np.concatenate(
        [np.arange(-8, 8) * np.pi / 4, [np.tan(np.pi / 8), -np.tan(3 * np.pi / 8)], np.arange(14) * np.log(2) / 2]
    )
    x = np.concatenate([x, edges, np.nextafter(edges, INF), np.nextafter(edges, -INF)])
    x = x[: len(x) // 4 * 4]
    out = np.empty((5, len(x)))
    evaluated(x, out)
    for name, found in zip(FUNCTIONS, out, strict=True):
        exact = name(x.astype(np.longdouble)) if np.finfo(np.longdouble).eps < 1e-18 else name(x)
        unit = np.spacing(np.abs(exact.astype(np.float64)))
        # At multiples of π only the size of the argument's own rounding can be asked of sin and cos.
        unit = np.maximum(unit, 1e-16 * np.finfo(np.float64).eps * np.abs(x))
        assert (np.abs(found - exact) <= 3.0 * unit).all(), name.__name__


def test_functions_at_the_ends_of_numbers():
    x = np.array([0.0, -0.0, INF, -INF, 1e300, -1e300, NAN, 40.0])
    out = np.empty((5, 8))
    evaluated(x, out)
    with np.errstate(over="ignore"):
        assert np.array_equal(out[2][:6], np.arctan(x[:6])) and np.array_equal(out[4], np.tanh(x), equal_nan=True)
    assert np.isnan(out[:, 6]).all()
    assert np.signbit(out[[2, 4], 1]).all() and not np.signbit(out[[2, 4], 0]).any()
    assert out[3][:2].tolist() == [1.0, 1.0] and out[3][2] > 1e300 and 0.0 <= out[3][3] < 1e-300
