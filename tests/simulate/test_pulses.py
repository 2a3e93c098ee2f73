"""Counts and edges of a wheel against closed forms of its motion."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel
from veridyn.signals.pulses import PulseWheel, edges_of_intervals
from veridyn.simulate.pulses import edge_intervals, edge_times, wheel_count

WHEEL = PulseWheel(holes=40, phase=0.02)
P = np.pi / 20


def turning(rate=500.0, duration=2.0, speed=3.0, acceleration=1.5, start=0.1):
    t = np.arange(round(duration * rate) + 1) / rate
    return Channel("spin", t, start + speed * t + 0.5 * acceleration * t**2, "rad")


def test_edges_of_a_steady_acceleration():
    """φ₀ + ω t + a t²/2 = n p + phase has a root in closed form."""
    found = edge_times(turning(), WHEEL)
    n = np.arange(1, len(found) + 1)
    expected = (np.sqrt(9.0 + 3.0 * (n * P + 0.02 - 0.1)) - 3.0) / 1.5
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert len(found) == int((0.1 + 6.0 + 3.0 - 0.02) / P)


def test_the_count_changes_in_the_sample_after_an_edge():
    angle = turning()
    count, edges = wheel_count(angle, WHEEL, "count"), edge_times(angle, WHEEL)
    assert count.unit == "1" and count.values[0] == np.floor(0.08 / P)
    changed = np.flatnonzero(np.diff(count.values)) + 1
    assert np.array_equal(changed, np.searchsorted(angle.t, edges))
    slow = wheel_count(angle, WHEEL, "count", rate=50.0)
    assert np.array_equal(slow.values, count.values[::10])


def test_a_wheel_that_turns_back():
    t = np.arange(1001) / 500.0
    angle = Channel("spin", t, 2.0 * np.sin(np.pi * t / 2.0), "rad")  # two radians forward and back
    signed = wheel_count(angle, PulseWheel(), "n")
    assert signed.values.max() == np.floor(2.0 / P) == 12.0
    assert signed.values[[0, -1]] == pytest.approx([0.0, 0.0])
    unsigned = wheel_count(angle, PulseWheel(signed=False), "n")
    assert unsigned.values[-1] == 24.0 and (np.diff(unsigned.values) >= 0.0).all()
    edges = edge_times(angle, PulseWheel())
    assert (np.diff(edges) > 0.0).all()
    forward = np.arcsin(np.arange(1, 13) * P / 2.0) * 2.0 / np.pi
    np.testing.assert_allclose(edges[:12], forward, atol=1e-9)
    np.testing.assert_allclose(edges[12:24], (2.0 - forward)[::-1], atol=1e-9)


def test_intervals_are_those_between_edges():
    angle = turning()
    first, steps = edge_intervals(angle, WHEEL)
    np.testing.assert_allclose(edges_of_intervals(first, steps), edge_times(angle, WHEEL), atol=1e-12)
    first, ticks = edge_intervals(angle, WHEEL, clock=1e-4)
    assert np.allclose(ticks / 1e-4, np.round(ticks / 1e-4), atol=1e-6)
    error = edges_of_intervals(first, ticks) - edge_times(angle, WHEEL)
    assert (error <= 1e-12).all() and (error > -1e-4 - 1e-9).all()  # a tick that has passed, never more


def test_what_is_no_turning_wheel_is_refused():
    with pytest.raises(DataError, match="'spin': it is no angle of a wheel"):
        wheel_count(Channel("spin", np.arange(3.0), np.arange(3.0), "deg"), WHEEL, "n")
    with pytest.raises(DataError, match="the wheel passes no edge"):
        edge_intervals(Channel("spin", np.arange(3.0), np.zeros(3), "rad"), PulseWheel(phase=0.05))
    assert len(edge_times(Channel("spin", np.arange(3.0), np.zeros(3), "rad"), PulseWheel(phase=0.05))) == 0
