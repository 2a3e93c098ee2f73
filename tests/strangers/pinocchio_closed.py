"""Forward dynamics of closed machines by Pinocchio's own constraint dynamics (proximal, sparse): every cut joint a point held in common.

That is all a spherical joint does, and all that matters of a turning one in a plane, whose other equations the joints of the tree keep.
Elements are not looked at.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_loops import PinLoops
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

Array = NDArray[np.float64]


class PinClosed(PinLoops):
    """A closed machine with its loops as constraints of the library."""

    def __init__(self, machine: Machine | Tree) -> None:
        super().__init__(machine)
        model = self.open.model
        self.constraints = pin.StdVec_RigidConstraintModel()
        for loop in self.tree.loops:
            ends = [model.frames[self.frames[loop.name, side]] for side in ("first", "second")]
            self.constraints.append(
                pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D,
                    model,
                    ends[0].parentJoint,
                    ends[0].placement,
                    ends[1].parentJoint,
                    ends[1].placement,
                    pin.ReferenceFrame.LOCAL,
                )
            )
        self.held = pin.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            self.held.append(constraint.createData())
        self.settings = pin.ProximalSettings(1e-13, 1e-10, 200)
        pin.initConstraintDynamics(model, self.open.data, self.constraints, self.held)

    def forward(self, q: Array, qd: Array, forces: Array) -> Array:
        """q̈ (n,) under forces on the coordinates."""
        S = self.open.S
        tau = np.linalg.lstsq(S.T, forces, rcond=None)[0]
        found = pin.constraintDynamics(
            self.open.model,
            self.open.data,
            self.open.configuration(q),
            S @ qd,
            tau,
            self.constraints,
            self.held,
            self.settings,
        )
        return np.linalg.lstsq(S, found, rcond=None)[0]
