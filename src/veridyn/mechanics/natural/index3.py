"""One step of the index-3 augmented Lagrangian form with the trapezoidal rule and projections of velocities and accelerations.

Positions at the end of the step solve M q̈ + Φ_qᵀ (λ + α Φ) = Q(q, q̇) with the trapezoidal rule (paper 003, equations 39 to 41, with
the factor Δt²/4 of the correction); λ grows by α Φ after each solve and starts warm. Lagging slips of tyres follow the same rule and are
put into these equations. Velocities and accelerations are then projected onto Φ_q q̇ = ġ and Φ_q q̈ = g̈ − Φ̇_q q̇ (g of prescribed
coordinates) in the metric M + Δt/2 C + Δt²/4 K (42, corrected), repeated with multipliers of their own until nothing of size 1/α is left.

Reference: Cuadrado, Dopico, Naya and González, 2004, Multibody System Dynamics 12; García de Jalón and Bayo, 1994.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import SimulationError
from veridyn.mechanics.natural.bordered import Bordered
from veridyn.mechanics.natural.dynamics import NaturalState, Stabilisation
from veridyn.mechanics.natural.system import NaturalSystem

if TYPE_CHECKING:
    from veridyn.mechanics.natural.wheels import Plane

Array = NDArray[np.float64]
PROJECTIONS = 12
CLOSED = 1e-12  # of a projected constraint, relative to what is projected


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
            tyres = system.wheels.evaluate(q, qd, slips, road).condensed(h, begun, slips)
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
                tyres = system.wheels.evaluate(q, qd, slips, road).condensed(h, begun, slips)
                K, C = K + tyres.K, C + tyres.C
            metric = M + 0.5 * h * C + w * K
            qd, qdd = _projected(system, q, qd, qdd, J, metric, w * alpha)
            return NaturalState(state.t + h, q, qd, qdd, lam, slips)
    raise _not_converged(system, state.t + h, how, moved)


def index3_steps(
    system: NaturalSystem,
    state: NaturalState,
    steps: Array,
    values: Array,
    how: Stabilisation,
    motion: Array | None = None,
    road: Array | None = None,
) -> Array:
    """q, q̇, q̈, λ and slips after each of the `steps` (K,), as rows (K, 3n + m + 2w), in one call of machine code.

    `values` (K or 1, loads) are those of each step, or of all; `motion` (K or 1, 3, p) that of prescribed coordinates at the end of each;
    `road` is a packed one (:attr:`veridyn.mechanics.ground.road.Road.packed`).
    """
    # Loads the compiler, which not everybody needs.
    from veridyn.mechanics.natural.index3_kernel import index3_kernel, work_of
    from veridyn.mechanics.natural.wheel_kernel import WheelRoom
    from veridyn.mechanics.record import Bound

    loads, factors, turnings = system.forces.packed(values)
    # Copies have one layout and may be written to: one compiled version serves every caller.
    start = np.concatenate([state.q, state.qd, state.qdd, state.multipliers, state.slips])
    out = np.empty((len(steps), len(start)))
    led = system.constraints.motion[None] if motion is None else motion
    wheels = WheelRoom(system.wheels, road)  # which keeps the code of tyres for as long as it is called
    work = Bound(work_of(system.tables, system.elimination, wheels.wheels))
    made, moved = index3_kernel(
        work.address,
        loads,
        factors,
        turnings,
        np.ascontiguousarray(led),
        start,
        steps,
        how.alpha(system),
        how.tolerance,
        how.iterations,
        out,
    )
    if moved:
        raise _not_converged(system, state.t + float(steps[: made + 1].sum()), how, moved)
    return out


def _not_converged(system: NaturalSystem, t: float, how: Stabilisation, moved: float) -> SimulationError:
    return SimulationError(
        f"the step to {t:.6g} s does not converge in {how.iterations} iterations.",
        where=system.mechanism.name,
        expected=f"a last change below {how.tolerance:.3g} of the mechanism's size",
        found=f"{moved:.3g}",
        hint="Try a smaller step, or look for a pose where the mechanism locks.",
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
