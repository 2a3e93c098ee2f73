"""Tables of equations, one for each row, and the samples of a job in one call of machine code: tables filled, triangles turned.

The call computes what :meth:`~veridyn.identify.regression.equation_plan.EquationPlan.blocks` and
:func:`~veridyn.identify.regression.factor.accumulate` do block by block and row by row, for rows that no filter and no
other row enters. The interpreter's lock is free from the first sample of a job to the last, so that threads do not wait for one another.

A table has the columns of a row and its known side, written by machine code or by the reference. All tables of a block are parts of one
buffer, sized to stay in cache until the factors have taken them in.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.inference.error_measures import Moments
from veridyn.mechanics.tree.dynamics.engine import (
    SPREAD,
    Compiled,
    check_angles,
    compiled,
    sample_source,
    uniform_values,
)
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import motion_columns
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.symbolic.cache import remembered
from veridyn.symbolic.emit_llvm import BLOCK
from veridyn.symbolic.kernel import Host, made_once, padded, this_host
from veridyn.symbolic.stream_llvm import LINE, MOMENTS, stream_program

BUFFER_DOUBLES = 2**20  # doubles of one buffer: eight megabytes, which stay near while the factors take them in
CACHE_DOUBLES = 2**18  # doubles of a buffer in the second cache of a core: two megabytes
MARGINS = 8  # of a filter that a block is long: its margins, computed and thrown away, are then a quarter of it
WIDE_BUFFER_DOUBLES = 2**22  # doubles that such blocks may take

Wanted = tuple[tuple[int, int, float, float], ...]


def equations(machine: Machine, rows: tuple[int, ...], wanted: Wanted, motion: Motion) -> Request:
    """What machine code computes to fill tables from a motion."""
    fate = tuple((c, to, factor, bool(np.isnan(value))) for c, to, factor, value in wanted)
    return Request("equations", rows, fate, loaded_bodies(tree_of(machine), motion.wrenches))


def block_samples(places: int, largest: int, doubles: int = BUFFER_DOUBLES) -> int:
    """Samples of a block with so many places for each: full groups that a buffer of so many doubles holds, and at most `largest`."""
    return min(largest, max(2 * BLOCK, doubles // max(1, places) // BLOCK * BLOCK))


class SymbolTables:
    """A buffer for one block of equations of some rows.

    `columns` are each row's; `wanted` says what becomes of every parameter: (column, column it counts for, factor, known value or NaN).
    A block has at most `largest` samples, more only where a filter's `margin` asks for it, and as many as are quickest where it is `wide`.
    """

    def __init__(
        self,
        machine: Machine,
        rows: tuple[int, ...],
        columns: tuple[tuple[int, ...], ...],
        wanted: Wanted,
        compile: bool,
        largest: int,
        margin: int,
        wide: bool = False,
    ) -> None:
        self.machine, self.rows, self.columns, self.wanted, self.compile = machine, rows, columns, wanted, compile
        self.tree = tree_of(machine)
        self.place = {(r, c): k for k, (r, c) in enumerate((r, c) for r, cs in zip(rows, columns) for c in (*cs, -1))}
        longer = min(MARGINS * margin, WIDE_BUFFER_DOUBLES // max(1, len(self.place))) if wide else 0
        self.block = max(2 * margin, longer, block_samples(len(self.place), largest))
        self.width = padded(self.block + 2 * margin) + SPREAD
        self.buffer = np.empty((len(self.place), self.width))
        self._made: Compiled | None = None

    def fill(
        self, part: Motion, kept: dict[tuple[int, int], Array] | None = None, at: tuple[int, int] = (0, 0)
    ) -> Iterator[Array]:
        """For each row [W_j | what wrenches and known parameters ask] of the samples of a block, in column order; used up by the caller.

        `kept`: tables of earlier passes over the same samples, by their place `at`; what the reference computes is added.
        """
        if self.compile:
            self._by_machine_code(part)
        elif kept is not None and at in kept:
            self.buffer[:, : len(part)] = kept[at]
        else:
            self._by_reference(part)
            if kept is not None:
                kept[at] = self.buffer[:, : len(part)].copy()
        first = 0
        for cs in self.columns:
            yield self.buffer[first : first + len(cs) + 1, : len(part)].T
            first += len(cs) + 1

    def machine_code(self, part: Motion) -> Compiled:
        """The kernel that fills the buffer from samples like these; it writes to `addresses`, and not to the `blank` rows of the buffer."""
        loaded = set(part.wrenches)
        if self._made is None or self._loaded != loaded:
            self._made = compiled(self.tree, equations(self.machine, self.rows, self.wanted, part))
            self._loaded = loaded
            at = np.array([self.place[label[0], label[1]] for label in self._made.labels], dtype=np.uintp)
            self.addresses = self.buffer.ctypes.data + 8 * self.width * at
            written = set(at.tolist())
            self.blank = [k for k in self.place.values() if k not in written]
        return self._made

    @property
    def blank_addresses(self) -> list[int]:
        """Where the rows of the buffer begin that the kernel does not write."""
        return [self.buffer.ctypes.data + 8 * self.width * k for k in self.blank]

    def _by_machine_code(self, part: Motion) -> None:
        made = self.machine_code(part)
        self.buffer[self.blank] = 0.0
        made(self.tree, part, self.addresses, self.machine.parameters.values)

    def _by_reference(self, part: Motion) -> None:
        table = self.buffer[:, : len(part)]
        table[:] = 0.0
        fate = {c: (to, factor, value) for c, to, factor, value in self.wanted}
        outside, columns = motion_columns(self.machine, part, fate)
        for r in self.rows:
            table[self.place[r, -1]] = outside[r]
        for c, entries in columns:
            to, factor, value = fate[c]
            for r, column in entries.items():
                if (r, -1) not in self.place:
                    continue
                if np.isnan(value):
                    table[self.place[r, to]] += factor * column
                else:
                    table[self.place[r, -1]] += factor * value * column


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
    _stream(this_host())(stretch.ctypes.data)
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
    tree = tables.tree
    check_angles(tree, motion.q)
    arrays: dict[
        int, tuple[Array, Array, int]
    ] = {}  # by identity: an array has many columns, and its address takes a while
    pointers, strides = np.empty(len(kernel.inputs), dtype=np.uintp), np.empty(len(kernel.inputs), dtype=np.int64)
    for k, name in enumerate(kernel.inputs):
        array, column = sample_source(tree, motion, name)
        if id(array) not in arrays:
            whole = array if all(step % 8 == 0 for step in array.strides) else np.ascontiguousarray(array)
            arrays[id(array)] = array, whole, whole.ctypes.data
        _, whole, address = arrays[id(array)]
        pointers[k] = address if column is None else address + column * whole.strides[1]
        strides[k] = whole.strides[0] // 8
    scratch = np.empty_like(pointers)
    values = np.ascontiguousarray(uniform_values(tree, tree.parameters.values, kernel.parameters))
    out = np.ascontiguousarray(tables.addresses, dtype=np.uintp)
    memory = (pointers, strides, scratch, values, out)
    where = [a.ctypes.data for a in memory]
    record = np.array([kernel.address, len(pointers), *where, kernel.work_address()], dtype=np.int64)
    return record, (arrays, memory)


def _stream(host: Host) -> Callable[..., None]:
    return made_once("streams", lambda: stream_program(host.width), host, "stream", _SIGNATURE)
