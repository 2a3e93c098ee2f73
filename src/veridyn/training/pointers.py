"""In compiled code: numbers that lie at an address, and a call of a C function whose address is a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Numbers


def _lying(dtype: Any) -> Callable[..., Any]:
    kind = types.Array(dtype, 1, "C")

    def typed(typing_context: Any, address: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found: Any = make_array(kind)(context, builder)
            size = context.get_constant(types.intp, 8)
            data = builder.inttoptr(args[0], found.data.type)
            populate_array(found, data=data, shape=[args[1]], strides=[size], itemsize=size, meminfo=None)
            return found._getvalue()

        return kind(types.int64, types.int64), codegen

    return typed


def _called(typing_context: Any, address: Any, arguments: Any) -> tuple[Any, Callable[..., Any]]:
    count = len(arguments)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = ir.IntType(64)
        given = [
            context.cast(builder, builder.extract_value(args[1], k), own, types.int64)
            for k, own in enumerate(signature.args[1])
        ]
        kind = ir.FunctionType(whole, [whole] * count)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), given)

    return types.int64(types.int64, arguments), codegen


_doubles, _words = _lying(types.float64), _lying(types.int64)
_doubles.__doc__ = "The `count` doubles that lie at an address; whoever asks keeps them there."
_words.__doc__ = "The `count` 64-bit integers that lie at an address; whoever asks keeps them there."
_called.__doc__ = (
    "function(arguments…) at an address, with a tuple of 64-bit integers, pointers among them, and one as its result; smaller integers are "
    "passed so too where a register holds one argument."
)
doubles: Callable[[int, int], Array] = cast(Any, intrinsic(_doubles))
words: Callable[[int, int], Numbers] = cast(Any, intrinsic(_words))
invoke: Callable[[int, tuple[Any, ...]], int] = cast(Any, intrinsic(_called))
