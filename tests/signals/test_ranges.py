import numpy as np
import pytest

from veridyn.model.experiment import Experiment
from veridyn.signals.ranges import beyond

T = np.arange(200) / 100.0
RANGES = {"clearance.*": (-0.6, 0.3), "speed": (-20.0, 90.0), "angle": (-0.8, 0.8)}


def log(unit: str = "m", **channels: np.ndarray) -> Experiment:
    return Experiment.from_arrays(T, channels, dict.fromkeys(channels, unit), name="drive")


def test_what_is_inside_is_not_mentioned() -> None:
    inside = Experiment.from_arrays(
        T, {"clearance.1": -0.3 + 0.1 * T, "other": 1e9 * T}, {"clearance.1": "m", "other": "1"}
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
        ("clearance.2", "m", -295.0 + 20.0 * np.sin(T), "millimetres"),
        ("angle", "rad", 3.0 + 1.5 * np.sin(6 * T), "degrees"),
        ("speed", "m/s", 100.0 + 20.0 * np.sin(6 * T), "kilometres per hour"),
    ],
)
def test_a_unit_named_wrongly_is_guessed(name: str, unit: str, values: np.ndarray, looks: str) -> None:
    (found,) = beyond(Experiment.from_arrays(T, {name: values}, {name: unit}), RANGES)
    assert found.kind == "unit" and looks in found.message and found.channel == name


def test_rubbish_is_no_other_unit() -> None:
    (found,) = beyond(log(**{"clearance.1": 1e7 + 0.0 * T}), RANGES)
    assert found.kind == "range"
