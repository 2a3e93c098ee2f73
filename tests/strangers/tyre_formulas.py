"""A tyre by NumPy from the published formulas, in the ground's axes, shared with nothing: contact, slips, forces and relaxation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def combined_forces(fz: Array, kappa: Array, alpha: Array, c: Mapping[str, float]) -> tuple[Array, Array]:
    """F_x and F_y of PAC2002 with combined slip, as Pacejka's book prints them (4.E9 to 4.E67), shifts and camber left out."""
    df = (fz - c["FNOMIN"]) / c["FNOMIN"]
    mux, muy = (c["PDX1"] + c["PDX2"] * df) * c["LMUX"], (c["PDY1"] + c["PDY2"] * df) * c["LMUY"]
    kx = fz * (c["PKX1"] + c["PKX2"] * df) * np.exp(c["PKX3"] * df)
    ky = c["PKY1"] * c["FNOMIN"] * np.sin(2.0 * np.arctan(fz / (c["PKY2"] * c["FNOMIN"])))
    bx, by = kx / (c["PCX1"] * mux * fz), ky / (c["PCY1"] * muy * fz)

    def formula(x: Array, b: Array, shape: float, d: Array, e: float) -> Array:
        return d * np.sin(shape * np.arctan(b * x - e * (b * x - np.arctan(b * x))))

    bxa = c["RBX1"] * np.cos(np.arctan(c["RBX2"] * kappa))
    byk = c["RBY1"] * np.cos(np.arctan(c["RBY2"] * (alpha - c["RBY3"])))
    gx, gy = np.cos(c["RCX1"] * np.arctan(bxa * alpha)), np.cos(c["RCY1"] * np.arctan(byk * kappa))
    fx, fy = formula(kappa, bx, c["PCX1"], mux * fz, c["PEX1"]), formula(alpha, by, c["PCY1"], muy * fz, c["PEY1"])
    return gx * fx, gy * fy


@dataclass(frozen=True)
class Rolling:
    """What the road does to a wheel: force (3,) at the `foot` (3,) and a moment (3,), and the rates of its lagging slips; load."""

    force: Array
    foot: Array
    moment: Array
    rates: tuple[float, float]
    load: float


def on_flat_road(
    centre: Array, axis: Array, v: Array, w: Array, slips: tuple[float, float], c: Mapping[str, float], f: float
) -> Rolling:
    """A wheel at `centre` with its axis to the left, its velocity and angular rate, on the plane z = 0; `f` its rolling resistance."""
    n, r0 = np.array([0.0, 0.0, 1.0]), c["UNLOADED_RADIUS"]
    ahead = np.cross(axis, n) / np.linalg.norm(np.cross(axis, n))
    down = np.cross(axis, ahead)
    radius = -centre[2] / down[2]
    # ρ = z/√(1 − (axis·n)²): by the quotient rule, with the axis turning at ω × axis
    lean, turning = axis @ n, np.cross(w, axis) @ n
    rate = v[2] / -down[2] + centre[2] * lean * turning / (-down[2]) ** 3
    load = max(0.0, c["VERTICAL_STIFFNESS"] * (r0 - radius) - c["VERTICAL_DAMPING"] * rate)
    pressed = c["VERTICAL_STIFFNESS"] * max(0.0, r0 - radius) / c["FNOMIN"]
    shrunk = c["DREFF"] * np.arctan(c["BREFF"] * pressed) + c["FREFF"] * pressed
    rolling = r0 - c["FNOMIN"] / c["VERTICAL_STIFFNESS"] * shrunk
    spin = w @ axis
    foot = centre + radius * down
    vx = v @ ahead
    vy = (v + np.cross(w - spin * axis, radius * down)) @ np.cross(n, ahead)
    fx = fy = 0.0
    if load > 0.0:
        one = combined_forces(np.array([load]), np.array([slips[0]]), np.arctan([slips[1]]), c)
        fx, fy = float(one[0][0]), float(one[1][0])
    speed = max(abs(vx), 1.0)
    along = max(c["PTX1"] * r0 * load / c["FNOMIN"], 0.05)
    across = max(c["PTY1"] * r0 * np.sin(2.0 * np.arctan(load / (c["PTY2"] * c["FNOMIN"]))), 0.05)
    rates = ((spin * rolling - vx - speed * slips[0]) / along, (vy - speed * slips[1]) / across)
    force = fx * ahead + fy * np.cross(n, ahead) + load * n
    return Rolling(force, foot, -f * load * r0 * np.tanh(spin * r0 / 0.1) * axis, rates, load)
