"""Sections of Butterworth filters against SciPy's designs, steady states and responses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import butter, sosfilt_zi, sosfreqz

from veridyn.signals.sections import butterworth_sections, squared_gain, steady_state


@pytest.mark.parametrize("order", range(1, 13))
@pytest.mark.parametrize(("kind", "name"), [("low", "lowpass"), ("high", "highpass")])
@pytest.mark.parametrize("edge", [0.1, 7.0, 180.0, 499.0])
def test_the_sections_are_those_of_scipy(order: int, kind: str, name: str, edge: float) -> None:
    expected = butter(order, edge, name, fs=1000.0, output="sos")
    found = butterworth_sections(order, (edge,), kind, 1000.0)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(found[:, 3:], expected[:, 3:], rtol=0.0, atol=1e-13)
    f = np.array([0.02, 0.9, 1.1, 2.0]) * edge
    wanted = np.abs(sosfreqz(expected, worN=f, fs=1000.0)[1]) ** 2
    # Poles within 1e-3 of one: the digits of both are lost alike in 1 + a₁ + a₂
    np.testing.assert_allclose(squared_gain(found, f, 1000.0), wanted, rtol=2e-5 if edge < 1.0 else 1e-9, atol=1e-300)


def test_a_band_is_one_too() -> None:
    expected = butter(3, (5.0, 40.0), "bandpass", fs=1000.0, output="sos")
    np.testing.assert_allclose(butterworth_sections(3, (5.0, 40.0), "band", 1000.0), expected)


@pytest.mark.parametrize(("order", "kind"), [(1, "low"), (4, "low"), (5, "high"), (2, "band")])
def test_the_steady_state_is_that_of_scipy(order: int, kind: str) -> None:
    sos = butterworth_sections(order, (5.0, 40.0) if kind == "band" else (5.0,), kind, 1000.0)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(steady_state(sos), sosfilt_zi(sos), rtol=1e-9, atol=1e-12)
