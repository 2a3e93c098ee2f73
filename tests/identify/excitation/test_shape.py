"""Families of periodic motions: bases, coefficients and trajectories, and settings that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.excitation.shape import SHAPES, Fourier, Shape, Spline

BOTH = pytest.mark.parametrize("shape", [Fourier(3), Spline(9)], ids=repr)


@BOTH
def test_the_trajectory_of_coefficients_is_the_basis_times_these(shape: Shape) -> None:
    """x = B C, ẋ = f B'C, ẍ = f² B''C at every phase."""
    rng, f = np.random.default_rng(0), 0.4
    C = shape.drawn(rng, 2)
    phase = rng.uniform(size=20)
    found = shape.trajectory(C, f).at(phase / f)
    for order, (x, B) in enumerate(zip(found, shape.basis(phase), strict=True)):
        assert x == pytest.approx(f**order * B @ C, rel=1e-9, abs=1e-9)


@BOTH
def test_the_slopes_of_the_basis_by_differences(shape: Shape) -> None:
    phase, h = np.linspace(0.05, 0.9, 11), 1e-5
    B = shape.basis(phase)
    for order in (1, 2):
        slope = (shape.basis(phase + h)[order - 1] - shape.basis(phase - h)[order - 1]) / (2.0 * h)
        assert slope == pytest.approx(B[order], rel=1e-5, abs=1e-5 * np.abs(B[order]).max())


@BOTH
def test_standing_still_is_standing_still(shape: Shape) -> None:
    centre = np.array([0.3, -1.2])
    x, xd, xdd = shape.basis(np.linspace(0.0, 1.0, 7)) @ shape.still(centre)
    assert x == pytest.approx(np.tile(centre, (7, 1))) and np.abs(xd).max() < 1e-10 and np.abs(xdd).max() < 1e-9
    assert shape.drawn(np.random.default_rng(0), 2).shape == (shape.count, 2) == shape.still(centre).shape


def test_sizes_and_frequencies() -> None:
    assert (Fourier(5).count, Fourier(5).fastest) == (11, 5.0) and (Spline(16).count, Spline(16).fastest) == (16, 4.0)
    assert Fourier().ends == (0.1, 0.1) and Spline(frequency=(0.05, 1)).ends == (0.05, 1.0)
    assert {"fourier": Fourier, "spline": Spline} == SHAPES and repr(Fourier()) == "Fourier()"


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (Fourier, {"harmonics": 0}, r"Fourier\.harmonics: .*\nExpected a whole number of at least 1, found 0"),
        (Fourier, {"harmonics": 2.0}, "a whole number of at least 1, found 2.0"),
        (Spline, {"points": 5}, r"Spline\.points: .*\nExpected a whole number of at least 6, found 5"),
        (Spline, {"points": "many"}, "found 'many'"),
        (
            Fourier,
            {"frequency": 0.0},
            r"Fourier\.frequency: .*\nExpected a number above 0, or two of them, the lower one first",
        ),
        (Fourier, {"frequency": (0.3, 0.1)}, r"found \(0.3, 0.1\)"),
        (Spline, {"frequency": (0.1, 0.2, 0.3)}, "the lower one first"),
        (Spline, {"frequency": True}, "found True"),
        (Spline, {"frequency": float("nan")}, "found nan"),
    ],
)
def test_settings_are_refused_by_name(kind: type[Shape], given: dict[str, Any], expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        kind(**given)
