"""A stretch of a log in one call, against NumPy: every width, with samples left out, gaps, borders and a measured force of its own."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

from veridyn.symbolic.emit_llvm import emit
from veridyn.symbolic.expression import Graph
from veridyn.symbolic.kernel import Kernel, compile_object, loaded, padded, this_host
from veridyn.symbolic.stream_llvm import LINE, MOMENTS, ROW, stream_program

WIDTHS = (1, 2, 4, 8)
COLUMNS = 5  # of the row below: x, x², x³, one that no kernel writes, and the known side


@cache
def stream(width: int):
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return loaded(compile_object(stream_program(width), this_host(width)), "stream", signature)


@cache
def powers() -> tuple[Kernel, tuple[int, ...]]:
    """x, x², x³ and 2 x of an input x, and the order in which the program has them."""
    g = Graph()
    x = g.input("x")
    program = emit(g, [x * 1.0 + 0.0, x * x, x * x * x, 2.0 * x], {"x": 0}, {}, this_host().width)
    return Kernel(compile_object(program.text), ("x",), (), 4, program.places), program.order


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def streamed(
    width: int,
    x: np.ndarray,
    force: np.ndarray,
    used: np.ndarray,
    *,
    step: int,
    block: int,
    apart: int = 2,
    own: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """R (5, 5) and the moments of one row; `own`: they are of the force itself, not of the right-hand side."""
    (kernel, order), room = powers(), padded(step) + 8
    table, R = np.full((COLUMNS, room), 7.5), np.zeros((COLUMNS, COLUMNS))
    rows = [0, 1, 2, 4]
    out = np.array([table[rows[k]].ctypes.data for k in order], dtype=np.uintp)
    pointers, strides, scratch = np.array([x.ctypes.data], dtype=np.uintp), numbers(x.strides[0] // 8), numbers(0)
    where = [a.ctypes.data for a in (pointers, strides, scratch, np.empty(1), out)]
    equations = numbers(kernel.address, 1, *where, kernel.work_address())
    moments, zero, y = np.zeros(MOMENTS), np.zeros(1), np.empty(step)
    row = numbers(
        *(COLUMNS, table.ctypes.data, room, R.ctypes.data, COLUMNS, force.ctypes.data, force.strides[0] // 8),
        *(zero.ctypes.data, 0, used.ctypes.data, 1, y.ctypes.data),
        *(y.ctypes.data if own else table[-1].ctypes.data, moments.ctypes.data),
    )
    assert len(row) == len(ROW)
    lines, work, places = np.empty(LINE, dtype=np.int64), np.empty(128), np.empty(step, dtype=np.int64)
    blank, none = np.array([table[3].ctypes.data], dtype=np.uintp), np.zeros(8, dtype=np.int64)
    stretch = numbers(
        *(len(x), step, block, 1, row.ctypes.data, lines.ctypes.data, work.ctypes.data, places.ctypes.data, apart),
        *(1, blank.ctypes.data, equations.ctypes.data, none.ctypes.data),
    )
    stream(width)(stretch.ctypes.data)
    return R.T, moments


def expected_moments(y: np.ndarray, used: np.ndarray, block: int, every: int) -> list[float]:
    """By definition: the mean and scatter of all, and second differences of three that follow each other within a block."""
    kept = np.flatnonzero(used)
    triples = [
        y[k - every] - 2.0 * y[k] + y[k + every]
        for k in kept
        if every <= k < len(y) - every
        and used[k - every]
        and used[k + every]
        and (k - every) // block == (k + every) // block
    ]
    off = y[kept] - y[kept].mean()
    return [len(kept), y[kept].mean(), off @ off, float(np.sum(np.square(triples))), len(triples)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("step", "block", "every"), [(64, 150, 1), (128, 128, 1), (192, 450, 3), (512, 1000, 1)])
def test_a_row_and_its_moments(width: int, own: bool, step: int, block: int, every: int) -> None:
    rng = np.random.default_rng(step + every)
    N = 1003
    inputs, forces = rng.normal(size=(N, 3)), rng.normal(size=(N, 2)) + 4.0
    x, force = inputs[:, 1], forces[:, 1]
    force[[5, 6, 400]] = np.nan
    force[77] = np.inf
    used = (np.arange(N) % every == 0) & (rng.random(N) < 0.9)
    R, moments = streamed(width, x, force, used.astype(np.uint8), step=step, block=block, apart=2 * every, own=own)
    side = force - 2.0 * x
    taken = used & np.isfinite(side)
    A = np.column_stack([x, x**2, x**3, np.zeros(N), side])[taken]
    size = np.linalg.norm(A, axis=0)
    assert (np.abs(R.T @ R - A.T @ A) <= 1e-13 * len(A) * np.outer(size, size)).all()
    assert np.array_equal(np.tril(R, -1), np.zeros((COLUMNS, COLUMNS)))
    y = np.where(taken, force if own else side, 0.0)
    assert moments[:5] == pytest.approx(expected_moments(y, taken, block, every), rel=1e-12)


def test_a_stretch_without_a_sample_in_use_leaves_everything_as_it_was() -> None:
    x = np.ones(300)
    R, moments = streamed(this_host().width, x, x.copy(), np.zeros(300, dtype=np.uint8), step=64, block=128)
    assert not R.any() and not moments[:5].any()


def test_a_large_mean_costs_no_digits_of_the_second_differences() -> None:
    """Of 1e6 with noise 1e-3: the differences of neighbours are exact, so that their squares keep ten digits."""
    rng = np.random.default_rng(0)
    x, force = np.zeros(900), 1e6 + 1e-3 * rng.normal(size=900)
    used = np.ones(900, dtype=np.uint8)
    _, moments = streamed(this_host().width, x, force, used, step=128, block=900, own=True)
    second = np.diff(force.astype(np.longdouble), n=2)
    assert moments[3] == pytest.approx(float(second @ second), rel=1e-12)
