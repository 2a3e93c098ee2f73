"""The cost of default deviations: all fits are made, and the line of the benchmark states them."""

from __future__ import annotations

from functools import partial

import pytest
from benchmarks.clock import best_of
from benchmarks.deviations import Cost, costs, line


def test_all_fits_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each: what is looked at is that times are there."""
    monkeypatch.setattr("benchmarks.deviations.best_of", partial(best_of, repeat=1, at_least=0.0))
    (found,) = costs((600,))
    assert found.samples == 600 and found.parameters == 32  # base parameters of benchmarks/foreign/arm.yaml
    assert found.default > 0.0 and found.white > 0.0 and found.checked > 0.0


def test_the_line() -> None:
    said = line([Cost(600, 32, 0.008, 0.005, 0.04), Cost(10_000, 32, 0.03, 0.02, 0.1)])
    assert "600 samples 8.0 ms, 1.60 times (with checks 40 ms); 10,000 samples 30.0 ms, 1.50 times" in said
    assert "32 base parameters" in said
