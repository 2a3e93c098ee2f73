"""A machine as a graph: bodies, joints between frames on them, and everything that acts and measures. Data only.

:class:`~veridyn.model.machine.Machine` is the graph with its checks, names and parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.model.assembly import Assembly, Attachment
from veridyn.model.car import CarDescription
from veridyn.model.elements.element import Element
from veridyn.model.elements.transmission import Transmission
from veridyn.model.link import End, Joint, Link
from veridyn.model.load import Drive, Load
from veridyn.model.names import GROUND
from veridyn.model.parameters import ParameterSet, Uncertainty
from veridyn.model.point_parts import Added, Point, Rack, RigidBody, UnitVector
from veridyn.model.point_parts import MechanismJoint as PointJoint
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]
GRAVITY = (0.0, 0.0, -9.81)  # m/s^2, in the ground's axes
Formulation = Literal["tree", "natural", "single_track"]
FORMULATIONS: tuple[str, ...] = get_args(Formulation)


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
    """Bodies, joints, elements, loads and sensors of one machine.

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

    @cached_property
    def needed(self) -> frozenset[str]:
        """Coordinates that motors, elements, loads, sensors or prescribed motions use, and those that share a name."""
        names: set[str] = set(self.prescribed)
        for e in self.elements:
            names |= {*e.on, *e.named_coordinates}
        names |= {load.coordinate for load in self.loads if isinstance(load, Drive)}
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
