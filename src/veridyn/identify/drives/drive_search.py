"""The most likely drives of a group of joints, by the damped search of :mod:`veridyn.inference.search` with exact sensitivities.

    minimise  Q(z) = Σ_j Σ_t (y_j(t) − ŷ_j(t; z))²/(σ_j² m_j) + |z|²

z are the unknowns in standard deviations of their priors, σ_j is the deviation of the residuals of joint j, and m_j their memory: how many
samples are worth one independent one, the peak of their spectrum over its mean. Model errors have memories of many samples, so that priors
keep their weight beside thousands of them.

How sure the drives of a group are: the covariance of their unknowns, widened where parts of the log disagree.

The information of the columns is weighted for residuals with memory, and quarters of the log are compared
(:mod:`veridyn.inference.posterior`). Where the dry friction of a joint is not one number, no term that it was given is its law: deviations
of all numbers are then those with every term of the friction of that joint unknown, kept or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import IdentificationError, SimulationError
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_log import DriveRecord
from veridyn.identify.drives.drive_unknowns import ALONG, LOAD, RUNGS, DriveUnknown
from veridyn.inference.agreement import Agreement
from veridyn.inference.autoregression import autoregressions
from veridyn.inference.posterior import PARTS, parts_agreement, posterior_covariance
from veridyn.inference.quadratic import Quadratic
from veridyn.inference.search import Damping, StopRules
from veridyn.inference.search import search as least_cost

DAMPING = Damping(start=1e-2, least=1e-4, most=1e4, patient=False)
FEWEST_INDEPENDENT = 20.0  # samples of a joint: a memory that leaves fewer is not seen in a log
# rms over the unknowns: how much further a linear model may go where a kink of friction lets no step reduce Q
KINK_SIGMAS = 0.5
FREQUENCIES = 512  # at which a spectrum is computed
PLACES = 21  # of the way of a joint, at which its dry friction must resist motion
ROUNDING = 1e-9  # of dry friction: so much less than none is none


@dataclass(frozen=True, eq=False)
class LinearDrives:
    """Weighted residuals (samples, n) and their derivatives (samples, n, u) by z at a point."""

    residuals: Array
    columns: Array

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """JᵀJ and Jᵀr of all columns."""
        J = self.columns.reshape(-1, self.columns.shape[2])
        return J.T @ J, J.T @ self.residuals.ravel()

    def normal(self, active: Sequence[int], z: Array) -> tuple[Array, Array]:
        """Half the second derivative of Q by the active unknowns, and half its gradient."""
        own = list(active)
        return self.information(own) + np.eye(len(own)), self._sums[1][own] + z[own]

    def information(self, active: Sequence[int]) -> Array:
        """G of some unknowns: what the data say of them, without their priors."""
        return self._sums[0][np.ix_(active, active)]


@dataclass(frozen=True, eq=False)
class DriveMinimum:
    """Where a search ended: z of every unknown, Q, and the linear model there.

    `beyond`: the step of all unknowns, in posterior deviations, that the linear model would make where no step reduces Q: dry friction has
    kinks where it just stops a joint, or just does not. `converged`: whether it ended by itself, not by the number of steps asked for.
    """

    z: Array
    cost: float
    linear: LinearDrives
    beyond: float = 0.0
    converged: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveProblem:
    """A group of joints with its records; `active` unknowns are estimated, the others stay at z = 0. `weights` (n,): 1/(σ √m)."""

    group: DriveGroup
    records: tuple[DriveRecord, ...]
    active: tuple[int, ...]
    weights: Array

    @property
    def unknowns(self) -> tuple[DriveUnknown, ...]:
        return self.group.unknowns

    def values(self, z: Array) -> Array:
        """The unknowns in their own units."""
        return np.array([u.value(float(x)) for u, x in zip(self.unknowns, z, strict=True)])

    def raw(self, z: Array) -> Array:
        """ŷ − y (samples of all records, n), in rad or m."""
        x = self.values(z)
        return np.concatenate([self.group.simulate(r, x, False)[0] - self.measured(r) for r in self.records])

    def measured(self, record: DriveRecord) -> Array:
        """Positions of the joints of the group."""
        return record.position[:, [record.coordinates.index(c) for c in self.group.joints]]

    def at(self, z: Array) -> DriveMinimum:
        """A point to search from."""
        cost = self.cost(z)
        if not np.isfinite(cost):
            raise IdentificationError(
                "the simulation runs away with the values that it starts from.",
                where=", ".join(self.group.joints),
                hint="Give gains, armatures and frictions nearer to the machine's.",
            )
        return DriveMinimum(z, cost, self.linear(z))

    def cost(self, z: Array) -> float:
        """Q; infinite where a machine has no such values, or runs away with them."""
        if not self.allowed(z):
            return np.inf
        try:
            r = self.raw(z) * self.weights
        except SimulationError:
            return np.inf
        return float((r**2).sum() + z @ z)

    def allowed(self, z: Array) -> bool:
        """Whether dry friction resists motion at every position that the log visits, either way and at any speed, and delays are kept."""
        x = dict(zip([(u.key, u.joints[0]) for u in self.unknowns], self.values(z).tolist(), strict=True))
        if any(value > self.group.longest_delay for (key, _), value in x.items() if key == "measurement_delay"):
            return False
        for joint in self.group.joints:
            if ("coulomb", joint) not in x:
                continue
            u = np.linspace(-1.0, 1.0, PLACES)
            along = (x.get((key, joint), 0.0) * u**power for key, power in ALONG.items())
            least = x["coulomb", joint] + sum(along, np.zeros(len(u)))
            extra = min(x.get(("direction", joint), 0.0), 0.0) + min(x.get(("speed", joint), 0.0), 0.0)
            if (least + extra < -ROUNDING * x["coulomb", joint]).any():
                return False
        by_load = (sum(x.get((key, joint), 0.0) for key in LOAD) for joint in self.group.joints)
        return all(share >= 0.0 for share in by_load)

    def resisting(self, z: Array) -> tuple[Array, Array]:
        """(C, c) with C dz + c ≥ 0 for steps dz after which dry friction resists motion as :meth:`allowed` asks.

        What a joint has of it at a position, forwards or not, fast or not, is convex in z, so that no step that keeps these breaks it.
        """
        x, slopes = self.values(z), np.array([u.slope(float(v)) for u, v in zip(self.unknowns, z, strict=True)])
        at = {(u.key, u.joints[0]): k for k, u in enumerate(self.unknowns)}
        rows: list[Array] = []
        for joint in self.group.joints:
            if ("coulomb", joint) not in at:
                continue
            own = {key: at[key, joint] for key in (*ALONG, "direction", "speed") if (key, joint) in at}
            places = np.linspace(-1.0, 1.0, PLACES) if any(key in ALONG for key in own) else np.zeros(1)
            for u, forwards, slow in product(places, (0.0, 1.0), (0.0, 1.0)):
                row = np.zeros(len(z))
                row[at["coulomb", joint]] = 1.0
                for key, k in own.items():
                    row[k] = u ** ALONG[key] if key in ALONG else forwards if key == "direction" else slow
                rows.append(row)
        C = np.array(rows).reshape(len(rows), len(z))
        return C * slopes, C @ x

    def linear(self, z: Array) -> LinearDrives:
        """The linear model at z."""
        x, made = self.values(z), []
        slopes = np.array([u.slope(float(v)) for u, v in zip(self.unknowns, z, strict=True)])
        for record in self.records:
            y, J = self.group.simulate(record, x)
            made.append(((y - self.measured(record)) * self.weights, J * slopes * self.weights[:, None]))
        return LinearDrives(np.concatenate([r for r, _ in made]), np.concatenate([J for _, J in made]))

    def reweighted(self, found: DriveMinimum) -> tuple[DriveProblem, DriveMinimum]:
        """With the weights that the residuals of a point ask for, and the same point with them."""
        raw = found.linear.residuals / self.weights
        weights = weights_of(raw, [len(r) for r in self.records])
        factor = weights / self.weights
        linear = LinearDrives(found.linear.residuals * factor, found.linear.columns * factor[:, None])
        cost = float((linear.residuals**2).sum() + found.z @ found.z)
        return replace(self, weights=weights), DriveMinimum(found.z, cost, linear)


def weights_of(raw: Array, lengths: Sequence[int]) -> Array:
    """1/(σ √m) of each column of residuals of records of these lengths."""
    parts = np.split(raw, np.cumsum(lengths)[:-1])
    sigma = np.maximum(np.sqrt((raw**2).mean(axis=0)), np.finfo(np.float64).tiny)
    return 1.0 / (sigma * np.sqrt([memory([p[:, j] for p in parts]) for j in range(raw.shape[1])]))


def memory(parts: Sequence[Array]) -> float:
    """How many samples of a residual are worth one: the peak of its autoregressive spectrum over its mean."""
    count = sum(len(p) for p in parts)
    most = int(min(10.0 * np.log10(count), count / 4.0))
    R = np.array([sum(float(p[: len(p) - k] @ p[k:]) for p in parts) for k in range(most + 1)]) / count
    if not R[0] > 0.0:
        return 1.0
    a, news = autoregressions(R[None], np.array([float(count)]))[0]
    omega = np.linspace(0.0, np.pi, FREQUENCIES)
    transfer = np.exp(-1j * np.outer(omega, np.arange(len(a)))) @ a
    return float(np.clip(news / np.abs(transfer).min() ** 2 / R[0], 1.0, max(count / FEWEST_INDEPENDENT, 1.0)))


@dataclass(frozen=True, eq=False)
class DrivePoint:
    """A problem at z, of which x are the active unknowns; `made`: its linear model, where there is one already."""

    problem: DriveProblem
    z: Array
    cost: float
    made: LinearDrives | None = None
    settled: bool = True

    @property
    def x(self) -> Array:
        return self.z[list(self.problem.active)]

    @cached_property
    def linear(self) -> LinearDrives:
        return self.made or self.problem.linear(self.z)

    def at(self, x: Array) -> DrivePoint | None:
        z = self.z.copy()
        z[list(self.problem.active)] = x
        cost = self.problem.cost(z)
        return DrivePoint(self.problem, z, cost) if np.isfinite(cost) else None

    def renewed(self) -> DrivePoint:
        return self

    def model(self) -> Quadratic:
        active = list(self.problem.active)
        A, g = self.linear.normal(active, self.z)
        C, c = self.problem.resisting(self.z)
        low = np.array([self.problem.unknowns[k].lowest for k in active])
        return Quadratic(x=self.x, hessian=A, gradient=g, cost=self.cost, low=low, inequalities=(C[:, active], c))


def search(
    problem: DriveProblem, start: DriveMinimum, *, iterations: int, tolerance: float, steps: int | None = None
) -> DriveMinimum:
    """The least Q near a point; an error where it does not converge: a step of all unknowns by `tolerance` posterior deviations is none.

    With `steps` it ends after so many, wherever it is; `converged` tells.
    """
    kink = KINK_SIGMAS * np.sqrt(len(problem.active))
    stop = StopRules(
        iterations=iterations,
        steps=steps,
        tolerance=tolerance,
        decrease=tolerance**2,  # Q is in squares of deviations
        near_step=kink,
        patience=2,
        kink=kink,
    )
    end = least_cost(
        DrivePoint(problem, start.z, start.cost, start.linear),
        stop,
        DAMPING,
        where=", ".join(problem.group.joints),
        hint="Give priors nearer to the machine, or estimate fewer constants.",
    )
    return DriveMinimum(end.point.z, end.point.cost, end.point.linear, end.beyond, end.converged)


@dataclass(frozen=True, eq=False)
class DrivePosterior:
    """Covariance (a, a) of the active unknowns in z, and what the comparison of parts showed; None where nothing is determined."""

    covariance: Array
    agreement: Agreement | None

    @property
    def widening(self) -> float:
        """B."""
        return 1.0 if self.agreement is None else self.agreement.widening


def posterior(problem: DriveProblem, found: DriveMinimum) -> DrivePosterior:
    """The covariance at the end of a search."""
    active, linear = list(problem.active), found.linear
    cuts = np.linspace(0, len(linear.residuals), PARTS + 1).astype(int)
    parts = [
        (linear.columns[own][:, :, active].reshape(-1, len(active)), -linear.residuals[own].ravel())
        for own in map(slice, cuts[:-1], cuts[1:])
    ]
    same = parts_agreement(linear.information(active), parts)
    C = posterior_covariance(linear.information(active + _unchosen(problem)), 1.0 if same is None else same.widening)
    return DrivePosterior(C[: len(active), : len(active)], same)


def _unchosen(problem: DriveProblem) -> list[int]:
    """Terms of friction that are not estimated, of joints whose friction is not one number."""
    rungs = {k: u.joints[0] for k, u in enumerate(problem.unknowns) if u.key in RUNGS}
    uneven = {joint for k, joint in rungs.items() if k in problem.active}
    return [k for k, joint in rungs.items() if joint in uneven and k not in problem.active]
