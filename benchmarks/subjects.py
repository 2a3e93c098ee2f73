"""The machines measured: a 7-joint arm and the cars of paper 000, with the same machines in Pinocchio."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

# The cars and the independent Pinocchio models live with the tests that judge them.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from strangers.cars import car_20, car_38
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_inertia
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.transforms import MDH

__all__ = ["PinModel", "arm", "car", "motion"]


def arm() -> Machine:
    """Seven turning joints with the geometry of the Franka Panda (modified DH, Gaz et al., RA-L 2019), random possible inertias."""
    right = np.pi / 2
    table = (
        (0, 0, 0.333),
        (-right, 0, 0),
        (right, 0, 0.316),
        (right, 0.0825, 0),
        (-right, -0.0825, 0.384),
        (right, 0, 0),
        (right, 0.088, 0),
    )
    bodies = [
        Body(str(k), "ground" if k == 1 else str(k - 1), "turning", MDH(alpha=alpha, d=d, r=r))
        for k, (alpha, d, r) in enumerate(table, 1)
    ]
    rng = np.random.default_rng(0)
    return Machine.of_bodies(bodies, name="7-joint arm", inertia={b.name: random_inertia(rng) for b in bodies})


def car(dof: int) -> Machine:
    """The car of 20 or 38 degrees of freedom with inertia on every body that moves by itself, as Pinocchio has it."""
    table = tree_of((car_20 if dof == 20 else car_38)("all")).bodies
    bodies = [replace(b, real=b.joint != "fixed" or b.antecedent is None, label="") for b in table]
    rng = np.random.default_rng(1)
    inertia = {b.name: random_inertia(rng) for b in bodies if b.real}
    return Machine.of_bodies(bodies, name=f"{dof}-dof car", base="free", inertia=inertia)


def motion(machine: Machine, samples: int, seed: int = 0) -> Motion:
    """Unrelated values at every sample."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = (rng.normal(size=(samples, machine.n)) for _ in range(3))
    base = BaseMotion(*(rng.normal(size=(samples, 3)) for _ in range(3))) if machine.base == "free" else None
    forces = rng.normal(size=(samples, machine.n))
    return Motion(np.arange(samples) * 1e-3, q, qd, qdd, base, forces)
