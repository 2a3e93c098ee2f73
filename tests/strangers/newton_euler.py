"""Any mechanism in maximal coordinates: each body a place and a rotation, Newton's and Euler's equations, joints as constraints on twists.

It reads the same description as natural coordinates do and shares nothing else with them: no point or vector is a coordinate, there is
no constant mass matrix and no Φ. A body in the plane is one in space that is held there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.load import Drive, Force
from veridyn.model.place import GROUND, Marker, PointRef
from veridyn.model.point_parts import Angle, DirectionRef, MechanismJoint, Spring
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]


def spatial(x: ArrayLike) -> Array:
    v = np.asarray(x, dtype=np.float64)
    return np.append(v, 0.0) if len(v) == 2 else v


def skew(v: Array) -> Array:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@dataclass(frozen=True)
class Jet:
    """A vector or number: its value, its rate J ν, and its acceleration J ν̇ + g, for the twists ν of all bodies."""

    value: Array
    J: Array
    g: Array
    nu: Array

    @property
    def rate(self) -> Array:
        return self.J @ self.nu

    def __sub__(self, other: Jet) -> Jet:
        return Jet(self.value - other.value, self.J - other.J, self.g - other.g, self.nu)

    def times(self, factor: float) -> Jet:
        return Jet(factor * self.value, factor * self.J, factor * self.g, self.nu)

    def dot(self, b: Jet) -> Jet:
        g = self.value @ b.g + b.value @ self.g + 2.0 * self.rate @ b.rate
        return Jet(
            np.array([self.value @ b.value]), (self.value @ b.J + b.value @ self.J)[None], np.array([g]), self.nu
        )


class NewtonEuler:
    """One mechanism at one pose and velocity, given by the coordinates q and q̇ of natural coordinates."""

    def __init__(self, m: Mechanism, q: Array, qd: Array) -> None:
        self.m, self.plane = m, m.dimension == 2
        self.names = [b.name for b in m.bodies]
        self.vectors = {v.name for v in m.vectors}
        self.fixed = {p.name: spatial(p.at) for p in m.points if p.fixed}
        self.fixed |= {v.name: spatial(v.along) for v in m.vectors if v.fixed}
        self.at, self.speed = dict(self.fixed), {name: np.zeros(3) for name in self.fixed}
        for e in (*m.points, *m.vectors):
            if not e.fixed:
                k = [m.index(f"{e.name}.{axis}") for axis in "xyz"[: m.dimension]]
                self.at[e.name], self.speed[e.name] = spatial(q[k]), spatial(qd[k])
        self.holds = [
            (b.name, e, spatial((*b.points.values(), *b.vectors.values())[i]))
            for b in m.bodies
            for i, e in enumerate(b.elements)
        ]
        self.place, self.turn = zip(*(self._pose(b.name) for b in m.bodies), strict=True)
        self.nu = np.zeros(6 * len(self.names))
        rows = np.vstack([self._on(b, x, e in self.vectors).J for b, e, x in self.holds])
        right = np.concatenate([self.speed[e] for _, e, _ in self.holds])
        if self.plane:
            rows, right = (
                np.vstack([rows, *(r.J for r in self._flat())]),
                np.append(right, np.zeros(3 * len(self.names))),
            )
        self.nu = np.linalg.lstsq(rows, right, rcond=1e-11)[0]
        assert np.abs(rows @ self.nu - right).max() < 1e-8, "the rates are not those of rigid bodies"
        self.wound = {
            a.name: 2.0 * np.pi * np.round((q[m.index(a.name)] - float(self.added(a.name).value[0])) / (2.0 * np.pi))
            for a in m.added
            if isinstance(a, Angle)
        }
        self._solve()

    def _pose(self, body: str) -> tuple[Array, Array]:
        """Place and rotation that bring a body's points and vectors to where they are, by the nearest rotation."""
        own = [(e, x) for b, e, x in self.holds if b == body]
        first, x0 = own[0]
        there = [self.at[e] - (0.0 if e in self.vectors else self.at[first]) for e, _ in own[1:]]
        here = [x - (0.0 if e in self.vectors else x0) for e, x in own[1:]]
        if self.plane:
            there, here = [*there, np.array([0.0, 0.0, 1.0])], [*here, np.array([0.0, 0.0, 1.0])]
        R = np.eye(3)
        if here:
            U, _, Vt = np.linalg.svd(np.array(there).T @ np.array(here))
            R = U @ np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))]) @ Vt
        return self.at[first] - R @ x0, R

    def _on(self, body: str, x: ArrayLike, direction: bool = False) -> Jet:
        """A place or direction given in a body's frame."""
        at, J = spatial(x), np.zeros((3, 6 * len(self.names)))
        if body == GROUND:
            return Jet(at, J, np.zeros(3), self.nu)
        i = self.names.index(body)
        r, w = self.turn[i] @ at, self.nu[6 * i + 3 : 6 * i + 6]
        J[:, 6 * i + 3 : 6 * i + 6] = -skew(r)
        if not direction:
            J[:, 6 * i : 6 * i + 3] = np.eye(3)
        return Jet(r if direction else r + self.place[i], J, np.cross(w, np.cross(w, r)), self.nu)

    def element(self, name: str) -> Jet:
        """A point or vector as the ground, or the first body that has it, carries it."""
        if name in self.fixed:
            return self._on(GROUND, self.fixed[name], name in self.vectors)
        body, _, x = next(h for h in self.holds if h[1] == name)
        return self._on(body, x, name in self.vectors)

    def point(self, ref: PointRef) -> Jet:
        return self._on(ref.body, ref.at) if isinstance(ref, Marker) else self.element(ref)

    def direction(self, ref: DirectionRef) -> Jet:
        """Of length one, but for two points."""
        if isinstance(ref, str):
            return self.element(ref)
        if isinstance(ref, Marker):
            return self._axes(ref)[0]
        if isinstance(ref[0], str):
            return self.element(str(ref[1])) - self.element(str(ref[0]))
        return self._on(GROUND, np.asarray(ref, dtype=np.float64), True)

    def _axes(self, marker: Marker) -> tuple[Jet, Jet, Jet]:
        axis = spatial(marker.axis) / np.linalg.norm(marker.axis)
        if self.plane:
            side = np.array([-axis[1], axis[0], 0.0])
        else:
            side = np.array(marker.side) if marker.side else np.eye(3)[np.argmin(np.abs(axis))]
            side = side - (side @ axis) * axis
            side = side / np.linalg.norm(side)
        return tuple(self._on(marker.body, x, True) for x in (axis, side, np.cross(axis, side)))  # pyright: ignore[reportReturnType]

    def added(self, name: str) -> Jet:
        """An added angle or distance."""
        c = next(a for a in self.m.added if a.name == name)
        if isinstance(c, Angle):
            d, e = self.direction(c.of), self.direction(c.reference)
            up = skew(np.array([0.0, 0.0, 1.0]))
            f = Jet(up @ e.value, up @ e.J, up @ e.g, e.nu) if c.towards is None else self.direction(c.towards)
            A = d.dot(e).times(1.0 / float(np.linalg.norm(e.value)))
            B = d.dot(f).times(1.0 / float(np.linalg.norm(f.value)))
            n = A.value**2 + B.value**2
            J = (A.value * B.J - B.value * A.J) / n
            g = (A.value * B.g - B.value * A.g - 2.0 * (J @ self.nu) * (A.value * A.rate + B.value * B.rate)) / n
            return Jet(np.arctan2(B.value, A.value), J, g, self.nu)
        r = self.point(c.b) - self.point(c.a)
        if c.along is not None:
            u = self.direction(c.along)
            return r.dot(u).times(1.0 / float(np.linalg.norm(u.value)))
        return self._length(r)

    def _length(self, r: Jet) -> Jet:
        square = r.dot(r)
        length = np.sqrt(square.value)
        J = square.J / (2.0 * length)
        return Jet(length, J, square.g / (2.0 * length) - (J @ self.nu) ** 2 / length, self.nu)

    def _flat(self) -> list[Jet]:
        """What holds bodies in the plane: no motion along z, no turning about x and y."""
        rows = []
        for i in range(len(self.names)):
            J = np.zeros((3, 6 * len(self.names)))
            J[[0, 1, 2], [6 * i + 2, 6 * i + 3, 6 * i + 4]] = 1.0
            rows.append(Jet(np.zeros(3), J, np.zeros(3), self.nu))
        return rows

    def constraints(self) -> list[Jet]:
        rows = self._flat() if self.plane else []
        for body, e, x in self.holds:
            first = next(h[0] for h in self.holds if h[1] == e)
            if e in self.fixed or body != first:
                rows.append(self._on(body, x, e in self.vectors) - self.element(e))
        for j in self.m.joints:
            rows += self._joint(j)
        for k in self.m.racks:
            rows.append(self.added(k.distance) - self.added(k.angle).times(k.radius))
        return rows

    def _joint(self, j: MechanismJoint) -> list[Jet]:
        r = self.point(j.b) - self.point(j.a)
        if j.kind == "distance":
            return [r.dot(r)]
        rows = [r] if j.kind in ("spherical", "turning", "universal") else []
        if j.kind == "spherical" or (self.plane and j.kind == "turning"):
            return rows
        assert isinstance(j.a, Marker)
        axis, side, third = self._axes(j.a)
        if j.kind in ("sliding", "cylindrical"):
            rows += [r.dot(side), r.dot(third)]
        if self.plane and j.kind == "cylindrical":
            return rows
        assert isinstance(j.b, Marker)
        other, beside, _ = self._axes(j.b)
        if j.kind == "universal":
            return [*rows, axis.dot(other)]
        rows += [other.dot(side), other.dot(third)]
        return [*rows, beside.dot(third)] if j.kind == "sliding" else rows

    def _forces(self) -> Array:
        Q = np.zeros_like(self.nu)
        for k in (*self.m.springs, *self.m.dampers):
            if isinstance(k.on, str):
                L = self.added(k.on)
            else:
                L = self._length(self.point(k.on[1]) - self.point(k.on[0]))
            stretched = float(L.value[0]) + (self.wound.get(k.on, 0.0) if isinstance(k.on, str) else 0.0)
            pull = k.stiffness * (stretched - k.rest) if isinstance(k, Spring) else k.coefficient * float(L.rate[0])
            Q -= pull * L.J[0]
        for load in self.m.loads:
            if isinstance(load, Drive):
                Q += load.value * self.added(load.coordinate).J[0]
            elif isinstance(load, Force):
                Q += spatial(load.value) @ self.point(load.at).J
            else:
                value = np.atleast_1d(np.asarray(load.value))
                torque = np.array([0.0, 0.0, value[0]]) if self.plane else value
                for body, sign in ((load.body, 1.0), (load.against, -1.0)):
                    if body != GROUND:
                        i = self.names.index(body)
                        Q[6 * i + 3 : 6 * i + 6] += sign * torque
        return Q

    def _solve(self) -> None:
        n, gravity = len(self.nu), spatial(self.m.gravity)
        M, Q = np.zeros((n, n)), self._forces()
        for i, b in enumerate(self.m.bodies):
            at = slice(6 * i, 6 * i + 6)
            r = self.turn[i] @ spatial(b.centre or (0.0,) * self.m.dimension)
            w, S = self.nu[6 * i + 3 : 6 * i + 6], skew(r)
            J = np.asarray(b.inertia)
            if self.plane:
                J = np.diag([0.0, 0.0, float(J)])
            elif J.shape == (6,):
                J = np.array([[J[0], J[1], J[2]], [J[1], J[3], J[4]], [J[2], J[4], J[5]]])
            about = self.turn[i] @ (J if J.ndim else np.zeros((3, 3))) @ self.turn[i].T - b.mass * S @ S
            M[at, at] = np.block([[b.mass * np.eye(3), -b.mass * S], [b.mass * S, about]])
            Q[at] += b.mass * np.concatenate([gravity - np.cross(w, np.cross(w, r)), np.cross(r, gravity)])
            Q[6 * i + 3 : 6 * i + 6] -= np.cross(w, about @ w)
        rows = self.constraints()
        J = np.vstack([np.zeros((0, n)), *(np.atleast_2d(r.J) for r in rows)])
        g = np.concatenate([np.zeros(0), *(np.ravel(r.g) for r in rows)])
        U, s, Vt = np.linalg.svd(J)
        rank = int((s > 1e-9 * max(s.max(initial=0.0), 1e-300)).sum())
        free = Vt[rank:].T
        forced = Vt[:rank].T @ ((U[:, :rank].T @ -g) / s[:rank])
        reduced = free.T @ M @ free
        moves = np.linalg.eigvalsh(reduced) > 1e-11 * np.abs(M).max()  # a rod's spin about itself moves nothing
        self.degrees_of_freedom = int(moves.sum())
        self.acceleration = forced + free @ np.linalg.lstsq(reduced, free.T @ (Q - M @ forced), rcond=1e-11)[0]

    def second(self, jet: Jet) -> Array:
        """The second time derivative."""
        return jet.J @ self.acceleration + jet.g

    def accelerations(self) -> Array:
        """q̈ in the order of natural coordinates."""
        out = [
            self.second(self.element(e.name))[: self.m.dimension]
            for e in (*self.m.points, *self.m.vectors)
            if not e.fixed
        ]
        return np.concatenate([*out, *(self.second(self.added(a.name)) for a in self.m.added)])

    def reading(self, i: Sensor) -> Array:
        """What an ideal sensor reads."""
        if isinstance(i.on, str) and i.kind in ("coordinate", "rate"):
            jet = self.added(i.on)
            return jet.rate if i.kind == "rate" else jet.value + self.wound.get(i.on, 0.0)
        axes = ["xyz".index(c) for c in (i.axes or "xyz"[: self.m.dimension])]
        if i.kind in ("position", "velocity"):
            jet = self.point(i.on)
            value = jet.value if i.kind == "position" else jet.rate
            if isinstance(i.on, Marker) and i.on.axis:
                value = np.column_stack([axis.value for axis in self._axes(i.on)]).T @ value
            return value[axes]
        k = self.names.index(i.on.body if isinstance(i.on, Marker) else i.on)
        W = self.turn[k]
        if isinstance(i.on, Marker) and i.on.axis:
            W = np.column_stack([jet.value for jet in self._axes(i.on)])
        if i.kind == "gyroscope":
            w = W.T @ self.nu[6 * k + 3 : 6 * k + 6]
            return w[2:] if self.plane else w[axes]
        return (W.T @ (self.second(self.point(i.on)) - spatial(self.m.gravity)))[axes]
