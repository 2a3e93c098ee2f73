"""A car described by a few numbers: masses, axles, tyres, steering and sensors, each known or uncertain.

`TABLE` has every parameter with its unit, what stands for it where nothing is given, and bounds that no car leaves, models of 1:10 among
them. :func:`car_machine` makes the machine: one body that moves in the plane of the road, whose parameters are those of the table. A
parameter is known, or estimated with a prior deviation (``machine.uncertainty``) and within its bounds (``machine.parameters.bounds``).
The equations are those of :mod:`veridyn.mechanics.single_track`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from veridyn.arguments import checked_record
from veridyn.arrays import Record
from veridyn.errors import Fault, Faults, ModelError, did_you_mean, part_at
from veridyn.model.link import Joint, Link
from veridyn.model.parameters import Drift, ParameterSet, State
from veridyn.model.place import GROUND, Attachment


class ParameterKind(NamedTuple):
    """A parameter of any car: unit, default (None: it must be given, NaN: it follows from others), bounds, typical size, what it is."""

    unit: str
    default: float | None
    lower: float
    upper: float
    typical: float
    what: str


NAN = float("nan")
TABLE: Mapping[str, ParameterKind] = MappingProxyType(
    {
        "mass": ParameterKind("kg", None, 0.5, 60000.0, 1500.0, "mass of the car with its driver"),
        "front": ParameterKind("m", None, 0.01, 10.0, 1.3, "distance from the centre of mass to the front axle"),
        "rear": ParameterKind("m", None, 0.01, 10.0, 1.3, "distance from the centre of mass to the rear axle"),
        "height": ParameterKind("m", 0.5, 0.005, 3.0, 0.5, "height of the centre of mass above the road"),
        "track": ParameterKind(
            "m",
            0.0,
            0.0,
            3.0,
            1.5,
            "distance between left and right wheels; 0: a single track, without load transfer across",
        ),
        "yaw_inertia": ParameterKind(
            "kg*m^2", NAN, 1e-4, 1e6, 2500.0, "moment of inertia about the vertical; mass · front · rear if left out"
        ),
        "front_stiffness": ParameterKind(
            "1/rad", 15.0, 2.0, 80.0, 15.0, "cornering stiffness of the front axle, divided by its load"
        ),
        "rear_stiffness": ParameterKind(
            "1/rad", 15.0, 2.0, 80.0, 15.0, "cornering stiffness of the rear axle, divided by its load"
        ),
        "front_friction": ParameterKind(
            "1", 1.0, 0.1, 4.0, 1.0, "largest lateral force of the front axle, divided by its load"
        ),
        "rear_friction": ParameterKind(
            "1", 1.0, 0.1, 4.0, 1.0, "largest lateral force of the rear axle, divided by its load"
        ),
        "shape": ParameterKind(
            "1", 1.3, 1.0, 2.0, 1.3, "shape of the magic formula: 1 never falls again, above 1 it does beyond its peak"
        ),
        "load_sensitivity": ParameterKind(
            "1", 0.0, 0.0, 0.6, 0.1, "share of stiffness and friction that a wheel loses at twice its load"
        ),
        "front_roll_share": ParameterKind(
            "1", 0.5, 0.0, 1.0, 0.5, "share of the front axle in the load transfer across"
        ),
        "steering_ratio": ParameterKind(
            "1", 1.0, 0.5, 40.0, 15.0, "steering wheel angle over road wheel angle; 1 where the road wheel is measured"
        ),
        "steering_offset": ParameterKind(
            "rad", 0.0, -0.2, 0.2, 0.01, "road wheel angle that the sensor shows when the car goes straight"
        ),
        "roll_gradient": ParameterKind(
            "rad/(m/s^2)", 0.0, -0.05, 0.05, 0.005, "roll angle of the body for a lateral acceleration of 1 m/s²"
        ),
        "drag": ParameterKind("N/(m/s)^2", 0.0, 0.0, 50.0, 0.5, "air drag divided by the speed squared"),
        "brake_share": ParameterKind("1", 0.6, 0.0, 1.0, 0.6, "share of the front axle in the brake force"),
        "drive_share": ParameterKind("1", 0.0, 0.0, 1.0, 0.5, "share of the front axle in the drive force"),
        "gyro_bias": ParameterKind("rad/s", 0.0, -0.2, 0.2, 0.01, "what the gyroscope shows at rest"),
        "ay_bias": ParameterKind("m/s^2", 0.0, -3.0, 3.0, 0.1, "what the lateral accelerometer shows on level ground"),
        "slip_time": ParameterKind("s", 2.0, 0.05, 60.0, 2.0, "time over which errors of the tyre curves last"),
        "bank_time": ParameterKind("s", 3.0, 0.05, 600.0, 3.0, "time over which the bank of the road lasts"),
    }
)
PARAMETERS = tuple(TABLE)
TYRE_LAWS = ("linear", "tanh", "magic")
SECTION = "car"  # of a model file
BODY = "car"
COORDINATES = ("x", "y", "yaw")
AXLES = ("front", "rear")
ROUNDING = 1e-12
MOST_LIKELY_AXLES = 4.0  # front over rear distance, or the other way, beyond which an axle is likely misplaced


@checked_record
@dataclass(frozen=True, eq=False)
class CarDescription(Record):
    """The few numbers of a car: its tyre law, the values that are stated, which of them are estimated, narrower bounds, and drifts.

    What is not stated is as `TABLE` has it.
    """

    values: Mapping[str, float]
    tyre: str = "tanh"
    estimated: tuple[str, ...] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    drifts: Mapping[str, Drift] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = {n: float(self.values[n]) for n in sorted(self.values, key=_order)}
        object.__setattr__(self, "values", MappingProxyType(values))
        object.__setattr__(self, "estimated", tuple(sorted(self.estimated, key=_order)))
        bounds = {n: self.bounds[n] for n in sorted(self.bounds, key=_order)}
        object.__setattr__(self, "bounds", MappingProxyType(bounds))
        drifts = {n: self.drifts[n] for n in sorted(self.drifts, key=_order)}
        object.__setattr__(self, "drifts", MappingProxyType(drifts))

    def bounds_of(self, name: str) -> tuple[float, float]:
        """The bounds of a parameter: its own, where they are narrower than those of any car."""
        kind = TABLE[name]
        low, high = self.bounds.get(name, (-np.inf, np.inf))
        return max(low, kind.lower), min(high, kind.upper)


def _order(name: str) -> int:
    """The place of a parameter in the table; unknown names, which :func:`check_car` refuses, come last."""
    return PARAMETERS.index(name) if name in TABLE else len(PARAMETERS)


def car_parameters(car: CarDescription) -> ParameterSet:
    """The parameters of a car in the order of `TABLE`."""
    values = {n: car.values.get(n, NAN if kind.default is None else kind.default) for n, kind in TABLE.items()}
    if np.isnan(values["yaw_inertia"]):
        values["yaw_inertia"] = values["mass"] * values["front"] * values["rear"]
    states: list[State] = ["estimated" if n in car.estimated else "known" for n in TABLE]
    return ParameterSet(
        names=PARAMETERS,
        units=tuple(kind.unit for kind in TABLE.values()),
        values=np.array([*values.values()]),
        typical=np.array([kind.typical for kind in TABLE.values()]),
        states=tuple(states),
        bounds={n: car.bounds_of(n) for n in TABLE} | axle_bounds(car, values),
        drifts=car.drifts,
    )


def axle_bounds(car: CarDescription, values: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Bounds of the distances to the axles that are estimated: the centre of mass stays where :func:`check_car` takes it to be, so that no
    fit leads to a car that it refuses."""
    moving = [n for n in AXLES if n in car.estimated or n in car.drifts]
    near, far = sorted(values[n] for n in AXLES)
    if not moving or not 0.0 < near <= far <= MOST_LIKELY_AXLES * near:
        return {}
    found = {}
    for name in moving:
        other = values[AXLES[1 - AXLES.index(name)]]
        room = float(np.sqrt(MOST_LIKELY_AXLES * near / far)) * (1.0 - ROUNDING)  # of each, where both may move
        own = (values[name] / room, values[name] * room)
        low, high = own if len(moving) > 1 else (other / MOST_LIKELY_AXLES, other * MOST_LIKELY_AXLES)
        least, most = car.bounds_of(name)
        found[name] = (max(low, least), min(high, most))
    return found


def car_with(car: CarDescription, new: ParameterSet) -> CarDescription:
    """The description whose parameters are `new`: what the table, or mass and axles, would give otherwise is stated."""
    if new.ties:
        raise ModelError(
            "the parameters of a car cannot be tied to each other.",
            where=part_at("parameters"),
            found=f"'{next(iter(new.ties))}' tied",
            hint="Each of them is estimated, or known.",
        )
    stated = {n: new[n] for n in car.values}
    plain = car_parameters(replace(car, values=stated))
    stated |= {n: new[n] for n in PARAMETERS if n not in stated and new[n] != plain[n]}
    estimated = tuple(n for n, state in zip(new.names, new.states, strict=True) if state == "estimated")
    stated |= {n: new[n] for n in estimated}
    return replace(car, values=stated, estimated=estimated, drifts=new.drifts)


def car_link(parameters: ParameterSet) -> Link:
    """The one body of a car: flat, with its mass and its moment of inertia about the vertical at the centre of mass."""
    J, m = parameters["yaw_inertia"], parameters["mass"]
    return Link(name=BODY, inertia=[0.5 * J, 0.0, 0.0, 0.5 * J, 0.0, J, 0.0, 0.0, 0.0, m])


def car_joint() -> Joint:
    """How it moves: anywhere in the plane of the road."""
    return Joint(name="road", a=Attachment(GROUND), b=BODY, kind="planar", coordinates=COORDINATES)


def check_car(car: CarDescription) -> list[Fault]:
    """Every fault of a car, by name."""
    faults = Faults()
    if car.tyre not in TYRE_LAWS:
        faults.add(f"there is no tyre law '{car.tyre}'.", where=part_at(SECTION, "tyre"), expected=", ".join(TYRE_LAWS))
    for key in dict.fromkeys((*car.values, *car.estimated, *car.bounds, *car.drifts)):
        if key not in TABLE:
            hint = did_you_mean(key, PARAMETERS)
            faults.add(f"there is no parameter '{key}'.", where=part_at(SECTION, key), hint=hint)
    for key, kind in TABLE.items():
        if kind.default is None and key not in car.values:
            faults.add(f"'{key}' is missing.", where=part_at(SECTION), expected=f"{kind.what}, {kind.unit}")
    if not all(key in car.values for key, kind in TABLE.items() if kind.default is None):
        return faults.found
    found = car_parameters(car)
    for key in PARAMETERS:
        low, high = car.bounds_of(key)
        if not low <= found[key] <= high:
            faults.add(
                f"'{key}' is outside its bounds.",
                where=part_at(SECTION, key),
                expected=f"{low:g} to {high:g} {TABLE[key].unit}",
                found=f"{found[key]:g}",
                hint=f"It is the {TABLE[key].what}.",
            )
    nearer, farther = sorted((found["front"], found["rear"]))
    if not farther <= MOST_LIKELY_AXLES * nearer:
        faults.add(
            "the centre of mass is far nearer to one axle than to the other.",
            where=part_at(SECTION, "front"),
            expected=f"distances to the axles within a factor {MOST_LIKELY_AXLES:g}",
            found=f"front {found['front']:g} and rear {found['rear']:g} m",
            hint="Both are distances from the centre of mass, and both are positive.",
        )
    return faults.found
