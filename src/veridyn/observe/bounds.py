"""Bounds of parameters that are estimated with the state: how they are written, and the projection that keeps them.

A corrected state x beyond a bound is moved to the nearest one within it, in the metric of its covariance (D. Simon, "Kalman filtering with
state constraints", IET Control Theory & Applications 4(8), 2010, 1303-1318):

    x ← x + P e_i (b − x_i)/P_ii

so that states which are correlated with the parameter move along. The covariance stays as it is, which is on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError

BOUND_PASSES = 2  # over all bounds: moving to one may lead beyond another
AT_BOUND = 1e-12  # of a bound's size: a value that stands at it


@dataclass(frozen=True)
class Estimated:
    """How a parameter is estimated with the state: its deviation at the start, the density of its random walk (unit²/s), and bounds."""

    sigma: float
    walk: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf


Parameters = Iterable[str] | Mapping[str, Estimated | tuple[float, ...]]


def read_parameters(given: Parameters) -> tuple[tuple[str, ...], dict[str, Estimated]]:
    """Names of parameters, and how those are estimated for which that is given: an :class:`Estimated` or (sigma, walk, lower, upper)."""
    if not isinstance(given, Mapping):
        return tuple(given), {}
    faults, found = Faults(), dict[str, Estimated]()
    for name, how in given.items():
        where = f"parameters, '{name}'"
        try:
            record = how if isinstance(how, Estimated) else Estimated(*(float(x) for x in how))
        except (TypeError, ValueError):
            what = "this does not say how it is estimated."
            faults.add(
                what, where=where, expected="(sigma, walk, lower, upper), the last three optional", found=f"{how}"
            )
            continue
        if not (np.isfinite(record.sigma) and record.sigma >= 0.0 and np.isfinite(record.walk) and record.walk >= 0.0):
            found_numbers = f"{record.sigma:g} and {record.walk:g}"
            faults.add(
                "its deviation or walk is not usable.", where=where, expected="zero or more", found=found_numbers
            )
        if not record.lower < record.upper:
            faults.add(
                "its bounds leave nothing.",
                where=where,
                expected="lower below upper",
                found=f"{record.lower:g}, {record.upper:g}",
            )
        found[str(name)] = record
    faults.raise_if_any(ModelError)
    return tuple(found), found


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterBounds:
    """Bounds (count,) `lower` and `upper` of some entries: `places` of the state vector, which are the entries `changes` of a change."""

    names: tuple[str, ...]
    places: NDArray[np.int64]
    changes: NDArray[np.int64]
    lower: Array
    upper: Array

    def project(self, x: Array, d: Array, P: Array, considered: NDArray[np.bool_] | None) -> Array:
        """The change d of the state x moved within the bounds; considered states are left alone."""
        d = d.copy()
        for _ in range(BOUND_PASSES):
            for at, i, low, high in zip(self.places, self.changes, self.lower, self.upper, strict=True):
                new = x[at] + d[i]
                beyond = (low - new) if new < low else (high - new) if new > high else 0.0
                if beyond != 0.0 and P[i, i] > 0.0:
                    move = P[:, i] * (beyond / P[i, i])
                    d += move if considered is None else np.where(considered, 0.0, move)
        for at, i, low, high in zip(self.places, self.changes, self.lower, self.upper, strict=True):
            new = x[at] + d[i]
            if new < low or new > high:
                d[i] = (low if new < low else high) - x[at]
        return d

    def inside(self, x: Array) -> Array:
        """States (…, N) with the bounded parameters moved to the nearest value within their bounds."""
        out = x.copy()
        out[..., self.places] = np.clip(x[..., self.places], self.lower, self.upper)
        return out

    def held(self, x: Array) -> dict[str, tuple[float, int]]:
        """Of states (N, …): how often each parameter stood at a bound, as (bound, times), where it did."""
        found: dict[str, tuple[float, int]] = {}
        for name, at, low, high in zip(self.names, self.places, self.lower, self.upper, strict=True):
            for bound in (low, high):
                near = (
                    np.abs(x[..., at] - bound) <= AT_BOUND * max(1.0, abs(bound)) if np.isfinite(bound) else np.zeros(1)
                )
                times = int(np.count_nonzero(near))
                if times:
                    found[name] = (float(bound), times)
        return found
