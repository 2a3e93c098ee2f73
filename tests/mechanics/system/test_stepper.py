"""Explicit steps by any tableau: their orders on a pendulum against SciPy, and exactness where the rule is exact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from veridyn.mechanics.system.stepper import RULES, SIMPLE, explicit_step, march, tableau

ORDERS = {"euler": 1, "midpoint": 2, "RK4": 4, "RK45": 5, "DOP853": 8}


def pendulum(t: float, y: np.ndarray) -> np.ndarray:
    return np.array([y[1], -9.81 * np.sin(y[0]) + 0.3 * np.cos(2.0 * t)])


@pytest.mark.parametrize("rule", [*RULES, *SIMPLE])
def test_order(rule: str) -> None:
    exact = solve_ivp(pendulum, (0.0, 1.0), [1.0, 0.0], "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    steps = {"DOP853": (4, 8), "RK45": (32, 64)}.get(rule, (64, 128))
    off = [
        np.abs(march(tableau(rule), pendulum, np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1.0 / n)[-1] - exact).max()
        for n in steps
    ]
    assert -0.5 < np.log2(off[0] / off[1]) - ORDERS[rule] < 1.0


@pytest.mark.parametrize("rule", [*RULES, *SIMPLE])
def test_conditions_of_a_rule(rule: str) -> None:
    A, b, c = tableau(rule)
    assert np.allclose(A.sum(axis=1), c) and b.sum() == pytest.approx(1.0) and (np.triu(A) == 0.0).all()


def test_a_known_first_rate_is_not_asked_again_and_mending_happens_after_each_step() -> None:
    times: list[float] = []

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        times.append(t)
        return -y

    y = np.array([[1.0, 2.0], [3.0, 4.0]])
    once = explicit_step(tableau("RK4"), rate, 0.0, y, 0.1, first=-y)
    assert times == [0.05, 0.05, 0.1] and np.allclose(once, np.exp(-0.1) * y, atol=1e-7 * 4)
    mended: list[float] = []

    def back(t: np.ndarray, states: np.ndarray) -> np.ndarray:
        mended.append(float(t[0]))
        return np.zeros_like(states)

    states = march(tableau("euler"), rate, np.array([0.0, 0.3]), np.ones(2), 0.1, back)
    assert mended == pytest.approx([0.1, 0.2, 0.3]) and (states[-1] == 0.0).all()
