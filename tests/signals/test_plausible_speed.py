"""Limits of speeds: what goes to and fro faster than a joint can, and what may roll or drive on."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataWarning
from veridyn.signals.plausible_speed import FASTEST_SLIDING, FASTEST_TURNING, too_fast, warn_of_speeds

T = np.linspace(0.0, 1.0, 200)
WAVE = np.sin(6.0 * np.pi * T)


@pytest.mark.parametrize(("unit", "most"), [("rad", FASTEST_TURNING), ("m", FASTEST_SLIDING)])
def test_to_and_fro_is_limited_and_one_way_is_not(unit: str, most: float) -> None:
    assert too_fast("a", unit, 0.99 * most * WAVE) is None
    assert too_fast("a", unit, np.full(200, 3.0 * most)) is None
    found = too_fast("a", unit, 1.5 * most * WAVE)
    assert found is not None
    assert found.expected == f"up to {most:g} {unit}/s"


def test_components_of_unit_vectors_and_empty_motions_have_no_limit() -> None:
    assert too_fast("u.x", "1", 1e6 * WAVE) is None
    assert too_fast("a", "rad", np.empty(0)) is None


def test_each_coordinate_is_named() -> None:
    with pytest.warns(DataWarning, match="too fast") as told:
        warn_of_speeds(["a", "b", "c"], ["rad", "rad", "m"], np.outer(WAVE, [61.5, 1.0, 30.0]))
    assert [str(w.message).partition(":")[0] for w in told] == ["coordinate 'a'", "coordinate 'c'"]
