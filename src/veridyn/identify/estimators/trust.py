"""How far to trust a drawing: the scale of a prior, chosen by what it is worth on samples that were not fitted.

A prior says how far parameters may be from a drawing, and a drawing seldom says it itself. Each scale of the prior's deviations is
fitted on some samples and tried on others; the one with the least error there is kept. What is tried on should differ from what is
fitted as the purpose differs from the data: where a model fitted on slow motion is to hold on fast motion, the slow samples are
fitted on their own slower half and tried on their faster half, and the fast samples take no part in the choice. One scale is chosen for
all first; then each group of parameters (:mod:`veridyn.identify.estimators.prior_groups`) gets its own, one after the other, since a
drawing knows masses, inertias and friction differently well. Groups are tried without constraints. The samples are
streamed once for each part; every scale costs a solve of the machine's size. M. Stone, "Cross-validatory choice and assessment of
statistical predictions", J. Roy. Stat. Soc. B 36(2), 1974.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, Faults, IdentificationError
from veridyn.identify.estimators.coloured import Hac, sandwich
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.prior_groups import GROUPS, group_of
from veridyn.identify.estimators.weighted import WLS
from veridyn.identify.fitting import fit_of
from veridyn.identify.observation import stream
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import validation_of
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.tree.accept import accepts_machine
from veridyn.mechanics.tree.tree import Rows, Tree
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
WithPrior = TypeVar("WithPrior", Prior, Consistent)
SCALES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Trust(Generic[WithPrior]):
    """`settings` with the chosen ``relative`` and ``groups``; the errors ‖r‖/‖y‖ on what was tried of every scale and of least squares.

    `curves`: group → errors of every scale of that group, the others as they were chosen before; `grouped`: the error with all of them.
    """

    settings: WithPrior
    scales: tuple[float, ...]
    errors: tuple[float, ...]
    plain: float
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        """The scale of all parameters with the least error."""
        return self.scales[int(np.argmin(self.errors))]

    @property
    def groups(self) -> dict[str, float]:
        """The scale of each group."""
        return {name: self.scales[int(np.argmin(curve))] for name, curve in self.curves.items()}

    def summary(self) -> str:
        lines = [f"{'relative':>10}{'error tried %':>15}"]
        for scale, error in zip(self.scales, self.errors, strict=True):
            lines.append(f"{scale:10.3g}{100 * error:15.3f}" + ("  chosen" if scale == self.scale else ""))
        lines.append(f"{'none':>10}{100 * self.plain:15.3f}")
        for name, curve in self.curves.items():
            lines.append(f"{name}: {self.groups[name]:g}, error tried {100 * min(curve):.3f} %")
        if self.scale in (self.scales[0], self.scales[-1]):
            lines.append("note: the least error is at the end of the scales that were tried.")
        return "\n".join(lines)


@accepts_machine
def trust_prior(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    settings: WithPrior,
    tried: Motion | Sequence[Motion] | None = None,
    *,
    scales: Sequence[float] = SCALES,
    rows: Rows = "all",
    covariance: Hac | None = None,
    sampling: Sampling | None = None,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Trust[WithPrior]:
    """The ``relative`` and ``groups`` of a :class:`Prior`, or of the prior in a :class:`Consistent`, with the least error on `tried`.

    Without `tried` the motion is cut by :func:`slow_and_fast`: fitted on its slower half, tried on its faster one. The rest of
    `settings` stays, and deviations that its prior gives by name are not scaled. Fit with what is chosen on everything that may be
    fitted, with the same `covariance`: None takes residuals for white, and :class:`Hac` lets autocorrelated ones weigh less.
    """
    faults = Faults()
    if not scales or not all(np.isfinite(s) and s > 0.0 for s in scales):
        faults.add("each must be positive, and there must be one.", where="trust_prior.scales", found=f"{list(scales)}")
    prior = settings if isinstance(settings, Prior) else settings.prior
    if prior is None:
        faults.add("there is no prior to scale.", where="trust_prior", expected="Prior(…) or Consistent(Prior(…))")
    faults.raise_if_any(IdentificationError, tree.name)
    assert prior is not None
    settings.check(tree, rows, covariance)
    if tried is None:
        motion, tried = slow_and_fast(motion)
    fitted, held = (
        stream(tree, part, rows, sampling, engine=engine, executor=executor, progress=progress)
        for part in (motion, tried)
    )
    held = held.observe()
    start = solve(fitted.observe())
    made = None if covariance is None else sandwich(fitted, start, None, covariance)
    errors, order = [], sorted(scales)
    for k, scale in enumerate(order):
        progress("scales of the prior", float(k), float(len(order)))
        fit = _scaled(settings, prior, scale).fit_solution(tree, start, made=made)
        errors.append(validation_of(held, fit.standard).relative_error)
    plain = validation_of(held, fit_of(tree, start, WLS.title).standard).relative_error
    best = order[int(np.argmin(errors))]
    curves: dict[str, tuple[float, ...]] = {}
    chosen = replace(prior, relative=best, groups=None)
    for name in _own_groups(tree, settings):
        tries = [replace(chosen, groups={**(chosen.groups or {}), name: scale}) for scale in order]
        curves[name] = tuple(
            validation_of(held, one.fit_solution(tree, start, made=made).standard).relative_error for one in tries
        )
        chosen = tries[int(np.argmin(curves[name]))]
    made = chosen if isinstance(settings, Prior) else replace(settings, prior=chosen)
    return Trust(made, tuple(order), tuple(errors), plain, curves)  # pyright: ignore[reportReturnType]


def _own_groups(tree: Tree, settings: Prior | Consistent) -> list[str]:
    """Groups of the estimated parameters, largest first; the bodies' have one scale where the metric has no other."""
    every = group_of(tree)
    found = [every[k] for k in tree.parameters.select("estimated")]
    joint = ("inertia", "mass") if not isinstance(settings, Prior) and settings.metric == "entropic" else ()
    return [g for g in GROUPS if g in found and g not in joint]


@checked
def slow_and_fast(motion: Motion | Sequence[Motion], share: float = 0.5) -> tuple[list[Motion], list[Motion]]:
    """The slower `share` of all samples and the faster rest, by ‖q̇‖, of each motion.

    What is left of a motion has gaps: its own filter must come before, and ``Sampling(filter=…)`` cannot be used on it.
    """
    several = [motion] if isinstance(motion, Motion) else list(motion)
    if not several or not 0.0 < share < 1.0:
        raise DataError(
            Fault("there is nothing to cut.", "slow_and_fast", "motions, and a share between 0 and 1", f"{share}")
        )
    speeds = [np.linalg.norm(m.qd, axis=1) for m in several]
    limit = float(np.quantile(np.concatenate(speeds), share))
    slow = [m[s <= limit] for m, s in zip(several, speeds, strict=True)]
    return slow, [m[s > limit] for m, s in zip(several, speeds, strict=True)]


def _scaled(settings: WithPrior, prior: Prior, scale: float) -> WithPrior:
    new = replace(prior, relative=scale, groups=None)
    if isinstance(settings, Prior):
        return new  # pyright: ignore[reportReturnType]
    return replace(settings, prior=new)
