"""Periodic B-splines with exact derivatives: motions shaped where they need it, not harmonic by harmonic.

    q(t) = Σ_m c_m N_d(K f t − m),   m = 0 … K − 1, cyclic

N_d is the cardinal B-spline of degree d on the knots 0 … d + 1, f the frequency in Hz and K the control points of one period. Weights are
positive and add up to one, so q never leaves the range of its control points; degree 4 and above has a steady jerk.
C. de Boor, "A Practical Guide to Splines", 1978, chapters IX and X. Units: rad or m, s, Hz.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline

from veridyn.errors import DataError, Faults
from veridyn.signals.trajectory import POINTS, blended

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SplineTrajectory:
    """n coordinates by control points `points` (K, n), fundamental `frequency` in Hz, blended in from rest over `start` seconds."""

    points: Array
    frequency: float
    degree: int = 5
    start: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", np.array(self.points, dtype=np.float64))
        faults, where = Faults(), "spline trajectory"
        if self.degree < 3:
            faults.add("its acceleration would jump.", where=where, expected="degree 3 or more", found=f"{self.degree}")
        if self.points.ndim != 2 or len(self.points) <= self.degree or not np.isfinite(self.points).all():
            faults.add(
                "its control points are not usable.",
                where=where,
                expected=f"more than {self.degree} rows of finite numbers",
                found=f"shape {self.points.shape}",
            )
        if not 0.0 < self.frequency < np.inf or not 0.0 <= self.start < np.inf:
            faults.add(
                "its times are not usable.",
                where=where,
                expected="a frequency above zero in Hz, and a start of 0 s or more",
                found=f"{self.frequency} and {self.start}",
            )
        faults.raise_if_any(DataError)

    @property
    def n(self) -> int:
        return self.points.shape[1]

    @property
    def centre(self) -> Array:
        """The mean over a period, from which the motion starts."""
        return self.points.mean(axis=0)

    @property
    def period(self) -> float:
        """Seconds after which the motion repeats itself, once the start is over."""
        return 1.0 / self.frequency

    def with_start(self, seconds: float) -> SplineTrajectory:
        """The same motion, blended in from rest at `centre` over so many seconds."""
        return replace(self, start=seconds)

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        B = spline_basis(times * self.frequency, len(self.points), self.degree)
        f, centre = self.frequency, self.centre
        p, pd, pdd = B[0] @ self.points - centre, f * (B[1] @ self.points), f**2 * (B[2] @ self.points)
        return blended(times, self.start, centre, p, pd, pdd)

    def grid(self) -> Array:
        """The times at which limits are checked: the start and one whole period after it."""
        length = self.start + self.period
        shortest = min(self.start or np.inf, 4.0 * self.period / len(self.points))
        return np.linspace(0.0, length, int(np.ceil(POINTS * length / shortest)) + 1)


def spline_basis(phase: ArrayLike, points: int, degree: int) -> Array:
    """(3, …, K): the weights of the control points at phases (in periods), and their first and second derivatives by phase."""
    at = np.mod(np.asarray(phase, dtype=np.float64)[..., None] * points - np.arange(points), points)
    inside = at <= degree + 1.0
    return np.stack(
        [float(points) ** order * np.where(inside, piece(at), 0.0) for order, piece in enumerate(_pieces(degree))]
    )


@lru_cache(maxsize=16)
def _pieces(degree: int) -> tuple[BSpline, BSpline, BSpline]:
    whole = BSpline.basis_element(np.arange(degree + 2.0))
    return whole, whole.derivative(), whole.derivative(2)
