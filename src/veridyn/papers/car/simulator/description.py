"""A car in all the detail that the simulator knows, and what its driver does, as settings: everything known, nothing to be identified.

It stands where ARHMM stands in paper 000: more detailed than the car of 20 degrees of freedom that is identified from its motion, so that
an identification meets what a real car would put in its way. :meth:`Vehicle.simplified` takes the details away until it is that
car. Frames: chassis x forward, y left, z up, origin in the vertical plane of the rear axle; wheels in the order front left,
front right, rear left, rear right. SI units and radians.

Indices say where everything stands in the state, the outputs and the inputs; :class:`CarNumbers` are the settings as compiled code takes
them.

A manoeuvre is the steering wheel's angle, the commanded speed and braking as functions of time. Angles are of the steering wheel in
radians, positive to the left; speeds in m/s, braking in m/s² of deceleration. From where braking begins the speed controller rests.
Speeds, amplitudes and rates without a source are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, did_you_mean
from veridyn.mechanics.ground.tyre_parameters import TyreParameters
from veridyn.papers.car.simulator.contact import LinearTyre, TyreNumbers, packed_tyres
from veridyn.papers.car.simulator.forces import (
    NOTHING,
    Aerodynamics,
    AeroNumbers,
    Brakes,
    Driveline,
    Four,
    Six,
    Suspension,
    SuspensionNumbers,
)
from veridyn.papers.car.simulator.tables import TableNumbers, WheelTables

# Places in the state; of the bushes four numbers, one for each wheel, for each of five quantities.
POSITION, QUATERNION, VELOCITY, OMEGA, Z, ZD = 0, 3, 7, 10, 13, 17
ANGLE, SPIN, SLIP_X, SLIP_Y, RACK, BUSH, BUSHD = 21, 25, 29, 33, 37, 39, 59
TWIST, ENGINE, BLOCK, TURN, INTEGRAL, BRAKE, STATES = 79, 80, 81, 83, 85, 86, 87
# Places in the outputs of one instant: 3, 3, 4, 4, then per wheel 6 (wrench), 5 (tables), 5 rates, 5 accelerations, 7 (tyre); torques.
ACC, ALPHA, ZDD, SPIND, WRENCH, WHEEL, WHEELD, WHEELDD, TYRE = 0, 3, 6, 10, 14, 38, 58, 78, 98
DRIVE, BRAKING, AIR, RACKDD, OUTPUTS = 126, 130, 134, 140, 141
# Places in the inputs of one instant: steering wheel angle (rad), commanded speed (m/s) and its derivative, commanded braking (m/s²),
# whether the speed controller works (1) or not (0), and torque of the engine beside the controller's (N m at the wheels).
HAND, SPEED, PUSH, BRAKES, CONTROL, PEDAL, INPUTS = 0, 1, 2, 3, 4, 5, 6
# Places in the columns of CarNumbers.by_wheel: place in the chassis, carrier's ten, wheel's three, bar's two, compliances 5 × 3.
PLACE, CARRIER, WHEELS, BARS, COMPLIANCE = 0, 2, 12, 15, 17
# Paper 000, Table II, a priori: XX XY XZ YY YZ ZZ MX MY MZ M about the chassis origin.
CHASSIS = (622.15, 76.0, 44.12, 5898.0, -13.0, 6199.0, 2421.1, 0.0, -15.01, 1508.5)


class CarNumbers(NamedTuple):
    """All settings as arrays: ten of the chassis, ten of each carrier, mass, I_t and I_s of each wheel, and those of the parts.

    `by_wheel` has one column for each wheel, for the equations that take the four side by side.
    """

    chassis: Array
    carrier: Array
    wheel: Array
    place: Array
    steering: Array
    gravity: float
    push: float
    suspension: SuspensionNumbers
    tables: TableNumbers
    tyres: TyreNumbers
    driveline: Array
    brakes: Array
    air: AeroNumbers
    grip: float
    by_wheel: Array


class VehicleWork(NamedTuple):
    """Memory that is used again at every instant: the equations A, b; of each wheel what its quantities change by with z, and its tyre's
    wrench, both where outputs were asked for; the state of a stage of a step, the rates of all four, and outputs."""

    A: Array
    b: Array
    slope: Array
    tyre: Array
    state: Array
    rate: Array
    out: Array


def workspace() -> VehicleWork:
    return VehicleWork(
        np.zeros((6, 6)),
        np.zeros(6),
        np.zeros((4, 5)),
        np.zeros((4, 6)),
        np.zeros(STATES),
        np.zeros((4, STATES)),
        np.zeros(OUTPUTS),
    )


def passenger_tyre(vertical_stiffness: float = 231e3) -> TyreParameters:
    """A tyre of the size 205/60 R15: chosen, with coefficients of the order that H. B. Pacejka gives in Tyre and Vehicle Dynamics.

    They are not a copy of any print, and no measured tyre is claimed. The vertical stiffness makes wheels hop at 12.7 Hz.
    """
    return TyreParameters(
        FNOMIN=4000.0, UNLOADED_RADIUS=0.313, LONGVL=16.67, VERTICAL_STIFFNESS=vertical_stiffness, VERTICAL_DAMPING=50.0,
        BREFF=8.4, DREFF=0.27, FREFF=0.07, PTX1=0.6, PTX2=0.05, PTX3=-0.2, PTY1=2.1, PTY2=2.0,
        PCX1=1.685, PDX1=1.210, PDX2=-0.037, PEX1=0.344, PEX2=0.095, PEX3=-0.020, PKX1=21.51, PKX2=-0.163, PKX3=0.245,
        PHX1=-0.002, PHX2=0.002, RBX1=12.35, RBX2=-10.77, RCX1=1.092, RHX1=0.007,
        PCY1=1.193, PDY1=-0.990, PDY2=0.145, PDY3=-11.23, PEY1=-1.003, PEY2=-0.537, PEY3=-0.083, PEY4=-4.787,
        PKY1=-14.95, PKY2=2.130, PKY3=-0.028, PHY1=0.003, PHY2=-0.001, PHY3=0.075,
        PVY1=0.045, PVY2=-0.024, PVY3=-0.532, PVY4=0.039,
        RBY1=6.461, RBY2=4.196, RBY3=-0.015, RCY1=1.081, RHY1=0.009,
        RVY1=0.053, RVY2=-0.073, RVY3=0.517, RVY4=35.44, RVY5=1.9, RVY6=-10.71,
        QSY1=0.01, QBZ1=8.964, QBZ2=-1.106, QBZ3=-0.842, QBZ5=-0.227, QBZ9=18.47, QCZ1=1.180, QDZ1=0.100, QDZ2=-0.001,
        QDZ3=0.007, QDZ4=13.05, QDZ6=-0.008, QDZ8=-0.296, QDZ9=-0.009, QEZ1=-1.609, QEZ2=-0.359, QEZ4=0.174, QEZ5=-0.896,
        QHZ1=0.007, QHZ2=-0.002, QHZ3=0.147, QHZ4=0.004, SSZ1=0.043, SSZ2=0.001, SSZ3=0.731, SSZ4=-0.238,
    )  # fmt: skip


# What the simulator knows beyond the identification model, each to be left out by itself: carriers that are no points; springs that are not
# straight and their stops; dampers that are not straight; dry friction rounded off over 5 mm/s instead of 1; bars that are not straight;
# wheel centres that do not go straight up; wheels that turn as they travel; bushes that yield; a rack that yields; an engine on soft shafts
# and mounts; air that does more than drag.
DETAILS = (
    "carriers",
    "springs",
    "stops",
    "dampers",
    "friction",
    "bars",
    "paths",
    "angles",
    "bushes",
    "rack",
    "driveline",
    "air",
)


def _known(details: Iterable[str]) -> frozenset[str]:
    named = tuple(details)
    for name in named:
        if name not in DETAILS:
            raise ModelError(f"there is no detail '{name}'.", where="vehicle", hint=did_you_mean(name, DETAILS))
    return frozenset(named)


@dataclass(frozen=True)
class Steering:
    """From the driver's wheel to the rack; all chosen.

    `ratio` steering wheel to road wheels; `frequency` (Hz) and `damping` ratio of the rack on its column; `compliance` (rad per N m) with
    which it yields to the moments of both front wheels about the vertical.
    """

    ratio: float = 16.0
    frequency: float = 20.0
    damping: float = 0.7
    compliance: float = 2.0e-5

    def packed(self) -> Array:
        return np.array([self.ratio, 2.0 * np.pi * self.frequency, self.damping, self.compliance])


@dataclass(frozen=True)
class WheelCarrier:
    """What moves with a wheel but does not spin, of a left wheel; the right one is its mirror image.

    `mass` by paper 000, Table II, a priori; `centre` from the wheel centre and `inertia` (XX XY XZ YY YZ ZZ about the wheel centre) chosen.
    """

    mass: float = 24.0
    centre: tuple[float, float, float] = (0.0, -0.06, 0.02)
    inertia: Six = (0.45, 0.0, 0.0, 0.35, 0.0, 0.5)

    def point(self) -> WheelCarrier:
        """All of it at the wheel centre."""
        return WheelCarrier(self.mass, (0.0, 0.0, 0.0), NOTHING)

    def ten(self, right: bool) -> tuple[float, ...]:
        s = -1.0 if right else 1.0
        XX, XY, XZ, YY, YZ, ZZ = self.inertia
        x, y, z = self.centre
        return (XX, s * XY, XZ, YY, s * YZ, ZZ, self.mass * x, s * self.mass * y, self.mass * z, self.mass)


@dataclass(frozen=True)
class Wheel:
    """Rim and tyre, outside of the dynamometer: mass by paper 001, section 6.2; inertia across the axle and about it chosen."""

    mass: float = 18.8
    across: float = 0.64
    about: float = 1.06


@dataclass(frozen=True)
class Vehicle:
    """All settings of a car. The defaults are a Peugeot 406 as far as papers and data sheets go, and chosen where they do not.

    `wheelbase` is public; `half_tracks` are chosen. The other parts say so themselves.
    """

    name: str = "saloon"
    chassis: tuple[float, ...] = CHASSIS
    wheelbase: float = 2.70
    half_tracks: Four = (0.750, 0.750, 0.745, 0.745)
    carriers: tuple[WheelCarrier, WheelCarrier] = (WheelCarrier(), WheelCarrier())
    wheels: tuple[Wheel, Wheel] = (Wheel(), Wheel())
    steering: Steering = field(default_factory=Steering)
    suspension: Suspension = field(default_factory=Suspension)
    tables: WheelTables = field(default_factory=WheelTables)
    tyres: tuple[TyreParameters | LinearTyre, TyreParameters | LinearTyre] = field(
        default_factory=lambda: (passenger_tyre(), passenger_tyre())
    )
    driveline: Driveline = field(default_factory=Driveline)
    brakes: Brakes = field(default_factory=Brakes)
    aerodynamics: Aerodynamics = field(default_factory=Aerodynamics)
    grip: float = 1.0
    gravity: float = 9.81

    def __post_init__(self) -> None:
        faults = Faults()
        if len(self.chassis) != 10:
            faults.add("the chassis needs ten numbers.", where=self.name, expected="XX XY XZ YY YZ ZZ MX MY MZ M")
        elif not self.chassis[9] > 0.0 or np.linalg.eigvalsh(self.about_centre()).min() <= 0.0:
            moments = np.array2string(np.linalg.eigvalsh(self.about_centre()), precision=4)
            faults.add("no body has this inertia.", where=f"{self.name}, chassis", found=f"principal moments {moments}")
        for part in self.wheels:
            if not (part.mass > 0.0 and part.across > 0.0 and part.about > 0.0):
                faults.add("a wheel needs mass and inertia.", where=self.name, found=f"{part}")
        if not self.wheelbase > 0.0 or min(self.half_tracks) <= 0.0:
            faults.add("its lengths are not usable.", where=self.name, expected="above zero")
        faults.raise_if_any(ModelError)

    def simplified(self, keep: Iterable[str] = ()) -> Vehicle:
        """The same car with the details of the identification model only, so that this simulator IS the car of 20 degrees of freedom.

        Linear springs, dampers and bars, no tables and no compliance, carriers that are point masses, a rigid driveline, drag alone.
        Wheels still spin and tyres still slip: of these the model sees the wrench at the wheel centre. `keep` names details (DETAILS) that
        stay, to see what each does by itself.
        """
        kept = tuple(keep)
        name = f"{self.name}, simplified" + (f" but for {', '.join(kept)}" if kept else "")
        return replace(self.without(*(d for d in DETAILS if d not in _known(kept))), name=name)

    def without(self, *details: str) -> Vehicle:
        """The same car without some of its DETAILS."""
        gone = _known(details)
        return replace(
            self,
            name=f"{self.name} without {', '.join(details)}" if details else self.name,
            carriers=(self.carriers[0].point(), self.carriers[1].point()) if "carriers" in gone else self.carriers,
            suspension=self.suspension.without(*gone),
            tables=self.tables.without(*gone),
            steering=replace(self.steering, compliance=0.0) if "rack" in gone else self.steering,
            driveline=self.driveline.rigid() if "driveline" in gone else self.driveline,
            aerodynamics=self.aerodynamics.drag_only() if "air" in gone else self.aerodynamics,
        )

    @property
    def mass(self) -> float:
        """Of everything, kg."""
        return self.chassis[9] + sum(2.0 * (c.mass + w.mass) for c, w in zip(self.carriers, self.wheels, strict=True))

    def about_centre(self) -> Array:
        """The chassis' inertia (3, 3) about its own centre of mass."""
        XX, XY, XZ, YY, YZ, ZZ, *first, m = self.chassis
        c = np.array(first) / m
        return np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]) - m * (c @ c * np.eye(3) - np.outer(c, c))

    def places(self) -> Array:
        """x and y of the four wheel centres in the chassis frame at the design clearance (4, 2)."""
        l, L = self.half_tracks, self.wheelbase
        return np.array([(L, l[0]), (L, -l[1]), (0.0, l[2]), (0.0, -l[3])])

    def packed(self) -> CarNumbers:
        """The settings as the compiled equations take them."""
        carriers = [self.carriers[i // 2].ten(right=bool(i % 2)) for i in range(4)]
        wheels = [(w.mass, w.across, w.about) for w in (self.wheels[i // 2] for i in range(4))]
        tyres, tables, suspension = packed_tyres(*self.tyres), self.tables.packed(), self.suspension.packed()
        bars = suspension.bar[[0, 0, 1, 1]]
        yielding = tables.compliance.reshape(4, 15)
        by_wheel = np.concatenate([self.places(), carriers, wheels, bars, yielding], axis=1).T.copy()
        return CarNumbers(
            np.array(self.chassis),
            np.array(carriers),
            np.array(wheels),
            self.places(),
            self.steering.packed(),
            self.gravity,
            self.mass * float(tyres.radius[0]),
            suspension,
            tables,
            tyres,
            self.driveline.packed(),
            self.brakes.packed(),
            self.aerodynamics.packed(),
            self.grip,
            by_wheel,
        )


OfTime = Callable[[Array], Array]
KMH = 1.0 / 3.6


def _never(t: Array) -> Array:
    return np.zeros_like(t)


@dataclass(frozen=True)
class VehicleManoeuvre:
    """Functions of an array of times. `lead_in` seconds are driven before t = 0, with the commands of t = 0, and not recorded.

    Without `controlled` nobody holds the speed, and the car coasts. `pedal` is torque beside the controller's (N m at the wheels).
    """

    name: str
    speed: OfTime
    steering: OfTime = _never
    braking: OfTime = _never
    lead_in: float = 3.0
    controlled: bool = True
    pedal: OfTime = _never

    def inputs(self, t: Array) -> Array:
        """What the compiled equations take, (N, 6): steering, speed, its derivative, braking, controller on, torque beside it."""
        held = np.maximum(t, 0.0)
        h = 1e-4
        speed, braking = self.speed(held), self.braking(held)
        push = np.where(t > h, (self.speed(held + h) - self.speed(np.maximum(held - h, 0.0))) / (2.0 * h), 0.0)
        held_speed = float(self.controlled) * (np.cumsum(braking > 0.0) == 0)
        rows = np.stack([self.steering(held), speed, push, braking, held_speed, self.pedal(held)], axis=1)
        faults = Faults()
        if not np.isfinite(rows).all():
            faults.add("it asks for something that is not a number.", where=self.name)
        if (speed < 0.0).any() or (braking < 0.0).any():
            faults.add("it asks for a negative speed or braking.", where=self.name)
        faults.raise_if_any(DataError)
        return rows


def _smooth(s: Array) -> Array:
    """From 0 to 1 with level ends, for s from 0 to 1."""
    x = np.clip(s, 0.0, 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def _steady(speed: float) -> OfTime:
    return lambda t: np.full_like(t, speed)


def sinusoidal_steering(speed: float = 110.0 * KMH, angle: float = 0.48, frequency: float = 0.5) -> VehicleManoeuvre:
    """Steering by a sine at constant speed: the trajectories of paper 000, there at 90 to 160 km/h. It grows over half a period."""
    return VehicleManoeuvre(
        f"sinusoidal steering at {speed / KMH:.0f} km/h",
        _steady(speed),
        lambda t: angle * np.sin(2.0 * np.pi * frequency * t) * _smooth(2.0 * frequency * t),
    )


def ramp_steer(speed: float = 90.0 * KMH, rate: float = 0.06) -> VehicleManoeuvre:
    """The wheel turned ever further at `rate` rad/s from 1 s on, up to 1.6 rad, to the left if positive: paper 001 drove left at 90 and
    right at 110 km/h."""

    def angle(t: Array) -> Array:
        late = np.maximum(t - 1.0, 0.0)
        eased = np.where(late < 1.0, late**3 * (1.0 - late / 2.0), late - 0.5)  # level at the start, straight after 1 s
        return np.clip(rate * eased, -1.6, 1.6)

    side = "left" if rate > 0.0 else "right"
    return VehicleManoeuvre(f"ramp steer to the {side} at {speed / KMH:.0f} km/h", _steady(speed), angle)


def straight_braking(speed: float = 100.0 * KMH, braking: float = 4.0, start: float = 1.0) -> VehicleManoeuvre:
    """Brakes applied within 0.3 s and held, the steering wheel straight."""
    return VehicleManoeuvre(
        f"braking from {speed / KMH:.0f} km/h", _steady(speed), braking=lambda t: braking * _smooth((t - start) / 0.3)
    )


def straight(speed: float = 80.0 * KMH) -> VehicleManoeuvre:
    """Straight on at constant speed: on a rough road, the road does the rest."""
    return VehicleManoeuvre(f"straight on at {speed / KMH:.0f} km/h", _steady(speed))


def speed_variation(
    speed: float = 25.0, change: float = 5.0, every: float = 10.0, angle: float = 0.48, frequency: float = 0.5
) -> VehicleManoeuvre:
    """Speed that swings by `change` within `every` seconds, while steering by a sine."""
    steered = sinusoidal_steering(speed, angle, frequency)
    return VehicleManoeuvre(
        f"speed variation about {speed / KMH:.0f} km/h",
        lambda t: speed + change * np.sin(2.0 * np.pi * t / every) * _smooth(t / 2.0),
        steered.steering,
    )


def standstill() -> VehicleManoeuvre:
    """Brakes on, no speed."""
    return VehicleManoeuvre("standstill", _steady(0.0), braking=lambda t: np.full_like(t, 3.0), lead_in=1.0)


def restless(made: VehicleManoeuvre, rng: np.random.Generator, torque: float = 60.0) -> VehicleManoeuvre:
    """The same manoeuvre with an engine that is never quite even: torque of that rms (N m), random from 1 to 9 Hz.

    It wakes the driveline's modes, which even driving on a smooth road leaves asleep and the logs of paper 000 show.
    """
    frequency = np.arange(1.0, 9.0, 0.05)
    phase = rng.uniform(0.0, 2.0 * np.pi, len(frequency))
    size = torque * np.sqrt(2.0 / len(frequency))

    def pedal(t: Array) -> Array:
        total = np.zeros_like(t)
        for f, p in zip(frequency, phase, strict=True):
            total += np.sin(2.0 * np.pi * f * t + p)
        return size * total * _smooth(t)

    return replace(made, name=f"{made.name}, uneven engine", pedal=pedal)
