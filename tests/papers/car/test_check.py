"""Faults put into good logs of the full simulator, through all instruments: each is found and named, and good logs are left in peace.

Spectra of a log made of known sinusoids, and the modes of the simulated car.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.mechanics.ground.road import rough_road
from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.car.check import car_modes, checked, linearised, modes, spectra
from veridyn.papers.car.log import CarKinematics
from veridyn.papers.car.machine import TABLE_II
from veridyn.papers.car.sensors import sensed, sensors_2002
from veridyn.papers.car.simulator import description as eq
from veridyn.papers.car.simulator.description import (
    Vehicle,
    VehicleManoeuvre,
    ramp_steer,
    restless,
    sinusoidal_steering,
    speed_variation,
    straight,
    straight_braking,
)
from veridyn.papers.car.simulator.run import drive, settle

KINEMATICS = CarKinematics.of(Vehicle())


def hop_frequencies(vehicle: Vehicle) -> np.ndarray:
    """The natural frequencies of the four modes of the wheels on their tyres, without damping, at rest, Hz."""
    still = replace(vehicle.suspension, damping=(1.0,) * 4)
    found = [m.frequency for m in modes(replace(vehicle, suspension=still)) if m.moves == "wheel hop"]
    return np.array(found)


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


def test_modes_of_the_car_are_those_of_the_paper() -> None:
    """Paper 000, VI.B: driveline at 3.9, 4.3 and 5.5 Hz, wheels at 12.7 Hz, chassis between 0.4 and 3 Hz."""
    found = car_modes(Vehicle())
    line = sorted(hz for name, hz in found.items() if name.startswith("driveline"))
    assert line == pytest.approx([3.9, 4.3, 5.5], abs=0.05)
    hops = [hz for name, hz in found.items() if name.startswith("wheel hop")]
    assert len(hops) == 4 and min(hops) < 12.7 < max(hops)
    assert all(0.4 < hz < 3.5 for name, hz in found.items() if name.split()[0] in ("heave", "roll", "pitch"))


def test_peaks_get_names_and_cuts_lie_between() -> None:
    rate, t = 200.0, np.arange(0.0, 40.0, 1.0 / 200.0)
    rng = np.random.default_rng(0)
    x = np.sin(2 * np.pi * 1.5 * t) + 0.5 * np.sin(2 * np.pi * 4.0 * t) + 0.01 * rng.normal(size=len(t))
    named = {"roll 1": 1.5, "driveline 1": 4.1, "wheel hop 1": 12.0}
    found = spectra(Experiment({"a": Channel("a", t, x, "m")}), named, ("a",))
    assert {p.name: round(p.frequency, 1) for p in found.channels[0].peaks} == {"roll 1": 1.5, "driveline 1": 4.0}
    assert found.chassis == pytest.approx(np.sqrt(1.5 * 4.1)) and found.suspension == pytest.approx(18.0)
    assert rate == 200.0


def test_a_channel_that_never_sinks_into_noise_says_so() -> None:
    t = np.arange(0.0, 20.0, 1.0 / 200.0)
    noise = np.random.default_rng(1).normal(size=len(t))
    found = spectra(Experiment({"a": Channel("a", t, noise, "m")}), {"roll 1": 1.5}, ("a",)).channels[0]
    assert np.isnan(found.cutoff) and "no cutoff" in found.remark


def test_wheels_hop_at_12_7_hz():
    # Paper 000, VI.B: "rebound of the wheel" at 12.7 Hz. Four modes; the mean of their natural frequencies is set by the tyre.
    found = hop_frequencies(Vehicle().simplified())
    assert len(found) == 4 and found.mean() == pytest.approx(12.7, abs=0.02) and np.ptp(found) < 1.3


def test_the_driveline_has_the_modes_of_the_paper_and_the_chassis_those_below_3_hz():
    # Paper 000, VI.B: driveline 3.9, 4.3 and 5.5 Hz; chassis between 0.4 and 3 Hz.
    found = modes(Vehicle(), 30.0)
    light = [m.frequency for m in found if m.damping < 0.2 and 3.0 < m.frequency < 7.0]
    assert np.allclose(light, [3.9, 4.3, 5.5], atol=0.03)
    chassis = {m.moves: m.frequency for m in found if m.frequency < 3.0}
    assert {"heave", "pitch", "roll"} <= set(chassis) and min(chassis.values()) > 0.4
    rigid = modes(replace(Vehicle(), driveline=Vehicle().driveline.rigid()), 30.0)
    assert not [m for m in rigid if m.damping < 0.2 and 3.0 < m.frequency < 7.0]


def test_the_car_is_stable_at_rest_slowly_and_fast():
    for speed in (0.0, 2.0, 45.0):
        assert (
            np.linalg.eigvals(linearised(Vehicle(), speed)).real.max() < 0.05
        )  # drifting in place and heading is no mode


def test_modes_are_what_a_spectrum_shows():
    """A plucked car without dampers: the peaks of its clearances' spectrum are the natural frequencies."""
    car = Vehicle().simplified()
    car = replace(car, suspension=replace(car.suspension, damping=(30.0,) * 4, friction=(0.0,) * 4))
    x = settle(car)
    rolling = VehicleManoeuvre("rolling", np.zeros_like, lead_in=0.0, controlled=False)
    x[eq.ZD : eq.ZD + 4] = (0.2, 0.2, 0.1, 0.1)
    x[eq.VELOCITY + 2] = -0.1
    run = drive(car, rolling, duration=16.0, step=2e-3, start=x)
    z = run.clearance[0][:, :4:2] - run.clearance[0][:, :4:2].mean(axis=0)
    spectrum = np.abs(np.fft.rfft(z * np.hanning(2 * len(z))[len(z) :, None], 8 * len(z), axis=0)).sum(axis=1)
    hertz = np.fft.rfftfreq(8 * len(z), 2e-3)
    inner = spectrum[1:-1]
    peaks = hertz[1:-1][(inner > spectrum[:-2]) & (inner > spectrum[2:]) & (inner > 0.005 * spectrum.max())]
    symmetric = [
        m.frequency
        for m in modes(car)
        if m.damping < 0.1
        and abs(m.shape[eq.Z] + m.shape[eq.Z + 1]) > abs(m.shape[eq.Z] - m.shape[eq.Z + 1])
        and abs(m.shape[eq.Z]) + abs(m.shape[eq.Z + 2]) > 1e-3 * np.abs(m.shape).max()
    ]
    heave_and_pitch = [f for f in symmetric if f < 3.0]
    assert len(heave_and_pitch) == 2
    for f in heave_and_pitch:
        assert np.abs(peaks - f).min() < 0.04
    hops = [f for f in symmetric if 11.0 < f < 14.0]
    assert np.abs(peaks - np.mean(hops)).min() < 0.1


def test_an_inertial_unit_feels_the_driveline_and_not_a_rigid_one():
    """Paper 000, VI.B: the inertial unit is perturbed by the modes at 3.9, 4.3 and 5.5 Hz."""
    made = restless(straight(30.0), np.random.default_rng(6), 40.0)
    height = {}
    for car in (Vehicle(), replace(Vehicle(), driveline=Vehicle().driveline.rigid())):
        run = drive(car, made, duration=20.0, every=10)
        felt = run.base.acceleration[200:, 0]
        spectrum = np.abs(np.fft.rfft((felt - felt.mean()) * np.hanning(len(felt)))) ** 2
        hertz = np.fft.rfftfreq(len(felt), 1e-2)
        beside = spectrum[(hertz > 7.0) & (hertz < 8.8)].mean()
        height[car.driveline.flexible] = [spectrum[np.abs(hertz - f) < 0.15].mean() / beside for f in (3.9, 4.3, 5.5)]
    # A rigid line passes all frequencies of the engine's torque alike; soft shafts and mounts raise theirs and isolate above.
    assert max(height[False]) < 1.0 and min(height[True]) > 3.0
    assert (np.array(height[True]) > 10.0 * np.array(height[False])).all()
