"""The log of the example examples/studies/rubbing_joint.yaml: one joint in closed form, with friction that a ladder is to find.

    J q̈ + g m sin q + h v + fs sign v + off + ha |v| + fst sign(v)/(1 + (v/vs)²) + ht v (T − 40) = τ

There is no quadratic and no load-dependent friction. The oil warms up from 30 to 50 degrees and is measured. Written by
``python -m studies.rubbing_joint_log`` in this folder's parent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Array = NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE, LOG = FOLDER / "rubbing_joint.yaml", FOLDER / "rubbing_joint.csv"
HEADER = "time [s],angle [deg],torque [N*m],oil [1]"
RATE, SECONDS, SEED = 100.0, 50.0, 5
ENCODER, TORQUE, MEMORY = 1e-3, 0.4, 0.7  # deg and N*m of one sample; the torque's noise is AR(1)
J, WEIGHT = 0.9, 20.0  # kg m², N m
TRUTH = {"viscous": 2.4, "coulomb": 3.0, "offset": 0.7, "one_way": 0.5, "stribeck": 2.0, "speed": 0.12, "heat": -0.06}
TERMS = {"viscous", "coulomb", "asymmetric", "stribeck", "temperature"}  # what a ladder is to find


def motion(t: Array) -> tuple[Array, Array, Array, Array]:
    """Angle, speed, acceleration and the temperature of the oil; slow and fast stretches take turns."""
    q, qd, qdd = (np.zeros_like(t) for _ in range(3))
    for reach, frequency, phase in ((0.9, 0.12, 0.3), (0.35, 0.45, 1.1), (0.12, 1.1, 2.0)):
        w = 2.0 * np.pi * frequency
        q += reach * np.sin(w * t + phase)
        qd += reach * w * np.cos(w * t + phase)
        qdd -= reach * w**2 * np.sin(w * t + phase)
    return q, qd, qdd, 50.0 - 20.0 * np.exp(-t / 20.0)


def torque(q: Array, v: Array, a: Array, oil: Array) -> Array:
    """Of the motor, without noise."""
    f = TRUTH
    rubbing = f["viscous"] * v + f["coulomb"] * np.sign(v) + f["offset"] + f["one_way"] * np.abs(v)
    rubbing += f["stribeck"] * np.sign(v) / (1.0 + (v / f["speed"]) ** 2) + f["heat"] * v * (oil - 40.0)
    return J * a + WEIGHT * np.sin(q) + rubbing


def table() -> str:
    """The log as text."""
    rng = np.random.default_rng(100 + SEED)
    t = np.arange(round(SECONDS * RATE)) / RATE
    q, qd, qdd, oil = motion(t)
    noise = lfilter([np.sqrt(1.0 - MEMORY**2)], [1.0, -MEMORY], rng.normal(size=len(t)))
    tau = torque(q, qd, qdd, oil) + TORQUE * noise
    angle = np.degrees(q) + ENCODER * rng.normal(size=len(t))
    rows = [f"{s:.2f},{x:.4f},{y:.3f},{z:.2f}" for s, x, y, z in zip(t, angle, tau, oil, strict=True)]
    return "\n".join([HEADER, *rows]) + "\n"


if __name__ == "__main__":
    LOG.write_text(table(), encoding="utf-8")
