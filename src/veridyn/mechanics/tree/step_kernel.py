"""The trapezoidal step of a tree over independent coordinates, with its exact derivative, as machine code.

With velocities ż of the independent coordinates and accelerations z̈(x, ż, u) of the closed machine:

    Δ = h ż₀ + h²/4 (z̈₀ + z̈₁),    x₁ = x₀ ⊞ Δ,    ż₁ = ż₀ + h/2 (z̈₀ + z̈₁)

x ⊞ Δ adds to coordinates and turns the attitude of a free base, R exp(Δθ); coordinates that loops tie follow by Newton's method. The step
is that of :mod:`veridyn.mechanics.natural.minimal_kernel`; for a free base it is Newmark's on the group of rotations (Simo and Vu-Quoc,
1988). It is solved by Newton's method with the exact ∂z̈/∂(x, ż), and its derivative is that of these equations:

    dx₁ = T₀ dx₀ + T₁ dΔ,    T₀ = exp(−Δθ), T₁ = Jr(Δθ) for the attitude, identities elsewhere

All functions share one work record (:mod:`veridyn.mechanics.tree.record`): ``W[I[M] + i * nv + j]`` is entry (i, j) of the section M.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import kept, lean
from veridyn.mechanics.tree.record import call_kernel, factor, solve

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
SETTLED = 1e-11  # of a step's last change, relative to the machine's size
CLOSED = 1e-13  # m, and of products of unit axes: a loop that is closed to rounding
ITERATIONS = 40
HALVINGS = 6
LONGEST = 0.5  # rad, and of the machine's reach: what one Newton step may change a coordinate
DONE, SINGULAR, UNSETTLED = 0, 1, 2

HEADER = ("free", "n", "nv", "nq", "m", "f", "forces", "parameters", "held")
SECTIONS = (
    # what the kernels read: configuration, velocity, acceleration, forces of cut joints, what acts from outside; their parameters
    "X", "V", "A", "LAM", "OUTSIDE", "P_MOTION", "P_TANGENT",
    # what they write: M, Γ − h and the loops' Φ_q, Φ, b; derivatives of the equations; Φ_q, Φ while loops are closed
    "M", "LOAD", "J", "OPENING", "DRIFT",
    "BY_X", "BY_V", "LOOPS_BY_X", "LOOPS_BY_V", "SLOPE_RATES", "COLUMNS",
    "J_CLOSING", "OPEN_CLOSING",
    # results: ∂x/∂z, ∂v/∂z, ∂a/∂(z, ż, u), ∂λ/∂(z, ż, u), and the derivative of the step
    "R", "V_Z", "A_X", "LAM_X", "F",
    # given for a step: where it starts, change from there, rates, generalised forces, columns B of the unknown forces; q, q̇, q̈ of the
    # prescribed coordinates at the time of the inputs, and the time since then
    "START", "DELTA", "RATE", "EXTRA", "B", "UNIT", "UNKNOWN", "GIVEN", "CLOCK",
    # room
    "DEP", "DEP_T", "MASS", "N", "BEFORE", "T0", "T1", "NV_A", "NV_B", "NV_C", "M_A", "F_A", "F_B", "A0", "A1", "TRIED", "CHANGE",
)  # fmt: skip
LISTS = (
    "Z",
    "DEPENDENT",
    "PRESCRIBED",
    "SLOT_MOTION",
    "SLOT_TANGENT",
    "PIVOT_DEP",
    "PIVOT_DEP_T",
    "PIVOT_MASS",
    "PIVOT_N",
)
KERNELS = ("MOTION", "TANGENT", "CLOSING")
(FREE, COUNT, COUNT_V, COUNT_Q, LOOPED, FREEDOM, FORCES, VARYING, HELD) = range(len(HEADER))
(
    X, V, A, LAM, OUTSIDE, P_MOTION, P_TANGENT,
    M, LOAD, J, OPENING, DRIFT,
    BY_X, BY_V, LOOPS_BY_X, LOOPS_BY_V, SLOPE_RATES, COLUMNS,
    J_CLOSING, OPEN_CLOSING,
    R, V_Z, A_X, LAM_X, F,
    START, DELTA, RATE, EXTRA, B, UNIT, UNKNOWN, GIVEN, CLOCK,
    DEP, DEP_T, MASS, N, BEFORE, T0, T1, NV_A, NV_B, NV_C, M_A, F_A, F_B, A0, A1, TRIED, CHANGE,
) = range(len(HEADER), len(HEADER) + 3 * len(SECTIONS), 3)  # fmt: skip
_after = len(HEADER) + 3 * len(SECTIONS)
(Z, DEPENDENT, PRESCRIBED, SLOT_MOTION, SLOT_TANGENT, PIVOT_DEP, PIVOT_DEP_T, PIVOT_MASS, PIVOT_N) = range(
    _after, _after + 2 * len(LISTS), 2
)
_after += 2 * len(LISTS)
(MOTION, TANGENT, CLOSING) = range(_after, _after + 6 * len(KERNELS), 6)


@lean
def rotation_steps(I: Numbers, W: Array) -> None:
    """T₀ = exp(−θ) and T₁ = Jr(θ), the right Jacobian, of the turn θ in DELTA."""
    d, back, right = I[DELTA] + 3, I[T0], I[T1]
    x, y, z = W[d], W[d + 1], W[d + 2]
    square = x * x + y * y + z * z
    if square < 1e-8:
        s, c, k = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    else:
        angle = np.sqrt(square)
        s, c, k = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square, (angle - np.sin(angle)) / (angle * square)
    for i in range(3):
        for j in range(3):
            one, outer = (1.0, W[d + i] * W[d + j] - square) if i == j else (0.0, W[d + i] * W[d + j])  # θ̃²
            W[back + 3 * i + j] = one + c * outer
            W[right + 3 * i + j] = one + k * outer
    for at, mirror, value in (
        (7, 5, x),
        (2, 6, y),
        (3, 1, z),
    ):  # θ̃ has `value` at one place and its negative at the mirror image
        W[back + at] -= s * value
        W[back + mirror] += s * value
        W[right + at] -= c * value
        W[right + mirror] += c * value


@lean
def shift(I: Numbers, W: Array) -> None:
    """Base, independent and prescribed coordinates of X = START ⊞ DELTA; dependent coordinates of X stay as they are."""
    x, start, delta, z, at, first = I[X], I[START], I[DELTA], I[Z], 0, 0
    if I[FREE]:
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
    for c in range(I[FREEDOM] - first):
        k = at + I[z + c]
        W[x + k] = W[start + k] + W[delta + first + c]
    nh, given, clock = I[HELD], I[GIVEN], W[I[CLOCK]]
    for c in range(nh):
        W[x + at + I[I[PRESCRIBED] + c]] = (
            W[given + c] + clock * W[given + nh + c] + 0.5 * clock * clock * W[given + 2 * nh + c]
        )


@lean
def close(I: Numbers, W: Array) -> bool:
    """Dependent coordinates of X by Newton's method; False where no closed position is found."""
    n, m, at = I[COUNT], I[LOOPED], 7 if I[FREE] else 0
    x, slopes, opening, block, step, dep, unit = (
        I[X] + at, I[J_CLOSING], I[OPEN_CLOSING], I[DEP], I[M_A], I[DEPENDENT], I[UNIT],
    )  # fmt: skip
    worst = np.inf
    for _ in range(ITERATIONS):
        call_kernel(I, CLOSING)
        worst, most = 0.0, 0.0
        for i in range(m):
            worst = max(worst, abs(W[opening + i]))
            W[step + i] = -W[opening + i]
            for j in range(m):
                W[block + i * m + j] = W[slopes + i * n + I[dep + j]]
        if not np.isfinite(worst) or not factor(I, W, block, m, I[PIVOT_DEP]):
            return False
        solve(I, W, block, m, I[PIVOT_DEP], step)
        for j in range(m):
            most = max(most, abs(W[step + j]) / W[unit + I[dep + j]])
        if not np.isfinite(most):
            return False
        short = min(1.0, LONGEST / most) if most > 0.0 else 1.0
        for j in range(m):
            W[x + I[dep + j]] += short * W[step + j]
        if worst <= CLOSED or most <= 1e-15:
            return True
    return bool(worst <= 1e3 * CLOSED)


@lean
def spread(I: Numbers, W: Array) -> bool:
    """R = ∂x/∂z of dependent coordinates, from Φ_q; False at a singular position."""
    n, m, f, first = I[COUNT], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    slopes, block, across, step, dep, r = I[J], I[DEP], I[DEP_T], I[M_A], I[DEPENDENT], I[R]
    for i in range(m):
        for j in range(m):
            slope = W[slopes + i * n + I[dep + j]]
            W[block + i * m + j] = slope
            W[across + j * m + i] = slope
    if not factor(I, W, block, m, I[PIVOT_DEP]) or not factor(I, W, across, m, I[PIVOT_DEP_T]):
        return False
    for c in range(f - first):
        for i in range(m):
            W[step + i] = -W[slopes + i * n + I[I[Z] + c]]
        solve(I, W, block, m, I[PIVOT_DEP], step)
        for i in range(m):
            W[r + (first + I[dep + i]) * f + first + c] = W[step + i]
    return True


@lean
def own_row(I: Numbers, c: int) -> int:
    """The velocity that the independent coordinate c is."""
    if I[FREE]:
        return c if c < 6 else int(6 + I[I[Z] + c - 6])
    return int(I[I[Z] + c])


@lean
def respond(I: Numbers, W: Array, right: int, a: int) -> None:
    """a ← R (Rᵀ M R)⁻¹ Rᵀ (right − M a) + a: `a` comes with the part that the loops give, and zeros elsewhere."""
    nv, m, f, first = I[COUNT_V], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    mass, r, left, z, dep = I[M], I[R], I[NV_C], I[F_B], I[DEPENDENT]
    for i in range(nv):
        s = W[right + i]
        for d in range(m):
            k = first + I[dep + d]
            s -= W[mass + i * nv + k] * W[a + k]
        for d in range(I[HELD]):
            k = first + I[I[PRESCRIBED] + d]
            s -= W[mass + i * nv + k] * W[a + k]
        W[left + i] = s
    for c in range(f):
        s = W[left + own_row(I, c)]
        for d in range(m):
            k = first + I[dep + d]
            s += W[r + k * f + c] * W[left + k]
        W[z + c] = s
    solve(I, W, I[MASS], f, I[PIVOT_MASS], z)
    for c in range(f):
        W[a + own_row(I, c)] = W[z + c]
        for d in range(m):
            k = first + I[dep + d]
            W[a + k] += W[r + k * f + c] * W[z + c]


@lean
def hold(I: Numbers, W: Array, right: int, a: int, lam: int) -> None:
    """λ with Φ_sᵀ λ = (right − M a) of the dependent coordinates."""
    nv, m, first, mass = I[COUNT_V], I[LOOPED], 6 if I[FREE] else 0, I[M]
    for i in range(m):
        r = first + I[I[DEPENDENT] + i]
        s = W[right + r]
        for j in range(nv):
            s -= W[mass + r * nv + j] * W[a + j]
        W[lam + i] = s
    solve(I, W, I[DEP_T], m, I[PIVOT_DEP_T], lam)


@lean
def reduce_mass(I: Numbers, W: Array) -> bool:
    """Rᵀ M R, factorised; False where it is singular or not finite."""
    nv, m, f, first = I[COUNT_V], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    whole, r, left, reduced, dep = I[M], I[R], I[NV_C], I[MASS], I[DEPENDENT]
    for c in range(f):
        own = own_row(I, c)
        for i in range(nv):
            s = W[whole + i * nv + own]
            for d in range(m):
                k = first + I[dep + d]
                s += W[whole + i * nv + k] * W[r + k * f + c]
            W[left + i] = s
        for b in range(f):
            s = W[left + own_row(I, b)]
            for d in range(m):
                k = first + I[dep + d]
                s += W[r + k * f + b] * W[left + k]
            W[reduced + b * f + c] = s
    return factor(I, W, reduced, f, I[PIVOT_MASS])


@lean
def state_at(I: Numbers, W: Array, rate: int) -> bool:
    """From X with its independent part set: dependent coordinates, velocities R `rate`, accelerations and forces of cut joints."""
    nv, m, f, first = I[COUNT_V], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    v, a, load, extra, r, dep = I[V], I[A], I[LOAD], I[EXTRA], I[R], I[DEPENDENT]
    if m > 0:
        if not close(I, W):
            return False
        call_kernel(I, MOTION)  # for Φ_q alone: velocities follow from it
        if not spread(I, W):
            return False
    for i in range(nv):
        W[v + i] = 0.0
        W[a + i] = 0.0
    n, nh, held, given, step = I[COUNT], I[HELD], I[PRESCRIBED], I[GIVEN], I[M_A]
    for c in range(nh):
        k = first + I[held + c]
        W[v + k] = W[given + nh + c] + W[I[CLOCK]] * W[given + 2 * nh + c]
        W[a + k] = W[given + 2 * nh + c]
    if nh > 0 and m > 0:  # what the loops make of prescribed rates
        for i in range(m):
            s = 0.0
            for c in range(nh):
                s -= W[I[J] + i * n + I[held + c]] * W[v + first + I[held + c]]
            W[step + i] = s
        solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
        for i in range(m):
            W[v + first + I[dep + i]] = W[step + i]
    for c in range(f):
        W[v + own_row(I, c)] = W[rate + c]
        for d in range(m):
            k = first + I[dep + d]
            W[v + k] += W[r + k * f + c] * W[rate + c]
    call_kernel(I, MOTION)
    for i in range(nv):
        W[load + i] += W[extra + i]
    if m > 0:
        for i in range(m):
            s = -W[I[DRIFT] + i]
            for c in range(nh):
                s -= W[I[J] + i * n + I[held + c]] * W[a + first + I[held + c]]
            W[step + i] = s
        solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
        for i in range(m):
            W[a + first + I[dep + i]] = W[step + i]
    if not reduce_mass(I, W):
        return False
    respond(I, W, load, a)
    if m > 0:
        hold(I, W, load, a, I[LAM])
    return True


@lean
def differentiate(I: Numbers, W: Array) -> None:
    """∂v/∂z, and the derivatives of a and λ with respect to (z, ż, u, parameters), at the state whose accelerations were found."""
    n, nv, m, f, k, p = I[COUNT], I[COUNT_V], I[LOOPED], I[FREEDOM], I[FORCES], I[VARYING]
    first, every = nv - n, 2 * f + k + p
    by_x, by_v, r, v_z, step, dep = I[BY_X], I[BY_V], I[R], I[V_Z], I[M_A], I[DEPENDENT]
    right, answer, turning, closing_x, closing_v = I[NV_A], I[NV_B], I[SLOPE_RATES], I[LOOPS_BY_X], I[LOOPS_BY_V]
    call_kernel(I, TANGENT)
    if m > 0:  # the rates of dependent coordinates turn with the loops
        for c in range(f):
            for i in range(m):
                s = 0.0
                for j in range(n):
                    s -= W[turning + i * n + j] * W[r + (first + j) * f + c]
                W[step + i] = s
            solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
            for i in range(m):
                W[v_z + (first + I[dep + i]) * f + c] = W[step + i]
    for j in range(every):
        for i in range(nv):
            s = 0.0
            if j >= 2 * f + k:
                s = -W[I[COLUMNS] + i * p + j - 2 * f - k]
            elif j >= 2 * f:
                s = W[I[B] + i * k + j - 2 * f]
            elif m == 0:
                s = -W[by_x + i * nv + own_row(I, j)] if j < f else -W[by_v + i * nv + own_row(I, j - f)]
            elif j < f:
                for b in range(nv):
                    s -= W[by_x + i * nv + b] * W[r + b * f + j] + W[by_v + i * nv + b] * W[v_z + b * f + j]
            else:
                for b in range(nv):
                    s -= W[by_v + i * nv + b] * W[r + b * f + j - f]
            W[right + i] = s
            W[answer + i] = 0.0
        if m > 0 and j < 2 * f:
            for i in range(m):
                s = 0.0
                for b in range(nv):
                    if j < f:
                        s -= (
                            W[closing_x + i * nv + b] * W[r + b * f + j]
                            + W[closing_v + i * nv + b] * W[v_z + b * f + j]
                        )
                    else:
                        s -= W[closing_v + i * nv + b] * W[r + b * f + j - f]
                W[step + i] = s
            solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
            for i in range(m):
                W[answer + first + I[dep + i]] = W[step + i]
        respond(I, W, right, answer)
        for i in range(nv):
            W[I[A_X] + i * every + j] = W[answer + i]
        if m > 0:
            hold(I, W, right, answer, step)
            for i in range(m):
                W[I[LAM_X] + i * every + j] = W[step + i]


@lean
def turned(I: Numbers, W: Array, own: int, d: int, T: int) -> float:
    """An entry of ∂a/∂x T, where T turns the attitude's columns."""
    row = I[A_X] + own * (2 * I[FREEDOM] + I[FORCES] + I[VARYING])
    if not I[FREE] or d < 3 or d >= 6:
        return float(W[row + d])
    return float(W[row + 3] * W[T + d - 3] + W[row + 4] * W[T + d] + W[row + 5] * W[T + d + 3])


@lean
def iteration_matrix(I: Numbers, W: Array, h: float) -> bool:
    """N = 1 − h²/4 ∂z̈/∂x T₁ − h/2 ∂z̈/∂ż at the present state, factorised."""
    f, every = I[FREEDOM], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    for c in range(f):
        own = own_row(I, c)
        for d in range(f):
            s = -0.25 * h * h * turned(I, W, own, d, I[T1]) - 0.5 * h * W[I[A_X] + own * every + f + d]
            W[I[N] + c * f + d] = s + (1.0 if c == d else 0.0)
    return factor(I, W, I[N], f, I[PIVOT_N])


@lean
def trial(I: Numbers, W: Array, h: float) -> float:
    """The state after a step with accelerations A1 at its end, and by how much the equations ask for others (left in F_A); NaN: none."""
    f, rate, end, left = I[FREEDOM], I[RATE], I[TRIED], I[F_A]
    for c in range(f):
        both = W[I[A0] + c] + W[I[A1] + c]
        W[I[DELTA] + c] = h * W[rate + c] + 0.25 * h * h * both
        W[end + c] = W[rate + c] + 0.5 * h * both
    shift(I, W)
    if not state_at(I, W, end):
        return np.nan
    worst = 0.0
    for c in range(f):
        W[left + c] = W[I[A] + own_row(I, c)] - W[I[A1] + c]
        worst = max(worst, abs(W[left + c]))
    return float(worst)


@lean
def predict_end(I: Numbers, W: Array, h: float) -> float:
    """Keep the derivatives at the start in BEFORE, and guess the accelerations at the end to first order; the machine's size."""
    f, every, before, rate = I[FREEDOM], 2 * I[FREEDOM] + I[FORCES] + I[VARYING], I[BEFORE], I[RATE]
    size = 1.0
    for i in range(I[COUNT_Q]):
        W[I[START] + i] = W[I[X] + i]
        size = max(size, abs(W[I[X] + i]))
    W[I[CLOCK]] += h
    for i in range(9):
        W[I[T0] + i] = W[I[T1] + i] = 1.0 if i % 4 == 0 else 0.0
    for c in range(f):
        own, jerk = own_row(I, c), 0.0
        for d in range(every):
            W[before + c * every + d] = W[I[A_X] + own * every + d]
        for d in range(f):
            jerk += W[before + c * every + d] * W[rate + d]
            jerk += W[before + c * every + f + d] * W[I[A] + own_row(I, d)]
        W[I[A0] + c] = W[I[A] + own]
        W[I[A1] + c] = W[I[A0] + c] + h * jerk
    return float(size)


@lean
def advance(I: Numbers, W: Array, h: float, derivative: bool) -> int:
    """One step h of the state (START ⊞ DELTA, RATE), or for h = 0 that state itself; results are left in the record.

    X holds a guess of the dependent coordinates. Returns DONE, SINGULAR or UNSETTLED.
    """
    f, left, change, a1 = I[FREEDOM], I[F_A], I[CHANGE], I[A1]
    shift(I, W)
    if not state_at(I, W, I[RATE]):
        return SINGULAR
    if derivative or h > 0.0:
        differentiate(I, W)
    if h == 0.0:
        return DONE
    size = predict_end(I, W, h)
    if not iteration_matrix(I, W, h):
        return SINGULAR
    off = trial(I, W, h)
    for _ in range(ITERATIONS):
        if not np.isfinite(off):
            return SINGULAR
        solve(I, W, I[N], f, I[PIVOT_N], left)
        moved = 0.0
        for c in range(f):
            W[change + c] = W[left + c]
            W[a1 + c] += W[change + c]
            moved = max(moved, 0.5 * h * abs(W[change + c]))
        settled, now = moved <= SETTLED * size, trial(I, W, h)
        for _ in range(HALVINGS):
            if settled or now <= off:
                break
            for c in range(f):  # half of the way back
                W[change + c] *= 0.5
                W[a1 + c] -= W[change + c]
            now = trial(I, W, h)
        if settled and np.isfinite(now):
            if derivative:
                differentiate(I, W)
                return DONE if step_derivative(I, W, h) else SINGULAR
            return DONE
        slow, off = not now <= 0.1 * off, now
        if slow and np.isfinite(off):
            differentiate(I, W)
            if I[FREE]:
                rotation_steps(I, W)
            if not iteration_matrix(I, W, h):
                return SINGULAR
    return UNSETTLED


@lean
def step_derivative(I: Numbers, W: Array, h: float) -> bool:
    """F (2f, 2f + k): d(x₁, ż₁)/d(x₀, ż₀, u), from the accelerations' derivatives before (BEFORE) and after the step (A_X)."""
    f, every = I[FREEDOM], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    a_x, before, out, both, delta = I[A_X], I[BEFORE], I[F], I[F_B], I[F_A]
    if I[FREE]:
        rotation_steps(I, W)
    if not iteration_matrix(I, W, h):
        return False
    for j in range(every):
        for c in range(f):
            own = own_row(I, c)
            s = W[before + c * every + j]
            if j < f:
                s += turned(I, W, own, j, I[T0])
            else:
                s += W[a_x + own * every + j]
                if j < 2 * f:
                    s += h * turned(I, W, own, j - f, I[T1])
            W[both + c] = s
        solve(I, W, I[N], f, I[PIVOT_N], both)
        for c in range(f):
            W[delta + c] = 0.25 * h * h * W[both + c] + (h if j == f + c else 0.0)
            W[out + (f + c) * every + j] = 0.5 * h * W[both + c] + (1.0 if j == f + c else 0.0)
        for c in range(f):
            if I[FREE] and 3 <= c < 6:
                s = W[I[T0] + 3 * (c - 3) + j - 3] if 3 <= j < 6 else 0.0
                for i in range(3):
                    s += W[I[T1] + 3 * (c - 3) + i] * W[delta + 3 + i]
                W[out + c * every + j] = s
            else:
                W[out + c * every + j] = W[delta + c] + (1.0 if j == c else 0.0)
    return True


@lean
def set_unknown(I: Numbers, W: Array) -> None:
    """Generalised forces B u of UNKNOWN are added to EXTRA, and values of varying parameters put where the kernels read them."""
    k, u = I[FORCES], I[UNKNOWN]
    for j in range(k):
        for i in range(I[COUNT_V]):
            W[I[EXTRA] + i] += W[I[B] + i * k + j] * W[u + j]
    for j in range(I[VARYING]):
        motion, tangent = I[I[SLOT_MOTION] + j], I[I[SLOT_TANGENT] + j]
        if motion >= 0:
            W[motion] = W[u + k + j]
        if tangent >= 0:
            W[tangent] = W[u + k + j]


@lean
def put(I: Numbers, W: Array, section: int, values: Array) -> None:
    """Write a section."""
    for i in range(len(values)):
        W[I[section] + i] = values[i]


@lean
def get(I: Numbers, W: Array, section: int, out: Array) -> None:
    """Read a section, row by row, into an array of its size."""
    flat = out.reshape(out.size)
    for i in range(len(flat)):
        flat[i] = W[I[section] + i]


@kept
def tree_trapezoid(
    I: Numbers,
    W: Array,
    x: Array,
    delta: Array,
    rate: Array,
    extra: Array,
    unknown: Array,
    since: float,
    h: float,
    derivative: bool,
) -> tuple[int, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """From each state x (N, nq) ⊞ delta (N, f) with rates `rate` (N, f) one step h on, or for h = 0 that state itself.

    `since`: the time that has passed since the values of prescribed coordinates were given. First DONE, SINGULAR or UNSETTLED; then
    (N, …) of x, v, a, λ, R, ∂v/∂z, ∂a/∂(z, ż, u), ∂λ/∂(z, ż, u) and F.
    """
    many, nv, m, f, u = len(x), I[COUNT_V], I[LOOPED], I[FREEDOM], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    xs, v, a, lam = np.empty((many, x.shape[1])), np.empty((many, nv)), np.empty((many, nv)), np.empty((many, m))
    size = many if derivative else 0
    r, v_z, a_x = np.empty((many, nv, f)), np.empty((size, nv, f)), np.empty((size, nv, u))
    lam_x, F_, state = np.empty((size, m, u)), np.empty((size, 2 * f, u)), 0
    for i in range(many):
        put(I, W, EXTRA, extra)
        put(I, W, UNKNOWN, unknown[i])
        set_unknown(I, W)
        put(I, W, START, x[i])
        put(I, W, X, x[i])
        put(I, W, DELTA, delta[i])
        put(I, W, RATE, rate[i])
        W[I[CLOCK]] = since
        state = advance(I, W, h, derivative)
        if state != DONE:
            break
        get(I, W, X, xs[i])
        get(I, W, V, v[i])
        get(I, W, A, a[i])
        get(I, W, LAM, lam[i])
        get(I, W, R, r[i])
        if derivative:
            get(I, W, V_Z, v_z[i])
            get(I, W, A_X, a_x[i])
            get(I, W, LAM_X, lam_x[i])
            get(I, W, F, F_[i])
    return state, xs, v, a, lam, r, v_z, a_x, lam_x, F_
