"""The cost of a diagnosis: logs of a length, and the limit that it is held against."""

from __future__ import annotations

import pytest
from benchmarks.damage.cost import Cost, cost, line, motions_of
from benchmarks.damage.simulated import RATE, SECONDS, simulated


@pytest.mark.parametrize(("seconds", "parts"), [(5.0, 1), (30.0, 3)])
def test_logs_are_cut_or_repeated(seconds: float, parts: int) -> None:
    """Of a log of 15 s at 200 Hz, less what its low-pass leaves out at both ends."""
    motions = motions_of(simulated(1), seconds)
    assert sum(len(m) for m in motions) == round(seconds * RATE)
    assert len(motions) == parts and len(motions[0]) <= SECONDS * RATE


def test_a_diagnosis_may_take_three_more_fits_and_a_second() -> None:
    assert Cost("arm", 15.0, 0.5, 3.0).within and not Cost("arm", 15.0, 0.5, 3.01).within
    assert "limit 3.00 s: missed" in line(Cost("arm", 15.0, 0.5, 4.0))


def test_both_fits_are_timed() -> None:
    found = cost(simulated(1), 4.0)
    assert found.bare > 0.0 and found.diagnosed > 0.0 and found.robot == "seed 1"
