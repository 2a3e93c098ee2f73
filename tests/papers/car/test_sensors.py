"""The instruments: what each reads of a drive whose truth is known, through its place, band, noise and bias."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.mechanics.ground.road import Plane
from veridyn.papers.car.sensors import UNITS, kind_of, sensed, sensors_2002, sensors_2006, yaw_pitch_roll
from veridyn.papers.car.simulator.description import Vehicle, sinusoidal_steering
from veridyn.papers.car.simulator.run import VehicleRun, drive
from veridyn.spatial.rotations import rpy


@pytest.fixture(scope="module")
def run() -> VehicleRun:
    return drive(Vehicle(), sinusoidal_steering(), Plane(bank=0.01), 4.0)


def test_cut_offs_are_the_paper_s() -> None:
    s = sensors_2006()
    cutoffs = {kind: sensor.cutoff for kind, sensor in s.kinds.items()}
    assert cutoffs == {
        "gyro": 10.0, "accelerometer": 10.0, "clearance": 20.0, "speed": 15.0, "steering": 10.0,
        "force": 100.0, "moment": 100.0, "wheel_angle": 100.0, "height": 20.0,
    }  # fmt: skip
    assert all(sensor.causal for sensor in s.kinds.values())
    assert all(sensor.rate == 62.5 for sensor in sensors_2002().kinds.values())  # 16 ms


def test_every_instrument_of_the_paper_is_there(run: VehicleRun) -> None:
    log = sensed(run, np.random.default_rng(0))
    families: dict[str, int] = {}
    for name in log:
        families[name.split(".")[0]] = families.get(name.split(".")[0], 0) + 1
    assert families == {
        "inertial": 6, "clearance": 4, "correvit": 2, "steering": 4, "camber": 4, "dynamometer": 24, "wheel": 4, "height": 4,
    }  # fmt: skip
    assert all(log[name].unit == UNITS[kind_of(name)] for name in log)
    assert log["clearance.1"].rate == pytest.approx(500.0)
    more = sensed(run, np.random.default_rng(0), sensors_2002())
    assert set(more) - set(log) == {"camera.yaw_rate", "camera.pitch_rate"}


def test_an_inertial_unit_feels_the_acceleration_of_its_place(run: VehicleRun) -> None:
    """Velocity of the place in the ground's frame, differenced, less gravity, turned into the chassis."""
    s = sensors_2006().perfect()
    log = sensed(run, None, s)
    at = run.position + run.attitude @ np.array(s.inertial_place)
    second = (at[2:] - 2.0 * at[1:-1] + at[:-2]) / 1e-6
    second[:, 2] += 9.81
    felt = np.einsum("nji,nj->ni", run.attitude[1:-1], second)
    read = np.stack([log[f"inertial.acceleration.{a}"].values[1:-1] for a in "xyz"], axis=1)
    assert (
        np.abs(read - felt).max() < 2e-3
    )  # second differences of positions known to 1e-12 m at 1 kHz, and step errors


def test_a_correvit_sees_the_velocity_of_its_place(run: VehicleRun) -> None:
    s = sensors_2006().perfect()
    log = sensed(run, None, s)
    at = run.position + run.attitude @ np.array(s.speed_place)
    moved = np.einsum("nji,nj->ni", run.attitude[1:-1], (at[2:] - at[:-2]) / 2e-3)
    assert np.abs(log["correvit.x"].values[1:-1] - moved[:, 0]).max() < 1e-4
    assert np.abs(log["correvit.y"].values[1:-1] - moved[:, 1]).max() < 1e-4


def test_lasers_measure_over_the_road_beneath_them(run: VehicleRun) -> None:
    s = replace(sensors_2006().perfect(), height_places=((0.0, 0.0, 0.0),) * 4)
    heights = sensed(run, None, s)["height.1"].values
    assert np.allclose(heights, run.position[:, 2] - 0.01 * run.position[:, 1], atol=1e-12)


def test_a_camera_gives_the_rates_of_the_angles(run: VehicleRun) -> None:
    log = sensed(run, None, sensors_2002().perfect())
    yaw, pitch, _ = yaw_pitch_roll(run.attitude)
    for name, angle in (("yaw", yaw), ("pitch", pitch)):
        rate = (angle[2:] - angle[:-2]) / 2e-3
        assert np.abs(log[f"camera.{name}_rate"].values[1:-1] - rate).max() < 1e-5
    R = rpy(0.1, -0.2, 2.0)[None]
    assert np.allclose(np.ravel(yaw_pitch_roll(R)), [2.0, -0.2, 0.1])


def test_noise_and_bias_have_their_sizes_and_one_seed_gives_one_log(run: VehicleRun) -> None:
    s = sensors_2006()
    clean = sensed(run, None, s.quiet())
    log, again = (sensed(run, np.random.default_rng(7), s) for _ in range(2))
    biases = []
    for name in log:
        off = log[name].values - clean[name].values
        assert off.std() == pytest.approx(s.kinds[kind_of(name)].noise, rel=0.1), name
        assert np.array_equal(log[name].values, again[name].values)
        if kind_of(name) == "force":
            biases.append(off.mean())
    assert len(set(np.round(biases, 6))) == 12 and 2.0 < np.std(biases) < 9.0  # each channel its own, of size 5 N
    with pytest.raises(DataError, match="random numbers"):
        sensed(run, None, s)


def test_a_channel_of_no_instrument_is_refused() -> None:
    with pytest.raises(DataError, match="no instrument"):
        kind_of("radar.1")
