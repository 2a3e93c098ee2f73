"""One explicit Runge-Kutta step by any tableau, and marches of such steps; which rule it is, is data.

k_i = f(t + c_i h, y + h Σ_j A_ij k_j),     y⁺ = y + h Σ_i b_i k_i
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.system.tableau import Tableau

Array = NDArray[np.float64]
Rate = Callable[[float, Array], Array]


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
