"""What all the papers' cars take from their instruments, against rigid-body motion written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.car.machine import car_38
from veridyn.papers.car.record import (
    CarRecord,
    attitude_over_road,
    chassis_motion,
    needed,
    record,
    wrench_channels,
)
from veridyn.papers.car.sensors import UNITS, WHEELS, kind_of, sensors_2006
from veridyn.signals.butterworth import Butterworth

RATE = 200.0
T = np.arange(0.0, 4.0, 1.0 / RATE)


def three(name: str, x: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}.{axis}": x[:, k] for k, axis in enumerate("xyz")}


def test_a_steady_turn_seen_from_other_places() -> None:
    """At ω about z and v along x of the origin, a point p has v + ω × p, and needs ω × (ω × p) beside the origin's acceleration."""
    sensors, turn, speed = sensors_2006(), 0.3, 20.0
    omega = np.tile([0.0, 0.0, turn], (len(T), 1))
    origin = np.tile([0.0, turn * speed, 9.81], (len(T), 1))
    p, s = np.array(sensors.inertial_place), np.array(sensors.speed_place)
    felt = origin + np.cross(omega, np.cross(omega, p))
    seen = np.array([speed, 0.0, 0.0]) + np.cross(omega, s)
    known = CarRecord(
        T,
        RATE,
        three("inertial.acceleration", felt) | {"correvit.x": seen[:, 0], "correvit.y": seen[:, 1]},
    )
    velocity, acceleration = chassis_motion(known, sensors, omega, np.zeros(3))
    assert velocity == pytest.approx(np.tile([speed, 0.0, 0.0], (len(T), 1)), abs=1e-9)
    assert acceleration == pytest.approx(origin, abs=1e-9)


def test_height_pitch_and_roll_of_a_plane() -> None:
    sensors = sensors_2006()
    h, pitch, roll = 0.3 + 0.02 * np.sin(T), 0.03 * np.cos(2.0 * T), 0.05 * np.sin(3.0 * T)
    heights = {
        f"height.{n}": h + z + y * roll - x * pitch for n, (x, y, z) in zip(WHEELS, sensors.height_places, strict=True)
    }
    found = attitude_over_road(CarRecord(T, RATE, heights), sensors)
    for a, b in zip(found, (h, pitch, roll), strict=True):
        assert a == pytest.approx(b, abs=1e-12)


def test_a_wrench_as_channels() -> None:
    made = wrench_channels("carrier", np.arange(12.0).reshape(2, 6))
    assert list(made) == [f"wrench.carrier.{r}" for r in ("fx", "fy", "fz", "mx", "my", "mz")]
    assert [unit for _, unit in made.values()] == ["N"] * 3 + ["N*m"] * 3
    assert made["wrench.carrier.my"][0].tolist() == [4.0, 10.0]


def test_a_zero_passes_the_bands_as_it_is() -> None:
    """A log with another zero of one channel, read from the beginning, is the record of the first with that channel shifted."""
    machine, sensors, rng = car_38(), sensors_2006(), np.random.default_rng(0)
    smooth = {n: np.sin(rng.uniform(1.0, 9.0) * T) + rng.standard_normal(len(T)) for n in needed(machine)}

    def log(zero: float) -> Experiment:
        off = {"dynamometer.2.fz": zero}
        return Experiment({n: Channel(n, T, x + off.get(n, 0.0), UNITS[kind_of(n)]) for n, x in smooth.items()}, "log")

    first, other = (record(machine, log(zero), sensors, Butterworth(9.0)) for zero in (0.0, 5.0))
    moved = first.shifted("dynamometer.2.fz", 5.0)
    assert moved.name == "log" and not np.allclose(moved["dynamometer.2.fz"], first["dynamometer.2.fz"])
    for name in needed(machine):
        assert other[name] == pytest.approx(moved[name], abs=1e-10), name
