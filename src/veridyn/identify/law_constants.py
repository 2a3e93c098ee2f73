"""Constants inside the laws of elements as a fit gives them, with their covariance beside that of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.model.constants import Constant
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
DEFAULT_CONSTANT_SIZE = 1e-2  # rad, m and so on: the size of a constant whose value says nothing about it


@dataclass(frozen=True, eq=False)
class LawConstants:
    """`constants` with their estimated values; `covariance` (k, k) of them, `cross` (k, p) with the base parameters of the fit."""

    constants: tuple[Constant, ...]
    covariance: Array
    cross: Array

    @classmethod
    def of(cls, machine: Machine, names: Sequence[str], values: Array, covariance: Array) -> LawConstants:
        """Of constants of a tree by name; `covariance` (k, p + k) with the base parameters, then with each other."""
        known, p = {c.name: c for c in machine.constants}, covariance.shape[1] - len(names)
        found = tuple(replace(known[n], value=float(v)) for n, v in zip(names, values, strict=True))
        return cls(found, covariance[:, p:], covariance[:, :p])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.constants)

    @property
    def values(self) -> Array:
        return np.array([c.value for c in self.constants])

    @property
    def sigma(self) -> Array:
        """Standard deviations, (k,)."""
        return np.sqrt(np.diag(self.covariance))

    def lines(self) -> list[str]:
        """One line for each constant."""
        return [
            f"{c.name}: {c.value:.6g} ± {sigma:.2g} {c.unit}"
            for c, sigma in zip(self.constants, self.sigma, strict=True)
        ]
