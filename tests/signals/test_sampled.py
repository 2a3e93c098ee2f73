"""A table of positions as a function of time, against the Fourier series it was made of and SciPy's own polynomials."""

import numpy as np
import pytest
from scipy.interpolate import BPoly

from veridyn.errors import DataError
from veridyn.signals.sampled import SampledTrajectory
from veridyn.signals.trajectory import FourierTrajectory

RNG = np.random.default_rng(1)
TRUE = FourierTrajectory(
    np.array([0.3, -0.2]), 0.3 * RNG.standard_normal((2, 3)), 0.3 * RNG.standard_normal((2, 3)), 0.5
)
T = np.linspace(0.0, 2.0, 201)
BETWEEN = np.linspace(0.1, 1.9, 977)


def test_a_table_with_rates_is_met_to_the_second_derivative() -> None:
    table = SampledTrajectory(T, *TRUE.at(T))
    assert np.stack(table.at(T)) == pytest.approx(np.stack(TRUE.at(T)), abs=1e-10)
    # the error of the quintic is h⁶ q⁽⁶⁾/46080, and its second derivative h⁴ q⁽⁶⁾/… : h = 0.01 s, q⁽⁶⁾ up to (2π·1.5)⁶
    for found, wanted, most in zip(table.at(BETWEEN), TRUE.at(BETWEEN), (1e-10, 1e-8, 5e-6)):
        assert found == pytest.approx(wanted, abs=most)


def test_its_pieces_are_those_of_scipy() -> None:
    t = np.array([0.0, 0.3, 0.5, 1.1])
    q, qd, qdd = RNG.standard_normal((3, 4, 1))
    own = SampledTrajectory(t, q, qd, qdd)
    other = BPoly.from_derivatives(t, np.stack([q[:, 0], qd[:, 0], qdd[:, 0]], axis=1))
    x = np.linspace(0.0, 1.1, 50)
    for order, found in enumerate(own.at(x)):
        assert found[:, 0] == pytest.approx(other.derivative(order)(x) if order else other(x), abs=1e-9)


def test_positions_alone_are_enough() -> None:
    table = SampledTrajectory(T, TRUE.at(T)[0])
    for found, wanted, most in zip(table.at(BETWEEN), TRUE.at(BETWEEN), (1e-9, 1e-7, 1e-4)):
        assert found == pytest.approx(wanted, abs=most)


def test_shapes_ends_and_the_clock() -> None:
    table = SampledTrajectory(T + 5.0, TRUE.at(T)[0])
    assert table.at(6.0)[0].shape == (2,) and table.at([[5.0, 6.0]])[2].shape == (1, 2, 2)
    assert table.at(99.0)[0] == pytest.approx(table.at(7.0)[0])
    moved = table.from_zero()
    assert moved.t[0] == 0.0 and (moved.n, moved.length) == (2, pytest.approx(2.0))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((T, TRUE.at(T)[0][:50]), "do not belong together"),
        ((T[:4], TRUE.at(T)[0][:4]), "at least 6 rows"),
        ((T, TRUE.at(T)[0], TRUE.at(T)[1]), "both or neither"),
        ((T[::-1], TRUE.at(T)[0]), "runs backwards"),
        ((T, np.where(T[:, None] > 1.0, np.nan, TRUE.at(T)[0])), "the first in row 102"),
    ],
)
def test_a_bad_table_is_refused(args: tuple, words: str) -> None:
    with pytest.raises(DataError, match=words):
        SampledTrajectory(*args)
