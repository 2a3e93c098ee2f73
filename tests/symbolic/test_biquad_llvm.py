"""Sections in vector code against SciPy's sosfilt: one pass, either way, with its state before and after."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from scipy.signal import butter, sosfilt

from veridyn.symbolic.biquad_llvm import biquad_program
from veridyn.symbolic.kernel import compile_object, loaded, this_host

SIGNATURE = ctypes.CFUNCTYPE(
    None, *[ctypes.c_int64] * 2, ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2
)


@pytest.mark.parametrize("width", [2, this_host().width])
@pytest.mark.parametrize("order", [1, 4, 7])
@pytest.mark.parametrize("step", [1, -1])
def test_a_pass_and_its_state_are_those_of_sosfilt(width: int, order: int, step: int) -> None:
    sos = butter(order, 20.0, fs=500.0, output="sos")
    rng, groups, n = np.random.default_rng(order), 2, 60
    x = rng.normal(size=(groups * width, n + 3))  # columns further apart than they are long
    state = rng.normal(size=(groups, len(sos), 2, width))
    by_column = state.transpose(1, 0, 3, 2).reshape(len(sos), groups * width, 2)
    expected, after = sosfilt(sos, x[:, :n][:, ::step], axis=1, zi=by_column)
    run = loaded(compile_object(biquad_program(width, len(sos)), this_host(width)), "cascade", SIGNATURE)
    coefficients = np.ascontiguousarray(sos[:, [0, 1, 2, 4, 5]])
    beyond = x[:, n:].copy()
    start = x.ctypes.data + (8 * (n - 1) if step < 0 else 0)
    run(groups, n, start, x.shape[1], step, coefficients.ctypes.data, state.ctypes.data)
    np.testing.assert_allclose(x[:, :n][:, ::step], expected, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(state.transpose(1, 0, 3, 2).reshape(after.shape), after, rtol=0.0, atol=1e-13)
    assert np.array_equal(x[:, n:], beyond)
