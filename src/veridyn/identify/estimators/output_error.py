"""Output error: the parameters with which a simulation of the machine comes nearest to what was measured.

    minimise Σ_t Σ_k (y_k(t) − ŷ_k(t; χ, x₀))²/σ_k²

ŷ are the coordinates of a simulation under the measured forces or, where a control `law` is given, the forces of a simulation in
closed loop (Gautier, Janot and Vandanjon, 2013, IEEE T-CST 21(2)). Neither derivatives of noisy positions nor filters enter, so noise
on positions does not bias the estimate; noise on the forces that drive the simulation does. Gauss and Newton's steps with exact
sensitivities (:mod:`veridyn.identify.estimators.shooting`), damped where they do not reduce the residual. The initial state of each run is
estimated along and eliminated run by run, so that the problem keeps the size of the machine. σ_k comes from the residuals unless it
is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veridyn.errors import Fault, Faults, IdentificationError
from veridyn.identify.estimators.coloured import Hac, bartlett, lags_for
from veridyn.identify.estimators.least_squares import EXACT
from veridyn.identify.estimators.output_problem import Problem, Values
from veridyn.identify.estimators.shooting import Hold, Law, Shooting, check_motions, chunks, cut
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
ROUNDING = 1e-10  # of the outputs' sensitivity to the parameters: with exact data no step can be told from less
FLAT = 1e-5  # of the sum of squares: an iteration that gains less ends the search
NEAR = 0.5  # deviations from the minimum, by the linear model, within which that is believed
SETTLED = 0.02  # a change of every σ_k below which they are held
LAST = 1e8  # of the damping: no step reduces the residual any more


@dataclass(frozen=True)
class OutputError:
    """Settings of the output-error estimator.

    `law`: None simulates under the measured forces and compares coordinates; a control law Γ(t, q, q̇) simulates in closed loop and
    compares forces. `horizon`: seconds after which a simulation begins anew; the longer, the more model errors add up, and the more
    they are weighed. `initial`: the state at the start of each run, "estimated" along or as "measured". `start`: parameters from
    least squares on the same "data", or the "tree"'s own. `hold`: how forces go on between samples. `friction_speed`: below it dry
    friction is rounded off, as in a simulation. `substeps`: steps of the integrator for each sample. It has converged when the step
    of all parameters together is below `tolerance` deviations, or where the residual does not fall any more although a step is small.
    """

    law: Law | None = None
    horizon: float = math.inf
    initial: Literal["estimated", "measured"] = "estimated"
    start: Literal["data", "tree"] = "data"
    hold: Hold = "linear"
    friction_speed: float = 0.05
    substeps: int = 1
    iterations: int = 40
    tolerance: float = 0.02

    def check(self, tree: Tree) -> None:
        faults = Faults()
        if not self.horizon > 0.0:
            faults.add("it must be positive.", where="output_error.horizon", found=f"{self.horizon}")
        for name, known in (
            ("initial", ("estimated", "measured")),
            ("start", ("data", "tree")),
            ("hold", ("linear", "zero")),
        ):
            if getattr(self, name) not in known:
                faults.add(
                    "there is no such way.",
                    where=f"output_error.{name}",
                    expected=" or ".join(known),
                    found=f"'{getattr(self, name)}'",
                )
        if self.iterations < 1 or self.substeps < 1 or not self.tolerance > 0.0 or not self.friction_speed >= 0.0:
            faults.add(
                "iterations and substeps must be at least 1, the tolerance positive, the friction speed not negative.",
                where="output_error",
            )
        faults.raise_if_any(IdentificationError, tree.name)


@dataclass(frozen=True, eq=False)
class Shot:
    """Base parameters of the least output error, their covariance, and what is left of each output.

    `triangle` is the R factor of the weighted sensitivities; `rms` and `measured` of each output, over `samples` of it.
    """

    values: Array
    covariance: Array
    triangle: Array
    output_sigma: Array
    rms: Array
    measured: Array
    samples: int
    runs: int
    iterations: int
    residual_sigma: float
    lags: int = 0


def output_error(
    tree: Tree,
    motions: Sequence[Motion],
    start: Array,
    values_of: Values,
    how: OutputError,
    sigma: Mapping[str, float] | None = None,
    hac: Hac | None = None,
    progress: Progress = silent,
) -> Shot:
    """Iterate from base parameters `start`; `values_of` gives all parameters of the tree from them and is affine."""
    how.check(tree)
    check_motions(tree, motions, how.law, "output_error")
    origin = values_of(np.zeros_like(start))
    spread = np.stack([values_of(unit) - origin for unit in np.eye(len(start))], axis=1)
    shooting = Shooting(tree, how.law, how.hold, how.friction_speed, how.substeps)
    groups = cut(tree, motions, how.horizon)
    problem = Problem(shooting, 2 * tree.n if how.initial == "estimated" else 0, groups, values_of, spread)
    _enough(problem, len(start))
    initial = [np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1) for runs in groups]
    x, residuals = start, problem.residuals(start, initial)
    if residuals is None:
        raise IdentificationError(
            Fault(
                "the machine cannot be simulated with the parameters that the estimate starts from.",
                where="output_error",
                hint="Shorten the horizon, or start='tree' where the tree's own values are those of a possible machine.",
            )
        )
    given = np.array([(sigma or {}).get(c, np.nan) for c in tree.coordinates])
    damping, done, length = 0.0, 0, math.inf
    s, held = np.full(tree.n, math.inf), False
    while done < how.iterations:
        done += 1
        progress("output error", float(done), float(how.iterations))
        fresh = _sigma(problem, residuals, given, len(x))
        if not held:
            held = bool(np.abs(fresh / s - 1.0).max() < SETTLED)
            s = fresh
        factors = problem.factors(x, initial, s)
        T, _ = problem.reduced(factors)
        cost = _cost(residuals, s)
        own = T[: len(x), : len(x)]
        length = float(np.linalg.norm(T[: len(x), -1])) / math.sqrt(
            len(x)
        )  # of the step without damping, in deviations
        rounding = ROUNDING * float(np.linalg.norm(own @ x)) / math.sqrt(len(x))
        if length < max(how.tolerance * _inflation(problem, residuals, s, len(x)), rounding):
            return _finished(problem, x, initial, residuals, given, done, hac)
        while True:
            step, states = problem.stepped(factors, initial, damping)
            trial = x + step
            new = problem.residuals(trial, states)
            if new is not None and _cost(new, s) <= cost * (1.0 + 1e-9):
                break
            damping = max(10.0 * damping, 1e-4)
            if damping > LAST:
                break
        if damping > LAST or new is None:
            break
        x, initial, residuals = trial, states, new
        if held and length < NEAR and 1.0 - _cost(new, s) / cost < FLAT:
            return _finished(problem, x, initial, residuals, given, done, hac)
        damping = 0.0 if damping < 1e-3 else damping / 100.0
    raise IdentificationError(
        Fault(
            f"the output error has not converged after {done} iterations.",
            where="output_error",
            expected=f"a step below {how.tolerance:g} deviations",
            found=f"{length:.3g}",
            hint="Shorten the horizon, allow more iterations, or ask for fewer parameters.",
        )
    )


def _enough(problem: Problem, p: int) -> None:
    equations = sum(runs.q.size for runs in problem.groups)
    unknowns = p + problem.free * sum(len(runs) for runs in problem.groups)
    short = min(runs.samples for runs in problem.groups)
    if equations <= unknowns or short < 3:
        raise IdentificationError(
            Fault(
                "there are fewer equations than parameters.",
                where="output_error",
                expected=f"more than {unknowns} samples of outputs, and at least 3 in each run",
                found=f"{equations}, {short} in the shortest run",
                hint="Record longer, or lengthen the horizon.",
            )
        )


def _cost(residuals: list[Array], sigma: Array) -> float:
    return float(sum(np.sum((r / sigma) ** 2) for r in residuals))


def _sigma(problem: Problem, residuals: list[Array], given: Array, p: int) -> Array:
    """σ_k of each output: given, or from the residuals, with their share of the parameters taken into account."""
    n, samples = len(given), sum(r[..., 0].size for r in residuals)
    freedom = samples * n - p - problem.free * sum(len(r) for r in residuals)
    square = sum((r**2).sum(axis=(0, 1)) for r in residuals) / samples
    size = sum((problem.measured(runs) ** 2).sum(axis=(0, 1)) for runs in problem.groups) / samples
    found = np.sqrt(np.maximum(square * samples * n / freedom, EXACT**2 * np.where(size > 0.0, size, 1.0)))
    return np.where(np.isfinite(given), given, found)


def _inflation(problem: Problem, residuals: list[Array], sigma: Array, p: int) -> float:
    """How much larger residuals are than the σ they were weighed with: 1 where the weights are right."""
    equations = sum(r.size for r in residuals)
    freedom = equations - p - problem.free * sum(len(r) for r in residuals)
    return math.sqrt(_cost(residuals, sigma) / freedom)


def _finished(
    problem: Problem,
    x: Array,
    initial: list[Array],
    residuals: list[Array],
    given: Array,
    iterations: int,
    hac: Hac | None,
) -> Shot:
    p = len(x)
    sigma = _sigma(problem, residuals, given, p)
    T, heads = problem.reduced(problem.factors(x, initial, sigma))
    A = T[:p, :p]
    if np.abs(np.diag(A)).min() < 1e-12 * np.abs(np.diag(A)).max():
        raise IdentificationError(
            Fault(
                "the outputs do not fix every parameter: some change nothing that is compared.",
                where="output_error",
                hint="In closed loop compare forces; in open loop lengthen the horizon.",
            )
        )
    inverse = solve_triangular(A, np.eye(p))
    scale = _inflation(problem, residuals, sigma, p)
    covariance, lags = scale**2 * inverse @ inverse.T, 0
    if hac is not None:
        meat, lags = _meat(problem, x, initial, heads, sigma, inverse, hac)
        covariance = inverse @ meat @ inverse.T
    samples = sum(r[..., 0].size for r in residuals)
    rms = np.sqrt(sum((r**2).sum(axis=(0, 1)) for r in residuals) / samples)
    size = np.sqrt(sum((problem.measured(g) ** 2).sum(axis=(0, 1)) for g in problem.groups) / samples)
    count = sum(len(g) for g in problem.groups)
    return Shot(x, covariance, A, sigma, rms, size, samples, count, iterations, scale, lags)


def _meat(
    problem: Problem,
    x: Array,
    initial: list[Array],
    heads: list[Array],
    sigma: Array,
    inverse: Array,
    hac: Hac,
) -> tuple[Array, int]:
    """S of the sandwich for residuals that remember within a run, in coordinates in which the sensitivities are orthonormal."""
    p, free = len(x), problem.free
    scores: list[Array] = []
    for runs, state, T in zip(problem.groups, initial, heads, strict=True):
        for part in chunks(runs, problem.shooting.substeps * (p + 2 * problem.shooting.tree.n)):
            r, J = problem.columns(runs[part], state[part], x)
            for residual, own, t in zip(r, J, T[part], strict=True):
                W = own[..., :p]
                if free:
                    W = W - own[..., p:] @ np.linalg.lstsq(t[:, :free], t[:, free:-1], rcond=1e-12)[0]
                scores.append(np.einsum("tki,tk->ti", W / sigma[:, None], residual / sigma) @ inverse)
    lags = lags_for(scores) if hac.lags is None else hac.lags
    longest = min(len(h) for h in scores) - 1
    lags = min(lags, longest)
    return sum((bartlett(h, lags) for h in scores), np.zeros((p, p))), lags
