"""The samples of a job in one call of machine code: tables filled, measured sides made, samples selected, triangles turned.

It computes what :meth:`~veridyn.identify.regression.equation_plan.EquationPlan.blocks` and
:func:`~veridyn.identify.regression.factor.accumulate` do block by block and row by row, for rows that no filter and no
other row enters. The interpreter's lock is free from the first sample of a job to the last, so that threads do not wait for one another.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.error_measures import Moments
from veridyn.identify.regression.tables import SymbolTables
from veridyn.mechanics.tree.dynamics.engine import sample_arrays, uniform_values
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.motion import Motion
from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.kernel import Host, compile_object, loaded, this_host
from veridyn.symbolic.stream_llvm import LINE, MOMENTS, ROW, stream_program

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
WORK_DOUBLES = 128  # that a QR step works in
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class RowSamples:
    """One row of a job: its triangle `R`, turned in place; its force Γ (N,), None for zero; and which samples it uses, None for all."""

    R: Array
    force: Array | None
    used: Mask | None


class ThreadMemory(threading.local):
    """Memory of this thread for one job after the other: fresh memory of some megabytes costs a few percent of a job."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def take(self, size: int) -> Array:
        """So many doubles, whatever they hold; good until the next call in this thread."""
        if len(self._memory) < size:
            self._memory = np.empty(size)
        return self._memory[:size]


def thread_memory() -> ThreadMemory:
    """The memory that the threads of this process keep."""
    return remembered("memory of streams", ThreadMemory)


def absorb_samples(
    tables: SymbolTables,
    beside: SymbolTables | None,
    subtracts: bool,
    motion: Motion,
    rows: Sequence[RowSamples],
    block: int,
    decimate: int = 1,
    host: Host | None = None,
) -> list[Moments]:
    """The triangles of `rows`, those of `tables` in order, take in the equations of a motion; returns the moments of their measured forces.

    `beside` writes what wrenches and known drive gains give of the measured force, where known parameters are subtracted from the
    equations (`subtracts`); otherwise the measured force is the right-hand side itself. The samples of a `block` go through the tables in
    steps that stay in cache; no second difference is taken across its borders, as where whole blocks are filled.
    """
    samples, width = len(motion), tables.width
    if not samples or not rows:
        return [Moments()] * len(rows)
    zero, always = np.zeros(1), np.ones(1, dtype=np.uint8)
    moments, own = np.zeros((len(rows), MOMENTS)), np.empty(tables.block)
    lines, places = np.empty((len(rows), LINE), dtype=np.int64), np.empty(tables.block, dtype=np.int64)
    work = np.empty(WORK_DOUBLES)
    equations, held = _kernel_record(tables, motion)
    second, held_beside = (np.zeros_like(equations), None) if beside is None else _kernel_record(beside, motion)
    start, table, kept = tables.buffer.ctypes.data, np.empty((len(rows), len(ROW)), dtype=np.int64), []
    for k, row in enumerate(rows):
        n = len(tables.columns[k]) + 1
        force = zero if row.force is None else row.force
        used = always if row.used is None else np.ascontiguousarray(row.used)
        if force.strides[0] % 8:
            force = np.ascontiguousarray(force)
        kept.append((force, used))
        last = start + 8 * width * (n - 1)
        known = zero.ctypes.data if beside is None else beside.buffer.ctypes.data + 8 * beside.width * k
        table[k] = (
            *(n, start, width, row.R.ctypes.data, row.R.strides[1] // 8),
            *(force.ctypes.data, 0 if row.force is None else force.strides[0] // 8),
            *(known, 0 if beside is None else 1),
            *(used.ctypes.data, 0 if row.used is None else 1),
            *(own.ctypes.data, own.ctypes.data if subtracts else last, moments[k].ctypes.data),
        )
        start += 8 * width * n
    blank = np.array([*tables.blank_addresses, *(() if beside is None else beside.blank_addresses)], dtype=np.uintp)
    stretch = np.array(
        [
            *(samples, tables.block, block, len(rows), table.ctypes.data, lines.ctypes.data, work.ctypes.data),
            *(places.ctypes.data, 2 * decimate, len(blank), blank.ctypes.data),
            *(equations.ctypes.data, second.ctypes.data),
        ],
        dtype=np.int64,
    )
    _stream(host or this_host())(stretch.ctypes.data)
    del held, held_beside, kept  # what the addresses above point into
    return [Moments(int(m[0]), float(m[1]), float(m[2]), float(m[3]), int(m[4])) for m in moments]


def _kernel_record(tables: SymbolTables, motion: Motion) -> tuple[NDArray[np.int64], object]:
    """The numbers that describe the kernel of some tables on a motion, and the memory that they point into."""
    kernel = tables.machine_code(motion).kernel
    tree = tree_of(tables.machine)
    columns = [
        c if c.strides[0] % 8 == 0 else np.ascontiguousarray(c) for c in sample_arrays(tree, motion, kernel.inputs)
    ]
    pointers = np.array([c.ctypes.data for c in columns], dtype=np.uintp)
    strides = np.array([c.strides[0] // 8 for c in columns], dtype=np.int64)
    scratch = np.empty_like(pointers)
    values = np.ascontiguousarray(uniform_values(tree, tables.machine.parameters.values, kernel.parameters))
    out = np.ascontiguousarray(tables.addresses, dtype=np.uintp)
    memory = (pointers, strides, scratch, values, out)
    where = [a.ctypes.data for a in memory]
    record = np.array([kernel.address, len(columns), *where, kernel.work_address()], dtype=np.int64)
    return record, (columns, memory)


def _stream(host: Host) -> Callable[..., None]:
    return remembered(f"streams {host.signature}", lambda: _made(host))


def _made(host: Host) -> Callable[..., None]:
    text = stream_program(host.width)
    stored = load_or_make(key_of(text, host.signature), lambda: Stored(compile_object(text, host), {}))
    return loaded(stored.code, "stream", _SIGNATURE)
