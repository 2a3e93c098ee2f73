"""Parameter sets drawn from what a fit knows, each physically consistent: machines for domain randomisation.

The estimate is Gaussian, φ ~ N(μ, C), and a machine is physical: its density is that of N(μ, C) where every pseudo-inertia is positive
definite and friction, stiffness and rotors are not negative, and zero elsewhere. Draws come from that truncated density, by rejection where
at least 5 % of the Gaussian is physical, else by elliptical slice sampling (Murray, Adams and MacKay, 2010, AISTATS), one chain for each:

    φ' = μ + (φ − μ) cos θ + ν sin θ,   ν ~ N(0, C),   θ shrunk towards 0 until φ' is physical.

Chains run in blocks of doubling length until the end of a block remembers nothing of its beginning.

With a prior C is the posterior's, over all standard parameters. Without one C is that of the base parameters, put on the leading parameter
of each group: the other members, and directions that the motion did not excite, keep the tree's values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.delivery import uncertainty_of
from veridyn.identify.drives.drive_method import Drives
from veridyn.identify.estimators.feasible_set import POSITIVE
from veridyn.identify.result import Fit
from veridyn.mechanics.compiled import inner, kept
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import broken_law

DRY_TERMS = ("stribeck", "coulomb_forward", "coulomb_backward")  # kinds that add to Coulomb friction
LEAST_ACCEPTED = 0.05  # share of the Gaussian that is physical, above which rejection is quick
PILOT = 400  # draws that estimate this share
STEPS = 40  # of the first block of the sampler
BLOCKS = 8  # at most, each twice as long as the one before
TRIES = 40  # points of the arc of a step, which becomes about a third shorter with each
LEAST_CHAINS = 64  # from which the memory of chains is estimated
MEMORY = 0.1  # of a block's beginning at its end that counts as none, beside its own noise
LEAST_EIGENVALUE = 1e-12  # of a covariance in units of its deviations: below it is rounding
INSIDE = 0.98  # of the way to the boundary at which chains start
LEAST_PIVOT = 1e-9  # of the diagonal element it is a part of


def parameter_draws(fit: Fit, n: int, rng: np.random.Generator) -> Array:
    """(n, p) standard parameters of ``fit.described`` from the truncated density above; see :meth:`veridyn.identify.result.Fit.draws`."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise DataError("the number of draws is a whole number of at least 1.", where="draws", found=repr(n))
    if not isinstance(rng, np.random.Generator):
        hint = "Pass np.random.default_rng(seed)."
        raise DataError("draws need a random generator.", where="rng", found=type(rng).__name__, hint=hint)
    mean, half = _gaussian(fit)
    physical = _Physical.of(fit, half)
    pilot = mean + rng.standard_normal((PILOT, half.shape[1])) @ half.T
    if physical(pilot).mean() >= LEAST_ACCEPTED:
        return _rejection(mean, half, physical, int(n), rng)
    return _slice(mean, half, physical, _start(fit, mean, half, physical), int(n), rng)


def _gaussian(fit: Fit) -> tuple[Array, Array]:
    """μ (p,) and a root L (p, k) of C = L Lᵀ, over all parameters of the tree."""
    p = fit.described.parameters
    if fit.standard_covariance is not None:
        mean = fit.standard if fit.posterior_mean is None else fit.posterior_mean
        return mean, _root(np.nan_to_num(fit.standard_covariance))
    lost = [name for name, v in zip(fit.names, np.diag(fit.covariance), strict=True) if not np.isfinite(v)]
    if lost:
        raise IdentificationError(
            f"no deviation is known of {', '.join(lost[:8])}{', …' if len(lost) > 8 else ''}, so nothing can be drawn.",
            where=fit.described.name,
            hint=_remedy(fit, "Identify with a prior: Prior(), or Consistent(prior=Prior())."),
        )
    leads = set(fit.base.columns)
    start = p.values if fit.standard_values is None else fit.standard_values
    unknown = [p.names[k] for k in p.select("estimated") if k not in leads and not np.isfinite(start[k])]
    if unknown:
        listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise IdentificationError(
            f"the data do not determine {listed}, and the model has no values of them.",
            where=fit.described.name,
            hint="Give values in the model file, or identify with a prior.",
        )
    known = uncertainty_of(fit)
    at = [k for k, name in enumerate(known.names) if name in p.names]
    rows = [p.index(known.names[k]) for k in at]
    C = np.zeros((len(p), len(p)))
    C[np.ix_(rows, rows)] = known.covariance[np.ix_(at, at)]
    half = _root(C)
    for name, tie in p.ties.items():
        half[p.index(name)] = tie.factor * half[p.index(tie.to)]
    return fit.standard, half


def _root(C: Array) -> Array:
    """L (p, k) with L Lᵀ = C, whose eigenvalues are looked at in units of its own deviations."""
    size = np.sqrt(np.diag(C))
    scale = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(C / np.outer(scale, scale))
    kept = values > LEAST_EIGENVALUE * max(float(values[-1]), 0.0)
    return size[:, None] * vectors[:, kept] * np.sqrt(values[kept])


@dataclass(frozen=True, eq=False)
class _Physical:
    """Whether parameters (m, p) are physical, as (m,) truths: bodies by the first of their ten columns, elements by theirs.

    The rows of `signed` are columns, −1 for none, whose sum is not negative. Bodies that nothing moves are not looked at again; one that
    is not physical is refused when this is made.
    """

    bodies: NDArray[np.int64]
    signed: NDArray[np.int64]

    @classmethod
    def of(cls, fit: Fit, half: Array) -> _Physical:
        machine, phi = fit.described, fit.standard
        moves = np.any(half != 0.0, axis=1)
        bodies: list[int] = []
        broken: list[str] = []
        # One that is negative alone where the estimator was told that it may be is left out.
        signed = [
            row
            for row in signed_rows(machine)
            if moves[list(row)].any() and not (fit.feasibility is not None and phi[list(row)].sum() < 0.0)
        ]
        for k, (body, number) in enumerate(machine.columns):
            if body and number == 0 and moves[k : k + 10].any():
                bodies.append(k)
            elif body and number == 0 and (law := broken_law(phi[k : k + 10])):
                broken.append(f"body '{body}': {law}")
        if broken:
            raise IdentificationError(
                "no draw is physically consistent: what the fit leaves as it was is not.",
                where=machine.name,
                found="; ".join(broken[:4]),
                hint="Correct these values, or identify with a prior.",
            )
        wide = np.full((len(signed), max((len(row) for row in signed), default=1)), -1, dtype=np.int64)
        for k, row in enumerate(signed):
            wide[k, : len(row)] = row
        return cls(np.array(bodies, dtype=np.int64), wide)

    def __call__(self, x: Array) -> NDArray[np.bool_]:
        return physical_sets(x, self.bodies, self.signed)


def signed_rows(machine: Machine) -> list[tuple[int, ...]]:
    """Columns of elements whose sum cannot be negative: a spring's by itself, dry friction's as it acts.

    What dry friction is more at standstill, or one way, may be negative beside Coulomb friction of the same coordinate, which is then
    smaller there: both together resist motion.
    """
    at = [(k, machine.elements[number]) for k, (body, number) in enumerate(machine.columns) if not body]
    dry = {tuple(sorted(e.on.items())): k for k, e in at if e.kind == "coulomb"}
    more: dict[int, list[int]] = {}
    rows: list[tuple[int, ...]] = []
    for k, e in at:
        coulomb = dry.get(tuple(sorted(e.on.items()))) if e.kind in DRY_TERMS else None
        if coulomb is not None:
            more.setdefault(coulomb, []).append(k)
        elif e.kind in POSITIVE:
            rows.append((k,))
    for coulomb, terms in more.items():
        for count in range(1, len(terms) + 1):
            rows += [(coulomb, *some) for some in combinations(terms, count)]
    return rows


def _rejection(mean: Array, half: Array, physical: _Physical, n: int, rng: np.random.Generator) -> Array:
    found: list[Array] = []
    while sum(map(len, found)) < n:
        x = mean + rng.standard_normal((max(n, PILOT), half.shape[1])) @ half.T
        found.append(x[physical(x)])
    return np.concatenate(found)[:n]


def _start(fit: Fit, mean: Array, half: Array, physical: _Physical) -> Array:
    """z (k,) of a physical point: the mean, or the way towards it from the fit's values or the tree's as far as it is physical."""
    if physical(mean[None])[0]:
        return np.zeros(half.shape[1])
    values = fit.described.parameters.values
    for point in (fit.standard, *(_inflated(values, physical.bodies, share) for share in (0.0, 0.01, 0.1))):
        if not np.isfinite(point).all():
            continue
        z = np.linalg.lstsq(half / _sizes(half), (point - mean) / _sizes(half)[:, 0], rcond=None)[0]
        if not physical((mean + half @ z)[None])[0]:
            continue
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if physical((mean + (1.0 - middle) * half @ z)[None])[0] else (low, middle)
        return np.asarray((1.0 - INSIDE * low) * z, dtype=np.float64)
    raise IdentificationError(
        "no physically consistent parameters are known from which draws could start.",
        where=fit.described.name,
        expected="a fit, or values of the model, that physical bodies have",
        hint=_remedy(fit, "Identify with Consistent(prior=Prior())."),
    )


def _remedy(fit: Fit, otherwise: str) -> str:
    """What helps: drives have priors already, and no such estimator."""
    of_drives = "Correct the values of the model file; Drives(friction='coulomb') has one number of dry friction for each joint."
    return of_drives if fit.estimator == Drives.title else otherwise


def _inflated(values: Array, bodies: NDArray[np.int64], share: float) -> Array:
    """Values whose bodies have larger moments of inertia, so that thin plates and rods are not on the boundary."""
    out = values.copy()
    for k in bodies:
        out[[k, k + 3, k + 5]] += share * values[[k, k + 3, k + 5]].sum()
    return out


def _sizes(half: Array) -> Array:
    size = np.linalg.norm(half, axis=1, keepdims=True)
    return np.where(size > 0.0, size, 1.0)


def _slice(mean: Array, half: Array, physical: _Physical, start: Array, n: int, rng: np.random.Generator) -> Array:
    """n chains of elliptical slice sampling, in blocks of doubling length until one forgets its beginning."""
    chains = max(n, LEAST_CHAINS)
    x = np.tile(half @ start, (chains, 1))  # of φ − μ
    limit = MEMORY + 4.0 / np.sqrt(chains)
    for block in range(BLOCKS):
        before = x.copy()
        for _ in range(STEPS * 2**block):
            nu = rng.standard_normal((chains, half.shape[1])) @ half.T
            slice_step(x, nu, rng.random((chains, TRIES)), mean, physical.bodies, physical.signed)
        if _memory(before, x) < limit:
            return mean + x[:n]
    raise IdentificationError(
        f"draws have not converged after {STEPS * (2**BLOCKS - 1)} steps: the physical parameters are far from the estimate.",
        where="draws",
        hint="Identify with Consistent(prior=Prior()), or excite the machine more.",
    )


def _memory(before: Array, after: Array) -> float:
    """How much the end of a block remembers of its beginning, the largest over parameters, 1 where chains have not parted yet.

    It is the correlation over chains, or the change of their mean in deviations where that is larger.
    """
    a, b = before - before.mean(axis=0), after - after.mean(axis=0)
    moved = (b**2).sum(axis=0) > 0.0
    a, b = a[:, moved], b[:, moved]
    if not ((a**2).sum(axis=0) > 0.0).all():
        return 1.0
    spread = np.sqrt((b**2).mean(axis=0))
    correlation = (a * b).mean(axis=0) / (np.sqrt((a**2).mean(axis=0)) * spread)
    drift = (after.mean(axis=0) - before.mean(axis=0))[moved] / spread
    return float(max(np.abs(correlation).max(initial=0.0), np.abs(drift).max(initial=0.0)))


@inner
def is_physical(phi: Array, bodies: NDArray[np.int64], signed: NDArray[np.int64]) -> bool:
    """Whether bodies, by the first of their ten parameters, have positive definite pseudo-inertias and sums of elements are not negative.

    The pivots of [[Σ, MS], [MSᵀ, M]] with the mass first: M, then those of Σ − MS MSᵀ/M, which are to be above rounding.
    """
    for r in range(signed.shape[0]):
        total = 0.0
        for k in signed[r]:
            if k >= 0:
                total += phi[k]
        if total < 0.0:
            return False
    for k in bodies:
        xx, xy, xz, yy, yz, zz = phi[k], phi[k + 1], phi[k + 2], phi[k + 3], phi[k + 4], phi[k + 5]
        mx, my, mz, m = phi[k + 6], phi[k + 7], phi[k + 8], phi[k + 9]
        a, b, c = (yy + zz - xx) / 2.0, (xx + zz - yy) / 2.0, (xx + yy - zz) / 2.0
        if not (m > 0.0 and a > 0.0 and b > 0.0 and c > 0.0):
            return False
        first = a - mx * mx / m
        if not first > LEAST_PIVOT * a:
            return False
        ab, ac, bc = -xy - mx * my / m, -xz - mx * mz / m, -yz - my * mz / m
        second = b - my * my / m - ab * ab / first
        if not second > LEAST_PIVOT * b:
            return False
        rest = bc - ab * ac / first
        if not c - mz * mz / m - ac * ac / first - rest * rest / second > LEAST_PIVOT * c:
            return False
    return True


@kept
def physical_sets(x: Array, bodies: NDArray[np.int64], signed: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(m,) truths of parameters (m, p)."""
    good = np.empty(len(x), dtype=np.bool_)
    for i in range(len(x)):
        good[i] = is_physical(x[i], bodies, signed)
    return good


@kept
def slice_step(
    x: Array, nu: Array, uniform: Array, mean: Array, bodies: NDArray[np.int64], signed: NDArray[np.int64]
) -> None:
    """x (m, p) of φ − μ moved on to a physical point of each chain's ellipse x cos θ + ν sin θ.

    The arc of θ shrinks towards 0 with each of the numbers `uniform` (m, tries) of 0 to 1; a chain that has used them all stays.
    """
    phi = np.empty(x.shape[1])
    for i in range(len(x)):
        theta = 2.0 * math.pi * uniform[i, 0]
        low, high = theta - 2.0 * math.pi, theta
        for t in range(1, uniform.shape[1]):
            c, s = math.cos(theta), math.sin(theta)
            for j in range(len(phi)):
                phi[j] = mean[j] + c * x[i, j] + s * nu[i, j]
            if is_physical(phi, bodies, signed):
                for j in range(len(phi)):
                    x[i, j] = c * x[i, j] + s * nu[i, j]
                break
            if theta < 0.0:
                low = theta
            else:
                high = theta
            theta = low + (high - low) * uniform[i, t]
