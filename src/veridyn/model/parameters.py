"""What is known and what is estimated of the parameters of a machine: names, units, priors, typical sizes, states and covariance.

A search by name moves z_i, in prior deviations: θ_i = θ_i⁰ + σ_i z_i, or θ_i⁰ exp(z_i σ_i/θ_i⁰) where θ_i is positive. Its result is a
:class:`ParameterFit`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked_record
from veridyn.arrays import Array, Record
from veridyn.errors import DataError, ModelError, did_you_mean, part_at

NEGATIVE_EIGENVALUE = 1e-9  # of the largest eigenvalue of the correlations: a negative one below it is rounding
State = Literal["known", "estimated", "tied"]
STATES: tuple[State, ...] = ("known", "estimated", "tied")


@checked_record
@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance (k, k) of the parameters `names`, in their units squared; parameters that are not named are exact."""

    names: tuple[str, ...]
    covariance: Array

    def __post_init__(self) -> None:
        C = np.array(self.covariance, dtype=np.float64)
        k = len(self.names)
        where = part_at("uncertainty")
        if C.shape != (k, k) or not np.isfinite(C).all():
            raise ModelError(
                "the covariance does not fit its parameters.",
                where=where,
                expected=f"({k}, {k}) finite numbers",
                found=f"{C.shape}",
            )
        if len(set(self.names)) < k:
            raise ModelError("a parameter is named twice.", where=where, found=", ".join(self.names))
        deviations = np.sqrt(np.maximum(np.diag(C), 0.0))
        size = np.where(deviations > 0.0, deviations, 1.0)
        least = float(np.linalg.eigvalsh((C + C.T) / np.outer(size, size) / 2.0)[0]) if k else 0.0
        if (np.diag(C) < 0.0).any() or least < -NEGATIVE_EIGENVALUE * max(k, 1):
            raise ModelError(
                "the covariance is not positive semi-definite.", where=where, found=f"an eigenvalue of {least:.3g}"
            )
        object.__setattr__(self, "covariance", (C + C.T) / 2.0)

    @property
    def sigma(self) -> Array:
        """Standard deviations (k,)."""
        return np.sqrt(np.diag(self.covariance))

    def without(self, names: tuple[str, ...]) -> Uncertainty:
        """The same of the other parameters."""
        keep = [i for i, name in enumerate(self.names) if name not in names]
        return Uncertainty(tuple(self.names[i] for i in keep), self.covariance[np.ix_(keep, keep)])

    def draw(self, values: Array, rng: np.random.Generator, size: int | None = None) -> Array:
        """Values (k,), or (size, k), drawn around `values` (k,)."""
        eigenvalues, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        shape = (len(self.names),) if size is None else (size, len(self.names))
        return values + rng.standard_normal(shape) @ root.T


@dataclass(frozen=True)
class Drift:
    """A parameter that changes while the machine is used: a random walk whose deviation is `by`, in its unit, after `within` seconds."""

    by: float
    within: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.by, self.within]).all() and self.by > 0.0 and self.within > 0.0):
            raise ModelError(
                "a drift is by a deviation above zero within a time above zero.",
                where=part_at("drifts"),
                found=f"by {self.by:g} within {self.within:g} s",
            )

    @property
    def density(self) -> float:
        """Of the random walk, unit²/s."""
        return self.by**2 / self.within


@dataclass(frozen=True)
class Tie:
    """A parameter that is `factor` times another one: YY9 tied to XX9 for a wheel that is round."""

    to: str
    factor: float = 1.0


@checked_record
@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterSet(Record):
    """The parameters of one machine in the order of the regressor's columns.

    `values` are the priors, NaN where nobody knows. `typical` is the size a parameter of this kind has on this machine; it scales
    columns when a rank is decided. A known parameter moves to the measured side, an estimated one is a column, a tied one adds
    its column to another's. `bounds`: least and largest value of those that have such. `drifts`: those that change while the machine is
    used, which observers follow.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    typical: Array
    states: tuple[State, ...]
    ties: Mapping[str, Tie] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    drifts: Mapping[str, Drift] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(self.values, dtype=np.float64))
        object.__setattr__(self, "typical", np.array(self.typical, dtype=np.float64))
        object.__setattr__(self, "ties", MappingProxyType(dict(self.ties)))
        object.__setattr__(self, "bounds", MappingProxyType(dict(self.bounds)))
        object.__setattr__(self, "drifts", MappingProxyType(dict(self.drifts)))
        for state in set(self.states):
            _check_state(state)
        self.values.flags.writeable = False
        self.typical.flags.writeable = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _column(self) -> dict[str, int]:
        """The column of each name; of a name that stands twice, the first."""
        return {name: k for k, name in reversed([*enumerate(self.names)])}

    def index(self, name: str) -> int:
        """The column of a parameter."""
        try:
            return self._column[name]
        except (KeyError, TypeError):
            raise ModelError(
                f"there is no parameter '{name}'.", where=part_at("parameters"), hint=did_you_mean(name, self.names)
            ) from None

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.index(name)])

    def select(self, state: State) -> tuple[int, ...]:
        """The columns in one state."""
        _check_state(state)
        return tuple(i for i, s in enumerate(self.states) if s == state)

    def replacing(self, values: Mapping[str, float] | ArrayLike) -> ParameterSet:
        """A copy with other values: all of them in order, or some by name."""
        if isinstance(values, Mapping):
            new = self.values.copy()
            for name, value in values.items():
                new[self.index(name)] = value
        else:
            new = np.asarray(values, dtype=np.float64)
            if new.shape != self.values.shape:
                raise DataError(
                    "the vector of parameters does not fit this model.",
                    where=part_at("parameters"),
                    expected=f"({len(self)},)",
                    found=f"{new.shape}",
                )
        return replace(self, values=new)

    def known(self, names: Iterable[str] | Mapping[str, float]) -> ParameterSet:
        """A copy in which these parameters are known, with the values given or those they have."""
        names = [names] if isinstance(names, str) else names
        base = self.replacing(names) if isinstance(names, Mapping) else self
        chosen = {base.index(name) for name in names}
        unknown = [base.names[i] for i in sorted(chosen) if not np.isfinite(base.values[i])]
        if unknown:
            raise ModelError(
                "a parameter without a value cannot be known.",
                where=f"parameters {', '.join(unknown)}",
                hint="Give a mapping from name to value.",
            )
        return base._with_states("known", chosen)

    def estimated(self, names: Iterable[str]) -> ParameterSet:
        """A copy in which these parameters are estimated."""
        chosen = [names] if isinstance(names, str) else names
        return self._with_states("estimated", {self.index(name) for name in chosen})

    def tied(self, ties: Mapping[str, Tie | str]) -> ParameterSet:
        """A copy in which each key is tied to another parameter, which must not be tied itself."""
        new = {name: tie if isinstance(tie, Tie) else Tie(tie) for name, tie in ties.items()}
        every = {**self.ties, **new}
        for name, tie in every.items():
            for known in (name, tie.to):
                self.index(known)  # refuses a name that is no parameter
            if tie.to in every or tie.to == name:
                raise ModelError(
                    f"'{name}' is tied to '{tie.to}', which is tied itself.",
                    where=part_at("parameters"),
                    hint="Tie both to the one parameter that is estimated.",
                )
        return replace(self._with_states("tied", {self.index(n) for n in new}), ties=every)

    def extended(self, made: ParameterSet) -> ParameterSet:
        """This set with what `made` has behind it: values, sizes, states and ties of those that both have stay."""
        n = len(self)
        return replace(
            made,
            values=np.concatenate([self.values, made.values[n:]]),
            typical=np.concatenate([self.typical, made.typical[n:]]),
            states=(*self.states, *made.states[n:]),
            ties=self.ties,
            bounds=self.bounds,
            drifts=self.drifts,
        )

    def taking(self, known: ParameterSet) -> ParameterSet:
        """This set with the values, sizes, states and ties of those parameters that `known` has."""
        at = [self.index(name) for name in known.names]
        values, typical, states = self.values.copy(), self.typical.copy(), list(self.states)
        values[at], typical[at] = known.values, known.typical
        for k, state in zip(at, known.states, strict=True):
            states[k] = state
        return replace(self, values=values, typical=typical, states=tuple(states), ties=known.ties, drifts=known.drifts)

    def without(self, names: Collection[str]) -> ParameterSet:
        """A copy without these parameters and what is tied to them."""
        kept = [k for k, name in enumerate(self.names) if name not in names]
        return ParameterSet(
            names=tuple(self.names[k] for k in kept),
            units=tuple(self.units[k] for k in kept),
            values=self.values[kept],
            typical=self.typical[kept],
            states=tuple(self.states[k] for k in kept),
            ties={name: tie for name, tie in self.ties.items() if name not in names and tie.to not in names},
            bounds={name: own for name, own in self.bounds.items() if name not in names},
            drifts={name: own for name, own in self.drifts.items() if name not in names},
        )

    def drifting(self, drifts: Mapping[str, Drift]) -> ParameterSet:
        """A copy in which these parameters change while the machine is used, besides those that do already."""
        for name in drifts:
            self.index(name)  # refuses a name that is no parameter
        return replace(self, drifts={**self.drifts, **drifts})

    def _with_states(self, state: State, chosen: set[int]) -> ParameterSet:
        ties = {n: t for n, t in self.ties.items() if state == "tied" or self.index(n) not in chosen}
        states = tuple(state if i in chosen else s for i, s in enumerate(self.states))
        return replace(self, states=states, ties=ties)

    def tie_matrix(self) -> Array:
        """T (n, n) with D T = the regressor whose tied columns have been added to those they are tied to and are zero themselves."""
        T = np.eye(len(self))
        for name, tie in self.ties.items():
            i = self.index(name)
            T[i, i] = 0.0
            T[i, self.index(tie.to)] += tie.factor
        return T

    def estimated_matrix(self) -> Array:
        """T of :meth:`tie_matrix` with the columns of known parameters, and of what is tied to them, set to zero."""
        T = self.tie_matrix()
        T[:, list(self.select("known"))] = 0.0
        return T

    def missing(self) -> tuple[str, ...]:
        """Names of the parameters nobody has a value for."""
        return tuple(n for n, v in zip(self.names, self.values, strict=True) if not np.isfinite(v))


def _check_state(state: str) -> None:
    if state not in STATES:
        hint = "'asked' is 'estimated' now." if state == "asked" else did_you_mean(state, STATES)
        raise ModelError(
            f"there is no state '{state}' of a parameter.", where="parameters", expected=" or ".join(STATES), hint=hint
        )


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


@dataclass(frozen=True, eq=False)
class StretchScores:
    """What K stretches of a log say of p parameters, in deviations of their priors: `information` (K, p, p), and `scores` (K, p), slopes of
    log p at the values found; `covariance` (p, p): of the sum of the scores, with their correlation in time."""

    information: Array
    scores: Array
    covariance: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterFit:
    """`values` and `sigma` by name, their `covariance` in the order of the names, and their priors.

    `uninformed`: parameters of which the data say next to nothing: their deviation is still that of the prior. `at_bound`: those that
    ended on a bound, by name → bound. `stretches`: what parts of the data say; None where it was read from a file.
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
    stretches: StretchScores | None = None

    def widened(self, factor: float | Array) -> ParameterFit:
        """With variances `factor` times as large, of all parameters or of each, and none above its prior's."""
        prior = np.array([g.spread(v) for g, v in zip(self.guesses.values(), self.values.values(), strict=True)])
        before = np.sqrt(np.diag(self.covariance))
        sigma = np.minimum(np.sqrt(factor) * before, np.maximum(prior, before))
        scale = sigma / before
        return replace(
            self,
            sigma=dict(zip(self.values, sigma.tolist(), strict=True)),
            covariance=self.covariance * np.outer(scale, scale),
        )

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
