"""Wheels with tyres (:mod:`veridyn.mechanics.natural.equations.wheels`) as machine code, over the few coordinates that move each wheel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.mechanics.ground.road import road_at
from veridyn.mechanics.natural.equations.wheels import INPUTS, OUTPUTS, SLOPES, WheelTable, tyre_code
from veridyn.mechanics.record import Bound, Cube, Matrix, Numbers, Vector
from veridyn.mechanics.tree.steps.record import call_addresses, call_kernel

ADDRESSES = 6  # numbers by which a kernel is called


class Wheels(NamedTuple):
    """The wheels of a mechanism over the k coordinates that move each, and room for one caller.

    The last entry of a map is what does not move. `D` are derivatives of force, moment (about the wheel's centre) and rates of slips by the
    wheel's motion; `Q_…` and `rates_…` by the k coordinates, their rates and the two slips.
    """

    at: Numbers  # (w · k,) coordinates; a wheel with fewer has some twice, with zeros in its maps
    S: Cube  # (w, 3, k+1)
    C: Cube
    B: Cube  # (3w, k, k+1)
    code: Numbers  # (2 · 6 · w,) values alone, then with derivatives
    road: Vector  # a packed road, or nothing
    x: Matrix  # (w, 17)
    f: Matrix  # (w, 8 · 15)
    Q: Matrix  # (w, k)
    Q_q: Cube  # (w, k, k)
    Q_qd: Cube
    Q_s: Cube  # (w, k, 2)
    rates_q: Cube  # (w, 2, k)
    rates_qd: Cube
    by_q: Matrix  # (8, k)
    by_qd: Matrix
    push: Matrix  # (6, k)
    turn: Matrix  # (3, k)


class WheelRoom:
    """Wheels made ready for one caller; it keeps alive what addresses point to."""

    def __init__(self, table: WheelTable, road: Array | None = None) -> None:
        w = len(table.tyres)
        moved = table.moved
        k = max((len(m) for m in moved), default=0)
        at = np.zeros((w, k), dtype=np.int64)
        S, C, B = np.zeros((w, 3, k + 1)), np.zeros((w, 3, k + 1)), np.zeros((w, 3, k, k + 1))
        for i, m in enumerate(moved):
            c = len(m)
            at[i, :c] = m
            for small, whole in ((S, table.S), (C, table.C)):
                small[i, :, :c], small[i, :, -1] = whole[i][:, m], whole[i][:, -1]
            B[i][:, :c, :c] = table.B[i][:, m[:, None], m]
            B[i][:, :c, -1] = table.B[i][:, m, -1]
        x, f = np.zeros((w, len(INPUTS))), np.zeros((w, OUTPUTS * (1 + SLOPES)))
        self._held: list[object] = []
        code: list[int] = []
        for derivative in (False, True):
            for i, e in enumerate(table.tyres):
                made = tyre_code(e, derivative)
                constants = made.constants(e)
                take = [INPUTS.index(name) for name in made.kernel.inputs]
                inward = x[i].ctypes.data + 8 * np.array([*take, 0], dtype=np.uintp)
                outward = f[i].ctypes.data + 8 * np.array([*made.places, 0], dtype=np.uintp)
                addresses, held = call_addresses(made.kernel, inward, outward, constants.ctypes.data)
                code += addresses
                self._held += [*held, constants]
        self.wheels = Wheels(
            at.reshape(-1),
            S,
            C,
            B.reshape(3 * w, k, k + 1),
            np.array(code, dtype=np.int64),
            np.zeros(0) if road is None else np.ascontiguousarray(road, dtype=np.float64),
            x,
            f,
            np.zeros((w, k)),
            np.zeros((w, k, k)),
            np.zeros((w, k, k)),
            np.zeros((w, k, 2)),
            np.zeros((w, 2, k)),
            np.zeros((w, 2, k)),
            np.zeros((OUTPUTS, k)),
            np.zeros((OUTPUTS, k)),
            np.zeros((6, k)),
            np.zeros((3, k)),
        )

    def bound(self) -> Bound:
        return Bound(self.wheels)


@core
def roll(r: Wheels, q: Array, qd: Array, slips: Array, derivative: int) -> None:
    """Forces of all tyres into Q and f, and their derivatives where they are asked for (1)."""
    w, k = r.Q.shape
    for i in range(w):
        x, own = r.x[i], r.at[i * k : (i + 1) * k]
        for a in range(3):
            B = r.B[3 * i + a]
            axis, centre, speed, turning = r.S[i, a, k], r.C[i, a, k], 0.0, 0.0
            for j in range(k):
                axis += r.S[i, a, j] * q[own[j]]
                centre += r.C[i, a, j] * q[own[j]]
                speed += r.C[i, a, j] * qd[own[j]]
                s = B[j, k]
                for l in range(k):
                    s += B[j, l] * q[own[l]]
                r.turn[a, j] = s
                turning += s * qd[own[j]]
            x[a], x[3 + a], x[6 + a], x[9 + a] = axis, centre, speed, turning
        x[12], x[13] = slips[2 * i], slips[2 * i + 1]
        if len(r.road) > 0:
            z, along, across = road_at(r.road, x[3], x[4])
            x[14], x[15], x[16] = z - along * x[3] - across * x[4], along, across
        call_kernel(r.code, ADDRESSES * (derivative * w + i))
        f = r.f[i]
        for j in range(k):
            s = 0.0
            for a in range(3):
                s += r.C[i, a, j] * f[a] + r.turn[a, j] * f[3 + a]
            r.Q[i, j] = s
        if derivative == 1:
            _differentiate(r, i, qd)


@core
def _differentiate(r: Wheels, i: int, qd: Array) -> None:
    """Derivatives of one wheel's forces and rates by its coordinates, from those by its motion."""
    k = r.Q.shape[1]
    f, own = r.f[i], r.at[i * k : (i + 1) * k]
    for j in range(k):
        spun_x, spun_y, spun_z = 0.0, 0.0, 0.0  # ∂ω/∂q
        for l in range(k):
            spun_x += qd[own[l]] * r.B[3 * i, l, j]
            spun_y += qd[own[l]] * r.B[3 * i + 1, l, j]
            spun_z += qd[own[l]] * r.B[3 * i + 2, l, j]
        for o in range(OUTPUTS):
            D = OUTPUTS + o * SLOPES
            by_q = f[D + 9] * spun_x + f[D + 10] * spun_y + f[D + 11] * spun_z
            by_qd = 0.0
            for a in range(3):
                by_q += f[D + a] * r.S[i, a, j] + f[D + 3 + a] * r.C[i, a, j]
                by_qd += f[D + 6 + a] * r.C[i, a, j] + f[D + 9 + a] * r.turn[a, j]
            r.by_q[o, j], r.by_qd[o, j] = by_q, by_qd
    for j in range(k):
        for a in range(3):
            r.push[a, j], r.push[3 + a, j] = r.C[i, a, j], r.turn[a, j]
        for o in range(2):
            r.rates_q[i, o, j], r.rates_qd[i, o, j] = r.by_q[6 + o, j], r.by_qd[6 + o, j]
    for j in range(k):
        for l in range(k):
            by_q, by_qd = 0.0, 0.0
            for o in range(6):
                by_q += r.push[o, j] * r.by_q[o, l]
                by_qd += r.push[o, j] * r.by_qd[o, l]
            for a in range(3):
                by_q += f[3 + a] * r.B[3 * i + a, j, l]
            r.Q_q[i, j, l], r.Q_qd[i, j, l] = by_q, by_qd
        for l in range(2):
            s = 0.0
            for o in range(6):
                s += r.push[o, j] * f[OUTPUTS + o * SLOPES + 12 + l]
            r.Q_s[i, j, l] = s


@core
def slip_rate(r: Wheels, k: int) -> float:
    """The rate of the k-th slip."""
    return r.f[k // 2, 6 + k % 2]


@core
def add_wheels(r: Wheels, Q: Array) -> None:
    """Add the generalised forces of all tyres."""
    w, k = r.Q.shape
    for i in range(w):
        for j in range(k):
            Q[r.at[i * k + j]] += r.Q[i, j]


@core
def solve_slips(r: Wheels, i: int, half: float, a: float, b: float) -> tuple[float, float]:
    """(1 − h/2 ∂ṡ/∂s)⁻¹ (a, b) of one tyre."""
    f, D, E = r.f[i], OUTPUTS + 6 * SLOPES + 12, OUTPUTS + 7 * SLOPES + 12
    n00, n01, n10, n11 = 1.0 - half * f[D], -half * f[D + 1], -half * f[E], 1.0 - half * f[E + 1]
    det = n00 * n11 - n01 * n10
    return (n11 * a - n01 * b) / det, (n00 * b - n10 * a) / det


@core
def add_condensed(
    r: Wheels, half: float, begun: Array, slips: Array, wk: float, wc: float, Q: Array, T: Array, step: Array
) -> None:
    """Add to Q and T = … + wk K + wc C what tyres do whose slips follow s = begun + h/2 ṡ; `step` is Newton's step of the slips alone."""
    w, k = r.Q.shape
    for i in range(w):
        f, first = r.f[i], i * k
        left_a = begun[2 * i] + half * f[6] - slips[2 * i]
        left_b = begun[2 * i + 1] + half * f[7] - slips[2 * i + 1]
        a, b = solve_slips(r, i, half, left_a, left_b)
        step[2 * i], step[2 * i + 1] = a, b
        for j in range(k):
            Q[r.at[first + j]] += r.Q[i, j] + r.Q_s[i, j, 0] * a + r.Q_s[i, j, 1] * b
        for l in range(k):
            qa, qb = solve_slips(r, i, half, half * r.rates_q[i, 0, l], half * r.rates_q[i, 1, l])
            va, vb = solve_slips(r, i, half, half * r.rates_qd[i, 0, l], half * r.rates_qd[i, 1, l])
            sa, sb = wk * qa + wc * va, wk * qb + wc * vb
            for j in range(k):
                own = wk * r.Q_q[i, j, l] + wc * r.Q_qd[i, j, l]
                T[r.at[first + j], r.at[first + l]] -= own + r.Q_s[i, j, 0] * sa + r.Q_s[i, j, 1] * sb


@core
def follow_slips(r: Wheels, half: float, move: Array, rate: float, step: Array, slips: Array) -> float:
    """Move the slips by Newton's step, where the coordinates moved by `move` and their rates by `rate` times that; the largest change."""
    w, k = r.Q.shape
    largest = 0.0
    for i in range(w):
        a, b = 0.0, 0.0
        for j in range(k):
            d = half * move[r.at[i * k + j]]
            a += (r.rates_q[i, 0, j] + rate * r.rates_qd[i, 0, j]) * d
            b += (r.rates_q[i, 1, j] + rate * r.rates_qd[i, 1, j]) * d
        a, b = solve_slips(r, i, half, a, b)
        a, b = a + step[2 * i], b + step[2 * i + 1]
        slips[2 * i] += a
        slips[2 * i + 1] += b
        largest = max(largest, abs(a), abs(b))
    return largest
