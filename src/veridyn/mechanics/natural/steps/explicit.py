"""Explicit Runge-Kutta steps on exact accelerations, brought back to the constraints after each step.

    M q̈ + Φ_qᵀ λ = Q,   Φ_q q̈ = g̈ − Φ̇_q q̇ − 2 ω (Φ_q q̇ − ġ) − ω² Φ    at each stage
    Φ(q) = 0,   Φ_q q̇ = ġ,   in the metric M                             at the end

What the constraints have drifted is a part of the step's own error, so the way back costs no order (Hairer, Lubich and Wanner, 2006,
Geometric Numerical Integration, IV.4). An explicit rule of high order takes long steps where nothing is stiff; the index-3 form is for the
rest. The rules stand in :mod:`~veridyn.mechanics.system.stepper`. Many steps a call are machine code of the same equations and tables,
where prescribed coordinates g move, tyres roll, and what is a function of Python is called at each stage (:class:`ExplicitRun`).
"""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import Bound, Numbers
from veridyn.mechanics.natural.equations.dynamics import Bordered, NaturalState, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.equations.wheels import WheelRoom
from veridyn.mechanics.natural.steps.explicit_kernel import explicit_kernel, instant_kernel, work_of
from veridyn.mechanics.system.stepper import CLOSED, CORRECTIONS, STRAY, check_size, tableau


class ExplicitRun:
    """Explicit steps and accelerations of a mechanism for one caller; `room` is what compiled code works in.

    `closing`: rad/s, with which openings die out at the stages of a step. `road`: a packed one, on which tyres roll. `call`: (1,) the
    address of a function of Python, or 0.
    """

    def __init__(
        self,
        system: NaturalSystem,
        rule: str,
        how: Stabilisation,
        closing: float = 0.0,
        road: Array | None = None,
        call: Numbers | None = None,
    ) -> None:
        self.system, self.alpha = system, how.alpha(system)
        self._wheels = WheelRoom(system.wheels, road)  # which keeps the code of tyres for as long as it is called
        called = np.zeros(1, dtype=np.int64) if call is None else call
        self.room = work_of(system, tableau(rule), self._wheels.wheels, called, closing)
        self._bound = Bound(self.room)

    def steps(self, start: Array, begin: float, steps: Array, values: Array, motion: Array | None = None) -> Array:
        """q, q̇, q̈, λ and slips after each of the `steps` (K,), as rows (K, 3n + m + 2w).

        `values` (K or 1, stages + 1 or 1, loads) and `motion` (K or 1, stages + 1 or 1, 3, p) at the stages and at the end of each step.
        """
        begins = begin + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
        out = np.empty((len(steps), len(start)))
        loads, factors = self.system.forces.constants(values)
        led = self.system.constraints.motion[None, None] if motion is None else motion
        led = np.ascontiguousarray(led)
        made = explicit_kernel(self._bound.address, loads, factors, led, start, begins, steps, self.alpha, out)
        if made < len(steps):
            raise _too_long(self.system, float(begins[made] + steps[made]), float(steps[made]))
        return out

    def accelerations(
        self, times: Array, states: Array, values: Array, motion: Array, *, mends: bool = False, closing: float = 0.0
    ) -> tuple[int, Array]:
        """The number of states (N, 2n + 2w) that have them, and accelerations and rates of slips (N, n + 2w).

        `values` (N or 1, loads), `motion` (N or 1, 3, p). States are brought onto the constraints first, in place, where it `mends`.
        """
        out = np.full((len(states), states.shape[1] - self.system.n), np.nan)
        loads, factors = self.system.forces.constants(values)
        made = instant_kernel(
            self._bound.address, loads, factors, motion, times, self.alpha, mends, closing, states, out
        )
        return made, out

    def refuse(self) -> None:
        """Refuse the last state that forces were computed at where it is none of a machine, with its time and coordinate."""
        system, names = self.system, [*2 * self.system.coordinates]
        names += system.wheels.states if len(self.room.slips) else ()
        check_size(float(self.room.time[0]), self.room.now, slice(0, system.n), system.mechanism.name, names)


def explicit_step(
    system: NaturalSystem, state: NaturalState, h: float, values: Array, rule: str, how: Stabilisation
) -> NaturalState:
    """The state a time h later; `values` (stages + 1, loads) act at the stages and at the end, or (1, loads) throughout."""
    A, b, _ = tableau(rule)
    v, a = np.empty((len(b), system.n)), np.empty((len(b), system.n))
    for i in range(len(b)):
        v[i] = state.qd + h * A[i, :i] @ a[:i]
        a[i] = solve_accelerations(system, state.q + h * A[i, :i] @ v[:i], v[i], values[min(i, len(values) - 1)])[0]
    size = max(1.0, float(np.abs(state.q).max(initial=0.0)))
    found = onto_constraints(system, state.q + h * b @ v, state.qd + h * b @ a, how, size)
    if found is None:
        raise _too_long(system, state.t + h, h)
    qdd, lam = solve_accelerations(system, *found, values[-1])
    return NaturalState(state.t + h, *found, qdd, lam)


def onto_constraints(
    system: NaturalSystem, q: Array, qd: Array, how: Stabilisation, size: float
) -> tuple[Array, Array] | None:
    """The nearest pose and rates that satisfy the constraints, in the metric M; None where the way there is too long for a mechanism of
    this size (m)."""
    M, alpha, nothing = system.mass, how.alpha(system), np.zeros(system.n)
    for _ in range(CORRECTIONS):
        phi, J = system.constraints.evaluate(q)
        if not np.isfinite(phi).all():
            return None
        if np.abs(phi).max(initial=0.0) <= CLOSED * size * size:
            return q, qd + Bordered(M, J, alpha).solve(nothing, J @ qd - system.constraints.rates)[0]
        way = Bordered(M, J, alpha).solve(nothing, phi)[0]
        if not np.abs(way).max(initial=0.0) <= STRAY * size:
            return None
        q = q + way
    return None


def explicit_steps(
    system: NaturalSystem, state: NaturalState, steps: Array, values: Array, rule: str, how: Stabilisation
) -> Array:
    """q, q̇, q̈ and λ after each of the `steps` (K,), as rows (K, 3n + m), in one call of machine code.

    `values` (K or 1, stages + 1, loads) are those at the stages and at the end of each step, or (1, 1, loads) those of all.
    """
    start = np.concatenate([state.q, state.qd, state.qdd, state.multipliers])
    return ExplicitRun(system, rule, how).steps(start, state.t, steps, values)


def _too_long(system: NaturalSystem, t: float, h: float) -> SimulationError:
    return SimulationError(
        f"the step that ends at {t:.6g} s is too long: it leaves the constraints too far behind.",
        where=system.mechanism.name,
        expected=f"corrections below {STRAY:g} of the mechanism's size, at most {CORRECTIONS}",
        found=f"a step of {h:.3g} s",
        hint="Try a smaller step; the index3 formulation for stiff springs; or look for a pose where the mechanism locks.",
    )
