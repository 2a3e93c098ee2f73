"""numba's compiler with its types kept: a compiled function is called like the one it was written as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """`function` as machine code, made at the first call; divisions by zero give inf or nan, as in NumPy."""
    return cast(Function, numba.njit(error_model="numpy", nogil=True)(function))
