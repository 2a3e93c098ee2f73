"""Two links that hang and swing under known forces: the machine on which estimators that simulate are compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
STEP = 0.01
SOFT = 0.1  # rad/s, below which the simulated dry friction is rounded off
NOISE = np.array([0.002, 0.003])  # rad


@cache
def truth() -> Machine:
    """Both axes horizontal and parallel: five base parameters of inertia, and friction."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    inertia = {
        "1": from_centre(0.6, (0.25, 0.01, 0.0), np.diag([0.001, 0.01, 0.011])),
        "2": from_centre(0.5, (0.16, -0.02, 0.0), np.diag([0.001, 0.006, 0.007])),
    }
    elements = [damper("q1", 0.05), coulomb("q1", 0.06), damper("q2", 0.02), coulomb("q2", 0.03)]
    return Machine.of_bodies(bodies, name="hanging arm", inertia=inertia, elements=elements)


def drawn(seed: int = 0, share: float = 0.2) -> Machine:
    """Every parameter wrong by a factor of its own body or element."""
    machine, rng = truth(), np.random.default_rng(1000 + seed)
    bodies = 1.0 + share * rng.uniform(-1.0, 1.0, len(machine.links))
    elements = 1.0 + share * rng.uniform(-1.0, 1.0, len(machine.elements))
    own = dict(zip(machine.body_names, bodies, strict=True))
    factor = [own[body] if body else elements[k] for body, k in machine.columns]
    return machine.with_parameters(machine.parameters.values * np.array(factor))


@cache
def clean(samples: int = 600, seed: int = 0) -> Motion:
    """Forces of three sines for each joint, held linearly between samples, and the motion they cause, integrated."""
    rng = np.random.default_rng(seed)
    t = STEP * np.arange(samples)
    waves = np.sin(2.0 * np.pi * rng.uniform(0.2, 1.8, (3, 2)) * t[:, None, None] + rng.uniform(0.0, 6.0, (3, 2)))
    forces = (waves * np.array([0.7, 0.25])).sum(axis=1)
    start = -np.pi / 2 + 0.3 * rng.normal(), 0.3 * rng.normal()

    def between(time: float, q: Array, qd: Array) -> Array:
        k = min(int(time / STEP + 1e-9), samples - 2)
        share = time / STEP - k
        return (1.0 - share) * forces[k] + share * forces[k + 1]

    method = Method("RK4", step=STEP, friction_speed=SOFT)
    return integrate(truth(), t, np.array(start), np.zeros(2), between, method=method).motion


def noisy(rng: np.random.Generator, motion: Motion | None = None, size: float = 1.0) -> Motion:
    """White noise on the positions alone; speeds and accelerations, which a simulation does not look at, stay."""
    motion = motion or clean()
    return replace(motion, q=motion.q + size * NOISE * rng.normal(size=motion.q.shape))
