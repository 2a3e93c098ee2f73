"""Models of trees over independent coordinates that the tests of their kernels share."""

from __future__ import annotations

from functools import cache

import numpy as np

from strangers.machines import branched_arm, free_machine
from veridyn.machines import delta, linkage, palletizer
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.model.elements.element import Element, coulomb, damper, drive_gain, motor_inertia, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.papers.hexapod.machine import truth
from veridyn.spatial.inertia import from_centre

MACHINES = {
    "branched arm": lambda: branched_arm(0),
    "free machine": lambda: free_machine(1),
    "linkage": linkage,
    "palletizer": palletizer,
    "delta": delta,
    "hexapod": truth,
}


def bare(machine: Machine) -> Machine:
    """The same machine without elements, which Pinocchio does not know."""
    return Machine.build(machine.links, machine.joints, gravity=machine.gravity, assembly=machine.assembly)


@cache
def model(name: str, plain: bool = False) -> TreeModel:
    machine = MACHINES[name]()
    return tree_model(tree_of(bare(machine) if plain else machine), unknown=None)


def moving(m: TreeModel, seed: int, spread: float = 0.15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state away from home, and unknown forces."""
    rng, spread = np.random.default_rng(seed), 0.1 * spread if m.tree.name == "hexapod" else spread
    x, v = m.start_of()
    d = np.concatenate([spread * rng.standard_normal(m.f) * m.sizes[m.own], rng.standard_normal(m.f) * m.sizes[m.own]])
    u = rng.standard_normal(m.f)
    at = m.moved(x, v, d, u, m.loads())
    return at.q, at.qd, u


def small_arm() -> Machine:
    """Two joints with everything that identification knows on a joint."""
    body = from_centre(2.0, [0.3, 0.02, 0.01], np.diag([0.02, 0.05, 0.06]))
    return Machine.of_bodies(
        [Body("upper"), Body("lower", "upper")],
        inertia={"upper": body, "lower": body},
        gravity=(0.0, -9.81, 0.0),
        elements=[
            spring("upper", name="k"),
            damper("upper", name="fv"),
            coulomb("lower", name="fs"),
            motor_inertia("lower", name="ia"),
            drive_gain("upper", "current", name="g"),
        ],
    ).with_parameters({"k": 3.0, "fv": 0.4, "fs": 0.7, "ia": 0.1, "g": 2.5})


def stateful_model(varying: tuple[str, ...]) -> TreeModel:
    """The small arm with a Maxwell element, a LuGre element and friction by a tanh."""
    machine = small_arm().without_elements(["fs", "g"])
    more = [
        Element(kind="maxwell", on={"upper": 1.0}, value=30.0, name="km", constants={"time": 0.2}),
        Element(
            kind="lugre",
            on={"lower": 1.0},
            value=0.8,
            name="fl",
            constants={"deflection": 0.02, "ratio": 1.4, "speed": 0.3, "time": 0.05},
        ),
        Element(kind="tanh_friction", on={"upper": 1.0}, value=0.6, name="ft", constants={"speed": 0.5}),
    ]
    return tree_model(tree_of(machine.with_elements(more)), unknown=(), varying=varying)


def stateful_linkage(varying: tuple[str, ...]) -> TreeModel:
    """The linkage with a Maxwell element on a coordinate that its loop ties."""
    machine = linkage()
    element = Element(kind="maxwell", on={machine.coordinates[2]: 1.0}, value=3.0, name="km", constants={"time": 0.2})
    return tree_model(tree_of(machine.with_elements([element])), unknown=(), varying=varying)
