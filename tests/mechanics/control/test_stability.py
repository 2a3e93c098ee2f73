"""How small errors grow under sampled controllers: closed forms for a mass, and simulated growth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.mechanics.control.gantries import MASS, cart, gantry, servo
from tests.mechanics.control.two_links import arm

from veridyn.manoeuvres import Commanded
from veridyn.mechanics.control.stability import growth_per_tick
from veridyn.mechanics.system.simulation import Method
from veridyn.model.elements.element import coulomb


def roots_of_pd(kp, kd, T, m):
    """|z| of a mass under a PD held over T: x⁺ = (Φ − G K) x with Φ = [1 T; 0 1], G = [T²/2; T]/m."""
    A = np.array([[1.0 - kp * T**2 / (2 * m), T - kd * T**2 / (2 * m)], [-kp * T / m, 1.0 - kd * T / m]])
    return np.abs(np.linalg.eigvals(A)).max()


@pytest.mark.parametrize("gains", [(60.0, 12.0), (1e4, 12.0), (1e5, 400.0), (60.0, 450.0)])
def test_a_mass_under_a_sampled_pd_has_the_roots_of_its_two_by_two_map(gains):
    found = growth_per_tick(cart(servo(kp=gains[0], kd=gains[1], rate=100.0)), np.zeros(1))
    assert found.factor == pytest.approx(roots_of_pd(*gains, 0.01, MASS), rel=1e-7)
    assert (found.doubling_time == math.inf) == (found.factor <= 1.0)


def test_the_highest_stable_damping_is_two_masses_a_period():
    # Without kp the speed obeys v⁺ = (1 − kd T/m) v: stable up to kd = 2 m/T.
    for kd, stable in ((0.99 * 2 * MASS * 100, True), (1.01 * 2 * MASS * 100, False)):
        found = growth_per_tick(cart(servo(kp=1e-9, kd=kd, rate=100.0)), np.zeros(1))
        assert (found.factor <= 1.0 + 1e-7) == stable


@pytest.mark.parametrize("delay", [0.004, 0.01, 0.023])
def test_errors_grow_as_they_do_in_a_simulation(delay):
    c = servo(kp=900.0, kd=5.0, rate=100.0, measurement_delay=delay)
    machine = cart(c)
    found = growth_per_tick(machine, np.zeros(1))
    assert found.factor > 1.0
    with pytest.warns(match="small errors double"):
        motion = Commanded(Still(), 3.0, 100.0, q=[1e-6], method=Method("RK4", step=5e-3)).run(machine).motion
    x = np.abs(motion.q[:, 0])
    peaks = [k for k in range(100, len(x) - 1) if x[k - 1] < x[k] > x[k + 1]]
    grown = (x[peaks[-1]] / x[peaks[0]]) ** (1.0 / (peaks[-1] - peaks[0]))
    assert grown == pytest.approx(
        found.factor, rel=3e-3
    )  # peaks between samples are missed by up to a few per cent in all


class Still:
    def at(self, t, /):
        zero = np.zeros((*np.shape(t), 1))
        return zero, zero, zero


def test_the_unstable_joint_is_named():
    machine = gantry(servo(on="z", name="calm", kp=60.0, kd=12.0), servo(on="x", name="wild", kp=1e6, kd=1.0))
    found = growth_per_tick(machine, np.zeros(2))
    assert (found.coordinate, found.controller) == ("x", "wild")


@pytest.mark.parametrize("kind", ["pid", "cascade", "computed_torque", "gravity"])
def test_every_kind_of_law_holds_an_arm_with_usual_gains_whatever_its_limits_and_dry_friction(kind):
    gains = {
        "pid": {"kp": 80.0, "ki": 40.0, "kd": 8.0, "limit": 1.0},
        "cascade": {"kp": 8.0, "kv": 10.0, "ki": 20.0, "speed_limit": 0.01},
        "computed_torque": {"kp": 100.0, "kd": 20.0},
        "gravity": {"kp": 80.0, "kd": 8.0, "feedforward": "gravity"},
    }[kind]
    word = "pd" if kind == "gravity" else kind
    laws = [servo(word, on=q, name=q, rate=500.0, **gains) for q in ("q1", "q2")]
    machine = arm(*laws, elements=[coulomb("q1", 2.0), coulomb("q2", 1.0)])
    assert growth_per_tick(machine, np.array([0.3, 0.4])).factor < 1.0


def test_an_upright_arm_falls_from_a_weak_controller():
    weak = [servo(on=q, name=q, rate=500.0, kp=1.0, kd=0.1) for q in ("q1", "q2")]
    assert growth_per_tick(arm(*weak), np.array([np.pi / 2, 0.0])).doubling_time < 1.0


def test_several_rates_have_no_single_map():
    assert (
        growth_per_tick(
            gantry(servo(on="z", name="a", kp=1.0), servo(on="x", name="b", rate=50.0, kp=1.0)), np.zeros(2)
        )
        is None
    )
