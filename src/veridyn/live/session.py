"""A run that a page shows: samples from a source through a tracker into a feed, and what the reader of the page asks for.

A log is replayed at the pace of the machine, faster, slower, or as fast as its samples are taken.

The feed keeps the newest rows in a ring, and a place in it for each reader. The observer adds a row and goes on; it never waits for a
reader. A reader that is slower than the observer finds that the ring has gone past its place: it goes on with the oldest row that is
left, and the rows in between are counted as lost.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from threading import Event
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, VeridynError, did_you_mean
from veridyn.live.tracker import Again, Item, Layout, LiveTracker, Row, Sample, SampleSource, Trouble, numbers
from veridyn.model.experiment import Experiment
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import OWN_DEVIATION, SAME_STAMP_S, muted

LATE_S = 1.0  # behind its pace: a replay that is later waits for the observer from there on, as a machine would not
AWAKE_S = 0.05  # between looks at whether a pause is over
KEPT_ROWS = 1200
FRESH_ROWS = 300  # that a page gets when it is opened
KEPT_ALARMS = 200
PICTURE_S = 1.0 / 30.0  # between pictures of the machine, which cost more than rows
COSTLY = 5.0  # times what a picture took, before the next one: the observer has four fifths of the time at least
FASTEST = 1000.0  # pace that counts as “as fast as it can”


@dataclass
class Pace:
    """How fast a replay goes: seconds of the log in one second, infinite for as fast as it can; and whether it rests."""

    rate: float = 1.0
    paused: bool = False


@dataclass(frozen=True, eq=False)
class Replay:
    """Samples of a log by their stamps, once or, with `repeat`, again and again until everything is to stop."""

    name: str
    log: Sequence[Sample]
    pace: Pace = field(default_factory=Pace)
    repeat: bool = False
    clock: Callable[[], float] = time.monotonic
    today: Callable[[], float] = time.time

    @property
    def words(self) -> str:
        return f"replay of {self.name}"

    def samples(self, stop: Event) -> Iterator[Item]:
        """Each sample when its time has come; `arrived` is that time, also where the observer is late for it.

        Where it is late by more than `LATE_S`, the time of the log starts from there again, and the pace that was reached is reported.
        """
        yield from self._once(stop)
        while self.repeat and self.log and not stop.is_set():
            yield Again()
            yield from self._once(stop)

    def _once(self, stop: Event) -> Iterator[Item]:
        if not self.log:
            return
        at, since, rate = self.log[0].t, self.clock(), self.pace.rate
        for sample in self.log:
            while self.pace.paused or rate != self.pace.rate:
                if self.pace.paused and stop.wait(AWAKE_S):
                    return
                at, since, rate = sample.t, self.clock(), self.pace.rate
            left = 0.0
            if np.isfinite(rate):
                left = since + (sample.t - at) / rate - self.clock()
                if left < -LATE_S:
                    reached = (sample.t - at) / (self.clock() - since)
                    what = f"the observer does not keep pace {rate:g}: it reaches {reached:.2g}, and the replay waits for it."
                    yield Trouble("pace", what)
                    at, since, left = sample.t, self.clock(), 0.0
                if left > 0.0 and stop.wait(left):
                    return
            if stop.is_set():
                return
            yield Sample(sample.t, sample.values, self.today() + min(left, 0.0), sample.inputs, sample.sigma)


def log_samples(system: MachineSystem, log: Experiment) -> list[Sample]:
    """The readings of a log as they came in, one sample for each stamp, with what acts wherever that changes.

    Readings that the log says were not available are left out, and a reading that is not finite stays.
    """
    events: list[tuple[float, int, str, float, float]] = []  # stamp, kind, name, value, deviation
    for name, k in zip(system.table.names, system.table.owner, strict=True):
        channel, gone = log[name], muted(log, name, system.table.sensors[k].name)
        own = log[f"{name}{OWN_DEVIATION}"].values if f"{name}{OWN_DEVIATION}" in log else np.full(len(channel), np.nan)
        kept = ~gone
        rows = zip(channel.t[kept].tolist(), channel.values[kept].tolist(), own[kept].tolist(), strict=True)
        events += [(t, 1, name, value, sigma) for t, value, sigma in rows]
    for name in system.inputs:
        channel = log[name]
        new = np.concatenate([[True], channel.values[1:] != channel.values[:-1]])
        if name.startswith(("q.", "qd.", "qdd.")):
            new[:] = True  # a prescribed coordinate goes on from its last sample
        events += [(t, 0, name, v, np.nan) for t, v in zip(channel.t[new].tolist(), channel.values[new].tolist())]
    events.sort(key=lambda e: e[:2])
    found: list[Sample] = []
    acting: dict[str, float] = {}
    k = 0
    while k < len(events):
        t, values, sigma, changed = events[k][0], dict[str, float](), dict[str, float](), False
        while k < len(events) and events[k][0] <= t + SAME_STAMP_S:
            _, kind, name, value, own = events[k]
            if kind == 0:
                acting[name], changed = value, True
            else:
                values[name] = value
                if np.isfinite(own):
                    sigma[name] = own
            k += 1
        found.append(Sample(t, values, 0.0, dict(acting) if changed else {}, sigma))
    return found


@dataclass
class Alarm:
    """A sentence, how often it was said, and the number of the change that said it last."""

    text: str
    level: str
    count: int = 1
    change: int = 0


@dataclass(frozen=True)
class Batch:
    """What a reader has not seen yet: rows as JSON with the number `last` of the newest, a picture, alarms and the state, where new.

    `lost`: rows that the reader missed, since it was opened.
    """

    run: str
    rows: tuple[str, ...]
    last: int
    lost: int
    pose: str | None
    alarms: tuple[Alarm, ...]
    state: Mapping[str, Any] | None

    def text(self) -> str:
        """The batch as one line of JSON."""
        parts = [f'"rows":[{",".join(self.rows)}]', f'"last":{self.last}', f'"lost":{self.lost}']
        if self.pose is not None:
            parts.append(f'"pose":{self.pose}')
        if self.alarms:
            rows = [[a.change, a.level, a.text, a.count] for a in self.alarms]
            parts.append(f'"alarms":{json.dumps(rows)}')
        if self.state is not None:
            parts.append(f'"state":{json.dumps(self.state)}')
        return "{" + ",".join(parts) + "}"


@dataclass
class Feed:
    """The newest rows, the newest picture, alarms, and the state of the run; `run` is another word each time the program is started."""

    layout: Layout
    keep: int = KEPT_ROWS
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._rows: deque[str] = deque(maxlen=self.keep)
        self._last = 0  # number of the newest row
        self._pose: tuple[int, str] | None = None
        self._alarms: dict[str, Alarm] = {}
        self._changes = 0
        self._state: dict[str, Any] = {}
        self._state_changes = 0
        self.closed = False

    @property
    def last(self) -> int:
        return self._last

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        with self._changed:
            return tuple(self._alarms.values())

    def publish(self, row: Row, points: Array | None = None) -> int:
        """Add a row, and a picture (points, 3) where there is a new one; the number of the row."""
        with self._changed:
            self._last += 1
            self._rows.append(row.text(self._last))
            if points is not None:
                pose = [round(v, 5) if v is not None else None for v in numbers(points.ravel())]
                self._pose = self._last, json.dumps(pose, separators=(",", ":"))
            self._changed.notify_all()
            return self._last

    def alarm(self, text: str, key: str = "", level: str = "warning") -> None:
        """Say something; what has the `key` of an alarm before it is counted there, with the newer words."""
        with self._changed:
            self._changes += 1
            name = key or f"{self._changes}"
            before = self._alarms.pop(name, None)
            count = 1 if before is None else before.count + 1
            self._alarms[name] = Alarm(text, level, count, self._changes)
            while len(self._alarms) > KEPT_ALARMS:
                self._alarms.pop(next(iter(self._alarms)))
            self._changed.notify_all()

    def state(self, **words: Any) -> None:
        """Change what is known of the run: sensors that are off, pace, whether it is paused or has ended."""
        with self._changed:
            self._state |= words
            self._state_changes += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let every reader end."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def reader(self, after: int | None = None) -> FeedReader:
        """A place in the ring: behind the row `after`, where that is one of this run, or with the last few rows."""
        with self._changed:
            if after is not None and 0 <= after <= self._last:
                return FeedReader(self, after)
            return FeedReader(self, max(self._last - min(FRESH_ROWS, len(self._rows)), 0))


class FeedReader:
    """A reader's place in a feed; not for two threads at once."""

    def __init__(self, feed: Feed, after: int) -> None:
        self._feed, self._seen = feed, after
        self._pose = self._alarms = self._state = -1
        self.lost = 0

    def take(self, timeout: float | None = None) -> Batch | None:
        """All that is new, as soon as there is something; None when the time is over, or when the feed is closed."""
        feed = self._feed
        with feed._changed:
            feed._changed.wait_for(lambda: feed.closed or self._behind(), timeout)
            if not self._behind():
                return None
            count = feed._last - self._seen
            missed = max(count - len(feed._rows), 0)
            rows = list(feed._rows)[-count:] if count else []
            pose = feed._pose[1] if feed._pose is not None and feed._pose[0] > self._pose else None
            alarms = tuple(a for a in feed._alarms.values() if a.change > self._alarms)
            state = dict(feed._state) if feed._state_changes > self._state else None
            self.lost += missed
            self._seen, self._alarms, self._state = feed._last, feed._changes, feed._state_changes
            self._pose = self._pose if feed._pose is None else feed._pose[0]
            return Batch(feed.run, tuple(rows), feed._last, self.lost, pose, alarms, state)

    def _behind(self) -> bool:
        f = self._feed
        return f._last > self._seen or f._changes > self._alarms or f._state_changes > self._state


class Session:
    """Runs until its source ends or :meth:`stop` is called; `pace` where the source is a replay; `save` keeps what was found so far.

    Readers of the feed never hold it up, and whatever comes in is either used or named.
    """

    def __init__(
        self,
        tracker: LiveTracker,
        source: SampleSource,
        *,
        pace: Pace | None = None,
        save: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.tracker, self.source, self.pace, self._save, self._clock = tracker, source, pace, save, clock
        self.feed = Feed(tracker.layout)
        self.stopped = threading.Event()
        self._lock = threading.Lock()  # a switch or a save does not fall into the middle of a step
        self._off: list[str] = []
        self.feed.state(
            source=source.words, off=[], running=True, can_save=save is not None, **self._paced(), notes=list(notes)
        )

    def run(self) -> None:
        """Take samples until there are no more, or until :meth:`stop`."""
        drawn, cost = -inf, 0.0
        try:
            for item in self.source.samples(self.stopped):
                if isinstance(item, Trouble):
                    self.feed.alarm(item.text, item.key)
                    continue
                if isinstance(item, Again):
                    self.tracker.restart()
                    self.feed.alarm("the log is replayed again, and the observer begins again.", "again", "note")
                    continue
                with self._lock:
                    done = self.tracker.take(item)
                    points = None
                    now = self._clock()
                    if done.row is not None and done.pose is not None and now - drawn >= max(PICTURE_S, COSTLY * cost):
                        points = self._drawn(done.pose)
                        drawn, cost = self._clock(), self._clock() - now
                for trouble in done.alarms:
                    self.feed.alarm(trouble.text, trouble.key)
                if done.row is not None:
                    self.feed.publish(done.row, points)
        except VeridynError as error:
            self.feed.alarm(str(error), "ended", "error")
        finally:
            self.feed.state(running=False)

    def stop(self) -> None:
        """End the run; the page stays."""
        self.stopped.set()

    def command(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a page asks for: {"do": "switch", "sensor": …, "on": …}, "pause", "resume", "pace", "stop" or "save"."""
        do = wanted.get("do")
        known = {
            "switch": self._switch,
            "pause": lambda _: self._set_pace(paused=True),
            "resume": lambda _: self._set_pace(paused=False),
            "pace": self._change_pace,
            "stop": lambda _: self.stop(),
            "save": self._keep,
        }
        if not isinstance(do, str) or do not in known:
            hint = did_you_mean(str(do), list(known))
            raise DataError(f"there is no command '{do}'.", where="live page", expected=", ".join(known), hint=hint)
        return {"done": do, **(known[do](wanted) or {})}

    def _drawn(self, pose: Any) -> Any:
        try:
            return self.tracker.points(pose)
        except VeridynError as error:
            self.feed.alarm(f"the machine cannot be drawn: {str(error).splitlines()[0]}", "picture")
            return None

    def _switch(self, wanted: Mapping[str, Any]) -> None:
        sensor, on = wanted.get("sensor"), wanted.get("on")
        sensors = self.feed.layout.sensors or {}
        if sensor not in sensors or not isinstance(on, bool):
            hint = did_you_mean(str(sensor), list(sensors)) if sensors else ""
            raise DataError(f"there is no sensor '{sensor}' to switch on or off.", where="live page", hint=hint)
        with self._lock:
            self.tracker.switch(str(sensor), on)
        self._off = [s for s in self._off if s != sensor] + ([] if on else [str(sensor)])
        self.feed.state(off=list(self._off))
        self.feed.alarm(f"'{sensor}' is switched {'on' if on else 'off'}.", level="note")

    def _change_pace(self, wanted: Mapping[str, Any]) -> None:
        value = wanted.get("value")
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0.0:
            raise DataError("this is no pace.", where="live page", expected="a number above 0", found=f"{value!r}")
        self._set_pace(rate=float(value) if value < FASTEST else inf)

    def _set_pace(self, rate: float | None = None, paused: bool | None = None) -> None:
        if self.pace is None:
            raise DataError("samples that arrive have a pace of their own.", where="live page", expected="a replay")
        self.pace.rate = self.pace.rate if rate is None else rate
        self.pace.paused = self.pace.paused if paused is None else paused
        self.feed.state(**self._paced())

    def _paced(self) -> dict[str, Any]:
        if self.pace is None:
            return {"pace": None, "paused": False}
        return {"pace": self.pace.rate if isfinite(self.pace.rate) else FASTEST, "paused": self.pace.paused}

    def _keep(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self._save is None:
            raise DataError("this run has nothing to save.", where="live page")
        with self._lock:
            where = self._save()
        self.feed.alarm(f"saved: {where}", level="note")
        return {"where": where}
