"""What acts on the car beside its tyres: suspensions, driveline with brakes, and the air.

Springs, dampers, dry friction, bump stops and anti-roll bars act along the clearance of a wheel:

    Q(z, ż) = off + k z + k₂ (z − z₀)² + k₃ (z − z₀)³ + stops(z) + damper(ż) + fs tanh(ż / v_f)      resists z
    bar(d)  = k_ar d + k_ar3 d³,   d = z − z of the wheel opposite

z runs from the chassis origin to the wheel centre along z_c, upwards, so it is negative and grows in compression
(paper 000, equations 5, 6 and 31). Without the nonlinear terms this is the suspension of the identification model.

From pedal to wheels there are a speed controller, an engine behind soft shafts on soft mounts, and brakes. The front wheels are driven
through an open differential. Soft shafts let the engine swing against the wheels (3.9 Hz); soft mounts let the engine block turn about y
(4.3 Hz) and move along x (5.5 Hz): the driveline modes that paper 000, VI.B found in its logs. The block is a part of the chassis'
inertia that moves; its displacements are taken as small. Switched off, engine torque is shaft torque.

The air's six components on the chassis are F = −C(V, sideslip) V², with coefficients that are constant or a table over speed. Signs of
paper 000, equation (32): positive coefficients are what the car does to the air, so Cx > 0 is drag. The wrench acts at the chassis
origin, in the chassis frame. V is the norm of the velocity of the origin; the air is at rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError
from veridyn.mechanics.compiled import core, kept, lean
from veridyn.papers.car.simulator.lanes import (
    Lanes,
    each,
    four,
    hyperbolic_tangent,
    least,
    most,
    of_four,
    root,
    where,
)

Four = tuple[float, float, float, float]
Two = tuple[float, float]
Six = tuple[float, float, float, float, float, float]
NOTHING: Six = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class SuspensionNumbers(NamedTuple):
    """The settings as the compiled equations take them: one row of numbers for each wheel, one for each axle, and one column
    for each wheel."""

    corner: Array
    bar: Array
    by_wheel: Array


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
        by_wheel = np.array(corner)
        return SuspensionNumbers(by_wheel.T.copy(), np.array([self.bar, self.bar_cube]).T.copy(), by_wheel)

    def spring(self, wheel: int, z: ArrayLike) -> Array:
        """The force of spring and stops of a wheel (0 to 3) at clearances z, N."""
        return self._forces(True, wheel, z)

    def damper(self, wheel: int, zd: ArrayLike) -> Array:
        """The force of damper and dry friction of a wheel (0 to 3) at speeds ż, N."""
        return self._forces(False, wheel, zd)

    def _forces(self, of_spring: bool, wheel: int, x: ArrayLike) -> Array:
        at = np.ascontiguousarray(np.ravel(x), dtype=np.float64)
        found = np.empty_like(at)
        fill_forces(of_spring, wheel, at, self.packed().by_wheel, found)
        return found.reshape(np.shape(x))


@core
def spring_force(z: Lanes, p: Array) -> Lanes:
    """Springs and stops of the four wheels; p as in SuspensionNumbers.by_wheel."""
    c = z - four(p, 16)
    force = four(p, 0) + four(p, 4) * z + (four(p, 8) + four(p, 12) * c) * (c * c)
    up, down, stop = most(c - four(p, 20), 0.0), least(c + four(p, 24), 0.0), four(p, 28)
    return force + stop * (up * up - down * down)


@core
def damper_force(zd: Lanes, p: Array) -> Lanes:
    """Dampers and dry friction of the four wheels; p as in SuspensionNumbers.by_wheel."""
    force = four(p, 32) * zd * (1.0 - four(p, 36) * hyperbolic_tangent(zd / four(p, 40)))
    knee = four(p, 44)
    bends = knee > 0.0
    over = zd / where(bends, knee, 1.0)
    force = where(bends, force / root(root(1.0 + over * over)), force)
    return force + four(p, 48) * hyperbolic_tangent(zd / four(p, 52))


@kept
def fill_forces(of_spring: bool, wheel: int, x: Array, p: Array, out: Array) -> None:
    """Forces of one wheel's spring at clearances x, or of its damper at speeds x."""
    for k in range(len(x)):
        at = of_four(x[k], x[k], x[k], x[k])
        out[k] = each(spring_force(at, p) if of_spring else damper_force(at, p))[wheel]


@lean
def bar_force(d: float, p: Array | tuple[float, float]) -> float:
    return p[0] * d + p[1] * d * d * d


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


@lean
def engine_torque(error: float, integral: float, wanted: float, p: Array) -> tuple[float, float]:
    """The controller's torque and the rate of its integral, which stops at the limits."""
    command = wanted + p[14] * error + p[15] * integral
    if command > p[17]:
        return p[17], min(error, 0.0)
    if command < p[16]:
        return p[16], max(error, 0.0)
    return command, error


@lean
def brake_torque(demand: float, spin: float, wheel: int, p: Array) -> float:
    """The torque of a brake on its wheel, against its spin."""
    return -p[wheel] * demand * np.tanh(spin / p[5])


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
            expected = "six coefficients for each speed"
            found = f"{len(self.speeds)} speeds and {len(self.coefficients)} rows"
            faults.add("the table has the wrong shape.", where="aerodynamics", expected=expected, found=found)
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


@lean
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
