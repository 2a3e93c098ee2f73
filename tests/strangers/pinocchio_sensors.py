"""What sensors on a machine read by Pinocchio: frames at their places, its placements, velocities and classical accelerations.

Only data are read from its tree and its sensors. A free flyer's rates are (v, ω) in its own frame, its accelerations their derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_oracle import PinModel
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]
WORLD, LOCAL = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, pin.ReferenceFrame.LOCAL


def axes_of(marker: Marker) -> Array:
    """The axes of a marker as columns: x along `axis`, y towards `side`, by Gram and Schmidt."""
    x = np.array(marker.axis) / np.linalg.norm(marker.axis)
    y = np.array(marker.side) - x * (x @ np.array(marker.side))
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


class PinSensors:
    """Sensors of a machine as frames of its Pinocchio model."""

    def __init__(self, machine: Machine | Tree, sensors: Sequence[Sensor]) -> None:
        self.tree, self.sensors, self.pin = tree_of(machine), sensors, PinModel(machine)
        self.frames = {}
        for s in sensors:
            if s.kind not in ("coordinate", "rate"):
                for key, end in (("on", s.on), ("to", s.to)):
                    if end is not None:
                        self.frames[s.name, key] = self._frame(f"{s.name} {key}", end)
        self.pin.data = self.pin.model.createData()

    def _frame(self, name: str, on: str | Marker) -> int:
        marker = on if isinstance(on, Marker) else Marker(on, (0.0, 0.0, 0.0))
        R = axes_of(marker) if marker.axis else np.eye(3)
        where = self.pin.placement.get(marker.body, pin.SE3.Identity()) * pin.SE3(R, np.array(marker.at))
        joint = self.pin.joint.get(marker.body, 0)
        return self.pin.model.addFrame(pin.Frame(name, joint, 0, where, pin.FrameType.OP_FRAME))

    def update(self, q: Array, qd: Array, qdd: Array) -> None:
        """Kinematics at one state, in veridyn's order of configuration, rates and accelerations."""
        S = self.pin.S
        if self.tree.base == "free":
            w, x, y, z = q[3:7]
            R = pin.Quaternion(w, x, y, z).toRotationMatrix()
            v = R.T @ qd[:3]
            rates = np.concatenate([v, qd[3:]])
            accelerations = np.concatenate([R.T @ qdd[:3] - np.cross(qd[3:6], v), qdd[3:]])
            configuration = np.concatenate([q[:3], [x, y, z, w], (S[6:, 6:] @ q[7:])])
        else:
            configuration, rates, accelerations = S @ q, qd, qdd
        self.configuration = configuration
        pin.forwardKinematics(self.pin.model, self.pin.data, configuration, S @ rates, S @ accelerations)
        pin.updateFramePlacements(self.pin.model, self.pin.data)

    def readings(self, q: Array, qd: Array, qdd: Array) -> Array:
        """What ideal sensors read (m,), bias included."""
        self.update(q, qd, qdd)
        n = self.tree.n
        joints = {c: (q[len(q) - n + k], qd[len(qd) - n + k]) for k, c in enumerate(self.tree.coordinates)}
        out = []
        for s in self.sensors:
            if s.kind in ("coordinate", "rate"):
                out.append(joints[s.on][s.kind == "rate"] + s.bias)
                continue
            value = self._vector(s)
            chosen = [0] if s.kind == "distance" else ["xyz".index(c) for c in (s.axes or "xyz")]
            out += [float(value[k]) + s.bias for k in chosen]
        return np.array(out)

    def _vector(self, s: Sensor) -> Array:
        model, data, f = self.pin.model, self.pin.data, self.frames[s.name, "on"]
        place = data.oMf[f]
        if s.kind == "position":
            return place.translation
        if s.kind == "velocity":
            own = isinstance(s.on, Marker) and s.on.axis
            return pin.getFrameVelocity(model, data, f, LOCAL if own else WORLD).linear
        if s.kind == "gyroscope":
            return pin.getFrameVelocity(model, data, f, LOCAL).angular
        if s.kind == "accelerometer":
            a = pin.getFrameClassicalAcceleration(model, data, f, WORLD).linear
            return place.rotation.T @ (a - self.tree.gravity)
        return np.array([np.linalg.norm(place.translation - data.oMf[self.frames[s.name, "to"]].translation)])
