"""Rules of explicit steps as data, and when a step back to the constraints has arrived: what all steppers share.

The rules are SciPy's: RK45 is Dormand and Prince's of order 5, DOP853 that of order 8 (Hairer, Nørsett and Wanner, 1993, Solving Ordinary
Differential Equations I, II.5), and Kutta's classic rule of order 4.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError

Array = NDArray[np.float64]
RULES = ("RK4", "RK45", "DOP853")
SIMPLE = ("euler", "midpoint")
CORRECTIONS = 12  # of positions, after which a step counts as too long
STRAY = 0.05  # of the mechanism's size: a correction that is longer belongs to a step that is too long
CLOSED = 1e-12  # of the constraints, relative to the square of the mechanism's size


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
