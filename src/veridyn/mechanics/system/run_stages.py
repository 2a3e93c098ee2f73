"""One explicit Runge-Kutta step of a compiled run: rates of a state under inputs, dry friction and elements' own states.

    k_i = f(t + c_i h, y + h Σ_j A_ij k_j),     y⁺ = y + h Σ_i b_i k_i,     f = (q̇, M⁻¹(Γ − Cᵀ f_dry − b), ż)

The dry friction that holds has given shares s over a step, as :mod:`veridyn.mechanics.system.dry_friction` states; its limits depend on
the speed where the law falls with it. All functions work on the record of :mod:`veridyn.mechanics.system.run_record`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.mechanics.system.run_record import (
    ACC,
    AFTER,
    AHEAD,
    BACK,
    BACKWARDS,
    BEFORE,
    CLOCK,
    COMBINATIONS,
    COUNT,
    DONE,
    ELEMENTS,
    ESCAPED,
    EXPONENT,
    FALLS,
    FEED,
    FORCE,
    FORWARD_KERNEL,
    FORWARDS,
    GIVEN,
    HOLDS,
    INSTANT,
    INTERVAL,
    INTERVAL_TIME,
    KIND,
    LAW,
    LAW_FAILED,
    NEAREST,
    OF,
    PUSH,
    RATES,
    RATES_KERNEL,
    SERVO,
    SIGNALS,
    SIZE,
    SLOPES,
    SPEED,
    STAGE,
    STAGES,
    START_TIME,
    STATES,
    TABLE_A,
    TABLE_B,
    TABLE_C,
    VALUE,
    WANTED,
    C,
    call_law,
)
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.steps.record import call_kernel
from veridyn.model.elements.own_law import LOG_OFFSET

Numbers = NDArray[np.int64]


@core
def set_instant(I: Numbers, W: Array, instant: float) -> None:
    """Forces, signals and commands so many seconds after the sample before: as it, or between it and the next one."""
    n, clock = I[COUNT], I[CLOCK]
    W[clock + INSTANT] = instant
    share = 0.0 if I[HOLDS] else min(instant / W[clock + INTERVAL], 1.0)
    to, measured = I[FEED] if I[SERVO] else I[FORCE], I[SIGNALS] - I[STATES]
    for j in range(n):
        W[to + j] = (1.0 - share) * W[I[BEFORE] + j] + share * W[I[AFTER] + j]
    for j in range(measured):
        W[I[GIVEN] + 4 * n + j] = (1.0 - share) * W[I[BEFORE] + n + j] + share * W[I[AFTER] + n + j]
    if I[SERVO]:
        for j in range(4 * n):
            at = n + measured + j
            W[I[WANTED] + j] = (1.0 - share) * W[I[BEFORE] + at] + share * W[I[AFTER] + at]


@core
def law_forces(I: Numbers, W: Array) -> int:
    """FORCE by the control law, at the state that kernels read."""
    if I[LAW] == 0:
        return DONE
    clock = I[CLOCK]
    time = W[clock + START_TIME] + (W[clock + INTERVAL_TIME] + W[clock + INSTANT])
    return DONE if call_law(I[LAW], float(time)) == 0 else LAW_FAILED


@core
def along_speed(I: Numbers, W: Array, i: int, qd: int) -> float:
    """ċ_i of combination i at rates that begin at W[qd]."""
    total, n = 0.0, I[COUNT]
    for j in range(n):
        total += W[I[C] + i * n + j] * W[qd + j]
    return float(total)


@core
def magnitude(I: Numbers, W: Array, e: int, speed: float) -> float:
    """The law of a unit parameter of friction element e, without its sign."""
    if I[I[KIND] + e] < FALLS:
        return 1.0
    ratio = abs(speed / W[I[SPEED] + e])
    power = W[I[EXPONENT] + e]
    return float(1.0 / (1.0 + ((ratio + LOG_OFFSET) ** power if power > 0.0 else ratio * ratio)))


@core
def set_limits(I: Numbers, W: Array, qd: int) -> None:
    """AHEAD and BACK: friction against motion forwards and backwards, at rates that begin at W[qd]."""
    for i in range(I[COMBINATIONS]):
        W[I[AHEAD] + i] = 0.0
        W[I[BACK] + i] = 0.0
    for e in range(I[ELEMENTS]):
        i, kind = int(I[I[OF] + e]), I[I[KIND] + e]
        size = W[I[VALUE] + e]
        if kind >= FALLS:
            size *= magnitude(I, W, e, along_speed(I, W, i, qd))
        if kind % FALLS != BACKWARDS:
            W[I[AHEAD] + i] += size
        if kind % FALLS != FORWARDS:
            W[I[BACK] + i] += size


@core
def set_push(I: Numbers, W: Array, qd: int, shares: int) -> None:
    """PUSH: what friction with shares from W[shares] on does to the coordinates at rates from W[qd] on."""
    n = I[COUNT]
    for j in range(n):
        W[I[PUSH] + j] = 0.0
    for e in range(I[ELEMENTS]):
        i, kind = int(I[I[OF] + e]), I[I[KIND] + e]
        share = W[shares + i]
        if (kind % FALLS == FORWARDS and share < 0.0) or (kind % FALLS == BACKWARDS and share > 0.0):
            continue
        force = share * W[I[VALUE] + e]
        if kind >= FALLS:
            force *= magnitude(I, W, e, along_speed(I, W, i, qd))
        for j in range(n):
            W[I[PUSH] + j] -= force * W[I[C] + i * n + j]


@core
def set_state(I: Numbers, W: Array, y: int) -> None:
    """Put the state that begins at W[y] where kernels read it."""
    n, own = I[COUNT], I[STATES]
    for j in range(2 * n):
        W[I[GIVEN] + j] = W[y + j]
    for j in range(own):
        W[I[GIVEN] + 4 * n + I[SIGNALS] - own + j] = W[y + 2 * n + j]


@core
def rate(I: Numbers, W: Array, y: int, slope: int) -> int:
    """The rate of the state that begins at W[y], under FORCE or the law and PUSH, into W[slope …]; q̈ stands in GIVEN too."""
    n = I[COUNT]
    set_state(I, W, y)
    if law_forces(I, W) != DONE:
        return LAW_FAILED
    for j in range(n):
        W[I[GIVEN] + 2 * n + j] = W[I[FORCE] + j] + W[I[PUSH] + j]
    call_kernel(I, FORWARD_KERNEL)
    if not W[I[ACC] + n] < W[I[CLOCK] + NEAREST]:  # also where it is no number
        return ESCAPED
    for j in range(n):
        if not (abs(W[y + j]) < LARGEST_ANGLE_RAD and abs(W[I[ACC] + j]) < np.inf):  # also where one is no number
            return ESCAPED
        W[slope + j] = W[y + n + j]
        W[slope + n + j] = W[I[GIVEN] + 3 * n + j] = W[I[ACC] + j]
    if I[STATES]:
        call_kernel(I, RATES_KERNEL)
        for j in range(I[STATES]):
            W[slope + 2 * n + j] = W[I[RATES] + j]
    return DONE


@core
def combine(I: Numbers, W: Array, y: int, h: float, weights: int, count: int, out: int) -> None:
    """y + h Σ w_j k_j over the first `count` slopes, into W[out …]."""
    size = I[SIZE]
    for j in range(size):
        W[out + j] = W[y + j]
    for i in range(count):
        w = h * W[weights + i]
        if w != 0.0:
            for j in range(size):
                W[out + j] += w * W[I[SLOPES] + i * size + j]


@core
def stage(I: Numbers, W: Array, i: int, y: int, instant: float, h: float, shares: int) -> int:
    """Slope i of a step of h seconds from W[y …] at an instant of the interval."""
    combine(I, W, y, h, I[TABLE_A] + i * I[STAGES], i, I[STAGE])
    set_instant(I, W, float(instant + W[I[TABLE_C] + i] * h))
    if I[COMBINATIONS]:
        set_push(I, W, I[STAGE] + I[COUNT], shares)
    return int(rate(I, W, I[STAGE], I[SLOPES] + i * I[SIZE]))


@core
def advance(I: Numbers, W: Array, y: int, out: int, instant: float, h: float, shares: int, first: int) -> int:
    """The state after h seconds from W[y …] into W[out …]; `first`: how many slopes are known already."""
    for i in range(first, I[STAGES]):
        status = stage(I, W, i, y, instant, h, shares)
        if status != DONE:
            return int(status)
    combine(I, W, y, h, I[TABLE_B], I[STAGES], out)
    return DONE
