"""Constants fold, everything else is left to the operands."""

import numpy as np
import pytest

from veridyn.spatial.algebra import ARRAYS, FLOATS, add, is_zero, mul, sub


class Letter:
    """A scalar that only writes down what is done to it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: object) -> "Letter":
        return Letter(f"({self.text}+{other})")

    def __sub__(self, other: object) -> "Letter":
        return Letter(f"({self.text}-{other})")

    def __mul__(self, other: object) -> "Letter":
        return Letter(f"({self.text}*{other})")

    def __rmul__(self, other: object) -> "Letter":
        return Letter(f"({other}*{self.text})")

    def __neg__(self) -> "Letter":
        return Letter(f"-{self.text}")

    def __str__(self) -> str:
        return self.text


X = Letter("x")
SAMPLES = np.array([0.0, 1.0, -2.0])


@pytest.mark.parametrize("x", [X, SAMPLES, 3.5, Letter("y")])
def test_zero_and_one_fold_to_the_operand_itself(x: object) -> None:
    assert mul(1.0, x) is x
    assert mul(x, 1.0) is x
    assert add(0.0, x) is x
    assert add(x, 0.0) is x
    assert sub(x, 0.0) is x


@pytest.mark.parametrize("x", [X, SAMPLES, 3.5])
def test_times_zero_is_the_constant_zero(x: object) -> None:
    for product in (mul(0.0, x), mul(x, 0.0), mul(-0.0, x)):
        assert type(product) is float
        assert is_zero(product)


def test_minus_one_and_zero_minus_are_negation() -> None:
    assert str(mul(-1.0, X)) == "-x"
    assert str(mul(X, -1.0)) == "-x"
    assert str(sub(0.0, X)) == "-x"
    assert np.array_equal(mul(-1.0, SAMPLES), -SAMPLES)
    assert np.array_equal(sub(0.0, SAMPLES), -SAMPLES)


def test_what_does_not_fold_reaches_the_operand_in_order() -> None:
    y = Letter("y")
    assert str(mul(X, y)) == "(x*y)"
    assert str(add(X, y)) == "(x+y)"
    assert str(sub(X, y)) == "(x-y)"
    assert str(mul(2.0, X)) == "(2.0*x)"


def test_only_plain_floats_are_constants() -> None:
    assert is_zero(0.0)
    assert is_zero(-0.0)
    for x in (np.zeros(3), np.float64(0.0), 0, X, 1e-300):
        assert not is_zero(x)
    assert mul(np.zeros(3), SAMPLES).shape == (3,)
    assert add(np.zeros(3), SAMPLES) is not SAMPLES


def test_numbers_come_out_as_python_does_them() -> None:
    rng = np.random.default_rng(0)
    for a, b in [
        *rng.standard_normal((20, 2)).tolist(),
        [0.0, 0.0],
        [1.0, 0.0],
        [0.0, -1.0],
        [-1.0, -1.0],
        [1.0, -1.0],
    ]:
        assert mul(a, b) == a * b
        assert add(a, b) == a + b
        assert sub(a, b) == a - b


def test_functions_of_one_scalar_agree_between_algebras() -> None:
    x = np.array([-2.0, -0.3, 0.0, 1.1])
    for name in ("sin", "cos", "sign"):
        many = getattr(ARRAYS, name)(x)
        one = [getattr(FLOATS, name)(float(v)) for v in x]
        assert all(type(v) is float for v in one)
        assert many == pytest.approx(one, abs=1e-16)
    assert FLOATS.sign(-0.0) == 0.0


def test_roots_of_floats_and_of_samples() -> None:
    assert FLOATS.sqrt(2.25) == 1.5
    assert ARRAYS.sqrt(np.array([4.0, 9.0])).tolist() == [2.0, 3.0]
