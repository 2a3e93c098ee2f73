"""One explicit Runge-Kutta step of a compiled run: rates of a state under inputs, dry friction and elements' own states.

    k_i = f(t + c_i h, y + h Σ_j A_ij k_j),     y⁺ = y + h Σ_i b_i k_i,     f = (q̇, M⁻¹(Γ − Cᵀ f_dry − b), ż)

The dry friction that holds has given shares s over a step, as :mod:`veridyn.mechanics.system.dry_friction` states; its limits depend on
the speed where the law falls with it. All functions work on the record of :mod:`veridyn.mechanics.system.run_record`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, merged
from veridyn.mechanics.system.run_bristles import follow_path
from veridyn.mechanics.system.run_record import (
    ACC,
    ACCELERATE,
    ACTING,
    AFTER,
    AHEAD,
    BACK,
    BACKDRIVE,
    BACKWARDS,
    BEFORE,
    BOUND_CODE,
    BRISTLES,
    CLOCK,
    COMBINATIONS,
    COUNT,
    DONE,
    ELEMENTS,
    END,
    ESCAPED,
    EXPONENT,
    FALLS,
    FEED,
    FORCE,
    FORWARD_KERNEL,
    FORWARDS,
    FROM_STATE,
    GIVEN,
    HOLDS,
    INSTANT,
    INTERVAL,
    INTERVAL_TIME,
    KIND,
    LANES,
    LAW,
    LAW_FAILED,
    LEAP,
    LOAD,
    LOADED,
    NEAREST,
    NEARNESS,
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
    STEP_KERNEL,
    TABLE_A,
    TABLE_B,
    TABLE_C,
    TO_SLOPE,
    VALUE,
    WANTED,
    WRITTEN_OUT,
    C,
    Y,
    call_law,
    call_part,
)
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.steps.record import Place, call_kernel, view
from veridyn.model.elements.own_law import LOG_OFFSET

Numbers = NDArray[np.int64]


@merged
def copy(W: Array, at: Place, count: Place, out: Place) -> None:
    """W[out …] = W[at …]."""
    x, y = view(W, at, count), view(W, out, count)
    for j in range(count):
        y[j] = x[j]


@merged
def add_to(W: Array, w: float | Array, at: Place, count: Place, out: Place) -> None:
    """W[out …] += w W[at …]."""
    x, y = view(W, at, count), view(W, out, count)
    for j in range(count):
        y[j] += w * x[j]


@merged
def interpolate(I: Numbers, W: Array, first: int, count: int, out: int) -> None:
    """Inputs from number `first` on at the instant: as at the sample before, or between it and the next one."""
    share = 0.0 if I[HOLDS] else min(W[I[CLOCK] + INSTANT] / W[I[CLOCK] + INTERVAL], 1.0)
    if share == 0.0:
        copy(W, I[BEFORE] + first, count, out)
        return
    x, y = view(W, I[BEFORE] + first, count), view(W, I[AFTER] + first, count)
    z = view(W, out, count)
    for j in range(count):
        z[j] = (1.0 - share) * x[j] + share * y[j]


@merged
def set_instant(I: Numbers, W: Array, instant: float) -> None:
    """Forces and signals so many seconds after the sample before; joint controllers hold their forces from tick to tick."""
    n = I[COUNT]
    W[I[CLOCK] + INSTANT] = instant
    if I[SERVO] == 0:
        interpolate(I, W, 0, n, I[FORCE])
    if I[SIGNALS] > I[STATES]:
        interpolate(I, W, n, I[SIGNALS] - I[STATES], I[GIVEN] + 4 * n)


@core
def set_command(I: Numbers, W: Array, with_slopes: bool) -> None:
    """Feed-forward and commands of the joint controllers at the instant, and the commands' slopes, which sensitivities need."""
    n = I[COUNT]
    interpolate(I, W, 0, n, I[FEED])
    interpolate(I, W, n + I[SIGNALS] - I[STATES], 4 * n if with_slopes else 2 * n, I[WANTED])


@core
def law_forces(I: Numbers, W: Array) -> int:
    """FORCE by the control law, at the state that kernels read."""
    if I[LAW] == 0:
        return DONE
    clock = I[CLOCK]
    time = W[clock + START_TIME] + (W[clock + INTERVAL_TIME] + W[clock + INSTANT])
    return DONE if call_law(I[LAW], float(time)) == 0 else LAW_FAILED


@merged
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
def load_share(I: Numbers, W: Array, j: int, way: float) -> float:
    """Friction of coordinate j per force of its drive, against motion in the direction `way`: more where the load drives the motor."""
    back = W[I[BACKDRIVE] + j] if W[I[FORCE] + j] * way < 0.0 else 0.0
    return float(W[I[LOAD] + j] + back)


@core
def by_load(I: Numbers, W: Array, j: int, way: float) -> float:
    """Friction of coordinate j that grows with the force of its drive, against motion in the direction `way`."""
    return float(abs(W[I[FORCE] + j]) * load_share(I, W, j, way))


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
    for j in range(I[COUNT]):
        i = int(I[I[LOADED] + j])
        if i >= 0:
            W[I[AHEAD] + i] += by_load(I, W, j, 1.0)
            W[I[BACK] + i] += by_load(I, W, j, -1.0)


@merged
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
    for j in range(n):
        i = int(I[I[LOADED] + j])
        if i >= 0:
            W[I[PUSH] + j] -= W[shares + i] * by_load(I, W, j, float(W[shares + i]))


@merged
def set_state(I: Numbers, W: Array, y: int) -> None:
    """Put the state that begins at W[y] where kernels read it."""
    n, own = I[COUNT], I[STATES]
    copy(W, y, 2 * n, I[GIVEN])
    if own:
        copy(W, y + 2 * n, own, I[GIVEN] + 4 * n + I[SIGNALS] - own)


@merged
def rate(I: Numbers, W: Array, y: int, slope: int) -> int:
    """The rate of the state that begins at W[y], under FORCE or the law and PUSH, into W[slope …]; q̈ stands in GIVEN too."""
    n, given = I[COUNT], I[GIVEN]
    if I[BOUND_CODE]:
        I[FROM_STATE], I[TO_SLOPE] = y, slope
        return call_part(I, BOUND_CODE, W, ACCELERATE, 0.0, 0.0, 0)
    set_state(I, W, y)
    if law_forces(I, W) != DONE:
        return LAW_FAILED
    force, push, acting = view(W, I[FORCE], n), view(W, I[PUSH], n), view(W, given + 2 * n, n)
    for j in range(n):
        acting[j] = force[j] + push[j]
    call_kernel(I, FORWARD_KERNEL)
    near = view(W, I[ACC] + n, I[LANES])
    for lane in range(I[LANES]):
        if not near[lane] < W[I[CLOCK] + NEAREST]:  # also where it is no number
            return ESCAPED
    q, qdd, usable = view(W, y, n), view(W, I[ACC], n), True
    for j in range(n):
        usable &= (abs(q[j]) < LARGEST_ANGLE_RAD) & (abs(qdd[j]) < np.inf)  # not where one is no number
    if not usable:
        return ESCAPED
    copy(W, y + n, n, slope)
    copy(W, I[ACC], n, slope + n)
    copy(W, I[ACC], n, given + 3 * n)
    if I[STATES]:
        call_kernel(I, RATES_KERNEL)
        copy(W, I[RATES], I[STATES], slope + 2 * n)
    return DONE


@merged
def combine(I: Numbers, W: Array, y: int, h: float, weights: int, count: int, out: int) -> None:
    """y + h Σ w_j k_j over the first `count` slopes, into W[out …]; bristles follow the path."""
    size, time = I[SIZE], 0.0
    copy(W, y, size, out)
    for i in range(count):
        w = h * W[weights + i]
        time += w
        if w != 0.0:
            add_to(W, w, I[SLOPES] + i * size, size, out)
    if I[BRISTLES]:
        follow_path(I, W, y, out, time)


@merged
def stage(I: Numbers, W: Array, i: int, y: int, instant: float, h: float, shares: int) -> int:
    """Slope i of a step of h seconds from W[y …] at an instant of the interval."""
    combine(I, W, y, h, I[TABLE_A] + i * I[STAGES], i, I[STAGE])
    set_instant(I, W, float(instant + W[I[TABLE_C] + i] * h))
    if I[COMBINATIONS]:
        set_push(I, W, I[STAGE] + I[COUNT], shares)
    return int(rate(I, W, I[STAGE], I[SLOPES] + i * I[SIZE]))


@merged
def acting_share(I: Numbers, W: Array, e: int, shares: int) -> float:
    """The share of a friction element, 0 where it acts the other way only."""
    share, kind = W[shares + I[I[OF] + e]], I[I[KIND] + e] % FALLS
    idle = (kind == FORWARDS and share < 0.0) or (kind == BACKWARDS and share > 0.0)
    return 0.0 if idle else float(share)


@merged
def is_usable(I: Numbers, W: Array, y: int) -> bool:
    """Whether a step that is one formula went through usable states alone, to the one at W[y …]."""
    usable = True
    for i in range(I[STAGES]):
        usable = usable and W[I[NEARNESS] + i] < W[I[CLOCK] + NEAREST]  # not where it is no number
    for j in range(I[SIZE]):
        usable = usable and abs(W[y + j]) < (LARGEST_ANGLE_RAD if j < I[COUNT] else np.inf)
    return bool(usable)


@merged
def set_leap(I: Numbers, W: Array, instant: float, h: float, shares: int) -> None:
    """What a step that is one formula reads besides state, inputs and sensitivities."""
    leap, interval = I[LEAP], W[I[CLOCK] + INTERVAL]
    W[leap] = h
    W[leap + 1] = 0.0 if I[HOLDS] else min(instant / interval, 1.0)
    W[leap + 2] = 0.0 if I[HOLDS] else h / interval
    if I[COMBINATIONS]:
        set_push(I, W, I[Y] + I[COUNT], shares)
    for e in range(I[ELEMENTS]):
        W[I[ACTING] + e] = acting_share(I, W, e, shares)


@core
def advance(I: Numbers, W: Array, instant: float, h: float, shares: int, first: int) -> int:
    """The state END after h seconds from Y; `first`: how many slopes are known already."""
    y, out = I[Y], I[END]
    if I[WRITTEN_OUT]:
        set_leap(I, W, instant, h, shares)
        call_kernel(I, STEP_KERNEL)
        if is_usable(I, W, out):
            return DONE
        first = 0
    for i in range(first, I[STAGES]):
        status = stage(I, W, i, y, instant, h, shares)
        if status != DONE:
            return int(status)
    combine(I, W, y, h, I[TABLE_B], I[STAGES], out)
    return DONE
