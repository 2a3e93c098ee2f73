import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.papers.car.simulator import manoeuvre as vm

T = np.linspace(-1.0, 12.0, 13001)


@pytest.mark.parametrize(
    "made",
    [
        vm.sinusoidal_steering(),
        vm.ramp_steer(),
        vm.ramp_steer(110 * vm.KMH, -0.06),
        vm.straight_braking(),
        vm.straight(),
        vm.speed_variation(),
        vm.standstill(),
    ],
    ids=lambda m: m.name,
)
def test_inputs_are_smooth_and_hold_still_before_the_start(made):
    u = made.inputs(T)
    assert u.shape == (len(T), 6) and np.isfinite(u).all()
    before = T <= 0.0
    assert (u[before][:, :2] == u[0, :2]).all() and not u[before, 2].any()
    assert np.abs(np.diff(u[:, 0])).max() < 2e-3 * 2.0  # at most 2 rad/s of steering
    assert np.allclose(np.gradient(u[:, 1], T)[1500:-1], u[1500:-1, 2], atol=1e-5)


def test_names_and_sizes_are_those_of_the_papers():
    left, right = vm.ramp_steer(90 * vm.KMH, 0.05), vm.ramp_steer(110 * vm.KMH, -0.05)
    assert left.name == "ramp steer to the left at 90 km/h" and right.name == "ramp steer to the right at 110 km/h"
    t = np.array([0.5, 1.0, 4.0, 5.0])
    assert np.allclose(left.steering(t), [0.0, 0.0, 0.125, 0.175])
    assert np.allclose(right.steering(t), -left.steering(t))
    sine = vm.sinusoidal_steering(160 * vm.KMH, 0.4, 0.5)
    assert sine.name == "sinusoidal steering at 160 km/h"
    assert sine.steering(np.array([2.5]))[0] == pytest.approx(0.4)


def test_the_controller_rests_once_braking_began():
    u = vm.straight_braking(30.0, 5.0, start=2.0).inputs(T)
    assert (u[T <= 2.0, 4] == 1.0).all() and not u[T > 2.01, 4].any()
    assert u[-1, 3] == pytest.approx(5.0)


def test_impossible_wishes_are_refused():
    with pytest.raises(DataError, match="negative speed"):
        vm.straight(-3.0).inputs(T)
    with pytest.raises(DataError, match="not a number"):
        vm.VehicleManoeuvre("odd", lambda t: t * np.nan).inputs(T)


def test_a_restless_engine_has_its_torque_and_one_seed_gives_one_engine():
    made = vm.restless(vm.straight(30.0), np.random.default_rng(4), 50.0)
    t = np.arange(2.0, 22.0, 1e-2)
    assert made.pedal(t).std() == pytest.approx(50.0, rel=0.02)  # whole periods of every line
    again = vm.restless(vm.straight(30.0), np.random.default_rng(4), 50.0)
    assert np.array_equal(made.pedal(t), again.pedal(t)) and made.pedal(np.zeros(1))[0] == 0.0
