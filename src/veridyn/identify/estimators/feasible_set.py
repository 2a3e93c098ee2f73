"""The set of physically consistent parameters, and the point of it nearest to a least-squares solution.

Parameters φ that are estimated, the affine map to all parameters of a tree, the (4, 4) pseudo-inertia of every body and the signs of
elements as constraints, a metric, and the semi-definite program over them, solved by cvxpy with Clarabel in units of typical sizes.
The problem is stated in :mod:`veridyn.identify.estimators.feasible`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.estimators.prior import Prior, prior_moments, sizes, split
from veridyn.identify.result import Feasibility
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import broken_law, pseudo_inertia

# Kinds of elements whose parameter cannot be negative.
POSITIVE = (
    *("spring", "inertia", "stribeck", "tanh_friction", "bump_stop", "dead_zone"),
    *(f"{f}{way}" for f in ("damper", "coulomb") for way in ("", "_forward", "_backward")),
)
TIE_BREAK_WEIGHT = 1e-7  # of the residual: how much a unit of distance weighs where it only decides between equals
LARGEST_WEIGHT = 1e5  # of the numbers the solver is given: exact data would give it weights without bound
# Where only the choice between equals depends on the solver
TIE_BREAK_TOLERANCES = {"tol_gap_abs": 1e-5, "tol_gap_rel": 1e-5}
# Of the residual, where 1e-8 is not reached
COARSER_TOLERANCES = {"tol_gap_abs": 1e-6, "tol_gap_rel": 1e-6, "tol_feas": 1e-7}
AT_BOUND_MARGINS = 10.0  # margins from the bound within which a body counts as being at it
UNITS = np.stack([pseudo_inertia(unit) for unit in np.eye(10)])  # P(φ) = Σ φ_k UNITS_k


class ConsistencySettings(Protocol):
    """What of :class:`~veridyn.identify.estimators.feasible.Consistent` the set depends on."""

    @property
    def prior(self) -> Prior | None: ...
    @property
    def weight(self) -> float: ...
    @property
    def metric(self) -> str: ...
    @property
    def margin(self) -> float: ...
    @property
    def unsigned(self) -> tuple[str, ...]: ...
    @property
    def least_mass(self) -> Mapping[str, float] | None: ...
    @property
    def largest_mass(self) -> Mapping[str, float] | None: ...
    @property
    def total_mass(self) -> float | None: ...
    @property
    def total_mass_within(self) -> float: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class FeasibleSet:
    """Estimated parameters φ, their groups K, the affine map to all parameters, and the constraints on these."""

    machine: Machine
    s: Solution
    how: ConsistencySettings
    K: Array
    spread: Array
    fixed: Array
    anchor: Array
    root: Array
    bodies: dict[str, tuple[list[int], Array]]  # name → columns, and D with D P D of order one
    signed: list[int]

    @classmethod
    def of(cls, machine: Machine, s: Solution, how: ConsistencySettings) -> FeasibleSet:
        p = machine.parameters
        estimated = list(p.select("estimated"))
        place = {c: k for k, c in enumerate(estimated)}
        K = np.zeros((len(s.values), len(estimated)))
        K[:, [place[c] for c in s.observation.columns]] = s.groups.matrix
        spread, fixed = split(p)
        bodies, signed = {}, []
        for k, (body, number) in enumerate(machine.columns):
            moves = np.any(spread[k : k + 10] != 0.0) if body else np.any(spread[k] != 0.0)
            if body and number == 0 and moves:
                mass = p.typical[k + 9]
                D = np.diag([1.0 / np.sqrt(p.typical[k])] * 3 + [1.0 / np.sqrt(mass)])
                bodies[body] = (list(range(k, k + 10)), D)
            elif not body and moves and machine.elements[number].kind in POSITIVE and p.names[k] not in how.unsigned:
                signed.append(k)
        if how.prior is None:
            anchor = known_or_typical(machine)[estimated]
            deviation = sizes(machine, known_or_typical(machine))[estimated]
        else:
            anchor, deviation = prior_moments(machine, how.prior)
        root = np.diag(1.0 / deviation)
        made = cls(
            machine=machine,
            s=s,
            how=how,
            K=K,
            spread=spread,
            fixed=fixed,
            anchor=anchor,
            root=root,
            bodies=bodies,
            signed=signed,
        )
        return made if how.metric == "quadratic" else made._entropic()

    def _entropic(self) -> FeasibleSet:
        """The same with the metric of the anchor's own pseudo-inertias, over the prior's relative deviation."""
        p = self.machine.parameters
        estimated = list(p.select("estimated"))
        place = {c: k for k, c in enumerate(estimated)}
        relative = 1.0 if self.how.prior is None else self.how.prior.relative_of("inertia")
        precision = self.root.T @ self.root
        faults = Faults()
        for name, (columns, _) in self.bodies.items():
            mine = [k for k, c in enumerate(columns) if c in place]
            P0 = pseudo_inertia(self.full(self.anchor)[columns])
            values, V = np.linalg.eigh(P0)
            if values[0] <= 0.0:
                law = broken_law(self.full(self.anchor)[columns]) or f"its least eigenvalue is {values[0]:.3g}"
                faults.add(f"the prior is not that of a body with volume: {law}.", where=f"body '{name}'")
                continue
            H = V / np.sqrt(values)
            parts = np.stack([(H.T @ U @ H).ravel() for U in UNITS[mine]], axis=1) / (np.sqrt(2.0) * relative)
            at = [place[columns[k]] for k in mine]
            precision[np.ix_(at, at)] = parts.T @ parts
        faults.raise_if_any(IdentificationError)
        root = np.asarray(np.linalg.cholesky(precision).T, dtype=np.float64)
        return replace(self, root=root)

    def full(self, phi: Array) -> Array:
        """All parameters from the estimated ones: known ones as they are, tied ones by their ties."""
        return self.spread @ phi + self.fixed

    def reaching(self, phi: Array) -> Array:
        """The nearest parameters to these, in the metric, that reproduce the least-squares solution exactly."""
        back = np.linalg.inv(self.root)
        B = self.K @ back
        return phi + back @ np.linalg.lstsq(B, self.s.values - self.K @ phi, rcond=None)[0]

    def least(self, phi: Array) -> float:
        """The smallest scaled eigenvalue or, where one is negative, signed element over its typical size."""
        x = self.full(phi)
        eigenvalues = [np.linalg.eigvalsh(D @ pseudo_inertia(x[c]) @ D)[0] for c, D in self.bodies.values()]
        below = [v for v in x[self.signed] / self.machine.parameters.typical[self.signed] if v < 0.0]
        A, b = self.masses
        beyond = [v for v in A @ x - b if v < 0.0]
        return float(min([*eigenvalues, *below, *beyond], default=1.0))

    @cached_property
    def masses(self) -> tuple[Array, Array]:
        """(A, b) with A x ≥ b for all parameters x: bounds on masses and on their sum, each over its bound, so of order one."""
        machine, how, A, b = self.machine, self.how, [], []
        at = {body: k for k, (body, number) in enumerate(machine.columns) if body and number == 9}
        for bounds, sign in ((how.least_mass, 1.0), (how.largest_mass, -1.0)):
            for name, mass in (bounds or {}).items():
                row = np.zeros(len(machine.parameters))
                row[at[name]] = sign / mass
                A.append(row)
                b.append(sign)
        if how.total_mass is not None:
            row = np.zeros(len(machine.parameters))
            row[list(at.values())] = 1.0 / how.total_mass
            A += [row, -row]
            b += [1.0 - how.total_mass_within, -1.0 - how.total_mass_within]
        return np.array(A).reshape(len(A), len(machine.parameters)), np.array(b)

    def nearest(self, cp: Any, start: Array) -> Array:
        """The solution by the first way that the solver ends well on; nearly exact data need another than noisy ones.

        Without a prior: at no cost where that is possible, else at the least. With one: at the least cost of both, or, where data are
        so much surer than the prior that no solver can weigh them, with the groups as the posterior has them.
        """
        ways = [
            (True, LARGEST_WEIGHT, TIE_BREAK_TOLERANCES),
            *((False, share * LARGEST_WEIGHT, {}) for share in (1.0, 0.1, 0.01)),
            (False, LARGEST_WEIGHT, COARSER_TOLERANCES),
        ]
        if self.how.prior is not None:
            ways = [(False, LARGEST_WEIGHT, {}), (False, LARGEST_WEIGHT, COARSER_TOLERANCES), ways[0]]
        status = ""
        for keeping, largest, options in ways:
            phi, ended = self.solve(cp, start, keeping, largest, options)
            if phi is not None:
                return phi
            status = status if keeping and status else ended
        raise IdentificationError(
            "no physically consistent parameters were found.",
            where="Consistent",
            expected="the solver's status 'optimal'",
            found=f"'{status}'",
            hint="Known parameters may contradict physics, or the margin may be too large.",
        )

    def solve(
        self, cp: Any, start: Array, keeping: bool, largest: float, options: Mapping[str, float]
    ) -> tuple[Array | None, str]:
        """By cvxpy and Clarabel, in steps from `start` in units of typical sizes: the parameters, or None, and the solver's status.

        `keeping`: only steps that leave the groups as they are, so that the residual stays that of least squares.
        """
        p, how, s = self.machine.parameters, self.how, self.s
        unit = p.typical[list(p.select("estimated"))]
        B = np.diag(unit)
        if keeping:
            B = unit[:, None] * np.linalg.svd(self.K * unit, full_matrices=True)[2][len(self.K) :].T
            if not B.shape[1]:
                return None, "nothing to choose"
        z = cp.Variable(B.shape[1])
        data = s.triangle @ self.K @ B
        size = max(s.sigma * np.sqrt(s.freedom), float(np.linalg.norm(data, 2)) / largest)
        pull = np.sqrt(TIE_BREAK_WEIGHT) if how.prior is None else np.sqrt(how.weight) / size
        pull = 1.0 if keeping else pull
        A, b = pull * self.root @ B, pull * self.root @ (start - self.anchor)
        if not keeping:
            A = np.vstack([A, data / size])
            b = np.concatenate([b, s.triangle @ (self.K @ start - s.values) / size])
        if how.prior is not None and not keeping:
            # With a prior every direction has a weight: in coordinates in which the aim is round, solvers end well.
            back = np.linalg.inv(np.linalg.qr(A, mode="r"))
            A, B = A @ back, B @ back
        aims = [cp.sum_squares(A @ z + b)]
        x0, limits = self.full(start), []
        for columns, D in self.bodies.values():
            map_to = np.stack([(D @ U @ D).ravel() for U in UNITS], axis=1)
            fixed = (map_to @ x0[columns]).reshape(4, 4) - how.margin * np.eye(4)
            limits.append(cp.reshape((map_to @ self.spread[columns] @ B) @ z, (4, 4), order="C") + fixed >> 0)
        if self.signed:
            typical = p.typical[self.signed]
            moved = self.spread[self.signed] @ B / typical[:, None]
            limits.append(moved @ z + x0[self.signed] / typical >= how.margin)
        mass_rows, mass_bounds = self.masses
        if len(mass_bounds):
            limits.append((mass_rows @ self.spread @ B) @ z + mass_rows @ x0 >= mass_bounds + how.margin)
        problem = cp.Problem(cp.Minimize(sum(aims)), limits)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate solution is refused by its status
                problem.solve(solver=cp.CLARABEL, **options)
        except cp.error.SolverError as error:
            return None, f"failed: {error}"
        if problem.status != "optimal" or z.value is None:
            return None, str(problem.status)
        phi = start + B @ np.asarray(z.value, dtype=np.float64)
        return (phi if not keeping or self.least(phi) > 0.5 * how.margin else None), "optimal"

    def certificate(self, phi: Array) -> Feasibility:
        x, p, s = self.full(phi), self.machine.parameters, self.s
        plain = self.full(self.reaching(known_or_typical(self.machine)[list(p.select("estimated"))]))
        least = {name: float(np.linalg.eigvalsh(pseudo_inertia(x[c]))[0]) for name, (c, _) in self.bodies.items()}
        scaled = {n: np.linalg.eigvalsh(D @ pseudo_inertia(x[c]) @ D)[0] for n, (c, D) in self.bodies.items()}
        bound = [n for n, v in scaled.items() if v < AT_BOUND_MARGINS * self.how.margin]
        bound += [p.names[k] for k in self.signed if x[k] < AT_BOUND_MARGINS * self.how.margin * p.typical[k]]
        broken = [n for n, (c, D) in self.bodies.items() if np.linalg.eigvalsh(D @ pseudo_inertia(plain[c]) @ D)[0] < 0]
        broken += [p.names[k] for k in self.signed if plain[k] < 0.0]
        shift = float(np.linalg.norm(s.triangle @ (self.K @ phi - s.values)))
        # Of exact data neither the residual nor the shift is more than rounding.
        residual = max(s.sigma * np.sqrt(s.freedom), 1e-12 * float(np.linalg.norm(s.triangle @ s.values)))
        cost = 100.0 * (np.hypot(1.0, shift / residual) - 1.0) if residual > 0.0 else 0.0
        A, b = self.masses
        bound += self._mass_names([k for k, v in enumerate(A @ x - b) if v < AT_BOUND_MARGINS * self.how.margin])
        broken += self._mass_names([k for k, v in enumerate(A @ plain - b) if v < 0.0])
        return Feasibility(least, float(cost), tuple(dict.fromkeys(bound)), tuple(dict.fromkeys(broken)))

    def _mass_names(self, rows: list[int]) -> list[str]:
        """What bounds on masses hold, by row: bodies, or the total mass."""
        named = [*(self.how.least_mass or {}), *(self.how.largest_mass or {}), "total mass", "total mass"]
        return [named[k] for k in rows]


def known_or_typical(machine: Machine) -> Array:
    """The tree's values; where a body has none, a ball of typical size; where an element has none, its typical size."""
    p = machine.parameters
    values = p.values.copy()
    for k, (body, number) in enumerate(machine.columns):
        if body and number == 0 and not np.isfinite(values[k : k + 10]).all():
            ball = np.concatenate(
                [0.1 * p.typical[k] * np.array([1, 0, 0, 1, 0, 1]), np.zeros(3), p.typical[k + 9 : k + 10]]
            )
            own = values[k : k + 10]
            values[k : k + 10] = np.where(np.isfinite(own), own, ball)
    return np.where(np.isfinite(values), values, p.typical)
