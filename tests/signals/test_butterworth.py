"""Zero-phase filters against SciPy on whole signals, closed forms, and the claim that filtering in parallel is unbiased.

What the filters accept, and the words in which they refuse.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from scipy.signal import butter, sosfilt, sosfilt_zi, sosfiltfilt, sosfreqz

from veridyn.errors import DataError
from veridyn.signals.butterworth import (
    Butterworth,
    as_rate,
    as_samples,
    biquad_program,
    both_ways,
    butterworth_sections,
    overlap,
    squared_gain,
    steady_state,
    zero_phase,
)
from veridyn.symbolic.kernel import compile_object, loaded, this_host

FILTERS = [
    Butterworth(20.0),
    Butterworth(3.125, order=3),
    Butterworth(100.0, order=8),
    Butterworth(0.5, order=2, kind="high"),
    Butterworth((2.0, 15.0), order=3, kind="band"),
    Butterworth(5.0, cutoff_is="double"),
]
RATE = 500.0


def test_finite_numbers_pass_unchanged():
    x = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(as_samples(x.tolist()), x)


def test_not_a_number_is_named_with_its_place():
    x = np.zeros((5, 3))
    x[4, 2] = np.nan
    with pytest.raises(DataError, match=r"1 others, the first at sample 4 in column 2 \(nan\)"):
        as_samples(x, where="y")


def test_infinity_counts_as_not_a_number():
    with pytest.raises(DataError, match=r"sample 1 \(inf\)"):
        as_samples([0.0, np.inf])


def test_too_short_and_scalar():
    with pytest.raises(DataError, match="at least 4 samples, found 3"):
        as_samples([1, 2, 3], least=4)
    with pytest.raises(DataError, match="it is one number"):
        as_samples(3.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_rate_must_be_positive_and_finite(rate):
    with pytest.raises(DataError, match="sampling rate is not usable"):
        as_rate(rate)


@pytest.fixture
def signal():
    """A random walk with an offset: rich at low frequency, different at its two ends."""
    rng = np.random.default_rng(11)
    return np.cumsum(rng.standard_normal((6000, 3)), axis=0) + 5.0


@pytest.mark.parametrize(
    ("settings", "btype", "cutoff"),
    [
        (Butterworth(20.0), "low", 20.0),
        (Butterworth(1.0, order=3, kind="high"), "high", 1.0),
        (Butterworth((2.0, 15.0), order=3, kind="band"), "band", (2.0, 15.0)),
    ],
)
def test_whole_signal_equals_scipy_with_its_own_padding(signal, settings, btype, cutoff):
    sos = butter(settings.order, cutoff, btype, fs=RATE, output="sos")
    expected = sosfiltfilt(sos, signal, axis=0)
    rounding = 1e-13 * np.abs(signal).max()
    np.testing.assert_allclose(zero_phase(signal, RATE, settings), expected, rtol=0.0, atol=rounding)
    np.testing.assert_allclose(zero_phase(signal[:, 0], RATE, settings), expected[:, 0], rtol=0.0, atol=rounding)


def test_more_axes_are_columns_too(signal):
    cube = np.stack([signal, 2.0 * signal], axis=2)
    assert np.allclose(zero_phase(cube, RATE, FILTERS[0])[:, :, 1], 2.0 * zero_phase(signal, RATE, FILTERS[0]))


@pytest.mark.parametrize(("kind", "cutoff"), [("low", 20.0), ("high", 20.0), ("band", (8.0, 20.0))])
def test_gain_at_the_cutoff_is_a_half_or_three_decibels(kind, cutoff):
    assert Butterworth(cutoff, kind=kind).gain(cutoff, RATE) == pytest.approx(0.5, rel=1e-9)
    double = Butterworth(cutoff, kind=kind, cutoff_is="double")
    assert double.gain(cutoff, RATE) == pytest.approx(np.sqrt(0.5), rel=1e-9)


def test_a_sinusoid_keeps_its_phase_and_takes_the_stated_gain():
    t = np.arange(5000) / RATE
    settings = Butterworth(12.0, order=4)
    y = zero_phase(np.sin(2 * np.pi * 10.0 * t), RATE, settings)
    middle = slice(1000, 4000)
    expected = settings.gain(10.0, RATE) * np.sin(2 * np.pi * 10.0 * t)
    assert np.abs(y - expected)[middle].max() < 1e-10


@pytest.mark.parametrize("settings", FILTERS)
def test_overlap_is_the_memory_of_the_filter(settings):
    n = overlap(settings, RATE, 1e-9)
    x = np.zeros(2 * n + 2000)
    x[len(x) // 2] = 1.0
    response = np.abs(zero_phase(x, RATE, settings))
    far = np.abs(np.arange(len(x)) - len(x) // 2) > n
    assert response[far].sum() <= 1.01e-9
    assert response[~far].sum() > 0.5
    assert overlap(settings, RATE, 1e-12) > n


def test_parallel_filtering_keeps_coulomb_friction_unbiased():
    """y = h v + f sign(v): filter [v, sign v] and y alike and h is exact; filter v first and it is biased."""
    rng = np.random.default_rng(2)
    t = np.arange(10_000) / RATE
    frequencies = np.concatenate([rng.uniform(0.5, 8.0, 12), rng.uniform(20.0, 60.0, 25)])
    phases = rng.uniform(0.0, 2.0 * np.pi, len(frequencies))
    v = np.sin(2.0 * np.pi * frequencies * t[:, None] + phases).sum(axis=1)
    h, f = 30.0, 100.0
    y = h * v + f * np.sign(v)
    settings = Butterworth(20.0)
    y_filtered = zero_phase(y, RATE, settings)

    parallel = zero_phase(np.column_stack([v, np.sign(v)]), RATE, settings)
    found = np.linalg.lstsq(parallel, y_filtered, rcond=None)[0]
    assert found == pytest.approx([h, f], rel=1e-10)

    v_filtered = zero_phase(v, RATE, settings)
    biased = np.linalg.lstsq(np.column_stack([v_filtered, np.sign(v_filtered)]), y_filtered, rcond=None)[0]
    assert abs(biased[0] - h) > 0.02 * h

    # With noise on the measurement the parallel estimate stays unbiased: within 4 deviations of the mean of 20 trials.
    trials = np.array(
        [
            np.linalg.lstsq(parallel, zero_phase(y + 20.0 * rng.standard_normal(len(t)), RATE, settings), rcond=None)[0]
            for _ in range(20)
        ]
    )
    assert np.all(np.abs(trials.mean(axis=0) - [h, f]) < 4.0 * trials.std(axis=0) / np.sqrt(20))


def test_cutoff_above_nyquist_is_refused_with_numbers():
    with pytest.raises(DataError, match=r"sampling rate of 100 Hz.\nExpected less than 50 Hz, found 60 Hz"):
        zero_phase(np.zeros(100), 100.0, Butterworth(60.0))


def test_short_and_nan_signals_are_refused():
    with pytest.raises(DataError, match=r"channel 'z1': it is too short.\nExpected at least 16 samples, found 15"):
        zero_phase(np.zeros(15), RATE, Butterworth(20.0), where="channel 'z1'")
    x = np.zeros((100, 2))
    x[7, 1] = np.nan
    with pytest.raises(DataError, match=r"sample 7 in column 1"):
        zero_phase(x, RATE, Butterworth(20.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cutoff": -1.0}, "its cutoff is not usable"),
        ({"cutoff": (5.0, 2.0), "kind": "band"}, "positive and rising"),
        ({"cutoff": 5.0, "kind": "band"}, "Expected two, low and high"),
        ({"cutoff": 5.0, "kind": "notch"}, "'low', 'high' or 'band', found 'notch'"),
        ({"cutoff": 5.0, "order": 0}, "1 to 12, found 0"),
        ({"cutoff": 5.0, "cutoff_is": "both"}, "'single'"),
    ],
)
def test_settings_are_checked_where_they_are_made(arguments, words):
    with pytest.raises(DataError, match=words):
        Butterworth(**arguments)


def test_a_memory_that_never_ends_is_refused():
    with pytest.raises(DataError, match=r"memory is too long"):
        overlap(Butterworth(1e-6), 1000.0)
    with pytest.raises(DataError, match=r"1e-15 ≤ tolerance"):
        overlap(Butterworth(1.0), 1000.0, 0.0)


def test_summary_says_what_the_cutoff_means():
    assert Butterworth(20.0).summary() == (
        "Butterworth low-pass, 20 Hz (−3 dB of one pass, −6 dB of both), order 4 forwards and backwards"
    )
    assert "2 to 15 Hz (−3 dB of both passes)" in Butterworth((2.0, 15.0), kind="band", cutoff_is="double").summary()


def test_white_noise_behind_the_filter() -> None:
    """g² = 2/f ∫ df/(1 + (f/c)⁸)² = 2c/f (1 − 1/8)(π/8)/sin(π/8) where the bilinear map bends nothing, and what a long record has."""
    low = Butterworth(5.0)
    closed = 2.0 * 5.0 / 1000.0 * (1.0 - 1.0 / 8.0) * (np.pi / 8.0) / np.sin(np.pi / 8.0)
    assert low.white_gain(1000.0) ** 2 == pytest.approx(closed, rel=1e-3)
    noise = np.random.default_rng(2).normal(size=400_000)
    for kind in (
        Butterworth(20.0),
        Butterworth(20.0, 2, cutoff_is="double"),
        Butterworth((10.0, 40.0), 3, "band"),
        Butterworth(30.0, 4, "high"),
    ):
        found = zero_phase(noise, 200.0, kind).std()
        assert found == pytest.approx(kind.white_gain(200.0), rel=0.01)


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
