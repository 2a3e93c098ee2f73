"""Wheels with tyres in natural coordinates: how each wheel moves, what its tyre does, and exact derivatives of both.

With y = (q, 1) the axis s = S y, the centre c = C y, its velocity C' q̇ and the angular velocity ω_a = q̇ᵀ B_a y of a wheel follow from
constant tables, and a force F at the centre and a moment M have the generalised force C'ᵀ F + Σ M_a B_a y (paper 003, equations 28 and
29). F, M and the rates of the tyre's lagging slips come from :mod:`~veridyn.mechanics.natural.tyre_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.mechanics.ground.road import Road, fill_surface
from veridyn.mechanics.natural.forces import moment_map
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.tyre_code import INPUTS, OUTPUTS, SLOPES, tyre_code
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import SLIPS
from veridyn.symbolic.kernel import Single

Array = NDArray[np.float64]
Plane = Callable[[Array, Array], Array]  # x, y (w,) → height at the origin and slopes of the road's plane there, (3, w)


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
