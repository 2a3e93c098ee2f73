"""Channels and experiments: what they hold, what they refuse, and that a bad log can still be held."""

import pickle

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment

T = np.arange(5) / 10.0


def test_a_channel_holds_floats_and_knows_its_rate():
    c = Channel("q1", [0, 1, 2], [3, 4, 5], "rad")
    assert c.t.dtype == c.values.dtype == np.float64
    assert len(c) == 3
    assert c.rate == 1.0
    assert np.isnan(Channel("q1", [0.0], [1.0], "rad").rate)


def test_shapes_and_unit_are_checked_together():
    with pytest.raises(DataError) as caught:
        Channel("q1", T, np.zeros((5, 2)), " ")
    text = str(caught.value)
    assert "channel 'q1': times and values do not belong together." in text
    assert "found t (5,) and values (5, 2)" in text
    assert "it has no unit.\nExpected a unit such as 'rad'" in text


def test_bad_data_can_be_held_to_be_mended():
    c = Channel("q1", [0.0, 2.0, 1.0], [np.nan, 1.0, 2.0], "rad")
    assert np.isnan(c.values[0])


def test_experiment_is_a_mapping_of_channels():
    log = Experiment.from_arrays(T, {"a": T, "b": 2 * T}, {"a": "m", "b": "N"}, "run")
    assert log.names == ("a", "b")
    assert list(log) == ["a", "b"]
    assert len(log) == 2
    assert "a" in log
    assert "c" not in log
    assert log["b"].unit == "N"
    with pytest.raises(DataError, match=r"run: there is no channel 'bb'.\nKnown: a, b. Did you mean 'b'\?"):
        log["bb"]


def test_from_arrays_needs_every_unit():
    with pytest.raises(DataError, match=r"channel 'b': it has no unit"):
        Experiment.from_arrays(T, {"a": T, "b": T}, {"a": "m"})


def test_key_and_name_must_agree():
    with pytest.raises(DataError, match=r"the key and the name of a channel differ.\nFound x"):
        Experiment({"x": Channel("a", T, T, "m")})


def test_span_is_the_time_that_all_channels_share():
    log = Experiment({"a": Channel("a", T, T, "m"), "b": Channel("b", T + 0.15, T, "m")})
    assert log.span == (0.15, pytest.approx(0.4))
    with pytest.raises(DataError, match=r"spans no time"):
        _ = Experiment({}).span
    with pytest.raises(DataError, match=r"spans no time"):
        _ = Experiment({"a": Channel("a", [], [], "m")}).span


def test_replacing_makes_a_copy():
    log = Experiment.from_arrays(T, {"a": T}, {"a": "m"}, "run")
    other = log.replacing(Channel("a", T, 3 * T, "m"), Channel("b", T, T, "N"))
    assert np.array_equal(log["a"].values, T)
    assert np.array_equal(other["a"].values, 3 * T)
    assert other.names == ("a", "b")
    assert other.name == "run"


def test_errors_travel_between_processes():
    with pytest.raises(DataError) as caught:
        Channel("a", T, T[:-1], "")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.faults == caught.value.faults


def test_a_log_is_printed_in_one_line() -> None:
    """Channels, samples, rate, duration and units; no arrays."""
    t = 0.005 * np.arange(4001)
    values = {f"q.q{k}": t for k in range(1, 8)} | {"force.q1": t}
    units = {name: "rad" if name[0] == "q" else "N*m" for name in values}
    log = Experiment.from_arrays(t, values, units, "run.csv")
    assert repr(log) == (
        "Experiment('run.csv', 8 channels, 4001 samples at 200 Hz, 20 s from 0 s: "
        "q.q1, q.q2, q.q3, …, q.q7 [rad]; force.q1 [N*m])"
    )
    assert repr(log["force.q1"]) == "Channel('force.q1' [N*m], 4001 samples at 200 Hz, 20 s from 0 s)"
    slow = Channel("temperature", t[::100], t[::100], "K")
    assert "41 to 4001 samples at 2 to 200 Hz" in repr(log.replacing(slow))
    assert repr(Experiment({}, "nothing")) == "Experiment('nothing', 0 channels)"
    assert "0 samples" in repr(Channel("none", np.zeros(0), np.zeros(0), "1"))
