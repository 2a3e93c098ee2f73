"""Motion by the integrators of SciPy that choose their steps, ended by name where one makes no headway.

A force that feeds on itself makes speeds grow until steps are shorter than anything that a run needs: such a run does not fail, it only
never ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import solve_ivp

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.system.simulation import Method
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD

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
