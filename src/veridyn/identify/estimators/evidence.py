"""How wrong a drawing is, group by group, from how far the data are from it: the scale of a prior by its marginal likelihood.

With φ ~ N(m, S(s)), S the squares of sizes times the scale s_g of each parameter's group, the least-squares solution χ̂ of the weighted
equations is itself a sample: in coordinates in which its noise is the unit matrix, y = T (χ̂ − K m) has the covariance

    Σ(s) = 1 + T K S(s) Kᵀ Tᵀ,    −2 log p(y | s) = log det Σ + yᵀ Σ⁻¹ y,

which is smallest where the drawing's errors that the data see are as large as the prior says, no smaller and no larger (type-II maximum
likelihood; D. J. C. MacKay, 1992, Neural Computation 4(3)). Stated deviations then hold also where the prior decides, if the
drawing is as wrong there as where the data decide. :mod:`veridyn.identify.estimators.trust` chooses scales by the error of predictions
instead, which is the better choice for a model that is to predict, and says nothing of deviations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.estimator import base_of
from veridyn.identify.estimators.coloured import sandwich
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.estimators.prior import Prior, group_of, prior_moments, reweighted, unstated
from veridyn.identify.regression.observation import stream
from veridyn.identify.settings import Hac, IdentifySettings
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

# Of a parameter's size: a third of a percent to three times
SCALES = tuple(float(s) for s in np.geomspace(0.003, 3.0, 25))
ROUNDS = 4  # over all groups; scales of groups hardly depend on each other


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
    for _ in range(ROUNDS):
        before = dict(scales)
        _, now = prior_moments(machine, replace(start, groups=scales))
        weighed, _ = reweighted(s, made, K, np.diag(1.0 / now))
        for name in names:
            found = [_cost(machine, start, scales | {name: x}, weighed, K) for x in SCALES]
            scales[name] = SCALES[int(np.argmin(found))]
            curves[name] = tuple(float(f - min(found)) for f in found)
        if scales == before:
            break
    return CalibratedPrior(replace(start, groups={**(start.groups or {}), **scales}), SCALES, curves)


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
