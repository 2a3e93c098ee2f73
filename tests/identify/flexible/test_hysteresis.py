"""Hysteresis from two encoders, on a joint that an integrator of SciPy moves by equations written here."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import veridyn as vd
from identify.flexible import flexible_arm as arm
from veridyn.identify.flexible.hysteresis import inner_deflection, with_hysteresis
from veridyn.identify.flexible.two_encoders import identify_flexible
from veridyn.model.flexible import flexible_joints

FRICTION, SECONDS, NOISE, DELAY = 8.0, 8.0, 2e-6, 2.8e-3  # N m, s, rad: an encoder of 20 bits, s
TURNS_OVER = 5e-4  # rad/s, over which the dry friction of the truth changes its sign
LOAD = arm.MASS * arm.REACH * 9.81


@cache
def simulated(force: float, over: float) -> tuple[NDArray[np.float64], ...]:
    """Time, motor angle, link angle and torque at 1 kHz, with Dahl's law of a force and a deflection in the shaft."""

    def rate(t: float, y: NDArray[np.float64]) -> list[float]:
        theta, q, fast, slow, z = y.tolist()
        apart = fast - slow
        shaft = arm.STIFFNESS * (theta - q) + arm.DAMPING * apart + force * z
        drive = arm.swing(t, theta, fast) - FRICTION * np.tanh(fast / TURNS_OVER)
        turns = (apart - abs(apart) * z) / over
        return [fast, slow, (drive - shaft) / arm.ROTOR, (shaft - LOAD * np.cos(q)) / arm.ZZ, turns]

    t = np.arange(round(SECONDS * arm.RATE)) / arm.RATE
    start = [-0.5 * np.pi, -0.5 * np.pi, 0.0, 0.0, 0.0]
    y = solve_ivp(rate, (0.0, t[-1]), start, t_eval=t, rtol=1e-8, atol=1e-10, max_step=2e-3, method="LSODA").y
    return t, y[0], y[1], np.array([arm.swing(*x) for x in zip(t, y[0], y[2], strict=True)])


def log(force: float, over: float, seed: int = 0) -> vd.Experiment:
    """The encoders of it, the link's late by DELAY."""
    return arm.log(*simulated(force, over), delay=DELAY, noise=NOISE, seed=seed)


def stated(force: float, over: float) -> vd.Machine:
    return with_hysteresis(arm.machine(), "hip", force, over)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 5))])
@pytest.mark.parametrize(
    ("force", "over"), [(2.0, 3e-3), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((6.0, 1e-3), (1.0, 5e-4)))]
)
def test_force_and_deflection_of_a_hysteresis(force: float, over: float, seed: int) -> None:
    """Within three deviations beside 1.5 % for what the friction of the truth is not, from an order of magnitude of both."""
    fit = identify_flexible(stated(3.0, 1e-3), log(force, over, seed))
    joint = fit.joints["hip"]
    truth = {"stiffness": (arm.STIFFNESS, 0.01), "hysteresis": (force, 0.06), "hysteresis_deflection": (over, 0.1)}
    for name, (value, share) in truth.items():
        x = joint.quantities[name]
        assert x.determined and x.value == pytest.approx(value, rel=share)
        assert abs(x.value - value) < 3.0 * x.sigma + 0.015 * value
    assert fit.delay == pytest.approx(DELAY, abs=1e-4)
    assert joint.inner_odds > 10.0 and not fit.notes()
    own = flexible_joints(fit.machine())["hip"]
    assert own.hysteresis == joint.quantities["hysteresis"].value
    assert own.hysteresis_deflection == joint.quantities["hysteresis_deflection"].value


def test_no_hysteresis_where_there_is_none() -> None:
    fit = identify_flexible(stated(3.0, 1e-3), log(0.0, 1e-3))
    joint = fit.joints["hip"]
    assert "hysteresis" not in joint.quantities and "hip shows no hysteresis" in fit.summary()
    assert joint.stiffness.value == pytest.approx(arm.STIFFNESS, rel=0.01)
    assert flexible_joints(fit.machine())["hip"].hysteresis == 0.0


def test_another_log_is_predicted_from_its_torque() -> None:
    """Four times as well as without the hysteresis, of which the measured deflection says nothing here."""
    first, second = (
        arm.log(*(x[part] for x in simulated(6.0, 1e-3)), noise=NOISE) for part in (slice(0, 5000), slice(5000, None))
    )
    bent = identify_flexible(stated(3.0, 1e-3), first).joints["hip"]
    plain = identify_flexible(arm.machine(), first).joints["hip"]
    assert bent.std_percent(second, moving=True) < 0.25 * plain.std_percent(second, moving=True)


def test_a_spring_with_hysteresis_gives_way_by_its_equation() -> None:
    """δ + (h/K) z(δ) = e, dz/dδ = (1 − sign(δ̇) z)/w, solved for δ(e) by SciPy."""
    ratio, over = 2e-3, 1e-3

    def elastic(s: float) -> float:
        return 4e-3 * np.sin(3.0 * s) + 1e-3 * np.sin(11.0 * s)

    def rate(s: float, y: NDArray[np.float64]) -> list[float]:
        speed = 12e-3 * np.cos(3.0 * s) + 11e-3 * np.cos(11.0 * s)
        change = speed / (1.0 + ratio * (1.0 - np.sign(speed) * y[1]) / over)
        return [change, (change - abs(change) * y[1]) / over]

    s = np.linspace(0.0, 6.0, 6001)
    exact = solve_ivp(rate, (0.0, 6.0), [0.0, 0.0], t_eval=s, rtol=1e-9, atol=1e-12, max_step=1e-3).y[0]
    np.testing.assert_allclose(inner_deflection(elastic(s), ratio, over), exact, atol=1e-6)
