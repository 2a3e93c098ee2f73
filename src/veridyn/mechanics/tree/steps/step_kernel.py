"""The trapezoidal step of a tree over independent coordinates, with its exact derivative, as machine code.

With velocities ż of the independent coordinates, accelerations z̈(x, ż, u, s) of the closed machine and states s of elements:

    Δ = h ż₀ + h²/4 (z̈₀ + z̈₁),    x₁ = x₀ ⊞ Δ,    ż₁ = ż₀ + h/2 (z̈₀ + z̈₁),    s₁ = s₀ + h/2 (ṡ₀ + ṡ₁)

x ⊞ Δ adds to coordinates and turns the attitude of a free base, R exp(Δθ); coordinates that loops tie follow by Newton's method. The step
is that of :mod:`veridyn.mechanics.natural.steps.minimal`; for a free base it is Newmark's on the group of rotations (Simo and Vu-Quoc,
1988). It is solved by Newton's method with the exact derivatives of z̈ and ṡ, and its derivative is that of these equations:

    dx₁ = T₀ dx₀ + T₁ dΔ,    T₀ = exp(−Δθ), T₁ = Jr(Δθ) for the attitude, identities elsewhere
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.tree.steps import record
from veridyn.mechanics.tree.steps.motion_kernel import hold, own_row, place_at, shift, state_at
from veridyn.mechanics.tree.steps.record import as_pointer, solve
from veridyn.mechanics.tree.steps.tangent_kernel import differentiate, iteration_matrix, rotation_steps, step_derivative

Numbers = NDArray[np.int64]
SETTLED_CHANGE = 1e-11  # of a step's last change, relative to the machine's size
SETTLED_STATE = 1e-10  # the same of a state of an element, relative to its own size
SAME_STEP = 1e-6  # relative difference of step lengths that share the factors of Newton's method
SMALLEST_STATE = 1e-9  # of a state that moves nothing
MAX_ITERATIONS = 40
MAX_HALVINGS = 6
RENEWAL_TRIALS = (
    5.0  # that take as long as derivatives and factors of Newton's method made anew, of a vehicle of 35 rates
)
MARGIN = 10.0  # times the pace of Newton's method that it is relied on to have at the next step (chosen)


@core
def set_states(I: Numbers, W: Array, values: int) -> None:
    """Put states of elements, which begin at W[values], where the kernels read them."""
    ns = I[record.STATES]
    first = I[record.VARYING] - ns
    for i in range(ns):
        W[I[I[record.SLOT_MOTION] + first + i]] = W[values + i]
        W[I[I[record.SLOT_TANGENT] + first + i]] = W[values + i]


@core
def state_size(I: Numbers, W: Array, i: int, h: float) -> float:
    """The size of a state of an element over a step."""
    rates = h * max(abs(W[I[record.S_RATE] + i]), abs(W[I[record.STATE_RATE] + i]))
    return float(max(abs(W[I[record.S0] + i]), abs(W[I[record.S1] + i]), rates, W[I[record.S_SIZE] + i]))


@core
def least_sizes(I: Numbers, W: Array, h: float, reach: float) -> None:
    """S_SIZE: sizes of states below which they move the machine by less than what counts as settled; a slip at standstill is zero."""
    f, ns, every = I[record.FREEDOM], I[record.STATES], 2 * I[record.FREEDOM] + I[record.FORCES] + I[record.VARYING]
    for i in range(ns):
        push = 0.0
        for c in range(f):
            push = max(push, abs(W[I[record.A_X] + own_row(I, c) * every + every - ns + i]))
        least = SETTLED_CHANGE * reach / (0.5 * SETTLED_STATE * h * push) if push > 0.0 else 0.0
        W[I[record.S_SIZE] + i] = max(least, SMALLEST_STATE)


@core
def set_end(I: Numbers, W: Array, h: float) -> None:
    """DELTA, rates TRIED, X but for its dependent coordinates, and states of elements, for accelerations A1 and states S1 at the end."""
    for c in range(I[record.FREEDOM]):
        both = W[I[record.A0] + c] + W[I[record.A1] + c]
        W[I[record.DELTA] + c] = h * W[I[record.RATE] + c] + 0.25 * h * h * both
        W[I[record.TRIED] + c] = W[I[record.RATE] + c] + 0.5 * h * both
    set_states(I, W, I[record.S1])
    shift(I, W)


@core
def trial(I: Numbers, W: Array, h: float, reach: float) -> float:
    """The state after a step with accelerations A1 and states S1 at its end; LEFT: by how much Newton's method would change these.

    The largest change over the one that counts as settled; NaN where there is no such state.
    """
    f, ns, left = I[record.FREEDOM], I[record.STATES], I[record.LEFT]
    W[I[record.SPENT]] += 1.0
    set_end(I, W, h)
    if not state_at(I, W, I[record.TRIED]):
        return np.nan
    for c in range(f):
        W[left + c] = W[I[record.A] + own_row(I, c)] - W[I[record.A1] + c]
    for i in range(ns):
        moved = 0.5 * h * (W[I[record.S_RATE] + i] + W[I[record.STATE_RATE] + i])
        W[left + f + i] = W[I[record.S0] + i] + moved - W[I[record.S1] + i]
    solve(I, W, I[record.N], f + ns, I[record.PIVOT_N], left)
    share = 0.0
    for c in range(f):
        share = max(share, 0.5 * h * abs(W[left + c]) / (SETTLED_CHANGE * reach))
    for i in range(ns):
        share = max(share, abs(W[left + f + i]) / (SETTLED_STATE * state_size(I, W, i, h)))
    for c in range(f + ns):
        if not np.isfinite(W[left + c]):
            return np.nan
    return float(share)


@core
def begin_step(I: Numbers, W: Array, h: float) -> float:
    """Where a step starts, with dependent coordinates moved on to second order as a guess; the machine's size."""
    size, dep, first = 1.0, I[record.DEPENDENT], I[record.COUNT_V] - I[record.COUNT]
    for i in range(I[record.COUNT_Q]):
        W[I[record.START] + i] = W[I[record.X] + i]
        size = max(size, abs(W[I[record.X] + i]))
    for i in range(I[record.LOOPED]):
        k = I[dep + i]
        W[I[record.X] + I[record.COUNT_Q] - I[record.COUNT] + k] += h * (
            W[I[record.V] + first + k] + 0.5 * h * W[I[record.A] + first + k]
        )
    W[I[record.CLOCK]] += h
    for i in range(9):
        W[I[record.T0] + i] = W[I[record.T1] + i] = 1.0 if i % 4 == 0 else 0.0
    states = I[record.UNKNOWN] + I[record.FORCES] + I[record.VARYING] - I[record.STATES]
    for c in range(I[record.FREEDOM]):
        W[I[record.A0] + c] = W[I[record.A] + own_row(I, c)]
    for i in range(I[record.STATES]):
        W[I[record.S0] + i] = W[states + i]
        W[I[record.S_RATE] + i] = W[I[record.STATE_RATE] + i]
    return float(size)


@core
def remember(I: Numbers, W: Array) -> None:
    """Keep the derivatives at the state in hand in BEFORE and BEFORE_S."""
    every = 2 * I[record.FREEDOM] + I[record.FORCES] + I[record.VARYING]
    for c in range(I[record.FREEDOM]):
        own = own_row(I, c)
        for d in range(every):
            W[I[record.BEFORE] + c * every + d] = W[I[record.A_X] + own * every + d]
    for i in range(I[record.STATES] * every):
        W[I[record.BEFORE_S] + i] = W[I[record.S_X] + i]


@core
def guess_end(I: Numbers, W: Array, h: float) -> None:
    """A1 and S1 as the derivatives in BEFORE and BEFORE_S and the factors of N have them, from the start (A0, S0):

    N (z̈₁ − z̈₀, s₁ − s₀) = (∂z̈, h ṡ₀ + h/2 ∂ṡ),  ∂ = ∂/∂x (h ż₀ + h²/2 z̈₀) + ∂/∂ż h z̈₀
    """
    f, ns, every, left = (
        I[record.FREEDOM],
        I[record.STATES],
        2 * I[record.FREEDOM] + I[record.FORCES] + I[record.VARYING],
        I[record.LEFT],
    )
    for c in range(f + ns):
        row = I[record.BEFORE] + c * every if c < f else I[record.BEFORE_S] + (c - f) * every
        s = 0.0
        for d in range(f):
            a = W[I[record.A0] + d]
            s += W[row + d] * (W[I[record.RATE] + d] + 0.5 * h * a) + W[row + f + d] * a
        W[left + c] = h * s if c < f else h * (W[I[record.S_RATE] + c - f] + 0.5 * h * s)
    solve(I, W, I[record.N], f + ns, I[record.PIVOT_N], left)
    for c in range(f):
        W[I[record.A1] + c] = W[I[record.A0] + c] + W[left + c]
    for i in range(ns):
        W[I[record.S1] + i] = W[I[record.S0] + i] + W[left + f + i]


@core
def shift_end(I: Numbers, W: Array, sign: float) -> None:
    """Move A1 and S1 by CHANGE."""
    f, change = I[record.FREEDOM], I[record.CHANGE]
    for c in range(f):
        W[I[record.A1] + c] += sign * W[change + c]
    for i in range(I[record.STATES]):
        W[I[record.S1] + i] += sign * W[change + f + i]


@core
def finish(I: Numbers, W: Array, asked: int) -> None:
    """Forces of cut joints at the state in hand, and its derivatives where they are asked for."""
    if asked != record.STATE:
        differentiate(I, W, asked)
    elif I[record.LOOPED] > 0:
        hold(I, W, I[record.LOAD], I[record.A], I[record.LAM])


@core
def prepare_next(I: Numbers, W: Array, h: float, reach: float) -> bool:
    """What the steps after this one start from: the derivatives at its end, and the factors of N there; False where N is singular."""
    remember(I, W)
    least_sizes(I, W, h, reach)
    if I[record.FREE]:
        rotation_steps(I, W)
    return bool(iteration_matrix(I, W, h))


@core
def settled_at(I: Numbers, W: Array) -> int:
    """Put the states of elements where they are read."""
    for i in range(I[record.STATES]):
        W[I[record.UNKNOWN] + I[record.FORCES] + I[record.VARYING] - I[record.STATES] + i] = W[I[record.S1] + i]
    return record.DONE


@core
def relied_on(I: Numbers, W: Array, off: float) -> bool:
    """Whether one change more leaves ENOUGH times what counts as settled or less, at the pace that Newton's method had last.

    The older its factors and the larger the change, the slower it is.
    """
    pace, size = W[I[record.PACE]], W[I[record.PACE] + 1]
    return bool(
        pace > 0.0 and MARGIN * pace * max(W[I[record.AGE]], 1.0) * max(off / size, 1.0) * off <= W[I[record.ENOUGH]]
    )


@core
def follow(I: Numbers, W: Array, h: float) -> bool:
    """The step's end after the change LEFT of A1 and S1, with accelerations that change as A1 does instead of being computed there."""
    f, left, a, r = I[record.FREEDOM], I[record.LEFT], I[record.A], I[record.R]
    for c in range(f + I[record.STATES]):
        W[I[record.CHANGE] + c] = W[left + c]
    shift_end(I, W, 1.0)
    set_end(I, W, h)
    if not place_at(I, W, I[record.TRIED]):
        return False
    for c in range(f):
        own = own_row(I, c)
        more = W[I[record.A1] + c] - W[a + own]
        W[a + own] += more
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            W[a + k] += W[r + k * f + c] * more
    settled_at(I, W)
    return True


@core
def settle(I: Numbers, W: Array, h: float, reach: float, off: float) -> int:
    """Newton's method for A1 and S1 with the factors of N, which are made anew where they lead there slowly.

    `off`: what :func:`trial` said of them. It ends one change after the one that counts as settled, or where the next would be ENOUGH times
    that one or less.
    """
    f, ns, left, change = I[record.FREEDOM], I[record.STATES], I[record.LEFT], I[record.CHANGE]
    before, enough = np.inf, W[I[record.ENOUGH]]
    for _ in range(MAX_ITERATIONS):
        if not np.isfinite(off):
            return record.SINGULAR
        if off <= enough:
            return settled_at(I, W)
        rate = off / before  # what is left after this change is about that much of it
        settled = off <= 1.0 or (0.0 < rate < 0.1 and rate * off <= 0.1)
        for c in range(f + ns):
            W[change + c] = W[left + c]
        shift_end(I, W, 1.0)
        now = trial(I, W, h, reach)
        for _ in range(MAX_HALVINGS):
            if settled or now <= off:
                break
            for c in range(f + ns):
                W[change + c] *= 0.5
            shift_end(I, W, -1.0)  # half of the way back
            now = trial(I, W, h, reach)
        if settled and np.isfinite(now):
            return settled_at(I, W)
        W[I[record.PACE]], W[I[record.PACE] + 1] = now / off / max(W[I[record.AGE]], 1.0), off
        slow, before, off = not now <= 0.1 * off, off, now
        if slow and np.isfinite(off):
            differentiate(I, W, record.TANGENTS)
            least_sizes(I, W, h, reach)
            if I[record.FREE]:
                rotation_steps(I, W)
            if not iteration_matrix(I, W, h):
                return record.SINGULAR
            off, before = trial(I, W, h, reach), np.inf
    return record.UNSETTLED


@core
def worn(I: Numbers, W: Array) -> bool:
    """Whether trials that factors cost by their age, over all steps since they were made, have taken as long as making them anew.

    Steps with factors of any age end at the same state; older ones take more trials.
    """
    spent, fewest, excess = I[record.SPENT], I[record.SPENT] + 1, I[record.SPENT] + 2
    if W[I[record.AGE]] <= 1.0:
        W[fewest], W[excess] = W[spent], 0.0
    W[fewest] = min(W[fewest], W[spent])
    W[excess] += W[spent] - W[fewest]
    return bool(W[excess] >= RENEWAL_TRIALS)


@kept
def advance_at(numbers: int, count: int, values: int, size: int, h: float, asked: int) -> int:
    """One step h of the state (START ⊞ DELTA, RATE), or for h = 0 that state itself; results are left in the record.

    The record comes by the addresses and lengths of I and W, so that callers need not be compiled with this function but call it by its
    own address (:func:`veridyn.mechanics.tree.steps.record.call_step`). X holds a guess of the dependent coordinates; states of elements
    are among UNKNOWN. `asked`: PLACE, STATE, TANGENTS, REACTIONS, SLOPES, or ONWARD, which is STATE where X, velocities and accelerations
    in the record are those of (START, RATE) under what acts now. Returns DONE, SINGULAR or UNSETTLED.
    """
    I = carray(as_pointer(numbers), (count,), np.int64)
    W = carray(as_pointer(values), (size,), np.float64)
    if asked == record.ONWARD:
        asked = record.STATE
    else:
        shift(I, W)
        if asked == record.PLACE:
            return record.DONE if place_at(I, W, I[record.RATE]) else record.SINGULAR
        if not state_at(I, W, I[record.RATE]):
            return record.SINGULAR
    if h == 0.0:
        finish(I, W, asked)
        return record.DONE
    # The factors of an earlier step serve while they lead there quickly.
    if asked in (record.STATE, record.SLOPES) and abs(W[I[record.KEPT]] - h) <= SAME_STEP * h:
        for i in range(I[record.COUNT_Q]):
            W[I[record.BEGUN] + i] = W[I[record.X] + i]
        W[I[record.AGE]] += 1.0
        W[I[record.SPENT]] = 0.0
        clock = W[I[record.CLOCK]]
        reach = begin_step(I, W, h)
        guess_end(I, W, h)
        off = trial(I, W, h, reach)
        if asked == record.STATE and relied_on(I, W, off):
            finish(I, W, asked)  # at the state that was tried
            if follow(I, W, h):
                return record.DONE
        elif settle(I, W, h, reach, off) == record.DONE:
            if asked == record.STATE and W[I[record.ENOUGH]] == 0.0 and worn(I, W):
                W[I[record.KEPT]] = 0.0
            finish(I, W, asked)
            return record.DONE if asked == record.STATE or prepare_next(I, W, h, reach) else record.SINGULAR
        for i in range(I[record.COUNT_Q]):
            W[I[record.X] + i] = W[I[record.START] + i] = W[I[record.BEGUN] + i]
        for c in range(I[record.FREEDOM]):
            W[I[record.DELTA] + c] = 0.0
        W[I[record.CLOCK]] = clock
        set_states(I, W, I[record.S0])
        if not state_at(I, W, I[record.RATE]):
            return record.SINGULAR
    differentiate(I, W, record.TANGENTS)
    reach = begin_step(I, W, h)
    remember(I, W)
    least_sizes(I, W, h, reach)
    if not iteration_matrix(I, W, h):
        return record.SINGULAR
    guess_end(I, W, h)
    ended = settle(I, W, h, reach, trial(I, W, h, reach))
    if ended != record.DONE:
        return ended
    finish(I, W, asked)
    if asked == record.SLOPES:
        return record.DONE if prepare_next(I, W, h, reach) else record.SINGULAR
    return record.DONE if asked == record.STATE or step_derivative(I, W, h) else record.SINGULAR


@cache
def advance_address() -> int:
    """Where the machine code of :func:`advance_at` stands in this process."""
    return address_of(advance_at, (types.int64, types.int64, types.int64, types.int64, types.float64, types.int64))
