"""Parameters and noise variances from data: those under which readings and prior are most likely, with their deviations.

    −log p(θ | y) = −Σ_k log p(y_k | y_1 … y_{k−1}, θ) + ½ Σ_i z_i²,      θ_i = θ_i⁰ + σ_i z_i,  or  θ_i⁰ exp(z_i σ_i/θ_i⁰)  where positive

The terms of the first sum are those of the filter's innovations. They are minimised by scoring, with the damped search of
:mod:`veridyn.inference.search`: B = Σ g_k g_kᵀ + I stands for the second derivative, where g_k is the gradient of the k-th term by z
(E. K. Berndt and others, 1974). The covariance is B⁻¹ M B⁻¹ with M = Σ_l w_l Σ_k g_k g_{k+l}ᵀ + I over lags up to `memory` seconds:
innovations of a model that is only nearly right are correlated, and count less than white ones would (W. K. Newey and K. D. West, 1987).

Variances (:func:`tune`) have no prior, and steps of another kind (L-BFGS-B): of them Σ g_k g_kᵀ is a poor second derivative on short logs.

    log p(y) = −½ Σ_k [ log det(2π S_k) + ν_kᵀ S_k⁻¹ ν_k ],   maximised over log θ

The innovations of a filter factor the likelihood of a whole log, so no truth is needed. Tune on one log and check on
another: the variances of the log they came from are flattered. The gate is off while tuning, because what it refuses
would change with the variances; cut outliers from the data first.
Reference: F. C. Schweppe, "Evaluation of likelihood functions for Gaussian signals", IEEE TIT 11 (1965) 61-70.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, VeridynError
from veridyn.inference.lag_window import bartlett
from veridyn.inference.quadratic import Quadratic
from veridyn.inference.search import Damping, StopRules, search
from veridyn.model.parameters import ParameterFit, ParameterGuess, StretchScores
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.progress import Progress, silent

Runs = Sequence[tuple[Measurements, Belief]]

MOST_STEPS = 60
DAMPING = Damping(start=1e-3, least=1e-6, most=5e3, up=4.0, down=5.0, patient=False)
SMALL_STEP = 1e-4  # of z: the gradient is a difference over it, away from a bound
CONVERGED = 0.005  # of −log p: a smaller gain ends the search; it moves a value by a tenth of its deviation
INFORMED = 0.95  # of the prior deviation: above it the data say next to nothing
AT_BOUND = 1e-6  # of z
STRETCHES = 4  # of all logs together, which are compared


@checked
def fit_parameters(
    settings: Filter,
    build: Callable[[Mapping[str, float]], System],
    guesses: Mapping[str, ParameterGuess],
    runs: Runs,
    *,
    memory: float = 2.0,
    progress: Progress = silent,
) -> ParameterFit:
    """The values, by name, for which `build(values)` and the prior make the logs in `runs` most likely.

    Parameters
    ----------
    settings : Filter
        The filter whose innovations are judged; its default gate lets every reading pass here.
    build : callable
        Makes a system of the values by name.
    guesses : mapping
        Parameter → :class:`ParameterGuess`: prior value and deviation, bounds.
    runs : sequence of (Measurements, Belief)
        Logs, each with a start.
    memory : float
        Longest time over which innovations may be correlated, s; default 2.
    progress : callable
        Told about each evaluation.

    Returns
    -------
    ParameterFit

    Examples
    --------
    The decay rate of a state that is measured, from a guess of 1 ± 0.5 per second:

    >>> import numpy as np
    >>> from veridyn import filters
    >>> def build(values):
    ...     k = values["rate"]
    ...     return filters.Continuous(
    ...         ("x",), ("x",), lambda x, u, t: -k * x, lambda x, u, t: x, [1e-6], [1e-4], lambda x, u, t: np.array([[-k]]),
    ...         lambda x, u, t: np.eye(1),
    ...     )
    >>> t = np.linspace(0.0, 2.0, 41)
    >>> log = filters.Measurements(t, np.exp(-0.7 * t), ("x",))
    >>> start = filters.Belief(np.array([1.0]), np.array([1e-4]))
    >>> guess = filters.ParameterGuess(value=1.0, sigma=0.5, positive=True)
    >>> fit = filters.fit_parameters(filters.EKF(), build, {"rate": guess}, [(log, start)])
    >>> round(fit.values["rate"], 2)
    0.7
    """
    _check_guesses(guesses, runs)
    if not 0.0 <= memory < np.inf:
        raise DataError("it is no time.", where="fit_parameters, memory", expected="s, 0 or more", found=f"{memory}")
    if settings.gate == "auto":  # what a gate refuses would change with the values, and with it what is compared
        settings = replace(settings, gate=None)
    names, priors = tuple(guesses), list(guesses.values())
    low, high = (np.array([g.ends[k] for g in priors]) for k in (0, 1))
    calls = 0

    def terms(z: Array) -> Array | None:
        """log p of each stamp of all logs; None where the filter does not reach the end."""
        nonlocal calls
        calls += 1
        progress("fitting", calls, None)
        try:
            system = build({n: g.at(v) for n, g, v in zip(names, priors, z.tolist(), strict=True)})
            found = np.concatenate([run(settings, system, log, start).log_likelihood for log, start in runs])
        except VeridynError:
            if calls == 1:
                raise  # the guess itself must work, and its error says what is wrong
            return None
        return found if np.isfinite(found).all() else None

    first = LikelihoodProblem(terms, low, high).at(np.clip(np.zeros(len(names)), low, high))
    if first is None:
        raise DataError("the readings have no likelihood under the guess.", where="fit", expected="finite numbers")
    # Not to reach the end is told by `converged`, as values so far may be of use; a minimum may lie where no step gains anything.
    stop = StopRules(iterations=MOST_STEPS + 1, steps=MOST_STEPS, decrease=2.0 * CONVERGED, near=np.inf, kink=np.inf)
    end = search(first, stop, DAMPING, where="fit", hint="Give guesses nearer to the machine, or fit fewer parameters.")
    assert isinstance(end.model, ScoreModel)
    z, parts, G = end.point.x, end.point.terms, end.model.scores
    M = _score_covariance(G, runs, memory)
    V = _covariance(G, M)
    spread = np.array([g.spread(g.at(v)) for g, v in zip(priors, z.tolist(), strict=True)])
    deviations = np.sqrt(V.diagonal())
    values = {n: g.at(v) for n, g, v in zip(names, priors, z.tolist(), strict=True)}
    bound = {
        n: values[n]
        for n, v, a, b in zip(names, z.tolist(), low.tolist(), high.tolist(), strict=True)
        if v <= a + AT_BOUND or v >= b - AT_BOUND
    }
    return ParameterFit(
        values=values,
        sigma=dict(zip(names, (deviations * spread).tolist(), strict=True)),
        covariance=V * np.outer(spread, spread),
        guesses=dict(guesses),
        log_likelihood=float(parts.sum()),
        evaluations=calls,
        converged=end.converged,
        uninformed=tuple(n for n, d in zip(names, deviations.tolist(), strict=True) if d > INFORMED),
        at_bound=bound,
        stretches=_stretches(G, z, M),
    )


@dataclass(frozen=True, eq=False)
class LikelihoodProblem:
    """The `terms` (N,) of log p at z, in deviations of priors; None where there are none. Twice −log p, prior included, is the cost."""

    terms: Callable[[Array], Array | None]
    low: Array
    high: Array

    def at(self, z: Array) -> LikelihoodPoint | None:
        terms = self.terms(z)
        return None if terms is None else LikelihoodPoint(self, z, terms, float(z @ z) - 2.0 * float(terms.sum()))


@dataclass(frozen=True, eq=False)
class LikelihoodPoint:
    """A problem at x, with its terms."""

    problem: LikelihoodProblem
    x: Array
    terms: Array
    cost: float
    settled: bool = True

    def at(self, x: Array) -> LikelihoodPoint | None:
        return self.problem.at(x)

    def renewed(self) -> LikelihoodPoint:
        return self

    def model(self) -> ScoreModel:
        columns = []
        for i in range(len(self.x)):
            step = np.zeros(len(self.x))
            step[i] = SMALL_STEP if self.x[i] + SMALL_STEP <= self.problem.high[i] else -SMALL_STEP
            there = self.problem.terms(self.x + step)
            columns.append(np.zeros(len(self.terms)) if there is None else (there - self.terms) / step[i])
        G = np.array(columns).T
        return ScoreModel(
            x=self.x,
            hessian=G.T @ G + np.eye(len(self.x)),
            gradient=self.x - G.sum(axis=0),
            cost=self.cost,
            low=self.problem.low,
            high=self.problem.high,
            scores=G,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreModel(Quadratic):
    """`scores` (N, p): the slopes of each term, whose products stand for the second derivative."""

    scores: Array


def _stretches(G: Array, z: Array, M: Array) -> StretchScores:
    """The scores of `STRETCHES` parts of the data, each with its share of the prior."""
    parts = [g for g in np.array_split(G, STRETCHES) if len(g)]
    prior = np.eye(len(z)) / len(parts)
    information = np.array([g.T @ g + prior for g in parts])
    return StretchScores(information, np.array([g.sum(axis=0) - z / len(parts) for g in parts]), M)


def _score_covariance(G: Array, runs: Runs, memory: float) -> Array:
    """M: the covariance of the slope of −log p, prior included; each log has its own lags."""
    p = G.shape[1]
    M, at = np.eye(p), 0
    for log, _ in runs:
        g, N = G[at : at + len(log)], len(log)
        at += N
        span = float(log.t[-1] - log.t[0])
        M += bartlett(g, min(N - 1, round(memory * (N - 1) / span)) if span > 0.0 else 0)
    return M


def _covariance(G: Array, M: Array) -> Array:
    """B⁻¹ M B⁻¹ of z, at most the prior's own."""
    B = np.linalg.inv(G.T @ G + np.eye(G.shape[1]))
    V = B @ M @ B
    scale = np.minimum(1.0, 1.0 / np.sqrt(np.maximum(V.diagonal(), 1e-300)))  # nobody knows less than before
    return V * np.outer(scale, scale)


def _check_guesses(guesses: Mapping[str, ParameterGuess], runs: Runs) -> None:
    faults = Faults()
    if not guesses:
        faults.add("there is nothing to fit.", where="fit")
    if not runs:
        faults.add("there is no log to fit to.", where="fit")
    for name, g in guesses.items():
        if not (np.isfinite(g.sigma) and g.sigma > 0.0):
            faults.add(
                f"the deviation of '{name}' is not usable.",
                where="fit",
                expected="a positive number",
                found=f"{g.sigma:g}",
            )
        if g.positive and not g.value > 0.0:
            faults.add(f"the guess of '{name}' is not positive.", where="fit", found=f"{g.value:g}")
        if not g.lower <= g.value <= g.upper:
            faults.add(
                f"the guess of '{name}' is outside its bounds.",
                where="fit",
                expected=f"{g.lower:g} to {g.upper:g}",
                found=f"{g.value:g}",
            )
    faults.raise_if_any(DataError)


NEGLIGIBLE = "a variance runs to its lower bound"
FAILED_COST = 1e12  # −log p of settings under which the filter does not reach the end


@dataclass(frozen=True, eq=False)
class Tuning:
    """`values` by name, the standard deviation `sigma_log` of each log θ, the log-likelihood reached, and the verdict.

    A deviation of infinity means that the data do not determine this variance: the likelihood is flat there, or the variance
    runs to its bound.
    """

    values: Mapping[str, float]
    sigma_log: Mapping[str, float]
    log_likelihood: float
    readings: int
    evaluations: int
    converged: bool
    message: str

    @property
    def negligible(self) -> bool:
        """Whether the log is most likely without this noise: all that is not determined is as small as it may be."""
        return self.message == NEGLIGIBLE

    def summary(self) -> str:
        state = "converged" if self.converged else f"did not converge ({self.message})"
        lines = [
            f"log-likelihood {self.log_likelihood:.6g} of {self.readings} readings, {state} "
            f"after {self.evaluations} runs of the filter"
        ]
        for name, value in self.values.items():
            factor = np.exp(min(self.sigma_log[name], 50.0))
            determined = (
                f"within a factor {factor:.3g}" if np.isfinite(self.sigma_log[name]) else "the data do not determine it"
            )
            lines.append(f"  {name:<24}{value:12.4g}  {determined}")
        return "\n".join(lines)


def log_likelihood(settings: Filter, system: System, runs: Runs) -> float:
    """Σ log p of the readings used in all runs."""
    return float(sum(run(settings, system, log, start).log_likelihood.sum() for log, start in runs))


@checked
def tune(
    settings: Filter,
    build: Callable[[Mapping[str, float]], System],
    first: Mapping[str, float],
    runs: Runs,
    *,
    decades: float = 6.0,
    progress: Progress = silent,
) -> Tuning:
    """The positive values, by name, for which `build(values)` makes the logs in `runs` most likely.

    `first` are guesses; each value is sought within `decades` powers of ten of its guess.
    """
    names = list(first)
    _check_first(first, runs)
    if not decades > 0.0:
        raise DataError("it is no width.", where="tune, decades", expected="powers of ten above 0", found=f"{decades}")
    quiet = replace(settings, gate=None)
    guess = np.log([first[n] for n in names])
    half = decades * np.log(10.0)
    calls = 0

    def cost(log_theta: Array) -> float:
        nonlocal calls
        calls += 1
        progress("tuning", calls, None)
        try:
            found = -log_likelihood(quiet, build(dict(zip(names, np.exp(log_theta).tolist()))), runs)
        except VeridynError:
            if calls == 1:
                raise  # the guess itself must work, and its error says what is wrong
            return FAILED_COST
        return found if np.isfinite(found) else FAILED_COST

    readings = sum(int((log.flags == 0).sum()) for log, _ in runs)
    cost(guess)
    scale = max(readings, 1)
    found = minimize(
        lambda v: cost(v) / scale,
        guess,
        method="L-BFGS-B",
        bounds=[(g - half, g + half) for g in guess],
        options={"ftol": 1e-11, "gtol": 1e-6, "eps": 1e-5, "maxiter": 200},
    )
    best = np.asarray(found.x)
    at_bound = np.abs(best - guess) > half - 1e-6
    bound = "lower" if (best < guess)[at_bound].all() else "upper"
    sigma = _deviations(cost, best, at_bound)
    return Tuning(
        dict(zip(names, np.exp(best).tolist())),
        dict(zip(names, sigma.tolist())),
        -float(found.fun) * scale,
        readings,
        calls,
        bool(found.success) and not at_bound.any(),
        f"a variance runs to its {bound} bound" if at_bound.any() else str(found.message),
    )


def _check_first(first: Mapping[str, float], runs: Runs) -> None:
    faults = Faults()
    if not first:
        faults.add("there is nothing to tune.", where="tuning")
    if not runs:
        faults.add("there is no log to tune on.", where="tuning")
    for name, value in first.items():
        if not (np.isfinite(value) and value > 0.0):
            faults.extend([Fault(f"the guess of '{name}' is not usable.", "tuning", "a positive number", f"{value:g}")])
    faults.raise_if_any(DataError)


def _deviations(cost: Callable[[Array], float], best: Array, at_bound: NDArray[np.bool_]) -> Array:
    """√ of the diagonal of the inverse second derivative of −log p, for what the data determine; infinity for the rest."""
    p, h = len(best), 0.05
    free = np.flatnonzero(~at_bound)
    sigma = np.full(p, np.inf)
    centre = cost(best)
    steps = h * np.eye(p)
    D = np.zeros((len(free), len(free)))
    for a, i in enumerate(free):
        D[a, a] = (cost(best + steps[i]) - 2.0 * centre + cost(best - steps[i])) / h**2
        for b, j in enumerate(free[:a]):
            mixed = [cost(best + s * steps[i] + r * steps[j]) for s, r in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            D[a, b] = D[b, a] = (mixed[0] - mixed[1] - mixed[2] + mixed[3]) / (4.0 * h**2)
    determined = D.diagonal() > 1e-3  # a change by a factor e must cost something
    D, free = D[np.ix_(determined, determined)], free[determined]
    if len(free) and np.linalg.eigvalsh(D)[0] > 0.0:
        sigma[free] = np.sqrt(np.linalg.inv(D).diagonal())
    return sigma
