"""Functions and products on the processor: machine code of blocks of samples over arrays of any strides, and threads that share blocks.

A set is cut into parts of :data:`PART` samples. A part's inputs are read where they lie; its outputs are made column by column in memory
that stays in cache and are then written where they belong, or summed. Partial sums are those of a part, so results do not depend on the
number of threads.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from veridyn.mechanics.compiled import kept
from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.emit_llvm import BLOCK, emit, place_stride
from veridyn.symbolic.kernel import Kernel, compile_object, this_host
from veridyn.symbolic.sources import note_sources, source_digest
from veridyn.training.launch import Call
from veridyn.training.pointers import doubles, invoke

PART = 256  # samples whose outputs, up to some hundred columns, stay in the second cache
ROOM = PART + 8  # doubles of an output in that memory, so that outputs do not fall on one set of the cache
PLAN = 6  # numbers of a plan before the widths of its arrays: kernel, arrays read, written, number of the shared, of the summed, work
FEWEST_PARTS = 4  # for a thread to be worth its start
note_sources(__name__)


@kept
def run_parts(plan: Any, launch: Any, first: int, last: int) -> None:
    """Parts `first` to `last` of a launch, counted through all sets."""
    kernel, reads, writes, shared, summed, work = plan[0], plan[1], plan[2], plan[3], plan[4], plan[5]
    widths = plan[6:]
    arrays = reads + writes
    samples, parts = launch[4 * arrays], launch[4 * arrays + 1]
    read, written = widths[:reads].sum(), widths[reads:arrays].sum()
    pointers, strides = np.empty(read + 1, np.int64), np.empty(read + 1, np.int64)
    held = np.empty(widths[shared] + 1 if shared >= 0 else 1)
    made = np.empty((written + 1) * ROOM)
    memory = np.empty(work + 8)
    outs = np.empty(written + 1, np.int64)
    order = plan[6 + arrays :]
    for k in range(written):
        outs[k] = made.ctypes.data + 8 * ROOM * order[k]
    room = memory.ctypes.data
    room += (-room) % 64
    for part in range(first, last):
        of_set, at = part // parts, part % parts
        start = at * PART
        count = min(PART, samples - start)
        k = 0
        for t in range(reads):
            base = launch[4 * t] + of_set * launch[4 * t + 1]
            if t == shared:
                for c in range(widths[t]):
                    held[c] = doubles(base + c * launch[4 * t + 3], 1)[0]
                continue
            for c in range(widths[t]):
                pointers[k] = base + start * launch[4 * t + 2] + c * launch[4 * t + 3]
                strides[k] = launch[4 * t + 2] // 8
                k += 1
        arguments = (
            0, count, count, pointers.ctypes.data, strides.ctypes.data, held.ctypes.data, outs.ctypes.data, room, 0
        )  # fmt: skip
        invoke(kernel, arguments)
        k = 0
        for i in range(writes):
            t = reads + i
            base = launch[4 * t] + of_set * launch[4 * t + 1]
            between, apart = launch[4 * t + 2] // 8, launch[4 * t + 3]
            for c in range(widths[t]):
                own = made[k * ROOM : k * ROOM + count]
                k += 1
                if i == summed:
                    total = 0.0
                    for s in range(count):
                        total += own[s]
                    doubles(base + at * launch[4 * t + 2] + c * apart, 1)[0] = total
                else:
                    to = doubles(base + start * launch[4 * t + 2] + c * apart, (count - 1) * between + 1)
                    for s in range(count):
                        to[s * between] = own[s]


@dataclass(frozen=True, eq=False)
class HostProgram:
    """A call's machine code and the numbers that :func:`run_parts` reads of it."""

    kernel: Kernel
    plan: np.ndarray

    def run(self, launch: np.ndarray, sets: int, threads: int = 1) -> None:
        """Fill the arrays that a launch writes; `threads` share its parts."""
        total = sets * int(launch[-1])
        share = max(1, min(threads, total // FEWEST_PARTS))
        if share == 1:
            run_parts(self.plan, launch, 0, total)
            return
        cuts = [total * k // share for k in range(share + 1)]
        with ThreadPoolExecutor(share) as pool:
            list(pool.map(lambda k: run_parts(self.plan, launch, cuts[k], cuts[k + 1]), range(share)))


def host_parts(samples: int) -> int:
    """The parts of a set, and the partial sums of it."""
    return -(-samples // PART)


_one_compiles = threading.Lock()


def host_program(call: Call) -> HostProgram:
    """The machine code of a call for this processor: from memory, from disk, or made now."""
    host = this_host()
    key = key_of("training host", call.key, host.signature, source_digest(__name__) or "")
    f, reads = call.function, call.inputs
    states = [name for t, names in enumerate(reads) if call.own or t != call.parameters for name in names]
    uniform = [] if call.own else list(reads[call.parameters])

    def make() -> Stored:
        outputs = [f.outputs] if call.wanted is None else f.product(call.wanted)
        program = emit(f.graph, [x for y in outputs for x in y], states, uniform, host.width)
        return Stored(compile_object(program.text, host), {"places": program.places, "order": list(program.order)})

    def load() -> HostProgram:
        stored = load_or_make(key, make) if source_digest(__name__) else make()
        places, order = stored.description["places"], stored.description["order"]
        kernel = Kernel(stored.code, tuple(states), tuple(uniform), len(order), places)
        shared = -1 if call.own else call.parameters
        widths = [*(len(names) for names in reads), *call.widths]
        head = [kernel.address, len(reads), len(call.widths), shared, call.summed, places * place_stride(BLOCK)]
        return HostProgram(kernel, np.array([*head, *widths, *order], dtype=np.int64))

    with _one_compiles:
        return remembered(key, load)
