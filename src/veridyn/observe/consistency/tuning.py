"""Noise variances from data: those under which the innovations that were seen are most likely.

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
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.progress import Progress, silent

Runs = Sequence[tuple[Measurements, Belief]]

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
    _check(first, runs)
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


def _check(first: Mapping[str, float], runs: Runs) -> None:
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
