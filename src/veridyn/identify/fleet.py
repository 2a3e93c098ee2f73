"""Many machines of one model: each identified from its own logs, the distribution of each parameter, and the machines that stand apart.

A parameter of machine i is x_i = μ + u_i + e_i, with u_i ~ N(0, τ²) of the machine and e_i ~ N(0, σ_i²) of its estimate. τ² is that of
Paule and Mandel,

    Σ (x_i − μ)² / (σ_i² + τ²) = k − 1,      μ the mean with weights 1/(σ_i² + τ²),

zero where the estimates scatter no more than their deviations say. Whether machine i belongs to the others is asked of μ and τ without
it: x_i − μ has the variance V = σ_i² + τ² + σ_μ², in which τ² is known with a variance of 2/Σ w², w = 1/(σ² + τ²). So (x_i − μ)/√V has
about Student's t distribution with V² Σ w² degrees of freedom, (k − 2)/(k − 1) of them where τ² and μ come from the same k − 1 machines.

References: Paule and Mandel, 1982, Journal of Research of the National Bureau of Standards 87, 377; Satterthwaite, 1946, Biometrics
Bulletin 2, 110.

Several logs of one machine differ too, beyond the noise of each (:func:`take_variation`). Estimates x_i of k logs with stated deviations
σ_i scatter about their weighted mean x̄ with

    Q = Σ_i (x_i − x̄)²/σ_i² / (k − 1),   mean 1 where noise is all,

pooled over the parameters of a group, since two logs alone say little of one parameter. What is beyond 1 varies from log to log:
temperature, a road, a model that is wrong in another way on another motion. It enters the estimate of all logs together as

    σ_takes = σ √(max(0, Q − 1)),

the random effect of R. DerSimonian and N. Laird (1986, Controlled Clinical Trials 7(3)), with the ratio of R. T. Birge (1932, Phys. Rev.
40) for each group. An error that is the same in all logs does not show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar
from scipy.special import stdtr  # scipy.stats takes a second to import

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, IdentificationError, IdentificationWarning, VeridynError, warn
from veridyn.identify.estimate import identify
from veridyn.identify.estimator import Estimator
from veridyn.identify.regression.workers import map_in_order
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

SIGNIFICANCE = 0.01  # chance that any machine of a sound fleet is called an outlier, over all parameters together
LISTED = 8  # machines that an error names
FEWEST = 4  # machines, from which on one can be told from the others


class Outlier(NamedTuple):
    """A machine whose parameter does not belong to the others': its value and by how many deviations it is off."""

    machine: str
    parameter: str
    value: float
    deviations: float

    def __str__(self) -> str:
        return f"{self.machine}: {self.parameter} = {self.value:.4g}, {self.deviations:+.1f} deviations from the others"


@dataclass(frozen=True, eq=False, kw_only=True)
class Fleet:
    """`fits` by machine; `failed`: machine → why it has none, or why its parameters are not those of the others.

    `names` are the parameters that all fits share. `significance`: the chance of any false outlier in a sound fleet. `logs_left_out`:
    machine → log → why it was not used.
    """

    fits: Mapping[str, Fit]
    failed: Mapping[str, str]
    names: tuple[str, ...]
    significance: float = SIGNIFICANCE
    logs_left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def verdict(self) -> Verdict:
        """How good it is, why it is no better, and what it may be used for."""
        return above("veridyn.identify.fleet_verdict", "fleet_verdict")(self)

    @property
    def machines(self) -> tuple[str, ...]:
        """Those with a fit."""
        return tuple(self.fits)

    @cached_property
    def values(self) -> Array:
        """(machines, parameters)."""
        return np.array([fit.values for fit in self.fits.values()])

    @cached_property
    def sigma(self) -> Array:
        """Their standard deviations (machines, parameters)."""
        return np.array([fit.sigma for fit in self.fits.values()])

    @cached_property
    def _apart(self) -> list[dict[int, float]]:
        share = self.significance / max(len(self.names), 1)
        return [apart(self.values[:, j], self.sigma[:, j], share) for j in range(len(self.names))]

    @cached_property
    def distribution(self) -> dict[str, Spread]:
        """Mean and spread of each parameter over the fleet, outliers left out."""
        found = {}
        for j, name in enumerate(self.names):
            kept = [i for i in range(len(self.fits)) if i not in self._apart[j]]
            found[name] = spread_of(self.values[kept, j], self.sigma[kept, j])
        return found

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """Machines that stand apart, the farthest first."""
        found = [
            Outlier(self.machines[i], name, float(self.values[i, j]), off)
            for j, name in enumerate(self.names)
            for i, off in self._apart[j].items()
        ]
        return tuple(sorted(found, key=lambda o: -abs(o.deviations)))

    @cached_property
    def deviations(self) -> Array:
        """Distance of each value from the mean of the fleet over the deviation to be expected, √(σ² + τ²) (machines, parameters)."""
        spread = list(self.distribution.values())
        mean, between = (np.array([getattr(s, name) for s in spread]) for name in ("mean", "between"))
        return (self.values - mean) / np.sqrt(self.sigma**2 + between**2)

    def summary(self) -> str:
        """A table of the parameters and a line for each outlier and each machine without a fit."""
        width = max((len(name) for name in self.names), default=9)
        lines = [
            f"{len(self.fits)} machines",
            f"{'parameter':<{width}}  {'mean':>11}  {'σ of mean':>11}  {'between':>11}",
        ]
        lines += [
            f"{name:<{width}}  {s.mean:>11.5g}  {s.sigma:>11.3g}  {s.between:>11.3g}"
            for name, s in self.distribution.items()
        ]
        if len(self.fits) < FEWEST:
            lines.append(f"outliers: not looked for, which takes {FEWEST} machines")
        lines += [f"outlier: {found}" for found in self.outliers]
        lines += [f"no fit: {name}: {why}" for name, why in self.failed.items()]
        return "\n".join([*lines, self.verdict.summary()])

    def to_frame(self) -> Any:
        """A pandas table with one line for each machine and parameter: value, sigma, outlier."""
        import pandas as pd

        far = {(o.machine, o.parameter) for o in self.outliers}
        rows = [
            {"machine": m, "parameter": n, "value": v, "sigma": s, "outlier": (m, n) in far}
            for m, values, sigmas in zip(self.machines, self.values, self.sigma, strict=True)
            for n, v, s in zip(self.names, values.tolist(), sigmas.tolist(), strict=True)
        ]
        return pd.DataFrame(rows, columns=["machine", "parameter", "value", "sigma", "outlier"])


@checked
def identify_fleet(
    machine: Machine,
    motions: Mapping[str, Motion | Experiment | Sequence[Motion | Experiment]],
    method: Estimator | str = "wls",
    settings: IdentifySettings | None = None,
    *,
    rows: Rows = "all",
    significance: float = SIGNIFICANCE,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Fleet:
    """Identify many machines of one model, each from its own motions.

    Parameters
    ----------
    machine : Machine
        The model that all of them share.
    motions : mapping
        Name of a machine → its motion or log, several, or a :class:`~veridyn.identify.regression.workers.MadeMotions`, which are made
        by the workers.
    method, settings, rows
        As those of :func:`veridyn.identify`.
    significance : float
        The chance that any machine of a sound fleet is called an outlier.
    executor : concurrent.futures.Executor, optional
        Shares out the machines; one after the other by default.
    progress : callable (task, done, total), optional
        Called after each machine.

    Returns
    -------
    Fleet
        A fit for each machine, the distribution of each parameter, and outliers by name. A machine whose data cannot be used does not
        stop the others: it stands in `failed`, and a warning says so.

    Raises
    ------
    IdentificationError
        No machine could be identified, or `significance` is no probability.
    """
    machine.need_joints("fleet of fits by a regressor")
    if not 0.0 < significance < 1.0:
        raise IdentificationError(
            "it is no probability.", where="significance", expected="a number between 0 and 1", found=f"{significance}"
        )
    if not motions:
        raise IdentificationError(
            "there are no machines.", where="motions", expected="name → motions", found="an empty mapping"
        )
    work = partial(_one, machine, method, settings or IdentifySettings(), rows)
    jobs, total = list(motions.items()), float(len(motions))
    fits: dict[str, Fit] = {}
    failed: dict[str, str] = {}
    progress("identifying machines", 0.0, total)
    found = map_in_order(executor, work, jobs)
    for done, ((name, _), one) in enumerate(zip(jobs, found, strict=True), start=1):
        if isinstance(one, str):
            failed[name] = one
        else:
            fits[name] = one
        progress("identifying machines", float(done), total)
    return fleet_of(fits, failed, significance)


def fleet_of(fits: Mapping[str, Fit], failed: Mapping[str, str], significance: float = SIGNIFICANCE) -> Fleet:
    """The fleet of so many fits; `failed`: machine → why it has none. Fits of other parameters than most have join them.

    Raises
    ------
    IdentificationError
        There is no fit at all.
    """
    kept, out = dict(fits), dict(failed)
    if not kept:
        first = list(out.items())[:LISTED]
        rest = [] if len(out) <= LISTED else [Fault(f"{len(out) - LISTED} more machines have no fit either.", "fleet")]
        raise IdentificationError([Fault(why, name) for name, why in first] + rest)
    names = _shared(kept, out)
    for name, why in out.items():
        warn(IdentificationWarning, Fault(f"the machine is left out: {why}", name))
    return Fleet(fits=kept, failed=out, names=names, significance=significance)


def _one(
    machine: Machine,
    method: Estimator | str,
    settings: IdentifySettings,
    rows: Rows,
    job: tuple[str, Motion | Experiment | Sequence[Motion | Experiment]],
) -> Fit | str:
    """The fit of one machine, or what is wrong with its data."""
    try:
        return identify(machine, job[1], method, settings, rows=rows, diagnose="off")
    except VeridynError as error:
        return str(error)


def _shared(fits: dict[str, Fit], failed: dict[str, str]) -> tuple[str, ...]:
    """The parameters that most fits have; fits with other groups, whose motion did not excite the same, move to `failed`."""
    kinds: dict[tuple[str, ...], int] = {}
    for fit in fits.values():
        kinds[fit.names] = kinds.get(fit.names, 0) + 1
    names = max(kinds, key=lambda kind: (kinds[kind], len(kind)))
    for name in [name for name, fit in fits.items() if fit.names != names]:
        fit = fits.pop(name)
        missing = [n for n in names if n not in fit.names]
        failed[name] = f"its motion does not separate the same parameters ({len(fit.names)} of {len(names)})" + (
            f": {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''} not found" if missing else ""
        )
    return names


@dataclass(frozen=True)
class Spread:
    """`mean` with its `sigma`, and `between`, the standard deviation τ between machines, of `count` of them."""

    mean: float
    sigma: float
    between: float
    count: int


def spread_of(values: ArrayLike, sigma: ArrayLike) -> Spread:
    """Mean and spread of one parameter from the values (k,) and deviations (k,) of k machines, k at least one."""
    x, s = np.asarray(values, dtype=np.float64), np.asarray(sigma, dtype=np.float64)

    def excess(square: float) -> float:
        w = 1.0 / (s**2 + square)
        mean = float(w @ x / w.sum())
        return float(w @ (x - mean) ** 2) - (len(x) - 1)

    square = 0.0
    if len(x) > 1 and excess(0.0) > 0.0:
        size = float(np.ptp(x)) ** 2
        square = float(root_scalar(excess, bracket=(0.0, size * len(x)), xtol=1e-12 * size).root)
    w = 1.0 / (s**2 + square)
    return Spread(float(w @ x / w.sum()), float(1.0 / np.sqrt(w.sum())), float(np.sqrt(square)), len(x))


def apart(values: ArrayLike, sigma: ArrayLike, significance: float) -> dict[int, float]:
    """Machines that do not belong to the others: number → by how many deviations it is off, the farthest first.

    `significance` is that of all machines of this parameter together. The least likely is taken out before the next is asked, so that it
    does not widen the spread by which that one is judged; deviations are those from the machines that are left. Fewer than `FEWEST`
    machines say nothing.
    """
    x, s = np.asarray(values, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    left: list[int] = list(range(len(x)))
    out: list[int] = []
    while len(left) >= FEWEST:
        asked = [_belonging(i, left, x, s) for i in left]
        least = min(range(len(left)), key=lambda k: asked[k][0])
        if asked[least][0] * len(left) > significance:
            break
        out.append(left.pop(least))
    found = {i: _belonging(i, left, x, s)[1] for i in out}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def _belonging(i: int, all_: list[int], x: Array, s: Array) -> tuple[float, float]:
    """The chance of a machine as far from the others as i, and by how many deviations it is off."""
    others = [k for k in all_ if k != i]
    known = spread_of(x[others], s[others])
    variance = s[i] ** 2 + known.between**2 + known.sigma**2
    freedom = variance**2 * float(np.sum((s[others] ** 2 + known.between**2) ** -2.0)) * (1.0 - 1.0 / len(others))
    off = float((x[i] - known.mean) / np.sqrt(variance))
    return 2.0 * float(stdtr(freedom, -abs(off))), off


@dataclass(frozen=True, eq=False)
class TakeVariation:
    """`ratio`: group → √Q; `sigma` (p,): what variation from log to log adds to the deviations of the estimate of all logs."""

    logs: int
    ratio: dict[str, float]
    sigma: Array


def take_variation(values: Array, deviations: Array, whole: Array, groups: Sequence[str]) -> TakeVariation:
    """Of estimates (k, p) of k logs with their stated deviations (k, p), NaN where a log does not determine a parameter.

    `whole` (p,): the stated deviations of the estimate of all logs; `groups` (p,): which parameters are pooled.
    """
    x, s = np.asarray(values, dtype=np.float64), np.asarray(deviations, dtype=np.float64)
    if x.ndim != 2 or x.shape != s.shape or len(whole) != x.shape[1] or len(groups) != x.shape[1] or len(x) < 2:
        raise DataError(
            "estimates of several logs do not fit each other.",
            where="take_variation",
            expected="(k, p) values and deviations of at least two logs, p deviations of all, p groups",
            found=f"{x.shape}, {s.shape}, {np.shape(whole)}, {len(groups)} groups",
        )
    usable = np.isfinite(x) & np.isfinite(s) & (s > 0.0)
    weight = np.where(usable, 1.0 / np.where(usable, s, 1.0) ** 2, 0.0)
    x = np.where(usable, x, 0.0)
    count = usable.sum(axis=0)
    compared = count >= 2
    mean = (weight * x).sum(axis=0) / np.where(compared, weight.sum(axis=0), 1.0)
    Q = (weight * (x - mean) ** 2).sum(axis=0)
    ratio: dict[str, float] = {}
    added = np.zeros(x.shape[1])
    for group in dict.fromkeys(groups):
        own = np.array([g == group for g in groups])
        used = own & compared
        if not used.any():
            continue
        excess = float(Q[used].sum() / (count[used] - 1).sum())
        ratio[group] = float(np.sqrt(excess))
        added[own] = np.asarray(whole)[own] * np.sqrt(max(0.0, excess - 1.0))
    return TakeVariation(len(x), ratio, added)
