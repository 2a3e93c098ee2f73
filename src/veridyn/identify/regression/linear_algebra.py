"""Linear algebra of many small factors: one BLAS thread while they are turned, and the R factor by NumPy.

A threaded BLAS shares out every small product of a triangular QR and spends its time waiting: on two cores the streaming of a log became
ten times slower than on one thread. The samples are shared out instead, by the caller's executor.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from veridyn.arrays import Array


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
