"""Steps of a compiled run with dry friction that holds, parted where something comes to rest.

It is called at its address, so that runs without such friction are compiled without it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.system.dry_friction import PARTS
from veridyn.mechanics.system.dry_friction import STOPPED as STOPPED_SHARE
from veridyn.mechanics.system.run_friction import part, refresh, settle
from veridyn.mechanics.system.run_record import (
    ARRIVED,
    ARRIVING,
    COMBINATIONS,
    COUNT,
    DIFFERENTIATE,
    DONE,
    END,
    FRESH,
    HOLD_STILL,
    LEAVING,
    PART,
    PASS_STOPS,
    PENDING,
    SENSITIVITY_CODE,
    SETTLE,
    SHARE,
    SIZE,
    SLOPES,
    STOPPED,
    TRIED,
    Y,
    call_part,
)
from veridyn.mechanics.system.run_stages import rate, set_instant, set_push
from veridyn.mechanics.tree.steps.record import as_pointer

Numbers = NDArray[np.int64]


@core
def leave_rest(I: Numbers, W: Array, now: float) -> int:
    """Take S over what came to rest at the instant at which a part with shares TRIED begins."""
    n, pending = I[COUNT], False
    for i in range(I[COMBINATIONS]):
        pending = pending or I[I[PENDING] + i] == 1
    if not pending:
        return DONE
    set_instant(I, W, now)
    set_push(I, W, I[Y] + n, I[TRIED])
    status = rate(I, W, I[Y], I[SLOPES])
    if status == DONE:
        for j in range(n):
            W[I[LEAVING] + j] = W[I[SLOPES] + n + j]
        call_part(I, SENSITIVITY_CODE, W, PASS_STOPS, 0.0, 0.0, 0)
    return int(status)


@core
def holding_step(I: Numbers, W: Array, instant: float, h: float, sensitive: bool) -> int:
    """Y after h seconds with friction that holds, parted where something comes to rest; S too where it is asked for."""
    n, m, now, end = I[COUNT], I[COMBINATIONS], instant, instant + h
    settled = instant == 0.0 and I[FRESH] != 0  # a step from a sample, at which the rate has just been computed
    if not I[FRESH]:
        status = refresh(I, W, I[Y], instant)
        if status != DONE:
            return int(status)
    parts = 0
    while True:
        place = part(I, W, now, end - now, parts < PARTS, settled)
        settled = False
        if place <= 0.0:
            return int(-place)
        length = place * (end - now)
        if sensitive:
            status = leave_rest(I, W, now)
            if status == DONE:
                status = call_part(I, SENSITIVITY_CODE, W, DIFFERENTIATE, now, float(length), 0)
            if status != DONE:
                return int(status)
            call_part(I, SENSITIVITY_CODE, W, HOLD_STILL, 0.0, 0.0, 0)
        stops = False
        for i in range(m):
            stops = stops or I[I[STOPPED] + i] == 1
            W[I[SHARE] + i] = 0.0 if I[I[STOPPED] + i] else W[I[TRIED] + i]
        for j in range(I[SIZE]):
            W[I[Y] + j] = W[I[END] + j]
        now += length
        parts += 1
        if stops and sensitive:
            for i in range(m):
                I[I[PENDING] + i] = I[I[STOPPED] + i]
            for j in range(n):
                W[I[ARRIVED] + j] = W[I[ARRIVING] + j]
        if not stops or end - now <= STOPPED_SHARE * h:
            return DONE


@kept
def friction_part(
    i_at: int, i_size: int, w_at: int, w_size: int, what: int, instant: float, h: float, sensitive: int
) -> int:
    """SETTLE: shares at an instant. STEP: a step of h seconds from it. I and W by address and length."""
    I = carray(as_pointer(i_at), (i_size,), np.int64)
    W = carray(as_pointer(w_at), (w_size,), np.float64)
    if what == SETTLE:
        return settle(I, W, instant)
    return holding_step(I, W, instant, h, sensitive != 0)


@cache
def friction_address() -> int:
    """Where the machine code of :func:`friction_part` stands in this process; compiled or loaded now."""
    return address_of(friction_part, PART)
