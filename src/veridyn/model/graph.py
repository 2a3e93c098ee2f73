"""A machine as a graph: bodies, joints between frames on them, and everything that acts and measures. Data only.

:class:`~veridyn.model.machine.Machine` is the graph with its checks, names and parameters. A machine may also be described by a table of
bodies, each a row: the body, the one that carries it, where its frame sits, and the joint between them; the table becomes a graph.

Where a user has written points, elements, sensors and loads are put at places on bodies, in space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, Fault, Faults, Limit, ModelError, did_you_mean, part_at
from veridyn.model.car import CarDescription
from veridyn.model.controller import Controller
from veridyn.model.elements.element import Element
from veridyn.model.link import End, Joint, JointKind, Link
from veridyn.model.load import Drive, Force, Load, Torque, Transmission
from veridyn.model.parameters import ParameterSet, Uncertainty
from veridyn.model.place import GROUND, Assembly, Attachment, Marker, PointRef, numbers, parameter_name
from veridyn.model.point_parts import Added, Combination, Damper, Point, Rack, RigidBody, Spring, UnitVector
from veridyn.model.point_parts import MechanismJoint as PointJoint
from veridyn.model.sensor import ON_COORDINATE, Sensor
from veridyn.spatial.rotations import MDH, Placement

GRAVITY = (0.0, 0.0, -9.81)  # m/s^2, in the ground's axes
Formulation = Literal["tree", "natural", "single_track"]
FORMULATIONS: tuple[str, ...] = get_args(Formulation)
BodyJoint = Literal["turning", "sliding", "fixed"]
NO_JOINTS = Limit(
    "its speed is an input, and its tyres answer to slip angles of axles, not to positions of bodies, so that there are no joints that "
    "inertias, motors and loops could be computed of",
    "Such a car can be identified and observed; for inverse dynamics describe bodies, joints and tyres.",
)
SIGMA: dict[str, int] = {"turning": 0, "sliding": 1, "fixed": 2}  # σ of paper 000, section III.A


@dataclass(frozen=True, eq=False, kw_only=True)
class PointDescription:
    """Points, vectors and added coordinates as a user wrote them, so that they keep their names in natural coordinates.

    `bodies` hold the points and vectors of each link of the same name; their inertia is that of the links. `joints` are those that are
    not made by shared points and vectors. `without_tree`: why no tree has these joints, where none has.
    """

    points: tuple[Point, ...]
    bodies: tuple[RigidBody, ...]
    vectors: tuple[UnitVector, ...] = ()
    joints: tuple[PointJoint, ...] = ()
    added: tuple[Added, ...] = ()
    racks: tuple[Rack, ...] = ()
    without_tree: tuple[Fault, ...] = ()

    def owner(self, element: str) -> str:
        """The body that has a point or vector: the ground where it is fixed, else the first in order."""
        if any(e.fixed for e in (*self.points, *self.vectors) if e.name == element):
            return GROUND
        return next((b.name for b in self.bodies if element in b.elements), GROUND)


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineGraph:
    """Bodies, joints, elements, loads, sensors and controllers of one machine.

    `gravity` (3,) in the ground's axes. `dimension` 2: everything moves in the plane of the ground's x and y, and every body's z is
    normal to it. `prescribed`: coordinates whose motion is an input. `description`: the points of natural coordinates, where a user
    wrote them; `car`: the few numbers of a car, in the formulation that takes them. `stated`: values, typical sizes, states and ties of
    the parameters where they differ from those of links and elements.
    `uncertainty`: the covariance of the parameters, where a fit or the model file gives one.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    elements: tuple[Element, ...] = ()
    loads: tuple[Load, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    controllers: tuple[Controller, ...] = ()
    prescribed: tuple[str, ...] = ()
    transmission: Transmission | None = None
    assembly: Assembly = field(default_factory=Assembly)
    gravity: Array = field(default_factory=lambda: np.zeros(3))
    dimension: int = 3
    formulation: Formulation = "tree"
    description: PointDescription | None = None
    car: CarDescription | None = None
    stated: ParameterSet | None = None
    uncertainty: Uncertainty | None = None

    def __getstate__(self) -> dict[str, object]:
        """The description without what was computed from it."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def forms(self) -> dict[str, object]:
        """The forms of it that formulations have made; it is frozen, so that what is computed from it stays true."""
        return {}

    @cached_property
    def shapes(self) -> Mapping[str, object]:
        """Forms of a machine that differs from it in values of parameters and constants alone: a formulation need not make its own anew."""
        return {}

    def shaped_as(self, other: MachineGraph) -> None:
        """Take over the shapes of a machine that differs in values of parameters and constants alone."""
        vars(self)["shapes"] = {**other.shapes, **other.forms}

    @cached_property
    def by_name(self) -> Mapping[str, Link]:
        """Links by name."""
        return MappingProxyType({link.name: link for link in self.links})

    def attachment(self, end: End) -> Attachment:
        """The frame that an end of a joint stands for; the names exist, which the checks have seen to."""
        if isinstance(end, Attachment):
            return end
        if end == GROUND or end in self.by_name:
            return Attachment(end)
        body, _, frame = end.rpartition(".")
        return Attachment(body, self.by_name[body].frames[frame])

    def ends(self, joint: Joint) -> tuple[Attachment, Attachment]:
        return self.attachment(joint.a), self.attachment(joint.b)

    def need_joints(self, asked: str) -> None:
        """Refuse what is `asked` for and made of joints, which a car of a few numbers has not."""
        if self.car is not None:
            raise CapabilityError("single_track", asked, *NO_JOINTS, where=self.name)

    @property
    def without_tree(self) -> tuple[Fault, ...]:
        """Why no tree carries it, where none does: what the points of natural coordinates say and joints cannot."""
        description, faults = self.description, Faults()
        if description is None:
            return ()
        faults.extend(description.without_tree)
        for rack in description.racks:
            faults.add("a tree has no racks.", where=part_at("rack", rack.name), hint="Use formulation: natural.")
        joined = {c for joint in self.joints for c in joint.coordinate_names}
        places = [f"{e.name}.{axis}" for e in (*description.points, *description.vectors) for axis in "xyz"]
        for name in (*(a.name for a in description.added), *places):
            if name in self.needed and name not in joined:
                faults.add(
                    "it is no coordinate of a joint, and an element, load or sensor uses it.",
                    where=part_at("coordinate", name),
                    expected="an angle between two bodies at their turning joint, or a distance along a sliding one",
                    hint="Use formulation: natural.",
                )
        return tuple(faults.found)

    @cached_property
    def needed(self) -> frozenset[str]:
        """Coordinates that motors, elements, loads, sensors or prescribed motions use, and those that share a name."""
        names: set[str] = set(self.prescribed)
        for e in self.elements:
            names |= {*e.on, *e.named_coordinates}
        names |= {load.coordinate for load in self.loads if isinstance(load, Drive)}
        names |= {c.on for c in self.controllers}
        names |= {str(s.on) for s in self.sensors if s.kind in ("coordinate", "rate")}
        names |= set(self.transmission.joints if self.transmission else ())
        for joint in self.joints:
            names |= {c for c, on in zip(joint.coordinate_names, joint.motors, strict=False) if on}
        return frozenset(names)


def unique(wanted: str, taken: Iterable[str], *words: str) -> str:
    """`wanted`, or where that is taken the first of wanted_word and wanted_2, wanted_3, … that is not."""
    names = taken if isinstance(taken, Set) else set(taken)
    tries = [wanted, *(f"{wanted}_{word}" for word in words)]
    number = 2
    while True:
        for name in tries:
            if name not in names:
                return name
        tries = [f"{wanted}_{number}"]
        number += 1


@dataclass(frozen=True)
class Body:
    """One row of the description: a body, its antecedent, where its frame sits, and the joint along that frame's z axis.

    `antecedent` None or "ground" stands for the ground; the root of a free tree has none. A `real` body has ten inertial
    parameters, a virtual one has none (it only carries a frame or a degree of freedom). Joints that name the same
    `coordinate` share it: each moves by `ratio` times the coordinate. A passive joint (μ = 0) has no motor, so its force is
    zero but for its elements. `label` is what follows XX in the names of the parameters; by default the body's name.
    """

    name: str
    antecedent: str | None = GROUND
    joint: BodyJoint = "turning"
    placement: MDH | Placement = MDH()
    _: KW_ONLY
    actuated: bool = True
    real: bool = True
    coordinate: str = ""
    ratio: float = 1.0
    label: str = ""

    @property
    def sigma(self) -> int:
        """σ: 0 turning, 1 sliding, 2 fixed."""
        return SIGMA[self.joint]

    @property
    def coordinate_name(self) -> str:
        """The coordinate's own name where given, else the body's: body '7' has q7, body 'elbow' has elbow."""
        if self.joint == "fixed":
            return ""
        return self.coordinate or (f"q{self.name}" if self.name[:1].isdigit() else self.name)

    def parameter(self, symbol: str) -> str:
        """The name of one of its parameters: ZZ6 for body '6', ZZ_forearm for body 'forearm'."""
        return parameter_name(symbol, self.label or self.name)


@dataclass(frozen=True)
class Loop:
    """A cut joint between two frames: `joint` is one of :data:`CUTS`; `length` (m) belongs to "distance" alone.

    A cut joint has no motor, no friction and no coordinate. Cut a loop where that is so; a motor or friction stays with a joint of
    the tree.
    """

    name: str
    joint: str
    first: Attachment
    second: Attachment
    length: float = 0.0

    @property
    def where(self) -> str:
        return part_at("loop", self.name)


def links_of(bodies: Iterable[Body], inertia: Mapping[str, ArrayLike], machine: str) -> list[Link]:
    """The links of a table; `inertia`: body → its ten numbers, unknown where it is not named."""
    rows = list(bodies)
    real = [b.name for b in rows if b.real]
    faults = Faults()
    for name in inertia:
        if name not in real:
            hint = did_you_mean(name, real)
            faults.add("there is no body of that name that has a mass.", where=part_at("inertia", name), hint=hint)
    faults.raise_if_any(ModelError, machine)
    return [Link(name=b.name, inertia=inertia.get(b.name), real=b.real, label=b.label) for b in rows]


def joints_of_bodies(bodies: Iterable[Body], base: str, taken: Iterable[str] = ()) -> list[Joint]:
    """The joints that carry the bodies of a table; each has its body's name unless that is `taken` by another joint.

    The first body of a free `base` floats.
    """
    joints: list[Joint] = []
    used = set(taken)
    for j, b in enumerate(bodies):
        name = unique(b.name, used, "joint")
        used.add(name)
        joints.append(_joint(b, name, floats=base == "free" and j == 0))
    return joints


def joint_of_loop(loop: Loop) -> Joint:
    """The joint at which a loop is cut open."""
    kind: JointKind = loop.joint  # pyright: ignore[reportAssignmentType]
    return Joint(name=loop.name, kind=kind, a=loop.first, b=loop.second, cut="yes", length=loop.length)


def _joint(b: Body, name: str, floats: bool) -> Joint:
    if floats:
        return Joint(name=name, kind="floating", a=Attachment(GROUND, b.placement), b=b.name, cut="no")
    own = b.coordinate_name
    explicit = b.coordinate or (own if own and name != b.name else "")
    return Joint(
        name=name,
        kind=b.joint,
        a=Attachment(b.antecedent or GROUND, b.placement),
        b=b.name,
        coordinates=(explicit,) if explicit else (),
        ratio=b.ratio if b.joint != "fixed" else 1.0,
        actuated=b.actuated,
        cut="no",
    )


def placed_element(graph: MachineGraph, acting: Element | Spring | Damper) -> Element:
    """An element on coordinates or between places; springs and dampers between points keep their names."""
    if isinstance(acting, Element):
        return acting
    kind, value = ("spring", acting.stiffness) if isinstance(acting, Spring) else ("damper", acting.coefficient)
    constants = {"rest": acting.rest} if isinstance(acting, Spring) and acting.rest else {}
    if isinstance(acting.on, str):
        return Element(kind=kind, on={acting.on: 1.0}, value=value, name=acting.name, constants=constants)
    if isinstance(acting.on, Combination):
        return Element(kind=kind, on=dict(acting.on.weights), value=value, name=acting.name, constants=constants)
    a, b = (_marker(graph, end) for end in acting.on)
    return Element(kind=kind, on={}, value=value, name=acting.name, between=(a, b), constants=constants)


def placed_sensor(graph: MachineGraph, sensor: Sensor) -> Sensor:
    """The sensor on its body; one on a planar machine reads x and y, and turns about z."""
    if sensor.kind in ON_COORDINATE:
        return sensor
    on = _place(graph, sensor.on)
    to = None if sensor.to is None else _place(graph, sensor.to)
    axes = sensor.axes
    if graph.dimension == 2 and not axes and sensor.kind != "distance":
        axes = "z" if sensor.kind == "gyroscope" else "xy"
    return replace(sensor, on=on, to=to, axes=axes)


def placed_load(graph: MachineGraph, load: Load) -> Load:
    """The load on its body, in space."""
    if isinstance(load, Drive):
        return load
    value = np.array(numbers(load.value))
    if isinstance(load, Force):
        return replace(load, at=_place(graph, load.at), value=numbers(_in_space(value)))
    assert isinstance(load, Torque)
    return replace(load, value=(0.0, 0.0, *numbers(value)) if graph.dimension == 2 else load.value)


def _in_space(x: np.ndarray) -> np.ndarray:
    return np.append(x, np.zeros(3 - len(x)))


def _place(graph: MachineGraph, ref: PointRef) -> PointRef:
    """A place by body and position: the name of a body stays, that of a point becomes a marker on the first body that has it."""
    if not isinstance(ref, Marker) and ref in graph.by_name:
        return ref
    return _marker(graph, ref)


def _marker(graph: MachineGraph, ref: PointRef) -> Marker:
    if isinstance(ref, Marker):
        if graph.dimension == 3:
            return ref
        axis = np.array(ref.axis)
        side = numbers((-axis[1], axis[0], 0.0)) if ref.axis else ()
        return Marker(
            ref.body, numbers(_in_space(np.array(ref.at))), numbers(_in_space(axis)) if ref.axis else (), side
        )
    if graph.description is None or ref in graph.by_name:
        return Marker(ref, (0.0, 0.0, 0.0))
    body = graph.description.owner(ref)
    points = {p.name: p.at for p in graph.description.points}
    at = points[ref] if body not in graph.by_name else _local(graph, body, ref)
    return Marker(body, numbers(_in_space(np.array(at))))


def _local(graph: MachineGraph, body: str, point: str) -> np.ndarray:
    assert graph.description is not None
    return np.array(next(b for b in graph.description.bodies if b.name == body).points[point])


def point_at(graph: MachineGraph, place: Marker) -> PointRef:
    """The point that a user wrote at a place, by name; else the place, with as many numbers as the machine has dimensions.

    The inverse of what :func:`placed_element` makes of an end of a spring or damper.
    """
    for point in graph.description.points if graph.description is not None else ():
        if _marker(graph, point.name) == place:
            return point.name
    if graph.dimension == 3 or len(place.at) == 2:
        return place
    return Marker(place.body, place.at[:2], place.axis[:2])
