"""XLA's call frames in compiled code: one handler for all functions on the processor, and one for all on a GPU; no compiler is needed.

XLA calls a handler with the address of a frame (``xla/ffi/api/c_api.h``): buffers that are read and written, attributes, and on a GPU what
gives the stream. A handler lays out a launch, as :mod:`veridyn.training.launch` describes it, and runs it. The attribute ``plan`` is the
address of integers that say which machine code to run; they live as long as the process, so a compiled program of JAX cannot be saved for
another one.

The words of the structures below are those of version 0 of that interface; fields that later versions add stand behind them.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
from numba import types

from veridyn.mechanics.compiled import Numbers, address_of, core, kept
from veridyn.symbolic.emit_ptx import THREADS
from veridyn.training.host import run_parts
from veridyn.training.pointers import invoke, words

EXTENSION, API, CONTEXT = 1, 2, 3  # words of a frame
READ, WRITTEN, ATTRIBUTES = 9, 14, 20  # where it has the addresses of arguments, of results, of attributes
FRAME_WORDS = 22
DATA, LENGTHS = 3, 5  # words of a buffer
SCALAR_VALUE = 1  # word of a scalar attribute that has the address of its value
OLDEST_MINOR = 3  # version of the interface where a frame does not say which it has
API_VERSION, API_ERROR, API_STREAM = 4, 6, 10  # words of the interface: its version, and two of its functions
METADATA = 1  # the extension with which XLA asks for a handler's version
ANSWER, VERSION, TRAITS = 3, 3, 4  # word of the extension that has the answer's address, and words of the answer
CAPTURED = 1  # the trait of a handler whose launches XLA may record in a CUDA graph
INTERNAL = 13  # error code
READS, WRITES, SUMMED, CUT, CODE, MORE, TEXT = range(7)  # of a plan, see :func:`frame_plan`
PLAN_WORDS = 7
LOW_HALF = 0xFFFFFFFF
_REFUSED = ctypes.create_string_buffer(b"veridyn: CUDA's driver refused to launch a kernel")


def frame_plan(reads: int, writes: int, summed: int, cut: int, code: int, more: int) -> Numbers:
    """What a handler is told: arrays read and written, which of the written is a sum, samples of a part or of a block, and the code.

    On the processor `code` and `more` are the address and length of :attr:`HostProgram.plan`, on a GPU the driver's function that launches
    and the kernel's handle.
    """
    return np.array([reads, writes, summed, cut, code, more, ctypes.addressof(_REFUSED)], dtype=np.int64)


@core
def answered(F: Numbers, traits: int) -> bool:
    """Whether XLA only asked for version and traits, which are then answered."""
    if F[EXTENSION] == 0:
        return False
    asked = words(F[EXTENSION], 4)
    if asked[1] & LOW_HALF != METADATA:
        return False
    answer = words(asked[ANSWER], 5)
    answer[VERSION] = words(F[API], 11)[API_VERSION] if F[API] != 0 else OLDEST_MINOR << 32
    answer[TRAITS] = traits
    return True


@core
def plan_of(F: Numbers) -> int:
    """The address of a call's plan, its only attribute."""
    scalar = words(words(F[ATTRIBUTES], 1)[0], 2)
    return words(int(scalar[SCALAR_VALUE]), 1)[0]


@core
def laid_out(F: Numbers, P: Numbers, launch: Numbers) -> int:
    """Write a launch of the frame's buffers, which lie row by row; the number of sets."""
    reads, writes = P[READS], P[WRITES]
    sets, samples = 1, 1
    for t in range(reads):
        lengths = words(words(words(F[READ], reads)[t], 6)[LENGTHS], 3)
        sets = lengths[0] if lengths[0] != 1 else sets
        samples = lengths[1] if lengths[1] != 1 else samples
    for t in range(reads + writes):
        list_at, k = (READ, t) if t < reads else (WRITTEN, t - reads)
        buffer = words(words(F[list_at], k + 1)[k], 6)
        lengths = words(buffer[LENGTHS], 3)
        row, whole = 8 * lengths[2], 8 * lengths[1] * lengths[2]
        launch[4 * t] = buffer[DATA]
        launch[4 * t + 1] = whole if lengths[0] != 1 else 0
        launch[4 * t + 2] = row if lengths[1] != 1 else 0
        launch[4 * t + 3] = 8
        if P[SUMMED] >= 0 and t == reads + P[SUMMED]:  # (sets, columns, parts)
            launch[4 * t + 2], launch[4 * t + 3] = 8, row
    launch[4 * (reads + writes)] = samples
    launch[4 * (reads + writes) + 1] = (samples + P[CUT] - 1) // P[CUT]
    return sets


@kept
def host_handler(frame: int) -> int:
    """A call on the processor: all parts of all sets, in order."""
    F = words(frame, FRAME_WORDS)
    if answered(F, 0):
        return 0
    P = words(plan_of(F), PLAN_WORDS)
    launch = np.zeros(4 * (P[READS] + P[WRITES]) + 2, np.int64)
    sets = laid_out(F, P, launch)
    run_parts(words(P[CODE], P[MORE]), launch, 0, sets * launch[-1])
    return 0


@kept
def card_handler(frame: int) -> int:
    """A call on a GPU: one launch, on the stream of the frame."""
    F = words(frame, FRAME_WORDS)
    if answered(F, CAPTURED):
        return 0
    P = words(plan_of(F), PLAN_WORDS)
    launch = np.zeros(4 * (P[READS] + P[WRITES]) + 2, np.int64)
    blocks = laid_out(F, P, launch) * launch[-1]
    api, given = words(F[API], 11), np.zeros(4, np.int64)
    given[0], given[2] = 32, F[CONTEXT]
    error = invoke(api[API_STREAM], (given.ctypes.data,))
    if error != 0 or blocks == 0:
        return error
    stream, pointers = given[3], np.zeros(1, np.int64)
    pointers[0] = launch.ctypes.data
    code = invoke(P[CODE], (P[MORE], blocks, 1, 1, THREADS, 1, 1, 0, stream, pointers.ctypes.data, 0))
    if code & LOW_HALF == 0 and launch[0] != 0:  # the launch is read until here
        return 0
    given[2], given[3] = P[TEXT], INTERNAL
    return invoke(api[API_ERROR], (given.ctypes.data,))


@cache
def handler_address(card: bool) -> int:
    """Where the machine code of a handler begins."""
    return address_of(card_handler if card else host_handler, (types.int64,))
