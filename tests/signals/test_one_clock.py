"""Channels on one clock stay as they are; others are brought to it."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.one_clock import on_one_clock


def log_of(*clocks: np.ndarray) -> Experiment:
    """Channels a, b … with the value t² at their own times."""
    channels = [Channel(name, t, t**2, "m") for name, t in zip("abc", clocks)]
    return Experiment({c.name: c for c in channels}, "log")


def test_one_uniform_clock_is_kept_as_it_is() -> None:
    t = 0.01 * np.arange(200)
    log = log_of(t, t.copy())
    found, rate = on_one_clock(log, None, "cubic", None)
    assert found is log
    assert rate == pytest.approx(100.0, rel=1e-12)


def test_the_fastest_uniform_clock_is_the_common_one() -> None:
    found, rate = on_one_clock(log_of(0.01 * np.arange(200), 0.02 * np.arange(100) + 0.003), None, "cubic", None)
    assert rate == pytest.approx(100.0, rel=1e-12)
    assert np.array_equal(found["a"].t, found["b"].t)
    for name in "ab":  # a cubic spline has a parabola exactly
        np.testing.assert_allclose(found[name].values, found[name].t ** 2, atol=1e-12)


def test_the_rate_that_is_wanted_is_made() -> None:
    found, rate = on_one_clock(log_of(0.01 * np.arange(200)), 50.0, "linear", None)
    assert rate == 50.0
    np.testing.assert_allclose(np.diff(found["a"].t), 0.02, atol=1e-12)


def test_a_log_without_channels_is_refused() -> None:
    with pytest.raises(DataError, match="no channel of it belongs to this machine"):
        on_one_clock(Experiment({}, "log"), None, "cubic", None)
