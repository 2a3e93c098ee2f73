"""The machines and logs whose results are compared: made in a moment, without randomness that a relation could touch.

Every channel is named ``PREFIX.COORDINATE``, so that a relation knows what it holds. The clock ticks in powers of two: shifting it, and
scaling it by powers of two, is exact.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from veridyn.model.place import Attachment

Array = NDArray[np.float64]
RATE = 128.0  # Hz
NOISE = 0.05  # N*m
ENCODER_NOISE = 1e-4  # rad
UNITS = {"q": "rad", "encoder": "rad", "position": "rad", "command": "rad", "force": "N*m"}
INERTIA = {
    "1": vd.spatial.from_centre(3.0, [0.02, 0.01, 0.1], np.diag([0.04, 0.03, 0.02])),
    "2": vd.spatial.from_centre(2.0, [0.2, 0.01, 0.02], np.diag([0.01, 0.05, 0.04])),
    "3": vd.spatial.from_centre(1.5, [-0.02, 0.15, 0.03], np.diag([0.03, 0.01, 0.025])),
}


def turn(axis: str, angle: float) -> Array:
    """The rotation about x, y or z."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def joint(name: str, a: str, b: str, R: Array, position: tuple[float, float, float]) -> vd.Joint:
    """A motor that turns `b` about the z axis of a frame on `a`."""
    frame = vd.spatial.Placement(R, position)
    return vd.Joint(name=name, a=Attachment(a, frame), b=Attachment(b), actuated=True)


JOINTS = (
    joint("q1", "ground", "1", turn("x", 1.2), (0.0, 0.0, 0.5)),
    joint("q2", "1", "2", turn("x", -1.4), (0.25, 0.125, 0.0)),
    joint("q3", "1", "3", turn("y", 1.3), (-0.25, 0.0, 0.125)),
)


def arm(count: int = 2, *, friction: bool = True, observed: bool = False) -> vd.Machine:
    """One body on the ground that carries one more, or two, with viscous friction, and dry friction where asked for."""
    links = [vd.Link(name=str(k + 1), inertia=INERTIA[str(k + 1)]) for k in range(count)]
    names = [j.name for j in JOINTS[:count]]
    elements = [vd.elements.damper(c, 1.5 / (k + 1)) for k, c in enumerate(names)]
    elements += [vd.elements.coulomb(c, 0.75 / (k + 1)) for k, c in enumerate(names) if friction]
    sensors = [vd.Sensor(f"encoder.{c}", "coordinate", c, ENCODER_NOISE) for c in names] if observed else []
    return vd.Machine.build(links, JOINTS[:count], name="arm", elements=elements, sensors=sensors)


def sweep(t: Array, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Sums of sinusoids: positions, rates and accelerations (N, count)."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = (np.zeros((len(t), count)) for _ in range(3))
    for k in range(count):
        for harmonic in range(1, 5):
            w = 2.0 * np.pi * 0.25 * harmonic
            a, phase = 1.2 * rng.uniform(0.3, 1.0) / harmonic, rng.uniform(0.0, 2.0 * np.pi)
            q[:, k] += a * np.sin(w * t + phase)
            qd[:, k] += a * w * np.cos(w * t + phase)
            qdd[:, k] -= a * w**2 * np.sin(w * t + phase)
    return q, qd, qdd


@cache
def recorded(count: int = 2, seconds: float = 8.0, seed: int = 7) -> vd.Experiment:
    """Positions and forces with noise, as a controller writes them."""
    machine, t = arm(count), np.arange(0.0, seconds, 1.0 / RATE)
    rng = np.random.default_rng(seed)
    q, qd, qdd = sweep(t, count, seed)
    forces = vd.inverse_dynamics(machine, vd.Motion(t, q, qd, qdd)) + NOISE * rng.normal(size=q.shape)
    q = q + ENCODER_NOISE * rng.normal(size=q.shape)
    return log_of(t, {"q": q, "force": forces}, machine)


def log_of(t: Array, values: dict[str, Array], machine: vd.Machine) -> vd.Experiment:
    """Arrays (N, n) by prefix as channels of the coordinates."""
    channels = {f"{p}.{c}": x[:, k] for p, x in values.items() for k, c in enumerate(machine.coordinates)}
    return vd.Experiment.from_arrays(t, channels, {n: UNITS[n.partition(".")[0]] for n in channels}, "bench")


@cache
def observed(seconds: float = 2.0, seed: int = 3) -> vd.Experiment:
    """Encoders and the forces of the motors, of the same motion."""
    machine, t = arm(observed=True), np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd = sweep(t, machine.n, seed)
    forces = vd.inverse_dynamics(machine, vd.Motion(t, q, qd, qdd))
    q = q + ENCODER_NOISE * np.random.default_rng(seed).normal(size=q.shape)
    return log_of(t, {"encoder": q, "force": forces}, machine)
