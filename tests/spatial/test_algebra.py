"""Constants fold, everything else is left to the operands."""

import numpy as np
import pytest

from veridyn.spatial.algebra import (
    ARRAYS,
    FLOATS,
    IDENTITY,
    ZERO,
    add,
    cross,
    dot,
    is_null,
    is_zero,
    minus,
    mul,
    plus,
    product,
    rotate,
    rotate_back,
    rotation_matrix,
    scaled,
    skew,
    sub,
    transposed,
)
from veridyn.spatial.rotations import matrix_of


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
    for made in (mul(0.0, x), mul(x, 0.0), mul(-0.0, x)):
        assert type(made) is float
        assert is_zero(made)


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


RNG = np.random.default_rng(1)
a, b = RNG.standard_normal((2, 3))
A, B = RNG.standard_normal((2, 3, 3))
N = 5
SEVERAL = RNG.standard_normal((2, N, 3))


def vec(x: np.ndarray) -> tuple:
    return tuple(x.tolist())


def mat(X: np.ndarray) -> tuple:
    return tuple(vec(row) for row in X)


CASES = {
    "dot": (dot(vec(a), vec(b)), a @ b),
    "plus": (plus(vec(a), vec(b)), a + b),
    "minus": (minus(vec(a), vec(b)), a - b),
    "scaled": (scaled(1.7, vec(a)), 1.7 * a),
    "cross": (cross(vec(a), vec(b)), np.cross(a, b)),
    "rotate": (rotate(mat(A), vec(a)), A @ a),
    "rotate_back": (rotate_back(mat(A), vec(a)), A.T @ a),
    "product": (product(mat(A), mat(B)), A @ B),
    "transposed": (transposed(mat(A)), A.T),
    "skew": (rotate(skew(vec(a)), vec(b)), np.cross(a, b)),
}


@pytest.mark.parametrize("name", CASES)
def test_floats_agree_with_numpy(name: str) -> None:
    found, expected = CASES[name]
    assert np.array(found) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_samples_agree_with_numpy() -> None:
    """A vector of arrays (N,) is N vectors at once; a constant matrix beside it is broadcast."""
    u, v = (tuple(x.T) for x in SEVERAL)
    assert pytest.approx(np.cross(*SEVERAL), rel=1e-14, abs=1e-15) == np.array(cross(u, v)).T
    assert dot(u, v) == pytest.approx((SEVERAL[0] * SEVERAL[1]).sum(axis=1), rel=1e-14, abs=1e-15)
    assert pytest.approx(SEVERAL[0] @ A.T, rel=1e-14, abs=1e-15) == np.array(rotate(mat(A), u)).T
    assert pytest.approx(SEVERAL[0] @ A, rel=1e-14, abs=1e-15) == np.array(rotate_back(mat(A), u)).T


def test_identity_and_zero_cost_nothing() -> None:
    """The entries come back as the very same objects: nothing was multiplied or added."""
    u = tuple(SEVERAL[0].T)
    assert all(x is y for x, y in zip(rotate(IDENTITY, u), u, strict=True))
    assert all(x is y for x, y in zip(rotate_back(IDENTITY, u), u, strict=True))
    assert all(x is y for x, y in zip(plus(ZERO, u), u, strict=True))
    assert is_null(cross(ZERO, u))
    assert is_null(rotate((ZERO, ZERO, ZERO), u))
    assert is_null(scaled(0.0, u))
    assert product(IDENTITY, mat(A)) == mat(A)


def test_a_turn_about_z_leaves_the_third_entry_alone() -> None:
    x, y, z = u = tuple(SEVERAL[0].T)
    c, s = np.cos(x), np.sin(x)
    turned = rotate(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), u)
    assert turned[2] is z
    assert turned[0] == pytest.approx(c * x - s * y)


def test_null_means_constant_zeros_only() -> None:
    assert is_null(ZERO)
    assert not is_null((0.0, 0.0, np.zeros(3)))
    assert not is_null((0.0, 1e-300, 0.0))


def test_rotation_of_a_quaternion_of_any_length() -> None:
    e = RNG.standard_normal((N, 4))
    x = np.array([[rotation_matrix(tuple(row))[i] for i in range(3)] for row in e])
    assert x == pytest.approx(matrix_of(e / np.linalg.norm(e, axis=1, keepdims=True)))
    many = rotation_matrix(tuple(e.T))
    assert np.moveaxis(np.array(many), -1, 0) == pytest.approx(x)
