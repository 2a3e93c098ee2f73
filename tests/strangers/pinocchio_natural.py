"""A closed spatial mechanism twice: in natural coordinates and in Pinocchio, which shares no code with it.

Two arms of two links stand on the ground; all four axes are skew. A rod with inertia about all axes joins their tips by spherical
joints. Four degrees of freedom: 4 of the arms, 3 of the rod, less 3 of the closure. In the reference pose all body frames are the
ground's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.natural_mechanisms import inertia
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.point_parts import Point, RigidBody, UnitVector

Array = NDArray[np.float64]
GRAVITY = np.array([1.0, -2.0, -9.0])
PLACES = {
    "OA": (0.0, 0.0, 0.0),
    "PA": (0.3, 0.2, 0.9),
    "TA": (0.9, -0.2, 1.5),
    "OB": (2.0, 0.5, -0.2),
    "PB": (2.2, 0.1, 0.7),
    "TB": (1.8, 0.8, 1.6),
}
AXES = {"a1": (0.2, 0.3, 1.0), "a2": (1.0, -0.4, 0.3), "b1": (-0.3, 0.1, 1.0), "b2": (0.2, 1.0, 0.5)}
ACROSS = {"a3": (0.1, 1.0, -0.2), "b3": (1.0, 0.2, 0.1), "r1": (0.3, -0.2, 1.0), "r2": (0.4, 0.8, -0.3)}
BODIES = {  # body: points and vectors, parent, place of its joint, axis of its joint
    "lower_a": (("OA", "PA"), ("a1", "a2"), "universe", "OA", "a1"),
    "upper_a": (("PA", "TA"), ("a2", "a3"), "lower_a", "PA", "a2"),
    "rod": (("TA", "TB"), ("r1", "r2"), "upper_a", "TA", ""),
    "lower_b": (("OB", "PB"), ("b1", "b2"), "universe", "OB", "b1"),
    "upper_b": (("PB", "TB"), ("b2", "b3"), "lower_b", "PB", "b2"),
}


def direction(name: str) -> Array:
    x = np.array({**AXES, **ACROSS}[name])
    return x / np.linalg.norm(x)


@dataclass(frozen=True)
class Inertia:
    mass: float
    centre: Array
    about: Array


def inertias(seed: int = 0) -> dict[str, Inertia]:
    rng = np.random.default_rng(seed)
    out = {}
    for name, (points, *_) in BODIES.items():
        mass, J = inertia(rng, 3)
        middle = 0.5 * (np.array(PLACES[points[0]]) + np.array(PLACES[points[1]]))
        out[name] = Inertia(mass, middle + 0.1 * rng.normal(size=3), np.asarray(J))
    return out


def natural(seed: int = 0) -> Mechanism:
    fixed = ("OA", "OB", "a1", "b1")
    bodies = []
    for name, i in inertias(seed).items():
        points, vectors, *_ = BODIES[name]
        bodies.append(
            RigidBody(
                name, {p: PLACES[p] for p in points}, {v: direction(v) for v in vectors}, i.mass, i.centre, i.about
            )
        )
    return Mechanism.build(
        [Point(k, at, k in fixed) for k, at in PLACES.items()],
        bodies,
        vectors=[UnitVector(k, direction(k), k in fixed) for k in (*AXES, *ACROSS)],
        gravity=GRAVITY,
        name="two arms and a rod",
    )


class Stranger:
    """The same machine in Pinocchio: the tree with the rod on the first arm, closed by the equations of motion with multipliers."""

    def __init__(self, seed: int = 0) -> None:
        self.model = pin.Model()
        self.model.gravity.linear = GRAVITY
        self.joint = {"universe": 0}
        places = {"universe": np.zeros(3)}
        for name, i in inertias(seed).items():
            _, _, parent, at, axis = BODIES[name]
            kind = pin.JointModelRevoluteUnaligned(*direction(axis)) if axis else pin.JointModelSpherical()
            place = np.array(PLACES[at])
            self.joint[name] = self.model.addJoint(
                self.joint[parent], kind, pin.SE3(np.eye(3), place - places[parent]), name
            )
            places[name] = place
            self.model.appendBodyToJoint(
                self.joint[name], pin.Inertia(i.mass, i.centre - place, i.about), pin.SE3.Identity()
            )
        self.origin = places
        self.data = self.model.createData()

    def _motion(self, body: str, place: str) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of a point given by its place in the reference pose."""
        j, p = self.joint[body], np.array(PLACES[place]) - self.origin[body]
        M, V, A = self.data.oMi[j], self.data.v[j], self.data.a[j]
        v = V.linear + np.cross(V.angular, p)
        a = A.linear + np.cross(A.angular, p) + np.cross(V.angular, v)
        return M.translation + M.rotation @ p, M.rotation @ v, M.rotation @ a

    def _jacobian(self, body: str, place: str, q: Array) -> Array:
        j, p = self.joint[body], np.array(PLACES[place]) - self.origin[body]
        J = pin.computeJointJacobian(self.model, self.data, q, j)
        p_hat = pin.skew(p)
        return self.data.oMi[j].rotation @ (J[:3] - p_hat @ J[3:])

    def closure(self, q: Array) -> Array:
        pin.forwardKinematics(self.model, self.data, q)
        return self._jacobian("rod", "TB", q) - self._jacobian("upper_b", "TB", q)

    def acceleration(self, q: Array, v: Array) -> Array:
        """M a + b + Jᵀ λ = 0 with J a = −J̇ v."""
        M = pin.crba(self.model, self.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        b = pin.nonLinearEffects(self.model, self.data, q, v)
        J = self.closure(q)
        pin.forwardKinematics(self.model, self.data, q, v, np.zeros(self.model.nv))
        drift = self._motion("rod", "TB")[2] - self._motion("upper_b", "TB")[2]
        n, m = len(v), 3
        KKT = np.block([[M, J.T], [J, np.zeros((m, m))]])
        return np.linalg.solve(KKT, np.concatenate([-b, -drift]))[:n]

    def natural_state(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """The natural coordinates of `natural()` with their rates and accelerations."""
        pin.forwardKinematics(self.model, self.data, q, v, a)
        rows = [self._motion(b, p) for b, p in (("lower_a", "PA"), ("upper_a", "TA"), ("lower_b", "PB"), ("rod", "TB"))]
        carriers = {"a2": "lower_a", "b2": "lower_b", "a3": "upper_a", "b3": "upper_b", "r1": "rod", "r2": "rod"}
        for vector, body in carriers.items():
            j, u = self.joint[body], direction(vector)
            R, w, alpha = self.data.oMi[j].rotation, self.data.v[j].angular, self.data.a[j].angular
            rate = np.cross(w, u)
            rows.append((R @ u, R @ rate, R @ (np.cross(alpha, u) + np.cross(w, rate))))
        return tuple(np.concatenate([r[k] for r in rows]) for k in range(3))

    def start(self, rng: np.random.Generator, size: float) -> tuple[Array, Array]:
        """The reference pose with a random velocity that keeps the loop closed."""
        q = pin.neutral(self.model)
        J = self.closure(q)
        v = size * rng.normal(size=self.model.nv)
        return q, v - np.linalg.pinv(J) @ (J @ v)

    def closed(self, rng: np.random.Generator, size: float) -> tuple[Array, Array]:
        """A random pose, made to close by Newton's method, and a random velocity that keeps it closed."""
        q = pin.integrate(self.model, pin.neutral(self.model), 0.4 * rng.normal(size=self.model.nv))
        for _ in range(30):
            J = self.closure(q)
            gap = self._motion("rod", "TB")[0] - self._motion("upper_b", "TB")[0]
            q = pin.integrate(self.model, q, -np.linalg.pinv(J) @ gap)
        J = self.closure(q)
        v = size * rng.normal(size=self.model.nv)
        return q, v - np.linalg.pinv(J) @ (J @ v)

    def integrate(self, q: Array, v: Array, h: float, steps: int) -> list[tuple[Array, Array]]:
        """Runge–Kutta of order four on the group: increments are taken in the tangent space of each step's start."""
        out = [(q, v)]
        for _ in range(steps):
            k1v, k1a = v, self.acceleration(q, v)
            k2v, k2a = self._stage(q, v, k1v, k1a, 0.5 * h)
            k3v, k3a = self._stage(q, v, k2v, k2a, 0.5 * h)
            k4v, k4a = self._stage(q, v, k3v, k3a, h)
            q = pin.integrate(self.model, q, h / 6 * (k1v + 2 * k2v + 2 * k3v + k4v))
            v = v + h / 6 * (k1a + 2 * k2a + 2 * k3a + k4a)
            out.append((q, v))
        return out

    def _stage(self, q: Array, v: Array, kv: Array, ka: Array, h: float) -> tuple[Array, Array]:
        there = pin.integrate(self.model, q, h * kv)
        return v + h * ka, self.acceleration(there, v + h * ka)
