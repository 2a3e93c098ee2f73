"""Steering alone, slowly: what it identifies beside the 26 of 33 of paper 000."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.car_steering import steering_alone


@pytest.mark.slow
def test_steering_alone_identifies_at_least_as_many_as_the_paper() -> None:
    found = steering_alone(np.random.default_rng(1))
    assert len(found.by_budget) >= 26 and set(found.by_budget) <= set(found.by_noise)
    assert set(found.why).isdisjoint(found.by_budget) and len(found.why) + len(found.by_budget) == 33
