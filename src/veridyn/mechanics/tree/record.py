"""One work record for compiled stepping: named vectors and matrices that lie one behind the other in one array of doubles.

A compiled function that is handed many arrays, or a tuple of them, takes minutes to compile; handed one array of doubles and one of whole
numbers it takes seconds. A section is a name's place in the record: ``W[I[M] + i * columns + j]`` is an entry of section M.
Kernels of expressions read and write sections directly, by the addresses of their entries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from veridyn.mechanics.compiled import lean
from veridyn.symbolic.emit_llvm import place_stride
from veridyn.symbolic.kernel import Kernel

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(eq=False)
class Record:
    """`W` holds the sections, `I` where each begins and its shape, then lists of whole numbers and the addresses of kernels.

    It belongs to one caller at a time. `held` keeps alive what addresses point to.
    """

    W: Array
    I: Numbers
    parts: Mapping[int, Array]
    held: list[object] = field(default_factory=list)


def record_of(
    shapes: Sequence[tuple[int, int]], lists: Sequence[Sequence[int]], kernels: int, header: Sequence[int] = ()
) -> Record:
    """A record with a section (rows, columns) for each shape, lists of whole numbers behind them, and room for `kernels` kernels.

    I = header, then (offset, rows, columns) of each section, (offset, length) of each list, six numbers for each kernel, the lists.
    """
    sizes = [a * b for a, b in shapes]
    starts = np.concatenate([[0], np.cumsum([-(-s // 8) * 8 for s in sizes])]).astype(int)
    W = np.zeros(max(1, int(starts[-1])))
    head = list(header)
    for start, (a, b) in zip(starts.tolist(), shapes):
        head += [start, a, b]
    after = len(head) + 2 * len(lists) + 6 * kernels
    for one in lists:
        head += [after, len(one)]
        after += len(one)
    I = np.array([*head, *[0] * (6 * kernels), *(k for one in lists for k in one)], dtype=np.int64)
    parts = {k: W[s : s + a * b].reshape(a, b) for k, (s, (a, b)) in enumerate(zip(starts.tolist(), shapes))}
    return Record(W, I, parts)


def connect(
    record: Record, at: int, kernel: Kernel, parameters: int, inputs: Sequence[int], outputs: Sequence[int]
) -> None:
    """Let a kernel of one sample a call read and write the record: entries of W by number, its parameters from entry `parameters` on.

    `at`: where in I its six addresses stand.
    """
    first = record.W.ctypes.data
    pointers = first + 8 * np.array([*inputs, 0], dtype=np.uintp)
    out = first + 8 * np.array([*outputs, 0], dtype=np.uintp)
    strides = np.zeros(len(pointers), dtype=np.int64)
    work = np.zeros(kernel.places * place_stride(kernel.block) + 8)
    function = ctypes.cast(cast(Any, kernel.function), ctypes.c_void_p).value
    addresses = (pointers.ctypes.data, strides.ctypes.data, first + 8 * parameters, out.ctypes.data, work.ctypes.data)
    record.I[at : at + 6] = [function, *addresses]
    record.held += [kernel, pointers, strides, out, work]


@lean
def factor(I: Numbers, W: Array, at: int, size: int, pivot: int) -> bool:
    """LU with row pivoting of the matrix that begins at W[at], in place; pivots from I[pivot] on. False: a pivot is zero or not finite."""
    for k in range(size):
        best, p = abs(W[at + k * size + k]), k
        for i in range(k + 1, size):
            if abs(W[at + i * size + k]) > best:
                best, p = abs(W[at + i * size + k]), i
        if not (best > 0.0 and np.isfinite(best)):
            return False
        I[pivot + k] = p
        if p != k:
            for j in range(size):
                W[at + k * size + j], W[at + p * size + j] = W[at + p * size + j], W[at + k * size + j]
        inverse = 1.0 / W[at + k * size + k]
        for i in range(k + 1, size):
            if W[at + i * size + k] != 0.0:
                W[at + i * size + k] *= inverse
                s = W[at + i * size + k]
                for j in range(k + 1, size):
                    W[at + i * size + j] -= s * W[at + k * size + j]
    return True


@lean
def solve(I: Numbers, W: Array, at: int, size: int, pivot: int, x: int) -> None:
    """Solve with the factors of :func:`factor` for the right side that begins at W[x], in place."""
    for k in range(size):
        p = I[pivot + k]
        if p != k:
            W[x + k], W[x + p] = W[x + p], W[x + k]
    for i in range(size):
        s = W[x + i]
        for j in range(i):
            s -= W[at + i * size + j] * W[x + j]
        W[x + i] = s
    for i in range(size - 1, -1, -1):
        s = W[x + i]
        for j in range(i + 1, size):
            s -= W[at + i * size + j] * W[x + j]
        W[x + i] = s / W[at + i * size + i]


def _called(typing_context: Any, numbers: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        whole, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [whole] * 3 + [pointer] * 5 + [whole])

        def address(k: int, of: Any) -> Any:
            place = cgutils.gep(builder, array.data, builder.add(values[1], ir.Constant(whole, k)))
            return builder.inttoptr(builder.load(place), of)

        function = address(0, kind.as_pointer())
        zero, one = ir.Constant(whole, 0), ir.Constant(whole, 1)
        builder.call(function, [zero, one, one, *(address(k, pointer) for k in range(1, 6)), zero])
        return context.get_dummy_value()

    return types.void(numbers, types.int64), codegen


_called.__doc__ = (
    "Call the kernel whose six addresses stand at `at` in I: kernel(0, 1, 1, in, stride, parameters, out, work, 0)."
)
call_kernel: Callable[[Numbers, int], None] = cast(Any, intrinsic(_called))
