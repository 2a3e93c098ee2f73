"""A replay: stamps decide when, the clock of the test says how long, and a pause holds it."""

from threading import Event

import numpy as np
import pytest

from veridyn.live.replay import Pace, Replay
from veridyn.live.tracker import Again, Sample

LOG = [Sample(0.1 * k, {}, 0.0) for k in range(5)]


class Clock(Event):
    """Time goes on by waiting alone; `at` are the times of the samples."""

    def __init__(self):
        super().__init__()
        self.now, self.waited = 100.0, []

    def wait(self, timeout=None):
        self.now += timeout
        self.waited.append(timeout)
        return self.is_set()


def times(pace: Pace, work: float = 0.0) -> tuple[list[float], list[float]]:
    """When the samples of the log came out, and when they say they arrived."""
    clock, at, said = Clock(), [], []
    for sample in Replay("log", LOG, pace, clock=lambda: clock.now, today=lambda: clock.now).samples(clock):
        at.append(clock.now - 100.0)
        said.append(sample.arrived - 100.0)
        clock.now += work
    return at, said


@pytest.mark.parametrize("rate", [0.5, 1.0, 4.0])
def test_samples_come_at_the_pace_of_their_stamps(rate):
    assert times(Pace(rate))[0] == pytest.approx([0.1 * k / rate for k in range(5)])


def test_an_observer_that_is_too_slow_is_late_and_the_samples_say_when_they_were_due():
    at, said = times(Pace(1.0), work=0.15)
    assert at == pytest.approx([0.15 * k for k in range(5)])
    assert said == pytest.approx([0.1 * k for k in range(5)])


def test_as_fast_as_it_can_nothing_waits():
    assert times(Pace(np.inf))[0] == [0.0] * 5


def test_a_pause_and_another_pace():
    clock, pace = Clock(), Pace(1.0)
    items = Replay("log", LOG, pace, clock=lambda: clock.now, today=lambda: clock.now).samples(clock)
    next(items)
    next(items)
    pace.paused = True
    real_wait = clock.wait

    def wait(timeout=None):
        pace.paused, pace.rate = clock.now < 103.0, 2.0
        return real_wait(timeout)

    clock.wait = wait
    third, then = next(items), clock.now
    assert then >= 103.0 and third.t == LOG[2].t
    next(items)
    assert clock.now - then == pytest.approx(0.05)


def test_stopping_ends_it_and_repeating_begins_again():
    stop = Event()
    items = Replay("log", LOG, Pace(np.inf), repeat=True).samples(stop)
    found = [next(items) for _ in range(8)]
    assert isinstance(found[5], Again) and [s.t for s in found[6:]] == [0.0, LOG[1].t]
    stop.set()
    assert list(items) == []
