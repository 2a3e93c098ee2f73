"""Zero-phase filters against SciPy on whole signals, closed forms, and the claim that filtering in parallel is unbiased."""

import tracemalloc

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from veridyn.errors import DataError
from veridyn.signals.butterworth import Butterworth, overlap, zero_phase, zero_phase_blocks

FILTERS = [
    Butterworth(20.0),
    Butterworth(3.125, order=3),
    Butterworth(100.0, order=8),
    Butterworth(0.5, order=2, kind="high"),
    Butterworth((2.0, 15.0), order=3, kind="band"),
    Butterworth(5.0, cutoff_is="double"),
]
RATE = 500.0


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
@pytest.mark.parametrize("block", [7, 250, 1999, 6000])
def test_blocks_equal_the_whole_and_keep_their_lengths(signal, settings, block):
    parts = [signal[i : i + block] for i in range(0, len(signal), block)]
    out = list(zero_phase_blocks(iter(parts), RATE, settings))
    assert [len(p) for p in out] == [len(p) for p in parts]
    whole = zero_phase(signal, RATE, settings)
    assert np.abs(np.concatenate(out) - whole).max() < 1e-10 * np.abs(signal).max()


def test_blocks_of_uneven_lengths_and_one_column(signal):
    x = signal[:, 0]
    edges = np.sort(np.random.default_rng(5).integers(0, len(x), 40))
    parts = np.split(x, edges)
    out = list(zero_phase_blocks([*parts, x[:0]], RATE, FILTERS[0]))
    assert np.abs(np.concatenate(out) - zero_phase(x, RATE, FILTERS[0])).max() < 1e-10 * np.abs(x).max()


def test_blocks_hold_a_few_blocks_only():
    settings, block = Butterworth(20.0), np.ones((1000, 20))
    tracemalloc.start()
    for part in zero_phase_blocks((block for _ in range(150)), RATE, settings):
        assert np.abs(part - 1.0).max() < 1e-12
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The whole is 24 MB; some copies of two blocks and twice the overlap (about 420 samples) are below 3 MB.
    assert peak < 3e6


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
    with pytest.raises(DataError, match=r"at least 16 samples, found 15"):
        list(zero_phase_blocks([np.zeros(10), np.zeros(5)], RATE, Butterworth(20.0)))
    x = np.zeros((100, 2))
    x[7, 1] = np.nan
    with pytest.raises(DataError, match=r"sample 7 in column 1"):
        zero_phase(x, RATE, Butterworth(20.0))
    with pytest.raises(DataError, match=r"sample 107 in column 1"):
        list(zero_phase_blocks([np.zeros((100, 2)), x], RATE, Butterworth(20.0)))


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
