"""What a car's instruments recorded, at one clock and in one band, and what every car of the papers takes from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.model.elements import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.papers.car.sensors import UNITS, WHEELS, CarSensors, kind_of
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.forces import Four
from veridyn.papers.car.simulator.tables import WheelTables
from veridyn.signals.band import equalised
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.derivative import derivative
from veridyn.signals.naming import unit_faults
from veridyn.signals.quality import inspect_clocks
from veridyn.signals.resample import resample, uniform_rate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CarKinematics:
    """What a maker's benches know of the axles: tables, the clearances they count from, tyre radius, wheel places (x, y) at the design."""

    tables: WheelTables
    design: Four
    radius: float
    places: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, vehicle: Vehicle) -> CarKinematics:
        radius = float(vehicle.packed().tyres.radius[0])
        places = tuple((float(x), float(y)) for x, y in vehicle.places())
        return cls(vehicle.tables, vehicle.suspension.design, radius, places)


@dataclass(frozen=True, eq=False)
class CarRecord:
    """The instruments' channels at common times, each by its name; `name` and `notes` are those of the log."""

    t: Array
    rate: float
    channels: dict[str, Array]
    name: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.channels[name]

    def shifted(self, channel: str, by: float) -> CarRecord:
        """With another zero of one channel, which passes every band as it is."""
        return replace(self, channels=self.channels | {channel: self.channels[channel] + by})

    def stack(self, names: Iterable[str]) -> Array:
        """Several channels as columns (N, k)."""
        return np.stack([self.channels[n] for n in names], axis=1)

    def four(self, family: str) -> Array:
        """One channel of each wheel (N, 4)."""
        return self.stack(f"{family}.{n}" for n in WHEELS)

    def three(self, family: str) -> Array:
        return self.stack(f"{family}.{a}" for a in "xyz")

    @property
    def wrench(self) -> Array:
        """Of the dynamometers (N, 4, 6)."""
        return np.stack([self.stack(f"dynamometer.{n}.{r}" for r in WRENCH_ROWS) for n in WHEELS], axis=1)


def needed(machine: Machine) -> list[str]:
    """The channels without which a car's motion cannot be had from a log."""
    names = [f"inertial.{q}.{a}" for q in ("omega", "acceleration") for a in "xyz"]
    names += [f"{family}.{n}" for family in ("clearance", "steering", "wheel", "height") for n in WHEELS]
    if "camber1" in machine.coordinates:
        names += [f"camber.{n}" for n in WHEELS]
    if "q7" in machine.coordinates and machine.base != "free":
        names += ["camera.yaw_rate", "camera.pitch_rate"]
    return [*names, "correvit.x", "correvit.y", *(f"dynamometer.{n}.{r}" for n in WHEELS for r in WRENCH_ROWS)]


def carrier_of(machine: Machine, coordinate: str) -> str:
    """The body on which the joint of a coordinate sits: of a wheel that turns, the one whose dynamometer measures its wrench."""
    return next(machine.attachment(j.a).body for j in machine.joints if coordinate in j.coordinate_names)


def record(machine: Machine, log: Experiment, sensors: CarSensors, common: Butterworth | None) -> CarRecord:
    """The channels that a car needs, checked for presence, unit, clock and numbers, at one clock and in one band; all faults at once."""
    wanted = needed(machine)
    faults = Faults()
    for name in wanted:
        if name not in log:
            faults.add(f"there is no channel '{name}'.", where=log.name, hint=did_you_mean(name, log.names))
        else:
            faults.extend(unit_faults(log[name], [UNITS[kind_of(name)]]))
    used = Experiment({n: log[n] for n in wanted if n in log}, log.name, log.notes)
    for finding in inspect_clocks(used):
        if finding.severity == "fatal" or finding.kind == "gap":
            faults.extend([finding.fault])
    faults.raise_if_any(DataError)
    first = used[wanted[0]].t
    if not all(used[n].t is first or np.array_equal(used[n].t, first) for n in wanted):
        used = resample(used, max(used[n].rate for n in wanted), "cubic")
    t = used[wanted[0]].t
    rate = uniform_rate(t, where=log.name)
    values = {n: used[n].values for n in wanted}
    if common is not None:
        bands = {n: sensors.band(n) for n in wanted}
        for band in set(bands.values()):
            alike = [n for n in wanted if bands[n] == band]
            made = equalised(np.stack([values[n] for n in alike], axis=1), rate, band, common, log.name)
            values |= {n: made[:, k] for k, n in enumerate(alike)}
    return CarRecord(t, rate, values, log.name, log.notes)


def chassis_motion(known: CarRecord, sensors: CarSensors, omega: Array, at: Array) -> tuple[Array, Array]:
    """Velocity and specific acceleration at a point of the chassis (3,), in its frame, from the instruments at theirs.

    The Correvit does not see the velocity along z: it is left out, and is a thousandth of the speed.
    """
    turning = derivative(omega, known.rate, 1, where="inertial.omega")
    p = np.array(sensors.inertial_place) - at
    acceleration = known.three("inertial.acceleration") - np.cross(turning, p) - np.cross(omega, np.cross(omega, p))
    seen = np.column_stack([known["correvit.x"], known["correvit.y"], np.zeros(len(omega))])
    velocity = seen - np.cross(omega, np.array(sensors.speed_place) - at)
    velocity[:, 2] = 0.0
    return velocity, acceleration


def attitude_over_road(known: CarRecord, sensors: CarSensors) -> tuple[Array, Array, Array]:
    """Height of the chassis origin, pitch and roll of the chassis over the road, by the plane through four laser points.

    hᵢ = h + zᵢ + yᵢ·roll − xᵢ·pitch, in least squares; angles as small ones. A rough road beneath the lasers is a part of it.
    """
    places = np.array(sensors.height_places)
    columns = np.stack([np.ones(4), -places[:, 0], places[:, 1]], axis=1)
    found = np.linalg.lstsq(columns, (known.four("height") - places[:, 2]).T)[0]
    return found[0], found[1], found[2]


def wrench_channels(body: str, wrench: Array) -> dict[str, tuple[Array, str]]:
    """A wrench (N, 6) as channels on a body."""
    return {f"wrench.{body}.{r}": (wrench[:, k], "N" if k < 3 else "N*m") for k, r in enumerate(WRENCH_ROWS)}
