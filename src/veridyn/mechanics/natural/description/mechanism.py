"""A mechanism in natural (fully Cartesian) coordinates: data only. What it does is computed by ``mechanics/natural/``.

The coordinates are the Cartesian components of points and unit vectors, and of added angles and distances where they are used.
Bodies that share a point are joined by a spherical joint (a pin in the plane), bodies that share a point and a vector by a turning
joint, without an equation. All other joints connect two :class:`Marker`. Rigid bodies and joints are quadratic in the coordinates.

Reference: chapter 2 of paper 003; García de Jalón and Bayo, Kinematic and Dynamic Simulation of Multibody Systems, 1994.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from veridyn.errors import ModelError, did_you_mean
from veridyn.mechanics.natural.description.mechanism_check import check_mechanism
from veridyn.model.elements.element import Element
from veridyn.model.load import Force, Load, Torque
from veridyn.model.place import Numbers, numbers
from veridyn.model.point_parts import (
    Added,
    Angle,
    Damper,
    Elevation,
    MechanismJoint,
    Point,
    Rack,
    RigidBody,
    Rotor,
    Spring,
    UnitVector,
)
from veridyn.model.sensor import Sensor

AXES = "xyz"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mechanism:
    """Points, vectors, bodies, joints, added coordinates, what acts on them and what measures them, in the plane (2) or in space (3).

    Made by :meth:`build`. `derived`: moving points and vectors that are no coordinates, each with the body they follow. `laws`: elements
    on added coordinates whose forces are neither those of springs nor of dampers; `gains` those that multiply a measured signal S, whose
    force is that of a load named signal.S. `friction_speed`: below it (rad/s, m/s) laws with the sign of a speed are rounded off.
    Coordinates are in the order: moving points (P.x, P.y, …), moving vectors, added angles and distances.
    """

    name: str
    dimension: int
    points: tuple[Point, ...]
    vectors: tuple[UnitVector, ...]
    bodies: tuple[RigidBody, ...]
    joints: tuple[MechanismJoint, ...]
    added: tuple[Added, ...]
    racks: tuple[Rack, ...]
    springs: tuple[Spring, ...]
    dampers: tuple[Damper, ...]
    loads: tuple[Load, ...]
    gravity: Numbers
    sensors: tuple[Sensor, ...] = ()
    rotors: tuple[Rotor, ...] = ()
    tyres: tuple[Element, ...] = ()
    laws: tuple[Element, ...] = ()
    gains: tuple[Element, ...] = ()
    prescribed: tuple[str, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()
    friction_speed: float = 0.0

    @classmethod
    def build(
        cls,
        points: Iterable[Point],
        bodies: Iterable[RigidBody],
        *,
        name: str = "mechanism",
        vectors: Iterable[UnitVector] = (),
        joints: Iterable[MechanismJoint] = (),
        added: Iterable[Added] = (),
        racks: Iterable[Rack] = (),
        springs: Iterable[Spring] = (),
        dampers: Iterable[Damper] = (),
        loads: Iterable[Load] = (),
        gravity: Sequence[float] = (),
        sensors: Iterable[Sensor] = (),
        rotors: Iterable[Rotor] = (),
        tyres: Iterable[Element] = (),
        laws: Iterable[Element] = (),
        gains: Iterable[Element] = (),
        prescribed: Iterable[str] = (),
        physical: bool = True,
    ) -> Mechanism:
        """Check the description whole. The dimension is that of the points; gravity defaults to none.

        `physical`: refuse inertias that no body has. Those of a fit may be such, and still those of a machine that moves.
        """
        at = tuple(points)
        dimension = len(at[0].at) if at else 0
        made = cls(
            name=name,
            dimension=dimension,
            points=at,
            vectors=tuple(vectors),
            bodies=tuple(bodies),
            joints=tuple(joints),
            added=tuple(added),
            racks=tuple(racks),
            springs=tuple(springs),
            dampers=tuple(dampers),
            loads=tuple(loads),
            gravity=numbers(gravity) or (0.0,) * dimension,
            sensors=tuple(sensors),
            rotors=tuple(rotors),
            tyres=tuple(tyres),
            laws=tuple(laws),
            gains=tuple(gains),
            prescribed=tuple(prescribed),
        )
        faults = check_mechanism(made, made.coordinates, physical)
        if faults:
            raise ModelError(faults, name)
        return made

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the n coordinates, in order: "P.x", "u.z", "phi"."""
        derived = dict(self.derived)
        moving = [e.name for e in (*self.points, *self.vectors) if not e.fixed and e.name not in derived]
        return (*(f"{m}.{axis}" for m in moving for axis in AXES[: self.dimension]), *(a.name for a in self.added))

    @property
    def n(self) -> int:
        """The number of coordinates."""
        return len(self.coordinates)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.coordinates)}

    def index(self, coordinate: str) -> int:
        """The number of a coordinate by name."""
        try:
            return self._index[coordinate]
        except KeyError:
            raise ModelError(
                f"there is no coordinate '{coordinate}'.",
                where=self.name,
                hint=did_you_mean(coordinate, self.coordinates),
            ) from None

    def unit_of(self, coordinate: str) -> str:
        """The unit of a coordinate by name: components of unit vectors have none."""
        if any(a.name == coordinate for a in self.added if isinstance(a, Angle | Elevation)):
            return "rad"
        return "1" if coordinate.partition(".")[0] in {v.name for v in self.vectors} else "m"

    def force_unit(self, name: str) -> str:
        """The unit of a load or of a component of one by name, or of the force on a coordinate."""
        if name.startswith("signal."):
            return ""  # that which its gain is for
        load = next((load for load in self.loads if load.name == name or name in load.channels), None)
        if isinstance(load, Force | Torque):
            return "N" if isinstance(load, Force) else "N*m"
        return "N" if self.unit_of(name if load is None else load.coordinate) == "m" else "N*m"

    def body(self, name: str) -> RigidBody:
        """A body by name."""
        for b in self.bodies:
            if b.name == name:
                return b
        raise ModelError(
            f"there is no body '{name}'.", where=self.name, hint=did_you_mean(name, [b.name for b in self.bodies])
        )
