"""Ordinary and weighted least squares from row factors: equations (23) to (28) of paper 000, with its (23) corrected.

P must be diag(1/σ_j), so that W_PᵀW_P = Wᵀ diag(1/σ²) W: with S_j = I/σ_j² as printed and Y_P = P Y, deviations come out half as large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg import get_lapack_funcs

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, IdentificationError, IdentificationWarning, did_you_mean, warn
from veridyn.identify.base import RANK_TOLERANCE, Groups, group, singular, singular_values
from veridyn.identify.regression.factor import RowFactor, RowFactors, one_blas_thread, triangle_of

Weighting = Literal["rows", "none"]
# A deviation of so many typical sizes says nothing: values exceed a typical size, an order of magnitude, a hundredfold at most, and a
# deviation ten times that leaves 99.5 % of what was possible before.
OPEN_TYPICAL_SIZES = 1e3
(SOLVE_TRIANGULAR,) = get_lapack_funcs(("trtrs",))
EXACT_RESIDUAL = 1e-7  # relative to the measurement; a smaller residual means noise-free data


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """A solved weighted system over the base columns of `groups` (numbers within ``observation.columns``).

    `triangle` is the R factor of the weighted base regressor W_P; `row_sigma` the σ_j that made the weights; `sigma` that of (26),
    1 where the weights are right; `freedom` the equations less the parameters; `open`: directions that noise alone made be grouped.
    """

    observation: RowFactors
    groups: Groups
    values: Array
    triangle: Array
    row_sigma: Array
    sigma: float
    freedom: int
    tolerance: float = RANK_TOLERANCE
    open: int = 0

    @property
    def columns(self) -> tuple[int, ...]:
        """The standard parameters that lead the groups."""
        own = self.observation.columns
        return tuple(own[k] for k in self.groups.kept)

    @property
    def all_values(self) -> Array:
        """Of all parameters: the values of those that lead the groups, zero elsewhere."""
        found = np.zeros(len(self.observation.parameters))
        found[list(self.columns)] = self.values
        return found

    @cached_property
    def inverse(self) -> Array:
        """Of the triangle: W_P times it is orthonormal."""
        return solve_upper(self.triangle, np.eye(len(self.triangle)))

    @cached_property
    def scaled_singular_values(self) -> Array:
        """Of the triangle with columns scaled by typical sizes."""
        return singular_values(self.triangle * self.observation.parameters.typical[list(self.columns)])

    @property
    def covariance(self) -> Array:
        """C = σ² (W_PᵀW_P)⁻¹ (27)."""
        inverse = self.inverse
        return self.sigma**2 * inverse @ inverse.T

    @property
    def condition(self) -> float:
        """Of the weighted, unscaled base regressor, as the papers give it."""
        return float(np.linalg.cond(self.triangle)) if len(self.triangle) else 1.0

    @property
    def condition_scaled(self) -> float:
        """The same with columns scaled by typical sizes."""
        s = self.scaled_singular_values
        if not len(s):
            return 1.0
        return float(s[0] / s[-1]) if s[-1] > 0.0 else float("inf")


def solve(
    observed: RowFactors,
    weighting: Weighting = "rows",
    *,
    sigma: Mapping[str, float] | None = None,
    tolerance: float = RANK_TOLERANCE,
) -> Solution:
    """Least squares over all rows: "none" weighs all equations alike, "rows" by 1/σ_j, from `sigma` where known, else by (24).

    Columns the data cannot separate are grouped first (rank with columns scaled by typical sizes).
    """
    _check(observed, sigma or {})
    with one_blas_thread():
        if weighting == "rows":
            row_sigma = np.array(
                [(sigma or {}).get(f.row) or row_deviation(f, observed, tolerance) for f in observed.rows]
            )
        else:
            row_sigma = np.ones(len(observed.rows))
        R = observed.stacked(list(1.0 / row_sigma))
        groups = separable(observed, tolerance)
        if not groups.kept:
            raise IdentificationError(
                "nothing is excited: every column is zero in this motion.",
                where="observation",
                hint="Record a motion in which the joints of these rows move.",
            )
        return within_noise(solved(observed, R, groups, row_sigma, tolerance), R)


def within_noise(s: Solution, R: Array) -> Solution:
    """The solution without directions that noise leaves open by more than `OPEN_TYPICAL_SIZES`: their columns are grouped.

    With columns in typical sizes, a direction of singular value v has the deviation σ/v. A sum that is known well stays, as the value of
    the group; its parts would be ghosts, which cancel. Data without noise keep every direction that rounding does.
    """
    least = s.sigma / OPEN_TYPICAL_SIZES
    if not np.any(s.scaled_singular_values < least):
        return s
    own = s.observation.parameters.typical[list(s.observation.columns)]
    groups = group(R[:, :-1], own, least / float(singular_values(R[:, :-1] * own)[0]), hidden=least)
    if not groups.kept or len(groups.kept) >= len(s.groups.kept):
        return s
    return replace(
        solved(s.observation, R, groups, s.row_sigma, s.tolerance), open=len(s.groups.kept) - len(groups.kept)
    )


def separable(observed: RowFactors, tolerance: float = RANK_TOLERANCE) -> Groups:
    """What the equations can identify, whatever their weights: every row counts by the size of its own columns."""
    typical = observed.parameters.typical
    sizes = [float(np.linalg.norm(f.R[:, :-1] * typical[list(f.columns)])) for f in observed.rows]
    R = observed.stacked([1.0 / size if size > 0.0 else 1.0 for size in sizes])
    return group(R[:, :-1], typical[list(observed.columns)], tolerance)


def solved(observed: RowFactors, R: Array, groups: Groups, row_sigma: Array, tolerance: float) -> Solution:
    """The solution over given groups of the stacked, weighted factor R."""
    kept = list(groups.kept)
    T = triangle_of(np.column_stack([R[:, kept], R[:, -1]]))
    triangle, y = T[: len(kept), : len(kept)], T[: len(kept), -1]
    residual = float(np.linalg.norm(T[len(kept) :, -1]))
    freedom = observed.samples - len(kept)
    if freedom <= 0:
        raise IdentificationError(
            "there are fewer equations than parameters.",
            where="observation",
            expected=f"more than {len(kept)} equations",
            found=f"{observed.samples} in {len(observed.rows)} rows",
            hint="Record longer, drop fewer samples, or ask for fewer parameters.",
        )
    values = solve_upper(triangle, y)
    return Solution(
        observation=observed,
        groups=groups,
        values=values,
        triangle=triangle,
        row_sigma=row_sigma,
        sigma=residual / np.sqrt(freedom),
        freedom=freedom,
        tolerance=tolerance,
    )  # (26)


def solve_upper(R: Array, B: Array) -> Array:
    """X of R X = B with an upper triangle R, without the checks of SciPy's own, which take longer than a small system."""
    X, failed = SOLVE_TRIANGULAR(R, B)
    if failed:
        raise np.linalg.LinAlgError(f"the triangle is singular: number {failed} of its diagonal is zero.")
    return np.asarray(X, dtype=np.float64)


def row_deviation(f: RowFactor, observed: RowFactors, tolerance: float = RANK_TOLERANCE) -> float:
    """σ_j of a row from its own least squares (24), with n_Bj the rank of the columns it excites itself."""
    typical = observed.parameters.typical[list(f.columns)]
    U, s, _ = singular(f.R[:, :-1] * typical)
    rank = int((s > tolerance * s.max(initial=0.0)).sum())
    freedom = f.samples - rank
    if freedom <= 0:
        raise IdentificationError(
            "the row has fewer samples than parameters, so its deviation cannot be estimated.",
            where=f"row '{f.row}'",
            expected=f"more than {rank} samples",
            found=f"{f.samples}",
            hint="Record longer, drop fewer samples, or state sigma for this row.",
        )
    y = f.R[:, -1]
    deviation = float(np.linalg.norm(y - U[:, :rank] @ (U[:, :rank].T @ y))) / np.sqrt(freedom)
    scale = f.measurement_norm / np.sqrt(f.samples)
    if deviation > EXACT_RESIDUAL * scale:
        return deviation
    # Exact data, or a row that measures nothing: any equal weight is right, and none can be estimated.
    return EXACT_RESIDUAL * scale if scale > 0 else _silent_row(f)


def _silent_row(f: RowFactor) -> float:
    warn(
        IdentificationWarning,
        Fault(
            "the row measures exactly zero throughout, so its own deviation is unknown and its weight is 1.",
            where=f"row '{f.row}'",
            hint="State sigma for this row, or leave it out, if that is not what was meant.",
        ),
    )
    return 1.0


def _check(observed: RowFactors, sigma: Mapping[str, float]) -> None:
    faults = Faults()
    names = [f.row for f in observed.rows]
    for name, value in sigma.items():
        if name not in names:
            faults.add(f"'{name}' is not one of the rows.", where="sigma", hint=did_you_mean(name, names))
        elif not (np.isfinite(value) and value > 0):
            faults.add("a deviation must be positive.", where=f"sigma['{name}']", found=f"{value}")
    for f in observed.rows:
        if f.samples == 0:
            faults.add(
                "no sample of it is left.", where=f"row '{f.row}'", hint="Its dead zone or mask drops everything."
            )
    if not observed.columns:
        faults.add("no estimated parameter affects these rows.", where="observation")
    if all(f.measurement_norm == 0.0 for f in observed.rows):
        faults.add(
            "the measured side is zero everywhere, so parameters all zero fit perfectly and nothing fixes their size.",
            where="observation",
            hint="Drive gains need a load that is known; base rows need the wrenches that act; joints need their forces.",
        )
    faults.raise_if_any(IdentificationError)
