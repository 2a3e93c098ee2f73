"""One step of the classical method, with numbers of any library."""

from __future__ import annotations

import math

import pytest

from batch_machines import car
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.training.steps import check_fixed, runge_kutta


def test_an_oscillator_is_followed_to_fourth_order() -> None:
    errors = []
    for h in (0.1, 0.05):
        q, qd = 1.0, 0.0
        for _ in range(round(1.0 / h)):
            q, qd = runge_kutta(lambda at, speed: (speed, -at), q, qd, h)
        errors.append(math.hypot(q - math.cos(1.0), qd + math.sin(1.0)))
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.1)


def test_a_free_base_is_refused() -> None:
    check_fixed(small_arm())
    with pytest.raises(DataError, match="fixed base"):
        check_fixed(car())
