"""A run that a page shows: samples from a source through a tracker into a feed, and what the reader of the page asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any

from veridyn.errors import DataError, Fault, VeridynError, did_you_mean
from veridyn.live.feed import Feed
from veridyn.live.replay import Pace
from veridyn.live.sample import Again, SampleSource, Trouble
from veridyn.live.tracker import LiveTracker

PICTURE_S = 1.0 / 30.0  # between pictures of the machine, which cost more than rows
COSTLY = 5.0  # times what a picture took, before the next one: the observer has four fifths of the time at least
FASTEST = 1000.0  # pace that counts as “as fast as it can”


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
            raise DataError(Fault(f"there is no command '{do}'.", "live page", ", ".join(known), hint=hint))
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
            raise DataError(Fault(f"there is no sensor '{sensor}' to switch on or off.", "live page", hint=hint))
        with self._lock:
            self.tracker.switch(str(sensor), on)
        self._off = [s for s in self._off if s != sensor] + ([] if on else [str(sensor)])
        self.feed.state(off=list(self._off))
        self.feed.alarm(f"'{sensor}' is switched {'on' if on else 'off'}.", level="note")

    def _change_pace(self, wanted: Mapping[str, Any]) -> None:
        value = wanted.get("value")
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0.0:
            raise DataError(Fault("this is no pace.", "live page", "a number above 0", f"{value!r}"))
        self._set_pace(rate=float(value) if value < FASTEST else inf)

    def _set_pace(self, rate: float | None = None, paused: bool | None = None) -> None:
        if self.pace is None:
            raise DataError(Fault("samples that arrive have a pace of their own.", "live page", "a replay"))
        self.pace.rate = self.pace.rate if rate is None else rate
        self.pace.paused = self.pace.paused if paused is None else paused
        self.feed.state(**self._paced())

    def _paced(self) -> dict[str, Any]:
        if self.pace is None:
            return {"pace": None, "paused": False}
        return {"pace": self.pace.rate if isfinite(self.pace.rate) else FASTEST, "paused": self.pace.paused}

    def _keep(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self._save is None:
            raise DataError(Fault("this run has nothing to save.", "live page"))
        with self._lock:
            where = self._save()
        self.feed.alarm(f"saved: {where}", level="note")
        return {"where": where}
