"""What a study of the car is given and does not estimate, with standard deviations: tables, bands, places, lengths, the air, carriers.

    known = CarKnown.of(vehicle, sensors)          exactly what is true of a simulated car
    given = known.drawn(rng)                       what a maker hands in: off by as much as its deviations say
    for item in known.items: known.moved({item: 1.0})        one piece after the other, off by one standard deviation

A table is one curve for each axle and quantity, measured on a bench that may be scaled wrongly; its compliances are one factor for each
axle. A band is one cut-off for each kind of instrument. A carrier's inertia is that of its drawing.

Wheel paths and the air enter the equations. A wheel does not rise straight up. Its axle's tables say how half track, wheelbase, toe,
camber and kingpin angle follow the clearance, and the suspension's force is in balance along that path:

    row(z) + Σ ∂q/∂z · row(q) = 0,   q = dl, dL, beta, camber, kingpin

The forces by which links hold the wheel on its path do no work along it, and so need not be known. The row of the clearance alone, which
paper 000 takes, leaves out the work of side force and overturning moment: about a tenth of the side force, which comes with roll and is
taken for stiffness (see docs/papers/car.md). On a driven axle the moment about the wheel's axis that a dynamometer reads comes through
the shaft and not through the carrier, so its kingpin row is left out as long as the brakes are open.

The air's other components come from tables too (paper 000, VI.A); Cx alone is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.log import CarKinematics
from veridyn.papers.car.sensors import CarSensors
from veridyn.papers.car.simulator.description import Vehicle, WheelCarrier
from veridyn.papers.car.simulator.forces import Aerodynamics
from veridyn.papers.car.simulator.tables import QUANTITIES, AxleTables

FOLLOWERS = ("dl", "dL", "beta", "camber", "kingpin")  # in the order of the tables
FINE = 1e-4  # m, over which the tables' slopes are taken
AXLES = ("front", "rear")
BANDS = ("gyro", "accelerometer", "clearance", "speed", "steering", "force", "moment")
AIR = ("Cx", "Cy", "Cz", "Cl", "Cm", "Cn")
MOMENTS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")
Place = tuple[float, float, float]


def paths(machine: Machine, driven: tuple[int, ...] = (1, 2)) -> Mapping[str, Mapping[str, str]]:
    """For ``Sampling(along=…)``: clearance → the rows that follow it → signals of :func:`informed`. Empty for a car without such rows.

    `driven` names the wheels on shafts.
    """
    if "dl1" not in machine.coordinates:
        return {}
    rows = {i: [q for q in FOLLOWERS if not (q == "kingpin" and i in driven)] for i in range(1, 5)}
    return {f"z{i}": {f"{q}{i}": f"path.{q}{i}" for q in every} for i, every in rows.items()}


def slopes(kinematics: CarKinematics, clearance: Array) -> Array:
    """∂(half track, wheelbase, toe, camber, kingpin)/∂z of each wheel (N, 4, 5), from the tables at clearances (N, 4)."""
    beside = clearance - np.array(kinematics.design)
    still = np.zeros(len(clearance))
    tables = kinematics.tables
    return (tables.at(beside + FINE, still) - tables.at(beside - FINE, still)) / (2.0 * FINE)


def air(aerodynamics: Aerodynamics, velocity: Array) -> Array:
    """The wrench of the air on the chassis at its origin (N, 6) by its table, less the drag along x that is estimated."""
    speed = np.linalg.norm(velocity, axis=1)
    table = np.stack([np.interp(speed, aerodynamics.speeds, c) for c in np.array(aerodynamics.coefficients).T], axis=1)
    slip = np.where(speed > 1e-6, np.arctan2(velocity[:, 1], velocity[:, 0]), 0.0)
    wrench = -(table + slip[:, None] * np.array(aerodynamics.sideslip)) * (speed**2)[:, None]
    wrench[:, 0] = 0.0
    return wrench


def informed(
    motion: Motion, machine: Machine, kinematics: CarKinematics, aerodynamics: Aerodynamics | None = None
) -> Motion:
    """The motion with slopes of the wheel paths as signals `path.dl1` and so on, and the known part of the air as a wrench on the "
    "chassis."""
    signals, wrenches = dict(motion.signals), dict(motion.wrenches)
    if "dl1" in machine.coordinates:
        z = motion.q[:, [machine.coordinates.index(f"z{i}") for i in range(1, 5)]]
        slope = slopes(kinematics, z)
        signals |= {f"path.{q}{i + 1}": slope[:, i, k] for i in range(4) for k, q in enumerate(FOLLOWERS)}
    if aerodynamics is not None:
        assert motion.base is not None and motion.base.velocity is not None  # the car's own elements ask for them
        wrenches["chassis"] = air(aerodynamics, motion.base.velocity)
    return replace(motion, signals=signals, wrenches=wrenches)


@dataclass(frozen=True)
class CarDeviations:
    """Standard deviations of what is handed in; all chosen, of the size of careful work on a bench.

    `table`, `compliance`, `air`, `band`: of the value. `inertial_place`, `speed_place`, `length` (half tracks, wheelbase) and
    `carrier_centre` in m. `carrier_moment`: of a carrier's mean moment of inertia, for each of its moments; a quarter of it for products.
    """

    table: float = 0.05
    compliance: float = 0.2
    air: float = 0.1
    band: float = 0.02
    inertial_place: float = 0.005
    speed_place: float = 0.01
    length: float = 0.002
    carrier_centre: float = 0.02
    carrier_moment: float = 0.3


@dataclass(frozen=True)
class CarKnown:
    """What is handed in, and how well it is known. `half_tracks` (front, rear) and `wheelbase`: beyond those of the model, m."""

    kinematics: CarKinematics
    sensors: CarSensors
    aerodynamics: Aerodynamics
    carriers: tuple[WheelCarrier, WheelCarrier]
    half_tracks: tuple[float, float] = (0.0, 0.0)
    wheelbase: float = 0.0
    deviations: CarDeviations = field(default_factory=CarDeviations)

    @classmethod
    def of(cls, vehicle: Vehicle, sensors: CarSensors) -> CarKnown:
        """Exactly what a simulated car and its instruments have."""
        return cls(CarKinematics.of(vehicle), sensors, vehicle.aerodynamics, vehicle.carriers)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Kind of knowledge → its items. Those of the carriers enter the equations as known values, the others make the motion."""
        tables = tuple(f"{axle} {quantity}" for axle in AXLES for quantity in QUANTITIES)
        return {
            "tables": (*tables, *(f"{axle} compliance" for axle in AXLES)),
            "bands": tuple(f"band {kind}" for kind in BANDS),
            "places": (*(f"inertial {a}" for a in "xyz"), "correvit x", "correvit y"),
            "lengths": ("front half track", "rear half track", "wheelbase"),
            "air": tuple(f"air {name}" for name in AIR[1:]),
            "carriers": tuple(f"{axle} {s}" for axle in AXLES for s in (*MOMENTS, "MX", "MY", "MZ")),
        }

    @property
    def items(self) -> tuple[str, ...]:
        return tuple(item for every in self.groups.values() for item in every)

    def drawn(self, rng: np.random.Generator) -> CarKnown:
        """The same with every item off by a normal error of its deviation."""
        return self.moved(dict(zip(self.items, rng.standard_normal(len(self.items)).tolist(), strict=True)))

    def moved(self, by: Mapping[str, float]) -> CarKnown:
        """The same with items off by so many of their standard deviations."""
        for name in by:
            if name not in self.items:
                raise DataError(f"no known value is called '{name}'.", where="car", hint=did_you_mean(name, self.items))
        z = {item: by.get(item, 0.0) for item in self.items}
        d, s = self.deviations, self.sensors
        axles = [self._axle(k, z) for k in range(2)]
        tables = replace(self.kinematics.tables, front=axles[0], rear=axles[1])
        bands = {
            kind: replace(s.kinds[kind], cutoff=s.kinds[kind].cutoff * (1.0 + d.band * z[f"band {kind}"]))
            for kind in BANDS
        }
        x, y, up = (p + d.inertial_place * z[f"inertial {a}"] for p, a in zip(s.inertial_place, "xyz", strict=True))
        place: Place = (
            s.speed_place[0] + d.speed_place * z["correvit x"],
            s.speed_place[1] + d.speed_place * z["correvit y"],
            s.speed_place[2],
        )
        half = tuple(l + d.length * z[f"{a} half track"] for l, a in zip(self.half_tracks, AXLES, strict=True))
        factors = np.array([1.0, *(1.0 + d.air * z[f"air {name}"] for name in AIR[1:])])
        rows = (self.aerodynamics.sideslip, *self.aerodynamics.coefficients)
        sideslip, *coefficients = (tuple(float(v) for v in np.array(row) * factors) for row in rows)
        return replace(
            self,
            kinematics=replace(self.kinematics, tables=tables),
            sensors=replace(s, **bands, inertial_place=(x, y, up), speed_place=place),
            aerodynamics=replace(self.aerodynamics, coefficients=tuple(coefficients), sideslip=sideslip),
            carriers=tuple(self._carrier(k, z) for k in range(2)),
            half_tracks=half,
            wheelbase=self.wheelbase + d.length * z["wheelbase"],
        )

    def _axle(self, k: int, z: Mapping[str, float]) -> AxleTables:
        old, d = (self.kinematics.tables.front, self.kinematics.tables.rear)[k], self.deviations
        factor = [1.0 + d.table * z[f"{AXLES[k]} {quantity}"] for quantity in QUANTITIES]
        soft = 1.0 + d.compliance * z[f"{AXLES[k]} compliance"]

        def scaled(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
            return tuple(tuple(f * v for v in row) for f, row in zip(factor, rows, strict=True))

        yields = tuple(tuple(soft * v for v in row) for row in old.compliance)
        return replace(old, by_clearance=scaled(old.by_clearance), by_rack=scaled(old.by_rack), compliance=yields)

    def _carrier(self, k: int, z: Mapping[str, float]) -> WheelCarrier:
        old, size = self.carriers[k], self.carrier_sizes(k)
        centre = tuple(
            c + size[f"M{a}"] / old.mass * z[f"{AXLES[k]} M{a}"] for c, a in zip(old.centre, "XYZ", strict=True)
        )
        inertia = tuple(
            v + size[symbol] * z[f"{AXLES[k]} {symbol}"] for v, symbol in zip(old.inertia, MOMENTS, strict=True)
        )
        return WheelCarrier(old.mass, centre, inertia)  # pyright: ignore[reportArgumentType]

    def carrier_sizes(self, k: int) -> dict[str, float]:
        """Standard deviations of the nine inertial parameters, beside the mass, of a carrier of the front (0) or rear (1) axle."""
        d, old = self.deviations, self.carriers[k]
        moment = d.carrier_moment * float(np.mean([old.inertia[0], old.inertia[3], old.inertia[5]]))
        out = {s: moment if s[0] == s[1] else 0.25 * moment for s in MOMENTS}
        return out | dict.fromkeys(("MX", "MY", "MZ"), old.mass * d.carrier_centre)

    def placed(self, motion: Motion, machine: Machine) -> Motion:
        """The motion of a model with lengths of its own, at the half tracks and the wheelbase that are handed in."""
        return _lengthened(motion, machine, self.half_tracks, self.wheelbase)

    def instead_of(self, old: CarKnown, motion: Motion, machine: Machine) -> Motion:
        """A motion that was made with `old`, with the places, lengths and air of this instead; tables and bands must be the same."""
        base = motion.base
        assert base is not None and base.velocity is not None  # of a free chassis
        p = np.subtract(self.sensors.inertial_place, old.sensors.inertial_place)
        v = np.subtract(self.sensors.speed_place, old.sensors.speed_place)
        felt = np.cross(base.omega_dot, p) + np.cross(base.omega, np.cross(base.omega, p))
        velocity = base.velocity - np.cross(base.omega, v)
        velocity[:, 2] = 0.0
        moved = replace(base, acceleration=base.acceleration - felt, velocity=velocity)
        made = replace(motion, base=moved, wrenches={**motion.wrenches, "chassis": air(self.aerodynamics, velocity)})
        half = tuple(a - b for a, b in zip(self.half_tracks, old.half_tracks, strict=True))
        return _lengthened(made, machine, half, self.wheelbase - old.wheelbase)


def _lengthened(motion: Motion, machine: Machine, half_tracks: tuple[float, ...], wheelbase: float) -> Motion:
    """With so much more half track (front, rear) and wheelbase."""
    if "dl1" not in machine.coordinates or not (any(half_tracks) or wheelbase):
        return motion
    q = motion.q.copy()
    for i in range(1, 5):
        side = 1.0 if i % 2 else -1.0
        q[:, machine.coordinates.index(f"dl{i}")] += side * half_tracks[(i - 1) // 2]
        if i < 3:
            q[:, machine.coordinates.index(f"dL{i}")] += wheelbase
    return replace(motion, q=q)
