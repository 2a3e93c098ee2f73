"""A machine without loops by Pinocchio, straight from its graph: every joint is one of the library's own, or a chain of them.

Only data are read from the machine: ends of joints, kinds, ratios, ten parameters of each link, gravity. Nothing of what veridyn makes of
the graph is used.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_oracle import pin_inertia
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
TURN = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # Rx(π/2), exact
CHAINS = {
    "turning": [("RZ", None)],
    "sliding": [("PZ", None)],
    "cylindrical": [("PZ", None), ("RZ", None)],
    "universal": [("RZ", None), ("RZ", TURN)],
    "planar": [("PX", None), ("PY", None), ("RZ", None)],
    "spherical": [("ZYX", None)],
    "floating": [("PX", None), ("PY", None), ("PZ", None), ("ZYX", None)],
    "fixed": [],
}
MODELS = {
    "RZ": pin.JointModelRZ,
    "PX": pin.JointModelPX,
    "PY": pin.JointModelPY,
    "PZ": pin.JointModelPZ,
    "ZYX": pin.JointModelSphericalZYX,
}


def _se3(placement) -> pin.SE3:
    return pin.SE3(np.array(placement.rotation), np.array(placement.position))


class PinMachine:
    """An open machine whose joints lead from `a` to `b`, away from the ground. `names`: its coordinates in the library's order."""

    def __init__(self, machine: Machine) -> None:
        self.model = pin.Model()
        self.model.gravity.linear = np.array(machine.gravity)
        at = {"ground": (0, pin.SE3.Identity())}
        names: list[str] = []
        waiting = list(machine.joints)
        while waiting:
            joint = next(j for j in waiting if machine.ends(j)[0].body in at)
            waiting.remove(joint)
            a, b = machine.ends(joint)
            parent, place = at[a.body]
            place = place * _se3(a.placement)
            for k, (kind, turned) in enumerate(CHAINS[joint.kind]):
                if turned is not None:
                    place = place * pin.SE3(turned, np.zeros(3))
                parent = self.model.addJoint(parent, MODELS[kind](), place, f"{joint.name} {k}")
                place = pin.SE3.Identity()
            names += joint.coordinate_names
            place = place * _se3(b.placement).inverse()
            at[b.body] = (parent, place)
            link = machine.by_name[b.body]
            if link.real:
                self.model.appendBodyToJoint(parent, pin_inertia(link.ten), place)
        self.data = self.model.createData()
        self.names, self.at = tuple(names), at

    def accelerations(self, q: Array, qd: Array, forces: Array) -> Array:
        """q̈ in the order of `names`, by the articulated-body algorithm."""
        return pin.aba(self.model, self.data, q, qd, forces)

    def pose(self, q: Array, link: str) -> tuple[Array, Array]:
        pin.forwardKinematics(self.model, self.data, q)
        joint, place = self.at[link]
        found = self.data.oMi[joint] * place
        return found.rotation.copy(), found.translation.copy()

    def energies(self, q: Array, qd: Array) -> tuple[float, float]:
        kinetic = pin.computeKineticEnergy(self.model, self.data, q, qd)
        return float(kinetic), float(pin.computePotentialEnergy(self.model, self.data, q))
