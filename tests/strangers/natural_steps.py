"""Steps of the index-3 form in NumPy, written out equation by equation: what the machine code of veridyn is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import SimulationError
from veridyn.mechanics.natural.equations.dynamics import Bordered, NaturalState, Stabilisation
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.equations.wheels import Plane, WheelForces
from veridyn.mechanics.natural.steps.index3 import CLOSED, PROJECTIONS
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural

Array = NDArray[np.float64]


def natural_step(
    system: NaturalSystem, state: NaturalState, h: float, method: NaturalMethod | None = None
) -> NaturalState:
    """The state one step h later, by veridyn."""
    how = replace(method or NaturalMethod(), step=h)
    return integrate_natural(system, [state.t, state.t + h], state, method=how).state(1)


@dataclass(frozen=True, eq=False)
class CondensedWheels:
    """Q, K and C of tyres whose slips follow; ds = `step` + `by_q` dq + `by_qd` dq̇."""

    Q: Array
    K: Array
    C: Array
    step: Array
    by_q: Array
    by_qd: Array


def condensed(at: WheelForces, h: float, begun: Array, s: Array) -> CondensedWheels:
    """The tyres with slips that follow the trapezoidal rule s = begun + h/2 ṡ: Newton's step for s, put into the other equations."""
    half = 0.5 * h
    N = np.linalg.inv(np.eye(len(s)) - half * at.rates_s)
    gain = at.Q_s @ N
    left = begun + half * at.rates - s
    K, C = -(at.Q_q + half * gain @ at.rates_q), -(at.Q_qd + half * gain @ at.rates_qd)
    by_q, by_qd = half * N @ at.rates_q, half * N @ at.rates_qd
    return CondensedWheels(at.Q + gain @ left, K, C, N @ left, by_q, by_qd)


def index3_step(
    system: NaturalSystem,
    state: NaturalState,
    h: float,
    values: Array,
    how: Stabilisation,
    road: Plane | None = None,
) -> NaturalState:
    """The state a time h later, under loads of constant `values` (see :meth:`ForceTable.load_values`).

    `system` holds prescribed coordinates as they are at the end of the step; tyres roll on the `road`, flat where it is not given.
    """
    M, constraints, forces = system.mass, system.constraints, system.forces
    slips, begun = state.slips.copy(), state.slips
    if len(slips):
        begun = slips + 0.5 * h * system.wheels.evaluate(state.q, state.qd, slips, road).rates
    alpha, w = how.alpha(system), 0.25 * h * h
    qd_hat = -(2.0 / h * state.q + state.qd)
    qdd_hat = -(4.0 / h**2 * state.q + 4.0 / h * state.qd + state.qdd)
    q = state.q + h * state.qd + 0.5 * h * h * state.qdd  # (18)
    lam = state.multipliers
    size = max(1.0, float(np.abs(q).max(initial=0.0)))
    phi, J = constraints.evaluate(q)
    moved = np.inf
    for _ in range(how.iterations):
        qd = 2.0 / h * q + qd_hat  # (40)
        qdd = 4.0 / h**2 * q + qdd_hat
        Q, K, C = forces.forces(q, qd, values), *forces.tangents(q, qd, values)
        tyres = None
        if len(slips):
            tyres = condensed(system.wheels.evaluate(q, qd, slips, road), h, begun, slips)
            Q, K, C = Q + tyres.Q, K + tyres.K, C + tyres.C
        residual = w * (M @ qdd + J.T @ lam - Q)  # (41)
        tangent = M + 0.5 * h * C + w * (K + constraints.curvature(q, lam))
        step, growth = Bordered(tangent, J, w * alpha).solve(-residual, phi)
        q = q + step
        lam = lam + growth / w  # (39), after the solve: α (Φ + Φ_q Δq), the α Φ of the new pose
        phi, J = constraints.evaluate(q)
        moved = float(np.abs(step).max(initial=0.0))
        if tyres is not None:
            slipped = tyres.step + (tyres.by_q + 2.0 / h * tyres.by_qd) @ step
            slips = slips + slipped
            moved = max(moved, float(np.abs(slipped).max()))
        if not np.isfinite(moved):
            break
        if moved <= how.tolerance * size and np.abs(phi).max(initial=0.0) <= how.tolerance * size * size:
            qd, qdd = 2.0 / h * q + qd_hat, 4.0 / h**2 * q + qdd_hat
            K, C = forces.tangents(q, qd, values)
            if len(slips):
                tyres = condensed(system.wheels.evaluate(q, qd, slips, road), h, begun, slips)
                K, C = K + tyres.K, C + tyres.C
            metric = M + 0.5 * h * C + w * K
            qd, qdd = _projected(system, q, qd, qdd, J, metric, w * alpha)
            return NaturalState(state.t + h, q, qd, qdd, lam, slips)
    raise SimulationError(
        f"the step to {state.t + h:.6g} s does not converge in {how.iterations} iterations: {moved:.3g}."
    )


def _projected(
    system: NaturalSystem, q: Array, qd: Array, qdd: Array, J: Array, metric: Array, alpha: float
) -> tuple[Array, Array]:
    """q̇ and q̈ that satisfy the constraints, the nearest in the metric."""
    system_matrix = Bordered(metric, J, alpha)

    def project(x: Array, target: Array) -> Array:
        right, sigma, before = metric @ x, np.zeros(len(target)), np.inf
        for _ in range(PROJECTIONS):
            x, growth = system_matrix.solve(right - J.T @ sigma, -target)
            open_by = float(np.abs(J @ x - target).max(initial=0.0))
            if open_by <= CLOSED * max(1.0, float(np.abs(target).max(initial=0.0))) or open_by > 0.5 * before:
                break
            sigma, before = sigma + growth, open_by
        return x

    qd = project(qd, system.constraints.rates)
    return qd, project(qdd, system.constraints.second_rates(q, qd))
