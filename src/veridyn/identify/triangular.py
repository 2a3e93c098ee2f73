"""The triangle that takes in blocks of equations: compiled QR steps, free of the interpreter's lock and of a threaded BLAS."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.host import Host, this_host
from veridyn.symbolic.kernel import compile_object, loaded
from veridyn.symbolic.qr_llvm import qr_program

Array = NDArray[np.float64]
ROWS = 8  # the step works on full groups of rows
_SIGNATURE = ctypes.CFUNCTYPE(
    None,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
)


def absorb(R: Array, A: Array, host: Host | None = None) -> None:
    """R becomes the R factor of [R; A], in place; A is used up. Both in column order, R upper triangular.

    Full groups of eight rows are used where they lie; anything else is copied first.
    """
    rows, size = A.shape
    if not rows:
        return
    full = -(-rows // ROWS) * ROWS
    if full != rows or A.strides[0] != 8:
        whole = np.zeros((full, size), order="F")
        whole[:rows] = A
        A = whole
    work = np.empty(128)
    step = _step(host or this_host())
    step(full, size, R.ctypes.data, R.strides[1] // 8, A.ctypes.data, A.strides[1] // 8, work.ctypes.data)


def _step(host: Host) -> Callable[..., None]:
    return remembered(f"triangular QR {host.signature}", lambda: _made(host))


def _made(host: Host) -> Callable[..., None]:
    text = qr_program(host.width)
    stored = load_or_make(key_of(text, host.signature), lambda: Stored(compile_object(text, host), {}))
    return loaded(stored.code, "qr", _SIGNATURE)
