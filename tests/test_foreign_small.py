"""Small machines in closed form: the model files describe the same machines, and nothing is lost or won where nothing acts."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.foreign.small import MACHINES, run, slider_crank
from scipy.integrate import solve_ivp

import veridyn as vd
from strangers import slider_crank as closed

TREES = ("pendulum on a cart", "two-link arm")


@pytest.mark.parametrize("name", TREES)
def test_the_file_and_the_equations_describe_one_machine(name: str) -> None:
    machine, rng = MACHINES[name], np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 20, 2))
    found = vd.inverse_dynamics(vd.load_model(machine.file), vd.Motion(np.arange(20.0), q, qd, qdd))
    for k in range(20):
        M, c = machine.equations(machine.constants, q[k], qd[k])
        np.testing.assert_allclose(found[k], M @ qdd[k] + c, rtol=1e-10, atol=1e-10)  # two codes in double precision


def test_the_slider_crank_is_that_of_another_derivation() -> None:
    """The torque of `strangers.slider_crank`, which has no friction; its differences and those here are central, 1e-8 off."""
    constants = {**MACHINES["slider-crank"].constants, "rail": 0.0, "bearing": 0.0}
    rng = np.random.default_rng(2)
    phi, rate, acceleration = rng.uniform(-3.0, 3.0, (3, 20))
    theirs = closed.torque(phi, rate, acceleration)
    for k in range(20):
        M, c = slider_crank(constants, phi[k : k + 1], rate[k : k + 1])
        assert float(M[0, 0] * acceleration[k] + c[0]) == pytest.approx(float(theirs[k]), abs=1e-5)


def test_friction_of_the_slider_takes_what_its_law_says() -> None:
    """½ J φ̇² + V falls by the work of both dampers."""
    p, phi, rate = MACHINES["slider-crank"].constants, np.array([0.9]), np.array([3.0])
    free = {**p, "rail": 0.0, "bearing": 0.0}
    lost = float((slider_crank(p, phi, rate)[1] - slider_crank(free, phi, rate)[1])[0])
    h, r, rod = 1e-6, p["l_crank"], p["l_rod"]
    x = [r * np.cos(a) + np.sqrt(rod**2 - (r * np.sin(a)) ** 2) for a in (0.9 + h, 0.9 - h)]
    dx = (x[0] - x[1]) / (2.0 * h)
    assert lost == pytest.approx((p["rail"] * dx**2 + p["bearing"]) * 3.0, rel=1e-6)


@pytest.mark.parametrize("name", list(MACHINES))
def test_a_run_starts_at_rest_and_obeys_its_equations(name: str) -> None:
    """From one sample to the next the motion is that of the equations under the torque that was held, by another integrator."""
    machine, rng = MACHINES[name], np.random.default_rng(3)
    constants = machine.drawn(rng, 0.1)
    found = run(machine, constants, 0.4, rng)
    n = len(machine.coordinates)
    np.testing.assert_array_equal(found.q[0], machine.centre)
    assert not found.qd[0].any() and np.abs(found.qd[-1]).max() > 1e-3
    push = np.zeros(n)
    push[list(machine.driven)] = found.u[150]

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        M, c = machine.equations(constants, y[:n], y[n:])
        return np.concatenate([y[n:], np.linalg.inv(M) @ (push - c)])

    start = np.concatenate([found.q[150], found.qd[150]])
    end = solve_ivp(rate, (0.0, found.t[151] - found.t[150]), start, method="Radau", rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(np.concatenate([found.q[151], found.qd[151]]), end, atol=1e-7)
