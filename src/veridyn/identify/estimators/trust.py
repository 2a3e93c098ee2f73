"""How far to trust a drawing: the scales of a prior, by their worth on samples that were not fitted, or by marginal likelihood.

A prior says how far parameters may be from a drawing, and a drawing seldom says it itself. Scales of the prior's deviations are fitted on
some samples and tried on others. What is tried on should differ from what is fitted as the purpose differs from the data: without samples
to try on, each quarter of the positions is predicted by a fit to the others, and the faster half by a fit to the slower one.
Time does not cut motions into such parts, since most excitations repeat themselves; what the machine does cuts them. Samples of several
motions are cut together, so that repeats of one stretch are on one side of every cut.

One scale is chosen for all parameters first; then each group of them (:mod:`veridyn.identify.estimators.prior`) gets its own beside
the others, again and again until none changes and no two do better one step on together (bodies trusted less, and friction more, is often
as good in between), since a drawing knows masses, inertias and friction differently well and what one group may
not explain another will: friction that is free beside bodies that are not takes up their errors, and carries them to faster motion. Every
trial is a fit by the estimator that is to be used, constraints included. The samples are streamed once for each part; every trial costs
a solve of the machine's size. M. Stone, "Cross-validatory choice and assessment of statistical predictions", J. Roy. Stat. Soc. B 36(2),
1974.

How wrong a drawing is also follows from how far the data are from it (:func:`calibrate_prior`). With φ ~ N(m, S(s)), S the squares of
sizes times the scale s_g of each parameter's group, the least-squares solution χ̂ of the weighted equations is itself a sample: in
coordinates in which its noise is the unit matrix, y = T (χ̂ − K m) has the covariance

    Σ(s) = 1 + T K S(s) Kᵀ Tᵀ,    −2 log p(y | s) = log det Σ + yᵀ Σ⁻¹ y,

which is smallest where the drawing's errors that the data see are as large as the prior says, no smaller and no larger (type-II maximum
likelihood; D. J. C. MacKay, 1992, Neural Computation 4(3)). Stated deviations then hold also where the prior decides, if the drawing is as
wrong there as where the data decide. Scales by the error of predictions are the better choice for a model that is to predict, and say
nothing of deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, IdentificationError
from veridyn.identify.estimator import WLS, base_of, fit_of
from veridyn.identify.estimators.coloured import Sandwich, sandwich
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.estimators.prior import (
    GROUPS,
    Prior,
    group_of,
    prior_moments,
    reweighted,
    stated_values,
    unstated,
)
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.regression.observation import stream
from veridyn.identify.settings import Hac, IdentifySettings
from veridyn.identify.statistics.spectral import noise_covariance
from veridyn.identify.validate import validation_of
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

WithPrior = TypeVar("WithPrior", Prior, Consistent)
SCALES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
ROUNDS = 6  # over all groups; two or three suffice where groups hardly depend on each other
Split = tuple[list[Motion], list[Motion]]  # what is fitted, and what is held out


@dataclass(frozen=True, kw_only=True)
class Trust(Generic[WithPrior]):
    """`method` with the chosen ``relative`` and ``groups``; the errors ‖r‖/‖y‖ on what was tried of every scale and of least squares.

    `curves`: group → errors of every scale of that group, the others as chosen. Where several parts of a motion
    were tried, errors are root mean squares over them; `held_out`: part → its error with what was chosen.
    """

    method: WithPrior
    scales: tuple[float, ...]
    errors: tuple[float, ...]
    plain: float
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict)

    @property
    def _prior(self) -> Prior:
        prior = self.method if isinstance(self.method, Prior) else self.method.prior
        assert prior is not None  # what was scaled
        return prior

    @property
    def scale(self) -> float:
        """The scale of all parameters that are in no group."""
        return self._prior.relative

    @property
    def groups(self) -> dict[str, float]:
        """The scale of each group."""
        return dict(self._prior.groups or {})

    def summary(self) -> str:
        lines = [f"{'relative':>10}{'error tried %':>15}"]
        for scale, error in zip(self.scales, self.errors, strict=True):
            lines.append(f"{scale:10.3g}{100 * error:15.3f}" + ("  chosen" if scale == self.scale else ""))
        lines.append(f"{'none':>10}{100 * self.plain:15.3f}")
        for name, curve in self.curves.items():
            error = curve[self.scales.index(self.groups[name])]
            lines.append(f"{name}: {self.groups[name]:g}, error tried {100 * error:.3f} %")
        if len(self.held_out) > 1:
            lines += [f"held out, {part}: {100 * error:.3f} %" for part, error in self.held_out.items()]
        if self.scale in (self.scales[0], self.scales[-1]):
            lines.append("note: the chosen scale is at the end of those that were tried.")
        return "\n".join(lines)


@takes_machine
def trust_prior(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    method: WithPrior,
    tried: Motion | Sequence[Motion] | None = None,
    *,
    scales: Sequence[float] = SCALES,
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Trust[WithPrior]:
    """The ``relative`` and ``groups`` of a :class:`Prior`, or of the prior in a :class:`Consistent`, with the least error on `tried`.

    Without `tried` motion that differs from the rest is held out (:func:`unseen_motion`): each quarter of the positions, and the faster
    half. The rest of `method` stays, and deviations that its prior gives by name are not scaled. Fit with what is chosen on everything
    that may be fitted, with the same `settings`, of which covariance, sampling and engine are used.
    """
    faults = Faults()
    scales = as_array(scales, "trust_prior.scales", (None,)).tolist()
    if not scales or not all(np.isfinite(s) and s > 0.0 for s in scales):
        faults.add("each must be positive, and there must be one.", where="trust_prior.scales", found=f"{list(scales)}")
    prior = method if isinstance(method, Prior) else method.prior
    if prior is None:
        faults.add("there is no prior to scale.", where="trust_prior", expected="Prior(…) or Consistent(Prior(…))")
    faults.raise_if_any(IdentificationError, machine.name)
    assert prior is not None
    how = settings or IdentifySettings()
    method.check(machine, rows, how.correlated)
    splits = unseen_motion(motion) if tried is None else {"tried": (motion, tried)}
    trials = _Trials(machine, method, prior)
    for name, (some, others) in splits.items():
        fitted, held = (
            stream(machine, part, rows, how, executor=executor, progress=progress) for part in (some, others)
        )
        start = solve(fitted.observe())
        made = noise_covariance(fitted, start, how.correlated)
        trials.parts[name] = _Part(start, made, held.observe())
    order = sorted(scales)
    common: list[Array] = []
    for k, scale in enumerate(order):
        progress("scales of the prior", float(k), float(len(order)))
        common.append(trials.squares(scale, {}))
    best = order[int(np.argmin([_pooled(squares) for squares in common]))]
    every, names = _own_groups(machine, method, prior)
    groups = dict.fromkeys(every, best)

    def error(moved: Mapping[str, float]) -> float:
        return _pooled(trials.squares(best, {**groups, **moved}))

    for turn in range(ROUNDS):
        before = dict(groups)
        for k, name in enumerate(names):
            progress("scales of groups", float(turn * len(names) + k), float(ROUNDS * len(names)))
            groups[name] = order[int(np.argmin([error({name: scale}) for scale in order]))]
        if groups == before:
            groups.update(min([{}, *_two_moved(groups, names, order)], key=error))
        if groups == before:
            break
    curves = {name: tuple(error({name: scale}) for scale in order) for name in names}
    chosen = _scaled(method, prior, best, groups)
    held_out = dict(zip(trials.parts, np.sqrt(trials.squares(best, groups)).tolist(), strict=True))
    return Trust(
        method=chosen,
        scales=tuple(order),
        errors=tuple(map(_pooled, common)),
        plain=_pooled(trials.plain),
        curves=curves,
        held_out=held_out,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Least squares of what is fitted, its covariance where residuals are autocorrelated, and the factors of what is held out."""

    start: Solution
    made: Sandwich | None
    held: RowFactors

    def square(self, values: Array) -> float:
        """(‖r‖/‖y‖)² of what is held out."""
        return validation_of(self.held, values).relative_error ** 2


@dataclass(eq=False)
class _Trials:
    """Squared relative errors on all parts, by the scales they were fitted with; none is made twice."""

    machine: Machine
    method: Any  # Prior or Consistent
    prior: Prior
    parts: dict[str, _Part] = field(default_factory=dict)
    made: dict[tuple[float, ...], Array] = field(default_factory=dict)

    def squares(self, relative: float, groups: Mapping[str, float]) -> Array:
        at = (relative, *(groups.get(name, relative) for name in GROUPS))
        if at not in self.made:
            how = _scaled(self.method, self.prior, relative, groups)
            fits = (how.fit_solution(self.machine, p.start, made=p.made) for p in self.parts.values())
            self.made[at] = np.array([p.square(f.standard) for p, f in zip(self.parts.values(), fits, strict=True)])
        return self.made[at]

    @property
    def plain(self) -> Array:
        """The same of least squares."""
        return np.array([p.square(fit_of(self.machine, p.start, WLS.title).standard) for p in self.parts.values()])


def _two_moved(groups: Mapping[str, float], names: Sequence[str], order: Sequence[float]) -> Iterator[dict[str, float]]:
    """Scales of two groups, each one step away from its own."""
    for pair in combinations(names, 2):
        for steps in product((-1, 1), repeat=2):
            places = {name: order.index(groups[name]) + step for name, step in zip(pair, steps, strict=True)}
            if all(0 <= at < len(order) for at in places.values()):
                yield {name: order[at] for name, at in places.items()}


def _pooled(squares: Array) -> float:
    return float(np.sqrt(squares.mean()))


def _own_groups(machine: Machine, method: Prior | Consistent, prior: Prior) -> tuple[list[str], list[str]]:
    """Groups of the estimated parameters, and those of them that a scale matters to.

    It matters to none whose values nobody states or whose deviations are given by name. Bodies have one scale, that of inertias, where the
    metric has no other.
    """
    p, group, free = machine.parameters, group_of(machine), unstated(machine, stated_values(machine, prior))
    entropic = not isinstance(method, Prior) and method.metric == "entropic"
    own = [k for k in p.select("estimated") if not (entropic and group[k] == "mass")]
    scaled = [k for k in own if not free[k] and p.names[k] not in (prior.sigma or {})]
    present, matters = {group[k] for k in own}, {group[k] for k in scaled}
    return [g for g in GROUPS if g in present], [g for g in GROUPS if g in matters]


def _scaled(method: WithPrior, prior: Prior, scale: float, groups: Mapping[str, float]) -> WithPrior:
    new = replace(prior, relative=scale, groups=dict(groups) or None)
    if isinstance(method, Prior):
        return new  # pyright: ignore[reportReturnType]
    return replace(method, prior=new)


@checked
def slow_and_fast(motion: Motion | Sequence[Motion], share: float = 0.5) -> Split:
    """The slower `share` of all samples and the faster rest, by ‖q̇‖, of each motion.

    What is left of a motion has gaps: its own filter must come before, and ``Sampling(filter=…)`` cannot be used on it.
    """
    several = [motion] if isinstance(motion, Motion) else list(motion)
    if not several or not 0.0 < share < 1.0:
        raise DataError(
            "there is nothing to cut.",
            where="slow_and_fast",
            expected="motions, and a share between 0 and 1",
            found=f"{share}",
        )
    speeds = [np.linalg.norm(m.qd, axis=1) for m in several]
    limit = float(np.quantile(np.concatenate(speeds), share))
    slow = [m[s <= limit] for m, s in zip(several, speeds, strict=True)]
    return slow, [m[s > limit] for m, s in zip(several, speeds, strict=True)]


def by_position(motion: Motion | Sequence[Motion]) -> list[Split]:
    """Quarters of all samples by position, each held out in turn: halves along the direction in which positions, over their standard
    deviations, differ most, and halves of each along its own. It has gaps, as in :func:`slow_and_fast`."""
    several = [motion] if isinstance(motion, Motion) else list(motion)
    if not several or not sum(len(m) for m in several):
        raise DataError("there is nothing to cut.", where="by_position", expected="motions with samples")
    q = np.concatenate([m.q for m in several])
    spread = q.std(axis=0)
    z = (q - q.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    upper = _upper_half(z)
    quarter = 2 * upper.astype(np.intp)
    for half in (~upper, upper):
        quarter[half] += _upper_half(z[half])
    ends = np.cumsum([len(m) for m in several])[:-1]
    own = np.split(quarter, ends)
    return [(_taken(several, [k != part for k in own]), _taken(several, [k == part for k in own])) for part in range(4)]


def unseen_motion(motion: Motion | Sequence[Motion]) -> dict[str, Split]:
    """The ways in which another motion differs from these: each quarter of the positions held out, and the faster half."""
    slow, fast = slow_and_fast(motion)
    found = {f"positions, quarter {k}": split for k, split in enumerate(by_position(motion), 1)}
    found["faster half"] = [m for m in slow if len(m)], [m for m in fast if len(m)]
    return {name: (fitted, held) for name, (fitted, held) in found.items() if fitted and held}


def _taken(motions: Sequence[Motion], masks: Sequence[NDArray[np.bool_]]) -> list[Motion]:
    """What masks leave of motions, those of which they leave nothing left out."""
    return [m[mask] for m, mask in zip(motions, masks, strict=True) if mask.any()]


def _upper_half(z: Array) -> NDArray[np.bool_]:
    """Which samples (N, n) lie beyond the median along the direction of their largest variance."""
    if not len(z):
        return np.zeros(0, dtype=bool)
    off = z - z.mean(axis=0)
    along = off @ np.linalg.eigh(off.T @ off)[1][:, -1]
    return np.asarray(along > np.median(along))


# Of a parameter's size: a third of a percent to three times
PRIOR_SCALES = tuple(float(s) for s in np.geomspace(0.003, 3.0, 25))
PRIOR_ROUNDS = 4  # over all groups; scales of groups hardly depend on each other


@dataclass(frozen=True)
class CalibratedPrior:
    """`prior` with the likeliest scale of every group, `scales` tried, and `curves`: group → −2 log p of every scale above the least."""

    prior: Prior
    scales: tuple[float, ...]
    curves: Mapping[str, tuple[float, ...]]

    @property
    def groups(self) -> dict[str, float]:
        return dict(self.prior.groups or {})


@takes_machine
def calibrate_prior(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    prior: Prior | None = None,
    *,
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
) -> CalibratedPrior:
    """The prior with scales at which the data are as far from the drawing as it says.

    `settings`: sampling, sigma, engine, and the lags of a :class:`Hac`; they are chosen from the data where it has none, since residuals
    are always allowed to be autocorrelated. Deviations that the prior states by name (``Prior.sigma``) and parameters of which no drawing
    says anything keep theirs.
    """
    start = prior or Prior()
    how = settings or IdentifySettings()
    samples = stream(machine, motion, rows, how)
    s = solve(samples.observe(), sigma=how.sigma)
    made = sandwich(samples, s, None, how.correlated if isinstance(how.correlated, Hac) else Hac())
    names = _groups(machine, start)
    if not names:
        what = "no parameter has a value in the drawing, so that nothing can be said about how wrong it is."
        raise IdentificationError(what, where=f"prior of '{machine.name}'")
    K = base_of(s).matrix[:, list(machine.parameters.select("estimated"))]
    scales = dict.fromkeys(names, 0.1)
    curves: dict[str, tuple[float, ...]] = {}
    for _ in range(PRIOR_ROUNDS):
        before = dict(scales)
        _, now = prior_moments(machine, replace(start, groups=scales))
        weighed, _ = reweighted(s, made, K, np.diag(1.0 / now))
        for name in names:
            found = [_cost(machine, start, scales | {name: x}, weighed, K) for x in PRIOR_SCALES]
            scales[name] = PRIOR_SCALES[int(np.argmin(found))]
            curves[name] = tuple(float(f - min(found)) for f in found)
        if scales == before:
            break
    return CalibratedPrior(replace(start, groups={**(start.groups or {}), **scales}), PRIOR_SCALES, curves)


def _groups(machine: Machine, prior: Prior) -> list[str]:
    """Groups of which at least one estimated parameter has a stated value and no deviation of its own."""
    p = machine.parameters
    values = p.values.copy()
    for name, value in (prior.values or {}).items():
        values[p.index(name)] = value
    free, groups = unstated(machine, values), group_of(machine)
    scaled = [k for k in p.select("estimated") if not free[k] and p.names[k] not in (prior.sigma or {})]
    return list(dict.fromkeys(groups[k] for k in scaled))


def _cost(machine: Machine, prior: Prior, scales: Mapping[str, float], s: Solution, K: Array) -> float:
    """−2 log p(y), less its constant."""
    mean, deviation = prior_moments(machine, replace(prior, groups={**(prior.groups or {}), **scales}))
    y = s.triangle @ (s.values - K @ mean)
    A = s.triangle @ (K * deviation)
    factor = cho_factor(np.eye(len(y)) + A @ A.T, lower=True)
    return float(2.0 * np.log(np.diag(factor[0])).sum() + y @ cho_solve(factor, y))
