"""Explicit Runge-Kutta steps on exact accelerations, brought back to the constraints after each step.

    M q̈ + Φ_qᵀ λ = Q,   Φ_q q̈ = −Φ̇_q q̇                at each stage
    Φ(q) = 0,   Φ_q q̇ = 0,   in the metric M            at the end

What the constraints have drifted is a part of the step's own error, so the way back costs no order (Hairer, Lubich and Wanner, 2006,
Geometric Numerical Integration, IV.4). An explicit rule of high order takes long steps where nothing is stiff; the index-3 form is for the
rest. The rules stand in :mod:`~veridyn.mechanics.system.tableau`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import SimulationError
from veridyn.mechanics.natural.bordered import Bordered
from veridyn.mechanics.natural.dynamics import NaturalState, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.mechanics.system.tableau import CLOSED, CORRECTIONS, STRAY, tableau

Array = NDArray[np.float64]


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
    # Loads the compiler, which not everybody needs.
    from veridyn.mechanics.natural.explicit_kernel import explicit_kernel, work_of
    from veridyn.mechanics.record import Bound

    start = np.concatenate([state.q, state.qd, state.qdd, state.multipliers])
    out = np.empty((len(steps), len(start)))
    work = Bound(work_of(system.tables, system.elimination, tableau(rule), len(system.forces.active) > 0))
    made = explicit_kernel(
        work.address,
        *system.forces.packed(values),
        start,
        steps,
        how.alpha(system),
        out,
    )
    if made < len(steps):
        raise _too_long(system, state.t + float(steps[: made + 1].sum()), float(steps[made]))
    return out


def _too_long(system: NaturalSystem, t: float, h: float) -> SimulationError:
    return SimulationError(
        f"the step to {t:.6g} s is too long: it leaves the constraints too far behind.",
        where=system.mechanism.name,
        expected=f"corrections below {STRAY:g} of the mechanism's size, at most {CORRECTIONS}",
        found=f"a step of {h:.3g} s",
        hint="Try a smaller step; the index3 formulation for stiff springs; or look for a pose where the mechanism locks.",
    )
