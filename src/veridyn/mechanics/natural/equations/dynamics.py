"""Accelerations of a mechanism in natural coordinates, in four forms that agree where the constraints hold.

exact       M q̈ + Φ_qᵀ λ = Q and Φ̈ = 0, solved in the null space of Φ_q                                  (14)
penalty     (M + α Φ_qᵀ Φ_q) q̈ = Q − α Φ_qᵀ (Φ̇_q q̇ + 2 ξ ω Φ̇ + ω² Φ)                                    (15)
augmented   the same with multipliers, repeated until they rest: exact to rounding, no error of 1/α          (16), (17)
r_matrix    (Rᵀ M R) z̈ = Rᵀ (Q − M Ṙ ż),  q̈ = R z̈ + Ṙ ż

The equation numbers are those of paper 003. Redundant constraints do no harm to any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import get_lapack_funcs

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.natural.equations.freedoms import refuse_redundant
from veridyn.mechanics.natural.equations.position import independent, position, r_matrix, r_rate, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem

_factor, _solve = get_lapack_funcs(("getrf", "getrs"), dtype=np.float64)
if TYPE_CHECKING:
    from veridyn.mechanics.natural.equations.wheels import Plane

Form = Literal["exact", "penalty", "augmented", "r_matrix"]
FORMS = ("exact", "penalty", "augmented", "r_matrix")
RANK = 1e-9
SINGULAR = 1e-12  # of the reduced mass matrix, relative to its largest eigenvalue


class Bordered:
    """The one linear system of all augmented Lagrangian forms, factorised; A may be singular where J holds what it lets go.

    (A + α Jᵀ J) x = a − α Jᵀ b is the first row of

        [ A   Jᵀ   ] [x]   [ a ]
        [ J  −1/α I] [μ] = [−b ],      μ = α (J x + b),

    and μ is the growth of the multipliers. Solved as it stands, no product with α is formed, so α may be as large as one likes without
    losing digits, and redundant rows of J do no harm.
    """

    def __init__(self, A: Array, J: Array, alpha: float) -> None:
        n, m = len(A), len(J)
        B = np.zeros((n + m, n + m), order="F")
        B[:n, :n] = A
        B[:n, n:] = J.T
        B[n:, :n] = J
        B[range(n, n + m), range(n, n + m)] = -1.0 / alpha
        self.n = n
        self.lu, self.pivots, self.info = _factor(B, overwrite_a=1)

    def solve(self, a: Array, b: Array) -> tuple[Array, Array]:
        """x and μ; not finite where the system is singular."""
        if self.info:
            return np.full(len(a), np.nan), np.full(len(b), np.nan)
        x = _solve(self.lu, self.pivots, np.concatenate([a, -b]))[0]
        return x[: self.n], x[self.n :]


@dataclass(frozen=True)
class Stabilisation:
    """How hard and how fast constraints are held: α is `penalty` times the mean diagonal of the mass matrix.

    The usual advice for α, 1e6 to 1e9, weighs rounding against speed; the bordered system loses no digits and allows more.
    `omega` (rad/s) and `xi` let an error of the index-1 forms die out like a damped spring; `tolerance` is relative and ends the repetition
    of the augmented form.
    """

    penalty: float = 1e12
    omega: float = 10.0
    xi: float = 1.0
    tolerance: float = 1e-10
    iterations: int = 50

    def alpha(self, system: NaturalSystem) -> float:
        return self.penalty * max(float(np.trace(system.mass)) / max(system.n, 1), 1e-300)


@dataclass(frozen=True, eq=False)
class NaturalState:
    """One instant: q, q̇, q̈ over the coordinates, and the multipliers of the constraints, (Φ_qᵀ λ acts against Q)."""

    t: float
    q: Array
    qd: Array
    qdd: Array
    multipliers: Array
    slips: Array = field(default_factory=lambda: np.zeros(0))  # of tyres, as `system.wheels.states` names them


def initial_state(
    system: NaturalSystem,
    given: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    *,
    loads: Mapping[str, ArrayLike] | None = None,
    guess: ArrayLike | None = None,
    t: float = 0.0,
    redundant: Literal["refuse", "keep"] = "refuse",
) -> NaturalState:
    """Consistent positions, velocities and accelerations from some coordinates and rates by name.

    `rates` left out are those of rest; given, they must be as many as the degrees of freedom. The accelerations are those the forces
    cause. Redundant constraints are refused by name unless kept.
    """
    q = position(system, given, guess)
    if redundant == "refuse":
        refuse_redundant(system, q)
    qd = velocity(system, q, rates) if rates else np.zeros(system.n)
    qdd, multipliers = solve_accelerations(system, q, qd, loads)
    return NaturalState(t, q, qd, qdd, multipliers)


def solve_accelerations(
    system: NaturalSystem,
    q: Array,
    qd: Array,
    loads: Mapping[str, ArrayLike] | Array | None = None,
    slips: Array | None = None,
    road: Plane | None = None,
) -> tuple[Array, Array]:
    """The exact form: q̈ (n,) and λ (m,). A motion that moves no mass is refused by the name of its coordinate.

    `slips` of tyres are zero where they are not given, and their `road` is flat.
    """
    J = system.constraints.jacobian(q)
    Q = system.forces.forces(q, qd, _values(system, loads))
    if system.mechanism.tyres:
        at = np.zeros(2 * len(system.mechanism.tyres)) if slips is None else slips
        Q = Q + system.wheels.evaluate(q, qd, at, road).Q
    right = system.constraints.second_rates(q, qd)
    U, s, Vt = np.linalg.svd(J)
    rank = int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())
    N = Vt[rank:].T
    qdd = Vt[:rank].T @ ((U[:, :rank].T @ right) / s[:rank])
    reduced = N.T @ system.mass @ N
    values, vectors = np.linalg.eigh(reduced)
    if len(values) and values[0] <= SINGULAR * max(float(np.abs(system.mass).max(initial=0.0)), 1e-300):
        motion = np.abs(N @ vectors[:, 0])
        raise ModelError(
            f"coordinate '{system.coordinates[int(np.argmax(motion))]}' can move without moving any mass.",
            where=system.mechanism.name,
            expected="a mass behind every degree of freedom",
            found=f"a smallest eigenvalue of {values[0]:.3g} of the reduced mass matrix",
            hint="Give the bodies it moves mass and inertia, or fix the motion by a joint.",
        )
    qdd = qdd + N @ (vectors @ ((vectors.T @ (N.T @ (Q - system.mass @ qdd))) / values))
    left = Q - system.mass @ qdd
    return qdd, U[:, :rank] @ ((Vt[:rank] @ left) / s[:rank])


def accelerations(
    system: NaturalSystem,
    q: Array,
    qd: Array,
    loads: Mapping[str, ArrayLike] | Array | None = None,
    form: Form = "exact",
    *,
    stabilisation: Stabilisation | None = None,
    multipliers: Array | None = None,
    independents: tuple[str, ...] = (),
) -> tuple[Array, Array]:
    """q̈ (n,) and λ (m,) in the chosen form; `multipliers` start the augmented form warm."""
    how = stabilisation or Stabilisation()
    if form != "exact":
        refuse_vehicle(system, f"the {form} form")
    if form == "exact":
        return solve_accelerations(system, q, qd, loads)
    if form == "r_matrix":
        return _by_r_matrix(system, q, qd, _values(system, loads), independents)
    if form not in FORMS:
        raise DataError(f"there is no form '{form}'.", where="form", expected=", ".join(FORMS))
    M, alpha = system.mass, how.alpha(system)
    phi, J = system.constraints.evaluate(q)
    Q = system.forces.forces(q, qd, _values(system, loads))
    held = system.constraints.jacobian_rate(q, qd) @ qd + 2.0 * how.xi * how.omega * (J @ qd) + how.omega**2 * phi
    system_matrix = Bordered(M, J, alpha)
    if form == "penalty":
        return system_matrix.solve(Q, held)  # (15)
    lam = np.zeros(len(phi)) if multipliers is None else multipliers
    change = np.inf
    before = np.zeros(system.n)
    for _ in range(how.iterations):
        qdd, growth = system_matrix.solve(Q - J.T @ lam, held)  # (17)
        lam = lam + growth
        change = float(np.abs(qdd - before).max(initial=0.0))
        if change <= 0.01 * how.tolerance * max(1.0, float(np.abs(qdd).max(initial=0.0))):
            return qdd, lam
        before = qdd
    raise SimulationError(
        f"the multipliers do not settle in {how.iterations} repetitions.",
        where=system.mechanism.name,
        found=f"a last change of {change:.3g}",
        hint="Try a larger penalty.",
    )


def _by_r_matrix(
    system: NaturalSystem, q: Array, qd: Array, values: Array, independents: tuple[str, ...]
) -> tuple[Array, Array]:
    names = independents or independent(system, q)
    z = system.select(names)
    R = r_matrix(system, q, names)
    bias = r_rate(system, q, qd, names, R) @ qd[z]
    Q = system.forces.forces(q, qd, values)
    zdd = np.linalg.solve(R.T @ system.mass @ R, R.T @ (Q - system.mass @ bias))
    qdd = R @ zdd + bias
    J = system.constraints.jacobian(q)
    lam = np.linalg.lstsq(J.T, Q - system.mass @ qdd, rcond=RANK)[0]
    return qdd, np.asarray(lam, dtype=np.float64)


def refuse_vehicle(system: NaturalSystem, what: str) -> None:
    """Refuse tyres and prescribed coordinates, which only index-3 steps and exact accelerations carry in natural coordinates."""
    m = system.mechanism
    if m.tyres or m.prescribed:
        raise ModelError(
            f"{what} carries no tyres and no prescribed coordinates in natural coordinates.",
            where=m.name,
            found=", ".join([*(e.parameter_name for e in m.tyres), *m.prescribed]),
            hint="Use index-3 steps or exact accelerations, or formulation: tree.",
        )


def _values(system: NaturalSystem, loads: Mapping[str, ArrayLike] | Array | None) -> Array:
    return loads if isinstance(loads, np.ndarray) else system.forces.load_values(loads)


@dataclass(frozen=True)
class NaturalEnergy:
    """Joules: of motion, in the field of gravity, and stored in springs."""

    kinetic: float
    gravity: float
    elastic: float

    @property
    def total(self) -> float:
        return self.kinetic + self.gravity + self.elastic


def natural_energy(system: NaturalSystem, q: Array, qd: Array) -> NaturalEnergy:
    """T = ½ q̇ᵀ M q̇ (13), and the potentials."""
    gravity, elastic = system.forces.potential(q)
    return NaturalEnergy(float(0.5 * qd @ system.mass @ qd), gravity, elastic)


def energies(system: NaturalSystem, q: Array, qd: Array) -> Array:
    """Kinetic, gravity's and elastic energy (J) along a motion, (N, 3)."""
    found = [natural_energy(system, a, b) for a, b in zip(q, qd, strict=True)]
    return np.array([[e.kinetic, e.gravity, e.elastic] for e in found])
