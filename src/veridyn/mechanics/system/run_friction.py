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
from veridyn.mechanics import linear
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.dry_friction import AT_REST_S, EXCHANGES, ITERATIONS, PARTS, ROUNDING, SECANTS
from veridyn.mechanics.system.dry_friction import STOPPED as STOPPED_SHARE
from veridyn.mechanics.system.run_formula import glides
from veridyn.mechanics.system.run_record import call_part
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
    f, side, A = I[record.BOUNDED], I[record.SIDE], I[record.H]
    for i in range(m):
        W[A + i * m + i] *= 1.0 + ROUNDING
        I[side + i] = 0
    at_once = EXCHANGES * (m + 1)
    for exchange in range(at_once + 50 * (m + 1)):
        k = 0
        for i in range(m):
            W[f + i] = W[I[record.HIGH] + i] if I[side + i] > 0 else W[I[record.LOW] + i]
            if I[side + i] == 0:
                I[I[record.PIVOT] + m + k] = i  # behind the pivots: which are between their bounds
                k += 1
        if k:
            for a in range(k):
                i = I[I[record.PIVOT] + m + a]
                rest = W[I[record.RIGHT] + i]
                for j in range(m):
                    if I[side + j] != 0:
                        rest -= W[A + i * m + j] * W[f + j]
                W[I[record.ROOM] + a] = rest
                for b in range(k):
                    W[I[record.H_WORK] + a * k + b] = W[A + i * m + I[I[record.PIVOT] + m + b]]
            linear.solve_once(
                W[I[record.H_WORK] : I[record.H_WORK] + k * k].reshape(k, k),
                I[I[record.PIVOT] : I[record.PIVOT] + k],
                W[I[record.ROOM] : I[record.ROOM] + k],
            )
            for a in range(k):
                W[f + I[I[record.PIVOT] + m + a]] = W[I[record.ROOM] + a]
        wrong, last, change = 0, -1, 0
        for i in range(m):
            w = W[I[record.RIGHT] + i]
            for j in range(m):
                w -= W[A + i * m + j] * W[f + j]
            gap = max(W[I[record.HIGH] + i] - W[I[record.LOW] + i], TINY)
            slack, rest = 1e-12 * gap, 1e-12 * abs(W[A + i * m + i]) * gap + 1e-15 * abs(W[I[record.RIGHT] + i])
            to = I[side + i]
            if I[side + i] == 0 and W[f + i] > W[I[record.HIGH] + i] + slack:
                to = 1
            elif I[side + i] == 0 and W[f + i] < W[I[record.LOW] + i] - slack:
                to = -1
            elif (I[side + i] > 0 and w < -rest) or (I[side + i] < 0 and w > rest):
                to = 0
            if to != I[side + i]:
                wrong, last, change = wrong + 1, i, to
            W[I[record.ROOM] + i] = to
        if wrong == 0:
            for i in range(m):
                W[f + i] = min(max(W[f + i], W[I[record.LOW] + i]), W[I[record.HIGH] + i])
            return True
        if exchange >= at_once:
            I[side + last] = change  # Murty's rule
        else:
            for i in range(m):
                I[side + i] = int(W[I[record.ROOM] + i])
    return False


@core
def refresh(I: Numbers, W: Array, y: int, instant: float) -> int:
    """RESPONSE: ∂q̈/∂f (n, m) of the friction forces, and OWN: −∂c̈_i/∂f_i, at the state W[y …]; the work of slopes is overwritten."""
    n, m, size = I[record.COUNT], I[record.COMBINATIONS], I[record.SIZE]
    set_instant(I, W, instant)
    for j in range(n):
        W[I[record.PUSH] + j] = 0.0
    status = rate(I, W, y, I[record.SLOPES])
    for i in range(m):
        if status != record.DONE:
            return int(status)
        for j in range(n):
            W[I[record.PUSH] + j] = -W[I[record.C] + i * n + j]
        status = rate(I, W, y, I[record.SLOPES] + size)
        total = 0.0
        for j in range(n):
            change = W[I[record.SLOPES] + size + n + j] - W[I[record.SLOPES] + n + j]
            W[I[record.RESPONSE] + j * m + i] = change
            total -= W[I[record.C] + i * n + j] * change
        W[I[record.OWN] + i] = total
    I[record.FRESH] = 1
    return int(status)


@core
def set_bounds(I: Numbers, W: Array, qd: int) -> None:
    """Limits at rates W[qd …], and REST: the speed that friction takes away at once, 0 where it cannot hold."""
    set_limits(I, W, qd)
    for i in range(I[record.COMBINATIONS]):
        ahead, back, own = W[I[record.AHEAD] + i], W[I[record.BACK] + i], W[I[record.OWN] + i]
        holds = ahead >= 0.0 and back >= 0.0 and own > 0.0
        W[I[record.REST] + i] = AT_REST_S * own * (ahead + back) if holds else 0.0


@core
def balance(I: Numbers, W: Array, k: int, factor: float, shares: int) -> bool:
    """Shares of the k combinations of INDEX from the problem with H = −factor C ∂q̈/∂f and the right side RIGHT."""
    n, m = I[record.COUNT], I[record.COMBINATIONS]
    for a in range(k):
        i = I[I[record.INDEX] + a]
        W[I[record.LOW] + a], W[I[record.HIGH] + a] = -W[I[record.BACK] + i], W[I[record.AHEAD] + i]
        for b in range(k):
            total, other = 0.0, I[I[record.INDEX] + b]
            for j in range(n):
                total -= W[I[record.C] + i * n + j] * W[I[record.RESPONSE] + j * m + other]
            W[I[record.H] + a * k + b] = factor * total
    if shares < 0:
        return True
    if not bounded_forces(I, W, k):
        return False
    for a in range(k):
        i, f = I[I[record.INDEX] + a], W[I[record.BOUNDED] + a]
        ahead, back = W[I[record.AHEAD] + i], W[I[record.BACK] + i]
        W[shares + i] = 0.0
        if ahead + back > 0.0:  # friction of one direction alone lets all slide the other way: its limit there is 0
            W[shares + i] = 1.0 if f >= ahead else -1.0 if f <= -back else f / (ahead if f > 0.0 else back)
    return True


@core
def halt(I: Numbers, W: Array, k: int, y: int) -> None:
    """Stop the k combinations of INDEX to rounding, by forces on them alone."""
    n, m = I[record.COUNT], I[record.COMBINATIONS]
    moves = False
    for a in range(k):
        W[I[record.ROOM] + a] = along_speed(I, W, int(I[I[record.INDEX] + a]), y + n)
        moves = moves or W[I[record.ROOM] + a] != 0.0
    if not moves:
        return
    balance(I, W, k, 1.0, -1)
    for a in range(k):
        W[I[record.H] + a * k + a] *= 1.0 + ROUNDING
    linear.solve_once(
        W[I[record.H] : I[record.H] + k * k].reshape(k, k),
        I[I[record.PIVOT] : I[record.PIVOT] + k],
        W[I[record.ROOM] : I[record.ROOM] + k],
    )
    for a in range(k):
        for j in range(n):
            W[y + n + j] += W[I[record.RESPONSE] + j * m + I[I[record.INDEX] + a]] * W[I[record.ROOM] + a]


@core
def settle(I: Numbers, W: Array, instant: float) -> int:
    """Shares TRIED at an instant in the state Y: signs of the speeds, and at rest those that agree with the accelerations; and PUSH."""
    n, m, speeds = I[record.COUNT], I[record.COMBINATIONS], I[record.Y] + I[record.COUNT]
    status = record.DONE
    if not I[record.FRESH]:
        status = refresh(I, W, I[record.Y], instant)
        if status != record.DONE:
            return int(status)
    set_bounds(I, W, speeds)
    k = 0
    for i in range(m):
        w, rest = along_speed(I, W, i, speeds), W[I[record.REST] + i]
        W[I[record.TRIED] + i] = np.sign(w)
        if rest > 0.0 and abs(w) <= rest:
            W[I[record.TRIED] + i] = 0.0
            I[I[record.INDEX] + k] = i
            k += 1
    if k:
        status = refresh(I, W, I[record.Y], instant)
        if status != record.DONE:
            return int(status)
        set_push(I, W, speeds, I[record.TRIED])
        status = rate(I, W, I[record.Y], I[record.SLOPES])
        if status != record.DONE:
            return int(status)
        for a in range(k):
            W[I[record.RIGHT] + a] = along_speed(I, W, int(I[I[record.INDEX] + a]), I[record.SLOPES] + n)
        if not balance(I, W, k, 1.0, I[record.TRIED]):
            return record.UNBALANCED
    set_push(I, W, speeds, I[record.TRIED])
    return record.DONE


@core
def balanced(I: Numbers, W: Array, instant: float, h: float, known: int) -> int:
    """END after h seconds from Y with shares TRIED, those of HOLDABLE combinations such that they agree with the speeds at the end.

    `known`: 1 where the first slope under the shares GUESS stands in SLOPES.
    """
    n, m, after, fresh = I[record.COUNT], I[record.COMBINATIONS], I[record.END] + I[record.COUNT], False
    k = 0
    for i in range(m):
        k += int(I[I[record.HOLDABLE] + i])
        W[I[record.TRIED] + i] = W[I[record.GUESS] + i]
    for trial in range(ITERATIONS):
        status = advance(I, W, instant, h, I[record.TRIED], known if trial == 0 else 0)
        if status != record.DONE or k == 0:
            return int(status)
        wrong, held = False, 0
        for i in range(m):
            w, s = along_speed(I, W, i, after), W[I[record.TRIED] + i]
            W[I[record.REACHED] + i] = w
            if I[I[record.HOLDABLE] + i]:
                if abs(s) < 1.0:
                    I[I[record.INDEX] + held] = i
                    held += 1
                wrong = wrong or (abs(w) > W[I[record.REST] + i] and (abs(s) < 1.0 or s * w < 0.0))
        if not wrong:
            halt(I, W, held, I[record.END])
            return record.DONE
        if trial == 2 and not fresh:  # what was kept of an earlier step is not near enough
            fresh = True
            status = refresh(I, W, I[record.Y], instant)
            if status != record.DONE:
                return int(status)
        set_limits(I, W, I[record.Y] + n)
        a = 0
        for i in range(m):
            if I[I[record.HOLDABLE] + i]:
                I[I[record.INDEX] + a] = i
                a += 1
        balance(I, W, k, h, -1)
        for a in range(k):
            i = I[I[record.INDEX] + a]
            right = W[I[record.REACHED] + i]
            for b in range(k):
                s = W[I[record.TRIED] + I[I[record.INDEX] + b]]
                limit = (
                    W[I[record.AHEAD] + I[I[record.INDEX] + b]]
                    if s > 0.0
                    else W[I[record.BACK] + I[I[record.INDEX] + b]]
                )
                right += W[I[record.H] + a * k + b] * limit * s
            W[I[record.RIGHT] + a] = right
        if not balance(I, W, k, h, I[record.TRIED]):
            return record.UNBALANCED
    return record.UNBALANCED


@core
def part(I: Numbers, W: Array, instant: float, h: float, parted: bool) -> float:
    """END after h seconds, or at the first instant at which a combination that slides comes to rest; STOPPED are those that do.

    The share of h that the part takes, or minus a status. TRIED are the shares along it, ARRIVING is q̈ just before what stops.
    """
    n, m, after = I[record.COUNT], I[record.COMBINATIONS], I[record.END] + I[record.COUNT]
    set_bounds(I, W, I[record.Y] + n)
    sliding = True
    for i in range(m):
        w, rest = along_speed(I, W, i, I[record.Y] + n), W[I[record.REST] + i]
        slides = abs(w) > rest
        W[I[record.ALONG] + i] = w
        W[I[record.GUESS] + i] = np.sign(w) if slides else W[I[record.SHARE] + i]
        I[I[record.HOLDABLE] + i] = 1 if rest > 0.0 and not (slides and parted) else 0
        I[I[record.STOPPED] + i] = 0
        sliding = sliding and I[I[record.HOLDABLE] + i] == 0
    status = balanced(I, W, instant, h, 0)
    if status != record.DONE:
        return -float(status)
    first, place, reached = -1, np.inf, 0.0
    for i in range(m):
        w, rest = W[I[record.ALONG] + i], W[I[record.REST] + i]
        w_after = along_speed(I, W, i, after)
        if parted and rest > 0.0 and abs(w) > rest and w_after * w < 0.0 and abs(w_after) > rest:
            I[I[record.STOPPED] + i] = 1
            if w / (w - w_after) < place:
                first, place, reached = i, w / (w - w_after), w_after
    if first < 0:
        return 1.0
    # shares of h with the speeds there, which have opposite signs
    low, w_low, high, w_high = 0.0, W[I[record.ALONG] + first], 1.0, reached
    scale = STOPPED_SHARE * max(abs(w_low), abs(w_high))
    for _ in range(SECANTS):
        # Where nothing is held the shares are those of the trial before, and so is the first slope.
        status = balanced(I, W, instant, float(place * h), int(sliding))
        if status != record.DONE:
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
        if I[I[record.STOPPED] + i] and (
            i == first or abs(along_speed(I, W, i, after)) <= max(scale, W[I[record.REST] + i])
        ):
            I[I[record.INDEX] + k] = i
            k += 1
        else:
            I[I[record.STOPPED] + i] = 0
    set_instant(I, W, float(instant + place * h))
    set_push(I, W, after, I[record.TRIED])
    status = rate(I, W, I[record.END], I[record.SLOPES])
    if status != record.DONE:
        return -float(status)
    for j in range(n):
        W[I[record.ARRIVING] + j] = W[I[record.SLOPES] + n + j]
    halt(I, W, k, I[record.END])
    return float(place)


@core
def leave_rest(I: Numbers, W: Array, now: float) -> int:
    """Take S over what came to rest at the instant at which a part with shares TRIED begins."""
    n, pending = I[record.COUNT], False
    for i in range(I[record.COMBINATIONS]):
        pending = pending or I[I[record.PENDING] + i] == 1
    if not pending:
        return record.DONE
    set_instant(I, W, now)
    set_push(I, W, I[record.Y] + n, I[record.TRIED])
    status = rate(I, W, I[record.Y], I[record.SLOPES])
    if status == record.DONE:
        for j in range(n):
            W[I[record.LEAVING] + j] = W[I[record.SLOPES] + n + j]
        call_part(I, record.SENSITIVITY_CODE, W, record.PASS_STOPS, 0.0, 0.0, 0)
    return int(status)


@core
def holding_step(I: Numbers, W: Array, instant: float, h: float, sensitive: bool) -> int:
    """Y after h seconds with friction that holds, parted where something comes to rest; S too where it is asked for."""
    n, m, now, end = I[record.COUNT], I[record.COMBINATIONS], instant, instant + h
    if I[record.WRITTEN_OUT] and I[record.FRESH] and glides(I, W, instant, h, sensitive):
        return record.DONE
    if not I[record.FRESH]:
        status = refresh(I, W, I[record.Y], instant)
        if status != record.DONE:
            return int(status)
    parts = 0
    while True:
        place = part(I, W, now, end - now, parts < PARTS)
        if place <= 0.0:
            return int(-place)
        length = place * (end - now)
        if sensitive:
            status = leave_rest(I, W, now)
            if status == record.DONE:
                status = call_part(I, record.SENSITIVITY_CODE, W, record.DIFFERENTIATE, now, float(length), 0)
            if status != record.DONE:
                return int(status)
            call_part(I, record.SENSITIVITY_CODE, W, record.HOLD_STILL, 0.0, 0.0, 0)
        stops = False
        for i in range(m):
            stops = stops or I[I[record.STOPPED] + i] == 1
            W[I[record.SHARE] + i] = 0.0 if I[I[record.STOPPED] + i] else W[I[record.TRIED] + i]
        for j in range(I[record.SIZE]):
            W[I[record.Y] + j] = W[I[record.END] + j]
        now += length
        parts += 1
        if stops and sensitive:
            for i in range(m):
                I[I[record.PENDING] + i] = I[I[record.STOPPED] + i]
            for j in range(n):
                W[I[record.ARRIVED] + j] = W[I[record.ARRIVING] + j]
        if not stops or end - now <= STOPPED_SHARE * h:
            return record.DONE


@kept
def friction_part(
    i_at: int, i_size: int, w_at: int, w_size: int, what: int, instant: float, h: float, sensitive: int
) -> int:
    """SETTLE: shares at an instant. STEP: a step of h seconds from it. I and W by address and length."""
    I = carray(as_pointer(i_at), (i_size,), np.int64)
    W = carray(as_pointer(w_at), (w_size,), np.float64)
    if what == record.SETTLE:
        return settle(I, W, instant)
    return holding_step(I, W, instant, h, sensitive != 0)


@cache
def friction_address() -> int:
    """Where the machine code of :func:`friction_part` stands in this process; compiled or loaded now."""
    return address_of(friction_part, record.PART)
