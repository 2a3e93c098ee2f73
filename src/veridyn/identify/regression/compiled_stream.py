"""The samples of a job in one call of machine code: tables filled, measured sides made, samples selected, triangles turned.

It computes what :meth:`~veridyn.identify.regression.equation_plan.EquationPlan.blocks` and
:func:`~veridyn.identify.regression.factor.accumulate` do block by block and row by row, for rows that no filter and no
other row enters. The interpreter's lock is free from the first sample of a job to the last, so that threads do not wait for one another.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.error_measures import Moments
from veridyn.identify.regression.tables import SymbolTables
from veridyn.mechanics.tree.dynamics.engine import check_angles, sample_source, uniform_values
from veridyn.model.motion import Motion
from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.kernel import Host, compile_object, loaded, this_host
from veridyn.symbolic.stream_llvm import LINE, MOMENTS, stream_program

Mask = NDArray[np.bool_]
WORK_DOUBLES = 128  # that a QR step works in
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class RowSamples:
    """One row of a job: its triangle `R`, turned in place; its force Γ (N,), None for zero; and which samples it uses, None for all."""

    R: Array
    force: Array | None
    used: Mask | None


class _Kept(threading.local):
    """The tables that this thread filled last, and whose they are."""

    owner: weakref.ref[object] | None = None
    tables: SymbolTables | None = None


def kept_tables(owner: object, make: Callable[[], SymbolTables]) -> SymbolTables:
    """The tables of an owner that this thread keeps from one job to the next; `make` makes them. Filled again, they are written over.

    Fresh memory of some megabytes and the places of all columns cost as much as a few percent of a job.
    """
    kept = remembered("tables of streams", _Kept)
    if kept.tables is None or kept.owner is None or kept.owner() is not owner:
        kept.tables, kept.owner = make(), weakref.ref(owner)
    return kept.tables


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
    kept = [_aligned(row) for row in rows]
    start, known, per_row = tables.buffer.ctypes.data, zero.ctypes.data, 0
    if beside is not None:
        known, per_row = beside.buffer.ctypes.data, 8 * beside.width
    no_force, all_used, measured, first = (a.ctypes.data for a in (zero, always, own, moments))
    table: list[tuple[int, ...]] = []
    for k, row in enumerate(kept):
        n = len(tables.columns[k]) + 1
        line = [n, start, width, row.R.ctypes.data, row.R.strides[1] // 8]
        line += [no_force, 0] if row.force is None else [row.force.ctypes.data, row.force.strides[0] // 8]
        line += [known + per_row * k, 0 if beside is None else 1]
        line += [all_used, 0] if row.used is None else [row.used.ctypes.data, 1]
        line += [measured, measured if subtracts else start + 8 * width * (n - 1), first + 8 * MOMENTS * k]
        table.append(tuple(line))
        start += 8 * width * n
    described = np.array(table, dtype=np.int64)
    blank = np.array([*tables.blank_addresses, *(() if beside is None else beside.blank_addresses)], dtype=np.uintp)
    stretch = np.array(
        [
            *(samples, tables.block, block, len(rows), described.ctypes.data, lines.ctypes.data, work.ctypes.data),
            *(places.ctypes.data, 2 * decimate, len(blank), blank.ctypes.data),
            *(equations.ctypes.data, second.ctypes.data),
        ],
        dtype=np.int64,
    )
    _stream(host or this_host())(stretch.ctypes.data)
    del held, held_beside, kept  # what the addresses above point into
    return [Moments(int(m[0]), m[1], m[2], m[3], int(m[4])) for m in moments[:, :5].tolist()]


def _aligned(row: RowSamples) -> RowSamples:
    """The row with its force in whole steps of eight bytes, and its mask without gaps."""
    force, used = row.force, row.used
    if force is not None and force.strides[0] % 8:
        force = np.ascontiguousarray(force)
    return RowSamples(row.R, force, None if used is None else np.ascontiguousarray(used))


def _kernel_record(tables: SymbolTables, motion: Motion) -> tuple[NDArray[np.int64], object]:
    """The numbers that describe the kernel of some tables on a motion, and the memory that they point into."""
    kernel = tables.machine_code(motion).kernel
    machine = tables.machine
    check_angles(machine, motion.q)
    arrays: dict[
        int, tuple[Array, Array, int]
    ] = {}  # by identity: an array has many columns, and its address takes a while
    pointers, strides = np.empty(len(kernel.inputs), dtype=np.uintp), np.empty(len(kernel.inputs), dtype=np.int64)
    for k, name in enumerate(kernel.inputs):
        array, column = sample_source(machine, motion, name)
        if id(array) not in arrays:
            whole = array if all(step % 8 == 0 for step in array.strides) else np.ascontiguousarray(array)
            arrays[id(array)] = array, whole, whole.ctypes.data
        _, whole, address = arrays[id(array)]
        pointers[k] = address if column is None else address + column * whole.strides[1]
        strides[k] = whole.strides[0] // 8
    scratch = np.empty_like(pointers)
    values = np.ascontiguousarray(uniform_values(machine, machine.parameters.values, kernel.parameters))
    out = np.ascontiguousarray(tables.addresses, dtype=np.uintp)
    memory = (pointers, strides, scratch, values, out)
    where = [a.ctypes.data for a in memory]
    record = np.array([kernel.address, len(pointers), *where, kernel.work_address()], dtype=np.int64)
    return record, (arrays, memory)


def _stream(host: Host) -> Callable[..., None]:
    return remembered(f"streams {host.signature}", lambda: _made(host))


def _made(host: Host) -> Callable[..., None]:
    text = stream_program(host.width)
    stored = load_or_make(key_of(text, host.signature), lambda: Stored(compile_object(text, host), {}))
    return loaded(stored.code, "stream", _SIGNATURE)
