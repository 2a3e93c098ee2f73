"""How far a model is trusted: one number for all, numbers by name, and what is refused."""

from __future__ import annotations

import pytest

from veridyn.errors import ModelError
from veridyn.observe.process_noise import ProcessNoise, sizes

NAMES = ("x", "swing")


def test_one_number_for_all_or_numbers_by_name() -> None:
    assert sizes(0.5, NAMES, "start").tolist() == [0.5, 0.5]
    assert sizes({"swing": 0.1, "x": 0.2}, NAMES, "start").tolist() == [0.2, 0.1]


@pytest.mark.parametrize(
    ("what", "default"), [("start", 1.0), ("start_rate", 1.0), ("start_force", 0.0), ("force", 0.0)]
)
def test_a_name_that_is_left_out_keeps_the_default(what: str, default: float) -> None:
    """So that naming one coordinate does not make the others known exactly."""
    assert sizes({"swing": 0.1}, NAMES, what).tolist() == [default, 0.1]


def test_what_is_not_usable_is_named() -> None:
    with pytest.raises(ModelError, match=r"(?s)there is no 'swign' here.*swing.*that of 'x' is not usable.*-1"):
        sizes({"swign": 0.1, "x": -1.0}, NAMES, "start")
    with pytest.raises(ModelError, match="that of 'x' is not usable"):
        sizes(float("nan"), ("x",), "position")


def test_coordinates_that_come_in_later_get_the_largest_density_given() -> None:
    one, named = ProcessNoise(position=0.1, acceleration=2.0), ProcessNoise(acceleration={"x": 1.0, "swing": 3.0})
    assert one.coordinate_densities(("L.x", "L.y")).tolist() == [0.1, 0.1, 2.0, 2.0]
    assert named.coordinate_densities(("x", "L.y")).tolist() == [0.0, 0.0, 1.0, 3.0]
