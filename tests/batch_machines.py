"""Machines for programs on other processors: an arm, and the 20-dof car with inertia on every body that moves by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from strangers.cars import car_20
from strangers.random_trees import random_inertia, random_motion, random_open_machine
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion


@cache
def arm() -> Machine:
    """Seven turning joints in a row."""
    return random_open_machine(np.random.default_rng(5), 7, kinds=("turning",), branched=False)


@cache
def car() -> Machine:
    """Fifteen bodies, twenty rows."""
    plain, rng = car_20("all"), np.random.default_rng(1)
    links = []
    for link in plain.links:
        real = plain.described.spanning.carriers[link.name].joint.kind != "fixed"
        links.append(replace(link, real=real, label="", inertia=random_inertia(rng) if real else None))
    joints = [j if j.kind == "floating" else replace(j, actuated=True) for j in plain.joints]
    return Machine.build(links, joints, name="20-dof car")


MACHINES = {"arm": arm, "20-dof car": car}


def states(machine: Machine, samples: int, seed: int = 6) -> Motion:
    """Unrelated states under unrelated forces."""
    rng = np.random.default_rng(seed)
    return replace(random_motion(rng, machine, samples, wrenches=False), forces=rng.normal(size=(samples, machine.n)))


def measured(machine: Machine, samples: int, seed: int = 7) -> Motion:
    """States with the forces they take, on the base as a wrench, and one percent of noise."""
    m = states(machine, samples, seed)
    gamma = inverse_dynamics(machine, m, engine="numpy")
    gamma = gamma * (1.0 + 0.01 * np.random.default_rng(seed + 1).normal(size=gamma.shape))
    if machine.base == "fixed":
        return replace(m, forces=gamma)
    return replace(m, forces=gamma[:, 6:], wrenches={machine.root: gamma[:, :6]})
