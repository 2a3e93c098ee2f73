"""Several logs of one machine: by how much their estimates differ beyond the noise of each, and what that adds to the deviation of all.

Estimates x_i of k logs with stated deviations σ_i scatter about their weighted mean x̄ with

    Q = Σ_i (x_i − x̄)²/σ_i² / (k − 1),   mean 1 where noise is all,

pooled over the parameters of a group, since two logs alone say little of one parameter. What is beyond 1 varies from log to log:
temperature, a road, a model that is wrong in another way on another motion. It enters the estimate of all logs together as

    σ_takes = σ √(max(0, Q − 1)),

the random effect of R. DerSimonian and N. Laird (1986, Controlled Clinical Trials 7(3)), with the ratio of R. T. Birge (1932, Phys. Rev.
40) for each group. An error that is the same in all logs does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError


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
