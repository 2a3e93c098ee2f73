"""How well the parameters of a machine are known: their covariance, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError, part_at

Array = NDArray[np.float64]
NEGATIVE_EIGENVALUE = 1e-9  # of the largest eigenvalue of the correlations: a negative one below it is rounding


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance (k, k) of the parameters `names`, in their units squared; parameters that are not named are exact."""

    names: tuple[str, ...]
    covariance: Array

    def __post_init__(self) -> None:
        C = np.array(self.covariance, dtype=np.float64)
        k = len(self.names)
        where = part_at("uncertainty")
        if C.shape != (k, k) or not np.isfinite(C).all():
            raise ModelError(
                Fault("the covariance does not fit its parameters.", where, f"({k}, {k}) finite numbers", f"{C.shape}")
            )
        if len(set(self.names)) < k:
            raise ModelError(Fault("a parameter is named twice.", where, found=", ".join(self.names)))
        deviations = np.sqrt(np.maximum(np.diag(C), 0.0))
        size = np.where(deviations > 0.0, deviations, 1.0)
        least = float(np.linalg.eigvalsh((C + C.T) / np.outer(size, size) / 2.0)[0]) if k else 0.0
        if (np.diag(C) < 0.0).any() or least < -NEGATIVE_EIGENVALUE * max(k, 1):
            raise ModelError(
                Fault("the covariance is not positive semi-definite.", where, found=f"an eigenvalue of {least:.3g}")
            )
        object.__setattr__(self, "covariance", (C + C.T) / 2.0)

    @property
    def sigma(self) -> Array:
        """Standard deviations (k,)."""
        return np.sqrt(np.diag(self.covariance))

    def without(self, names: tuple[str, ...]) -> Uncertainty:
        """The same of the other parameters."""
        keep = [i for i, name in enumerate(self.names) if name not in names]
        return Uncertainty(tuple(self.names[i] for i in keep), self.covariance[np.ix_(keep, keep)])

    def draw(self, values: Array, rng: np.random.Generator, size: int | None = None) -> Array:
        """Values (k,), or (size, k), drawn around `values` (k,)."""
        eigenvalues, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        shape = (len(self.names),) if size is None else (size, len(self.names))
        return values + rng.standard_normal(shape) @ root.T
