"""The search of output error: Gauss and Newton's steps with exact sensitivities, damped where they do not reduce the residual.

The initial state of each run is estimated along and eliminated run by run. σ_k of each output comes from the residuals unless it is known,
and is held once it no longer changes. Where dry friction holds, residuals have kinks: the search may end in one, where only steps below its
tolerance reduce the residual although the linear model of one side would go on.

Each run has its own initial state and shares the parameters. The R factor of a run's [J₀ | J_χ | r] holds both: its upper rows say
which state goes with given parameters, its lower ones what is left for the parameters, whose factors of all runs merge into one small
triangle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular

from veridyn.arrays import Array
from veridyn.errors import IdentificationError, ModelError, SimulationError
from veridyn.identify.estimators.least_squares import EXACT_RESIDUAL
from veridyn.identify.output_error.log_runs import MAX_SENSITIVITIES, Runs, chunks
from veridyn.identify.output_error.shooting import RunModel
from veridyn.identify.regression.factor import triangle_of
from veridyn.identify.result import DEFAULT_CONSTANT_SIZE
from veridyn.identify.settings import Auto, Hac
from veridyn.identify.statistics.spectral import stated
from veridyn.inference.error_measures import Moments, moments_of_runs
from veridyn.inference.lag_window import bartlett, lags_for
from veridyn.inference.noise_spectrum import Bands, BandSums, NoiseSpectrum, band_sums, noise_spectrum
from veridyn.progress import Progress, silent

ROUNDING = 1e-10  # of the outputs' sensitivity to the parameters: with exact data a smaller step is rounding
MIN_DECREASE = 1e-5  # of the sum of squares: an iteration that gains less ends the search
CONVERGED_SIGMAS = 0.5  # deviations from the minimum, by the linear model, within which the search has converged
SIGMA_CHANGE = 0.02  # a change of every σ_k below which they are held
LEAST_DAMPING = 1e-3  # above 0: less leaves a step as it is
MAX_DAMPING = 1e8  # of the damping: no step reduces the residual any more
# Simulations of trial steps, for each iteration that is allowed: a search that needs more does not converge
MAX_TRIALS = 5
Values = Callable[[Array], Array]  # base parameters → all parameters
Linearised = tuple[int, slice, Array, Array]  # group, part of its runs, residuals and sensitivities


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
    outputs = problem.shooting.outputs
    _enough(problem, len(starts[0]))
    initial = [problem.shooting.initial(runs) for runs in problem.groups]
    x, residuals = _first(problem, starts, initial, progress)
    given = np.array([(sigma or {}).get(name, np.nan) for name in outputs])
    damping, done, length, trials = 0.0, 0, math.inf, 0
    s, held = np.full(len(outputs), math.inf), False
    while done < iterations and trials < MAX_TRIALS * iterations:
        progress("output error", float(done), float(iterations))
        done += 1
        fresh = _sigma(problem, residuals, given, len(x))
        if not held:
            held = bool(np.abs(fresh / s - 1.0).max() < SIGMA_CHANGE)
            s = fresh
        try:
            factors = problem.factors(x, initial, s)
        except SimulationError as error:
            raise IdentificationError(
                f"the machine cannot be simulated with derivatives where the search is: {error.faults[0].what}",
                where="OutputError",
                hint="Take more substeps, or shorten the horizon.",
            ) from error
        T, _ = problem.reduced(factors)
        cost = _cost(residuals, s)
        own = T[: len(x), : len(x)]
        # the length of the step without damping, in deviations
        length = float(np.linalg.norm(T[: len(x), -1])) / math.sqrt(len(x))
        rounding = ROUNDING * float(np.linalg.norm(own @ x)) / math.sqrt(len(x))
        shortest = max(tolerance * _inflation(problem, residuals, s, len(x)), rounding)
        if length < shortest:
            return _finished(problem, x, initial, residuals, given, done, hac)
        tried = 0
        while True:
            tried += 1
            progress("output error", done - 0.5**tried, float(iterations))
            step, states = problem.stepped(factors, initial, damping)
            if problem.shooting.kinked and held and np.linalg.norm(own @ step) < shortest * math.sqrt(len(x)):
                return replace(_finished(problem, x, initial, residuals, given, done, hac), beyond=length)
            trial = x + step
            new = problem.residuals(trial, states)
            if new is not None and _cost(new, s) <= cost * (1.0 + 1e-9):
                break
            damping = max(10.0 * damping, LEAST_DAMPING)
            if damping > MAX_DAMPING:
                break
        trials += tried
        if damping > MAX_DAMPING or new is None:
            if problem.shooting.kinked and held:
                return replace(_finished(problem, x, initial, residuals, given, done, hac), beyond=length)
            break
        x, initial, residuals = trial, states, new
        if held and 1.0 - _cost(new, s) / cost < MIN_DECREASE:
            if length < CONVERGED_SIGMAS:
                return _finished(problem, x, initial, residuals, given, done, hac)
            if problem.shooting.kinked:
                return replace(_finished(problem, x, initial, residuals, given, done, hac), beyond=length)
        if tried == 1:  # where longer steps have just failed they would fail again
            damping = 0.0 if damping <= LEAST_DAMPING else damping / 10.0
    share = [f"{c} {100.0 * r:.3g} %" for c, r in zip(outputs, _relative(problem, residuals), strict=True)]
    raise IdentificationError(
        f"the output error has not converged after {done} iterations and {trials} simulations of trial steps.",
        where="OutputError",
        expected=f"a step below {tolerance:g} deviations",
        found=f"{length:.3g}, with errors of {', '.join(share)} of what was measured",
        hint="Shorten the horizon, start='tree' from values that are nearer, allow more iterations, or ask for fewer parameters.",
    )


def _first(
    problem: OutputProblem, starts: Sequence[Array], initial: list[Array], progress: Progress
) -> tuple[Array, list[Array]]:
    """Of several starts the one that simulates nearest to the measurement, and its residuals; refused where none can be simulated."""
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
    return x, residuals


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


def _finished(
    problem: OutputProblem,
    x: Array,
    initial: list[Array],
    residuals: list[Array],
    given: Array,
    iterations: int,
    hac: Hac | Auto | None,
) -> Shot:
    p = len(x)
    sigma = _sigma(problem, residuals, given, p)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputProblem:
    """Runs with the simulation that is to reproduce them; x are the base parameters and, behind them, the constants of laws."""

    shooting: RunModel
    free: int  # components of the state that each run estimates
    groups: list[Runs]
    values_of: Values
    spread: Array
    # The last linearisation: the search ends where it was made last, and deviations are computed from it.
    _last: dict[bytes, list[Linearised]] = field(default_factory=dict, init=False, repr=False)

    def model(self, x: Array) -> tuple[RunModel, Array]:
        """The simulation with the constants of x, and all parameters of the tree."""
        p = self.spread.shape[1]
        return self.shooting.at(x[p:]), self.values_of(x[:p])

    def measured(self, runs: Runs) -> Array:
        return self.shooting.measured(runs)

    def residuals(self, x: Array, initial: list[Array]) -> list[Array] | None:
        """y − ŷ of each group, or None where the simulation fails."""
        try:
            return self.simulated(self.shooting, x, initial)
        except (SimulationError, ModelError):
            return None

    def simulated(self, shooting: RunModel, x: Array, initial: list[Array]) -> list[Array]:
        """y − ŷ of each group by a simulation such as that of the search."""
        p = self.spread.shape[1]
        own, values = shooting.at(x[p:]), self.values_of(x[:p])
        return [own.residuals(runs, state, values) for runs, state in zip(self.groups, initial, strict=True)]

    def columns(self, runs: Runs, state: Array, x: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m) and sensitivities (R, K, m, len(x) + size of a state) of the outputs of some runs."""
        shooting, values = self.model(x)
        return shooting.columns(runs, state, values, self.spread)

    def linearised(self, x: Array, initial: list[Array]) -> Iterator[Linearised]:
        """Group, part of its runs, and their :meth:`columns`; kept until the next call where all of them fit into memory."""
        key = b"".join(a.tobytes() for a in (x, *initial))
        if key in self._last:
            yield from self._last[key]
            return
        self._last.clear()
        width, made = len(x) + self.shooting.size, []
        fits = sum(self.measured(runs).size for runs in self.groups) * width <= MAX_SENSITIVITIES
        for group, (runs, state) in enumerate(zip(self.groups, initial, strict=True)):
            for part in chunks(runs, self.shooting.substeps * width):
                found = (group, part, *self.columns(runs[part], state[part], x))
                if fits:
                    made.append(found)
                yield found
        if fits:
            self._last[key] = made

    def factors(
        self, x: Array, initial: list[Array], sigma: Array, residuals: list[Array] | None = None
    ) -> list[Array]:
        """For each group the triangles (R, q, q) of its runs: initial state, parameters and, last, the residual.

        `residuals`: in place of those at x, for what another simulation would change to first order.
        """
        p, free = len(x), self.free
        tops: list[list[Array]] = [[] for _ in self.groups]
        for group, part, own, J in self.linearised(x, initial):
            r = own if residuals is None else residuals[group][part]
            rows = np.concatenate([J[..., p : p + free], J[..., :p], r[..., None]], axis=-1) / sigma[:, None]
            tops[group].append(triangles(rows.reshape(len(r), -1, free + p + 1)))
        return [np.concatenate(found) for found in tops]

    def reduced(self, factors: list[Array], damping: float = 0.0) -> tuple[Array, list[Array]]:
        """The triangle of the parameters and the residual, with initial states eliminated, and what these follow from."""
        free, heads = self.free, []
        size = factors[0].shape[-1] - free
        total = np.zeros((size, size))
        for T in factors:
            if damping and free:
                extra = np.zeros((len(T), free, T.shape[-1]))
                extra[:, range(free), range(free)] = math.sqrt(damping) * np.linalg.norm(T[:, :, :free], axis=1)
                T = triangles(np.concatenate([T, extra], axis=1))
            heads.append(T[:, :free])
            total = triangle_of(np.vstack([total, T[:, free:, free:].reshape(-1, size)]))
        return total, heads

    def reduced_at(self, x: Array, initial: list[Array], sigma: Array) -> tuple[Array, list[Array]]:
        """:meth:`reduced` of the :meth:`factors` at x."""
        return self.reduced(self.factors(x, initial, sigma))

    def stepped(self, factors: list[Array], initial: list[Array], damping: float) -> tuple[Array, list[Array]]:
        """The step of the parameters, and the initial states after it; each damped by so much of its column's length."""
        T, heads = self.reduced(factors, damping)
        p, free = len(T) - 1, self.free
        A, b = T[:p, :p], T[:p, -1]
        if damping:
            A = np.vstack([A, np.diag(math.sqrt(damping) * np.linalg.norm(A, axis=0))])
            b = np.concatenate([b, np.zeros(p)])
        sizes = np.linalg.norm(A, axis=0)
        sizes[sizes == 0.0] = 1.0
        step = np.asarray(np.linalg.lstsq(A / sizes, b, rcond=1e-13)[0], dtype=np.float64) / sizes
        moved = []
        for state, H in zip(initial, heads, strict=True):
            right = H[:, :, -1] - H[:, :, free:-1] @ step
            change = [np.linalg.lstsq(h[:, :free], c, rcond=1e-12)[0] for h, c in zip(H, right, strict=True)]
            moved.append(state + np.array(change) if free else state)
        return step, moved


def triangles(rows: Array) -> Array:
    """R factors of (R, m, q), square whatever m."""
    short = max(0, rows.shape[2] - rows.shape[1])
    return np.asarray(np.linalg.qr(np.pad(rows, ((0, 0), (0, short), (0, 0))), mode="r"))
