"""Single steps of streaming observers: every one is timed, the collector rests where it is off, and memory that is kept is seen."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest
from benchmarks.latency import FIRST, Latency, arm_subject, car_subject, memory, passes, timed
from benchmarks.observers import main

from veridyn.observe.streaming.observer import Observer


def test_every_step_is_timed_and_the_collector_is_back_on() -> None:
    made, steps = car_subject(2.0)
    spent, runs = timed(made, steps, 400, off=True)
    assert spent.shape == (2, 400) and (spent > 0.0).all() and (np.median(spent, axis=1) < spent.max(axis=1)).all()
    assert runs == 0 and gc.isenabled() and gc.get_freeze_count() == 0


def test_a_drive_is_taken_again_by_a_new_observer() -> None:
    """200 samples, the first FIRST of which make the observer ready: 400 steps take three observers."""
    made, steps = car_subject(2.0)
    parts = [(observer, len(part)) for observer, part in passes(made, steps, 400)]
    assert [count for _, count in parts] == [150, 150, 100] and len(steps) == 150 + FIRST
    assert len({id(observer) for observer, _ in parts}) == 3


def test_memory_that_a_step_keeps_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer that keeps a hundred objects at each step, one block each."""
    made, steps = arm_subject(0.4)
    plain, peak = memory(made, steps)
    kept: list[list[object]] = []
    own = Observer.step

    def hoarding(self: Observer, *given: object) -> object:
        kept.append([object() for _ in range(100)])
        return own(self, *given)

    monkeypatch.setattr(Observer, "step", hoarding)
    assert memory(made, steps)[0] - plain >= 100.0
    assert plain < 5.0 and peak > 0


def test_a_step_of_a_car_leaves_nothing_behind() -> None:
    """Objects of the newest steps take the place of older ones: fewer than one block in ten steps over 675 of them."""
    assert memory(*car_subject(14.0))[0] < 0.1


def test_the_door(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    one = Latency("arm", "on", 10, 1.0, 2.0, 3.0, 1.5, 2.5, 0, 0.0, 100)
    monkeypatch.setattr("benchmarks.latency.latencies", lambda count: iter([one]))
    main(["--latency", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["worst_us"] == 3.0
    main(["--latency"])
    assert "| arm | on | 10 | 1 | 2 | 3 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--json"])
