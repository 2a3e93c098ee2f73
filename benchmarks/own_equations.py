"""A step of the extended filter on a user's own equations with two states: plain Python functions, and compiled ones."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np

from benchmarks.clock import best_of
from veridyn import filters

COUNT = 2000


def f(x, u, t):
    return np.array([x[1], -9.81 * np.sin(x[0])])


def F(x, u, t):
    return np.array([[0.0, 1.0], [-9.81 * np.cos(x[0]), 0.0]])


def h(x, u, t):
    return np.array([np.sin(x[0]), x[1]])


def H(x, u, t):
    return np.array([[np.cos(x[0]), 0.0], [0.0, 1.0]])


def own_equations() -> Iterator[str]:
    """One line: microseconds of a step of a whole log, Runge-Kutta of order four and Van Loan's noise."""
    t = 0.01 * np.arange(COUNT)
    log = filters.Measurements(t, np.column_stack([np.sin(0.5 * np.cos(3.1 * t)), -1.5 * np.sin(3.1 * t)]), ("s", "r"))
    start = filters.Belief(np.array([0.5, 0.0]), np.array([0.1, 0.1]))
    ways = {
        "plain Python functions": (f, F, h, H),
        "the same compiled (numba.njit)": tuple(numba.njit(g) for g in (f, F, h, H)),
    }
    found = []
    for words, (a, b, c, d) in ways.items():
        system = filters.Continuous(("angle", "rate"), ("s", "r"), a, c, [1e-4, 1e-2], [0.0025, 0.0025], b, d)
        step = best_of(lambda system=system: filters.run(filters.EKF(), system, log, start)).cpu / COUNT
        found.append(f"{1e6 * step:.1f} µs with {words}")
        reference = (
            best_of(lambda system=system: filters.run(filters.EKF(engine="python"), system, log, start), 2).cpu / COUNT
        )
    yield f"- A step of the EKF on own equations of two states: {'; '.join(found)}; the reference filter: {1e6 * reference:.0f} µs."


if __name__ == "__main__":
    print(*own_equations(), sep="\n")
