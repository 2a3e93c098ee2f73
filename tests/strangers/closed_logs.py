"""Logs of closed machines that veridyn's own mechanics had no part in: Pinocchio closes the loops, moves the machine and weighs it.

Positions follow from Newton's method on what Pinocchio says of the ends of the cut joints, rates and accelerations from its Jacobians and
the accelerations it finds along them, forces of the drives from its recursive Newton-Euler algorithm, projected by the null space of
the constraint. Friction is added by hand. Only data are read from its tree.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_loops import PinLoops
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
WORLD = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Stranger:
    """A closed machine with cut joints that are spherical or turning, moved along given drives from a first guess of all coordinates."""

    def __init__(self, machine: Machine | Tree, guess: dict[str, float]) -> None:
        self.tree, self.loops = tree_of(machine), PinLoops(machine)
        self.own = [k for k, on in enumerate(self.tree.actuated) if on]
        self.rest = [k for k in range(self.tree.n) if k not in self.own]
        self.start = np.array([guess.get(c, 0.0) for c in self.tree.coordinates])

    def _ends(self, name: str) -> tuple[int, int]:
        return self.loops.frames[name, "first"], self.loops.frames[name, "second"]

    def _gap(self) -> Array:
        """What the rows of PinLoops.constraint have not yet brought together: distances, and axes that are not parallel."""
        data, out = self.loops.open.data, []
        for loop in self.tree.loops:
            one, two = (data.oMf[f] for f in self._ends(loop.name))
            out.append(one.translation - two.translation)
            if loop.joint == "turning":
                turn = np.cross(two.rotation[:, 2], one.rotation[:, 2])
                out.append(one.rotation[:, :2].T @ turn)
        return np.concatenate(out)

    def position(self, drives: Array, near: Array) -> tuple[Array, Array]:
        """All coordinates, and the rows of PinLoops.constraint there."""
        q = near.copy()
        q[self.own] = drives
        for _ in range(60):
            A = self.loops.constraint(q)
            gap = self._gap()
            if np.abs(gap).max() < 1e-12:
                return q, A
            step = np.linalg.lstsq(A[:, self.rest], gap, rcond=1e-9)[0]
            q[self.rest] -= step * min(1.0, 0.3 / max(np.abs(step).max(), 1e-12))
        raise ValueError("out of reach")

    def _drift(self, q: Array, qd: Array) -> Array:
        """Ȧ q̇: how fast the constrained velocities change without any acceleration."""
        model, data, S = self.loops.open.model, self.loops.open.data, self.loops.open.S
        pin.forwardKinematics(model, data, self.loops.open.configuration(q), S @ qd, np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        out = []
        for loop in self.tree.loops:
            one, two = self._ends(loop.name)
            a, b = (pin.getFrameClassicalAcceleration(model, data, f, WORLD) for f in (one, two))
            out.append(a.linear - b.linear)
            if loop.joint == "turning":
                u, v = (pin.getFrameVelocity(model, data, f, WORLD).angular for f in (one, two))
                axes = data.oMf[one].rotation[:, :2]
                out.append(axes.T @ (a.angular - b.angular) + np.cross(u, axes, axisb=0, axisc=0).T @ (u - v))
        return np.concatenate(out)

    def motion(self, t: Array, q: Array, qd: Array, qdd: Array) -> Motion:
        """All coordinates along drives q, qd, qdd (N, drives), and exact forces of the drives."""
        N, n = len(t), self.tree.n
        whole, speed, bent, force = (np.zeros((N, n)) for _ in range(4))
        G = np.zeros((N, n, len(self.own)))
        near = self.start
        for k in range(N):
            whole[k], A = self.position(q[k], near)
            near = 2.0 * whole[k] - whole[k - 1] if k else whole[k]  # the next step is about as long as this one
            G[k] = self.loops.projection(whole[k], A)
            speed[k] = G[k] @ qd[k]
            bent[k, self.own] = qdd[k]
            right = -(A[:, self.own] @ qdd[k] + self._drift(whole[k], speed[k]))
            bent[k, self.rest] = np.linalg.lstsq(A[:, self.rest], right, rcond=1e-9)[0]
        made = Motion(t, whole, speed, bent)
        on_joints = self.loops.open.inverse_dynamics(made) + self._friction(speed)
        force[:] = np.nan
        force[:, self.own] = np.einsum("nij,ni->nj", G, on_joints)
        return Motion(t, whole, speed, bent, forces=force)

    def _friction(self, qd: Array) -> Array:
        """Dampers and dry friction of single joints, drives and passive ones."""
        out = np.zeros_like(qd)
        for e in self.tree.elements:
            (c,) = e.on
            k, value = self.tree.coordinates.index(c), self.tree.parameters[e.parameter_name]
            if e.kind not in ("damper", "coulomb"):
                raise NotImplementedError(e.kind)
            out[:, k] += value * (qd[:, k] if e.kind == "damper" else np.sign(qd[:, k]))
        return out


def sines(
    t: Array, centre: Array, reach: Array, base: float, harmonics: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Sums of sines about a centre, each drive within ± reach: positions, rates, accelerations (N, drives)."""
    q, qd, qdd = (np.zeros((len(t), len(centre))) for _ in range(3))
    w = 2.0 * np.pi * base * np.arange(1, harmonics + 1)
    for j in range(len(centre)):
        a = rng.uniform(0.4, 1.0, harmonics) / np.arange(1, harmonics + 1) ** 0.5
        a *= reach[j] / a.sum()
        angle = w * t[:, None] + rng.uniform(0.0, 2.0 * np.pi, harmonics)
        q[:, j] = centre[j] + np.sin(angle) @ a
        qd[:, j] = np.cos(angle) @ (w * a)
        qdd[:, j] = -np.sin(angle) @ (w * w * a)
    return q, qd, qdd
