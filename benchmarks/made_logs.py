"""Machines and logs that are measured: a 7-joint arm and the cars of paper 000, with forces that their laws of motion give."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

# The cars live with the tests that judge them.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from strangers.cars import car_20, car_38
from strangers.random_trees import random_inertia
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import MDH


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


def recorded(plain: Machine, samples: int) -> tuple[Machine, Motion]:
    """The machine with a force on every joint and a wrench on its base, both exact but for one percent of noise."""
    machine = with_motors(plain)
    return machine, with_forces(machine, motion(machine, samples), 2)


def with_motors(plain: Machine) -> Machine:
    """The machine with a motor on every joint."""
    driven = [j if j.kind == "floating" else replace(j, actuated=True) for j in plain.joints]
    return replace(plain, joints=tuple(driven))


def with_forces(machine: Machine, m: Motion, seed: int) -> Motion:
    """The motion with measured forces: exact ones and one percent of noise."""
    forces = inverse_dynamics(machine, m)
    noise = np.random.default_rng(seed).normal(size=forces.shape)
    forces = forces + 0.01 * forces.std(axis=0) * noise
    if machine.base == "fixed":
        return replace(m, forces=forces)
    return replace(m, forces=forces[:, 6:], wrenches={machine.root: forces[:, :6]})
