"""Explicit Runge-Kutta steps: by any tableau, in fixed steps, or by the integrators of SciPy that choose their steps.

    k_i = f(t + c_i h, y + h Σ_j A_ij k_j),     y⁺ = y + h Σ_i b_i k_i

The rules are SciPy's: RK45 is Dormand and Prince's of order 5, DOP853 that of order 8 (Hairer, Nørsett and Wanner, 1993, Solving Ordinary
Differential Equations I, II.5), and Kutta's classic rule of order 4.

A force that feeds on itself makes speeds grow until chosen steps are shorter than anything that a run needs: such a run does not fail, it
only never ends, so it is ended by name where it makes no headway.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD

if TYPE_CHECKING:
    from veridyn.mechanics.system.simulation import Method  # which brings roads, and they numba

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


EVALUATIONS = 10_000  # of rates, after which the way that they made is looked at
LEAST_SHARE = 1e-5  # of the duration, in so many evaluations: at that pace a run takes 10⁹ of them, most of a day


def adaptive_path(
    rate: Callable[[float, Array], Array],
    clock: Array,
    start: Array,
    how: Method,
    where: str,
    hint: str,
    names: Sequence[str],
) -> Array:
    """The states (N, …) at times `clock` by a method of SciPy, refused with `hint` where it stops early or makes no headway.

    `names`: of the coordinates that the components of a state belong to.
    """
    watched = _Watched(rate, float(clock[-1] - clock[0]), how, where, hint, names)
    from scipy.integrate import solve_ivp  # here: tableaus need none

    solution = solve_ivp(
        watched, (clock[0], clock[-1]), start, how.name, clock, rtol=how.rtol, atol=how.atol, max_step=how.step
    )
    if not solution.success:
        raise SimulationError(
            f"{how.name} stopped at {solution.t[-1] if len(solution.t) else clock[0]:.6g} s: {solution.message}",
            where=where,
            expected=f"{clock[-1]:.6g} s",
            hint=hint,
        )
    return solution.y.T


class _Watched:
    """Rates that are counted."""

    def __init__(
        self,
        rate: Callable[[float, Array], Array],
        duration: float,
        how: Method,
        where: str,
        hint: str,
        names: Sequence[str],
    ) -> None:
        self.rate, self.duration, self.how, self.where, self.hint, self.names = rate, duration, how, where, hint, names
        self.count, self.mark = 0, -np.inf

    def __call__(self, time: float, y: Array) -> Array:
        found = self.rate(time, y)
        self.count += 1
        if self.count % EVALUATIONS == 0:
            if time - self.mark < LEAST_SHARE * self.duration:
                worst = self.names[int(np.argmax(np.abs(found)))]
                raise SimulationError(
                    f"{self.how.name} makes no headway at {time:.6g} s.",
                    where=f"{self.where}, coordinate '{worst}'",
                    expected=f"at least {LEAST_SHARE * self.duration:.2g} s in {EVALUATIONS} evaluations",
                    found=f"{max(time - self.mark, 0.0):.2g} s",
                    hint=self.hint,
                )
            self.mark = time
        return found


def check_size(time: float, y: Array, positions: slice, where: str, names: Sequence[str]) -> None:
    """Refuse a state that is no longer finite, or has coordinates beyond all sense, as compiled runs do, with the coordinate."""
    if np.isfinite(y).all() and (np.abs(y[positions]) < LARGEST_ANGLE_RAD).all():
        return
    sizes = np.where(np.isfinite(y), 0.0, np.inf)
    sizes[positions] = np.maximum(sizes[positions], np.nan_to_num(np.abs(y[positions]), nan=np.inf))
    worst = int(np.argmax(sizes))
    raise SimulationError(
        f"the motion has run away at {time:.6g} s.",
        where=f"{where}, coordinate '{names[worst]}'",
        found=f"{y[worst]:.3g}",
        hint="Try a smaller step, or look for a force that feeds on itself.",
    )
