"""A car described by a few numbers: masses, axles, tyres, steering and sensors, each with its prior uncertainty.

`TABLE` has every parameter with its unit, what stands for it where nothing is given, and bounds that no car leaves. A parameter is known
(σ = 0) or uncertain; an uncertain one can be identified from drives, estimated with the state, or considered by the filter.
The equations are those of :mod:`veridyn.mechanics.single_track`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError, did_you_mean

Array = NDArray[np.float64]


class ParameterKind(NamedTuple):
    """A parameter of any car: unit, default (None: it must be given, NaN: it follows from others), bounds and what it is."""

    unit: str
    default: float | None
    lower: float
    upper: float
    what: str


NAN = float("nan")
TABLE: Mapping[str, ParameterKind] = MappingProxyType(
    {
        "mass": ParameterKind("kg", None, 50.0, 60000.0, "mass of the car with its driver"),
        "front": ParameterKind("m", None, 0.05, 10.0, "distance from the centre of mass to the front axle"),
        "rear": ParameterKind("m", None, 0.05, 10.0, "distance from the centre of mass to the rear axle"),
        "height": ParameterKind("m", 0.5, 0.05, 3.0, "height of the centre of mass above the road"),
        "track": ParameterKind(
            "m",
            0.0,
            0.0,
            3.0,
            "distance between left and right wheels; 0: a single track, without load transfer across",
        ),
        "yaw_inertia": ParameterKind(
            "kg*m^2", NAN, 1.0, 1e6, "moment of inertia about the vertical; mass · front · rear if left out"
        ),
        "front_stiffness": ParameterKind(
            "1/rad", 15.0, 2.0, 80.0, "cornering stiffness of the front axle, divided by its load"
        ),
        "rear_stiffness": ParameterKind(
            "1/rad", 15.0, 2.0, 80.0, "cornering stiffness of the rear axle, divided by its load"
        ),
        "front_friction": ParameterKind(
            "1", 1.0, 0.1, 4.0, "largest lateral force of the front axle, divided by its load"
        ),
        "rear_friction": ParameterKind(
            "1", 1.0, 0.1, 4.0, "largest lateral force of the rear axle, divided by its load"
        ),
        "shape": ParameterKind(
            "1", 1.3, 1.0, 2.0, "shape of the magic formula: 1 never falls again, above 1 it does beyond its peak"
        ),
        "load_sensitivity": ParameterKind(
            "1", 0.0, 0.0, 0.6, "share of stiffness and friction that a wheel loses at twice its load"
        ),
        "front_roll_share": ParameterKind("1", 0.5, 0.0, 1.0, "share of the front axle in the load transfer across"),
        "steering_ratio": ParameterKind(
            "1", 1.0, 0.5, 40.0, "steering wheel angle over road wheel angle; 1 where the road wheel is measured"
        ),
        "steering_offset": ParameterKind(
            "rad", 0.0, -0.2, 0.2, "road wheel angle that the sensor shows when the car goes straight"
        ),
        "roll_gradient": ParameterKind(
            "rad/(m/s^2)", 0.0, -0.05, 0.05, "roll angle of the body for a lateral acceleration of 1 m/s²"
        ),
        "drag": ParameterKind("N/(m/s)^2", 0.0, 0.0, 50.0, "air drag divided by the speed squared"),
        "brake_share": ParameterKind("1", 0.6, 0.0, 1.0, "share of the front axle in the brake force"),
        "drive_share": ParameterKind("1", 0.0, 0.0, 1.0, "share of the front axle in the drive force"),
        "gyro_bias": ParameterKind("rad/s", 0.0, -0.2, 0.2, "what the gyroscope shows at rest"),
        "ay_bias": ParameterKind("m/s^2", 0.0, -3.0, 3.0, "what the lateral accelerometer shows on level ground"),
        "slip_time": ParameterKind("s", 2.0, 0.05, 60.0, "time over which errors of the tyre curves last"),
        "bank_time": ParameterKind("s", 3.0, 0.05, 600.0, "time over which the bank of the road lasts"),
    }
)
PARAMETERS = tuple(TABLE)
TYRE_LAWS = ("linear", "tanh", "magic")
MOST_LIKELY_AXLES = 4.0  # front over rear distance, or the other way, beyond which an axle is likely misplaced


@dataclass(frozen=True)
class PriorValue:
    """A parameter of a vehicle: its value, its standard deviation (0: known) and its bounds."""

    value: float
    sigma: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf

    @property
    def positive(self) -> bool:
        """Whether it can be moved by factors: positive, as its bounds are."""
        return self.value > 0.0 and self.lower >= 0.0


@dataclass(frozen=True, kw_only=True)
class RoadVehicle:
    """A car of one's own: what is given of it, completed by the defaults of `TABLE`; see :func:`vehicle_of`."""

    name: str
    tyre: str
    parameters: Mapping[str, PriorValue] = field(repr=False)

    @property
    def values(self) -> Array:
        """Values (23,) in the order of `PARAMETERS`."""
        return np.array([self.parameters[name].value for name in PARAMETERS])

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Names of the parameters with a deviation."""
        return tuple(name for name in PARAMETERS if self.parameters[name].sigma > 0.0)

    def __getitem__(self, name: str) -> float:
        return self.parameters[name].value

    def with_values(self, values: Mapping[str, float], sigma: Mapping[str, float] | None = None) -> RoadVehicle:
        """The same car with other values, and other deviations where given."""
        found = dict(self.parameters)
        for name, value in values.items():
            deviation = found[name].sigma if sigma is None else sigma.get(name, found[name].sigma)
            found[name] = replace(found[name], value=float(value), sigma=float(deviation))
        return replace(self, parameters=MappingProxyType(found))

    def summary(self) -> str:
        """One line for each parameter that was given or is uncertain."""
        lines = [f"{self.name}: {self.tyre} tyres"]
        for name, b in self.parameters.items():
            if b.sigma > 0.0 or b.value != TABLE[name].default:
                spread = f" ± {b.sigma:.3g}" if b.sigma else ""
                lines.append(f"  {name:<20}{b.value:12.6g}{spread} {TABLE[name].unit}")
        return "\n".join(lines)


def vehicle_of(name: str, given: Mapping[str, PriorValue], tyre: str = "tanh") -> RoadVehicle:
    """The vehicle with the parameters that are given and the defaults of `TABLE`; every fault at once, by name.

    Parameters
    ----------
    name : str
        Of the car, for messages and reports.
    given : mapping
        Parameter → its prior. `mass`, `front` and `rear` must be there.
    tyre : str
        "linear", "tanh" or "magic".

    Returns
    -------
    RoadVehicle

    Examples
    --------
    >>> from veridyn.model.vehicle import PriorValue, vehicle_of
    >>> car = vehicle_of("small", {"mass": PriorValue(900.0), "front": PriorValue(1.0), "rear": PriorValue(1.4)})
    >>> car["yaw_inertia"]
    1260.0
    """
    faults = Faults()
    if tyre not in TYRE_LAWS:
        faults.add(f"there is no tyre law '{tyre}'.", where="tyre", expected=", ".join(TYRE_LAWS))
    for key in given:
        if key not in TABLE:
            faults.add(f"there is no parameter '{key}'.", where="vehicle", hint=did_you_mean(key, PARAMETERS))
    found: dict[str, PriorValue] = {}
    for key, kind in TABLE.items():
        b = given.get(key)
        if b is None and kind.default is None:
            faults.add(f"'{key}' is missing.", where="vehicle", expected=f"{kind.what}, {kind.unit}")
            continue
        b = PriorValue(NAN if kind.default is None else kind.default) if b is None else b
        low, high = max(b.lower, kind.lower), min(b.upper, kind.upper)
        found[key] = PriorValue(float(b.value), float(b.sigma), low, high)
    faults.raise_if_any(ModelError)
    if np.isnan(found["yaw_inertia"].value):
        inertia = found["mass"].value * found["front"].value * found["rear"].value
        found["yaw_inertia"] = replace(found["yaw_inertia"], value=inertia)
    for key, b in found.items():
        if not b.lower <= b.value <= b.upper:
            faults.add(
                f"'{key}' is outside its bounds.",
                where="vehicle",
                expected=f"{b.lower:g} to {b.upper:g} {TABLE[key].unit}",
                found=f"{b.value:g}",
                hint=f"It is the {TABLE[key].what}.",
            )
        if not (np.isfinite(b.sigma) and b.sigma >= 0.0):
            faults.add(
                f"the deviation of '{key}' is not usable.", where="vehicle", expected="zero or more", found=f"{b.sigma}"
            )
    ratio = found["front"].value / found["rear"].value
    if not 1.0 / MOST_LIKELY_AXLES <= ratio <= MOST_LIKELY_AXLES:
        faults.add(
            "the centre of mass is far nearer to one axle than to the other.",
            where="vehicle, front and rear",
            expected=f"distances to the axles within a factor {MOST_LIKELY_AXLES:g}",
            found=f"{found['front'].value:g} and {found['rear'].value:g} m",
            hint="Both are distances from the centre of mass, and both are positive.",
        )
    faults.raise_if_any(ModelError)
    return RoadVehicle(name=name, tyre=tyre, parameters=MappingProxyType(found))
