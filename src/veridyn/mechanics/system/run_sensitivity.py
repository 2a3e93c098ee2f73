"""Sensitivities of a compiled run: the exact derivative of its Runge-Kutta steps by parameters, constants and initial state x.

With A = ∂f/∂y and B = ∂f/∂x at the state of each stage,

    dk_i = A_i (S + h Σ_j A_ij dk_j) + B_i,     S⁺ = S + h Σ_i b_i dk_i,     M dq̈ = −(Γ_q S_q + Γ_v S_v + Γ_z S_z + Γ_x)

Γ_x are columns of the regressor, for constants of laws derivatives of inverse dynamics. Over a part of a step the shares s of dry friction
that slides are constant. Where friction holds, its forces f make C v⁺ = 0 whatever x is: columns by f are carried along, E = ∂y⁺/∂f, and
S⁺ − E (C E_v)⁻¹ C S_v⁺ is the derivative of the part. Where a combination c comes to rest at the instant t*, with accelerations a⁻ before
and a⁺ after it, ∂t*/∂x = −C S_v/c̈⁻ and S_v⁺ = S_v⁻ + (a⁺ − a⁻) C S_v⁻/c̈⁻; a⁺ is under the shares of the part that follows.
There it is the derivative of the motion and not of the two parts of a step, whose ends change with their lengths by f to the order of the
rule alone: both differ by (h ∂f/∂v)² of the midpoint rule, up to 1e-3 and more where friction is rounded off steeply, and by 1e-7 of RK4.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics import dense
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.system.dry_friction import ROUNDING
from veridyn.mechanics.system.run_blocks import GAINS
from veridyn.mechanics.system.run_bristles import differentiate_path
from veridyn.mechanics.system.run_record import (
    ARRIVED,
    BEGIN,
    BLOCK_AT,
    BLOCKS,
    BRISTLES,
    BY_LAW,
    COEFFICIENTS,
    COLUMN,
    COLUMN_FROM,
    COMBINATION,
    COMBINATION_FROM,
    COMBINATIONS,
    CONSTANT_TRIPLE,
    CONSTANTS,
    COORDINATE,
    COORDINATE_FROM,
    COUNT,
    DERIVATIVES,
    DERIVATIVES_KERNEL,
    DIFFERENTIATE,
    DONE,
    ELEMENTS,
    EXPONENT,
    FALLS,
    FIRST_STATE,
    FORCE,
    FRICTION_TRIPLE,
    GAIN_COLUMN,
    GIVEN,
    HELD_BLOCK,
    HELD_RIGHT,
    HOLD_STILL,
    INDEX,
    KIND,
    LAW,
    LAW_SLOPES,
    LEAVING,
    LENGTH,
    LOADED,
    M_BLOCK,
    MASS,
    MASS_KERNEL,
    OF,
    PART,
    PASS_STOPS,
    PENDING,
    PIVOT,
    PIVOT_BLOCK,
    REGRESSOR,
    REGRESSOR_KERNEL,
    RIGHT_AT,
    S_FORCE,
    S_RIGHT,
    S_SLOPES,
    S_STAGE,
    SERVO,
    SERVO_AT,
    SIZE,
    SPEED,
    STAGE,
    STAGES,
    STATE,
    STATE_FROM,
    TABLE_A,
    TABLE_B,
    TABLE_C,
    TANGENT_KERNEL,
    TRIED,
    TRIPLE,
    TRIPLES,
    VALUE,
    WRITTEN_OUT,
    C,
    S,
    Y,
)
from veridyn.mechanics.system.run_stages import (
    acting_share,
    add_to,
    along_speed,
    combine,
    copy,
    is_usable,
    law_forces,
    load_share,
    magnitude,
    set_leap,
    stage,
)
from veridyn.mechanics.tree.steps.record import as_pointer, call_kernel, view
from veridyn.model.elements.own_law import LOG_OFFSET

Numbers = NDArray[np.int64]
GAIN_COUNT, LOAD_COLUMNS = len(GAINS), GAINS.index("load_friction")
DIFFERENCE_STEP = 1e-6  # by which a state is moved to differentiate a control law


@core
def law_slopes(I: Numbers, W: Array) -> int:
    """BY_LAW: ∂F/∂q and ∂F/∂q̇ (n, 2n) of the control law at the state that kernels read, by differences."""
    n = I[COUNT]
    for k in range(2 * n):
        x = W[I[GIVEN] + k]
        for way in range(2):
            W[I[GIVEN] + k] = x + (DIFFERENCE_STEP if way == 0 else -DIFFERENCE_STEP)
            status = law_forces(I, W)
            if status != DONE:
                return int(status)
            for j in range(n):
                at = I[BY_LAW] + j * 2 * n + k
                W[at] = W[I[FORCE] + j] if way == 0 else (W[at] - W[I[FORCE] + j]) / (2.0 * DIFFERENCE_STEP)
        W[I[GIVEN] + k] = x
    return int(law_forces(I, W))


@core
def falling_slope(I: Numbers, W: Array, e: int, speed: float) -> float:
    """The derivative of :func:`magnitude` by the speed."""
    scale, power = W[I[SPEED] + e], W[I[EXPONENT] + e]
    ratio = abs(speed / scale)
    size = magnitude(I, W, e, speed)
    inner = power * (ratio + LOG_OFFSET) ** (power - 1.0) if power > 0.0 else 2.0 * ratio
    return float(-size * size * inner * np.sign(speed / scale) / scale)


@core
def linearise(I: Numbers, W: Array, shares: int) -> int:
    """DERIVATIVES, MASS and REGRESSOR at the stage whose state kernels have just read, with control law and falling friction."""
    n = I[COUNT]
    width = I[SIZE] + I[CONSTANTS]
    call_kernel(I, DERIVATIVES_KERNEL)
    call_kernel(I, MASS_KERNEL)
    if I[TRIPLES]:
        call_kernel(I, REGRESSOR_KERNEL)
    if I[LAW]:
        status = law_slopes(I, W)
        if status != DONE:
            return int(status)
    for e in range(I[ELEMENTS]):
        if I[I[KIND] + e] >= FALLS:
            i = int(I[I[OF] + e])
            slope = falling_slope(I, W, e, along_speed(I, W, i, I[STAGE] + n))
            slope *= acting_share(I, W, e, shares) * W[I[VALUE] + e]
            for a in range(n):
                for b in range(n):
                    W[I[DERIVATIVES] + a * width + n + b] += slope * W[I[C] + i * n + a] * W[I[C] + i * n + b]
    return DONE


@core
def set_right(I: Numbers, W: Array, shares: int) -> None:
    """S_RIGHT: Γ_x of every block, rows of states of elements' own with ż_x."""
    n, triples, triple, entries = I[COUNT], I[TRIPLES], I[TRIPLE], I[REGRESSOR]
    right = view(W, I[S_RIGHT], I[I[RIGHT_AT] + I[BLOCKS]])
    for j in range(len(right)):
        right[j] = 0.0
    c = I[COEFFICIENTS]
    for k in range(triples):
        right[I[triple + 2 * k + 1]] += W[c + k] * W[entries + I[triple + 2 * k]]
    c += triples
    for k in range(I[FRICTION_TRIPLE + 1] // 2):
        at = I[FRICTION_TRIPLE] + 2 * k
        e = int(I[at])
        law = acting_share(I, W, e, shares) * magnitude(I, W, e, along_speed(I, W, int(I[I[OF] + e]), I[STAGE] + n))
        W[I[S_RIGHT] + I[at + 1]] += W[c + k] * law
    for k in range(I[CONSTANT_TRIPLE + 1] // 2):
        at = I[CONSTANT_TRIPLE] + 2 * k
        W[I[S_RIGHT] + I[at + 1]] += W[I[DERIVATIVES] + I[at]]
    if I[SERVO]:
        for b in range(I[BLOCKS]):
            first = I[I[COORDINATE_FROM] + b]
            P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
            for a in range(I[I[COORDINATE_FROM] + b + 1] - first):
                j = int(I[I[COORDINATE] + first + a])
                force = view(W, I[S_FORCE] + I[I[SERVO_AT] + j], P)
                own = view(W, I[S_RIGHT] + I[I[RIGHT_AT] + b] + a * P, P)
                left = 1.0
                if I[I[LOADED] + j] >= 0:  # friction takes a share of the force
                    share, acting = W[shares + I[I[LOADED] + j]], W[I[FORCE] + j]
                    left -= share * np.sign(acting) * load_share(I, W, j, float(share))
                    by = I[GAIN_COLUMN] + GAIN_COUNT * j + LOAD_COLUMNS
                    if I[by] >= 0:
                        own[I[by]] += share * abs(acting)
                    if I[by + 1] >= 0 and acting * share < 0.0:
                        own[I[by + 1]] += share * abs(acting)
                for p in range(P):
                    own[p] -= left * force[p]
    if I[COMBINATIONS]:
        for b in range(I[BLOCKS]):  # columns by the friction forces themselves
            first, held = I[I[COORDINATE_FROM] + b], I[I[COMBINATION_FROM] + b]
            mb = I[I[COMBINATION_FROM] + b + 1] - held
            P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
            for a in range(I[I[COORDINATE_FROM] + b + 1] - first):
                at = I[S_RIGHT] + I[I[RIGHT_AT] + b] + a * P + P - mb
                for u in range(mb):
                    W[at + u] = W[I[C] + I[I[COMBINATION] + held + u] * n + I[I[COORDINATE] + first + a]]


@core
def block_slope(I: Numbers, W: Array, b: int, out: int) -> bool:
    """dk of block b at W[out …] from S_STAGE and S_RIGHT; False where its mass matrix is singular."""
    n, size, law = I[COUNT], I[SIZE], I[LAW] != 0
    width = size + I[CONSTANTS]
    first, own = I[I[COORDINATE_FROM] + b], I[I[STATE_FROM] + b]
    nb, sb = I[I[COORDINATE_FROM] + b + 1] - first, I[I[STATE_FROM] + b + 1] - own
    P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
    s, r, m = I[S_STAGE] + I[I[BLOCK_AT] + b], I[S_RIGHT] + I[I[RIGHT_AT] + b], I[M_BLOCK]
    derivatives, coordinate, state = I[DERIVATIVES], I[COORDINATE] + first, I[STATE] + own
    for a in range(nb + sb):
        row = I[coordinate + a] if a < nb else n + I[state + a - nb]
        sign = -1.0 if a < nb else 1.0
        right = view(W, r + a * P, P)
        for p in range(P):
            right[p] *= sign
        for c in range(2 * nb + sb):
            if c < nb:
                column = I[coordinate + c]
            elif c < 2 * nb:
                column = I[coordinate + c - nb] + n
            else:
                column = 2 * n + I[state + c - 2 * nb]
            g = W[derivatives + row * width + column]
            if law and a < nb and c < 2 * nb:
                g -= W[I[BY_LAW] + row * 2 * n + column]
            if g != 0.0:
                g *= sign
                by = view(W, s + c * P, P)
                for p in range(P):
                    right[p] += g * by[p]
    if nb == 1:  # no matrix to factorise
        mass, right = W[I[MASS] + I[coordinate] * (n + 1)], view(W, r, P)
        if not (abs(mass) > 0.0 and abs(mass) < np.inf):
            return False
        inverse = 1.0 / mass
        for p in range(P):
            right[p] *= inverse
    else:
        for i in range(nb):
            for j in range(nb):
                W[m + i * nb + j] = W[I[MASS] + I[coordinate + i] * n + I[coordinate + j]]
        pivots = I[I[PIVOT_BLOCK] : I[PIVOT_BLOCK] + nb]
        A = W[m : m + nb * nb].reshape(nb, nb)
        if not dense.factor(A, pivots):
            return False
        dense.solve_many(A, pivots, W[r : r + nb * P].reshape(nb, P))
    copy(W, s + nb * P, nb * P, out)
    copy(W, r, (nb + sb) * P, out + nb * P)
    return True


@core
def differentiate(I: Numbers, W: Array, instant: float, h: float, shares: int) -> int:
    """S after a step of h seconds from Y, its stages once more, each with its derivative; STAGE is the state there."""
    length, y = I[LENGTH], I[Y]
    if I[WRITTEN_OUT]:
        set_leap(I, W, instant, h, shares)
        call_kernel(I, TANGENT_KERNEL)
        if is_usable(I, W, I[STAGE]):
            copy(W, I[S_STAGE], length, I[S])
            return DONE
    for i in range(I[STAGES]):
        status = stage(I, W, i, y, instant, h, shares)
        if status == DONE:
            status = linearise(I, W, shares)
        if status != DONE:
            return int(status)
        copy(W, I[S], length, I[S_STAGE])
        for k in range(i):
            w = h * W[I[TABLE_A] + i * I[STAGES] + k]
            if w != 0.0:
                add_to(W, w, I[S_SLOPES] + k * length, length, I[S_STAGE])
        if I[BRISTLES]:
            differentiate_path(I, W, y, I[STAGE], float(h * W[I[TABLE_C] + i]), I[S], I[S_STAGE])
        set_right(I, W, shares)
        for b in range(I[BLOCKS]):
            if not block_slope(I, W, b, I[S_SLOPES] + i * length + I[I[BLOCK_AT] + b]):
                return 1
    combine(I, W, y, h, I[TABLE_B], I[STAGES], I[STAGE])
    if I[BRISTLES]:
        copy(W, I[S], length, I[S_STAGE])
    for i in range(I[STAGES]):
        add_to(W, h * W[I[TABLE_B] + i], I[S_SLOPES] + i * length, length, I[S])
    if I[BRISTLES]:
        differentiate_path(I, W, y, I[STAGE], h, I[S_STAGE], I[S])
    return DONE


@core
def along_block(I: Numbers, W: Array, i: int, b: int, p: int) -> float:
    """C_i S_v of column p of block b."""
    n, first = I[COUNT], I[I[COORDINATE_FROM] + b]
    nb = I[I[COORDINATE_FROM] + b + 1] - first
    P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
    total, at = 0.0, I[S] + I[I[BLOCK_AT] + b] + nb * P + p
    for a in range(nb):
        total += W[I[C] + i * n + I[I[COORDINATE] + first + a]] * W[at + a * P]
    return float(total)


@core
def hold_still(I: Numbers, W: Array, shares: int) -> None:
    """Make S leave speeds along combinations that friction holds as they are; columns by friction forces begin anew."""
    for b in range(I[BLOCKS]):
        first = I[I[COMBINATION_FROM] + b]
        mb = I[I[COMBINATION_FROM] + b + 1] - first
        if mb == 0:
            continue
        nb = I[I[COORDINATE_FROM] + b + 1] - I[I[COORDINATE_FROM] + b]
        rows = 2 * nb + I[I[STATE_FROM] + b + 1] - I[I[STATE_FROM] + b]
        P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
        s, k = I[S] + I[I[BLOCK_AT] + b], 0
        for a in range(mb):
            if abs(W[shares + I[I[COMBINATION] + first + a]]) < 1.0:
                I[I[INDEX] + k] = a
                k += 1
        if k:
            for u in range(k):
                i = int(I[I[COMBINATION] + first + I[I[INDEX] + u]])
                for v in range(k):
                    W[I[HELD_BLOCK] + u * k + v] = along_block(I, W, i, b, int(P - mb + I[I[INDEX] + v]))
                W[I[HELD_BLOCK] + u * k + u] *= 1.0 + ROUNDING
                for p in range(P - mb):
                    W[I[HELD_RIGHT] + u * (P - mb) + p] = along_block(I, W, i, b, p)
            A = W[I[HELD_BLOCK] : I[HELD_BLOCK] + k * k].reshape(k, k)
            pivots = I[I[PIVOT] : I[PIVOT] + k]
            if dense.factor(A, pivots):
                X = W[I[HELD_RIGHT] : I[HELD_RIGHT] + k * (P - mb)].reshape(k, P - mb)
                dense.solve_many(A, pivots, X)
                for r in range(rows):
                    for u in range(k):
                        e = W[s + r * P + P - mb + I[I[INDEX] + u]]
                        for p in range(P - mb):
                            W[s + r * P + p] -= e * X[u, p]
        for r in range(rows):
            for a in range(mb):
                W[s + r * P + P - mb + a] = 0.0


@core
def pass_stops(I: Numbers, W: Array) -> None:
    """Take S over what came to rest: PENDING combinations, with accelerations ARRIVED before it and LEAVING after it."""
    for i in range(I[COMBINATIONS]):
        if I[I[PENDING] + i] == 0:
            continue
        I[I[PENDING] + i] = 0
        slope = along_speed(I, W, i, I[ARRIVED])
        if slope == 0.0:
            continue
        for b in range(I[BLOCKS]):
            first = I[I[COORDINATE_FROM] + b]
            nb = I[I[COORDINATE_FROM] + b + 1] - first
            P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
            inside = False
            for a in range(I[I[COMBINATION_FROM] + b], I[I[COMBINATION_FROM] + b + 1]):
                inside = inside or I[I[COMBINATION] + a] == i
            if not inside:
                continue
            at = I[S] + I[I[BLOCK_AT] + b] + nb * P
            for p in range(P):
                change = along_block(I, W, i, b, p) / slope
                for a in range(nb):
                    j = I[I[COORDINATE] + first + a]
                    W[at + a * P + p] += (W[I[LEAVING] + j] - W[I[ARRIVED] + j]) * change


@core
def begin_sensitivities(I: Numbers, W: Array) -> None:
    """S at the start of a run: 1 where a column is that of a component of the initial state, which come last."""
    n = I[COUNT]
    for j in range(I[LENGTH]):
        W[I[S] + j] = 0.0
    for b in range(I[BLOCKS]):
        first, own = I[I[COORDINATE_FROM] + b], I[I[STATE_FROM] + b]
        nb, sb = I[I[COORDINATE_FROM] + b + 1] - first, I[I[STATE_FROM] + b + 1] - own
        at, P = I[I[COLUMN_FROM] + b], I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
        for r in range(2 * nb + sb):
            if r < 2 * nb:
                y = I[I[COORDINATE] + first + r % nb] + (n if r >= nb else 0)
            else:
                y = 2 * n + I[I[STATE] + own + r - 2 * nb]
            for p in range(P):
                if I[I[COLUMN] + at + p] == I[FIRST_STATE] + y:
                    W[I[S] + I[I[BLOCK_AT] + b] + r * P + p] = 1.0


@kept
def sensitivity_part(
    i_at: int, i_size: int, w_at: int, w_size: int, what: int, instant: float, h: float, unused: int
) -> int:
    """BEGIN a run, DIFFERENTIATE a step of h seconds, HOLD_STILL behind it, PASS_STOPS, LAW_SLOPES; I and W by address and length."""
    I = carray(as_pointer(i_at), (i_size,), np.int64)
    W = carray(as_pointer(w_at), (w_size,), np.float64)
    if what == DIFFERENTIATE:
        return differentiate(I, W, instant, h, I[TRIED])
    if what == LAW_SLOPES:
        return law_slopes(I, W)
    if what == BEGIN:
        begin_sensitivities(I, W)
    elif what == HOLD_STILL:
        hold_still(I, W, I[TRIED])
    elif what == PASS_STOPS:
        pass_stops(I, W)
    return DONE


@cache
def sensitivity_address() -> int:
    """Where the machine code of :func:`sensitivity_part` stands in this process; compiled or loaded now."""
    return address_of(sensitivity_part, PART)
