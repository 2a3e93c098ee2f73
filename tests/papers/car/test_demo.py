"""Both papers in one go."""

from __future__ import annotations

from papers.car.car_day import SEED, day


def test_the_result_has_what_is_relied_on() -> None:
    result = day().result("demo car", SEED)
    wanted = {
        "parameters_estimated",
        "well_identified",
        "mass_error_percent",
        "worst_cross_validation_percent",
        "condition",
    }
    wanted |= {"real_time_factor", "share_inside_two_sigma", "parameters_2002", "weight_difference_percent"}
    assert wanted <= set(result.figures) and result.quick and result.seed == SEED
    assert len(result.parameters) == 33 and len(result.validation) == 10
    assert any(key.startswith("log: ramp") for key in result.inputs)


def test_the_weight_agrees() -> None:
    """The paper is 6.47 % off; here the check is of the same fit and the same scales."""
    assert day().second.figures["weight_difference_percent"] < 6.0
    assert abs(day().second.weight.sprung - 1508.5) < 15.0
