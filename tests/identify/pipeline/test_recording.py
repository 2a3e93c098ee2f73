"""What is taken of a log: shares of its time, spans, speeds, and what rows leave out."""

from __future__ import annotations

import numpy as np
import pytest

from studies.small_arm import small_arm
from veridyn.errors import DataError, DataWarning
from veridyn.identify.pipeline.recording import (
    HELD_OUT,
    RecordedMotion,
    Recording,
    dropped,
    plain,
    resting,
    split,
    warn_of_rest,
    wrong_speed,
)
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion

LOG = Experiment({}, "log.csv")

T = np.arange(1000) / 100.0


def part(moving: np.ndarray | None = None, **settings) -> RecordedMotion:
    """Joint 1 turns faster and faster; joint 2 rests where `moving` is false."""
    qd = np.column_stack([T, np.ones(1000) if moving is None else np.where(moving, 1.0, 0.001)])
    zeros = np.zeros((1000, 2))
    return RecordedMotion(Motion(T, zeros, qd, zeros), Recording(log=LOG, **settings))


def test_spans_speeds_and_rest_add_up_over_several_motions() -> None:
    parts = [part(drop={"q1": ((1.0, 2.0),)}), part(speeds=(0.0, 0.5))]
    masks = dropped(parts, ["q1", "q2"], [{}, {"q2": T > 9.0}])
    assert {row: len(mask) for row, mask in masks.items()} == {"q1": 2000, "q2": 2000}
    np.testing.assert_array_equal(masks["q1"][:1000], (T >= 1.0) & (T <= 2.0))
    np.testing.assert_array_equal(masks["q1"][1000:], T >= 5.0)
    np.testing.assert_array_equal(masks["q2"][:1000], False)
    np.testing.assert_array_equal(masks["q2"][1000:], T >= 5.0)
    assert dropped([part()], ["q1"], [{}]) == {}
    with pytest.raises(DataError, match="'q9' is not one of the rows"):
        dropped([part(drop={"q9": ((0.0, 1.0),)})], ["q1"], [{}])
    assert [len(m) for m in plain(parts)] == [1000, 1000]


def test_every_sample_is_in_one_share_of_speed() -> None:
    shares = [~wrong_speed(part(speeds=s)) for s in ((0.0, 0.3), (0.3, 0.9), (0.9, 1.0))]
    np.testing.assert_array_equal(np.sum(shares, axis=0), 1)
    assert [int(s.sum()) for s in shares] == [300, 600, 100]


def test_rest_is_found_where_it_lasts_a_second_and_named_where_it_is_much() -> None:
    machine = small_arm()
    short, long = (T < 3.0) | (T > 3.8), (T < 3.0) | (T > 6.0)
    assert resting(machine, part(short).motion) == {}
    found = resting(machine, part(long).motion)
    np.testing.assert_array_equal(found["q2"], ~long)
    warn_of_rest(machine, [part(short)])
    with pytest.warns(DataWarning, match=r"(?s)joints stand still.*q2 30 %.*standstill: drop"):
        warn_of_rest(machine, [part(long)])


def some_motion(start: float, count: int) -> Motion:
    t = start + np.arange(count) / 100.0
    zeros = np.zeros((count, 1))
    return Motion(t, zeros, zeros, zeros)


def test_shares_are_of_the_time_recorded_over_all_pieces() -> None:
    pieces = [some_motion(0.0, 300), some_motion(50.0, 700)]
    first = Recording(log=LOG, share=(0.0, 0.5)).of(pieces)
    second = Recording(log=LOG, share=(0.5, 1.0)).of(pieces)
    assert [len(m) for m in first] == [300, 200]
    assert [len(m) for m in second] == [500]
    late = Recording(log=LOG, start=52.0, end=53.0).of(pieces)
    assert [len(m) for m in late] == [101]
    with pytest.raises(DataError) as error:
        Recording(log=LOG, start=900.0, place=("training", 0)).of(pieces)
    assert error.value.faults[0].at == ("training", 0)
    assert Recording(log=LOG, share=(0.0, 0.1), in_blocks=True).of(pieces) == pieces  # the first block, whole


def test_the_last_part_of_each_recording_is_held_out() -> None:
    first, last = split([Recording(log=LOG), Recording(log=LOG, share=(0.5, 1.0))])
    assert [r.share for r in first] == [(0.0, 1.0 - HELD_OUT), (0.5, 1.0 - 0.5 * HELD_OUT)]
    assert [r.share for r in last] == [(1.0 - HELD_OUT, 1.0), (1.0 - 0.5 * HELD_OUT, 1.0)]
    assert not any(a.overlaps(b) for a, b in zip(first, last, strict=True))
    assert first[0].overlaps(Recording(log=LOG, start=3.0))
