"""The log of the example examples/studies/balanced_arm.yaml: a parallelogram in closed form, its balancer by SciPy, and noise.

With a and b the angles of upper arm and crank, the forearm stands at b + π and the rod at a, so that

    A ä + K cos(b − a) b̈ − K sin(b − a) ḃ² + g G₁ cos a + balancer(a) + friction = τ₁
    B b̈ + K cos(b − a) ä + K sin(b − a) ȧ² + g G₂ cos b + k₃ (b − b₀)³ + friction = τ₂

Written by ``python -m studies.balanced_arm_log`` in this folder's parent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

Array = NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE, LOG = FOLDER / "balanced_arm.yaml", FOLDER / "balanced_arm.csv"
HEADER = "time [s],arm [deg],crank [deg],tau_arm [N*m],tau_crank [N*m]"
RATE, SECONDS, SEED = 100.0, 15.0, 3
ENCODER, TORQUE = 1e-3, 0.5  # deg, N*m: noise of one sample
A, B, K, G1, G2 = 11.0, 3.4, -2.3, 22.0, -6.0  # kg m², kg m², kg m², kg m, kg m
ARM, CRANK = (4.0, 5.0), (2.0, 3.0)  # viscous (N m s/rad) and dry (N m) friction
GAIN, K3, ZERO = (
    1.08,
    120.0,
    2.6,
)  # of the balancer's table, N m/rad³ of the hoses, and the angle at which these are straight
AT = (
    0.4,
    0.7,
    1.0,
    1.3,
    1.6,
    1.9,
    2.2,
)  # rad: the angle of the upper arm, and the balancer's torque there by its data sheet, N m
VALUES = (-190.0, -165.0, -110.0, -40.0, 0.0, 0.0, 0.0)


def motion(t: Array) -> tuple[Array, Array, Array]:
    """Angles of upper arm and crank with their rates, (N, 2) each."""
    rng = np.random.default_rng(SEED)
    f = 2.0 * np.pi * 0.2 * np.arange(1, 6)
    s, c = rng.normal(size=(2, 5, 2)) / np.arange(1, 6)[:, None]
    reach = np.array([0.7, 0.65])
    q = np.sin(t[:, None] * f) @ s + np.cos(t[:, None] * f) @ c
    scale = reach / np.abs(q).max(axis=0)
    qd = np.cos(t[:, None] * f) * f @ s - np.sin(t[:, None] * f) * f @ c
    qdd = -(np.sin(t[:, None] * f) * f**2) @ s - (np.cos(t[:, None] * f) * f**2) @ c
    return scale * q + [1.25, ZERO], scale * qd, scale * qdd


def torques(q: Array, qd: Array, qdd: Array) -> Array:
    """Of both motors, without noise, (N, 2)."""
    (a, b), (va, vb), (aa, ab) = q.T, qd.T, qdd.T
    c, s = K * np.cos(b - a), K * np.sin(b - a)
    arm = A * aa + c * ab - s * vb**2 + 9.81 * G1 * np.cos(a) + GAIN * PchipInterpolator(AT, VALUES)(a)
    crank = B * ab + c * aa + s * va**2 + 9.81 * G2 * np.cos(b) + K3 * (b - ZERO) ** 3
    rubbing = np.column_stack([ARM[0] * va + ARM[1] * np.sign(va), CRANK[0] * vb + CRANK[1] * np.sign(vb)])
    return np.column_stack([arm, crank]) + rubbing


def table() -> str:
    """The log as text."""
    rng = np.random.default_rng(100 + SEED)
    t = np.arange(round(SECONDS * RATE)) / RATE
    q, qd, qdd = motion(t)
    angles = np.degrees(q) + ENCODER * rng.normal(size=q.shape)
    tau = torques(q, qd, qdd) + TORQUE * rng.normal(size=q.shape)
    rows = [f"{s:.2f},{x[0]:.4f},{x[1]:.4f},{y[0]:.2f},{y[1]:.2f}" for s, x, y in zip(t, angles, tau, strict=True)]
    return "\n".join([HEADER, *rows]) + "\n"


if __name__ == "__main__":
    LOG.write_text(table(), encoding="utf-8")
