"""Small machines on which every path of the engine is walked: all kinds of joints, elements, wrenches and signals."""

from __future__ import annotations

from functools import cache

import numpy as np

from strangers.random_trees import body_names, random_inertia, random_motion, random_placement
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drag, drive_gain, motor_inertia, offset, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion


def _bodies(rng: np.random.Generator, table: list[tuple[str, str | None, str, dict]]) -> list[Body]:
    return [
        Body(
            name,
            before,
            kind,
            random_placement(rng, mdh=k % 2 == 0) if before is not None else Body("").placement,
            **more,
        )
        for k, (name, before, kind, more) in enumerate(table)
    ]


@cache
def branched_arm(seed: int = 0) -> Machine:
    """Fixed base, two branches, a fixed and a virtual body, a shared coordinate, and an element of every kind that a coordinate has."""
    rng = np.random.default_rng(seed)
    bodies = _bodies(
        rng,
        [
            ("1", "ground", "turning", {}),
            ("2", "1", "sliding", {}),
            ("3", "2", "fixed", {}),
            ("4", "3", "turning", {}),
            ("5", "1", "turning", {"real": False}),
            ("6", "5", "turning", {"coordinate": "q4", "ratio": -0.7}),
        ],
    )
    elements = [
        spring({"q1": 1.0, "q4": -0.5}, 12.0, "k_bar"),
        offset("q2", 0.7),
        damper("q1", 0.4),
        coulomb("q4", 0.9),
        motor_inertia({"q4": 2.0}, 0.3),
        drive_gain("q2", "current of 2", 1.7),
        drag("6.fx", 0.2),
    ]
    inertia = {b.name: random_inertia(rng) for b in bodies if b.real}
    return Machine.of_bodies(bodies, name="branched arm", inertia=inertia, elements=elements, gravity=(1.0, -3.0, -9.0))


@cache
def free_machine(seed: int = 1) -> Machine:
    """Free base with two branches, drag on force and moment, and friction."""
    rng = np.random.default_rng(seed)
    bodies = _bodies(
        rng,
        [
            ("hull", None, "fixed", {}),
            ("a", "hull", "sliding", {}),
            ("b", "a", "turning", {}),
            ("c", "hull", "turning", {}),
        ],
    )
    elements = [
        drag("hull.fx", 0.8),
        drag("b.mz", 0.1),
        spring("a", 30.0),
        coulomb("c", 0.5),
        drive_gain("b", "i", 0.6),
    ]
    inertia = {b.name: random_inertia(rng) for b in bodies}
    return Machine.of_bodies(bodies, name="free machine", base="free", inertia=inertia, elements=elements)


MACHINES = {"branched arm": branched_arm, "free machine": free_machine}


def any_motion(machine: Machine | Tree, N: int, seed: int = 0, wrenches: bool = True, strided: bool = False) -> Motion:
    """A random motion with the signals its elements need, forces, and wrenches on two bodies; `strided` takes columns of one big table."""
    rng = np.random.default_rng(seed)
    m = random_motion(rng, machine, N, wrenches=False)
    felt = {name: rng.standard_normal((N, 6)) for name in body_names(machine)[-2:]} if wrenches else {}
    signals = {e.signal: rng.standard_normal(N) for e in machine.elements if e.kind == "drive_gain"}
    forces = rng.standard_normal((N, machine.n))
    if not strided:
        return Motion(m.t, m.q, m.qd, m.qdd, m.base, forces, wrenches=felt, signals=signals)

    def spread(x: np.ndarray) -> np.ndarray:
        """The same numbers in every third row of a larger table, backwards in memory."""
        table = np.zeros((3 * N, 2 + x.shape[1]))
        table[::3, 1:-1] = x[::-1]
        return table[::3, 1:-1][::-1]

    base = m.base
    if base is not None:
        base = BaseMotion(*(spread(x) for x in (base.omega, base.omega_dot, base.acceleration, base.velocity)))
    spread_signals = {k: spread(v[:, None])[:, 0] for k, v in signals.items()}
    spread_wrenches = {k: spread(v) for k, v in felt.items()}
    return Motion(
        m.t,
        spread(m.q),
        spread(m.qd),
        spread(m.qdd),
        base,
        spread(forces),
        wrenches=spread_wrenches,
        signals=spread_signals,
    )
