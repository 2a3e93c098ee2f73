"""numba's compiler with its types kept: a compiled function is called like the one it was written as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from veridyn.mechanics.kept_code import keep_code
from veridyn.mechanics.linked import linked_options

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """`function` as machine code, made at the first call; divisions by zero give inf or nan, as in NumPy."""
    return cast(Function, numba.njit(error_model="numpy", nogil=True)(function))


def inner(function: Function) -> Function:
    """:func:`compiled`, for functions that only compiled code calls: without doors for Python, a fifth of the compiler's time."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, **options)(function))


def lean(function: Function) -> Function:
    """:func:`compiled`, for functions that make no arrays and call none that do: no references are counted.

    Counting them costs more than the work itself where a small function is handed many tables.
    """
    options: dict[str, Any] = {"_nrt": False}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, **options)(function))


def core(function: Function) -> Function:
    """:func:`lean` and :func:`inner` in one, for functions that only compiled code calls and that are handed whole records.

    Beware of a literal True or False as an argument: numba compiles the function once more for each.
    """
    options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, **options)(function))


def summing(function: Function) -> Function:
    """:func:`core`, for sums whose order does not matter: several numbers at a time, so that none waits for the one before it."""
    options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(
        Function, numba.njit(error_model="numpy", nogil=True, fastmath={"reassoc", "contract"}, **options)(function)
    )


def inlined(function: Function) -> Function:
    """`function` written out wherever compiled code calls it: the only way in which a :func:`core` function has a view from another."""
    return cast(Function, numba.njit(inline="always")(function))


def address_of(function: Callable[..., Any], signature: tuple[Any, ...]) -> int:
    """The address at which compiled code can call a :func:`kept` function of numbers as a function of C; compiled or loaded now.

    Code that calls it so does not contain it, and need not be compiled again with it.
    """
    dispatcher = cast(Any, function)
    dispatcher.compile(signature)
    made = dispatcher.overloads[signature]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name))


def kept(function: Function) -> Function:
    """:func:`compiled`, with the machine code kept on disk for the next process; for functions that are called from Python.

    The code is found again only while all sources that the function can depend on are the same; see
    :class:`veridyn.mechanics.kept_code.KeptCode`.
    """
    made = compiled(function)
    keep_code(made, function)
    return made
