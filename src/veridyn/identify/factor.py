"""The R factor of one row's equations, built block by block.

With A = [W_j | Y_j], RᵀR = AᵀA: everything least squares needs from any number of samples is in one small triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, IdentificationError
from veridyn.identify.error_measures import Moments, RowReport
from veridyn.identify.triangular import absorb_all
from veridyn.identify.upper import triangle_of

Array = NDArray[np.float64]

GRAM_LIMIT = 1e6  # condition of the equilibrated columns beyond which products have lost the digits that matter


@dataclass(frozen=True, eq=False)
class RowFactor:
    """`R` (p + 1, p + 1), upper triangular, of a row's columns and, last, its measurement; `samples` equations went in.

    While a "gram" factor is being summed, `R` holds AᵀA; :meth:`finished` turns it into the triangle or refuses. `measured`: moments of the
    row's measured force, from which known parameters are not subtracted; `unit`: its unit.
    """

    row: str
    columns: tuple[int, ...]
    R: Array
    samples: int = 0
    method: Literal["qr", "gram"] = "qr"
    measured: Moments = field(default_factory=Moments, kw_only=True)
    unit: str = field(default="", kw_only=True)

    def absorb(self, A: Array) -> RowFactor:
        """The factor after the equations A (n, p + 1) as well, whose last column is the measured force."""
        both = self.measured.merge(Moments.of(np.asarray(A)[:, -1]))
        return replace(self._absorbed(A), samples=self.samples + len(A), measured=both)

    def _absorbed(self, A: Array) -> RowFactor:
        R = np.array(self.R, order="F")
        accumulate([R], [np.array(A, order="F")], self.method)
        return replace(self, R=R)

    def merge(self, other: RowFactor) -> RowFactor:
        """The factor of both sets of equations."""
        if (self.row, self.columns, self.method) != (other.row, other.columns, other.method):
            raise DataError(
                Fault("factors of different rows cannot be merged.", found=f"'{self.row}' and '{other.row}'")
            )
        made = replace(self, R=self.R + other.R) if self.method == "gram" else self._absorbed(other.R)
        both = self.measured.merge(other.measured)
        return replace(made, samples=self.samples + other.samples, measured=both)

    def finished(self) -> RowFactor:
        """The triangle; a gram factor becomes one by Cholesky, or is refused where its condition makes it unsafe."""
        if self.method == "qr":
            return self
        scale = np.sqrt(np.diag(self.R))
        alive = scale > 0
        G = (self.R / np.where(alive, scale, 1.0)) / np.where(alive, scale, 1.0)[:, None]
        W = G[:-1, :-1][np.ix_(alive[:-1], alive[:-1])]
        values = np.linalg.eigvalsh(W) if len(W) else np.ones(1)
        condition = np.sqrt(values[-1] / max(values[0], np.finfo(float).tiny)) if values[0] > 0 else np.inf
        if condition > GRAM_LIMIT:
            raise IdentificationError(
                Fault(
                    "sums of products are unsafe here: squaring the condition loses the digits that separate the parameters.",
                    where=f"row '{self.row}'",
                    expected=f"a condition below {GRAM_LIMIT:.0e} (columns scaled to one length)",
                    found=f"{condition:.2e}",
                    hint="Use method='qr', or ask only for base parameters.",
                )
            )
        values, V = np.linalg.eigh(G)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * V.T
        R = triangle_of(root * np.where(alive, scale, 0.0))
        return replace(self, R=R, method="qr")

    @property
    def measurement_norm(self) -> float:
        """‖Y_j‖, the measured side without known parameters."""
        return float(np.linalg.norm(self.R[:, -1]))

    def residual(self, values: Array) -> float:
        """‖Y_j − W_j x‖ for values x of the row's columns."""
        return float(np.linalg.norm(self.R[:, -1] - self.R[:, :-1] @ values))

    def report(self, values: Array, sigma: float = float("nan")) -> RowReport:
        """Errors that values of the row's columns leave; `sigma` is the weight's standard deviation."""
        rms, m = self.residual(values) / float(np.sqrt(max(self.samples, 1))), self.measured
        return RowReport(self.row, self.samples, rms, m.rms, sigma, measured_std=m.std, noise=m.noise, unit=self.unit)


def accumulate(factors: Sequence[Array], blocks: Sequence[Array], method: Literal["qr", "gram"]) -> None:
    """Take blocks of equations into their factors, in place; the blocks, in column order, may be used up."""
    if method == "qr":
        absorb_all(factors, blocks)
        return
    for R, A in zip(factors, blocks, strict=True):
        R += A.T @ A


def empty(row: str, columns: tuple[int, ...], method: Literal["qr", "gram"] = "qr", unit: str = "") -> RowFactor:
    """The factor of no equations."""
    size = len(columns) + 1
    return RowFactor(row, columns, np.zeros((size, size), order="F"), 0, method, unit=unit)
