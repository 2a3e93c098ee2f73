"""Dry friction that holds, in a compiled run: steps of one run, parted where sliding ends.

The step is that of :mod:`veridyn.mechanics.system.dry_friction`: shares s of friction are constant over a part and agree with the speeds at
its end, by a linear complementarity problem with bounds in each iteration; a part ends where a combination that slides comes to rest. The
steps are called at their address, so that runs without such friction are compiled without them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics import dense
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.system.dry_friction import AT_REST_S, EXCHANGES, ITERATIONS, PARTS, ROUNDING, SECANTS
from veridyn.mechanics.system.dry_friction import STOPPED as STOPPED_SHARE
from veridyn.mechanics.system.run_formula import glides
from veridyn.mechanics.system.run_record import (
    AHEAD,
    ALONG,
    ARRIVED,
    ARRIVING,
    BACK,
    BOUNDED,
    COMBINATIONS,
    COUNT,
    DIFFERENTIATE,
    DONE,
    END,
    FRESH,
    GUESS,
    H_WORK,
    HIGH,
    HOLD_STILL,
    HOLDABLE,
    INDEX,
    LEAVING,
    LOW,
    OWN,
    PART,
    PASS_STOPS,
    PENDING,
    PIVOT,
    PUSH,
    REACHED,
    RESPONSE,
    REST,
    RIGHT,
    ROOM,
    SENSITIVITY_CODE,
    SETTLE,
    SHARE,
    SIDE,
    SIZE,
    SLOPES,
    STOPPED,
    TRIED,
    UNBALANCED,
    WRITTEN_OUT,
    C,
    H,
    Y,
    call_part,
)
from veridyn.mechanics.system.run_stages import (
    advance,
    along_speed,
    rate,
    set_instant,
    set_limits,
    set_push,
)
from veridyn.mechanics.tree.steps.record import as_pointer

Numbers = NDArray[np.int64]
TINY = float(np.finfo(np.float64).tiny)


@core
def bounded_forces(I: Numbers, W: Array, m: int) -> bool:
    """f of H f + w = RIGHT, LOW ≤ f ≤ HIGH, w complementary to the bounds, into BOUNDED; H (m, m).

    Block pivoting as :func:`~veridyn.mechanics.system.dry_friction.solve_bounded`; False where it does not end.
    """
    f, side, A = I[BOUNDED], I[SIDE], I[H]
    for i in range(m):
        W[A + i * m + i] *= 1.0 + ROUNDING
        I[side + i] = 0
    at_once = EXCHANGES * (m + 1)
    for exchange in range(at_once + 50 * (m + 1)):
        k = 0
        for i in range(m):
            W[f + i] = W[I[HIGH] + i] if I[side + i] > 0 else W[I[LOW] + i]
            if I[side + i] == 0:
                I[I[PIVOT] + m + k] = i  # behind the pivots: which are between their bounds
                k += 1
        if k:
            for a in range(k):
                i = I[I[PIVOT] + m + a]
                rest = W[I[RIGHT] + i]
                for j in range(m):
                    if I[side + j] != 0:
                        rest -= W[A + i * m + j] * W[f + j]
                W[I[ROOM] + a] = rest
                for b in range(k):
                    W[I[H_WORK] + a * k + b] = W[A + i * m + I[I[PIVOT] + m + b]]
            dense.solve_once(
                W[I[H_WORK] : I[H_WORK] + k * k].reshape(k, k), I[I[PIVOT] : I[PIVOT] + k], W[I[ROOM] : I[ROOM] + k]
            )
            for a in range(k):
                W[f + I[I[PIVOT] + m + a]] = W[I[ROOM] + a]
        wrong, last, change = 0, -1, 0
        for i in range(m):
            w = W[I[RIGHT] + i]
            for j in range(m):
                w -= W[A + i * m + j] * W[f + j]
            gap = max(W[I[HIGH] + i] - W[I[LOW] + i], TINY)
            slack, rest = 1e-12 * gap, 1e-12 * abs(W[A + i * m + i]) * gap + 1e-15 * abs(W[I[RIGHT] + i])
            to = I[side + i]
            if I[side + i] == 0 and W[f + i] > W[I[HIGH] + i] + slack:
                to = 1
            elif I[side + i] == 0 and W[f + i] < W[I[LOW] + i] - slack:
                to = -1
            elif (I[side + i] > 0 and w < -rest) or (I[side + i] < 0 and w > rest):
                to = 0
            if to != I[side + i]:
                wrong, last, change = wrong + 1, i, to
            W[I[ROOM] + i] = to
        if wrong == 0:
            for i in range(m):
                W[f + i] = min(max(W[f + i], W[I[LOW] + i]), W[I[HIGH] + i])
            return True
        if exchange >= at_once:
            I[side + last] = change  # Murty's rule
        else:
            for i in range(m):
                I[side + i] = int(W[I[ROOM] + i])
    return False


@core
def refresh(I: Numbers, W: Array, y: int, instant: float) -> int:
    """RESPONSE: ∂q̈/∂f (n, m) of the friction forces, and OWN: −∂c̈_i/∂f_i, at the state W[y …]; the work of slopes is overwritten."""
    n, m, size = I[COUNT], I[COMBINATIONS], I[SIZE]
    set_instant(I, W, instant)
    for j in range(n):
        W[I[PUSH] + j] = 0.0
    status = rate(I, W, y, I[SLOPES])
    for i in range(m):
        if status != DONE:
            return int(status)
        for j in range(n):
            W[I[PUSH] + j] = -W[I[C] + i * n + j]
        status = rate(I, W, y, I[SLOPES] + size)
        total = 0.0
        for j in range(n):
            change = W[I[SLOPES] + size + n + j] - W[I[SLOPES] + n + j]
            W[I[RESPONSE] + j * m + i] = change
            total -= W[I[C] + i * n + j] * change
        W[I[OWN] + i] = total
    I[FRESH] = 1
    return int(status)


@core
def set_bounds(I: Numbers, W: Array, qd: int) -> None:
    """Limits at rates W[qd …], and REST: the speed that friction takes away at once, 0 where it cannot hold."""
    set_limits(I, W, qd)
    for i in range(I[COMBINATIONS]):
        ahead, back, own = W[I[AHEAD] + i], W[I[BACK] + i], W[I[OWN] + i]
        holds = ahead >= 0.0 and back >= 0.0 and own > 0.0
        W[I[REST] + i] = AT_REST_S * own * (ahead + back) if holds else 0.0


@core
def balance(I: Numbers, W: Array, k: int, factor: float, shares: int) -> bool:
    """Shares of the k combinations of INDEX from the problem with H = −factor C ∂q̈/∂f and the right side RIGHT."""
    n, m = I[COUNT], I[COMBINATIONS]
    for a in range(k):
        i = I[I[INDEX] + a]
        W[I[LOW] + a], W[I[HIGH] + a] = -W[I[BACK] + i], W[I[AHEAD] + i]
        for b in range(k):
            total, other = 0.0, I[I[INDEX] + b]
            for j in range(n):
                total -= W[I[C] + i * n + j] * W[I[RESPONSE] + j * m + other]
            W[I[H] + a * k + b] = factor * total
    if shares < 0:
        return True
    if not bounded_forces(I, W, k):
        return False
    for a in range(k):
        i, f = I[I[INDEX] + a], W[I[BOUNDED] + a]
        limit = W[I[AHEAD] + i] if f > 0.0 else W[I[BACK] + i]
        W[shares + i] = min(max(f / limit, -1.0), 1.0) if limit > 0.0 else 0.0
    return True


@core
def halt(I: Numbers, W: Array, k: int, y: int) -> None:
    """Stop the k combinations of INDEX to rounding, by forces on them alone."""
    n, m = I[COUNT], I[COMBINATIONS]
    moves = False
    for a in range(k):
        W[I[ROOM] + a] = along_speed(I, W, int(I[I[INDEX] + a]), y + n)
        moves = moves or W[I[ROOM] + a] != 0.0
    if not moves:
        return
    balance(I, W, k, 1.0, -1)
    for a in range(k):
        W[I[H] + a * k + a] *= 1.0 + ROUNDING
    dense.solve_once(W[I[H] : I[H] + k * k].reshape(k, k), I[I[PIVOT] : I[PIVOT] + k], W[I[ROOM] : I[ROOM] + k])
    for a in range(k):
        for j in range(n):
            W[y + n + j] += W[I[RESPONSE] + j * m + I[I[INDEX] + a]] * W[I[ROOM] + a]


@core
def settle(I: Numbers, W: Array, instant: float) -> int:
    """Shares TRIED at an instant in the state Y: signs of the speeds, and at rest those that agree with the accelerations; and PUSH."""
    n, m, speeds = I[COUNT], I[COMBINATIONS], I[Y] + I[COUNT]
    status = DONE
    if not I[FRESH]:
        status = refresh(I, W, I[Y], instant)
        if status != DONE:
            return int(status)
    set_bounds(I, W, speeds)
    k = 0
    for i in range(m):
        w, rest = along_speed(I, W, i, speeds), W[I[REST] + i]
        W[I[TRIED] + i] = np.sign(w)
        if rest > 0.0 and abs(w) <= rest:
            W[I[TRIED] + i] = 0.0
            I[I[INDEX] + k] = i
            k += 1
    if k:
        status = refresh(I, W, I[Y], instant)
        if status != DONE:
            return int(status)
        set_push(I, W, speeds, I[TRIED])
        status = rate(I, W, I[Y], I[SLOPES])
        if status != DONE:
            return int(status)
        for a in range(k):
            W[I[RIGHT] + a] = along_speed(I, W, int(I[I[INDEX] + a]), I[SLOPES] + n)
        if not balance(I, W, k, 1.0, I[TRIED]):
            return UNBALANCED
    set_push(I, W, speeds, I[TRIED])
    return DONE


@core
def balanced(I: Numbers, W: Array, instant: float, h: float, known: int) -> int:
    """END after h seconds from Y with shares TRIED, those of HOLDABLE combinations such that they agree with the speeds at the end.

    `known`: 1 where the first slope under the shares GUESS stands in SLOPES.
    """
    n, m, after, fresh = I[COUNT], I[COMBINATIONS], I[END] + I[COUNT], False
    k = 0
    for i in range(m):
        k += int(I[I[HOLDABLE] + i])
        W[I[TRIED] + i] = W[I[GUESS] + i]
    for trial in range(ITERATIONS):
        status = advance(I, W, instant, h, I[TRIED], known if trial == 0 else 0)
        if status != DONE or k == 0:
            return int(status)
        wrong, held = False, 0
        for i in range(m):
            w, s = along_speed(I, W, i, after), W[I[TRIED] + i]
            W[I[REACHED] + i] = w
            if I[I[HOLDABLE] + i]:
                if abs(s) < 1.0:
                    I[I[INDEX] + held] = i
                    held += 1
                wrong = wrong or (abs(w) > W[I[REST] + i] and (abs(s) < 1.0 or s * w < 0.0))
        if not wrong:
            halt(I, W, held, I[END])
            return DONE
        if trial == 2 and not fresh:  # what was kept of an earlier step is not near enough
            fresh = True
            status = refresh(I, W, I[Y], instant)
            if status != DONE:
                return int(status)
        set_limits(I, W, I[Y] + n)
        a = 0
        for i in range(m):
            if I[I[HOLDABLE] + i]:
                I[I[INDEX] + a] = i
                a += 1
        balance(I, W, k, h, -1)
        for a in range(k):
            i = I[I[INDEX] + a]
            right = W[I[REACHED] + i]
            for b in range(k):
                s = W[I[TRIED] + I[I[INDEX] + b]]
                limit = W[I[AHEAD] + I[I[INDEX] + b]] if s > 0.0 else W[I[BACK] + I[I[INDEX] + b]]
                right += W[I[H] + a * k + b] * limit * s
            W[I[RIGHT] + a] = right
        if not balance(I, W, k, h, I[TRIED]):
            return UNBALANCED
    return UNBALANCED


@core
def part(I: Numbers, W: Array, instant: float, h: float, parted: bool) -> float:
    """END after h seconds, or at the first instant at which a combination that slides comes to rest; STOPPED are those that do.

    The share of h that the part takes, or minus a status. TRIED are the shares along it, ARRIVING is q̈ just before what stops.
    """
    n, m, after = I[COUNT], I[COMBINATIONS], I[END] + I[COUNT]
    set_bounds(I, W, I[Y] + n)
    sliding = True
    for i in range(m):
        w, rest = along_speed(I, W, i, I[Y] + n), W[I[REST] + i]
        slides = abs(w) > rest
        W[I[ALONG] + i] = w
        W[I[GUESS] + i] = np.sign(w) if slides else W[I[SHARE] + i]
        I[I[HOLDABLE] + i] = 1 if rest > 0.0 and not (slides and parted) else 0
        I[I[STOPPED] + i] = 0
        sliding = sliding and I[I[HOLDABLE] + i] == 0
    status = balanced(I, W, instant, h, 0)
    if status != DONE:
        return -float(status)
    first, place, reached = -1, np.inf, 0.0
    for i in range(m):
        w, rest = W[I[ALONG] + i], W[I[REST] + i]
        w_after = along_speed(I, W, i, after)
        if parted and rest > 0.0 and abs(w) > rest and w_after * w < 0.0 and abs(w_after) > rest:
            I[I[STOPPED] + i] = 1
            if w / (w - w_after) < place:
                first, place, reached = i, w / (w - w_after), w_after
    if first < 0:
        return 1.0
    # shares of h with the speeds there, which have opposite signs
    low, w_low, high, w_high = 0.0, W[I[ALONG] + first], 1.0, reached
    scale = STOPPED_SHARE * max(abs(w_low), abs(w_high))
    for _ in range(SECANTS):
        # Where nothing is held the shares are those of the trial before, and so is the first slope.
        status = balanced(I, W, instant, float(place * h), int(sliding))
        if status != DONE:
            return -float(status)
        w_after = along_speed(I, W, first, after)
        if abs(w_after) <= scale:
            break
        if w_after * w_low > 0.0:
            low, w_low = place, w_after
        else:
            high, w_high = place, w_after
        place = low + (high - low) * w_low / (w_low - w_high)
    k = 0
    for i in range(m):
        if I[I[STOPPED] + i] and (i == first or abs(along_speed(I, W, i, after)) <= max(scale, W[I[REST] + i])):
            I[I[INDEX] + k] = i
            k += 1
        else:
            I[I[STOPPED] + i] = 0
    set_instant(I, W, float(instant + place * h))
    set_push(I, W, after, I[TRIED])
    status = rate(I, W, I[END], I[SLOPES])
    if status != DONE:
        return -float(status)
    for j in range(n):
        W[I[ARRIVING] + j] = W[I[SLOPES] + n + j]
    halt(I, W, k, I[END])
    return float(place)


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
    if I[WRITTEN_OUT] and I[FRESH] and glides(I, W, instant, h, sensitive):
        return DONE
    if not I[FRESH]:
        status = refresh(I, W, I[Y], instant)
        if status != DONE:
            return int(status)
    parts = 0
    while True:
        place = part(I, W, now, end - now, parts < PARTS)
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
