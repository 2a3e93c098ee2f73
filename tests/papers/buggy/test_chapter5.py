"""The drives of chapter 5: misaligned hubs, laps from standstill, discs that vibrate, and the weight of the course."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.papers.buggy.chapter5 import (
    FULL_TORQUE,
    LAP_TORQUE,
    PULLING_S,
    REAR_HALL_SIGMA,
    STANDING_S,
    THESIS_COURSE_SIGMA,
    ThesisDrive,
    course_less_yaw,
    error_figures,
    errors,
    lap_torque,
    table_drive,
    thesis_observers,
    three_laps,
    yaw_of,
)
from veridyn.papers.buggy.observers import COURSE_SIGMA, QUANTITIES, error_ekf


@pytest.fixture(scope="module")
def straight() -> ThesisDrive:
    """The first seconds of Table 5."""
    return table_drive("straight", 1.6)


@pytest.fixture(scope="module")
def standing() -> ThesisDrive:
    """The first seconds of the laps."""
    return three_laps(duration=1.0)


def test_the_model_alone_leaves_the_line_of_misaligned_hubs(straight: ThesisDrive) -> None:
    """A symmetric model would stay on it to rounding, and y and yaw of Table 5 would be noise alone."""
    aside = straight.plain.q[:, 1] - straight.truth.q[:, 1]
    assert np.abs(aside).max() > 1e-5
    assert np.abs(yaw_of(straight.plain)).max() > 1e-6
    w, x, y, z = straight.truth.q[-1, 3:7]
    assert (x, y) == pytest.approx((0.0, 0.0), abs=1e-2)
    assert yaw_of(straight.truth)[-1] == pytest.approx(2.0 * np.arctan2(z, w), abs=1e-3)


def test_course_less_yaw_is_that_of_the_hubs(straight: ThesisDrive) -> None:
    """Rear hubs are turned by 4.8 mrad, and the vehicle goes where they point."""
    assert course_less_yaw(straight.truth, 0.4) == pytest.approx(0.0048, abs=3e-4)


def test_the_buggy_stands_pulls_away_and_eases() -> None:
    assert [lap_torque(t) for t in (0.0, STANDING_S, PULLING_S)] == [0.0, FULL_TORQUE, LAP_TORQUE]


def test_discs_of_the_rear_axle_vibrate(standing: ThesisDrive) -> None:
    """Of a wheel that stands: .21 rad of vibration, rounded to holes of 9°; those in front stay where they are."""
    log = standing.log(np.random.default_rng(0))
    pitch = np.pi / 20.0
    for corner in ("rl", "rr"):
        off = log[f"angle_{corner}"].values - standing.truth.readings(standing.model.sensors)[f"angle_{corner}"].values
        assert np.sqrt(np.mean(off**2)) == pytest.approx(np.hypot(REAR_HALL_SIGMA, pitch / np.sqrt(12.0)), rel=0.1)
        assert log[f"angle_{corner}"].values / pitch == pytest.approx(np.round(log[f"angle_{corner}"].values / pitch))
    assert np.ptp(log["angle_fl"].values) <= pitch
    told = {s.name: s.sigma for s in standing.sensors}
    assert told["angle_rl"] == REAR_HALL_SIGMA and told["angle_fl"] == 0.0


def test_the_course_is_weighed_as_asked(straight: ThesisDrive) -> None:
    log = straight.log(np.random.default_rng(0))
    for made, sigma in ((error_ekf(), COURSE_SIGMA), (thesis_observers()["error_ekf_thesis"], THESIS_COURSE_SIGMA)):
        machine, _ = made.prepared(straight.model, log, straight.sensors)
        assert next(s.sigma for s in machine.sensors if s.name == "course") == sigma
    assert not thesis_observers(vibrates=True)["ekf"].edges


def test_errors_by_observer(straight: ThesisDrive) -> None:
    found = errors(straight, 0, ("error_ekf",))
    figures = error_figures(found)
    assert set(found) == {"error_ekf", "plain"}
    assert len(figures) == 4 * len(QUANTITIES) + 1
    assert 0.0 < figures["rms_x_error_ekf"] < 0.02 < figures["rms_x_plain"]
