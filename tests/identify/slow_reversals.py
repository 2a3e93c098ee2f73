"""A bar that is moved from point to point in whole periods, with dry friction in closed form, and forces with noise that remembers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

import veridyn as vd
from veridyn.model.elements.element import coulomb, damper

Array = NDArray[np.float64]
INERTIA, VISCOUS, DRY = 5.0, 8.0, 6.0
RATE, PERIOD, PERIODS = 200.0, 4.0, 10
POINTS = np.array([0.0, 0.4, -0.3, 0.2, 0.0])
ENCODER, NOISE, MEMORY = 2e-5, 0.5, 0.9  # rad, N*m, from one sample to the next
TRUTH = {"ZZ_bar": INERTIA, "h_hinge": VISCOUS, "fs_hinge": DRY}


def machine() -> vd.Machine:
    """The bar turns about an upright axis."""
    bar = vd.Link(name="bar", inertia=[2.5, 0, 0, 2.5, 0, INERTIA, 0, 0, 0, 1.0])
    hinge = vd.Joint(name="hinge", a="ground", b="bar", actuated=True)
    friction = [damper("hinge"), coulomb("hinge")]
    return vd.Machine.build([bar], [hinge], gravity=(0, 0, 0), elements=friction, name="bar")


def path(t: Array, rests: float) -> tuple[Array, Array, Array]:
    """q, q̇ and q̈: moves of minimum jerk between POINTS, after each of which it `rests` for that share of the time."""
    each = PERIOD / (len(POINTS) - 1)
    k = np.minimum((np.mod(t, PERIOD) // each).astype(int), len(POINTS) - 2)
    moving = each * (1.0 - rests)
    u, way = np.clip((np.mod(t, PERIOD) - k * each) / moving, 0.0, 1.0), np.diff(POINTS)[k]
    s, ds, dds = u**3 * (10 - 15 * u + 6 * u**2), 30 * (u * (1 - u)) ** 2, 60 * u * (1 - u) * (1 - 2 * u)
    return POINTS[k] + way * s, way * ds / moving, way * dds / moving**2


def log(seed: int, rests: float = 0.0) -> vd.Experiment:
    """The encoder's angle and the torque."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(PERIODS * PERIOD * RATE)) / RATE
    q, qd, qdd = path(t, rests)
    memory = lfilter([np.sqrt(1.0 - MEMORY**2)], [1.0, -MEMORY], rng.normal(size=len(t) + 500))[500:]
    force = INERTIA * qdd + VISCOUS * qd + DRY * np.sign(qd) + NOISE * memory
    values = {"q.hinge": q + ENCODER * rng.normal(size=len(t)), "force.hinge": force}
    return vd.Experiment.from_arrays(t, values, {"q.hinge": "rad", "force.hinge": "N*m"})


def scores(fit: vd.Fit) -> Array:
    """How many deviations each value is off."""
    return (fit.values - np.array([TRUTH[name] for name in fit.names])) / fit.sigma
