"""Wheels with tyres in natural coordinates: how each wheel moves, what its tyre does, and exact derivatives of both.

With y = (q, 1) the axis s = S y, the centre c = C y, its velocity C' q̇ and the angular velocity ω_a = q̇ᵀ B_a y of a wheel follow from
constant tables, and a force F at the centre and a moment M have the generalised force C'ᵀ F + Σ M_a B_a y (paper 003, equations 28 and
29). F, M and the rates of the tyre's lagging slips are machine code of the laws of :mod:`veridyn.mechanics.ground.tyres`, run on symbols in
the ground's frame. Its inputs x (17,) are the wheel's axis, centre, velocity of the centre, angular velocity, the two lagging slips, and
the road's plane (height at the origin, slopes); outputs f (8,) are force, moment about the centre and rates of the slips, and ∂f/∂x (8, 14)
with the road's plane held. Constants of the law are inputs: one kernel serves all tyres of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.mechanics.ground.road import Road, fill_surface
from veridyn.mechanics.ground.tyres import Tyre
from veridyn.mechanics.natural.equations.forces import moment_map
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import ROAD_INPUTS, SLIPS
from veridyn.spatial.algebra import IDENTITY, ZERO, Mat, Vec, is_zero, mul
from veridyn.symbolic.cache import Stored, key_of, load_or_make, note_sources, remembered, source_digest
from veridyn.symbolic.emit_llvm import emit
from veridyn.symbolic.expression import Graph, Number, forward, live
from veridyn.symbolic.kernel import Kernel, Single, compile_object, this_host

MOTION = tuple(f"{part}.{axis}" for part in ("axis", "centre", "v", "w") for axis in range(3))
INPUTS = (*MOTION, *(s.key for s in SLIPS), *ROAD_INPUTS)
SLOPES = len(MOTION) + len(SLIPS)  # inputs by which outputs are differentiated
OUTPUTS = 8
GAIN = "gain"
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
    target, given = this_host(1), tuple(sorted(e.constants))
    key = key_of("natural tyre", e.kind, repr(given), str(derivative), target.signature, source_digest(__name__) or "")

    def make() -> Stored:
        graph = Graph()
        found = _formula(graph, e, derivative)
        used = set(live(graph, found.values()))
        names = [name for name, node in graph.inputs.items() if node in used]
        samples = [name for name in names if name in INPUTS]
        parameters = [name for name in names if name not in INPUTS]
        program = emit(graph, list(found.values()), samples, parameters, target.width, 1)
        labels = list(found)
        description = {
            "labels": [labels[k] for k in program.order],
            "samples": samples,
            "parameters": parameters,
            "places": program.places,
        }
        return Stored(compile_object(program.text, target), description)

    def load() -> TyreCode:
        stored = load_or_make(key, make) if source_digest(__name__) else make()  # sources were edited: not kept
        d = stored.description
        kernel = Kernel(stored.code, tuple(d["samples"]), tuple(d["parameters"]), len(d["labels"]), d["places"], 1)
        return TyreCode(kernel, tuple(d["labels"]))

    return remembered(key, load)


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

    def condensed(self, h: float, begun: Array, s: Array) -> CondensedWheels:
        """The tyres with slips that follow the trapezoidal rule s = begun + h/2 ṡ: Newton's step for s, put into the other equations."""
        half = 0.5 * h
        N = np.linalg.inv(np.eye(len(s)) - half * self.rates_s)
        gain = self.Q_s @ N
        left = begun + half * self.rates - s
        return CondensedWheels(
            self.Q + gain @ left,
            -(self.Q_q + half * gain @ self.rates_q),
            -(self.Q_qd + half * gain @ self.rates_qd),
            N @ left,
            half * N @ self.rates_q,
            half * N @ self.rates_qd,
        )


@dataclass(frozen=True, eq=False)
class CondensedWheels:
    """Q, K and C of tyres whose slips follow; ds = `step` + `by_q` dq + `by_qd` dq̇."""

    Q: Array
    K: Array
    C: Array
    step: Array
    by_q: Array
    by_qd: Array


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
        rates_q, rates_qd, rates_s = (
            np.zeros((2 * count, n)),
            np.zeros((2 * count, n)),
            np.zeros((2 * count, 2 * count)),
        )
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


def plane_of(road: Road) -> Plane:
    """The tangent plane of a road below a place."""
    packed = road.packed

    def plane(x: Array, y: Array) -> Array:
        out = np.empty((3, len(x)))
        fill_surface(packed, np.ascontiguousarray(x), np.ascontiguousarray(y), out)
        out[0] -= out[1] * x + out[2] * y
        return out

    return plane


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
    shape = (len(m.tyres), 3, m.n + 1)
    return WheelTable(
        m.n,
        m.tyres,
        np.array(S).reshape(shape),
        np.array(C).reshape(shape),
        np.array(B).reshape(len(m.tyres), 3, m.n, m.n + 1),
    )
