"""The linear filter on a mechanism, against a crane written down by hand and filtered by the linear Kalman filter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from observe.linear import Kalman, from_rates
from strangers.walks import CRANE, walked
from veridyn.machines import crane
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.observer_setup import Linearised
from veridyn.observe.pipeline import observe_with
from veridyn.observe.result import Belief

SHORT = replace(CRANE, samples=120)


def by_hand():
    """(M + m_r + m) ẍ + (m + m_r/2) L θ̈ = u − 40 ẋ and (m + m_r/2) L ẍ + (m + m_r/3) L² θ̈ = −(m + m_r/2) g L θ; u walks, b stays."""
    trolley, rope, load, L, g = 80.0, 3.0, 250.0, 6.0, 9.81
    pull = (load + rope / 2) * L
    M = np.array([[trolley + rope + load, pull], [pull, (load + rope / 3) * L**2]])
    A = np.zeros((6, 6))
    A[:2, 2:4] = np.eye(2)
    A[2:4] = np.linalg.solve(M, np.array([[0, 0, -40.0, 0, 1, 0], [0, -pull * g, 0, 0, 0, 0]]))
    states = ("x", "swing", "x_dot", "swing_dot", "force.x", "bias.tilt")
    H = np.array([[1.0, 0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0, 1.0]])
    return from_rates(states, ("travel", "tilt"), A, H, [0, 0, 0, 0, 400.0, 0], [0.002**2, 0.01**2])


def test_it_is_the_linear_kalman_filter_of_the_crane() -> None:
    """The trapezoidal step at 10 ms beside the exponential: a hundredth of a deviation."""
    machine = crane()
    _, log = walked(machine, SHORT, np.random.default_rng(2))
    found = observe_with(SHORT.setup("linear"), machine, log)
    readings = Measurements(found.t, np.column_stack([log[n].values for n in ("travel", "tilt")]), ("travel", "tilt"))
    start = Belief([0.5, 0, 0, 0, 0, 0], np.array([0.05, 0.05, 0.05, 0.05, 20.0, 0.02]) ** 2)
    stranger = run(Kalman(), by_hand(), readings, start)
    assert found.states == stranger.states
    assert (np.abs(found.reduced - stranger.x) < 0.01 * stranger.sigma).all()
    assert found.sigma == pytest.approx(stranger.sigma, rel=1e-3)
    assert np.abs(found.constraint_errors()).max() < 1e-9


def test_straight_lines_through_one_state() -> None:
    """Many states at once, as one; twice the change, twice the difference; and at that state itself the mechanism's own step."""
    system, q, qd = SHORT.setup("linear").system(crane())
    straight = Linearised(system, system.belief(q, qd).x)
    none, d = np.zeros(0), np.array([0.1, 0.2, -0.3, 0.1, 30.0, 0.01])
    some = straight.add(straight.at, np.array([0 * d, d, 2 * d]))
    moved, read = straight.move(some, none, 0.0, 0.02), straight.sense(some, none, 0.0)
    F, H = straight.move_and_jacobian(some[1], none, 0.0, 0.02)[1], straight.sense_and_jacobian(some[1], none, 0.0)[1]
    assert moved[0] == pytest.approx(system.move(straight.at, none, 0.0, 0.02), abs=1e-12)
    assert straight.subtract(moved, moved[0]) == pytest.approx(np.array([0 * d, F @ d, 2 * F @ d]), abs=1e-9)
    assert read - read[0] == pytest.approx(np.array([0 * read[0], H @ d, 2 * H @ d]), abs=1e-9)
    assert np.array_equal(straight.noise(some[2], none, 0.0, 0.02), system.noise(straight.at, none, 0.0, 0.02))
