"""Blocks of equations, written by machine code or by the reference: one table for each row, its columns and its known side.

All tables of a block are parts of one buffer, sized to stay in cache until the factors have taken them in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.tree.dynamics.engine import SPREAD, Compiled, compiled
from veridyn.mechanics.tree.recursion.equations import motion_columns
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.symbolic.emit_llvm import BLOCK
from veridyn.symbolic.kernel import padded

BUFFER_DOUBLES = 2**20  # doubles of one buffer: eight megabytes, which stay near while the factors take them in
CACHE_DOUBLES = 2**18  # doubles of a buffer in the second cache of a core: two megabytes
MARGINS = 8  # of a filter that a block is long: its margins, computed and thrown away, are then a quarter of it
WIDE_BUFFER_DOUBLES = 2**22  # doubles that such blocks may take

Wanted = tuple[tuple[int, int, float, float], ...]


def equations(machine: Machine, rows: tuple[int, ...], wanted: Wanted, motion: Motion) -> Request:
    """What machine code computes to fill tables from a motion."""
    fate = tuple((c, to, factor, bool(np.isnan(value))) for c, to, factor, value in wanted)
    return Request("equations", rows, fate, loaded_bodies(machine, motion.wrenches))


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
            self._made = compiled(self.machine, equations(self.machine, self.rows, self.wanted, part))
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
        made(self.machine, part, self.addresses, self.machine.parameters.values)

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
