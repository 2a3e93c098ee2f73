"""A mechanism in natural (fully Cartesian) coordinates: data only. What it does is told by ``mechanics/natural/``.

The coordinates are the Cartesian components of points and unit vectors, and of added angles and distances where they are asked for.
Bodies that share a point are joined by a spherical joint (a pin in the plane), bodies that share a point and a vector by a turning
joint, without an equation. All other joints connect two :class:`Marker`. Rigid bodies and joints are quadratic in the coordinates.

Reference: chapter 2 of paper 003; García de Jalón and Bayo, Kinematic and Dynamic Simulation of Multibody Systems, 1994.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Fault, ModelError, did_you_mean
from veridyn.model.load import Force, Load, Torque
from veridyn.model.place import Marker, Numbers, PointRef, numbers
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]
JointKind = Literal["spherical", "turning", "sliding", "cylindrical", "universal", "inline", "inplane", "distance"]

AXES = "xyz"


def _placed(values: Mapping[str, ArrayLike]) -> Mapping[str, Numbers]:
    return MappingProxyType({str(name): numbers(at) for name, at in values.items()})


@dataclass(frozen=True)
class Point:
    """A point: where it is fixed, or, for a moving one, about where it starts (m)."""

    name: str
    at: Sequence[float]
    fixed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", numbers(self.at))


@dataclass(frozen=True)
class UnitVector:
    """A vector of length one: where it points, or, for a moving one, about where at the start."""

    name: str
    along: Sequence[float]
    fixed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "along", numbers(self.along))


@dataclass(frozen=True, eq=False)
class RigidBody:
    """A body by its points and vectors, each given in the body's own frame, and its inertia.

    `points` and `vectors`: name → place or components in the body's frame. `centre`: its centre of mass there (default: the frame's
    origin). `inertia` about that centre in the body's axes: one number in the plane, (3, 3) or XX XY XZ YY YZ ZZ in space. The mass must
    lie in what the points and vectors span: one point carries a particle, two points a rod, three directions any body.
    """

    name: str
    points: Mapping[str, ArrayLike]
    vectors: Mapping[str, ArrayLike] = field(default_factory=dict)
    mass: float = 0.0
    centre: Sequence[float] = ()
    inertia: ArrayLike = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _placed(self.points))
        object.__setattr__(self, "vectors", _placed(self.vectors))
        object.__setattr__(self, "centre", numbers(self.centre))
        object.__setattr__(self, "inertia", np.array(self.inertia, dtype=np.float64))

    def __reduce__(self) -> tuple[type[RigidBody], tuple[object, ...]]:
        return RigidBody, (
            self.name,
            dict(self.points),
            dict(self.vectors),
            self.mass,
            self.centre,
            np.asarray(self.inertia),
        )

    @property
    def elements(self) -> tuple[str, ...]:
        """Names of all points and vectors."""
        return (*self.points, *self.vectors)


def uniform_bar(name: str, a: str, b: str, length: float, mass: float, dimension: int = 2) -> RigidBody:
    """A slender bar between two points, its mass spread evenly: inertia m L²/12 across it, none along it."""
    rest = (0.0,) * (dimension - 1)
    across = mass * length**2 / 12.0
    inertia = across if dimension == 2 else np.diag([0.0, across, across])
    return RigidBody(
        name, {a: (0.0, *rest), b: (length, *rest)}, mass=mass, centre=(length / 2.0, *rest), inertia=inertia
    )


DirectionRef = (
    str | tuple[str, str] | Marker | Sequence[float]
)  # vector, from point to point, a marker's axis, components


@dataclass(frozen=True)
class Joint:
    """A joint between `a` and `b`: what it leaves free gives its kind.

    =========== ============================================================ ================= ==========
    kind        meaning                                                      rows plane, space ends
    =========== ============================================================ ================= ==========
    spherical   the two places coincide                                      2, 3              any
    turning     they coincide and the axes are parallel                      2, 5              markers
    universal   they coincide and the axes are perpendicular                 –, 4              markers
    cylindrical b stays on the axis of a (in space with parallel axes)       1, 4              markers
    sliding     b stays on the axis of a and does not turn about it          2, 5              markers
    inline      b stays on the axis of a, and nothing else                   1, 2              a marker
    inplane     b stays in the plane through a normal to its axis            –, 1              a marker
    distance    the two places are `length` apart                            1, 1              any
    =========== ============================================================ ================= ==========
    """

    name: str
    kind: JointKind
    a: PointRef
    b: PointRef
    length: float = float("nan")


@dataclass(frozen=True)
class Angle:
    """An added angle (rad): of the direction `of`, counted from `reference` towards `towards`; in the plane, counter-clockwise.

    In space both references are perpendicular to the axis of turning; a part of `of` along that axis does not matter. `start`: about
    what it is at the start, to within half a turn; by default between −π and π.
    """

    name: str
    of: DirectionRef
    reference: DirectionRef
    towards: DirectionRef | None = None
    start: float = float("nan")


@dataclass(frozen=True)
class Distance:
    """An added distance (m): between `a` and `b`, or, with `along`, the part of the way from `a` to `b` in that direction."""

    name: str
    a: PointRef
    b: PointRef
    along: DirectionRef | None = None


@dataclass(frozen=True)
class Rack:
    """A rack on a pinion: distance = radius * angle + offset, between two added coordinates."""

    name: str
    distance: str
    angle: str
    radius: float
    offset: float = 0.0


@dataclass(frozen=True)
class Spring:
    """A spring on an added coordinate or between two places; `rest` is where it pulls nothing. N/m or N*m/rad."""

    name: str
    on: str | tuple[PointRef, PointRef]
    stiffness: float
    rest: float = 0.0


@dataclass(frozen=True)
class Damper:
    """A damper on an added coordinate or between two places, N*s/m or N*m*s/rad."""

    name: str
    on: str | tuple[PointRef, PointRef]
    coefficient: float


@dataclass(frozen=True)
class Rotor:
    """The inertia of a motor, as seen from an added coordinate: ½ I ċ² of kinetic energy, kg*m^2 or kg."""

    name: str
    coordinate: str
    inertia: float


Added = Angle | Distance


@dataclass(frozen=True, eq=False, kw_only=True)
class Mechanism:
    """Points, vectors, bodies, joints, added coordinates, what acts on them and what measures them, in the plane (2) or in space (3).

    Made by :meth:`build`. Coordinates are in the order: moving points (P.x, P.y, …), moving vectors, added angles and distances.
    """

    name: str
    dimension: int
    points: tuple[Point, ...]
    vectors: tuple[UnitVector, ...]
    bodies: tuple[RigidBody, ...]
    joints: tuple[Joint, ...]
    added: tuple[Added, ...]
    racks: tuple[Rack, ...]
    springs: tuple[Spring, ...]
    dampers: tuple[Damper, ...]
    loads: tuple[Load, ...]
    gravity: Numbers
    sensors: tuple[Sensor, ...] = ()
    rotors: tuple[Rotor, ...] = ()

    @classmethod
    def build(
        cls,
        points: Iterable[Point],
        bodies: Iterable[RigidBody],
        *,
        name: str = "mechanism",
        vectors: Iterable[UnitVector] = (),
        joints: Iterable[Joint] = (),
        added: Iterable[Added] = (),
        racks: Iterable[Rack] = (),
        springs: Iterable[Spring] = (),
        dampers: Iterable[Damper] = (),
        loads: Iterable[Load] = (),
        gravity: Sequence[float] = (),
        sensors: Iterable[Sensor] = (),
        rotors: Iterable[Rotor] = (),
    ) -> Mechanism:
        """Check the description whole. The dimension is that of the points; gravity defaults to none."""
        from veridyn.model.natural_check import check_mechanism

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
        )
        faults = check_mechanism(made)
        if faults:
            raise ModelError(faults, name)
        return made

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the n coordinates, in order: "P.x", "u.z", "phi"."""
        moving = [e.name for e in (*self.points, *self.vectors) if not e.fixed]
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
                Fault(
                    f"there is no coordinate '{coordinate}'.",
                    where=self.name,
                    hint=did_you_mean(coordinate, self.coordinates),
                )
            ) from None

    def unit_of(self, coordinate: str) -> str:
        """The unit of a coordinate by name: components of unit vectors have none."""
        if any(a.name == coordinate for a in self.added if isinstance(a, Angle)):
            return "rad"
        return "1" if coordinate.partition(".")[0] in {v.name for v in self.vectors} else "m"

    def force_unit(self, name: str) -> str:
        """The unit of a load by name, or of the force on a coordinate."""
        load = next((load for load in self.loads if load.name == name), None)
        if isinstance(load, Force | Torque):
            return "N" if isinstance(load, Force) else "N*m"
        return "N" if self.unit_of(name if load is None else load.coordinate) == "m" else "N*m"

    def body(self, name: str) -> RigidBody:
        """A body by name."""
        for b in self.bodies:
            if b.name == name:
                return b
        raise ModelError(
            Fault(
                f"there is no body '{name}'.",
                where=self.name,
                hint=did_you_mean(name, [b.name for b in self.bodies]),
            )
        )
