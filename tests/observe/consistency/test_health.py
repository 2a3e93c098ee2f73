"""Episodes of sensors that fail, and repeats and silence noticed while a program runs."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from observe import textbook
from observe.builders import log_of, start_of, system_of
from observe.test_model_error import HOW, SETTLED, T, cart, recorded, truth
from veridyn.errors import DataError, DataWarning
from veridyn.observe.consistency.health import (
    Repeats,
    SensorDelay,
    Silence,
    chain,
    episodes,
    held_readings,
    sensor_delays,
)
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observation import Observation

CASE = textbook.oscillator()


def test_episodes_name_what_went_wrong_and_when() -> None:
    _, y = CASE.simulate(100, np.random.default_rng(0))
    y[20:30, 0], y[50:, 1] = np.nan, y[50:, 1] + 50.0
    found = episodes(run(EKF(gate=0.9999), system_of(EKF, CASE), log_of(CASE, y), start_of(CASE)))
    told = [(e.output, e.status, e.count) for e in found]
    assert told == [("y0", Status.NOT_FINITE, 10), ("y1", Status.OUTLIER, 50)]
    assert "'y0' sends no numbers from" in str(found[0]) and "(10 readings not used)" in str(found[0])


def test_a_slower_clock_is_no_silence_but_a_dead_sensor_is() -> None:
    _, y = CASE.simulate(100, np.random.default_rng(0))
    flags = np.full((100, 2), Status.USED, dtype=np.int8)
    flags[:, 1] = Status.MISSING
    flags[:60:5, 1] = Status.USED
    log = Measurements(CASE.step * np.arange(100), y, CASE.outputs, flags)
    found = episodes(run(EKF(), system_of(EKF, CASE), log, start_of(CASE)))
    assert [(e.output, e.status) for e in found] == [("y1", Status.MISSING)]
    assert found[0].since == pytest.approx(CASE.step * 60)


def test_repeats_are_counted_reading_by_reading() -> None:
    watch = Repeats(2, 3)
    used = np.zeros(2, dtype=np.int8)
    told = [watch.flags(np.array([1.0, k]), used).tolist() for k in range(6)]
    assert told == [[0, 0]] * 3 + [[int(Status.FROZEN), 0]] * 3
    assert watch.flags(np.array([2.0, 9.0]), used).tolist() == [0, 0]
    with pytest.raises(DataError, match="number of repeats"):
        Repeats(1, 0)


def test_silence_is_three_pauses_of_the_outputs_own_clock() -> None:
    """A fast output and one that speaks every fifth time; both fall silent after 20, and the first is back at 40."""
    watch, silent = Silence(2), {}
    for k in range(60):
        heard = np.array([k <= 20 or k >= 40, k % 5 == 0 and k <= 20])
        some = watch.since(0.1 * k, np.where(heard, Status.USED, Status.MISSING).astype(np.int8))
        silent[k] = watch.silent.tolist()
        assert some == any(silent[k])
    assert [k for k, s in silent.items() if s[0]] == list(range(24, 40))
    assert [k for k, s in silent.items() if s[1]] == list(range(36, 60))


LATE = 0.015  # s


@cache
def observed(seed: int, late: float) -> tuple[Observation, np.ndarray, float]:
    """The run of an angle that is `late`, its readings, and the NEES of the truth."""
    force, x, readings = truth(seed, 1.0)
    moved = readings.copy()
    moved[:, 1] = np.interp(T - late, T, x[:, 1]) + readings[:, 1] - x[:, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        states = vd.observe(cart(), recorded(force, moved), "ekf", HOW)
    return states, moved, states.nees(x[:, :2], x[:, 2:], skip=SETTLED).mean


@pytest.mark.parametrize("seed", [0, 1])
def test_a_delay_is_named_with_its_size_where_nis_says_nothing(seed: int) -> None:
    states, _, nees = observed(seed, LATE)
    assert 0.75 < states.nis().mean < 1.25 and nees > 100.0
    first = states.findings[0]
    assert (first.cause, first.place, first.rank) == ("delay", "angle", 1)
    assert abs(first.size - LATE) < 3.0 * first.sigma < 0.01
    assert states.delays[0].added_nees == pytest.approx(nees, rel=0.6)  # what a first-order sensitivity makes of NEES
    assert "later than its sensor says" in str(first) and first.record["cause"] == "delay"


@pytest.mark.parametrize("seed", [0, 1])
def test_right_clocks_are_not_named(seed: int) -> None:
    states, readings, _ = observed(seed, 0.0)
    assert states.delays == () and states.findings == ()
    every = sensor_delays(states.estimates, readings, 1.0)
    assert all(abs(d.size) < 3.0 * d.sigma for d in every)


def test_a_chain_is_that_of_products() -> None:
    rng = np.random.default_rng(0)
    A, b, s = rng.standard_normal((5, 3, 3)), rng.standard_normal((5, 3, 2)), np.empty((5, 3, 2))
    chain(A, b, s)
    expected = np.zeros((3, 2))
    for k in range(5):
        expected = A[k] @ expected + b[k]
        np.testing.assert_allclose(s[k], expected, rtol=1e-12, atol=1e-12)


def test_the_verb_warns_of_a_delay() -> None:
    _, moved, _ = observed(0, LATE)
    force = truth(0, 1.0)[0]
    with pytest.warns(DataWarning, match="'angle' is later than its sensor says, by"):
        vd.observe(cart(), recorded(force, moved), "ekf", HOW)


def test_a_sensor_that_seems_early_points_to_inputs() -> None:
    """No sensor reads ahead of time; a force that is held from sample to sample acts half a sample late."""
    late, early = (str(SensorDelay("angle", size, 1e-4, 50.0, 1.0)) for size in (1e-3, -1e-3))
    assert "'angle' is later than its sensor says, by 1 ± 0.1 ms" in late and "give its sensor a delay" in late
    assert "'angle' is earlier than its sensor says, by 1 ± 0.1 ms" in early and 'input_hold="linear"' in early


def test_readings_that_are_held_for_a_slower_clock_are_counted() -> None:
    rng = np.random.default_rng(0)
    own = rng.standard_normal(200)
    assert held_readings(np.repeat(own, 5)) == 5 and held_readings(own) == 1
    assert (
        held_readings(np.round(np.sin(np.linspace(0.0, 20.0, 1000)), 1)) == 1
    )  # coarse, and repeated by its own grain
    assert held_readings(np.zeros(100)) == 1


def _silent(t: np.ndarray, heard: np.ndarray) -> list[tuple[float, float]]:
    """Spans in which an output that is heard at these rows is called silent."""
    status = np.full((len(t), 1), Status.MISSING, dtype=np.int8)
    status[heard] = Status.USED
    _, y = CASE.simulate(2, np.random.default_rng(0))
    ran = run(EKF(), system_of(EKF, CASE), log_of(CASE, y), start_of(CASE))
    e = replace(ran, t=t, status=status, outputs=("angle",))
    return [(one.since, one.until) for one in episodes(e)]


def test_a_wheel_whose_edges_come_as_fast_as_it_turns_is_not_silent():
    t = np.arange(0.0, 20.0, 0.002)
    angle = np.cumsum(20.0 * (1.0 + 0.8 * np.sin(0.2 * np.pi * t))) * 0.002
    edges = np.flatnonzero(np.diff(np.floor(angle * 40.0 / (2.0 * np.pi)), prepend=0.0) > 0.0)
    assert _silent(t, edges) == []
    ((since, until),) = _silent(t, edges[(edges < 1000) | (edges > 1400)])
    assert 1.99 < since < 2.05 and 2.75 < until < 2.81


def test_slow_and_late_clocks_are_not_silent():
    t = np.arange(0.0, 20.0, 0.002)
    assert _silent(t, np.arange(0, len(t), 10)) == []
    assert _silent(t, np.arange(3000, len(t), 10)) == []
    assert _silent(t, np.arange(len(t) - 1)) == []
    assert len(_silent(t, np.setdiff1d(np.arange(0, len(t), 10), np.arange(5000, 5400)))) == 1
    assert len(_silent(t, np.arange(0, 7000, 10))) == 1
