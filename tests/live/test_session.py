"""Rows through a feed: in order, each once, lost ones counted, and the writer never waits.

A replay: stamps decide when, the clock of the test says how long, and a pause holds it.
"""

import json
import threading
from threading import Event

import numpy as np
import pytest

from veridyn.live.session import FRESH_ROWS, Feed, Pace, Replay
from veridyn.live.tracker import Again, Layout, Row, Sample, Shown, Trouble

LOG = [Sample(0.1 * k, {}, 0.0) for k in range(5)]
LAYOUT = Layout("machine", "observer", (Shown("x", "m", "states"),))


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


def test_a_replay_waits_for_an_observer_that_does_not_keep_its_pace():
    """Samples .1 s apart at pace 10, each .4 s of work: the observer reaches .25, and samples never say that they waited for a second."""
    clock, late, said = Clock(), [], []
    log = [Sample(0.1 * k, {}, 0.0) for k in range(20)]
    for item in Replay("log", log, Pace(10.0), clock=lambda: clock.now, today=lambda: clock.now).samples(clock):
        if isinstance(item, Trouble):
            said.append(item)
            continue
        late.append(clock.now - item.arrived)
        clock.now += 0.4
    assert len(late) == 20 and max(late) < 1.0
    assert {t.key for t in said} == {"pace"}
    assert said[0].text == "the observer does not keep pace 10: it reaches 0.25, and the replay waits for it."


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


def row(t: float, value: float | None = None) -> Row:
    return Row(t, [t if value is None else value], [0.1], 0.0)


def numbers_of(batch) -> list[int]:
    return [json.loads(text)[0] for text in batch.rows]


def test_a_reader_gets_every_row_once_and_in_order():
    feed = Feed(LAYOUT)
    reader, seen = feed.reader(), []
    for k in range(53):
        feed.publish(row(0.01 * k))
        if k % 7 == 0:
            seen += numbers_of(reader.take(0.0))
    seen += numbers_of(reader.take(0.0))
    assert seen == list(range(1, 54)) and reader.lost == 0
    assert reader.take(0.0) is None


def test_rows_that_a_slow_reader_missed_are_counted_and_the_newest_stay():
    feed = Feed(LAYOUT, keep=10)
    slow = feed.reader()
    for k in range(37):
        feed.publish(row(float(k)))
    batch = slow.take(0.0)
    assert numbers_of(batch) == list(range(28, 38)) and batch.lost == 27
    feed.publish(row(37.0))
    assert numbers_of(slow.take(0.0)) == [38] and slow.lost == 27


def test_a_reader_that_was_cut_off_goes_on_where_it_was():
    feed = Feed(LAYOUT)
    for k in range(20):
        feed.publish(row(float(k)))
    assert numbers_of(feed.reader(after=12).take(0.0)) == list(range(13, 21))
    assert feed.reader(after=20).take(0.0).rows == ()
    assert numbers_of(feed.reader(after=21).take(0.0)) == list(range(1, 21))  # it never was there


def test_a_fresh_page_gets_the_last_rows_and_none_count_as_lost():
    feed = Feed(LAYOUT)
    for k in range(FRESH_ROWS + 100):
        feed.publish(row(float(k)))
    batch = feed.reader().take(0.0)
    assert numbers_of(batch) == list(range(101, FRESH_ROWS + 101)) and batch.lost == 0


def test_numbers_keep_every_digit_and_what_is_not_finite_is_null():
    feed = Feed(LAYOUT)
    feed.publish(Row(0.1 + 0.2, [np.pi * 1e-7], [np.nan], 12.5, [np.inf], [1.0], [4], np.nan))
    found = json.loads(feed.reader().take(0.0).text())["rows"][0]
    assert found == [1, 0.1 + 0.2, 12500.0, [np.pi * 1e-7], [None], [None], [1.0], [4], None]


def test_alarms_of_one_kind_are_counted_and_not_repeated():
    feed = Feed(LAYOUT)
    reader = feed.reader()
    for k in range(1000):
        feed.alarm(f"packet {k} is no JSON", "not JSON")
    feed.alarm("something else")
    batch = reader.take(0.0)
    assert [(a.text, a.count) for a in batch.alarms] == [("packet 999 is no JSON", 1000), ("something else", 1)]
    feed.alarm("packet 1000 is no JSON", "not JSON")
    assert [(a.text, a.count) for a in reader.take(0.0).alarms] == [("packet 1000 is no JSON", 1001)]


def test_only_the_newest_picture_travels():
    feed = Feed(LAYOUT)
    reader = feed.reader()
    for k in range(3):
        feed.publish(row(float(k)), np.full((2, 3), float(k)))
    assert json.loads(reader.take(0.0).text())["pose"] == [2.0] * 6
    feed.publish(row(3.0))
    assert "pose" not in json.loads(reader.take(0.0).text())


def test_the_writer_goes_on_while_a_reader_never_takes_anything_and_closing_ends_the_waiting():
    feed = Feed(LAYOUT, keep=5)
    feed.reader()
    ended = threading.Event()

    def wait_for_news():
        reader = feed.reader(after=feed.last)
        reader.take(0.0)  # alarms and state as they are
        assert reader.take() is None
        ended.set()

    for k in range(10_000):
        feed.publish(row(float(k)))
    assert feed.last == 10_000 and len(feed._rows) == 5
    waiting = threading.Thread(target=wait_for_news)
    waiting.start()
    feed.close()
    waiting.join()
    assert ended.is_set()


@pytest.mark.parametrize("after", [None, 0])
def test_a_feed_without_rows_has_nothing_to_give(after):
    assert Feed(LAYOUT).reader(after).take(0.0).rows == ()
