"""Closed loops by Pinocchio: velocities of the ends of cut joints from its frame Jacobians, and its regressor projected by them.

Only data are read from its tree. Nothing of what veridyn makes of a loop is used: a cut joint is what its two ends may not do
against each other, told by their relative twist.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_oracle import PinModel
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Loop
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import Attachment

Array = NDArray[np.float64]


class PinLoops:
    """A closed machine: the open tree's Pinocchio model, with frames at the ends of its cut joints."""

    def __init__(self, machine: Machine | Tree) -> None:
        self.tree = tree = tree_of(machine)
        self.open = PinModel(tree)
        self.frames = {
            (loop.name, side): self._frame(f"{loop.name} {side}", getattr(loop, side))
            for loop in tree.loops
            for side in ("first", "second")
        }
        self.open.data = self.open.model.createData()

    def _frame(self, name: str, at: Attachment) -> int:
        place = pin.SE3(np.array(at.placement.rotation), np.array(at.placement.position))
        joint = self.open.joint.get(at.body, 0)
        where = self.open.placement.get(at.body, pin.SE3.Identity()) * place
        return self.open.model.addFrame(pin.Frame(name, joint, 0, where, pin.FrameType.OP_FRAME))

    def constraint(self, q: Array) -> Array:
        """What the relative twists of all cut joints may not hold, as rows over the coordinates."""
        model, data = self.open.model, self.open.data
        x = self.open.configuration(q)
        pin.computeJointJacobians(model, data, x)
        pin.updateFramePlacements(model, data)
        rows = [self._forbidden(loop) for loop in self.tree.loops]
        return np.vstack(rows) @ self.open.S

    def _forbidden(self, loop: Loop) -> Array:
        model, data = self.open.model, self.open.data
        one, two = (self.frames[loop.name, side] for side in ("first", "second"))
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        twist = pin.getFrameJacobian(model, data, one, world) - pin.getFrameJacobian(model, data, two, world)
        axis = data.oMf[one].rotation
        apart = data.oMf[one].translation - data.oMf[two].translation
        if loop.joint == "spherical":
            return twist[:3]
        if loop.joint == "turning":
            return np.vstack([twist[:3], axis[:, :2].T @ twist[3:]])
        if loop.joint == "universal":
            across = np.cross(axis[:, 2], data.oMf[two].rotation[:, 2])
            return np.vstack([twist[:3], across @ twist[3:]])
        if loop.joint == "fixed":
            return twist
        if loop.joint == "distance":
            return (apart @ twist[:3])[None]
        raise NotImplementedError(loop.joint)

    def opening(self, q: Array) -> float:
        """The largest distance between the two ends of any cut joint but rods."""
        self.constraint(q)
        data = self.open.data
        gaps = [
            np.linalg.norm(
                data.oMf[self.frames[c.name, "first"]].translation - data.oMf[self.frames[c.name, "second"]].translation
            )
            for c in self.tree.loops
            if c.joint != "distance"
        ]
        return float(max(gaps, default=0.0))

    def projection(self, q: Array, A: Array | None = None) -> Array:
        """∂q/∂q_a from the null space of the constraint; A where its rows at q are known already."""
        A = self.constraint(q) if A is None else A
        _, s, Vt = np.linalg.svd(A)
        null = Vt[int((s > 1e-9 * s[0]).sum()) :].T
        own = [k for k, on in enumerate(self.tree.actuated) if on]
        return null @ np.linalg.inv(null[own])

    def accelerations(self, q: Array, qd: Array, qdd: Array) -> float:
        """How far the ends of spherical and turning cut joints accelerate apart."""
        model, data, S = self.open.model, self.open.data, self.open.S
        pin.forwardKinematics(model, data, self.open.configuration(q), S @ qd, S @ qdd)
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pairs = [[self.frames[c.name, side] for side in ("first", "second")] for c in self.tree.loops]
        apart = [
            np.subtract(*(pin.getFrameClassicalAcceleration(model, data, f, world).linear for f in pair))
            for pair in pairs
        ]
        return float(np.abs(apart).max())

    def regressor(self, motion: Motion) -> Array:
        """(N, actuated, 10 per real body), without elements."""
        D = self.open.regressor(motion)
        return np.array([self.projection(q).T @ d for q, d in zip(motion.q, D, strict=True)])
