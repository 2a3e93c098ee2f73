"""Wheels with tyres in natural coordinates: how each wheel moves, what its tyre does, and exact derivatives of both.

With y = (q, 1) the axis s = S y, the centre c = C y, its velocity C' q̇ and the angular velocity ω_a = q̇ᵀ B_a y of a wheel follow from
constant tables, and a force F at the centre and a moment M have the generalised force C'ᵀ F + Σ M_a B_a y (paper 003, equations 28 and
29). F, M and the rates of the tyre's lagging slips are machine code of the laws of :mod:`veridyn.mechanics.ground.tyres`, run on symbols in
the ground's frame. Its inputs x (17,) are the wheel's axis, centre, velocity of the centre, angular velocity, the two lagging slips, and
the road's plane (height at the origin, slopes); outputs f (8,) are force, moment about the centre and rates of the slips, and ∂f/∂x (8, 14)
with the road's plane held. Constants of the law are inputs: one kernel serves all tyres of a kind.

As machine code wheels are evaluated over the few coordinates that move each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Cube, Matrix, Numbers, Vector, core
from veridyn.mechanics.ground.road import road_at
from veridyn.mechanics.ground.tyres import Tyre
from veridyn.mechanics.natural.equations.forces import moment_map
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.tree.steps.record import addresses_in, call_addresses, call_kernel
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import ROAD_INPUTS, SLIPS
from veridyn.spatial.algebra import IDENTITY, ZERO, Mat, Vec, is_zero, mul
from veridyn.symbolic.expression import Graph, Number, forward
from veridyn.symbolic.kernel import Kernel, Single, formula_kernel
from veridyn.symbolic.sources import note_sources

MOTION = tuple(f"{part}.{axis}" for part in ("axis", "centre", "v", "w") for axis in range(3))
INPUTS = (*MOTION, *(s.key for s in SLIPS), *ROAD_INPUTS)
SLOPES = len(MOTION) + len(SLIPS)  # inputs by which outputs are differentiated
OUTPUTS = 8
GAIN = "gain"
ADDRESSES = 6  # numbers by which a kernel is called
note_sources(__name__)
Plane = Callable[[Array, Array], Array]  # x, y (w,) → height at the origin and slopes of the road's plane there, (3, w)


@dataclass(frozen=True)
class _Rolling:
    """The motion of a wheel as symbols, in the ground's frame; moments are about the wheel's centre."""

    axis: Vec
    place: Vec
    v: Vec
    w: Vec
    centre: Vec = ZERO

    @property
    def pose(self) -> tuple[Mat, Vec]:
        return IDENTITY, self.place


@dataclass(frozen=True, eq=False)
class TyreCode:
    """A kernel of one kind of tyre; `places`: where each of its outputs stands in a row (8 + 8·14) of f and, row by row, ∂f/∂x."""

    kernel: Kernel
    places: tuple[int, ...]

    def constants(self, e: Element) -> Array:
        """The numbers of one tyre, as the kernel takes them."""
        return np.array([e.value if key == GAIN else e.constants[key] for key in self.kernel.parameters])


def tyre_code(e: Element, derivative: bool) -> TyreCode:
    """The kernel of an element's kind and of the constants that it gives, from memory, from disk, or made now."""
    words = ("natural tyre", e.kind, repr(tuple(sorted(e.constants))), str(derivative))
    return TyreCode(*formula_kernel(__name__, words, lambda graph: _formula(graph, e, derivative), INPUTS))


def _formula(graph: Graph, e: Element, derivative: bool) -> dict[int, Number]:
    """Place in a row of outputs → expression; zeros are left out."""
    x = [graph.input(name) for name in INPUTS]

    def vector(part: int) -> Vec:
        return x[3 * part], x[3 * part + 1], x[3 * part + 2]

    def constant(key: str) -> Number:
        return graph.input(key) if key in e.constants else e.constant(key)

    keys = (*(s.key for s in SLIPS), *ROAD_INPUTS)
    signals: Mapping[str, Number] = {f"{e.parameter_name}.{key}": graph.input(key) for key in keys}
    wheel = _Rolling(vector(0), vector(1), vector(2), vector(3))
    tyre = Tyre(e, wheel, constant, signals, graph)
    force, moment = tyre.wrench()
    rates = tyre.slip_rates()
    gain = graph.input(GAIN)
    f = [*(mul(gain, part) for part in (*force, *moment)), *(rates[s.key] for s in SLIPS)]
    found = dict(enumerate(f))
    if derivative:
        for j, column in enumerate(forward(graph, f, x[:SLOPES])):
            found |= {OUTPUTS + i * SLOPES + j: value for i, value in enumerate(column)}
    return {place: value for place, value in found.items() if not is_zero(value)}


@dataclass(frozen=True, eq=False)
class WheelForces:
    """What tyres do at one instant: generalised forces `Q` (n,), `rates` (2w,) of slips, and derivatives by q, q̇ and the slips s."""

    Q: Array
    rates: Array
    Q_q: Array
    Q_qd: Array
    Q_s: Array
    rates_q: Array
    rates_qd: Array
    rates_s: Array


@dataclass(frozen=True, eq=False)
class WheelTable:
    """The wheels with tyres of a mechanism: maps `S` and `C` (w, 3, n+1) of axes and centres, `B` (w, 3, n, n+1) of moments."""

    n: int
    tyres: tuple[Element, ...]
    S: Array
    C: Array
    B: Array

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the slips, two for each tyre."""
        return tuple(f"{e.parameter_name}.{s.key}" for e in self.tyres for s in SLIPS)

    @cached_property
    def moved(self) -> list[NDArray[np.intp]]:
        """The coordinates that move each wheel."""
        maps = np.concatenate([self.S, self.C], axis=1)[:, :, :-1] != 0.0
        turned = (self.B != 0.0).any(axis=(1, 3))
        return [np.flatnonzero(m.any(axis=0) | b) for m, b in zip(maps, turned, strict=True)]

    @cached_property
    def _kernels(self) -> list[tuple[Single, tuple[int, ...], list[int]]]:
        made = []
        for e in self.tyres:
            code = tyre_code(e, True)
            take = [INPUTS.index(name) for name in code.kernel.inputs]
            made.append((Single(code.kernel, code.constants(e)), code.places, take))
        return made

    def motion(self, q: Array, qd: Array) -> Array:
        """Axis, centre, velocity and angular velocity of each wheel, (w, 12)."""
        y = np.append(q, 1.0)
        w = np.einsum("k,wakl,l->wa", qd, self.B, y)
        return np.concatenate([self.S @ y, self.C @ y, self.C[:, :, :-1] @ qd, w], axis=1)

    def evaluate(self, q: Array, qd: Array, slips: ArrayLike, road: Plane | None = None) -> WheelForces:
        """Forces, rates and derivatives at a state; `road` is flat at the height of the tyres' constant ROAD where it is not given."""
        n, count, y = self.n, len(self.tyres), np.append(q, 1.0)
        s = np.asarray(slips, dtype=np.float64).reshape(count, 2)
        x = np.zeros((count, len(INPUTS)))
        x[:, :12], x[:, 12:14] = self.motion(q, qd), s
        if road is not None:
            x[:, 14:] = road(x[:, 3], x[:, 4]).T
        Q, rates = np.zeros(n), np.zeros(2 * count)
        Q_q, Q_qd, Q_s = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, 2 * count))
        rates_q, rates_qd, rates_s = (np.zeros((2 * count, size)) for size in (n, n, 2 * count))
        for i, (single, places, take) in enumerate(self._kernels):
            single.inputs[:] = x[i, take]
            single.call()
            out = np.zeros(OUTPUTS * (1 + SLOPES))
            out[list(places)] = single.outputs
            f, D = out[:OUTPUTS], out[OUTPUTS:].reshape(OUTPUTS, SLOPES)
            By, qB = self.B[i] @ y, np.einsum("k,akl->al", qd, self.B[i])[:, :-1]
            push = np.concatenate([self.C[i, :, :-1], By])  # (6, n): Q = pushᵀ (F, M)
            by_q = D[:, :3] @ self.S[i, :, :-1] + D[:, 3:6] @ self.C[i, :, :-1] + D[:, 9:12] @ qB
            by_qd = D[:, 6:9] @ self.C[i, :, :-1] + D[:, 9:12] @ By
            own = slice(2 * i, 2 * i + 2)
            Q += push.T @ f[:6]
            Q_q += push.T @ by_q[:6] + np.einsum("a,akl->kl", f[3:6], self.B[i, :, :, :-1])
            Q_qd += push.T @ by_qd[:6]
            Q_s[:, own] = push.T @ D[:6, 12:]
            rates[own], rates_q[own], rates_qd[own], rates_s[own, own] = f[6:], by_q[6:], by_qd[6:], D[6:, 12:]
        return WheelForces(Q, rates, Q_q, Q_qd, Q_s, rates_q, rates_qd, rates_s)


def wheels_of(geometry: Geometry) -> WheelTable:
    """The wheels of a mechanism."""
    m = geometry.mechanism
    S, C, B = [], [], []
    for e in m.tyres:
        assert e.wheel is not None  # the machine has been checked
        axis = np.array(e.wheel.axis) / np.linalg.norm(e.wheel.axis)
        S.append(geometry.along(e.wheel.body, axis))
        C.append(geometry.point(e.wheel))
        B.append([moment_map(geometry, e.wheel.body, a) for a in range(3)])
    w, y = len(m.tyres), m.n + 1
    axes, centres = (np.array(maps).reshape(w, 3, y) for maps in (S, C))
    return WheelTable(m.n, m.tyres, axes, centres, np.array(B).reshape(w, 3, m.n, y))


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
                inward = addresses_in(x[i], (INPUTS.index(name) for name in made.kernel.inputs))
                outward = addresses_in(f[i], made.places)
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
            *(np.zeros((w, *sizes)) for sizes in ((k,), (k, k), (k, k), (k, 2), (2, k), (2, k))),
            *(np.zeros((rows, k)) for rows in (OUTPUTS, OUTPUTS, 6, 3)),
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
