"""Output error as a problem of :mod:`veridyn.inference.search`, with exact sensitivities.

The initial state of each run is estimated along and eliminated run by run. σ_k of each output comes from the residuals unless it is known,
and is held once it no longer changes. Where dry friction holds, residuals have kinks, in which the search may end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from veridyn.arrays import Array
from veridyn.errors import IdentificationError, SimulationError
from veridyn.identify.estimators.least_squares import EXACT_RESIDUAL
from veridyn.identify.output_error.output_problem import OutputProblem
from veridyn.identify.result import DEFAULT_CONSTANT_SIZE
from veridyn.identify.settings import Auto, Hac
from veridyn.identify.statistics.spectral import stated
from veridyn.inference.error_measures import Moments, moments_of_runs
from veridyn.inference.lag_window import bartlett, lags_for
from veridyn.inference.noise_spectrum import Bands, BandSums, NoiseSpectrum, band_sums, noise_spectrum
from veridyn.inference.search import Damping, StopRules
from veridyn.inference.search import search as least_cost
from veridyn.progress import Progress, silent

ROUNDING = 1e-10  # of the outputs' sensitivity to the parameters: with exact data a smaller step is rounding
MIN_DECREASE = 1e-5  # of the sum of squares: an iteration that gains less ends the search
CONVERGED_SIGMAS = 0.5  # deviations from the minimum, by the linear model, within which the search has converged
SIGMA_CHANGE = 0.02  # a change of every σ_k below which they are held
COST_SLACK = 1e-9  # relative: by so much rounding may make a sum of squares larger
# Simulations of trial steps, for each iteration that is allowed: a search that needs more does not converge
MAX_TRIALS = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Shot:
    """Base parameters and constants of the least output error, their covariance, and what is left of each output.

    `triangle` is the R factor of the weighted sensitivities; `rms` and `measured` of each output, over `samples` of it. `step_change`: by
    how much values would change if the simulation took half the step, to first order. `beyond`: where the minimum is a kink of the
    residuals, the length of the step, in deviations, that the linear model of one of its sides would still take.
    """

    values: Array
    covariance: Array  # of both, (p + c, p + c)
    triangle: Array
    output_sigma: Array
    rms: Array
    measured: tuple[Moments, ...]
    samples: int
    runs: int
    iterations: int
    residual_sigma: float
    constant_sizes: tuple[float, ...]
    step_change: Array
    lags: int = 0
    beyond: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputPoint:
    """A problem at parameters and initial states of all runs; x has the ones before the others.

    `sigma` of each output, `given` or NaN; `settled`: whether it is held.
    """

    problem: OutputProblem
    parameters: Array
    initial: list[Array]
    residuals: list[Array]
    given: Array
    sigma: Array
    cost: float = math.inf
    settled: bool = False

    @property
    def x(self) -> Array:
        return np.concatenate([self.parameters, *(state.ravel() for state in self.initial)])

    def at(self, x: Array) -> OutputPoint | None:
        p, ends = len(self.parameters), np.cumsum([state.size for state in self.initial])
        flat = np.split(x[p:], ends[:-1])
        initial = [new.reshape(state.shape) for new, state in zip(flat, self.initial, strict=True)]
        residuals = self.problem.residuals(x[:p], initial)
        if residuals is None:
            return None
        cost = _cost(residuals, self.sigma)
        return replace(self, parameters=x[:p], initial=initial, residuals=residuals, cost=cost)

    def renewed(self) -> OutputPoint:
        if self.settled:
            return self
        sigma = _sigma(self.problem, self.residuals, self.given, len(self.parameters))
        settled = bool(np.abs(sigma / self.sigma - 1.0).max() < SIGMA_CHANGE)
        return replace(self, sigma=sigma, settled=settled, cost=_cost(self.residuals, sigma))

    def model(self) -> OutputModel:
        try:
            factors = self.problem.factors(self.parameters, self.initial, self.sigma)
        except SimulationError as error:
            raise IdentificationError(
                f"the machine cannot be simulated with derivatives where the search is: {error.faults[0].what}",
                where="OutputError",
                hint="Take more substeps, or shorten the horizon.",
            ) from error
        return OutputModel(self, factors)


@dataclass(frozen=True, eq=False)
class OutputModel:
    """The triangles of each run around a point, of which initial states are eliminated before a step of the parameters is taken."""

    point: OutputPoint
    factors: list[Array]

    @cached_property
    def _undamped(self) -> tuple[Array, list[Array]]:
        """The triangle of parameters and residual, and what initial states follow from."""
        return self.point.problem.reduced(self.factors)

    def step(self, damping: float = 0.0) -> Array:
        """Each unknown is damped by so much of its column's length."""
        T, heads = self.point.problem.reduced(self.factors, damping) if damping else self._undamped
        p, free = len(T) - 1, self.point.problem.free
        A, b = T[:p, :p], T[:p, -1]
        if damping:
            A = np.vstack([A, np.diag(math.sqrt(damping) * np.linalg.norm(A, axis=0))])
            b = np.concatenate([b, np.zeros(p)])
        sizes = np.linalg.norm(A, axis=0)
        sizes[sizes == 0.0] = 1.0
        step = np.asarray(np.linalg.lstsq(A / sizes, b, rcond=1e-13)[0], dtype=np.float64) / sizes
        moved = []
        for state, H in zip(self.point.initial, heads, strict=True):
            right = H[:, :, -1] - H[:, :, free:-1] @ step
            change = [np.linalg.lstsq(h[:, :free], c, rcond=1e-12)[0] for h, c in zip(H, right, strict=True)]
            moved.append(np.ravel(change) if free else np.zeros(state.size))
        return np.concatenate([step, *moved])

    def length(self, d: Array) -> float:
        p = len(self.point.parameters)
        return float(np.linalg.norm(self._undamped[0][:p, :p] @ d[:p]))

    def remaining(self) -> float:
        return float(np.linalg.norm(self._undamped[0][:-1, -1]))

    def shortest(self, tolerance: float) -> float:
        """That of all parameters by `tolerance` deviations each, as large as residuals make them; or what rounding leaves."""
        own = self.point
        p, inflation = len(own.parameters), _inflation(own.problem, own.residuals, own.sigma, len(own.parameters))
        rounding = ROUNDING * float(np.linalg.norm(self._undamped[0][:p, :p] @ own.parameters))
        return max(math.sqrt(p) * tolerance * inflation, rounding)


def search(
    problem: OutputProblem,
    starts: Sequence[Array],
    *,
    iterations: int,
    tolerance: float,
    sigma: Mapping[str, float] | None = None,
    hac: Hac | Auto | None = None,
    progress: Progress = silent,
) -> Shot:
    """Iterate from the best of `starts`, each base parameters followed by constants, and from the measured initial states."""
    outputs, p, kinked = problem.shooting.outputs, len(starts[0]), problem.shooting.kinked
    _enough(problem, p)
    given = np.array([(sigma or {}).get(name, np.nan) for name in outputs])

    def left(last: OutputPoint) -> str:
        shares = zip(outputs, _relative(problem, last.residuals), strict=True)
        return f"with errors of {', '.join(f'{c} {100.0 * r:.3g} %' for c, r in shares)} of what was measured"

    end = least_cost(
        _first(problem, starts, given, progress),
        StopRules(
            iterations=iterations,
            trials=MAX_TRIALS * iterations,
            tolerance=tolerance,
            slack=COST_SLACK,
            decrease_share=MIN_DECREASE,
            near=CONVERGED_SIGMAS * math.sqrt(p),
            patience=1 if kinked else None,
            kink=math.inf if kinked else 0.0,
            kink_trial=1.0,
        ),
        Damping(),
        where="OutputError",
        hint="Shorten the horizon, start='tree' from values that are nearer, or ask for fewer parameters.",
        left=left,
        task="output error",
        progress=progress,
    )
    return replace(_finished(end.point, end.iterations, hac), beyond=end.beyond / math.sqrt(p))


def _first(problem: OutputProblem, starts: Sequence[Array], given: Array, progress: Progress) -> OutputPoint:
    """Of several starts the one that simulates nearest to the measurement; refused where none can be simulated."""
    initial = [problem.shooting.initial(runs) for runs in problem.groups]
    found: list[tuple[float, Array, list[Array]]] = []
    for k, start in enumerate(starts):
        progress("output error, start", float(k), float(len(starts)))
        residuals = problem.residuals(start, initial)
        if residuals is not None:
            found.append((float((_relative(problem, residuals) ** 2).sum()), start, residuals))
    if not found:
        raise IdentificationError(
            "the machine cannot be simulated with the parameters that the estimate starts from.",
            where="OutputError",
            hint="Shorten the horizon, take more substeps where a law is stiff, or start='tree' where the tree's own values are those "
            "of a possible machine.",
        )
    _, x, residuals = min(found, key=lambda f: f[0])
    return OutputPoint(
        problem=problem,
        parameters=x,
        initial=initial,
        residuals=residuals,
        given=given,
        sigma=np.full(len(given), math.inf),
    )


def _relative(problem: OutputProblem, residuals: list[Array]) -> Array:
    """‖r‖/‖y‖ of each output."""
    error = sum((r**2).sum(axis=(0, 1)) for r in residuals)
    size = sum((problem.measured(runs) ** 2).sum(axis=(0, 1)) for runs in problem.groups)
    return np.sqrt(error / np.where(size > 0.0, size, 1.0))


def _enough(problem: OutputProblem, p: int) -> None:
    equations = sum(problem.measured(runs).size for runs in problem.groups)
    unknowns = p + problem.free * sum(len(runs) for runs in problem.groups)
    short = min(runs.samples for runs in problem.groups)
    if equations <= unknowns or short < 3:
        raise IdentificationError(
            "there are fewer equations than parameters.",
            where="OutputError",
            expected=f"more than {unknowns} samples of outputs, and at least 3 in each run",
            found=f"{equations}, {short} in the shortest run",
            hint="Record longer, or lengthen the horizon.",
        )


def _cost(residuals: list[Array], sigma: Array) -> float:
    return float(sum(np.sum((r / sigma) ** 2) for r in residuals))


def _sigma(problem: OutputProblem, residuals: list[Array], given: Array, p: int) -> Array:
    """σ_k of each output: given, or from the residuals, with their share of the parameters taken into account."""
    n, samples = len(given), sum(r[..., 0].size for r in residuals)
    freedom = samples * n - p - problem.free * sum(len(r) for r in residuals)
    square = sum((r**2).sum(axis=(0, 1)) for r in residuals) / samples
    size = sum((problem.measured(runs) ** 2).sum(axis=(0, 1)) for runs in problem.groups) / samples
    found = np.sqrt(np.maximum(square * samples * n / freedom, EXACT_RESIDUAL**2 * np.where(size > 0.0, size, 1.0)))
    return np.where(np.isfinite(given), given, found)


def _inflation(problem: OutputProblem, residuals: list[Array], sigma: Array, p: int) -> float:
    """How much larger residuals are than the σ they were weighed with: 1 where the weights are right."""
    equations = sum(r.size for r in residuals)
    freedom = equations - p - problem.free * sum(len(r) for r in residuals)
    return math.sqrt(_cost(residuals, sigma) / freedom)


def _finished(point: OutputPoint, iterations: int, hac: Hac | Auto | None) -> Shot:
    problem, x, initial, residuals = point.problem, point.parameters, point.initial, point.residuals
    p = len(x)
    sigma = _sigma(problem, residuals, point.given, p)
    T, heads = problem.reduced_at(x, initial, sigma)
    A = T[:p, :p]
    if np.abs(np.diag(A)).min() < 1e-12 * np.abs(np.diag(A)).max():
        raise IdentificationError(
            "the outputs do not fix every parameter: some change nothing that is compared.",
            where="OutputError",
            hint="In closed loop compare forces; in open loop lengthen the horizon.",
        )
    inverse = solve_triangular(A, np.eye(p))
    scale = _inflation(problem, residuals, sigma, p)
    covariance, lags = scale**2 * inverse @ inverse.T, 0
    if isinstance(hac, Hac):
        meat, lags = _meat(problem, x, initial, heads, sigma, inverse, hac)
        covariance = inverse @ meat @ inverse.T
    elif hac is not None:
        made = stated(_spectrum(problem, x, initial, heads, sigma, inverse), inverse, covariance)
        covariance = made.covariance
    finer, _ = problem.reduced(
        problem.factors(x, initial, sigma, problem.simulated(problem.shooting.refined(), x, initial))
    )
    step_change = solve_triangular(finer[:p, :p], finer[:p, -1]) - inverse @ T[:p, -1]
    samples = sum(r[..., 0].size for r in residuals)
    rms = np.sqrt(sum((r**2).sum(axis=(0, 1)) for r in residuals) / samples)
    size: list[Moments] | None = None
    for g in problem.groups:
        size = moments_of_runs(problem.measured(g), size)
    count = sum(len(g) for g in problem.groups)
    return Shot(
        values=x,
        covariance=covariance,
        triangle=A,
        output_sigma=sigma,
        rms=rms,
        measured=tuple(size or ()),
        samples=samples,
        runs=count,
        iterations=iterations,
        residual_sigma=scale,
        constant_sizes=tuple(np.maximum(np.abs(x[problem.spread.shape[1] :]), DEFAULT_CONSTANT_SIZE).tolist()),
        step_change=step_change,
        lags=lags,
    )


def _meat(
    problem: OutputProblem, x: Array, initial: list[Array], heads: list[Array], sigma: Array, inverse: Array, hac: Hac
) -> tuple[Array, int]:
    """S of the sandwich for residuals that remember within a run, in coordinates in which the sensitivities are orthonormal."""
    p = len(x)
    runs = _orthonormal(problem, x, initial, heads, sigma, inverse)
    scores = [np.einsum("tki,tk->ti", Q, r) for Q, r in runs]
    lags = lags_for(scores) if hac.lags is None else hac.lags
    longest = min(len(h) for h in scores) - 1
    lags = min(lags, longest)
    return sum((bartlett(h, lags) for h in scores), np.zeros((p, p))), lags


def _spectrum(
    problem: OutputProblem, x: Array, initial: list[Array], heads: list[Array], sigma: Array, inverse: Array
) -> NoiseSpectrum:
    """The spectrum of the residuals of all runs, each of which is a stretch of its own."""
    bands = Bands.for_samples(max(g.samples for g in problem.groups))
    total: BandSums | None = None
    for Q, r in _orthonormal(problem, x, initial, heads, sigma, inverse):
        part = band_sums(bands, np.moveaxis(Q, 0, 2), r.T, np.ones(r.T.shape, dtype=bool))
        total = part if total is None else total + part
    assert total is not None
    return noise_spectrum(bands, total)


def _orthonormal(
    problem: OutputProblem, x: Array, initial: list[Array], heads: list[Array], sigma: Array, inverse: Array
) -> Iterator[tuple[Array, Array]]:
    """Of each run the sensitivities (N, outputs, p), orthonormal over all runs, and the residuals (N, outputs) in deviations."""
    p, free = len(x), problem.free
    for group, part, r, J in problem.linearised(x, initial):
        for residual, own, t in zip(r, J, heads[group][part], strict=True):
            W = own[..., :p]
            if free:
                W = W - own[..., p:] @ np.linalg.lstsq(t[:, :free], t[:, free:-1], rcond=1e-12)[0]
            yield W / sigma[:, None] @ inverse, residual / sigma
