"""Correction by forces alone as machine code, against the same in Python by the tree's own steps, derivatives and differences."""

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.observe.observation import Observation
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.following import DERIVATIVE_EVERY, followed
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import FOLLOWING_S, force_observer, standing_start

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
