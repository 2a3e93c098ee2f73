"""What an identification found: values with deviations, and everything needed to assess them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.identify.base import BaseParameters
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance
from veridyn.inference.error_measures import RowReport, relative_error, row_table, std_error
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Formulation
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import Constant

DEFAULT_CONSTANT_SIZE = 1e-2  # rad, m and so on: the size of a constant whose value says nothing about it


@dataclass(frozen=True)
class Feasibility:
    """That parameters are physically consistent, and what it cost.

    `least`: for each real body, the smallest eigenvalue of its pseudo-inertia, all positive. `cost_percent`: by how much the weighted
    residual is larger than that of least squares. `bound`: bodies and elements that the constraints hold where they are; `broken`:
    those that least squares, nearest to the machine's values, would have made impossible.
    """

    least: Mapping[str, float]
    cost_percent: float
    bound: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool:
        return all(v > 0.0 for v in self.least.values())

    def summary(self) -> str:
        listed = ", ".join(f"{name} {value:.3g}" for name, value in self.least.items())
        lines = [f"physically consistent, residual {self.cost_percent:.3g} % above least squares"]
        lines.append(f"least eigenvalue of each pseudo-inertia: {listed}")
        lines += [f"at a bound: {', '.join(self.bound)}"] if self.bound else []
        lines += [f"least squares alone would break: {', '.join(self.broken)}"] if self.broken else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Estimate:
    """One parameter of a fit: `value` and standard deviation `sigma`, both in `unit`; σ is NaN where none is stated."""

    name: str
    value: float
    sigma: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.6g} ± {self.sigma:.2g} {self.unit}".rstrip()


@dataclass(frozen=True, eq=False)
class KnownValues:
    """Known parameters that are not exact: their names, `covariance` Σ (k, k), and J = dχ̂/dκ (p, k), how estimates follow them."""

    names: tuple[str, ...]
    covariance: Array
    sensitivity: Array

    @property
    def added(self) -> Array:
        """J Σ Jᵀ (p, p), their part of the covariance of the estimates."""
        return self.sensitivity @ self.covariance @ self.sensitivity.T

    @property
    def cross(self) -> Array:
        """cov(κ, χ̂) = Σ Jᵀ (k, p)."""
        return self.covariance @ self.sensitivity.T


@dataclass(frozen=True, eq=False)
class LawConstants:
    """`constants` with their estimated values; `covariance` (k, k) of them, `cross` (k, p) with the base parameters of the fit."""

    constants: tuple[Constant, ...]
    covariance: Array
    cross: Array

    @classmethod
    def of(cls, machine: Machine, names: Sequence[str], values: Array, covariance: Array) -> LawConstants:
        """Of constants of a tree by name; `covariance` (k, p + k) with the base parameters, then with each other."""
        known, p = {c.name: c for c in machine.constants}, covariance.shape[1] - len(names)
        found = tuple(replace(known[n], value=float(v)) for n, v in zip(names, values, strict=True))
        return cls(found, covariance[:, p:], covariance[:, :p])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.constants)

    @property
    def values(self) -> Array:
        return np.array([c.value for c in self.constants])

    @property
    def sigma(self) -> Array:
        """Standard deviations, (k,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        both = zip(self.constants, self.sigma.tolist(), strict=True)
        return tuple(Estimate(c.name, float(c.value), sigma, c.unit) for c, sigma in both)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutRows:
    """Errors of a fit on samples of which `share` were not used for it, `before` of the values from before, empty where not all are known.

    `unjudged`: why none of the rows can be judged, in words; empty where one can. `failed`: why a simulation of them ended, where it did.
    """

    rows: tuple[RowReport, ...]
    before: tuple[RowReport, ...] = ()
    share: float = 1.0
    unjudged: str = ""
    failed: str = ""


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Arguments of :func:`~veridyn.identify.validate.replay`, as in :class:`~veridyn.identify.output_error.output_error.OutputError`.

    `outputs`: coordinates that are compared, all by default. With a control `law` forces are compared.
    """

    horizon: float = math.inf
    hold: Literal["linear", "zero"] = "linear"
    friction_speed: float = 0.05
    substeps: int = 1
    outputs: tuple[str, ...] = ()
    law: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """How long a run is: "in runs of 1 s" or "over whole logs"."""
        return "over whole logs" if math.isinf(self.horizon) else f"in runs of {self.horizon:g} s"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fit:
    """Base parameters with their standard deviations.

    `names` carry an R where standard parameters are grouped (see ``base.relations()``). `sigma` are standard deviations by (27),
    `relative_sigma` is σ % = 100 σ/|value| of (28). `residual_sigma` is (26), 1 where the row weights are right.
    `condition` is that of the weighted, unscaled base regressor; `condition_scaled` uses typical sizes.

    Estimators that decide every standard parameter add `standard_values`; with a prior `standard_covariance` and `prior_share`, the
    share of the prior's variance that is left (1 where the data determine nothing); with constraints `feasibility`. All are over the
    parameters of the machine, NaN in the share where a parameter is not estimated. `posterior_mean`: with a prior and constraints, the
    mean of the posterior before constraints moved `standard_values` from it. A deviation that is not available is NaN.
    `described`: the machine whose equations were fitted, with the values it had before. `formulation`: that of ``fit.machine()``.
    `constants`: those inside the laws of elements that were estimated too; `described` has them. `known`: known parameters with
    an uncertainty, which is part of `covariance`.
    `position_bias`: what noise of measured positions does to the values (:mod:`veridyn.identify.diagnosis.position_noise`), part of it too.
    `white_covariance`: σ² (WᵀW)⁻¹, where `covariance` allows for autocorrelated residuals, NaN with a prior; not saved.
    `cutoff_change`: by how much the values change with the cut-off of positions, where that is a part of `covariance`.
    `replay_settings`: of a fit by output error, how it simulates: :func:`~veridyn.validate` judges it by that.
    `findings`: what its diagnosis names against the data or the model, by rank. `disagreement`: that logs, or parts of one, contradict each
    other, in a sentence; empty where they agree. `unseen`: its errors on samples that it did not use, None where none were kept.
    `verdict` follows from all of these.

    Examples
    --------
    >>> fit = vd.identify(robot, motion)  # robot and motion as in the example of vd.identify
    >>> damping = fit.names.index("h_q2")
    >>> bool(abs(fit.values[damping] - 0.5) < 3.0 * fit.sigma[damping])  # 0.5 N*m*s/rad is true
    True
    >>> bool(fit.machine().parameters["h_q2"] == fit.values[damping])
    True
    """

    described: Machine
    base: BaseParameters
    values: Array
    covariance: Array
    rows: tuple[RowReport, ...]
    estimator: str
    residual_sigma: float
    condition: float
    condition_scaled: float
    acceptance: Acceptance = SIGMA_BELOW_TEN
    notes: tuple[str, ...] = ()
    removed: tuple[str, ...] = field(default=())
    standard_values: Array | None = None
    standard_covariance: Array | None = None
    prior_share: Array | None = None
    feasibility: Feasibility | None = None
    constants: LawConstants | None = None
    formulation: Formulation = "tree"
    known: KnownValues | None = None
    position_bias: Array | None = None
    cutoff_change: Array | None = None
    posterior_mean: Array | None = None
    white_covariance: Array | None = None
    replay_settings: ReplaySettings | None = None
    findings: tuple[FoundCause, ...] = ()
    disagreement: str = ""
    unseen: HeldOutRows | None = None

    @property
    def verdict(self) -> Verdict:
        """How good the fit is, why it is no better, and what it may be used for; "not validated" without held-out samples."""
        return above("veridyn.identify.fit_verdict", "verdict_of_fit")(self)

    @property
    def valued(self) -> Machine:
        """The described machine with the identified values, as files for other programs take it: without deviations."""
        return self.described.with_parameters(self.standard)

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.base.units

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.diag(self.covariance))

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every parameter that has an estimate, by name: base parameters, constants of laws, and with a prior every estimated parameter."""
        own = zip(self.names, self.values.tolist(), self.sigma.tolist(), self.units, strict=True)
        found = {name: Estimate(name, value, sigma, unit) for name, value, sigma, unit in own}
        found |= {} if self.constants is None else {c.name: c for c in self.constants.estimates}
        if self.standard_covariance is not None:
            p, phi = self.described.parameters, self.standard
            for k in p.select("estimated"):
                sigma = float(np.sqrt(self.standard_covariance[k, k]))
                found.setdefault(p.names[k], Estimate(p.names[k], float(phi[k]), sigma, p.units[k]))
        return found

    @property
    def column_covariance(self) -> Array:
        """σ² (WᵀW)⁻¹: what the columns alone make of white noise, from which follows what noise in columns does."""
        return self.covariance if self.white_covariance is None else self.white_covariance

    def for_white_noise(self) -> Fit:
        """The same with the deviations of white noise, beside which damage shows that widens its own; itself where a prior decides."""
        known = self.white_covariance is not None and bool(np.isfinite(self.white_covariance).all())
        return replace(self, covariance=self.column_covariance, white_covariance=None) if known else self

    def __getitem__(self, name: str) -> Estimate:
        """The estimate of a parameter: ``fit["ZZ1R"].value``, ``.sigma`` and ``.unit``.

        A name without one is refused with the reason: it is known, only its sum with others is estimated, or the motion does not show it.
        """
        found = self.estimates
        if name in found:
            return found[name]
        p = self.described.parameters
        if name not in p.names:
            what, hint = f"there is no parameter '{name}'.", did_you_mean(f"{name}", list(found))
        elif p.states[p.index(name)] == "known":
            what, hint = (
                f"'{name}' is known, and not estimated.",
                f"Its value is {p[name]:.6g} {p.units[p.index(name)]}.",
            )
        elif groups := self.base.groups_of(name):
            what, hint = f"'{name}' is estimated together with others only.", f"Estimated: {'; '.join(groups)}."
        else:
            what, hint = (
                f"'{name}' has no estimate.",
                "It has no effect in the motion of this fit, or follows another parameter.",
            )
        raise DataError(what, where=f"fit of {self.described.name}", hint=hint)

    def __contains__(self, name: object) -> bool:
        return name in self.estimates

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    @property
    def budget(self) -> dict[str, Array]:
        """Where the deviations come from: source → standard deviations (p,) whose squares add up to those of `sigma`."""
        variance = np.diag(self.covariance)
        known = np.zeros(len(variance)) if self.known is None else np.diag(self.known.added)
        bias, change = (
            np.zeros(len(variance)) if x is None else np.abs(x) for x in (self.position_bias, self.cutoff_change)
        )
        rest = np.sqrt(np.maximum(variance - known - bias**2 - change**2, 0.0))
        parts = {"noise": rest, "known values": np.sqrt(known), "noise of positions": bias}
        return parts if self.cutoff_change is None else {**parts, "cut-off": change}

    @property
    def relative_sigma(self) -> Array:
        """σ % of each parameter (28); infinite where the value is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.values == 0.0, np.inf, 100.0 * self.sigma / np.abs(self.values))

    @property
    def correlation(self) -> Array:
        s = self.sigma
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.covariance / np.outer(s, s)

    @property
    def relative_error(self) -> float:
        """√(Σ ‖r_j‖² / Σ ‖y_j‖²) over all equations of the fit; NaN where nothing is measured."""
        return relative_error(self.rows)

    @property
    def std_error(self) -> float:
        """rms(r)/std(y) over the judged rows of one unit, the largest over units (:mod:`veridyn.inference.error_measures`)."""
        return std_error(self.rows)

    def well_identified(self, rule: Acceptance | None = None) -> tuple[str, ...]:
        """Names that pass a rule, by default the fit's own."""
        r = rule or self.acceptance
        return tuple(n for n, s in zip(self.names, self.relative_sigma, strict=True) if r.sigmas * s < r.percent)

    @property
    def priors(self) -> Array:
        """What the tree's priors say of each base parameter; NaN where they say nothing."""
        p = self.described.parameters
        out = np.full(len(self.values), np.nan)
        for k, row in enumerate(self.base.matrix):
            members = np.flatnonzero(row)
            if np.isfinite(p.values[members]).all():
                out[k] = row[members] @ p.values[members]
        return out

    @property
    def standard(self) -> Array:
        """Standard parameters, all of the tree's, that reproduce the fit: `standard_values` where the estimator decided them, else
        grouped members at their priors (zero where unknown).

        They give the same forces on what was excited; the split within a group is that of the prior and not of the data.
        """
        p = self.described.parameters
        start = p.values if self.standard_values is None else self.standard_values
        phi = np.where(np.isfinite(start), start, 0.0)
        leads = list(self.base.columns)
        if self.standard_values is None:
            phi[[p.index(n) for n in self.removed]] = 0.0
        phi[leads] = 0.0
        phi[leads] = self.values - self.base.matrix @ phi
        for name, tie in p.ties.items():
            phi[p.index(name)] = tie.factor * phi[p.index(tie.to)]
        return phi

    def machine(self, *, unexcited: float | None = None) -> Machine:
        """The identified machine with the covariance of its parameters, for every verb: ``observe(fit.machine(), log)``.

        Parameters
        ----------
        unexcited
            The standard deviation, as a share of typical sizes, of directions that the motion did not excite. Without it they are
            refused by name, because nobody knows how wrong they are; a fit with a prior has none.

        Raises
        ------
        IdentificationError
            Where the mass matrix is not positive definite in some pose, or a direction was not excited.
        """
        return above("veridyn.identify.delivery", "identified_machine")(self, unexcited)

    @checked
    def predict(self, data: Motion | Experiment) -> Array:
        """What the fit predicts of the rows it was fitted to, along other data.

        Parameters
        ----------
        data : Motion or Experiment
            N samples; a log is prepared by :func:`veridyn.motion` with default settings, which may shorten it.

        Returns
        -------
        (N, rows) array
            In the order and units of ``fit.rows``: forces by inverse dynamics of the fitted machine, wrenches of the motion included,
            without those that drive gains make of their signals. Of a fit by output error what its simulation was compared in,
            from the measured state anew after each horizon; of a car each sensor, predicted from one sample to the next. NaN
            where there is no prediction: behind the last whole run of a simulation, or where a sensor of a car is not read.

        Examples
        --------
        >>> fit = vd.identify(robot, motion)  # robot and motion as in the example of vd.identify
        >>> residuals = motion.forces - fit.predict(motion)
        """
        return above("veridyn.identify.validate", "predicted_rows")(self, data)

    def draws(self, n: int, rng: np.random.Generator) -> Array:
        """Physically consistent parameter sets from what the fit knows, for simulations of machines like this one.

        Parameters
        ----------
        n : int
            How many sets.
        rng : numpy.random.Generator
            Where they come from: the same generator gives the same draws.

        Returns
        -------
        (n, p) array
            Standard parameters in the order and units of ``fit.described.parameters``. They are drawn from the Gaussian of the estimate,
            restricted to machines whose bodies have a possible inertia and whose friction, stiffness and rotors are not negative
            (:mod:`veridyn.identify.draws`). With a prior the Gaussian is the posterior of all parameters. Without one only the
            leading parameter of each group varies; other members, and what the motion did not excite, keep the tree's values.

        Raises
        ------
        IdentificationError
            Where a parameter has neither a deviation nor a value, or no physically consistent set is known to start from.

        Examples
        --------
        >>> fit = vd.identify(robot, motion, vd.estimators.Prior())  # robot and motion as in the example of vd.identify
        >>> sets = fit.draws(3, np.random.default_rng(1))
        >>> machines = [fit.machine().with_parameters(phi) for phi in sets]
        """
        return above("veridyn.identify.draws", "parameter_draws")(self, n, rng)

    def __repr__(self) -> str:
        return f"Fit({self.described.name!r}, {len(self.values)} base parameters by {self.estimator}, {len(self.rows)} rows)"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_fit")(self)._repr_html_()

    def plot(self, motion: Motion | None = None, sampling: Sampling | None = None) -> Any:
        """Deviations, singular values and correlations, for a notebook; with a motion the forces along it, measured and predicted.

        ``save(path)`` of what it gives writes a page.
        """
        return above("veridyn.report.notebook", "plot_fit")(self, motion, sampling)

    def to_frame(self) -> Any:
        """A pandas data frame with a line for each base parameter: value, sigma, sigma_percent, prior, unit, well_identified."""
        return above("veridyn.report.notebook", "frame_of_fit")(self)

    def summary(self) -> str:
        """A table of names, values, deviations and priors, the rows, and what limits the result."""
        rule, wide = self.acceptance, max(14, 2 + max(map(len, self.names), default=0))
        lines = [
            f"{self.described.name}: {len(self.values)} base parameters by {self.estimator}, "
            f"{len(self.well_identified())} with {rule.sigmas:g} sigma% < {rule.percent:g}; "
            f"condition {self.condition:.4g} (scaled {self.condition_scaled:.4g})",
            f"{'parameter':<{wide}}{'value':>14}{'sigma':>12}{'sigma%':>9}{'prior':>14}  unit",
        ]
        for name, v, s, r, prior, unit in zip(
            self.names, self.values, self.sigma, self.relative_sigma, self.priors, self.units, strict=True
        ):
            mark = "" if rule.sigmas * r < rule.percent else "  *"
            shown = f"{prior:14.6g}" if np.isfinite(prior) else f"{'–':>14}"
            lines.append(f"{name:<{wide}}{v:14.6g}{s:12.4g}{min(r, 9999.9):9.1f}{shown}  {unit}{mark}")
        lines += [] if self.constants is None else [str(constant) for constant in self.constants.estimates]
        lines += row_table(self.rows)
        lines += [f"removed as inessential: {', '.join(self.removed)}"] if self.removed else []
        lines += [] if self.feasibility is None else [self.feasibility.summary()]
        lines += list(self.notes)
        lines.append(self.verdict.summary())
        return "\n".join(lines)
