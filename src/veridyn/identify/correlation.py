"""How much model an experiment bears: the condition of the estimates' correlation matrix while the model grows.

    ρ_ij = P_ij/√(P_ii P_jj)                                                        (11) of paper 002

P is the covariance of the Gauss-Markov estimate (10). cond ρ does not depend on units, so models with different numbers of parameters can
be compared: where a further friction parameter makes it jump, the motion does not separate that parameter from the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, did_you_mean

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Growth:
    """One model of a growing family: what was added, how many parameters it has, cond ρ, and the largest correlation with its names."""

    added: str
    parameters: int
    condition: float
    largest: float
    between: tuple[str, str]


def correlation(covariance: Array) -> Array:
    """ρ of a covariance."""
    s = np.sqrt(np.diag(covariance))
    return covariance / np.outer(s, s)


def growing(information: Array, names: Sequence[str], steps: Mapping[str, Sequence[str]]) -> tuple[Growth, ...]:
    """cond ρ of models that grow step by step: `steps` says what each adds, by parameter names of the `information` ΨᵀΣ⁻¹Ψ (p, p)."""
    own = list(names)
    used: list[int] = []
    found = []
    for label, added in steps.items():
        for name in added:
            if name not in own:
                raise DataError(
                    Fault(f"there is no parameter '{name}'.", f"step '{label}'", hint=did_you_mean(name, own))
                )
            used.append(own.index(name))
        M = information[np.ix_(used, used)]
        scale = 1.0 / np.sqrt(np.diag(M))
        rho = correlation(np.asarray(np.linalg.inv(M * scale * scale[:, None]), dtype=np.float64))
        off = np.abs(rho - np.eye(len(used)))
        i, j = np.unravel_index(int(np.argmax(off)), off.shape)
        pair = (own[used[int(i)]], own[used[int(j)]])
        found.append(Growth(label, len(used), float(np.linalg.cond(rho)), float(off.max(initial=0.0)), pair))
    return tuple(found)
