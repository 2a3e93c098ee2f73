"""Results of another description, brought back to the first and compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import veridyn as vd
from metamorphic.machines import Array
from metamorphic.relations import Back
from veridyn.identify.base import BaseParameters


def standard_map(first: BaseParameters, other: BaseParameters, back: Back) -> Array:
    """T with φ_other = T φ_first of all standard parameters: each has its place, its sign and its scale."""
    places = {name: k for k, name in enumerate(first.parameters.names)}
    T = np.zeros((len(other.parameters), len(first.parameters)))
    for k, (own, unit) in enumerate(zip(other.parameters.names, other.parameters.units, strict=True)):
        name = back.parameter(own)
        T[k, places[name]] = back.sign(name) * back.scale(unit)
    return T


def base_map(first: BaseParameters, other: BaseParameters, back: Back) -> tuple[Array, float]:
    """X with χ_first = X χ_other, whichever members lead the groups, and what of χ_first other's cannot express, in typical sizes."""
    K = other.matrix @ standard_map(first, other, back)
    sizes = first.parameters.typical
    X = np.linalg.lstsq((K * sizes).T, (first.matrix * sizes).T, rcond=None)[0].T
    return X, float(np.abs((X @ K - first.matrix) * sizes).max() / np.abs(first.matrix * sizes).max())


def check_base(first: BaseParameters, other: BaseParameters, back: Back, tolerance: float) -> None:
    """The same number of parameters, which span the same combinations."""
    assert other.count == first.count
    assert base_map(first, other, back)[1] < tolerance
    dead = {back.parameter(other.parameters.names[k]) for k in other.dead}
    assert dead == {first.parameters.names[k] for k in first.dead}


def check_fit(first: vd.Fit, other: vd.Fit, back: Back, tolerance: float) -> None:
    """Values within `tolerance` of their size and deviation, the same covariance, equations and findings."""
    check_base(first.base, other.base, back, 1e-9)
    X, _ = base_map(first.base, other.base, back)
    assert largest((X @ other.values - first.values) / (np.abs(first.values) + first.sigma)) < tolerance
    C = X @ other.covariance @ X.T / np.outer(first.sigma, first.sigma)
    assert largest(C - first.covariance / np.outer(first.sigma, first.sigma)) < tolerance
    rows = {back.name(r.row): r for r in other.rows}
    for one in first.rows:
        row = rows[one.row]
        unit = back.scale(row.unit)
        assert row.samples == one.samples
        for a, b in ((row.rms, one.rms), (row.measured_rms, one.measured_rms)):
            assert abs(a / unit / b - 1.0) < tolerance
        noise = (
            row.sigma * other.residual_sigma,
            one.sigma * first.residual_sigma,
        )  # weights without a unit leave it to the second
        assert abs(noise[0] / unit / noise[1] - 1.0) < tolerance
    assert len(other.findings) == len(first.findings)
    assert len(other.notes) == len(first.notes)
    assert bool(other.disagreement) == bool(first.disagreement)


def largest(differences: ArrayLike) -> float:
    """The largest magnitude; NaN where there is one."""
    return float(np.max(np.abs(np.asarray(differences, dtype=np.float64)), initial=0.0))
