"""Machine code of :mod:`veridyn.identify.draws`: which parameter sets are physical, and a step of elliptical slice sampling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import inner, kept

Array = NDArray[np.float64]
LEAST_PIVOT = 1e-9  # of the diagonal element it is a part of


@inner
def is_physical(phi: Array, bodies: NDArray[np.int64], signed: NDArray[np.int64]) -> bool:
    """Whether bodies, by the first of their ten parameters, have positive definite pseudo-inertias and elements are not negative.

    The pivots of [[Σ, MS], [MSᵀ, M]] with the mass first: M, then those of Σ − MS MSᵀ/M, which are to be above rounding.
    """
    for k in signed:
        if phi[k] < 0.0:
            return False
    for k in bodies:
        xx, xy, xz, yy, yz, zz = phi[k], phi[k + 1], phi[k + 2], phi[k + 3], phi[k + 4], phi[k + 5]
        mx, my, mz, m = phi[k + 6], phi[k + 7], phi[k + 8], phi[k + 9]
        a, b, c = (yy + zz - xx) / 2.0, (xx + zz - yy) / 2.0, (xx + yy - zz) / 2.0
        if not (m > 0.0 and a > 0.0 and b > 0.0 and c > 0.0):
            return False
        first = a - mx * mx / m
        if not first > LEAST_PIVOT * a:
            return False
        ab, ac, bc = -xy - mx * my / m, -xz - mx * mz / m, -yz - my * mz / m
        second = b - my * my / m - ab * ab / first
        if not second > LEAST_PIVOT * b:
            return False
        rest = bc - ab * ac / first
        if not c - mz * mz / m - ac * ac / first - rest * rest / second > LEAST_PIVOT * c:
            return False
    return True


@kept
def physical_sets(x: Array, bodies: NDArray[np.int64], signed: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(m,) truths of parameters (m, p)."""
    good = np.empty(len(x), dtype=np.bool_)
    for i in range(len(x)):
        good[i] = is_physical(x[i], bodies, signed)
    return good


@kept
def slice_step(
    x: Array, nu: Array, uniform: Array, mean: Array, bodies: NDArray[np.int64], signed: NDArray[np.int64]
) -> None:
    """x (m, p) of φ − μ moved on to a physical point of each chain's ellipse x cos θ + ν sin θ.

    The arc of θ shrinks towards 0 with each of the numbers `uniform` (m, tries) of 0 to 1; a chain that has used them all stays.
    """
    phi = np.empty(x.shape[1])
    for i in range(len(x)):
        theta = 2.0 * math.pi * uniform[i, 0]
        low, high = theta - 2.0 * math.pi, theta
        for t in range(1, uniform.shape[1]):
            c, s = math.cos(theta), math.sin(theta)
            for j in range(len(phi)):
                phi[j] = mean[j] + c * x[i, j] + s * nu[i, j]
            if is_physical(phi, bodies, signed):
                for j in range(len(phi)):
                    x[i, j] = c * x[i, j] + s * nu[i, j]
                break
            if theta < 0.0:
                low = theta
            else:
                high = theta
            theta = low + (high - low) * uniform[i, t]
