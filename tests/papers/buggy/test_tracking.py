"""A track is what an observation has at the same samples, bit by bit, however its samples come in."""

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.observe.filters.update import Stepped
from veridyn.observe.observation import Observation
from veridyn.observe.result import Belief
from veridyn.papers.buggy.drive import BuggyDrive, BuggyTruth, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import (
    FOLLOWING_S,
    best_observer,
    force_observer,
    score_track,
    scored,
    standing_start,
)
from veridyn.papers.buggy.tracking import DERIVATIVE_EVERY, NEES_EVERY, SKIP, BuggyTrack, TrackRoom, followed


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


Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def found() -> Observation:
    truth = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=0.4, rack=-0.010))
    model = buggy(rolling_resistance=0.030)
    log = truth.log(np.random.default_rng(3), model.sensors)
    return force_observer().observe(model, log, standing_start(model))


def by_python(found: Observation, seconds: float) -> Array:
    """Q = û + (∂z̈/∂u)⁻¹ (2 ė/T + e/T²), step by step."""
    system, t = found.system, found.t
    model = system.model
    assert isinstance(model, TreeModel)
    f, k = model.f, len(model.unknown)
    pushed = [model.names.index(name) for name in model.unknown]
    q, qd, u, b = system.split(np.asarray(found.track.x))
    at, rate, own = q[0], qd[0], u[0].copy()
    rows, push = [found.track.x[0]], np.eye(k)
    for i in range(len(t) - 1):
        loads = system.acting(found.inputs[i])
        if i % DERIVATIVE_EVERY == 0:
            push = model.accelerated(model.instant(at, rate, own, loads))[pushed, 2 * f : 2 * f + k]
        e = model.difference(q[i], qd[i], at, rate)
        own[:k] = u[i, :k] + np.linalg.solve(push, 2.0 * e[f:][pushed] / seconds + e[:f][pushed] / seconds**2)
        moved = model.step(at, rate, own, float(t[i + 1] - t[i]), loads, derivative=False)
        at, rate, own = moved.q, moved.qd, moved.u.copy()
        rows.append(system.join(at, rate, own, b[i + 1]))
    return np.array(rows)


def test_the_model_is_pushed_as_by_steps_in_python(found: Observation) -> None:
    x = followed(found.system, found.t, np.asarray(found.track.x), found.inputs, FOLLOWING_S)
    reference = by_python(found, FOLLOWING_S)
    size = np.maximum(np.abs(reference).max(axis=0), 1.0)  # forces are some 100 N
    # Both end Newton's method at 1e-11 of the machine's size, by factors of different age; forces are 1/T² = 100 times an error of place.
    assert np.abs((x - reference) / size).max() < 1e-8
    assert np.abs(x - np.asarray(found.track.x)).max() > 1e-4  # it is not the filter's own track


def test_a_wheel_that_turned_too_far_is_refused_by_name(found: Observation) -> None:
    x = np.array(found.track.x)
    model = found.system.model
    assert isinstance(model, TreeModel)
    x[:, 7 + model.tree.coordinates.index("spin_fl")] = 1e12
    with pytest.raises(DataError, match="turn"):
        followed(found.system, found.t, x, found.inputs, FOLLOWING_S)
