"""One explicit Runge-Kutta step by any tableau, and marches of such steps; which rule it is, is data.

    k_i = f(t + c_i h, y + h Σ_j A_ij k_j),     y⁺ = y + h Σ_i b_i k_i

The rules are SciPy's: RK45 is Dormand and Prince's of order 5, DOP853 that of order 8 (Hairer, Nørsett and Wanner, 1993, Solving Ordinary
Differential Equations I, II.5), and Kutta's classic rule of order 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError

RULES = ("RK4", "RK45", "DOP853")
SIMPLE = ("euler", "midpoint")
CORRECTIONS = 12  # of positions, after which a step counts as too long
STRAY = 0.05  # of the mechanism's size: a correction that is longer belongs to a step that is too long
CLOSED = 1e-12  # of the constraints, relative to the square of the mechanism's size
Rate = Callable[[float, Array], Array]


class Tableau(NamedTuple):
    """An explicit rule: stage i starts from A[i], the step ends with b; c are the times of the stages in steps."""

    A: Array
    b: Array
    c: Array


@cache
def tableau(rule: str) -> Tableau:
    """Kutta's classic rule of order 4, one of SciPy's, Euler's, or the midpoint rule."""
    if rule == "euler":
        return Tableau(np.zeros((1, 1)), np.ones(1), np.zeros(1))
    if rule == "midpoint":
        return Tableau(np.array([[0.0, 0.0], [0.5, 0.0]]), np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    if rule == "RK4":
        A = np.zeros((4, 4))
        A[1, 0] = A[2, 1] = 0.5
        A[3, 2] = 1.0
        return Tableau(A, np.array([1.0, 2.0, 2.0, 1.0]) / 6.0, np.array([0.0, 0.5, 0.5, 1.0]))
    if rule not in RULES:
        raise DataError(f"there is no rule '{rule}'.", where="method.rule", expected="one of " + ", ".join(RULES))
    from scipy.integrate import DOP853, RK45  # here: importing it takes longer than fits that make no steps

    found = {"RK45": RK45, "DOP853": DOP853}[rule]
    s = found.n_stages
    A = np.zeros((s, s))
    A[:, : found.A.shape[1]] = found.A[:s]
    return Tableau(A, np.array(found.B[:s]), np.array(found.C[:s]))


def explicit_step(rule: Tableau, rate: Rate, t: float, y: Array, h: float, first: Array | None = None) -> Array:
    """y at t + h, for y of any shape; `first`: the rate at the start, where it is known already."""
    slopes: list[Array] = []
    for i, c in enumerate(rule.c.tolist()):
        if i == 0 and first is not None:
            slopes.append(first)
            continue
        slopes.append(rate(t + c * h, combined(y, h, rule.A[i], slopes)))
    return combined(y, h, rule.b, slopes)


def combined(y: Array, h: float, weights: Array, slopes: list[Array]) -> Array:
    """y + h Σ w_j k_j over the slopes there are."""
    found = y
    for weight, slope in zip(weights.tolist(), slopes):
        if weight != 0.0:
            part = (h * weight) * slope
            if found is y:
                found = y + part
            else:
                found += part  # memory of its own by now
    return found


def march(
    rule: Tableau,
    rate: Rate,
    clock: Array,
    y: Array,
    step: float,
    mend: Callable[[Array, Array], Array] | None = None,
    advance: Callable[[float, Array, float], Array] | None = None,
) -> Array:
    """States (N, …) at the times of the clock (N,) from y at its first; each interval is cut into equal steps no longer than `step`.

    `mend` takes times (1,) and states (1, …) after each step and puts them where they must be. `advance`: the state after a step
    of h seconds from a time and a state, in place of the rule's own.
    """
    states = [y]
    for start, end in itertools.pairwise(clock.tolist()):
        count = max(1, math.ceil((end - start) / step - 1e-9))
        h = (end - start) / count
        for k in range(count):
            t = start + k * h
            y = explicit_step(rule, rate, t, y, h) if advance is None else advance(t, y, h)
            y = y if mend is None else mend(np.array([t + h]), y[None])[0]
        states.append(y)
    return np.array(states)
