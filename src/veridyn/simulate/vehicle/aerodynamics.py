"""The air's six components on the chassis, F = −C(V, sideslip) V²: coefficients that are constant or a table over speed.

Signs of paper 000, equation (32): positive coefficients are what the car does to the air, so Cx > 0 is drag. The wrench acts at the
chassis origin, in the chassis frame. V is the norm of the velocity of the origin; the air is at rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError
from veridyn.mechanics.compiled import compiled

Array = NDArray[np.float64]
Six = tuple[float, float, float, float, float, float]
NOTHING: Six = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class AeroNumbers(NamedTuple):
    """Speeds (n,), coefficients (n, 6), and their slopes with the sideslip angle (6,)."""

    speed: Array
    coefficient: Array
    sideslip: Array


@dataclass(frozen=True)
class Aerodynamics:
    """`coefficients`: one row of six (Cx Cy Cz Cl Cm Cn; N and N m per (m/s)²) for each of `speeds`, linear between, constant beyond.

    All chosen, for air of 1.2 kg/m³ on 2.1 m²: drag coefficient 0.31, lift 0.1 (so Cz < 0), and by `sideslip`, per rad of atan2(vy, vx):
    side force 2.2 and a yawing moment that turns the nose out of the wind.
    """

    speeds: tuple[float, ...] = (0.0, 30.0, 60.0)
    coefficients: tuple[Six, ...] = (
        (0.3906, 0.0, -0.10, 0.0, 0.05, 0.0),
        (0.3906, 0.0, -0.12, 0.0, 0.06, 0.0),
        (0.3906, 0.0, -0.14, 0.0, 0.07, 0.0),
    )
    sideslip: Six = (0.0, 2.8, 0.0, 0.3, 0.0, 3.4)

    def __post_init__(self) -> None:
        faults = Faults()
        if len(self.speeds) != len(self.coefficients) or any(len(row) != 6 for row in self.coefficients):
            faults.add(
                "the table has the wrong shape.",
                where="aerodynamics",
                expected="six coefficients for each speed",
                found=f"{len(self.speeds)} speeds and {len(self.coefficients)} rows",
            )
        if len(self.speeds) < 1 or (np.diff(self.speeds) <= 0.0).any():
            faults.add("the speeds do not increase.", where="aerodynamics", found=f"{self.speeds}")
        faults.raise_if_any(ModelError)

    def drag_only(self) -> Aerodynamics:
        """Constant Cx, as the identification model has it: the first of the table."""
        return replace(self, speeds=(0.0,), coefficients=((self.coefficients[0][0], *NOTHING[1:]),), sideslip=NOTHING)

    @classmethod
    def none(cls) -> Aerodynamics:
        return cls((0.0,), (NOTHING,), NOTHING)

    def packed(self) -> AeroNumbers:
        return AeroNumbers(np.array(self.speeds), np.array(self.coefficients), np.array(self.sideslip))


@compiled
def air_wrench(vx: float, vy: float, vz: float, p: AeroNumbers, out: Array) -> None:
    """Force and moment of the air on the chassis at its origin, six numbers written to `out`."""
    square = vx * vx + vy * vy + vz * vz
    V = np.sqrt(square)
    slip = np.arctan2(vy, vx) if V > 1e-6 else 0.0
    n = len(p.speed)
    k = 0
    while k < n - 2 and p.speed[k + 1] < V:
        k += 1
    share = 0.0
    if n > 1:
        share = min(max((V - p.speed[k]) / (p.speed[k + 1] - p.speed[k]), 0.0), 1.0)
    for c in range(6):
        value = p.coefficient[k, c]
        if n > 1:
            value += share * (p.coefficient[k + 1, c] - value)
        out[c] = -(value + p.sideslip[c] * slip) * square
