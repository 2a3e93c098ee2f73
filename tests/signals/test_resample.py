"""Common clocks: closed-form signals, SciPy's decimation as a stranger, and every refusal in its own words."""

import numpy as np
import pytest

from veridyn.errors import DataError, DataWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.resample import anti_alias, gaps, on_one_clock, outside, resample, uniform_rate


def channel(t, f=np.sin, name="q1"):
    t = np.asarray(t, dtype=float)
    return Channel(name, t, f(t), "rad")


def jittered(rate, seconds, seed=0, share=0.3, start=0.0):
    rng = np.random.default_rng(seed)
    t = np.arange(int(rate * seconds)) / rate
    return start + t + rng.uniform(-share / 2, share / 2, len(t)) / rate


@pytest.mark.parametrize(("method", "error"), [("linear", 2.1e-4), ("cubic", 1e-7), ("pchip", 2.1e-4)])
def test_interpolation_of_a_sinusoid_on_a_jittering_clock(method, error):
    # The longest step is 13 ms; a chord over it misses a sinusoid of 0.5 Hz by at most 0.013² π²/8 = 2.1e-4.
    c = channel(jittered(100.0, 10.0), lambda t: np.sin(2 * np.pi * 0.5 * t))
    out = resample(c, 200.0, method)
    assert np.abs(out.values - np.sin(2 * np.pi * 0.5 * out.t)).max() < error
    assert out.unit == "rad"
    assert uniform_rate(out.t) == pytest.approx(200.0)


def test_experiment_gets_one_clock_inside_the_common_span():
    log = Experiment(
        {
            "a": channel(jittered(100.0, 10.0, 1), name="a"),
            "b": channel(jittered(77.0, 8.0, 2, start=1.3), name="b"),
        },
        "run",
    )
    out = resample(log, 100.0, "cubic")
    assert np.array_equal(out["a"].t, out["b"].t)
    start, end = log.span
    assert out["a"].t[0] == start
    assert end - 0.01 < out["a"].t[-1] <= end
    assert np.abs(out["b"].values - np.sin(out["b"].t)).max() < 1e-6
    assert out.name == "run"


def test_given_times_are_kept_and_must_lie_inside():
    c = channel(np.linspace(0.0, 1.0, 101))
    times = np.array([0.105, 0.2, 0.9])
    assert resample(c, times, "cubic", antialias=False).values == pytest.approx(np.sin(times), abs=1e-8)
    with pytest.raises(DataError, match=r"Expected 0 s to 1 s, found 0.5 s to 1.1 s"):
        resample(c, [0.5, 1.1])
    with pytest.raises(DataError, match="the new clock: its clock runs backwards"):
        resample(c, [0.5, 0.4])


def test_the_last_sample_survives_rounding():
    t = 1000.0 + np.arange(1001) / 100.0
    out = resample(channel(t), 100.0)
    assert len(out.t) == 1001
    assert out.values == pytest.approx(np.sin(t), abs=1e-12)


def test_going_down_folds_nothing_back():
    """45 Hz at 40 Hz would read as 5 Hz of full height; the low-pass leaves 1e-7 of it, and the 2 Hz signal whole."""
    rate = 1000.0
    t = np.arange(5000) / rate
    c = Channel("a", t, np.sin(2 * np.pi * 2.0 * t) + np.sin(2 * np.pi * 45.0 * t), "m")
    plain = resample(c, 40.0, antialias=False)
    clean = resample(c, 40.0)
    inner = slice(20, -20)
    truth = np.sin(2 * np.pi * 2.0 * clean.t)[inner]
    assert np.abs(plain.values[inner] - truth).max() > 0.9
    assert np.abs(clean.values[inner] - truth).max() < 1e-3


def test_going_down_from_a_jittering_clock():
    c = channel(jittered(500.0, 20.0, 4), lambda t: np.sin(2 * np.pi * t) + np.sin(2 * np.pi * 60.0 * t))
    out = resample(c, 50.0, "cubic")
    inner = slice(20, -20)
    assert np.abs(out.values - np.sin(2 * np.pi * out.t))[inner].max() < 2e-2


def test_the_filter_before_going_down_is_the_stated_one():
    stated = anti_alias(100.0)
    assert stated == Butterworth(40.0, order=8)
    assert stated.gain([40.0, 50.0], 1000.0) == pytest.approx([0.5, 0.027], abs=1e-3)


def test_uniform_rate_with_and_without_jitter():
    assert uniform_rate(46408.0 + np.arange(1000) / 104.0) == pytest.approx(104.0, rel=1e-9)
    t = np.arange(100) / 50.0
    t[40:] += 0.002
    with pytest.raises(DataError, match=r"a step of 0.022 s at t = 0.78 s \(jitter 9.89 %\)"):
        uniform_rate(t, where="channel 'a'")
    assert uniform_rate(t, tolerance=0.2) == pytest.approx(50.0, rel=2e-3)
    with pytest.raises(DataError, match="at least two times"):
        uniform_rate([1.0])


def test_backwards_and_repeated_clocks_are_refused_by_name_all_at_once():
    t = np.arange(10.0)
    back, twice = t.copy(), t.copy()
    back[5] = 3.5
    twice[7] = twice[6]
    log = Experiment({"a": channel(back, name="a"), "b": channel(twice, name="b")})
    with pytest.raises(DataError) as caught:
        resample(log, 10.0)
    text = str(caught.value)
    assert "channel 'a': its clock runs backwards at t = 4 s, 1 time(s) in all." in text
    assert "Expected times that increase, found 4 s then 3.5 s at sample 5." in text
    assert "channel 'b': its clock repeats a time at t = 6 s" in text


def test_nan_values_and_stamps_are_refused():
    t = np.arange(10.0)
    x = t.copy()
    x[3] = np.nan
    with pytest.raises(DataError, match="channel 'a': 1 of its values are not finite numbers, the first at t = 3 s"):
        resample(Channel("a", t, x, "m"), 2.0)
    with pytest.raises(DataError, match="1 of its time stamps are not finite numbers"):
        resample(Channel("a", x, t, "m"), 2.0)


def test_gaps_are_refused_or_reported():
    t = np.concatenate([np.arange(100), np.arange(150, 250)]) / 100.0
    c = channel(t)
    with pytest.raises(DataError, match=r"1 gap\(s\) would be bridged .*\nFound 'q1' from 0.99 s to 1.5 s \(0.51 s\)"):
        resample(c, 100.0)
    with pytest.warns(DataWarning, match="leave those samples out") as record:
        out = resample(c, 100.0, on_gap="report")
    assert record[0].filename == __file__
    spans = gaps(c)
    assert [(g.start, g.end) for g in spans] == [(0.99, 1.5)]
    keep = outside(out.t, spans)
    assert (~keep).sum() == 50
    assert np.abs(out.values - np.sin(out.t))[keep].max() < 1e-12
    assert len(resample(c, 100.0, max_gap=0.6).t) == 250


def test_channels_without_common_time_and_other_bad_requests():
    log = Experiment({"a": channel(np.arange(5.0), name="a"), "b": channel(10.0 + np.arange(5.0), name="b")}, "run")
    with pytest.raises(
        DataError, match=r"run: its channels have no time in common.\n.*'b' starts at 10 s, 'a' ends at 4 s"
    ):
        resample(log, 10.0)
    with pytest.raises(DataError, match="no channels"):
        resample(Experiment({}), 10.0)
    with pytest.raises(DataError, match="there is no interpolation 'quintic'"):
        resample(log["a"], 10.0, "quintic")
    with pytest.raises(DataError, match="at least 4 samples, found 3"):
        resample(channel([0.0, 1.0, 2.0]), 10.0, "cubic")
    with pytest.raises(DataError, match="sampling rate"):
        resample(log["a"], -1.0)


def log_of(*clocks: np.ndarray) -> Experiment:
    """Channels a, b … with the value t² at their own times."""
    channels = [Channel(name, t, t**2, "m") for name, t in zip("abc", clocks)]
    return Experiment({c.name: c for c in channels}, "log")


def test_one_uniform_clock_is_kept_as_it_is() -> None:
    t = 0.01 * np.arange(200)
    log = log_of(t, t.copy())
    found, rate = on_one_clock(log, None, "cubic", None)
    assert found is log
    assert rate == pytest.approx(100.0, rel=1e-12)


def test_the_fastest_uniform_clock_is_the_common_one() -> None:
    found, rate = on_one_clock(log_of(0.01 * np.arange(200), 0.02 * np.arange(100) + 0.003), None, "cubic", None)
    assert rate == pytest.approx(100.0, rel=1e-12)
    assert np.array_equal(found["a"].t, found["b"].t)
    for name in "ab":  # a cubic spline has a parabola exactly
        np.testing.assert_allclose(found[name].values, found[name].t ** 2, atol=1e-12)


def test_the_rate_that_is_wanted_is_made() -> None:
    found, rate = on_one_clock(log_of(0.01 * np.arange(200)), 50.0, "linear", None)
    assert rate == 50.0
    np.testing.assert_allclose(np.diff(found["a"].t), 0.02, atol=1e-12)


def test_a_log_without_channels_is_refused() -> None:
    with pytest.raises(DataError, match="no channel of it belongs to this machine"):
        on_one_clock(Experiment({}, "log"), None, "cubic", None)


@pytest.mark.parametrize("method", ["linear", "cubic", "pchip"])
def test_times_of_samples_give_the_samples(method):
    """A quarter of the samples of a clock of 1 kHz whose stamps are rounded; between samples all methods still interpolate."""
    t = np.arange(4001) / 1000.0
    values = np.random.default_rng(2).normal(size=len(t))
    channel = Channel("q.hinge", t, values, "rad")
    made = resample(channel, 250.0, method, antialias=False)
    np.testing.assert_array_equal(made.values, values[::4])
    off = resample(channel, t[:-1] + 1e-9, method, antialias=False)
    assert 0.0 < np.abs(off.values - values[:-1]).max() < 1e-4
