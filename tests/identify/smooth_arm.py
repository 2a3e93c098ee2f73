"""A four-joint arm with a light wrist on a smooth motion: the machine on which estimators are compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
RIGHT = np.pi / 2
NOISE = np.array([0.6, 0.6, 0.2, 0.05])  # N*m, a few per cent of what each joint needs


@cache
def truth() -> Machine:
    """Links of 6, 4, 1.5 and 0.4 kg, each an ellipsoid about a centre off its axis."""
    bodies = [
        Body("1"),
        Body("2", "1", placement=MDH(alpha=RIGHT)),
        Body("3", "2", placement=MDH(d=0.4)),
        Body("4", "3", placement=MDH(alpha=-RIGHT, r=0.3)),
    ]
    shapes = {
        "1": (6.0, (0.02, 0.05, -0.1), (0.05, 0.06, 0.04)),
        "2": (4.0, (0.2, 0.02, 0.05), (0.02, 0.07, 0.06)),
        "3": (1.5, (0.01, -0.12, 0.03), (0.012, 0.006, 0.011)),
        "4": (0.4, (0.01, 0.02, 0.05), (0.0006, 0.0007, 0.0004)),
    }
    inertia = {name: from_centre(m, c, np.diag(J)) for name, (m, c, J) in shapes.items()}
    elements = [coulomb(f"q{k}", f) for k, f in enumerate((1.0, 1.2, 0.4, 0.05), 1)]
    elements += [damper(f"q{k}", f) for k, f in enumerate((1.5, 1.0, 0.4, 0.03), 1)]
    return Machine.of_bodies(bodies, name="smooth arm", inertia=inertia, elements=elements)


def drawn(seed: int = 0, share: float = 0.2) -> Machine:
    """The arm as its drawing has it: each body's ten parameters wrong by one factor, each element by another."""
    machine, rng = truth(), np.random.default_rng(1000 + seed)
    bodies = 1.0 + share * rng.uniform(-1.0, 1.0, len(machine.links))
    elements = 1.0 + share * rng.uniform(-1.0, 1.0, len(machine.elements))
    own = dict(zip(machine.body_names, bodies, strict=True))
    factor = [own[body] if body else elements[k] for body, k in machine.columns]
    return machine.with_parameters(machine.parameters.values * np.array(factor))


@cache
def path(seed: int = 0, fill: float = 0.9) -> FourierTrajectory:
    """What the arm is asked to do."""
    limits = JointLimits(np.full(4, -2.5), np.full(4, 2.5), np.full(4, 4.0), np.full(4, 15.0))
    return FourierTrajectory.random(np.random.default_rng(seed), limits, harmonics=5, frequency=0.1, fill=fill)


@cache
def clean(samples: int = 1500, seed: int = 0, fill: float = 0.9) -> Motion:
    """A motion at 100 Hz with the forces it takes, exact."""
    t = 0.01 * np.arange(samples)
    motion = Motion(t, *path(seed, fill).at(t))
    return replace(motion, forces=inverse_dynamics(truth(), motion))


def forces(motion: Motion) -> Array:
    """The measured forces of a motion, which has some."""
    assert motion.forces is not None
    return motion.forces


def noisy(rng: np.random.Generator, motion: Motion | None = None, size: float = 1.0, memory: float = 0.0) -> Motion:
    """With Gaussian noise of NOISE times `size`; `memory` ρ makes it first-order autoregressive with the same deviation."""
    motion = motion or clean()
    noise = rng.normal(size=(len(motion) + 500, 4))
    noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], noise, axis=0)[500:]
    return replace(motion, forces=forces(motion) + size * NOISE * noise)


def spoilt(rng: np.random.Generator, motion: Motion | None = None, share: float = 0.05) -> Motion:
    """Noise and, in a share of the samples of each joint, gross errors of 30 deviations, three times in four upwards."""
    motion = noisy(rng, motion)
    hit = rng.random(forces(motion).shape) < share
    sign = np.where(rng.random(hit.shape) < 0.75, 1.0, -1.0)
    return replace(motion, forces=forces(motion) + np.where(hit, 30.0 * NOISE * sign, 0.0))


def shaken(rng: np.random.Generator, motion: Motion | None = None, size: float = 1.0) -> Motion:
    """Noise on the forces and on the accelerations, 2 rad/s² times `size`, as differences of measured positions leave it."""
    motion = noisy(rng, motion, size)
    return replace(motion, qdd=motion.qdd + 2.0 * size * rng.normal(size=motion.qdd.shape))
