"""What springs, dampers, dry friction, bump stops and anti-roll bars do along the clearance of a wheel.

    Q(z, ż) = off + k z + k₂ (z − z₀)² + k₃ (z − z₀)³ + stops(z) + damper(ż) + fs tanh(ż / v_f)      resists z
    bar(d)  = k_ar d + k_ar3 d³,   d = z − z of the wheel opposite

z runs from the chassis origin to the wheel centre along z_c, upwards, so it is negative and grows in compression
(paper 000, equations 5, 6 and 31). Without the nonlinear terms this is the suspension of the identification model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Faults, ModelError
from veridyn.mechanics.compiled import compiled

Array = NDArray[np.float64]
Four = tuple[float, float, float, float]
Two = tuple[float, float]


class SuspensionNumbers(NamedTuple):
    """The settings as the compiled equations take them: one row of numbers for each wheel, one for each axle."""

    corner: Array
    bar: Array


@dataclass(frozen=True)
class Suspension:
    """Settings of the four suspensions (front left, front right, rear left, rear right) and of two bars (front, rear).

    `stiffness`, `damping` and `bar` are the a-priori values of paper 000, Table II. It has none for `offset`: chosen so that the
    default car stands at the clearances `design`, some 0.3 m below the origin as the paper's estimates imply; nor for `friction`, which
    has the size of its estimates. Everything below is chosen, of the size usual for a saloon. `rebound_share` a and
    `damper_knee` v_d make the damper h ż (1 − a tanh(ż / v_a)) / (1 + (ż / v_d)²)^¼: stiffer in rebound (ż < 0), blowing off
    at speed; v_d = 0 means that it does not.
    """

    stiffness: Four = (20600.0, 20600.0, 22000.0, 22000.0)
    damping: Four = (3200.0, 3200.0, 3800.0, 3800.0)
    offset: Four = (10475.3, 10475.3, 9490.9, 9490.9)
    bar: Two = (19033.0, 19938.0)
    friction: Four = (10.0, 10.0, 10.0, 10.0)
    friction_speed: float = 0.005
    design: Four = (-0.295, -0.295, -0.295, -0.295)
    square: Four = (25e3, 25e3, 30e3, 30e3)
    cube: Four = (8e5, 8e5, 1e6, 1e6)
    bump_travel: float = 0.06
    rebound_travel: float = 0.08
    stop_stiffness: float = 4e6
    rebound_share: float = 0.25
    rebound_speed: float = 0.1
    damper_knee: float = 0.6
    bar_cube: Two = (4e5, 4e5)

    def __post_init__(self) -> None:
        faults = Faults()
        for name in ("stiffness", "damping", "friction", "stop_stiffness", "bar"):
            if np.min(np.asarray(getattr(self, name))) < 0.0:
                faults.add(f"a negative {name} feeds energy into the car.", where="suspension", expected="zero or more")
        for name in ("friction_speed", "rebound_speed", "bump_travel", "rebound_travel"):
            if not getattr(self, name) > 0.0:
                faults.add(f"its {name} is not usable.", where="suspension", expected="above zero")
        faults.raise_if_any(ModelError)

    def linear(self) -> Suspension:
        """The suspension of the identification model: k, off, h, fs and k_ar alone; tanh keeps the corner of dry friction."""
        return self.without("springs", "stops", "dampers", "bars", "friction")

    def without(self, *details: str) -> Suspension:
        """Without bends of "springs", "dampers" or "bars", without "stops", with "friction" that is sharp."""
        gone: dict[str, Any] = {}
        if "springs" in details:
            gone |= {"square": (0.0,) * 4, "cube": (0.0,) * 4}
        if "stops" in details:
            gone |= {"stop_stiffness": 0.0}
        if "dampers" in details:
            gone |= {"rebound_share": 0.0, "damper_knee": 0.0}
        if "bars" in details:
            gone |= {"bar_cube": (0.0, 0.0)}
        if "friction" in details:
            gone |= {"friction_speed": 1e-3}
        return replace(self, **gone)

    def packed(self) -> SuspensionNumbers:
        def row(value: float) -> tuple[float, ...]:
            return (value,) * 4

        corner = [self.offset, self.stiffness, self.square, self.cube, self.design]
        corner += [row(self.bump_travel), row(self.rebound_travel), row(self.stop_stiffness)]
        corner += [self.damping, row(self.rebound_share), row(self.rebound_speed), row(self.damper_knee)]
        corner += [self.friction, row(self.friction_speed)]
        return SuspensionNumbers(np.array(corner).T.copy(), np.array([self.bar, self.bar_cube]).T.copy())

    def spring(self, wheel: int, z: ArrayLike) -> Array:
        """The force of spring and stops of a wheel (0 to 3) at clearances z, N."""
        p = self.packed().corner[wheel]
        return np.array([spring_force(float(x), p) for x in np.ravel(z)]).reshape(np.shape(z))

    def damper(self, wheel: int, zd: ArrayLike) -> Array:
        """The force of damper and dry friction of a wheel (0 to 3) at speeds ż, N."""
        p = self.packed().corner[wheel]
        return np.array([damper_force(float(x), p) for x in np.ravel(zd)]).reshape(np.shape(zd))

    def spring_energy(self, z: ArrayLike) -> float:
        """Energy stored at four clearances: the potential of springs, stops and bars, J."""
        x = np.asarray(z, dtype=np.float64)
        p, bar = self.packed()
        c = x - p[:, 4]
        above, below = np.maximum(c - p[:, 5], 0.0), np.minimum(c + p[:, 6], 0.0)
        own = p[:, 0] * x + p[:, 1] * x**2 / 2 + p[:, 2] * c**3 / 3 + p[:, 3] * c**4 / 4
        own = own + p[:, 7] * (above**3 - below**3) / 3
        d = np.array([x[0] - x[1], x[2] - x[3]])
        return float(own.sum() + (bar[:, 0] * d**2 / 2 + bar[:, 1] * d**4 / 4).sum())


@compiled
def spring_force(z: float, p: Array) -> float:
    c = z - p[4]
    force = p[0] + p[1] * z + p[2] * c * c + p[3] * c * c * c
    if c > p[5]:
        force += p[7] * (c - p[5]) ** 2
    if c < -p[6]:
        force -= p[7] * (c + p[6]) ** 2
    return force


@compiled
def damper_force(zd: float, p: Array) -> float:
    force = p[8] * zd * (1.0 - p[9] * np.tanh(zd / p[10]))
    if p[11] > 0.0:
        force /= (1.0 + (zd / p[11]) ** 2) ** 0.25
    return force + p[12] * np.tanh(zd / p[13])


@compiled
def bar_force(d: float, p: Array) -> float:
    return p[0] * d + p[1] * d * d * d
