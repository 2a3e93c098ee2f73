"""R factors of the equations of rows, built block by block, merged in any order, and stacked with a weight for each row.

With A = [W_j | Y_j], RᵀR = AᵀA: everything least squares needs from any number of samples is in one small triangle. It takes
in blocks of equations by compiled QR steps, free of the interpreter's lock and of a threaded BLAS.

Many small factors are turned with one BLAS thread. A threaded BLAS shares out every small product of a triangular QR and spends its time
waiting: on two cores the streaming of a log became ten times slower than on one thread. The samples are shared out instead, by the
caller's executor.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError
from veridyn.inference.error_measures import Moments, RowReport
from veridyn.model.parameters import ParameterSet
from veridyn.symbolic.kernel import Host, made_once, this_host
from veridyn.symbolic.qr_llvm import qr_program


@dataclass
class _Limit:
    """How many are inside, and what was found by the first of them: threads of one process share one BLAS."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    held: Any = None


_limit = _Limit()


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The BLAS libraries of this process; looked for again, which takes as long as a small fit, only after more was imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process until the last caller leaves."""
    with _limit.lock:
        if _limit.inside == 0:
            _limit.held = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
        _limit.inside += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.inside -= 1
            if _limit.inside == 0:
                _limit.held.restore_original_limits()
                _limit.held = None


def triangle_of(A: Array) -> Array:
    """R of a QR factorisation: RᵀR = AᵀA."""
    return np.asarray(np.linalg.qr(A, mode="r"))


GRAM_LIMIT = 1e6  # condition of the equilibrated columns beyond which products have lost the digits that matter
ROWS = 8  # the steps work on full groups of rows
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


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
        self.check_same_row(other)
        made = replace(self, R=self.R + other.R) if self.method == "gram" else self._absorbed(other.R)
        both = self.measured.merge(other.measured)
        return replace(made, samples=self.samples + other.samples, measured=both)

    def check_same_row(self, other: RowFactor) -> None:
        """Refuse a factor of another row, of other columns or made by another method."""
        if (self.row, self.columns, self.method) != (other.row, other.columns, other.method):
            raise DataError("factors of different rows cannot be merged.", found=f"'{self.row}' and '{other.row}'")

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
                "sums of products are unsafe here: squaring the condition loses the digits that separate the parameters.",
                where=f"row '{self.row}'",
                expected=f"a condition below {GRAM_LIMIT:.0e} (columns scaled to one length)",
                found=f"{condition:.2e}",
                hint="Use method='qr', or ask only for base parameters.",
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


def merge_in_order(start: Sequence[RowFactor], parts: Iterable[Sequence[RowFactor]]) -> tuple[RowFactor, ...]:
    """The factors of `start` and of all parts, merged one after the other as :meth:`RowFactor.merge` does, rows side by side."""
    own = [replace(f, R=np.array(f.R, order="F")) for f in start]
    for part in parts:
        for f, other in zip(own, part, strict=True):
            f.check_same_row(other)
        triangles = [f.R for f in own]
        if not any(f.samples for f in own):
            for R, other in zip(triangles, part, strict=True):
                R[...] = other.R
        elif any(f.method == "gram" for f in own):
            for R, other in zip(triangles, part, strict=True):
                R += other.R
        else:
            absorb_all(triangles, [np.array(other.R, order="F") for other in part])
        own = [
            replace(f, samples=f.samples + other.samples, measured=f.measured.merge(other.measured))
            for f, other in zip(own, part, strict=True)
        ]
    return tuple(own)


def empty(row: str, columns: tuple[int, ...], method: Literal["qr", "gram"] = "qr", unit: str = "") -> RowFactor:
    """The factor of no equations."""
    size = len(columns) + 1
    return RowFactor(row, columns, np.zeros((size, size), order="F"), 0, method, unit=unit)


@dataclass(frozen=True, eq=False)
class RowFactors:
    """The factors of all rows, over the estimated parameters of one set."""

    parameters: ParameterSet
    rows: tuple[RowFactor, ...]

    def merge(self, other: RowFactors) -> RowFactors:
        """Both logs together. The rows and the parameters must be the same."""
        names = [f.row for f in self.rows], [f.row for f in other.rows]
        if self.parameters.names != other.parameters.names or names[0] != names[1]:
            raise DataError(
                "observations of different models or rows cannot be merged.", found=f"{names[0]} and {names[1]}"
            )
        return RowFactors(self.parameters, tuple(a.merge(b) for a, b in zip(self.rows, other.rows, strict=True)))

    def of_first(self, parameters: ParameterSet) -> RowFactors:
        """The factors over the columns of `parameters` alone, which are the first of these."""
        rows = []
        for f in self.rows:
            own = [k for k, c in enumerate(f.columns) if c < len(parameters)]
            rows.append(replace(f, columns=tuple(f.columns[k] for k in own), R=triangle_of(f.R[:, [*own, -1]])))
        return RowFactors(parameters, tuple(rows))

    @property
    def columns(self) -> tuple[int, ...]:
        """The estimated parameters that affect some row, in order."""
        return tuple(sorted({c for f in self.rows for c in f.columns}))

    @property
    def samples(self) -> int:
        """Equations in all."""
        return sum(f.samples for f in self.rows)

    def stacked(self, weights: Sequence[float]) -> Array:
        """The R factor of all rows together, each times its weight, over :attr:`columns` and the measurement: P W, P Y of (25)."""
        place = {c: k for k, c in enumerate(self.columns)}
        size = len(place) + 1
        wide = np.zeros((max(size, sum(len(f.R) for f in self.rows)), size))
        first = 0
        for f, weight in zip(self.rows, weights, strict=True):
            own = wide[first : first + len(f.R)]
            own[:, [*(place[c] for c in f.columns), -1]] = weight * f.R
            first += len(f.R)
        return triangle_of(wide)


def absorb(R: Array, A: Array, host: Host | None = None) -> None:
    """R becomes the R factor of [R; A], in place; A is used up. Both in column order, R upper triangular.

    Full groups of eight rows are used where they lie; anything else is copied first. Columns are measured by plain sums of squares:
    entries between 1e-140 and 1e140 are safe, beyond them squares leave the range of double precision.
    """
    absorb_all([R], [A], host)


def absorb_all(triangles: Sequence[Array], blocks: Sequence[Array], host: Host | None = None) -> None:
    """:func:`absorb` for many triangles in one call, so that threads meet at the interpreter's lock once a block."""
    wide = [_full_groups(A) for A in blocks]
    lines = [
        (len(A), A.shape[1], R.ctypes.data, R.strides[1] // 8, A.ctypes.data, A.strides[1] // 8)
        for R, A in zip(triangles, wide, strict=True)
        if len(A)
    ]
    if lines:
        table, work = np.array(lines, dtype=np.int64), np.empty(128)
        _steps(host or this_host())(len(lines), table.ctypes.data, work.ctypes.data)


def _full_groups(A: Array) -> Array:
    full = -(-len(A) // ROWS) * ROWS
    if full == len(A) and (A.strides[0] == A.itemsize or not len(A)):
        return A
    whole = np.zeros((full, A.shape[1]), order="F")
    whole[: len(A)] = A
    return whole


def _steps(host: Host) -> Callable[..., None]:
    return made_once("triangular QR", lambda: qr_program(host.width), host, "take_in", _SIGNATURE)
