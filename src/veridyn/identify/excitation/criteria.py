"""What makes one experiment better than another: criteria of the information M = ΨᵀΣ⁻¹Ψ, each with its gradient by M.

    "d"  −ln det M / p              equation (22) of paper 002, over p parameters: a volume, whatever the units
    "a"  ln tr(S M⁻¹ S)             the sum of variances, in typical sizes (S = 1/typical)
    "e"  −ln λ_min(S⁻¹ M S⁻¹)       the worst direction, in typical sizes
    "condition"  ln cond Ψ          equation (21), of the regressor as it is: neither noise nor typical sizes count

Natural logarithms, so that a fall by 0.01 is one percent. Gradients G satisfy df = tr(G dM), G symmetric.

How much model an experiment bears shows in the condition of the estimates' correlation matrix while the model grows:

    ρ_ij = P_ij/√(P_ii P_jj)                                                        (11) of paper 002

P is the covariance of the Gauss-Markov estimate (10). cond ρ does not depend on units, so models with different numbers of parameters can
be compared: where a further friction parameter makes it jump, the motion does not separate that parameter from the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean

Criterion = Literal["d", "a", "e", "condition"]
CRITERIA: tuple[str, ...] = get_args(Criterion)
UNEXCITED_EIGENVALUE = 1e-14  # of the largest eigenvalue: below it a direction counts as not excited at all


def check_criterion(name: str) -> None:
    """Refuse a word that names no criterion."""
    if name not in CRITERIA:
        raise DataError(
            f"there is no criterion '{name}'.", where="design_excitation", hint=did_you_mean(name, CRITERIA)
        )


def criterion(name: Criterion, M: Array, typical: Array) -> tuple[float, Array]:
    """The value, and the gradient by M. `typical` sizes of the parameters scale "a" and "e"."""
    scale = typical if name in ("a", "e") else 1.0 / np.sqrt(np.diag(M)) if name == "d" else np.ones(len(M))
    value, G = _OF[name](M * scale * scale[:, None])
    if name == "d":
        value += 2.0 * float(np.log(scale).sum()) / len(M)
    return value, G * scale * scale[:, None]


def _d(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    return -float(np.log(values).mean()), -(V / values) @ V.T / len(M)


def _a(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    total = float((1.0 / values).sum())
    return float(np.log(total)), -(V / values**2) @ V.T / total


def _e(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    return -float(np.log(values[0])), -np.outer(V[:, 0], V[:, 0]) / values[0]


def _condition(M: Array) -> tuple[float, Array]:
    values, V = _spectrum(M)
    G = np.outer(V[:, -1], V[:, -1]) / values[-1] - np.outer(V[:, 0], V[:, 0]) / values[0]
    return 0.5 * float(np.log(values[-1] / values[0])), 0.5 * G


def _spectrum(M: Array) -> tuple[Array, Array]:
    values, V = np.linalg.eigh(M)
    return np.maximum(values, UNEXCITED_EIGENVALUE * values[-1]), V


_OF = {"d": _d, "a": _a, "e": _e, "condition": _condition}


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
                    f"there is no parameter '{name}'.", where=f"step '{label}'", hint=did_you_mean(name, own)
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
