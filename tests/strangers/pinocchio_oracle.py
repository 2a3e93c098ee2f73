"""Pinocchio as a stranger: the mechanics of an open machine by a library that shares no code with veridyn, in its conventions.

Only data are read from its tree (antecedents, placements, joint kinds, coordinates, ten parameters per body,
gravity). Elements and transmissions are not looked at: compare what is left when they are taken away.

A free base is Pinocchio's free flyer. Its velocity is (v, ω) of the base's origin in the base's frame, and its
acceleration is the time derivative of these six numbers: the spatial acceleration, whose linear part is a − ω × v,
where a is the classical acceleration of the origin. Only a − g enters the equations, so gravity is switched off and
the specific acceleration of `BaseMotion` is put in place of a. The velocity v is the given one or zero, which must
not matter (Galileo), and the attitude is the identity, which does not matter once gravity is in the acceleration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]

# Where each of XX XY XZ YY YZ ZZ MX MY MZ M stands among Pinocchio's m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
TEN = (4, 5, 7, 6, 8, 9, 1, 2, 3, 0)
_I, _K = np.triu_indices(3)


class Acceleration(NamedTuple):
    """The base's specific acceleration and ω̇ (N, 3), None on a fixed base, and q̈ (N, n)."""

    acceleration: Array | None
    omega_dot: Array | None
    qdd: Array


class Energy(NamedTuple):
    """(N,) each; the potential is −Σ m g·c with its zero at the ground's origin."""

    kinetic: Array
    potential: Array


def moments(X: ArrayLike) -> Array:
    """Σ m (r, 1)(r, 1)ᵀ, the (4, 4) matrix of moments up to the second, from ten parameters; J = tr(Σ) 1 − Σ."""
    x = np.asarray(X, dtype=np.float64)
    J = np.zeros((3, 3))
    J[_I, _K] = J[_K, _I] = x[:6]
    P = np.zeros((4, 4))
    P[:3, :3] = np.trace(J) / 2 * np.eye(3) - J
    P[:3, 3] = P[3, :3] = x[6:9]
    P[3, 3] = x[9]
    return P


def ten_of(P: Array) -> Array:
    """The inverse of :func:`moments`."""
    S = P[:3, :3]
    J = np.trace(S) * np.eye(3) - S
    return np.concatenate([J[_I, _K], P[:3, 3], [P[3, 3]]])


def seen_from(H: Array) -> Array:
    """The (10, 10) matrix from a body's ten in its own frame to those in a frame that sees it at H (4, 4): H Σ Hᵀ."""
    return np.column_stack([ten_of(H @ moments(unit) @ H.T) for unit in np.eye(10)])


def pin_inertia(X: ArrayLike) -> pin.Inertia:
    """Mass, centre and inertia about the centre, from ten parameters about the frame's origin."""
    P = moments(X)
    m = P[3, 3]
    c = P[:3, 3] / m if m > 0 else np.zeros(3)
    S = P[:3, :3] - m * np.outer(c, c)
    return pin.Inertia(m, c, np.trace(S) * np.eye(3) - S)


class PinModel:
    """A Pinocchio model of a machine without loops, or cut open; arrays are batch first, (N, …), rows and columns as in veridyn.

    Joints go along z of the body's frame. A fixed body is welded to the last joint below it, at `placement`. Joints
    that share a coordinate are joined by S: joint velocities = S qd, forces on coordinates = Sᵀ forces on joints.
    Pinocchio drops a dimension of matrices with one row or column, hence the reshaping.
    """

    def __init__(self, machine: Machine | Tree) -> None:
        self.tree = tree = tree_of(machine)
        self.free = tree.base == "free"
        self.model = pin.Model()
        self.model.gravity.linear = np.zeros(3) if self.free else np.array(tree.gravity)
        self.joint: dict[str, int] = {}
        self.placement: dict[str, pin.SE3] = {}
        self.real = [b.name for b in tree.bodies if b.real]
        self.ten = dict(zip(self.real, tree.parameters.values[: 10 * len(self.real)].reshape(-1, 10), strict=True))
        self.weighed = all(np.isfinite(X).all() for X in self.ten.values())
        self._grow(-1)
        self.data = self.model.createData()
        self.S = self._sharing()

    def _grow(self, parent: int) -> None:
        """Depth first, since Pinocchio wants the joints of a subtree side by side."""
        for j, b in enumerate(self.tree.bodies):
            if self.tree.antecedent[j] != parent:
                continue
            below = self.joint[self.tree.bodies[parent].name] if parent >= 0 else 0
            at = self.placement[self.tree.bodies[parent].name] if parent >= 0 else pin.SE3.Identity()
            here = at * pin.SE3(np.array(b.placement.rotation), np.array(b.placement.position))
            if self.free and parent < 0:
                below = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), b.name)
                here = pin.SE3.Identity()
            elif b.joint != "fixed":
                kind = pin.JointModelRZ() if b.joint == "turning" else pin.JointModelPZ()
                below = self.model.addJoint(below, kind, here, b.name)
                here = pin.SE3.Identity()
            self.joint[b.name], self.placement[b.name] = below, here
            if b.real and self.weighed and below > 0:
                self.model.appendBodyToJoint(below, pin_inertia(self.ten[b.name]), here)
            self._grow(j)

    def _sharing(self) -> Array:
        """S (nv, rows): the base's six as they are, then each joint's ratio to its coordinate."""
        six = 6 if self.free else 0
        S = np.zeros((self.model.nv, six + self.tree.n))
        S[:six, :six] = np.eye(six)
        for b, k in zip(self.tree.bodies, self.tree.coordinate, strict=True):
            if k >= 0:
                S[self.model.joints[self.joint[b.name]].idx_v, six + k] = b.ratio
        return S

    def configuration(self, q: Array) -> Array:
        """Pinocchio's q of one sample; a free base sits at the ground's origin, unturned."""
        joints = self.S @ np.concatenate([np.zeros(6 if self.free else 0), q])
        return np.concatenate([[0.0] * 6, [1.0], joints[6:]]) if self.free else joints

    def _velocity(self, motion: Motion, k: int) -> Array:
        return self.S @ np.concatenate([*self._base_velocity(motion, k), motion.qd[k]])

    def _base_velocity(self, motion: Motion, k: int) -> list[Array]:
        if motion.base is None:
            return []
        v = np.zeros(3) if motion.base.velocity is None else motion.base.velocity[k]
        return [v, motion.base.omega[k]]

    def _acceleration(self, motion: Motion, k: int) -> Array:
        base: list[Array] = []
        if motion.base is not None:
            v, omega = self._base_velocity(motion, k)
            base = [motion.base.acceleration[k] - np.cross(omega, v), motion.base.omega_dot[k]]
        return self.S @ np.concatenate([*base, motion.qdd[k]])

    def _external(self, wrenches: Mapping[str, Array], k: int) -> pin.StdVec_Force:
        """Per joint, the sum of the wrenches that act on its bodies, in the joint's frame."""
        total = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for body, w in wrenches.items():
            total[self.joint[body]] += self.placement[body].act(pin.Force(w[k, :3], w[k, 3:]))
        forces = pin.StdVec_Force()
        forces.extend(total)
        return forces

    def _need_inertia(self) -> None:
        if not self.weighed:
            raise ValueError("this tree has bodies of unknown inertia")

    def inverse_dynamics(self, motion: Motion) -> Array:
        """Γ (N, rows): fx fy fz mx my mz of a free base, then forces on the coordinates (recursive Newton-Euler)."""
        self._need_inertia()
        rows = [
            self.S.T
            @ pin.rnea(
                self.model,
                self.data,
                self.configuration(motion.q[k]),
                self._velocity(motion, k),
                self._acceleration(motion, k),
                self._external(motion.wrenches, k),
            )
            for k in range(len(motion))
        ]
        return np.array(rows).reshape(len(motion), -1)

    def regressor(self, motion: Motion) -> Array:
        """D (N, rows, 10 per real body); Γ = D X without wrenches. The tree's columns of elements come after these."""
        out = np.zeros((len(motion), self.S.shape[1], 10 * len(self.real)))
        to_joint = {name: seen_from(self.placement[name].homogeneous)[np.argsort(TEN)] for name in self.real}
        for k in range(len(motion)):
            Y = pin.computeJointTorqueRegressor(
                self.model,
                self.data,
                self.configuration(motion.q[k]),
                self._velocity(motion, k),
                self._acceleration(motion, k),
            ).reshape(self.model.nv, -1)
            for i, name in enumerate(self.real):
                at = 10 * (self.joint[name] - 1)
                if at >= 0:
                    out[k, :, 10 * i : 10 * i + 10] = self.S.T @ Y[:, at : at + 10] @ to_joint[name]
        return out

    def mass_matrix(self, q: ArrayLike) -> Array:
        """(N, rows, rows) of q (N, n), or (rows, rows) of q (n,): what multiplies (base acceleration, ω̇, q̈)."""
        self._need_inertia()
        Q = np.asarray(q, dtype=np.float64)
        if Q.ndim == 2:
            return np.array([self.mass_matrix(row) for row in Q])
        M = pin.crba(self.model, self.data, self.configuration(Q)).reshape(self.model.nv, -1)
        upper = np.triu(M)
        return self.S.T @ (upper + np.triu(upper, 1).T) @ self.S

    def forward_dynamics(self, motion: Motion, gamma: Array) -> Acceleration:
        """The accelerations that Γ (N, rows) causes, base rows included; those of the motion are not read.

        By the articulated-body algorithm; with shared coordinates, which it does not know, by the mass matrix.
        """
        self._need_inertia()
        six = 6 if self.free else 0
        found = np.zeros((len(motion), self.S.shape[1]))
        for k in range(len(motion)):
            q, v = self.configuration(motion.q[k]), self._velocity(motion, k)
            external = self._external(motion.wrenches, k)
            if self.S.shape[0] == self.S.shape[1]:
                on_joints = np.linalg.solve(self.S.T, gamma[k])
                found[k] = np.linalg.solve(self.S, pin.aba(self.model, self.data, q, v, on_joints, external))
            else:
                at_rest = pin.rnea(self.model, self.data, q, v, np.zeros(self.model.nv), external)
                found[k] = np.linalg.solve(self.mass_matrix(motion.q[k]), gamma[k] - self.S.T @ at_rest)
            if self.free:
                found[k, :3] += np.cross(v[3:6], v[:3])
        if self.free:
            return Acceleration(found[:, :3], found[:, 3:6], found[:, six:])
        return Acceleration(None, None, found)

    def frame_pose(self, q: ArrayLike, body: str) -> tuple[Array, Array]:
        """R (N, 3, 3) and p (N, 3) of a body's frame in the ground (free tree: in its base); q may be one (n,)."""
        Q = np.asarray(q, dtype=np.float64)
        if Q.ndim == 2:
            poses = [self.frame_pose(row, body) for row in Q]
            return np.array([R for R, _ in poses]), np.array([p for _, p in poses])
        pin.forwardKinematics(self.model, self.data, self.configuration(Q))
        pose = self.data.oMi[self.joint[body]] * self.placement[body]
        return pose.rotation.copy(), pose.translation.copy()

    def jacobian(self, q: ArrayLike, body: str, local: bool = False) -> Array:
        """(N, 6, columns) or (6, columns): velocity of the body's origin, then angular velocity, per unit of a rate.

        In the ground's axes, or in the body's own with `local`. A free tree has six columns more, first: v and ω of
        the base in the base's frame; its "ground" is the base's frame at that instant.
        """
        Q = np.asarray(q, dtype=np.float64)
        if Q.ndim == 2:
            return np.array([self.jacobian(row, body, local) for row in Q]).reshape(len(Q), 6, -1)
        R, _ = self.frame_pose(Q, body)
        if self.joint[body] == 0:
            return np.zeros((6, self.S.shape[1]))
        pin.computeJointJacobians(self.model, self.data, self.configuration(Q))
        in_joint = pin.getJointJacobian(self.model, self.data, self.joint[body], pin.ReferenceFrame.LOCAL)
        J = self.placement[body].toActionMatrixInverse() @ in_joint.reshape(6, -1) @ self.S
        return J if local else np.kron(np.eye(2), R) @ J

    def energy(
        self,
        q: Array,
        qd: Array,
        base_velocity: Array | None = None,
        base_pose: tuple[Array, Array] | None = None,
    ) -> Energy:
        """Of q, qd (N, n); bodies that are fixed to the ground count too.

        A free base moves with `base_velocity` (N, 6), v then ω in its frame, and sits at `base_pose` (R, p) in the
        ground; where they are not given, it rests at the ground's origin, unturned.
        """
        self._need_inertia()
        N = len(q)
        kinetic, potential = np.zeros(N), np.zeros(N)
        base = np.zeros((N, 6)) if base_velocity is None else base_velocity
        R, p = (np.tile(np.eye(3), (N, 1, 1)), np.zeros((N, 3))) if base_pose is None else base_pose
        standing = [seen_from(self.placement[b].homogeneous) @ self.ten[b] for b in self.real if self.joint[b] == 0]
        for k in range(N):
            qk = self.configuration(q[k])
            v = self.S @ (np.concatenate([base[k], qd[k]]) if self.free else qd[k])
            kinetic[k] = pin.computeKineticEnergy(self.model, self.data, qk, v)
            if self.model.nv == 0 or self.model.njoints == 1:
                moving = np.zeros(3)
            else:
                centre = pin.centerOfMass(self.model, self.data, qk)
                mass = self.data.mass[0]
                moving = mass * (R[k] @ centre + p[k]) if self.free else mass * centre
            potential[k] = -self.tree.gravity @ (moving + sum((X[6:9] for X in standing), np.zeros(3)))
        return Energy(kinetic, potential)
