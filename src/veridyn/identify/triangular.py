"""The triangle that takes in blocks of equations: compiled QR steps, free of the interpreter's lock and of a threaded BLAS."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.host import Host, this_host
from veridyn.symbolic.kernel import compile_object, loaded
from veridyn.symbolic.qr_llvm import qr_program

Array = NDArray[np.float64]
ROWS = 8  # the steps work on full groups of rows
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


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
    return remembered(f"triangular QR {host.signature}", lambda: _made(host))


def _made(host: Host) -> Callable[..., None]:
    text = qr_program(host.width)
    stored = load_or_make(key_of(text, host.signature), lambda: Stored(compile_object(text, host), {}))
    return loaded(stored.code, "take_in", _SIGNATURE)
