"""The car's page: one file, offline, with every section and number in it.

Both papers in one go.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.car.car_day import SEED, day
from veridyn.papers.car.page import CORNERS, WHEEL_WIDTH, car_page, car_scene, car_verdict
from veridyn.papers.car.simulator.description import Vehicle, straight
from veridyn.papers.car.simulator.run import drive


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


def test_the_page_is_whole() -> None:
    made = day()
    text = car_page(made, made.result("demo car", SEED), "veridyn demo car --quick")
    assert len(text) < 6e6 and "http://" not in text.replace("http://www.w3.org", "")
    for title in (
        "The drive",
        "Forces on a drive not used for the fit",
        "The parameters",
        "How far the numbers may be off",
        "From all standard parameters to the 33",
        "Where to cut",
        "Filters, as printed and corrected",
        "38 against 20 degrees of freedom",
        "Which manoeuvre",
        "The paper of 2002",
    ):
        assert title in text, title
    for name in ("k_arf", "XZ_c", "fs_3", "ks17"):
        assert name in text


def test_the_verdict_names_what_is_not_known() -> None:
    judged = car_verdict(day())
    assert judged.grade in ("good", "fair") and "33" in judged.headline
    weak = [p.name for p in day().study.parameters if p.sigma_percent >= 10.0]
    assert all(name in judged.may_not[0] for name in weak)


def test_wheels_are_round_in_their_places_and_roll() -> None:
    """Corners of each wheel are a tyre's radius from its axis, its centre is where a loaded tyre carries it, and it turns by the way that
    it travels over its rolling radius."""
    run = drive(Vehicle(), straight(), duration=1.0, every=20)
    made = car_scene(run, "straight on", frames=40)
    layer = made.layers[0]
    assert len(made.t) <= 40 and made.follow and len(layer.solids) == 10
    for wheel in layer.solids[-4:]:
        across = np.hypot(wheel.vertices[:, 0], wheel.vertices[:, 2])
        assert across == pytest.approx(np.full(len(across), 0.313), abs=1e-6) and len(across) == 2 * CORNERS
        assert np.abs(wheel.vertices[:, 1]) == pytest.approx(np.full(len(across), WHEEL_WIDTH / 2.0))
        centre = layer.points[:, wheel.point]
        assert centre[-1, 2] == pytest.approx(0.29, abs=0.03)  # a loaded tyre's centre above the road
        way = float(centre[1, 0] - centre[0, 0])
        assert way > 0.0
        R = wheel.turns[0].T @ wheel.turns[1]
        angle = float(np.arctan2(R[0, 2], R[0, 0])) % (2.0 * np.pi)
        assert angle == pytest.approx((way / 0.305) % (2.0 * np.pi), abs=0.1)


def test_the_body_is_closed_and_its_faces_look_outwards() -> None:
    """In the chassis frame Σ a·(b × c)/6 over all faces is the volume that outlines at both ends and in the middle of each slice give."""
    made = car_scene(drive(Vehicle(), straight(), duration=0.2, every=20), "straight on", frames=3)
    layer = made.layers[0]
    R, origin, volume, expected = layer.solids[0].turns[0], layer.points[0, 0], 0.0, 0.0
    assert pytest.approx(np.eye(3), abs=0.05) == R
    for part in layer.solids[:-4]:
        corners = part.vertices + R.T @ (layer.points[0, part.point] - origin)
        a, b, c = (corners[part.faces[:, k]] for k in range(3))
        volume += float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0
        ends, length = (corners[:6], corners[6:]), float(corners[6, 0] - corners[0, 0])
        expected += length / 6.0 * (area(ends[0]) + 4.0 * area(0.5 * (ends[0] + ends[1])) + area(ends[1]))
    assert volume == pytest.approx(expected, rel=1e-9) and 4.0 < volume < 6.0


def area(outline: np.ndarray) -> float:
    """Of a polygon across x, by the rule of Gauss."""
    y, z = outline[:, 1], outline[:, 2]
    return 0.5 * float(y @ np.roll(z, -1) - z @ np.roll(y, -1))
