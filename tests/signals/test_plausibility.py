"""Limits of speeds: what goes to and fro faster than a joint can, and what may roll or drive on."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataWarning
from veridyn.model.experiment import Experiment
from veridyn.signals.plausibility import FASTEST_SLIDING, FASTEST_TURNING, beyond, too_fast, warn_of_speeds

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


CLOCK = np.arange(200) / 100.0
RANGES = {"clearance.*": (-0.6, 0.3), "speed": (-20.0, 90.0), "angle": (-0.8, 0.8)}


def log(unit: str = "m", **channels: np.ndarray) -> Experiment:
    return Experiment.from_arrays(CLOCK, channels, dict.fromkeys(channels, unit), name="drive")


def test_what_is_inside_is_not_mentioned() -> None:
    inside = Experiment.from_arrays(
        CLOCK, {"clearance.1": -0.3 + 0.1 * CLOCK, "other": 1e9 * CLOCK}, {"clearance.1": "m", "other": "1"}
    )
    assert beyond(inside, RANGES) == ()


def test_a_sensor_out_of_range_is_named_with_its_first_time() -> None:
    x = np.full(200, 10.0)
    x[50:53] = 500.0
    (found,) = beyond(log("m/s", speed=x), RANGES)
    assert (found.channel, found.kind, found.severity, found.count) == ("speed", "range", "fatal", 3)
    assert found.t_start == pytest.approx(0.5) and "500 m/s" in found.message and "-20 to 90" in found.message


@pytest.mark.parametrize(
    ("name", "unit", "values", "looks"),
    [
        ("clearance.2", "m", -295.0 + 20.0 * np.sin(CLOCK), "millimetres"),
        ("angle", "rad", 3.0 + 1.5 * np.sin(6 * CLOCK), "degrees"),
        ("speed", "m/s", 100.0 + 20.0 * np.sin(6 * CLOCK), "kilometres per hour"),
    ],
)
def test_a_unit_named_wrongly_is_guessed(name: str, unit: str, values: np.ndarray, looks: str) -> None:
    (found,) = beyond(Experiment.from_arrays(CLOCK, {name: values}, {name: unit}), RANGES)
    assert found.kind == "unit" and looks in found.message and found.channel == name


def test_rubbish_is_no_other_unit() -> None:
    (found,) = beyond(log(**{"clearance.1": 1e7 + 0.0 * CLOCK}), RANGES)
    assert found.kind == "range"
