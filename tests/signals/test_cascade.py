"""Sections forwards and backwards against SciPy's sosfiltfilt, which shares no code with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from veridyn.signals.cascade import both_ways


@pytest.mark.parametrize("columns", [1, 3, 8, 17])
@pytest.mark.parametrize(
    ("order", "edges", "kind"),
    [(1, 30.0, "lowpass"), (4, 0.5, "lowpass"), (3, 5.0, "highpass"), (2, (2.0, 40.0), "bandpass")],
)
def test_it_is_sosfiltfilt_to_rounding(columns: int, order: int, edges: float | tuple[float, float], kind: str) -> None:
    sos = butter(order, edges, kind, fs=1000.0, output="sos")
    x = np.cumsum(np.random.default_rng(columns).normal(size=(700, columns)), axis=0)
    expected = sosfiltfilt(sos, x, axis=0, padtype="odd", padlen=20)
    np.testing.assert_allclose(both_ways(sos, x, 20), expected, rtol=0.0, atol=1e-11 * np.abs(x).max())


def test_a_column_does_not_depend_on_its_neighbours_and_the_input_stays() -> None:
    sos = butter(4, 7.0, fs=1000.0, output="sos")
    x = np.random.default_rng(0).normal(size=(16 * 64 - 30, 11))  # with its ends a multiple of 4096 bytes long
    before = x.copy()
    whole = both_ways(sos, x, 15)
    assert all(np.array_equal(both_ways(sos, x[:, [k]], 15)[:, 0], whole[:, k]) for k in range(11))
    assert np.array_equal(x, before)


def test_the_longest_reflection_that_fits_is_used_whole() -> None:
    sos = butter(2, 50.0, fs=1000.0, output="sos")
    x = np.random.default_rng(1).normal(size=(10, 2))
    expected = sosfiltfilt(sos, x, axis=0, padtype="odd", padlen=9)
    np.testing.assert_allclose(both_ways(sos, x, 9), expected, rtol=0.0, atol=1e-12)


def test_no_column_is_no_work() -> None:
    assert both_ways(butter(2, 50.0, fs=1000.0, output="sos"), np.zeros((40, 0)), 9).shape == (40, 0)
