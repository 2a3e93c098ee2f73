"""What a mechanism in natural coordinates is made of: points, unit vectors, rigid bodies, joints, added coordinates and what acts on them.

Bodies that share a point are joined by a spherical joint (a pin in the plane), bodies that share a point and a vector by a turning
joint, without an equation. All other joints connect two :class:`~veridyn.model.place.Marker`. A rigid body is described by its mass,
centre of mass and inertia; :func:`ten_of` and :func:`rigid_body` convert them to the ten inertial parameters and back. :func:`held` gives
the bodies in whose frames a direction does not move.

Reference: chapter 2 of paper 003; García de Jalón and Bayo, Kinematic and Dynamic Simulation of Multibody Systems, 1994.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array, Record
from veridyn.errors import ModelError, part_at
from veridyn.model.elements.element import Element
from veridyn.model.load import Load
from veridyn.model.place import GROUND, Marker, Numbers, PointRef, numbers
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import cross_matrix, from_centre, inertia_matrix

JointKind = Literal["spherical", "turning", "sliding", "cylindrical", "universal", "inline", "inplane", "distance"]
# vector, from point to point, a marker's axis, components
DirectionRef = str | tuple[str, str] | Marker | Sequence[float]
ROUNDING = 1e-9  # of a moment of inertia: a negative one about the centre of mass that is smaller is none
COLLINEAR_SINE = 1e-9  # sine below which the centre of mass is on the line of two points


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
class RigidBody(Record):
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


@dataclass(frozen=True)
class MechanismJoint:
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
class Elevation:
    """An added angle (rad) of the direction `of` above the plane with this `normal`: sin φ = of·normal, both unit vectors, |φ| < π/2."""

    name: str
    of: DirectionRef
    normal: DirectionRef


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
class Combination:
    """c = Σ aᵢ qᵢ of added coordinates by name, on which a spring, damper or motor acts: the twist of an anti-roll bar."""

    weights: tuple[tuple[str, float], ...]


ActsOn = str | Combination | tuple[PointRef, PointRef]


@dataclass(frozen=True)
class Spring:
    """A spring on an added coordinate, a combination of them, or between two places; `rest` is where it pulls nothing. N/m or N*m/rad."""

    name: str
    on: ActsOn
    stiffness: float
    rest: float = 0.0


@dataclass(frozen=True)
class Damper:
    """A damper on an added coordinate, a combination of them, or between two places, N*s/m or N*m*s/rad."""

    name: str
    on: ActsOn
    coefficient: float


@dataclass(frozen=True)
class Rotor:
    """The inertia of a motor, as seen from an added coordinate or a combination of them: ½ I ċ² of kinetic energy, kg*m^2 or kg."""

    name: str
    on: str | Combination
    inertia: float

    @property
    def weights(self) -> dict[str, float]:
        """c = Σ aᵢ qᵢ: coordinate → aᵢ."""
        return {self.on: 1.0} if isinstance(self.on, str) else dict(self.on.weights)


Added = Angle | Elevation | Distance


class MechanismParts(Protocol):
    """The points, vectors, bodies and joints of a machine in natural coordinates, and what acts on them and reads them."""

    @property
    def dimension(self) -> int: ...
    @property
    def points(self) -> tuple[Point, ...]: ...
    @property
    def vectors(self) -> tuple[UnitVector, ...]: ...
    @property
    def bodies(self) -> tuple[RigidBody, ...]: ...
    @property
    def joints(self) -> tuple[MechanismJoint, ...]: ...
    @property
    def added(self) -> tuple[Added, ...]: ...
    @property
    def racks(self) -> tuple[Rack, ...]: ...
    @property
    def springs(self) -> tuple[Spring, ...]: ...
    @property
    def dampers(self) -> tuple[Damper, ...]: ...
    @property
    def loads(self) -> tuple[Load, ...]: ...
    @property
    def gravity(self) -> Numbers: ...
    @property
    def sensors(self) -> tuple[Sensor, ...]: ...
    @property
    def rotors(self) -> tuple[Rotor, ...]: ...
    @property
    def tyres(self) -> tuple[Element, ...]: ...
    @property
    def laws(self) -> tuple[Element, ...]: ...
    @property
    def prescribed(self) -> tuple[str, ...]: ...


def ten_of(body: RigidBody, dimension: int) -> Array:
    """XX XY XZ YY YZ ZZ MX MY MZ M about the origin of the body's frame, in its axes.

    A planar body has one moment of inertia; its mass is taken to lie in the plane: along the line of its points where it has two with
    the centre between them, as a rod, and alike in all directions of the plane otherwise. No planar motion depends on the choice.
    """
    J = np.asarray(body.inertia, dtype=np.float64)
    if dimension == 3:
        centre = np.array(body.centre) if body.centre else np.zeros(3)
        return from_centre(body.mass, centre, np.zeros(6) if J.shape == () else J)
    c = np.array(body.centre) if body.centre else np.zeros(2)
    about = float(J) * np.diag([0.5, 0.5, 1.0])
    if len(body.points) == 2 and not body.vectors:
        first, last = (np.array(at) for at in body.points.values())
        d, arm = last - first, c - first
        length, cross = float(np.linalg.norm(d)), float(d[0] * arm[1] - d[1] * arm[0])
        if length > 0.0 and abs(cross) <= COLLINEAR_SINE * length * max(length, float(np.linalg.norm(arm))):
            u = np.append(d / length, 0.0)
            about = float(J) * (np.eye(3) - np.outer(u, u))
    return from_centre(body.mass, np.append(c, 0.0), about)


def rigid_body(
    name: str, points: Mapping[str, Array], vectors: Mapping[str, Array], ten: Array, dimension: int
) -> RigidBody:
    """A rigid body with ten parameters, its inertia taken about its centre of mass."""
    mass = float(ten[9])
    if mass == 0.0 and not np.any(ten):
        return RigidBody(name, points, vectors)
    if mass == 0.0 and np.any(ten[6:9]):
        raise ModelError(
            "it has first moments and no mass, so it has no centre of mass.",
            where=part_at("body", name),
            found=f"{ten[6:9].tolist()} kg*m",
            hint="Give it a mass, or use formulation: tree.",
        )
    centre = ten[6:9] / mass if mass != 0.0 else np.zeros(3)
    C = cross_matrix(centre)
    J = np.array(inertia_matrix(ten)) - mass * C.T @ C
    if dimension == 2:
        about = float(J[2, 2])
        rounding = about < 0.0 and -about <= ROUNDING * abs(float(ten[5]))
        return RigidBody(name, points, vectors, mass, numbers(centre[:2]), 0.0 if rounding else about)
    return RigidBody(name, points, vectors, mass, numbers(centre), 0.5 * (J + J.T))


def held(m: MechanismParts, ref: DirectionRef) -> dict[str, Array]:
    """Each body, or the ground, in whose frame the direction does not move, with its components there; a marker's axis is made a unit."""
    if isinstance(ref, Marker):
        axis = np.array(ref.axis)
        return {ref.body: axis / np.linalg.norm(axis)}
    names = (ref,) if isinstance(ref, str) else tuple(ref)
    if not all(isinstance(name, str) for name in names):
        return {GROUND: np.array(ref, dtype=np.float64)}
    fixed = {p.name: p.at for p in m.points if p.fixed} | {v.name: v.along for v in m.vectors if v.fixed}
    frames: dict[str, Mapping[str, ArrayLike]] = {b.name: {**b.points, **b.vectors} for b in m.bodies}
    frames[GROUND] = fixed
    return {body: _between(at, names) for body, at in frames.items() if all(name in at for name in names)}


def _between(at: Mapping[str, ArrayLike], names: Sequence[object]) -> Array:
    first, last = (np.asarray(at[str(name)], dtype=np.float64) for name in (names[0], names[-1]))
    return last - first if len(names) == 2 else last


def length_of(m: MechanismParts, ref: DirectionRef) -> float:
    """The length of a direction that some body holds, or zero where none does."""
    return max((float(np.linalg.norm(x)) for x in held(m, ref).values()), default=0.0)
