"""Faults put into good logs of the full simulator, through all instruments: each is found and named, and good logs are left in peace."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.model.experiment import Experiment
from veridyn.papers.car.check import checked
from veridyn.papers.car.log import CarKinematics
from veridyn.papers.car.machine import TABLE_II
from veridyn.papers.car.sensors import sensed, sensors_2002
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.manoeuvre import (
    ramp_steer,
    sinusoidal_steering,
    speed_variation,
    straight,
    straight_braking,
)
from veridyn.papers.car.simulator.run import drive

KINEMATICS = CarKinematics.of(Vehicle())


@pytest.fixture(scope="module")
def log() -> Experiment:
    rng = np.random.default_rng(3)
    road = rough_road("C", rng, length=700.0, track=1.5)
    return sensed(drive(Vehicle(), speed_variation(), road, 12.0), rng)


def changed(log: Experiment, **values: np.ndarray) -> Experiment:
    """The log with other values in some channels; dots of their names written as underscores."""
    names = {name.replace(".", "_"): name for name in log}
    return log.replacing(*(replace(log[names[k]], values=v) for k, v in values.items()))


def swapped(log: Experiment, wheel: str, a: str, b: str) -> Experiment:
    pairs = [(f"dynamometer.{wheel}.{kind}{a}", f"dynamometer.{wheel}.{kind}{b}") for kind in "fm"]
    both = [(x, y) for pair in pairs for x, y in (pair, pair[::-1])]
    return log.replacing(*(replace(log[x], values=log[y].values) for x, y in both))


@pytest.mark.parametrize("manoeuvre", [sinusoidal_steering(), straight(), straight_braking()], ids=lambda m: m.name)
@pytest.mark.parametrize("rough", [pytest.param(False, marks=pytest.mark.slow), True])
def test_good_logs_are_left_in_peace(manoeuvre, rough) -> None:
    rng = np.random.default_rng(11)
    road = {"road": rough_road("C", rng, length=500.0, track=1.5)} if rough else {}
    good = sensed(drive(Vehicle(), manoeuvre, duration=5.0, **road), rng)
    found = checked(good, KINEMATICS)
    assert len(found) == 0, found.summary()


def test_a_log_of_2002_is_checked_too() -> None:
    sensors = sensors_2002()
    good = sensed(drive(Vehicle(), ramp_steer(), duration=12.0), np.random.default_rng(1), sensors)
    assert len(checked(good, KINEMATICS, sensors)) == 0
    bad = checked(swapped(good, "1", "y", "z"), KINEMATICS, sensors)
    assert [f.channel for f in bad.of("contradiction")] == ["dynamometer.1"]


def test_a_missing_wheel_channel_is_named(log: Experiment) -> None:
    kept = {n: c for n, c in log.channels.items() if n != "dynamometer.3.fz"}
    found = checked(Experiment(kept, "drive"), KINEMATICS)
    assert [(f.channel, f.kind) for f in found] == [("dynamometer.3.fz", "missing")]
    with pytest.raises(DataError, match=r"dynamometer\.3\.fz"):
        found.raise_if_fatal()


@pytest.mark.parametrize(
    ("wheel", "axes"),
    [("1", "xy"), ("2", "xz"), ("3", "yz"), *(pytest.param("4", a, marks=pytest.mark.slow) for a in ("xy", "xz"))],
)
def test_swapped_axes_are_named(log: Experiment, wheel: str, axes: str) -> None:
    (found,) = checked(swapped(log, wheel, *axes), KINEMATICS).of("contradiction")
    assert found.channel == f"dynamometer.{wheel}" and f"axes {axes[0]} and {axes[1]} are exchanged" in found.message


# One of each kind, and more in the slow suite.
SIGNS = ["1.fx", "3.fy", "2.fz", "4.mx"]
SIGNS += [pytest.param(c, marks=pytest.mark.slow) for c in ("2.fx", "1.fy", "4.fz", "1.mx")]


@pytest.mark.parametrize("component", SIGNS)
def test_a_wrong_sign_is_named(log: Experiment, component: str) -> None:
    name = f"dynamometer.{component}"
    found = checked(log.replacing(replace(log[name], values=-log[name].values)), KINEMATICS)
    assert [f.channel for f in found] == [name], found.summary()
    assert found[0].kind == "contradiction" and "wrong sign" in found[0].message


def test_the_whole_wheel_backwards_and_two_faults_at_once(log: Experiment) -> None:
    names = [n for n in log if n.startswith("dynamometer.2.")]
    backwards = log.replacing(*(replace(log[n], values=-log[n].values) for n in names))
    assert [f.channel for f in checked(backwards, KINEMATICS)] == ["dynamometer.2"]
    both = checked(swapped(backwards, "3", "x", "z"), KINEMATICS)
    assert {f.channel for f in both} == {"dynamometer.2", "dynamometer.3"}


def test_priors_may_be_wrong_by_a_fifth(log: Experiment) -> None:
    rng = np.random.default_rng(5)
    priors = {
        n: line.a_priori * (1.0 + 0.2 * rng.uniform(-1, 1))
        for n, line in TABLE_II.items()
        if np.isfinite(line.a_priori)
    }
    assert len(checked(log, KINEMATICS, priors=priors)) == 0
    (found,) = checked(swapped(log, "4", "y", "z"), KINEMATICS, priors=priors)
    assert found.channel == "dynamometer.4"


def test_clearances_in_millimetres_are_named(log: Experiment) -> None:
    found = checked(changed(log, clearance_2=1e3 * log["clearance.2"].values), KINEMATICS)
    assert [(f.channel, f.kind) for f in found] == [("clearance.2", "unit")] and "millimetres" in found[0].message
    named = log.replacing(*(replace(log[f"clearance.{n}"], unit="mm") for n in "1234"))
    assert [f.channel for f in checked(named, KINEMATICS).of("unit")] == [f"clearance.{n}" for n in "1234"]


def test_a_sensor_out_of_range_or_at_its_stop_is_named(log: Experiment) -> None:
    x = log["inertial.acceleration.y"].values.copy()
    x[1000:1040] = 400.0
    beyond = checked(changed(log, inertial_acceleration_y=x), KINEMATICS)
    assert [f.channel for f in beyond.of("range")] == ["inertial.acceleration.y"]
    y = np.minimum(log["dynamometer.1.fz"].values, np.quantile(log["dynamometer.1.fz"].values, 0.9))
    clipped = checked(changed(log, dynamometer_1_fz=y), KINEMATICS)
    assert [f.channel for f in clipped.of("clipping")] == ["dynamometer.1.fz"]


def test_what_a_drive_cannot_tell_apart_is_said() -> None:
    """Straight on, the toe-in of the front wheels makes equal and opposite side forces: either may have the wrong sign."""
    rng = np.random.default_rng(2)
    good = sensed(drive(Vehicle(), straight_braking(), duration=5.0), rng)
    bad = changed(good, dynamometer_1_fy=-good["dynamometer.1.fy"].values)
    (found,) = checked(bad, KINEMATICS).of("contradiction")
    assert "dynamometer.1.fy" in found.message and "dynamometer.2.fy" in found.message
