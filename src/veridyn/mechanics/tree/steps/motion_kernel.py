"""The state of a tree from its independent coordinates and rates, as machine code: loops closed, velocities, accelerations, reactions.

    Φ(x) = 0,    Φ_s R_s = −Φ_z,    v = R ż,    Rᵀ M R z̈ = Rᵀ (Γ − h − M a₀),    Φ_sᵀ λ = (Γ − h − M a)_s

R = ∂x/∂z; a₀ is what the loops and prescribed coordinates accelerate without z̈; s are the coordinates that loops tie. Newton's method
closes the loops block by block: loops that share no such coordinate are blocks, so a vehicle with four suspensions solves four small
systems instead of one large one. All functions share one work record (:mod:`veridyn.mechanics.tree.steps.record`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics import linear
from veridyn.mechanics.compiled import core
from veridyn.mechanics.tree.steps import record
from veridyn.mechanics.tree.steps.record import call_kernel, factor, solve

CLOSED_TOLERANCE_M = 1e-13  # m, and of products of unit axes: a loop that is closed to rounding
CLOSING_ITERATIONS = 40
LONGEST_NEWTON_STEP = 0.5  # rad, and of the machine's reach: what one Newton step may change a coordinate
Numbers = NDArray[np.int64]


@core
def factor_loops(I: Numbers, W: Array) -> bool:
    """The factors of Φ_s from J_CLOSING; False at a singular position."""
    n = I[record.COUNT]
    for b in range(I[record.BLOCKS]):
        start, end, place = I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1], I[record.DEP] + I[I[record.FACTOR] + b]
        size = end - start
        for i in range(size):
            row = I[record.J_CLOSING] + I[I[record.EQUATION] + start + i] * n
            for j in range(size):
                W[place + i * size + j] = W[row + I[I[record.DEPENDENT] + I[I[record.POSITION] + start + j]]]
        pivot = I[record.PIVOT_DEP] + start
        if not linear.factor(W[place : place + size * size].reshape(size, size), I[pivot : pivot + size]):
            return False
    return True


@core
def solve_block(I: Numbers, W: Array, b: int, right: int, apart: int, out: int) -> None:
    """Φ_s out = right of the block b: `right` by equation, its entries so far `apart`, `out` by dependent coordinate."""
    start, end, place = I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1], I[record.DEP] + I[I[record.FACTOR] + b]
    size, room, pivot = end - start, I[record.M_B], I[record.PIVOT_DEP] + start
    for i in range(size):
        W[room + i] = W[right + apart * I[I[record.EQUATION] + start + i]]
    block = W[place : place + size * size].reshape(size, size)
    linear.solve(block, I[pivot : pivot + size], W[room : room + size])
    for i in range(size):
        W[out + I[I[record.POSITION] + start + i]] = W[room + i]


@core
def solve_loops(I: Numbers, W: Array, right: int, out: int) -> None:
    """Φ_s out = right, another place than `out`."""
    for b in range(I[record.BLOCKS]):
        solve_block(I, W, b, right, 1, out)


@core
def solve_loops_across(I: Numbers, W: Array, right: int, out: int) -> None:
    """Φ_sᵀ out = right: `right` by dependent coordinate, `out`, another place, by equation."""
    room = I[record.M_B]
    for b in range(I[record.BLOCKS]):
        start, end, place = I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1], I[record.DEP] + I[I[record.FACTOR] + b]
        size, pivot = end - start, I[record.PIVOT_DEP] + start
        for i in range(size):
            W[room + i] = W[right + I[I[record.POSITION] + start + i]]
        block = W[place : place + size * size].reshape(size, size)
        linear.solve_transposed(block, I[pivot : pivot + size], W[room : room + size])
        for i in range(size):
            W[out + I[I[record.EQUATION] + start + i]] = W[room + i]


@core
def close(I: Numbers, W: Array) -> bool:
    """Dependent coordinates of X by Newton's method, and the factors of Φ_s there; False where no closed position is found."""
    m, at = I[record.LOOPED], 7 if I[record.FREE] else 0
    x, opening, step, dep, unit = (
        I[record.X] + at,
        I[record.OPEN_CLOSING],
        I[record.M_A],
        I[record.DEPENDENT],
        I[record.UNIT],
    )
    worst = np.inf
    for _ in range(CLOSING_ITERATIONS):
        call_kernel(I, record.CLOSING)
        worst, most = 0.0, 0.0
        for i in range(m):
            worst = max(worst, abs(W[opening + i]))
        if not np.isfinite(worst) or not factor_loops(I, W):
            return False
        solve_loops(I, W, opening, step)
        for j in range(m):
            most = max(most, abs(W[step + j]) / W[unit + I[dep + j]])
        if not np.isfinite(most):
            return False
        short = min(1.0, LONGEST_NEWTON_STEP / most) if most > 0.0 else 1.0
        for j in range(m):
            W[x + I[dep + j]] -= short * W[step + j]
        if worst <= CLOSED_TOLERANCE_M or most <= 1e-15:
            return True
    return bool(worst <= 1e3 * CLOSED_TOLERANCE_M)


@core
def spread(I: Numbers, W: Array) -> None:
    """R = ∂x/∂z of dependent coordinates, with the factors that :func:`close` left."""
    n, f, first = I[record.COUNT], I[record.FREEDOM], 6 if I[record.FREE] else 0
    out, dep, r = I[record.M_A], I[record.DEPENDENT], I[record.R]
    for c in range(first, f):
        for t in range(I[I[record.REACHED_FROM] + c], I[I[record.REACHED_FROM] + c + 1]):
            b = int(I[I[record.REACHED] + t])
            solve_block(I, W, b, I[record.J_CLOSING] + I[I[record.Z] + c - first], n, out)
            for i in range(I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1]):
                d = I[I[record.POSITION] + i]
                W[r + (first + I[dep + d]) * f + c] = -W[out + d]


@core
def own_row(I: Numbers, c: int) -> int:
    """The velocity that the independent coordinate c is."""
    return int(I[I[record.OWN] + c])


@core
def shift(I: Numbers, W: Array) -> None:
    """Base, independent and prescribed coordinates of X = START ⊞ DELTA; dependent coordinates of X stay as they are."""
    x, start, delta, z, at, first = I[record.X], I[record.START], I[record.DELTA], I[record.Z], 0, 0
    if I[record.FREE]:
        at, first = 7, 6
        for i in range(3):
            W[x + i] = W[start + i] + W[delta + i]
        rx, ry, rz = 0.5 * W[delta + 3], 0.5 * W[delta + 4], 0.5 * W[delta + 5]
        square = rx * rx + ry * ry + rz * rz
        if square < 1e-8:
            c, s = 1.0 - 0.5 * square, 1.0 - square / 6.0
        else:
            half = np.sqrt(square)
            c, s = np.cos(half), np.sin(half) / half
        rx, ry, rz = s * rx, s * ry, s * rz
        e, a, b, d = W[start + 3], W[start + 4], W[start + 5], W[start + 6]
        w0, w1 = e * c - a * rx - b * ry - d * rz, e * rx + a * c + b * rz - d * ry
        w2, w3 = e * ry + b * c + d * rx - a * rz, e * rz + d * c + a * ry - b * rx
        size = 1.0 / np.sqrt(w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3)
        W[x + 3], W[x + 4], W[x + 5], W[x + 6] = w0 * size, w1 * size, w2 * size, w3 * size
    for c in range(I[record.FREEDOM] - first):
        k = at + I[z + c]
        W[x + k] = W[start + k] + W[delta + first + c]
    nh, given, clock = I[record.HELD], I[record.GIVEN], W[I[record.CLOCK]]
    for c in range(nh):
        W[x + at + I[I[record.PRESCRIBED] + c]] = (
            W[given + c] + clock * W[given + nh + c] + 0.5 * clock * clock * W[given + 2 * nh + c]
        )


@core
def place_at(I: Numbers, W: Array, rate: int) -> bool:
    """From X with its independent part set: dependent coordinates, R, and velocities R `rate`; False where there is no such place."""
    n, nv, m, f, nh = I[record.COUNT], I[record.COUNT_V], I[record.LOOPED], I[record.FREEDOM], I[record.HELD]
    first, v, r, given, held = nv - n, I[record.V], I[record.R], I[record.GIVEN], I[record.PRESCRIBED]
    if m > 0:
        if not close(I, W):
            return False
        spread(I, W)
    for i in range(nv):
        W[v + i] = 0.0
    for c in range(nh):
        W[v + first + I[held + c]] = W[given + nh + c] + W[I[record.CLOCK]] * W[given + 2 * nh + c]
    if nh > 0 and m > 0:  # what the loops make of prescribed rates
        loops_follow(I, W, v, -1)
    for c in range(f):
        W[v + own_row(I, c)] = W[rate + c]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            W[v + k] += W[r + k * f + c] * W[rate + c]
    return True


@core
def loops_follow(I: Numbers, W: Array, motion: int, drift: int) -> None:
    """Dependent entries of a velocity or an acceleration at W[motion] from those of prescribed coordinates; -1 for no drift."""
    n, m, nh, first = I[record.COUNT], I[record.LOOPED], I[record.HELD], I[record.COUNT_V] - I[record.COUNT]
    right, out, held = I[record.OPEN_CLOSING], I[record.M_A], I[record.PRESCRIBED]
    for i in range(m):
        s = 0.0 if drift < 0 else -W[drift + i]
        for c in range(nh):
            slope = W[I[record.J_CLOSING] + i * n + I[held + c]]
            s -= slope * W[motion + first + I[held + c]]
        W[right + i] = s
    solve_loops(I, W, right, out)
    for i in range(m):
        W[motion + first + I[I[record.DEPENDENT] + i]] = W[out + i]


@core
def reduce_mass(I: Numbers, W: Array) -> bool:
    """RM = Rᵀ M (f, nv) and Rᵀ M R, factorised; False where it is singular or not finite."""
    nv, f, whole, r, half, reduced = (
        I[record.COUNT_V],
        I[record.FREEDOM],
        I[record.M],
        I[record.R],
        I[record.RM],
        I[record.MASS],
    )
    for c in range(f):
        row, own = half + c * nv, whole + own_row(I, c) * nv
        for i in range(nv):
            W[row + i] = W[own + i]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            share = W[r + k * f + c]
            for i in range(nv):
                W[row + i] += share * W[whole + k * nv + i]
        for b in range(c + 1):
            s = W[row + own_row(I, b)]
            for t in range(I[I[record.TIED_FROM] + b], I[I[record.TIED_FROM] + b + 1]):
                k = I[I[record.TIED] + t]
                s += W[r + k * f + b] * W[row + k]
            W[reduced + b * f + c] = W[reduced + c * f + b] = s
    return factor(I, W, reduced, f, I[record.PIVOT_MASS])


@core
def respond(I: Numbers, W: Array, right: int, a: int) -> None:
    """a ← R (Rᵀ M R)⁻¹ Rᵀ (right − M a) + a: `a` comes with the part that the loops give, and zeros elsewhere."""
    nv, m, f, first = I[record.COUNT_V], I[record.LOOPED], I[record.FREEDOM], I[record.COUNT_V] - I[record.COUNT]
    r, z, dep, held = I[record.R], I[record.F_B], I[record.DEPENDENT], I[record.PRESCRIBED]
    for c in range(f):
        row, s = I[record.RM] + c * nv, W[right + own_row(I, c)]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            s += W[r + k * f + c] * W[right + k]
        for d in range(m):
            k = first + I[dep + d]
            s -= W[row + k] * W[a + k]
        for d in range(I[record.HELD]):
            k = first + I[held + d]
            s -= W[row + k] * W[a + k]
        W[z + c] = s
    solve(I, W, I[record.MASS], f, I[record.PIVOT_MASS], z)
    for c in range(f):
        W[a + own_row(I, c)] = W[z + c]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            W[a + k] += W[r + k * f + c] * W[z + c]


@core
def hold(I: Numbers, W: Array, right: int, a: int, lam: int) -> None:
    """λ with Φ_sᵀ λ = (right − M a) of the dependent coordinates."""
    nv, m, first, mass, room = (
        I[record.COUNT_V],
        I[record.LOOPED],
        I[record.COUNT_V] - I[record.COUNT],
        I[record.M],
        I[record.M_A],
    )
    for i in range(m):
        r = first + I[I[record.DEPENDENT] + i]
        s = W[right + r]
        for j in range(nv):
            s -= W[mass + r * nv + j] * W[a + j]
        W[room + i] = s
    solve_loops_across(I, W, room, lam)


@core
def state_at(I: Numbers, W: Array, rate: int) -> bool:
    """From X with its independent part set: dependent coordinates, velocities R `rate` and accelerations; Γ − h stays in LOAD."""
    nv, m, nh, first = I[record.COUNT_V], I[record.LOOPED], I[record.HELD], I[record.COUNT_V] - I[record.COUNT]
    a, load, extra, given = I[record.A], I[record.LOAD], I[record.EXTRA], I[record.GIVEN]
    if not place_at(I, W, rate):
        return False
    for i in range(nv):
        W[load + i] = (
            0.0  # rows that are zero whatever the motion, as of a balanced wheel, are not written by the kernel
        )
    call_kernel(I, record.MOTION)
    for i in range(nv):
        W[load + i] += W[extra + i]
        W[a + i] = 0.0
    for c in range(nh):
        W[a + first + I[I[record.PRESCRIBED] + c]] = W[given + 2 * nh + c]
    if m > 0:
        loops_follow(I, W, a, I[record.DRIFT])
    if not reduce_mass(I, W):
        return False
    respond(I, W, load, a)
    return True
