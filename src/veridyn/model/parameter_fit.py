"""Parameters that a search has found by name: what was known of them before, and what is known after.

A search moves z_i, in prior deviations: θ_i = θ_i⁰ + σ_i z_i, or θ_i⁰ exp(z_i σ_i/θ_i⁰) where θ_i is positive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ParameterGuess:
    """The prior of a parameter: `value`, `sigma` and bounds; `positive`: it is moved by factors."""

    value: float
    sigma: float
    lower: float = -np.inf
    upper: float = np.inf
    positive: bool = False

    def at(self, z: float) -> float:
        """The value z prior deviations away, within the bounds."""
        x = self.value * np.exp(z * self.sigma / self.value) if self.positive else self.value + z * self.sigma
        return float(min(max(x, self.lower), self.upper))

    def spread(self, value: float) -> float:
        """What one unit of z is near `value`."""
        return abs(value) * self.sigma / abs(self.value) if self.positive else self.sigma

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of z."""
        if not self.positive:
            return (self.lower - self.value) / self.sigma, (self.upper - self.value) / self.sigma
        scale = self.value / self.sigma
        low = -np.inf if self.lower <= 0.0 else scale * float(np.log(self.lower / self.value))
        return low, scale * float(np.log(self.upper / self.value)) if np.isfinite(self.upper) else np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterFit:
    """`values` and `sigma` by name, their `covariance` in the order of the names, and their priors.

    `uninformed`: parameters of which the data say next to nothing: their deviation is still that of the prior. `at_bound`: those that
    ended on a bound, by name → bound.
    """

    values: Mapping[str, float]
    sigma: Mapping[str, float]
    covariance: Array
    guesses: Mapping[str, ParameterGuess]
    log_likelihood: float
    evaluations: int
    converged: bool
    uninformed: tuple[str, ...]
    at_bound: Mapping[str, float]

    def summary(self) -> str:
        """Each parameter with its deviation, its prior, and whether the data determine it."""
        state = "converged" if self.converged else "did not converge"
        lines = [f"log-likelihood {self.log_likelihood:.6g}, {state} after {self.evaluations} runs of the filter"]
        for name, value in self.values.items():
            g = self.guesses[name]
            remark = (
                "  at its bound" if name in self.at_bound else "  not determined" if name in self.uninformed else ""
            )
            lines.append(
                f"  {name:<24}{value:12.5g} ± {self.sigma[name]:<10.3g} prior {g.value:.5g} ± {g.sigma:.3g}{remark}"
            )
        return "\n".join(lines)
