"""One work record for compiled stepping: named vectors and matrices that lie one behind the other in one array of doubles.

A compiled function that is handed many arrays, or a tuple of them, takes minutes to compile; handed one array of doubles and one of whole
numbers it takes seconds. A section is a name's place in the record: ``W[I[M] + i * nv + j]`` is entry (i, j) of the section M.
Kernels of expressions read and write sections directly, by the addresses of their entries.

n coordinates, nv velocities, nq numbers of a configuration, m equations of loops, f degrees of freedom; behind the state (z, ż) stand the
unknown quantities: k forces, then what varies (loads, parameters, constants of elements' laws), then the s states that elements have of
their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics import linear
from veridyn.mechanics.compiled import core, inlined
from veridyn.symbolic.emit_llvm import place_stride
from veridyn.symbolic.kernel import Kernel

HEADER = ("free", "n", "nv", "nq", "m", "f", "forces", "varying", "held", "states", "blocks", "advance")
SECTIONS = (
    # what the kernels read: configuration, velocity, acceleration, forces of cut joints, what acts from outside; their parameters
    "X", "V", "A", "LAM", "OUTSIDE", "P_MOTION", "P_TANGENT",
    # what they write: M, Γ − h, the loops' Φ_q, Φ, b and the rates of elements' states; derivatives of all these; Φ_q, Φ while loops close
    "M", "LOAD", "J", "OPENING", "DRIFT", "STATE_RATE",
    "BY_X", "BY_V", "LOOPS_BY_X", "LOOPS_BY_V", "SLOPE_RATES", "COLUMNS", "RATE_BY_X", "RATE_BY_V", "RATE_COLUMNS",
    "J_CLOSING", "OPEN_CLOSING",
    # results: ∂x/∂z, ∂v/∂z; derivatives of a, λ and the states' rates with respect to (z, ż, u); the derivative of the step
    "R", "V_Z", "A_X", "LAM_X", "S_X", "F",
    # given for a step: where it starts, change from there, rates, generalised forces, columns B of the unknown forces, the unknown
    # quantities; q, q̇, q̈ of the prescribed coordinates at the time of the inputs, and the time since then
    "START", "DELTA", "RATE", "EXTRA", "B", "UNIT", "UNKNOWN", "GIVEN", "CLOCK",
    # room; KEPT: the step (s) that the factors of N were made for, 0 where there are none; AGE: the steps since then; PACE: what a change
    # of Newton's method left of the one before when both were last computed, over the age then, and how large that was; 0 before;
    # SPENT: trials of the step in hand, the fewest that a step took with these factors, and those beyond it of all steps since then
    "DEP", "MASS", "RM", "N", "BEFORE", "BEFORE_S", "T0", "T1", "NV_A", "NV_B", "M_A", "M_B", "F_B", "A0", "A1", "TRIED",
    "S0", "S1", "S_RATE", "S_SIZE", "LEFT", "CHANGE", "BOTH", "KEPT", "AGE", "ENOUGH", "PACE", "SPENT", "BEGUN", "RIGHT", "LOOPS_RIGHT",
)  # fmt: skip
# Loops that share no dependent coordinate are blocks of their own: block b has the equations EQUATION[i] and the dependent coordinates
# POSITION[i] (numbers in DEPENDENT) for BLOCK[b] <= i < BLOCK[b + 1], its factors begin at DEP + FACTOR[b]. OWN: the velocities that are
# independent rates. Column c of R has entries besides its own in the rows TIED[i] of the velocities, TIED_FROM[c] <= i < TIED_FROM[c + 1],
# and reaches the blocks REACHED[i], REACHED_FROM[c] <= i < REACHED_FROM[c + 1].
LISTS = (
    "Z", "DEPENDENT", "PRESCRIBED", "SLOT_MOTION", "SLOT_TANGENT", "PIVOT_DEP", "PIVOT_MASS", "PIVOT_N",
    "OWN", "BLOCK", "FACTOR", "EQUATION", "POSITION", "TIED_FROM", "TIED", "REACHED_FROM", "REACHED",
)  # fmt: skip
KERNELS = ("MOTION", "TANGENT", "CLOSING")
(FREE, COUNT, COUNT_V, COUNT_Q, LOOPED, FREEDOM, FORCES, VARYING, HELD, STATES, BLOCKS, ADVANCE) = range(len(HEADER))
(
    X, V, A, LAM, OUTSIDE, P_MOTION, P_TANGENT,
    M, LOAD, J, OPENING, DRIFT, STATE_RATE,
    BY_X, BY_V, LOOPS_BY_X, LOOPS_BY_V, SLOPE_RATES, COLUMNS, RATE_BY_X, RATE_BY_V, RATE_COLUMNS,
    J_CLOSING, OPEN_CLOSING,
    R, V_Z, A_X, LAM_X, S_X, F,
    START, DELTA, RATE, EXTRA, B, UNIT, UNKNOWN, GIVEN, CLOCK,
    DEP, MASS, RM, N, BEFORE, BEFORE_S, T0, T1, NV_A, NV_B, M_A, M_B, F_B, A0, A1, TRIED,
    S0, S1, S_RATE, S_SIZE, LEFT, CHANGE, BOTH, KEPT, AGE, ENOUGH, PACE, SPENT, BEGUN, RIGHT, LOOPS_RIGHT,
) = range(len(HEADER), len(HEADER) + 3 * len(SECTIONS), 3)  # fmt: skip
_after = len(HEADER) + 3 * len(SECTIONS)
(
    Z, DEPENDENT, PRESCRIBED, SLOT_MOTION, SLOT_TANGENT, PIVOT_DEP, PIVOT_MASS, PIVOT_N,
    OWN, BLOCK, FACTOR, EQUATION, POSITION, TIED_FROM, TIED, REACHED_FROM, REACHED,
) = range(_after, _after + 2 * len(LISTS), 2)  # fmt: skip
_after += 2 * len(LISTS)
(MOTION, TANGENT, CLOSING) = range(_after, _after + 6 * len(KERNELS), 6)
DONE, SINGULAR, UNSETTLED = 0, 1, 2  # how a step ended
# What is asked for: position and velocity alone; accelerations; derivatives, the step's too; also those of λ; derivatives at the end alone;
# accelerations after a step from a state whose own accelerations the record has.
PLACE, STATE, TANGENTS, REACTIONS, SLOPES, ONWARD = -1, 0, 1, 2, 3, 4


Numbers = NDArray[np.int64]
Place = int | NDArray[np.signedinteger[Any]]  # a number of I, or a sum of some, which NumPy's types take for an array


@dataclass(eq=False)
class TreeRecord:
    """`W` holds the sections, `I` where each begins and its shape, then lists of whole numbers and the addresses of kernels.

    It belongs to one caller at a time. `held` keeps alive what addresses point to.
    """

    W: Array
    I: Numbers
    parts: Mapping[int, Array]
    held: list[object] = field(default_factory=list)


def record_of(
    shapes: Sequence[tuple[int, int]], lists: Sequence[Sequence[int]], kernels: int, header: Sequence[int] = ()
) -> TreeRecord:
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
    return TreeRecord(W, I, parts)


def connect(
    record: TreeRecord, at: int, kernel: Kernel, parameters: int, inputs: Sequence[int], outputs: Sequence[int]
) -> None:
    """Let a kernel of one sample a call read and write the record: entries of W by number, its parameters from entry `parameters` on.

    `at`: where in I its six addresses stand.
    """
    inward, outward = (addresses_in(record.W, places) for places in (inputs, outputs))
    record.I[at : at + 6], held = call_addresses(kernel, inward, outward, record.W.ctypes.data + 8 * parameters)
    record.held += held


def addresses_in(numbers: Array, places: Iterable[int]) -> NDArray[np.uintp]:
    """Where numbers of an array in one piece stand, by their places, and one address more, as :func:`call_addresses` takes them."""
    return numbers.ctypes.data + 8 * np.array([*places, 0], dtype=np.uintp)


def call_addresses(
    kernel: Kernel, inputs: NDArray[np.uintp], outputs: NDArray[np.uintp], parameters: int
) -> tuple[list[int], list[object]]:
    """The six numbers by which :func:`call_kernel` calls a kernel of one sample, and what must be kept alive for as long.

    `inputs` and `outputs`: an address for each, and one more that is not read; `parameters`: where they begin.
    """
    strides = np.zeros(len(inputs), dtype=np.int64)
    work = np.zeros(kernel.places * place_stride(kernel.block) + 8)
    function = ctypes.cast(cast(Any, kernel.function), ctypes.c_void_p).value
    assert function is not None  # a kernel has been loaded
    found = [function, inputs.ctypes.data, strides.ctypes.data, parameters, outputs.ctypes.data, work.ctypes.data]
    return found, [kernel, inputs, strides, outputs, work]


@core
def factor(I: Numbers, W: Array, at: int, size: int, pivot: int) -> bool:
    """:func:`veridyn.mechanics.linear.factor` of the matrix that begins at W[at], with pivots from I[pivot] on."""
    return linear.factor(W[at : at + size * size].reshape(size, size), I[pivot : pivot + size])


@core
def solve(I: Numbers, W: Array, at: int, size: int, pivot: int, x: int) -> None:
    """:func:`veridyn.mechanics.linear.solve` with the factors of :func:`factor`, for the right side that begins at W[x], in place."""
    linear.solve(W[at : at + size * size].reshape(size, size), I[pivot : pivot + size], W[x : x + size])


@core
def solve_many(I: Numbers, W: Array, at: int, size: int, pivot: int, X: Array) -> None:
    """:func:`veridyn.mechanics.linear.solve_many` with the factors of :func:`factor`, for right sides X (size, k), in place."""
    linear.solve_many(W[at : at + size * size].reshape(size, size), I[pivot : pivot + size], X)


@inlined
def matrix(W: Array, at: int, rows: int, columns: int) -> Array:
    """The matrix that begins at W[at]."""
    return W[at : at + rows * columns].reshape(rows, columns)


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


def _stepped(
    typing_context: Any, numbers: Any, at: Any, values: Any, h: Any, derivative: Any
) -> tuple[Any, Callable[..., Any]]:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers, values = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2))
        whole, real = ir.IntType(64), ir.DoubleType()
        kind = ir.FunctionType(whole, [whole] * 4 + [real, whole])
        place = cgutils.gep(builder, numbers.data, args[1])
        function = builder.inttoptr(builder.load(place), kind.as_pointer())
        given = []
        for array in (numbers, values):
            given += [builder.ptrtoint(array.data, whole), cgutils.unpack_tuple(builder, array.shape)[0]]
        return builder.call(function, [*given, args[3], args[4]])

    return types.int64(numbers, types.int64, values, types.float64, types.int64), codegen


_stepped.__doc__ = (
    "step(addresses and lengths of I and W, h, derivative) with the function whose address stands at `at` in I."
)
call_step: Callable[[Numbers, int, Array, float, int], int] = cast(Any, intrinsic(_stepped))


def _pointed(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


_pointed.__doc__ = "An address as a pointer, for ``carray``."
as_pointer: Callable[[int], Any] = cast(Any, intrinsic(_pointed))


def _viewed(typing_context: Any, values: Any, at: Any, count: Any) -> tuple[Any, Callable[..., Any]]:
    kind = types.Array(types.float64, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source: Any = make_array(signature.args[0])(context, builder, args[0])
        found: Any = make_array(kind)(context, builder)
        one = context.get_constant(types.intp, 8)
        data = builder.gep(source.data, [args[1]])
        populate_array(found, data=data, shape=[args[2]], strides=[one], itemsize=one, meminfo=None)
        return found._getvalue()

    return kind(values, types.int64, types.int64), codegen


_viewed.__doc__ = (
    "The `count` numbers of W from `at` on, without a look at its ends, and within functions that count no references: loops over it are "
    "vectorised, where an index of a sum might be negative to numba, and a slice costs more than the few numbers that it holds."
)
view: Callable[[Array, Place, Place], Array] = cast(Any, intrinsic(_viewed))
