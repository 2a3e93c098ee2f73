"""A wheel on a slider: one linear tyre on a flat road, simulated by equations written here by hand and integrated by SciPy.

    m ẍ = F + C κ',    I Ω̇ = T − h C κ',    σ κ̇' = Ω R − ẋ − V κ',    V = max(|ẋ|, 1 m/s)

m is the mass of carriage and wheel together, F the force on the slider, T the torque on the wheel, h the height of the axle; the wheel
does not steer, so tan α' = 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

from veridyn.model.elements.element import tyre
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import Marker
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rotation_to_axis

RADIUS, HEIGHT = 0.3, 0.29  # m: without load, and of the axle above the road
CARRIAGE, WHEEL, SPIN = 40.0, 8.0, 0.5  # kg, kg, kg m²
STIFFNESS, LENGTH = 12000.0, 0.4  # N, m: C and σ of the truth
STEP, SAMPLES = 0.01, 600  # s


def rig(
    stiffness: float = STIFFNESS, length: float = LENGTH, spin: float = SPIN, carriage: float = CARRIAGE
) -> Machine:
    """Along x slides a carriage, in which a wheel turns about y; the vertical stiffness carries a load all the while."""
    along, axle = rotation_to_axis(np.eye(3)[0]), rotation_to_axis(np.eye(3)[1])
    bodies = [
        Body("carriage", joint="sliding", placement=Placement(along, np.array([0.0, 0.0, HEIGHT])), coordinate="x"),
        Body("wheel", "carriage", placement=Placement(along.T @ axle), coordinate="turn"),
    ]
    inertia = {
        "carriage": from_centre(carriage, (0.0, 0.0, 0.0), np.eye(3)),
        "wheel": from_centre(WHEEL, (0.0, 0.0, 0.0), np.diag([0.3, 0.3, spin])),
    }
    constants = {"UNLOADED_RADIUS": RADIUS, "VERTICAL_STIFFNESS": 2e5, "FNOMIN": 2000.0}
    constants |= {"C_KAPPA": stiffness, "C_ALPHA": 1e4, "SIGMA_KAPPA": length, "SIGMA_ALPHA": 0.5}
    rubber = tyre(Marker("wheel", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)), constants, kind="linear_tyre", name="tyre")
    return Machine.of_bodies(bodies, name="rig", inertia=inertia, elements=[rubber])


def drive(t: np.ndarray) -> np.ndarray:
    """(N, 2): the force on the slider and the torque on the wheel."""
    force = 150.0 * np.sin(2.1 * t + 0.3) + 60.0 * np.sin(11.0 * t)
    torque = 60.0 * np.sin(3.4 * t) + 45.0 * np.sin(9.0 * t + 1.0) + 40.0 * np.sin(23.0 * t)
    return np.stack([force, torque], axis=-1)


def log(rng: np.random.Generator | None = None, noise: float = 0.0) -> Motion:
    """The log of the rig rolling at about 8 m/s; forces go linearly from sample to sample."""
    exact, _ = _simulated()
    return exact if rng is None else replace(exact, q=exact.q + noise * rng.normal(size=exact.q.shape))


def slip() -> np.ndarray:
    """κ' along the log."""
    return _simulated()[1]


@cache
def _simulated() -> tuple[Motion, np.ndarray]:
    t = STEP * np.arange(SAMPLES)
    acting = drive(t)

    def rate(time: float, y: np.ndarray) -> list[float]:
        _, v, _, w, kappa = y
        F, T = (float(np.interp(time, t, acting[:, k])) for k in range(2))
        grip = STIFFNESS * kappa
        slip = (w * RADIUS - v - max(abs(v), 1.0) * kappa) / LENGTH
        return [v, (F + grip) / (CARRIAGE + WHEEL), w, (T - HEIGHT * grip) / SPIN, slip]

    start = [0.0, 8.0, 0.0, 8.0 / RADIUS, 0.0]
    found = solve_ivp(rate, (0.0, t[-1]), start, "DOP853", t, rtol=1e-10, atol=1e-12, max_step=STEP)
    rates = np.array([rate(s, y) for s, y in zip(t, found.y.T, strict=True)])
    return Motion(t, found.y[[0, 2]].T, found.y[[1, 3]].T, rates[:, [1, 3]], forces=acting), found.y[4]
