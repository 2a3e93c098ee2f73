"""Each kind of finding, by its message: channel, time, expected, found, what to try. A clean log has none."""

import numpy as np
import pytest

from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.quality import QualityLimits, inspect, inspect_clocks

T = np.arange(1000) / 100.0
X = np.sin(2 * np.pi * 0.4 * T) + 0.001 * np.random.default_rng(0).standard_normal(len(T))


def one(t=T, x=X, limits=None):
    """The findings on a log of this channel."""
    log = Experiment({"z1": Channel("z1", np.array(t, dtype=float), np.array(x, dtype=float), "m")}, "run 3")
    before = log["z1"].values.copy(), log["z1"].t.copy()
    found = inspect(log, limits) if limits else inspect(log)
    assert np.array_equal(log["z1"].values, before[0], equal_nan=True)
    assert np.array_equal(log["z1"].t, before[1], equal_nan=True)
    return found


def only(found, kind, severity):
    assert [f.kind for f in found] == [kind]
    assert found[0].severity == severity
    assert found[0].channel == "z1"
    assert found[0].message.startswith("channel 'z1': ")
    return found[0]


def test_a_clean_channel_has_no_findings():
    found = one()
    assert len(found) == 0
    assert found.summary() == "run 3: nothing found."
    found.raise_if_fatal()


@pytest.mark.parametrize(("length", "severity"), [(8, "warning"), (5, "note")])
def test_a_short_freeze_of_a_position_counts_by_the_jump_behind_it(length, severity):
    """sin at 0.2 Hz and 1 kHz moves at most 0.063 % of its range a sample: eight samples are half a percent, five are less."""
    t = np.arange(4000) / 1000.0
    x = np.sin(2 * np.pi * 0.2 * t)
    x[2500 : 2500 + length] = x[2500]
    found = [f for f in one(t, x) if f.kind == "frozen"]
    assert [f.severity for f in found] == [severity]


def test_gap():
    f = only(one(np.where(T > 5.0, T + 0.73, T)), "gap", "warning")
    assert f.message == (
        "channel 'z1': 1 gap(s) without a sample, first at t = 5.000000 s.\n"
        "Expected a sample every 0.01 s, found 0.74 s there, the longest 0.74 s at t = 5.000000 s. "
        "Leave those spans out (resample with on_gap='report' names them), or cut the log there."
    )
    assert (f.t_start, f.t_end, f.count) == (5.0, pytest.approx(5.74), 1)


def test_jitter():
    t = T + np.random.default_rng(1).uniform(-0.002, 0.002, len(T))
    f = only(one(t), "jitter", "warning")
    assert "steps of its clock jitter, first at t = 0." in f.message
    assert "Expected steps within 5 % of 0.01" in f.message
    assert "Resample onto a uniform clock" in f.message


def test_a_rare_odd_step_is_not_jitter():
    t = T.copy()
    t[500] += 0.004
    assert len(one(t)) == 0


def test_duplicate_stamps():
    t = T.copy()
    t[301] = t[300]
    f = next(f for f in one(t) if f.kind == "duplicate")
    assert f.severity == "fatal"
    assert f.message == (
        "channel 'z1': 1 of its time stamps repeat the one before, first at t = 3.000000 s.\n"
        "Expected times that increase, found 3.000000 s twice (samples 300 and 301). "
        "Keep one sample of each time; a clock too coarse for the rate needs a finer one."
    )


def test_backwards_clock():
    t = np.where(T > 6.0, T - 2.5, T)
    f = only(one(t), "backwards", "fatal")
    assert "its clock runs backwards 1 time(s), first at t = 6.000000 s." in f.message
    assert "found 6.000000 s then 3.510000 s (sample 601)" in f.message
    assert "Cut the log where the clock was reset" in f.message


def test_clock_that_is_not_a_number():
    t = T.copy()
    t[7] = np.nan
    f = only(one(t), "clock nan", "fatal")
    assert "1 of its time stamps are not finite numbers.\nExpected seconds, found nan at sample 7." in f.message


def test_nan_values():
    x = X.copy()
    x[[250, 251, 800]] = np.nan, np.inf, np.nan
    f = only(one(x=x), "nan", "fatal")
    assert (f.t_start, f.t_end, f.count) == (2.5, 8.0, 3)
    assert "3 of its 1000 values are not finite numbers, first at t = 2.500000 s." in f.message
    assert "found nan at sample 250. Cut those spans" in f.message


def test_clocks_and_numbers_alone():
    """The same findings of these, and none of a spike."""
    t, x = np.where(T > 5.0, T + 0.73, T), X.copy()
    x[300], x[400] = 50.0, np.nan
    log = Experiment({"z1": Channel("z1", t, x, "m")}, "run 3")
    assert [f.kind for f in inspect(log)] == ["gap", "nan", "spike"]
    assert inspect_clocks(log).findings == tuple(f for f in inspect(log) if f.kind != "spike")


def test_constant():
    f = only(one(x=np.full(1000, 0.25)), "constant", "warning")
    assert "it never changes between t = 0.000000 s and t = 9.990000 s." in f.message
    assert "Expected a signal that moves, found 0.25 m in all 1000 samples. Check the sensor" in f.message


def test_clipping():
    f = only(one(x=np.clip(X, -0.9, 2.0)), "clipping", "warning")
    assert "it looks clipped: its smallest value repeats in 4 plateau(s), first at t = 1.70" in f.message
    assert "found -0.9 m in" in f.message
    assert "Compare with the range of the sensor" in f.message


def test_spike():
    x = X.copy()
    x[432] = 7.5
    f = only(one(x=x), "spike", "warning")
    assert (f.t_start, f.count) == (4.32, 1)
    assert "1 spike(s), first at t = 4.320000 s.\nExpected values near -0." in f.message
    assert "found 7.5 m. Replace those samples" in f.message


def test_empty_and_short():
    f = only(one([], []), "empty", "fatal")
    assert f.message == (
        "channel 'z1': it has no samples.\nExpected at least 20 samples, found 0. "
        "Check that the sensor was connected and that the log was not cut off."
    )
    f = only(one(T[:10], X[:10]), "empty", "warning")
    assert "it is very short.\nExpected at least 20 samples, found 10." in f.message


def test_standstill_is_looked_for_on_request():
    x = np.concatenate([X[:400], np.full(250, X[399]), X[400:-250]])
    assert only(one(x=x), "frozen", "warning").count == 251  # the noise stops, too
    x = np.round(x, 2)  # of a coarse sensor it may be at rest
    assert len(one(x=x)) == 0
    f = only(one(x=x, limits=QualityLimits(standstill=1.0)), "standstill", "note")
    assert "it stands still in 1 span(s), first from t = 3.990000 s to t = 6.490000 s." in f.message
    assert f.count == 251


def test_two_channels_keep_their_own_findings():
    bad = Channel("b", T, np.full(1000, np.nan), "N")
    found = inspect(Experiment({"a": Channel("a", T, X, "m"), "b": bad}))
    assert [f.channel for f in found] == ["b"]
    assert found.of(channel="a") == ()
    assert len(found.of("nan", "b")) == 1


def test_a_clock_that_channels_share_is_judged_once():
    t = np.where(T > 5.0, T + 0.73, T)
    found = inspect(Experiment.from_arrays(t, {"a": X, "b": 2 * X, "c": -X}, dict.fromkeys("abc", "m")))
    assert [f.kind for f in found] == ["gap"]
    assert found[0].message.startswith("channel 'a' and 2 more on its clock: 1 gap(s)")


def test_a_rest_at_nothing_is_only_noted():
    f = only(one(x=np.clip(X, 0.0, 2.0)), "clipping", "note")
    assert "its smallest value repeats" in f.message


def test_dropouts_frozen_stretches_and_held_values():
    rng = np.random.default_rng(4)
    x = 3.0 * np.sin(2 * np.pi * 0.4 * T) + 0.1 * rng.standard_normal(len(T))
    lost, stuck, short, away = x.copy(), x.copy(), x.copy(), x.copy()
    lost[400:405] = 0.0
    stuck[400:430] = stuck[400]
    short[400:406] = short[400]
    away[400:460] = 0.0
    only(one(x=lost), "dropout", "warning")
    only(one(x=stuck), "frozen", "warning")
    only(one(x=short), "frozen", "note")
    only(one(x=away), "frozen", "warning")
    only(one(x=np.repeat(x[::5], 5)), "held", "warning")


def test_a_position_that_jumps_to_zero_and_stays_there_until_the_record_ends():
    x = 0.15 + np.sin(2 * np.pi * 0.4 * T)  # near zero at the end
    x[-8:] = 0.0
    assert 0.02 < abs(x[-9]) < 0.2
    assert [f.severity for f in one(x=x) if f.kind == "frozen"] == ["warning"]
