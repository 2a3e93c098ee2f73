"""From pedal to wheels: a speed controller, an engine behind soft shafts on soft mounts, and brakes.

The front wheels are driven through an open differential. Soft shafts let the engine swing against the wheels (3.9 Hz); soft mounts let
the engine block turn about y (4.3 Hz) and move along x (5.5 Hz): the driveline modes that paper 000, VI.B found in its logs. The block is
a part of the chassis' inertia that moves; its displacements are taken as small. Switched off, engine torque is shaft torque.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError
from veridyn.mechanics.compiled import compiled

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Driveline:
    """All chosen. `flexible` switches the three modes on. SI units; torques are of the whole axle, at the wheels.

    `inertia` of engine and gears as seen by the wheels and `ratio` to the engine; `shaft` stiffness and damping of both shafts together;
    `block_mass` moves along x with `mount` stiffness and damping at `block` (m, chassis frame); `block_inertia` turns about y with
    `mount_turning`. The controller asks for  mass·radius·a_ref + gain·e + integral·∫e  of the speed error e, within `limits`.
    """

    flexible: bool = True
    inertia: float = 4.0
    ratio: float = 5.0
    shaft: tuple[float, float] = (2435.0, 9.0)
    block: tuple[float, float, float] = (2.8, 0.0, 0.0)
    block_mass: float = 170.0
    mount: tuple[float, float] = (182.5e3, 500.0)
    block_inertia: float = 9.0
    mount_turning: tuple[float, float] = (6570.0, 20.0)
    gain: float = 900.0
    integral: float = 300.0
    limits: tuple[float, float] = (-600.0, 2400.0)

    def __post_init__(self) -> None:
        faults = Faults()
        for name in ("inertia", "ratio", "block_mass", "block_inertia"):
            if not getattr(self, name) > 0.0:
                faults.add(f"its {name} is not usable.", where="driveline", expected="above zero")
        if not self.limits[0] <= 0.0 <= self.limits[1]:
            faults.add("its torque limits do not hold zero between them.", where="driveline", found=f"{self.limits}")
        faults.raise_if_any(ModelError)

    def rigid(self) -> Driveline:
        return replace(self, flexible=False)

    def packed(self) -> Array:
        numbers = (
            float(self.flexible),
            self.inertia,
            self.ratio,
            *self.shaft,
            *self.block,
            self.block_mass,
            *self.mount,
        )
        return np.array((*numbers, self.block_inertia, *self.mount_turning, self.gain, self.integral, *self.limits))


@dataclass(frozen=True)
class Brakes:
    """Torque (N m) of each axle's brakes for each m/s² of commanded deceleration, `lag` of the pressure (s); chosen.

    Below `rounding` rad/s the brake of a wheel acts as a damper: it creeps where a real one stands.
    """

    front: float = 390.0
    rear: float = 135.0
    lag: float = 0.05
    rounding: float = 2.0

    def packed(self) -> Array:
        return np.array([self.front / 2, self.front / 2, self.rear / 2, self.rear / 2, self.lag, self.rounding])


@compiled
def engine_torque(error: float, integral: float, wanted: float, p: Array) -> tuple[float, float]:
    """The controller's torque and the rate of its integral, which stops at the limits."""
    command = wanted + p[14] * error + p[15] * integral
    if command > p[17]:
        return p[17], min(error, 0.0)
    if command < p[16]:
        return p[16], max(error, 0.0)
    return command, error


@compiled
def brake_torque(demand: float, spin: float, wheel: int, p: Array) -> float:
    """The torque of a brake on its wheel, against its spin."""
    return -p[wheel] * demand * np.tanh(spin / p[5])
