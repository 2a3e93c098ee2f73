"""Stretches of data that agree are left alone; a parameter that changes between them is named, and deviations widen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.identify.statistics.agreement import FALSE_ALARM_RATE, Agreement, PartSums, agreement

Array = NDArray[np.float64]
SIZES = np.array([2.0, 0.5, 10.0, 1.0, 3.0, 1.0])  # of the columns of unit parameters


def compared(rng: np.random.Generator, change: Array, parts: int = 3, samples: int = 200) -> Agreement:
    """Of a linear fit of all parts with unit white noise, the first of which has other parameters than the rest."""
    W = rng.normal(size=(parts * samples, len(SIZES))) * SIZES
    y = rng.normal(size=len(W))
    y[:samples] += W[:samples] @ change
    Q, R = np.linalg.qr(W)
    r = y - Q @ (Q.T @ y)
    cut = [slice(k * samples, (k + 1) * samples) for k in range(parts)]
    sums = PartSums(np.array([Q[c].T @ Q[c] for c in cut]), np.array([Q[c].T @ r[c] for c in cut]))
    return agreement(sums, np.eye(len(SIZES)), R)


def test_parts_that_agree_have_a_ratio_of_one_and_seldom_raise_an_alarm() -> None:
    rng = np.random.default_rng(0)
    found = [compared(rng, np.zeros(6)) for _ in range(400)]
    assert float(np.mean([f.ratio for f in found])) == pytest.approx(1.0, abs=0.04)  # four standard errors, √(2/12/400)
    alarms = sum(f.widening > 1.0 for f in found)
    assert alarms <= 400 * FALSE_ALARM_RATE + 4 * np.sqrt(400 * FALSE_ALARM_RATE)
    assert sum(bool(f.changed) for f in found) <= 400 * FALSE_ALARM_RATE + 4 * np.sqrt(400 * FALSE_ALARM_RATE)


def test_a_parameter_that_changes_is_named_first_and_widens_the_deviations() -> None:
    change = np.zeros(6)
    change[1] = 1.5  # its deviation in one part is 1/(.5 √200) = .14
    found = compared(np.random.default_rng(1), change)
    assert found.chance < 1e-6
    assert found.widening == found.ratio > 2.0
    assert found.changed[0] == 1
    # δ over its deviation: 1.5 of √(1/200 + 1/400)/.5
    assert abs(found.changes[1]) == pytest.approx(1.5 / (np.sqrt(1 / 200 + 1 / 400) / 0.5), abs=3.0)


def test_parts_that_see_nothing_of_a_parameter_say_nothing_of_it() -> None:
    rng = np.random.default_rng(2)
    W = rng.normal(size=(400, 2))
    W[:200, 1] = 0.0
    Q, R = np.linalg.qr(W)
    y = rng.normal(size=400)
    r = y - Q @ (Q.T @ y)
    both = (slice(0, 200), slice(200, 400))
    sums = PartSums(np.array([Q[c].T @ Q[c] for c in both]), np.array([Q[c].T @ r[c] for c in both]))
    found = agreement(sums, np.eye(2), R)
    assert found.chance > 1e-3
    assert abs(found.changes[1]) < 4.0
