"""Straight lines of a car: known slopes found again, deviations that hold for correlated residuals, outliers set aside."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.signals.drive_lines import (
    coast_down,
    robust_line,
    roll_distribution,
    roll_gradients,
    wheel_scales,
)


def coloured(rng, count: int, keep: float) -> np.ndarray:
    e, out = rng.normal(size=count), np.zeros(count)
    for k in range(1, count):
        out[k] = keep * out[k - 1] + np.sqrt(1.0 - keep**2) * e[k]
    return out


def test_deviations_allow_for_correlated_residuals() -> None:
    """200 lines with residuals that last ten samples: the z-scores have deviation one within a sixth."""
    z = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = coloured(rng, 800, 0.9)
        y = 2.0 * x + 0.3 * coloured(rng, 800, 0.9)
        line = robust_line({"slope": x}, y, 10.0, 4.0, "test")
        z.append((line.value["slope"] - 2.0) / line.sigma["slope"])
    assert 0.85 < np.std(z) < 1.3


def test_wheel_scales_with_outliers() -> None:
    rng = np.random.default_rng(1)
    speed = 15.0 + 5.0 * np.sin(np.linspace(0.0, 20.0, 2000))
    wheel = 1.012 * speed + 0.1 * rng.normal(size=2000)
    wheel[::50] = 0.0  # a sensor that drops out
    line = wheel_scales({"fl": wheel}, speed, 25.0)["fl"]
    assert line.value["scale"] == pytest.approx(1.012, abs=1e-3)


def test_roll_gradients_and_their_distribution() -> None:
    rng = np.random.default_rng(2)
    ay = 8.0 * coloured(rng, 3000, 0.98)
    travel = {}
    for axle, g in (("f", 0.006), ("r", 0.004)):
        roll = g * ay
        travel[f"{axle}l"] = -0.5 * 1.2 * roll + 1e-4 * rng.normal(size=3000)
        travel[f"{axle}r"] = 0.5 * 1.2 * roll + 0.002
    found = roll_gradients(travel, ay, 1.2, 77.0)
    assert found["front"].value["gradient"] == pytest.approx(0.006, abs=4 * found["front"].sigma["gradient"])
    assert found["rear"].value["gradient"] == pytest.approx(0.004, abs=4 * found["rear"].sigma["gradient"])
    share, sigma = roll_distribution(found, {"front": 20e3, "rear": 30e3})
    assert share == pytest.approx(0.5, abs=4 * sigma) and 0.0 < sigma < 0.01
    with pytest.raises(DataError, match="roll needs the distance"):
        roll_gradients(travel, ay, 0.0, 77.0)


def test_drag_from_coasting() -> None:
    rng = np.random.default_rng(3)
    speed = np.linspace(40.0, 10.0, 1500)
    ax = -(0.12 + 4e-4 * speed**2) + 0.05 * rng.normal(size=1500)
    line = coast_down(speed, ax, np.ones(1500, dtype=bool), 50.0)
    assert line.value["drag"] == pytest.approx(4e-4, abs=4 * line.sigma["drag"])
    with pytest.raises(DataError, match="hardly ever coasts"):
        coast_down(speed, ax, np.zeros(1500, dtype=bool), 50.0)


def test_a_drive_that_shows_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="does not excite it"):
        robust_line({"slope": np.zeros(100)}, np.zeros(100), 10.0, 1.0, "test")
