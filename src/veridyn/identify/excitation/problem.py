"""The search for an excitation as a problem of numbers: unknowns u in, goal and limits out, with exact slopes.

A periodic motion is x(φ) = B(φ) C with phases φ, a basis B (Fourier series or splines) and coefficients C (basis, n); at the frequency f
its rate is f B'C and its acceleration f² B''C. So positions on a grid of phases do not depend on f, and everything is linear in C.
The unknowns u are C over the reach of each coordinate and, where f is free, ln f last.

The search begins at random motions, inside all limits, about a place the machine may stand at.

What makes one experiment better than another are criteria of the information M = ΨᵀΣ⁻¹Ψ, each with its gradient by M.

    "d"  −ln det M / p              equation (22) of paper 002, over p parameters: a volume, whatever the units
    "a"  ln tr(S M⁻¹ S)             the sum of variances, in typical sizes (S = 1/typical)
    "e"  −ln λ_min(S⁻¹ M S⁻¹)       the worst direction, in typical sizes
    "condition"  ln cond Ψ          equation (21), of the regressor as it is: neither noise nor typical sizes count

Natural logarithms, so that a fall by 0.01 is one percent. Gradients G satisfy df = tr(G dM), G symmetric.

How much model an experiment bears shows in the condition of the estimates' correlation matrix while the model grows:

    ρ_ij = P_ij/√(P_ii P_jj)                                                        (11) of paper 002

P is the covariance of the Gauss-Markov estimate (10). cond ρ does not depend on units, so models with different numbers of parameters can
be compared: where a further friction parameter makes it jump, the motion does not separate that parameter from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy.optimize import minimize

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError, VeridynError, did_you_mean
from veridyn.identify.excitation.interior import Limited, LimitSlopes, StackedSlopes, WholeSlopes, in_blocks
from veridyn.identify.excitation.limits import Bounds
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.shape import Shape

Criterion = Literal["d", "a", "e", "condition"]
CRITERIA: tuple[str, ...] = get_args(Criterion)
UNEXCITED_EIGENVALUE = 1e-14  # of the largest eigenvalue: below it a direction counts as not excited at all


def check_criterion(name: str) -> None:
    """Refuse a word that names no criterion."""
    if name not in CRITERIA:
        raise DataError(
            f"there is no criterion '{name}'.", where="design_excitation", hint=did_you_mean(name, CRITERIA)
        )


def criterion(name: Criterion, M: Array, typical: Array) -> tuple[float, Array]:
    """The value, and the gradient by M. `typical` sizes of the parameters scale "a" and "e"."""
    scale = typical if name in ("a", "e") else 1.0 / np.sqrt(np.diag(M)) if name == "d" else np.ones(len(M))
    value, G = _OF[name](M * scale * scale[:, None])
    if name == "d":
        value += 2.0 * float(np.log(scale).sum()) / len(M)
    return value, G * scale * scale[:, None]


def _d(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    return -float(np.log(values).mean()), -(V / values) @ V.T / len(M)


def _a(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    total = float((1.0 / values).sum())
    return float(np.log(total)), -(V / values**2) @ V.T / total


def _e(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    return -float(np.log(values[0])), -np.outer(V[:, 0], V[:, 0]) / values[0]


def _condition(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    G = np.outer(V[:, -1], V[:, -1]) / values[-1] - np.outer(V[:, 0], V[:, 0]) / values[0]
    return 0.5 * float(np.log(values[-1] / values[0])), 0.5 * G


def _spectrum(M: Array) -> tuple[Array, Array]:
    values, V = np.linalg.eigh(M)
    return np.maximum(values, UNEXCITED_EIGENVALUE * values[-1]), V


_OF = {"d": _d, "a": _a, "e": _e, "condition": _condition}


@dataclass(frozen=True)
class Growth:
    """One model of a growing family: what was added, how many parameters it has, cond ρ, and the largest correlation with its names."""

    added: str
    parameters: int
    condition: float
    largest: float
    between: tuple[str, str]


def correlation(covariance: Array) -> Array:
    """ρ of a covariance."""
    s = np.sqrt(np.diag(covariance))
    return covariance / np.outer(s, s)


def growing(information: Array, names: Sequence[str], steps: Mapping[str, Sequence[str]]) -> tuple[Growth, ...]:
    """cond ρ of models that grow step by step: `steps` says what each adds, by parameter names of the `information` ΨᵀΣ⁻¹Ψ (p, p)."""
    own = list(names)
    used: list[int] = []
    found = []
    for label, added in steps.items():
        for name in added:
            if name not in own:
                raise DataError(
                    f"there is no parameter '{name}'.", where=f"step '{label}'", hint=did_you_mean(name, own)
                )
            used.append(own.index(name))
        M = information[np.ix_(used, used)]
        scale = 1.0 / np.sqrt(np.diag(M))
        rho = correlation(np.asarray(np.linalg.inv(M * scale * scale[:, None]), dtype=np.float64))
        off = np.abs(rho - np.eye(len(used)))
        i, j = np.unravel_index(int(np.argmax(off)), off.shape)
        pair = (own[used[int(i)]], own[used[int(j)]])
        found.append(Growth(label, len(used), float(np.linalg.cond(rho)), float(off.max(initial=0.0)), pair))
    return tuple(found)


FINE_GRID_FACTOR = 4  # times as many phases as in the search
MAX_PLACES = 256  # places looked at before limits count as infeasible
STANDING_LIMIT_SHARE = 0.9  # of each limit that a place to stand at may use
START_LIMIT_SHARE = 0.9  # of the tightest limit that a start uses
SMALLEST_MOTION = 1e-6  # of the reach: motions below it are none


@dataclass(frozen=True, eq=False, kw_only=True)
class ExcitationProblem:
    """The goal and the limits on `phases` of one period, over unknowns u.

    `reach` (n,): by what each coordinate's coefficients are divided. `whitener` L⁻¹ with Σ = L Lᵀ. `frequency`: fixed, or its two ends.
    `margin`: the share of each limit that is kept free, for what lies between the phases.
    """

    plant: Plant
    shape: Shape
    bounds: Bounds
    goal: Criterion
    phases: Array
    reach: Array
    whitener: Array
    frequency: tuple[float, float]
    friction_speed: float
    margin: float = 0.0

    @cached_property
    def basis(self) -> Array:
        return self.shape.basis(self.phases)

    @property
    def fine_phases(self) -> Array:
        """Phases, `FINE_GRID_FACTOR` times as many, on which limits are enforced in the end and their use is stated."""
        count = FINE_GRID_FACTOR * len(self.phases)
        return np.arange(count) / count

    def with_dry_friction(self) -> ExcitationProblem:
        """The same with limits on forces that see friction jump, as the machine does, and not rounded off as in the search."""
        return replace(self, bounds=replace(self.bounds, friction_speed=0.0))

    @property
    def free_frequency(self) -> bool:
        return self.frequency[1] > self.frequency[0]

    def unknowns(self, C: Array, frequency: float) -> Array:
        u = (C / self.reach).ravel()
        return np.append(u, np.log(frequency)) if self.free_frequency else u

    def motion_of(self, u: Array) -> tuple[Array, float]:
        """Coefficients C and frequency."""
        f = float(np.exp(u[-1])) if self.free_frequency else self.frequency[0]
        flat = u[:-1] if self.free_frequency else u
        return flat.reshape(self.shape.count, -1) * self.reach, f

    def samples(self, u: Array, basis: Array | None = None) -> Array:
        """X (3, N, n) on the phases."""
        C, f = self.motion_of(u)
        X = (self.basis if basis is None else basis) @ C
        return X * np.array([1.0, f, f * f])[:, None, None]

    def information(self, X: Array, friction_speed: float | None = None) -> tuple[Array, Array]:
        """M over one sample on average, and the whitened regressor (N, rows, p)."""
        A = self.plant.regressor(X, self.friction_speed if friction_speed is None else friction_speed)
        Aw = np.ascontiguousarray(self.whitener @ A) if self.goal != "condition" else np.ascontiguousarray(A)
        flat = Aw.reshape(-1, A.shape[2])
        return flat.T @ flat / X.shape[1], Aw

    def value(self, u: Array) -> tuple[float, Array]:
        """The criterion and its gradient."""
        X = self.samples(u)
        M, Aw = self.information(X)
        value, Q = criterion(self.goal, M, self.typical)
        G = (2.0 / X.shape[1]) * (Aw @ Q)
        if self.goal != "condition":
            G = self.whitener.T @ G
        by_X = self.plant.adjoint(X, G, self.friction_speed)
        return value, self._pulled(X, by_X, u)

    def goal_alone(self, u: Array) -> float:
        """The criterion without its gradient."""
        return criterion(self.goal, self.information(self.samples(u))[0], self.typical)[0]

    @cached_property
    def typical(self) -> Array:
        base = self.plant.base
        return base.parameters.typical[list(base.columns)]

    def _pulled(self, X: Array, by_X: Array, u: Array) -> Array:
        """From the gradient by samples to that by unknowns."""
        f = self.motion_of(u)[1]
        scale = np.array([1.0, f, f * f])[:, None, None]
        by_C = (np.swapaxes(self.basis, 1, 2) @ (scale * by_X)).sum(axis=0) * self.reach
        if not self.free_frequency:
            return by_C.ravel()
        return np.append(by_C.ravel(), (X[1] * by_X[1]).sum() + 2.0 * (X[2] * by_X[2]).sum())

    def bounded(self, u: Array) -> Array:
        """All g, one after the other, and the place of ln f between its ends last; NaN where the machine cannot go."""
        try:
            g = self.bounds(self.samples(u), slopes=False)[0].ravel()
        except VeridynError:
            g = np.full(len(self.phases) * len(self.bounds.names), np.nan)
        return np.append(g, self._place(u)) if self.free_frequency else g

    def _place(self, u: Array) -> float:
        low, high = np.log(self.frequency)
        return float((2.0 * u[-1] - low - high) / (high - low))

    def slopes(self, u: Array) -> Array:
        """J (limits, unknowns)."""
        X = self.samples(u)
        dg = self.bounds(X)[1]
        assert dg is not None
        J = self._by_coefficients(dg, self.motion_of(u)[1])
        if not self.free_frequency:
            return J
        by_f = np.einsum("nki,ni->nk", dg[:, :, 1], X[1]) + 2.0 * np.einsum("nki,ni->nk", dg[:, :, 2], X[2])
        low, high = np.log(self.frequency)
        last = np.zeros((1, J.shape[1] + 1))
        last[0, -1] = 2.0 / (high - low)
        return np.vstack([np.column_stack([J, by_f.ravel()]), last])

    def _by_coefficients(self, dg: Array, f: float) -> Array:
        """(N k, unknowns) from slopes by samples (N, k, 3, n) at the frequency f."""
        scaled = self.basis * np.array([1.0, f, f * f])[:, None, None]
        N, k = dg.shape[:2]
        J = np.zeros((N, k, self.shape.count, dg.shape[3]))
        for order in range(3):
            if dg[:, :, order].any():
                J += scaled[order][:, None, :, None] * dg[:, :, order][:, :, None, :]
        return (J * self.reach).reshape(N * k, -1)

    def _split_slopes(self, joints: int) -> Callable[[Array], LimitSlopes]:
        """J as a function of u, where the first `joints` limits of a sample have constant slopes, joint by joint, and others follow."""
        count, n, f = self.shape.count, len(self.reach), self.frequency[0]
        still = self.bounds(self.samples(np.zeros(count * n)), only="joints")[1]
        assert still is not None  # slopes were asked for
        fixed = in_blocks(self._by_coefficients(still, f), np.arange(count * n).reshape(count, n).T)
        every = np.arange(len(self.phases) * len(self.bounds.names)).reshape(len(self.phases), -1)
        rows, others = every[:, :joints].ravel(), every[:, joints:].ravel()

        def slopes(u: Array) -> LimitSlopes:
            dg = self.bounds(self.samples(u), only="others")[1]
            assert dg is not None
            return StackedSlopes(fixed, WholeSlopes(self._by_coefficients(dg, f)), rows, others)

        return slopes if len(others) else lambda u: fixed

    def sides(self) -> tuple[Array, Array]:
        """The two sides of every limit in :meth:`bounded`."""
        low, high = self.bounds.sides
        low, high = np.where(low < 0.0, low * (1.0 - self.margin), self.margin), high * (1.0 - self.margin)
        low, high = np.tile(low, len(self.phases)), np.tile(high, len(self.phases))
        return (np.append(low, -1.0), np.append(high, 1.0)) if self.free_frequency else (low, high)

    def limited(self, goal: Callable[[Array], tuple[float, Array]] | None = None) -> Limited:
        """For :func:`~veridyn.identify.excitation.interior.minimise`; `goal`: another than the exact one."""
        joints = self.bounds.joint_limits
        fixed = joints > 0 and not self.free_frequency and self.plant.bounded == self.plant.coordinates
        return Limited(
            goal or self.value, self.bounded, self._split_slopes(joints) if fixed else self.slopes, *self.sides()
        )


def standing(bounds: Bounds, centre: Array, reach: Array, rng: np.random.Generator) -> Array:
    """A place (n,) with room on all sides: `centre` where that has it, else the best of places about it; refused where there is none."""
    places = centre + reach * np.vstack([np.zeros(len(centre)), rng.uniform(-1.0, 1.0, (MAX_PLACES, len(centre)))])
    if excess(bounds, centre)[0] < STANDING_LIMIT_SHARE:
        return centre
    worst = np.array([excess(bounds, x)[0] for x in places])
    best = places[int(np.argmin(worst))]
    used, name = excess(bounds, best)
    if used >= STANDING_LIMIT_SHARE:
        nearer = _nearer(bounds, best, centre, reach)
        if excess(bounds, nearer)[0] < used:
            best = nearer
            used, name = excess(bounds, best)
    if used >= 1.0:
        raise IdentificationError(
            "the limits leave the machine no place to stand at.",
            where=f"limits, {name}",
            expected="a place within all limits",
            found=f"{100.0 * used:.0f} % of this one used at the best of {MAX_PLACES + 1} places",
            hint="Widen this limit, or move centre= to a place that is allowed.",
            source=bounds.plant.name,
        )
    return best


def _nearer(bounds: Bounds, x: Array, centre: Array, reach: Array) -> Array:
    """Downhill on what is beyond the room of each limit, within the reach of the centre."""

    def cost(v: Array) -> tuple[float, Array]:
        g, dg = bounds(_still(reach * v))
        assert dg is not None
        two_sided = np.isfinite(bounds.sides[1])
        over = np.maximum(
            np.where(two_sided, np.abs(g[0]) - STANDING_LIMIT_SHARE, 1.0 - STANDING_LIMIT_SHARE - g[0]), 0.0
        )
        sign = np.where(two_sided, np.sign(g[0]), -1.0)
        return float((over**2).sum()), reach * ((2.0 * over * sign) @ dg[0, :, 0])

    box = list(zip(centre / reach - 1.0, centre / reach + 1.0))
    found = minimize(cost, x / reach, jac=True, bounds=box, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(found.x) * reach


def excess(bounds: Bounds, x: Array) -> tuple[float, str]:
    """The largest share of a limit that standing at x uses, and which; infinite where the machine cannot be there at all."""
    try:
        g = bounds(_still(x), slopes=False)[0][0]
    except VeridynError as error:
        return np.inf, error.faults[0].what
    used = shares(bounds, g[None])
    k = int(np.argmax(used))
    return float(used[k]), bounds.names[k]


def shares(bounds: Bounds, g: Array) -> Array:
    """For each limit (k,), the largest share of it used over samples g (N, k): 1 at the limit."""
    two_sided = np.isfinite(bounds.sides[1])
    return np.where(two_sided, np.abs(g).max(axis=0), (1.0 / np.sqrt(1.0 + np.maximum(g, -1.0 + 1e-12))).max(axis=0))


def _still(x: Array) -> Array:
    X = np.zeros((3, 1, len(x)))
    X[0, 0] = x
    return X


def inside(problem: ExcitationProblem, u: Array) -> bool:
    """Whether all limits hold on the problem's phases; a motion the machine cannot make does not hold them."""
    g = problem.bounded(u)
    low, high = problem.sides()
    return bool((g > low).all() and (g < high).all())


def drawn(problem: ExcitationProblem, centre: Array, rng: np.random.Generator) -> Array:
    """Unknowns of a random motion about `centre` that uses START_LIMIT_SHARE of the amplitude at which it would meet the first limit."""
    low, high = problem.frequency
    f = float(np.exp(rng.uniform(np.log(low), np.log(high)))) if problem.free_frequency else low
    if problem.free_frequency:
        f = float(np.clip(f, low * (high / low) ** 0.05, high * (low / high) ** 0.05))
    shape = problem.shape.drawn(rng, len(centre)) * problem.reach
    still = problem.shape.still(centre)

    def u(size: float) -> Array:
        return problem.unknowns(still + size * shape, f)

    least, most = 0.0, 1.0
    while inside(problem, u(most)) and most < 1e3:
        least, most = most, 2.0 * most
    while most - least > 0.02 * most:
        middle = 0.5 * (least + most)
        least, most = (middle, most) if inside(problem, u(middle)) else (least, middle)
        if most < SMALLEST_MOTION:
            raise IdentificationError(
                "no motion about this place keeps the limits.",
                where="limits",
                found=f"not even one of {SMALLEST_MOTION:g} of the reach",
                hint="Widen the limits, or move centre=.",
                source=problem.plant.name,
            )
    return u(START_LIMIT_SHARE * least)


def reach_of(bounds: Bounds, centre: Array) -> Array:
    """How far each coordinate can go from `centre` alone, either way, until the first limit: (n,)."""
    out = np.ones(len(centre))
    for k in range(len(centre)):
        far = [_until(bounds, centre, k, sign) for sign in (-1.0, 1.0)]
        out[k] = max(far)
    return out


def _until(bounds: Bounds, centre: Array, k: int, sign: float) -> float:
    step = np.zeros(len(centre))
    step[k] = sign
    least, most = 0.0, np.pi
    while most - least > 0.01 * most and most > SMALLEST_MOTION:
        middle = 0.5 * (least + most)
        good = excess(bounds, centre + middle * step)[0] < 1.0
        least, most = (middle, most) if good else (least, middle)
    return max(least, SMALLEST_MOTION)
