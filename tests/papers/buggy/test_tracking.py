"""A track is what an observation has at the same samples, bit by bit, however its samples come in."""

import numpy as np
import pytest

from veridyn.observe.filters.update import Stepped
from veridyn.observe.observation import Observation
from veridyn.observe.result import Belief
from veridyn.papers.buggy.drive import BuggyDrive, BuggyTruth, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import best_observer, score_track, scored, standing_start
from veridyn.papers.buggy.tracking import NEES_EVERY, SKIP, BuggyTrack, TrackRoom


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=0.5, rack=-0.010))


@pytest.fixture(scope="module")
def both(truth: BuggyTruth) -> tuple[Observation, BuggyTrack]:
    model = buggy(rolling_resistance=0.030)
    log, start = truth.log(np.random.default_rng(3), model.sensors), standing_start(model)
    return best_observer().observe(model, log, start), best_observer().track(model, log, start)


def test_a_track_has_the_states_and_covariances_of_the_observation(both: tuple[Observation, BuggyTrack]):
    found, track = both
    P = np.asarray(found.track.P)
    np.testing.assert_array_equal(track.t, found.t)
    np.testing.assert_array_equal(track.x, found.track.x)
    np.testing.assert_array_equal(track.inputs, found.inputs)
    np.testing.assert_array_equal(track.place, P[:, :2, :2])
    np.testing.assert_array_equal(track.some, P[SKIP::NEES_EVERY])
    np.testing.assert_array_equal(track.last, P[-1])
    f = found.system.f
    np.testing.assert_allclose(track.sigma, found.sigma[:, : 2 * f], rtol=1e-12)


def test_the_scores_of_a_track_are_those_of_the_observation(truth: BuggyTruth, both: tuple[Observation, BuggyTrack]):
    known, found = scored(both[0], truth), score_track(both[1], truth)
    np.testing.assert_array_equal(found.errors, known.errors)
    np.testing.assert_array_equal(found.sigma, known.sigma)
    assert found.nees == known.nees


@pytest.mark.parametrize("lengths", [(251,), (1,) * 251, (20, 1, 24, 25, 1, 75, 105), (7,) * 35 + (6,)])
def test_samples_may_come_in_parts_of_any_length(both: tuple[Observation, BuggyTrack], lengths: tuple[int, ...]):
    found, whole = both
    x, P, first = np.asarray(found.track.x), np.asarray(found.track.P), 0
    assert sum(lengths) == len(x)
    room = TrackRoom(found.system, len(x), x.shape[1])
    for length in lengths:
        room.take(first, x[first : first + length], P[first : first + length])
        first += length
    _same(room.track(found.t, found.inputs), whole)


def test_single_steps_may_come_between_others(both: tuple[Observation, BuggyTrack]):
    """As where the machine code leaves some steps to Python: one by one, then many, then one by one to the end."""
    found, whole = both
    x, P = np.asarray(found.track.x), np.asarray(found.track.P)
    room = TrackRoom(found.system, len(x), x.shape[1])
    single, many = [*range(70), *range(130, len(x))], range(70, 130)
    for k in range(len(x)):
        if k in single:
            room.put(k, Stepped(None, Belief(x[k], P[k], float(found.t[k])), None, None))  # pyright: ignore[reportArgumentType]
        elif k == many[0]:
            np.testing.assert_array_equal(room.belief(k - 1, found.t).P, P[k - 1])
            room.take(k, x[many], P[many])
    _same(room.track(found.t, found.inputs), whole)


def _same(track: BuggyTrack, whole: BuggyTrack) -> None:
    for name in ("x", "sigma", "place", "some", "last"):
        np.testing.assert_allclose(getattr(track, name), getattr(whole, name), rtol=1e-12, err_msg=name)
