"""Episodes of sensors that fail, and repeats and silence noticed while a program runs."""

from __future__ import annotations

import numpy as np
import pytest

from observe import textbook
from observe.builders import log_of, start_of, system_of
from veridyn.errors import DataError
from veridyn.observe.consistency.health import Repeats, Silence, episodes
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status

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
