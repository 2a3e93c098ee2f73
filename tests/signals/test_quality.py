"""Each kind of finding, by its message: channel, time, expected, found, what to try. A clean log has none.

A rest or a stuck sensor: positions by Pinocchio and in closed form, frozen near reversals, and machines that come to rest.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import Recording, machine, recording, three_joints
from veridyn.errors import DataWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.mend import mended
from veridyn.signals.mending import QualityLimits
from veridyn.signals.quality import held, inspect, inspect_clocks, stands_still, stopped

ARM = machine(three_joints())
CLOCK = np.arange(2400) / 200.0
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


def quintic(start: float, seconds: float, reach: float) -> np.ndarray:
    s = np.clip((CLOCK - start) / seconds, 0.0, 1.0)
    return reach * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def resolved(made: Recording, grain: float) -> Recording:
    """With encoders of finite resolution, or with noise of 2e-5 rad where that is zero."""
    return made if grain == 0.0 else replace(made, measured_q=np.round(made.q / grain) * grain)


def frozen_at_reversal(seed: int, way: int, grain: float) -> tuple[Recording, int]:
    """600 samples; the encoder of a joint stands still to the end of the log from where it is 30 resolutions before or behind its last
    reversal, as the sign of `way` says."""
    made = resolved(recording(three_joints(), np.random.default_rng(seed), seconds=3.0), grain)
    turns = [np.flatnonzero(np.diff(np.sign(made.qd[:, k]))) for k in range(3)]
    last = [int(t[(t > 60) & (t < 500)].max(initial=0)) for t in turns]
    joint = int(np.argmax(last))
    at, q = last[joint], made.measured_q.copy()
    while abs(made.q[at, joint] - made.q[last[joint], joint]) < 30.0 * max(grain, 2e-5):
        at += way
    q[at:, joint] = q[at, joint]
    return replace(made, measured_q=q), joint + 1


@pytest.mark.parametrize("grain", [0.0, 1e-5, 1e-4])
def test_an_encoder_that_freezes_near_a_reversal_is_named(grain: float) -> None:
    for seed in range(40, 44):
        for way in (-1, 1):
            made, joint = frozen_at_reversal(seed, way, grain)
            with pytest.warns(DataWarning, match=rf"channel 'q.q{joint}': it is frozen in 1 span"):
                vd.motion(ARM, made.log, vd.Signals(lowpass=20.0))


@pytest.mark.parametrize("grain", [0.0, 1e-5, 1e-4])
def test_whole_encoders_are_not(grain: float) -> None:
    for seed in range(60, 80):
        found = inspect(resolved(recording(three_joints(), np.random.default_rng(seed), seconds=3.0), grain).log)
        assert not [f for f in found if f.severity != "note"]


def moved(seed: int, grain: float, noise: float = 2e-5) -> dict[str, np.ndarray]:
    """Two joints that move and rest in turn; noise, as of a resolver, only while they move."""
    rng = np.random.default_rng(seed)
    out = {}
    for name in ("a", "b"):
        q = sum(quintic(s, rng.uniform(0.6, 1.2), rng.uniform(-1.0, 1.0)) for s in (0.5, 3.0, 5.5, 8.0))
        qd = np.gradient(q, CLOCK)
        noisy = q + noise * rng.normal(size=len(CLOCK)) * (np.abs(qd) > 1e-6)
        out[f"q.{name}"] = np.round(noisy / grain) * grain if grain else noisy
        out[f"qd.{name}"] = np.where(np.abs(qd) > 1e-6, qd + 1e-3 * rng.normal(size=len(CLOCK)), 0.0)
        out[f"force.{name}"] = np.where(
            np.abs(qd) > 1e-6, 5.0 * qd + 0.05 * rng.normal(size=len(CLOCK)), 1.0
        )  # brakes hold
    return out


def log_of(values: dict[str, np.ndarray]) -> vd.Experiment:
    units = {"q": "rad", "qd": "rad/s", "force": "N*m"}
    return vd.Experiment.from_arrays(CLOCK, values, {name: units[name.partition(".")[0]] for name in values})


@pytest.mark.parametrize("grain", [0.0, 1e-5, 1e-4])
def test_channels_of_a_machine_at_rest_are_not_frozen(grain: float) -> None:
    for seed in range(10):
        assert not inspect(log_of(moved(seed, grain))).of("frozen")


def test_a_channel_that_stands_still_while_the_machine_moves_is_frozen() -> None:
    rng = np.random.default_rng(3)
    q = 0.8 * np.sin(2.0 * np.pi * 0.3 * CLOCK)
    qd = np.gradient(q, CLOCK)
    whole = {"q.a": q + 2e-5 * rng.normal(size=len(CLOCK)), "qd.a": qd + 1e-3 * rng.normal(size=len(CLOCK))}
    whole["force.a"] = 4.0 * qd + 0.05 * rng.normal(size=len(CLOCK))
    assert not inspect(log_of(whole)).of("frozen")
    for name in whole:
        values = dict(whole)
        values[name] = values[name].copy()
        values[name][1000:1060] = values[name][1000]
        found = inspect(log_of(values)).of("frozen")
        assert [f.channel for f in found] == [name] and found[0].severity == "warning"


def test_noise_is_no_motion() -> None:
    channel = log_of({"q.a": 1e-4 * np.random.default_rng(0).normal(size=len(CLOCK)) + quintic(2.0, 1.0, 1.0)})["q.a"]
    assert stands_still(channel, 4.0, 5.0) and not stands_still(channel, 2.0, 3.0)


def test_clean_motions_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vd.motion(ARM, recording(three_joints(), np.random.default_rng(90), seconds=3.0).log, vd.Signals(lowpass=20.0))


def test_studies_say_it_too() -> None:
    """What `veridyn identify` reports of a log comes from mending it."""
    made, joint = frozen_at_reversal(41, 1, 1e-4)
    told = [str(f) for f in mended(made.log).told]
    assert any(f"channel 'q.q{joint}': it is frozen in 1 span" in text for text in told)
    cut = replace(made, measured_tau=np.trunc(made.measured_tau))
    assert any("channel 'force.q1': all its values are multiples of 1 N*m" in str(f) for f in mended(cut.log).told)


def test_a_slow_sensor_on_a_fast_clock_is_held():
    x = np.sin(2 * np.pi * 0.5 * CLOCK) + 0.01 * np.random.default_rng(0).standard_normal(len(CLOCK))
    assert held(np.repeat(x[::4], 4)) == 4
    assert held(x) == 1 and held(np.round(x, 0)) == 1


def test_a_coarse_noisy_force_that_stands_still_once_is_stopped():
    rng, t = np.random.default_rng(3), np.arange(2000) / 200.0
    x = np.round((5.0 * np.sin(2 * np.pi * 0.3 * t) + 0.05 * rng.standard_normal(len(t))) / 0.05) * 0.05
    assert stopped(x) == []
    x[900:1100] = 0.0
    assert stopped(x) == [(900, 1099)]
    x[300:400] = x[300]  # twice: it may rest
    assert stopped(x) == []
    assert stopped(np.sin(t)) == stopped(np.ones(500)) == []


def test_a_force_that_freezes_while_its_joint_moves_is_named_by_the_joint() -> None:
    """Between noise a freeze may look like a rest; where positions are logged, they say whether the machine rests."""
    t, missed = np.arange(600) / 200.0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        force = (
            np.where(t < 33 / 200, -0.2, -1.8)
            - 5.0 * np.sin(6.0 * np.maximum(t - 0.5, 0.0))
            + 0.09 * rng.standard_normal(len(t))
        )
        position = -0.4 - 0.5 * t**2 + 1e-4 * rng.standard_normal(len(t))
        whole = Experiment.from_arrays(t, {"q.q1": position, "force.q1": force}, {"q.q1": "rad", "force.q1": "N*m"})
        assert not [f for f in inspect(whole) if f.kind in ("frozen", "dropout")]
        force[45:95] = force[45]
        damaged = Experiment.from_arrays(t, {"q.q1": position, "force.q1": force}, {"q.q1": "rad", "force.q1": "N*m"})
        missed += not [f for f in inspect(damaged) if f.kind == "frozen"]
    assert missed == 0
