"""What was believed before and what the data say, weighed against each other: a Gaussian prior on the standard parameters.

With φ ~ N(m, S) and the weighted equations, whose noise has deviation 1, the posterior is Gaussian too,

    C = (Kᵀ TᵀT K + S⁻¹)⁻¹,   φ̂ = m + C Kᵀ TᵀT (χ̂ − K m),

with T the triangle of the weighted base regressor, χ̂ its least-squares solution and χ = K φ the groups. So the samples enter
through the small factor only, and every standard parameter gets a value: the data's where they speak, the prior's where not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.threads import one_blas_thread
from veridyn.model.tree import Tree

Array = NDArray[np.float64]
PRIOR_ALONE = 0.99  # of the prior's variance: what is left when the data said nothing


@dataclass(frozen=True)
class Prior:
    """A belief about the asked parameters: `values` and deviations `sigma` by name, for some or all of them.

    What `values` does not name has the tree's own value. What `sigma` does not name has the deviation `relative` times its size: of
    a mass, itself; of the six moments of a body, the largest of them; of its first moments, √(mass × that); of an element, |value|. Where
    that is zero, the typical size.
    """

    values: Mapping[str, float] | None = None
    sigma: Mapping[str, float] | None = None
    relative: float = 0.3


@dataclass(frozen=True, eq=False)
class Posterior:
    """`values` of the asked parameters, and `half` with half halfᵀ their covariance.

    `share`: the variance that is left over the prior's, 1 where the data said nothing and near 0 where the prior did not matter.
    `weight`: of all directions, how many the prior decided: Σ 1/(1 + σ²).
    """

    values: Array
    half: Array
    share: Array
    weight: float


def belief(tree: Tree, prior: Prior) -> tuple[Array, Array]:
    """Mean and deviation of each asked parameter, in order; refused where some have no value."""
    p, asked = tree.parameters, list(tree.parameters.select("asked"))
    faults = Faults()
    names = [p.names[k] for k in asked]
    for setting, given in (("values", prior.values or {}), ("sigma", prior.sigma or {})):
        for name, value in given.items():
            if name not in names:
                faults.add(
                    f"'{name}' is not an asked parameter.", where=f"prior.{setting}", hint=did_you_mean(name, names)
                )
            elif not np.isfinite(value) or (setting == "sigma" and value <= 0.0):
                wanted = "a positive number" if setting == "sigma" else "a number"
                faults.add("it cannot be used.", where=f"prior.{setting}['{name}']", expected=wanted, found=f"{value}")
    if not (np.isfinite(prior.relative) and prior.relative > 0.0):
        faults.add("it must be positive.", where="prior.relative", found=f"{prior.relative}")
    own = p.values.copy()
    for name, value in (prior.values or {}).items():
        if name in names:
            own[p.index(name)] = value
    missing = [n for n, k in zip(names, asked) if not np.isfinite(own[k])]
    if missing and not faults:
        listed = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        faults.add(
            f"a prior needs values, and these parameters have none: {listed}.",
            where="prior",
            hint="Give them in the model file or in Prior(values={…}), or use estimator='wls', which needs none.",
        )
    faults.raise_if_any(IdentificationError)
    deviation = prior.relative * sizes(tree, own)
    for name, value in (prior.sigma or {}).items():
        deviation[p.index(name)] = value
    return own[asked], deviation[asked]


def sizes(tree: Tree, values: Array) -> Array:
    """The size of each parameter as :class:`Prior` has it, from values of all of them."""
    p = tree.parameters
    size = np.abs(values)
    for k, (body, first) in enumerate(tree.columns):
        if body >= 0 and first == 0:
            J, M = size[k : k + 6].max(), size[k + 9]
            size[k : k + 9] = [J] * 6 + [np.sqrt(J * M)] * 3
    return np.where(size > 0.0, size, p.typical)


def posterior(s: Solution, K: Array, mean: Array, root: Array) -> Posterior:
    """The posterior of parameters with χ = K φ and the prior N(mean, (rootᵀ root)⁻¹).

    In coordinates in which the prior is the unit ball, the data's singular values σ decide: a direction keeps 1/(1 + σ²) of its variance.
    """
    with one_blas_thread():
        back = np.linalg.inv(root)
        U, sv, Vt = np.linalg.svd(s.triangle @ K @ back, full_matrices=True)
        told = U.T @ (s.triangle @ (s.values - K @ mean))
        gain = sv / (1.0 + sv**2)
        values = mean + back @ (Vt[: len(sv)].T @ (gain * told[: len(sv)]))
        kept = np.ones(len(mean))
        kept[: len(sv)] = 1.0 / (1.0 + sv**2)
        half = np.asarray(back @ Vt.T * np.sqrt(kept), dtype=np.float64)
    share = (half**2).sum(axis=1) / (back**2).sum(axis=1)
    return Posterior(values, half, share, float(kept.sum()))
