"""A machine, described once: a graph of bodies and joints, from which every formulation is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import ModelError, did_you_mean
from veridyn.lazy import above
from veridyn.model.car import CarDescription, car_link, car_parameters, car_with
from veridyn.model.check import check_graph, check_motion, check_prescribed, formulation_fault
from veridyn.model.controller import Controlled, Controller, check_controllers
from veridyn.model.coordinates import Coordinates, Rows, coordinates_of
from veridyn.model.elements.element import Element
from veridyn.model.graph import (
    GRAVITY,
    Body,
    Formulation,
    Loop,
    MachineGraph,
    PointDescription,
    joint_of_loop,
    joints_of_bodies,
    links_of,
)
from veridyn.model.link import Joint, Link
from veridyn.model.load import Load, Transmission
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import Acted, described_parameters, replaced
from veridyn.model.parameters import ParameterSet, Uncertainty
from veridyn.model.place import Assembly
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import INERTIAL

__all__ = ["Joint", "Link", "Machine"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Machine(MachineGraph, Acted, Controlled):
    """A machine as a user describes it; made by :meth:`build`, which checks it whole.

    It does not know how it is computed: :mod:`veridyn.mechanics.formulation` makes the form that its `formulation` asks for, a tree with
    cut joints or points and unit vectors, and keeps it. What that cannot carry is refused by name when the machine is made.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], elements=[vd.elements.damper("hinge", 0.2)], dimension=2)
    >>> pendulum.coordinates, pendulum.parameters.names[-1]
    (('hinge',), 'h_hinge')
    """

    @classmethod
    def build(
        cls,
        links: Iterable[Link],
        joints: Iterable[Joint],
        *,
        name: str = "machine",
        elements: Iterable[Element] = (),
        loads: Iterable[Load] = (),
        sensors: Iterable[Sensor] = (),
        controllers: Iterable[Controller] = (),
        prescribed: Iterable[str] = (),
        parameters: ParameterSet | None = None,
        transmission: Transmission | None = None,
        assembly: Assembly | None = None,
        gravity: ArrayLike | None = None,
        dimension: int = 3,
        formulation: Formulation = "tree",
        description: PointDescription | None = None,
        car: CarDescription | None = None,
    ) -> Machine:
        """Check a description whole and make the machine.

        Parameters
        ----------
        links : the bodies.
        joints : the joints between frames on them, or on "ground".
        elements : springs, dampers, friction, motor inertias and so on, on coordinates or between places.
        loads, sensors : what acts and what measures.
        controllers : the control laws of its own drives, one for a coordinate.
        prescribed : names of coordinates whose motion is an input.
        parameters : values, typical sizes, states and ties; by default those that links and elements give.
        assembly : where the machine stands when it is put together.
        gravity : (3,) m/s^2 in the ground's axes; by default along −z, in the plane along −y.
        dimension : 2 for a planar machine, which moves in the ground's x-y plane.
        formulation : "tree" or "natural", what is meant by default; "single_track" of a car, which
            :func:`~veridyn.model.single_track.car_machine` makes of a few numbers.

        Returns
        -------
        Machine
        """
        down = (0.0, -9.81, 0.0) if dimension == 2 else GRAVITY
        machine = cls(
            name=name,
            links=tuple(links),
            joints=tuple(joints),
            elements=tuple(elements),
            loads=tuple(loads),
            sensors=tuple(sensors),
            prescribed=tuple(prescribed),
            transmission=transmission,
            assembly=assembly or Assembly(),
            gravity=np.array(down if gravity is None else gravity, dtype=np.float64),
            dimension=dimension,
            formulation=formulation,
            description=description,
            car=car,
            stated=parameters,
        )
        faults = check_graph(machine)
        if faults:
            raise ModelError(faults, name)
        return _checked(machine).with_controllers(controllers)

    @classmethod
    def of_bodies(
        cls,
        bodies: Iterable[Body],
        *,
        name: str = "machine",
        base: Literal["fixed", "free"] = "fixed",
        gravity: ArrayLike = GRAVITY,
        inertia: Mapping[str, ArrayLike] | None = None,
        elements: Iterable[Element] = (),
        transmission: Transmission | None = None,
        loops: Iterable[Loop] = (),
        assembly: Assembly | None = None,
        sensors: Iterable[Sensor] = (),
        loads: Iterable[Load] = (),
        prescribed: Iterable[str] = (),
        formulation: Formulation = "tree",
    ) -> Machine:
        """Make the machine of a table of bodies, each with the joint that carries it, as tables of Denavit and Hartenberg list them.

        Parameters that are not listed are those of :meth:`build`.

        Parameters
        ----------
        bodies : the rows of the table. The first body of a free `base` floats, all others have an antecedent.
        inertia : body name → ten numbers XX XY XZ YY YZ ZZ MX MY MZ M; a real body that is not named has unknown inertia.
        loops : joints at which closed loops are cut open.

        Examples
        --------
        >>> import veridyn as vd
        >>> arm = vd.Machine.of_bodies([vd.model.Body("upper"), vd.model.Body("lower", "upper", placement=vd.spatial.MDH(d=0.5))])
        >>> arm.coordinates
        ('upper', 'lower')
        """
        rows, cuts = tuple(bodies), tuple(loops)
        return cls.build(
            links_of(rows, inertia or {}, name),
            [*joints_of_bodies(rows, base, [c.name for c in cuts]), *map(joint_of_loop, cuts)],
            name=name,
            elements=elements,
            loads=loads,
            sensors=sensors,
            prescribed=prescribed,
            transmission=transmission,
            assembly=assembly,
            gravity=gravity,
            formulation=formulation,
        )

    @cached_property
    def described(self) -> Coordinates:
        """Its coordinates and rows as the description gives them, in whichever formulation it is computed."""
        return coordinates_of(self)

    @property
    def parameters(self) -> ParameterSet:
        """Its parameters in the order of the regressor's columns."""
        return self._parameters

    @cached_property
    def _parameters(self) -> ParameterSet:
        if self.stated is not None:
            return self.stated
        return described_parameters(self.described, self.elements) if self.car is None else car_parameters(self.car)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the joint coordinates, in order."""
        return self.described.names

    @property
    def n(self) -> int:
        """The number of joint coordinates."""
        return len(self.coordinates)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies, in order."""
        return tuple(link.name for link in self.links)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in order."""
        return tuple(joint.name for joint in self.joints)

    @property
    def element_names(self) -> tuple[str, ...]:
        """Names of the elements' parameters, in order."""
        return tuple(e.parameter_name for e in self.elements)

    @property
    def coordinate_kinds(self) -> tuple[str, ...]:
        """'turning' or 'sliding' for each joint coordinate."""
        return tuple(c.kind for c in self.described.all)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Coordinate → "turning" or "sliding"; those that a user added to points included."""
        return self.described.kinds

    @property
    def rows(self) -> tuple[str, ...]:
        """All rows, in order: fx fy fz mx my mz of a free base, then one for each coordinate."""
        return self.described.rows

    @property
    def base(self) -> Literal["fixed", "free"]:
        """ "fixed" or "free"."""
        return self.described.base

    @property
    def closed(self) -> bool:
        """Whether its joints form loops."""
        return bool(self.described.looped)

    @property
    def root(self) -> str:
        """The body of a free base, or ""."""
        return self.described.root

    @property
    def actuated(self) -> tuple[bool, ...]:
        """Whether each coordinate has a motor."""
        return tuple(c.actuated for c in self.described.all)

    @property
    def actuated_coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates with a motor, in order."""
        return tuple(c.name for c in self.described.all if c.actuated)

    @cached_property
    def held(self) -> tuple[int, ...]:
        """The numbers of the prescribed coordinates, in order."""
        return tuple(k for k, c in enumerate(self.coordinates) if c in self.prescribed)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """The numbers of the coordinates that have an equation of their own: all of an open machine; the actuated ones and those
        outside every loop."""
        return tuple(self.coordinates.index(c) for c in self.described.independent)

    @cached_property
    def turns(self) -> Array:
        """For each coordinate, the largest ratio by which it turns a joint: an angle is at most this times the coordinate."""
        return np.array([self.described.turns[c] for c in self.coordinates])

    @property
    def shares_coordinates(self) -> bool:
        """Whether one coordinate moves several joints."""
        return self.described.shared

    @property
    def cut_joints(self) -> tuple[Joint, ...]:
        """The joints at which its loops are cut open."""
        return tuple(joint for joint in self.described.spanning.cut if joint.kind != "floating")

    @cached_property
    def columns(self) -> tuple[tuple[str, int], ...]:
        """For each parameter, (body, 0..9) of an inertial one or ("", e) for element e."""
        real = [name for name in self.described.links if self.by_name[name].real]
        return (*((name, k) for name in real for k in range(10)), *(("", e) for e in range(len(self.elements))))

    def acting_on(self, row: str) -> frozenset[str]:
        """The coordinates whose equations of the machine cut open enter a row, by name."""
        return frozenset(self.described.feeding(row) if row in self.coordinates else [row])

    def check_motion(self, motion: Motion) -> None:
        """Refuse a motion that is not one of this machine."""
        check_motion(self, motion)

    def select_rows(self, rows: Rows) -> tuple[int, ...]:
        """The numbers of rows by word or name; see :meth:`~veridyn.model.coordinates.Coordinates.select_rows`."""
        return self.described.select_rows(rows)

    def with_parameters(self, values: ParameterSet | Mapping[str, float] | ArrayLike) -> Machine:
        """The same machine with other parameters: its links and elements have them in every formulation.

        What was known of their uncertainty does not go with it.
        """
        new = values if isinstance(values, ParameterSet) else self.parameters.replacing(values)
        if self.car is not None:
            return _car_with(self, self.car, new)
        by_name = dict(zip(new.names, new.values.tolist(), strict=True))
        links = [_with_ten(k, [by_name[k.parameter(s)] for s in INERTIAL] if k.real else []) for k in self.links]
        elements = [_with_value(e, by_name) for e in self.elements]
        made = replace(self, links=tuple(links), elements=tuple(elements), stated=new, uncertainty=None)
        made.shaped_as(self)
        return made

    def with_uncertainty(self, uncertainty: Uncertainty | None) -> Machine:
        """The same machine with a covariance of its parameters and of constants in the laws of its elements, or without one."""
        constants = {c.name for c in self.constants}
        for name in uncertainty.names if uncertainty is not None else ():
            if name not in constants:
                self.parameters.index(name)  # refuses a name that is no parameter
        made = replace(self, uncertainty=uncertainty)
        made.shaped_as(self)
        return made

    def with_elements(self, elements: Iterable[Element]) -> Machine:
        """The same machine with these elements besides its own; values, states and typical sizes of the others stay."""
        made = replace(self, elements=(*self.elements, *elements))
        if self.stated is None:
            return _checked(made)
        own, new = self.stated, described_parameters(made.described, made.elements)
        return _checked(replace(made, stated=own.extended(new)))

    def without_elements(self, names: Iterable[str]) -> Machine:
        """The same machine without these elements, by the names of their parameters."""
        gone = {names} if isinstance(names, str) else set(names)
        for name in gone - set(self.element_names):
            hint = did_you_mean(name, self.element_names)
            raise ModelError(f"there is no element '{name}'.", where=self.name, hint=hint)
        kept = [e for e, name in zip(self.elements, self.element_names, strict=True) if name not in gone]
        known = None if self.uncertainty is None else self.uncertainty.without(tuple(gone))
        return replace(self, elements=tuple(kept), stated=self.parameters.without(gone), uncertainty=known)

    def with_body(self, link: Link, joint: Joint) -> Machine:
        """The same machine with one more body and the joint that carries it; values, states and typical sizes of the others stay."""
        made = replace(self, links=(*self.links, link), joints=(*self.joints, joint))
        hollow = [replace(k, inertia=None) for k in self.links]  # a fit may give them values of no physical body
        faults = check_graph(replace(made, links=(*hollow, link)))
        if faults:
            raise ModelError(faults, self.name)
        own, new = self.parameters, described_parameters(made.described, made.elements)
        return _checked(replace(made, stated=new.taking(own)))

    def body(self, name: str) -> Link:
        """A body by name; one that is not there is refused."""
        if name not in self.by_name:
            hint = did_you_mean(name, self.body_names)
            raise ModelError(f"there is no body '{name}'.", where=self.name, hint=hint)
        return self.by_name[name]

    def with_constants(self, values: Mapping[str, float]) -> Machine:
        """The same machine with other constants of its elements, by name ("fst_q1.speed")."""
        changed = replaced(self.elements, self.constants, values, self.name)
        new = dict(zip(self.element_names, changed, strict=True))
        touched = {name.rpartition(".")[0] for name in values}
        elements = (new[n] if n in touched else e for n, e in zip(self.element_names, self.elements, strict=True))
        made = replace(self, elements=tuple(elements))
        made.shaped_as(self)
        return made

    def with_prescribed(self, names: Iterable[str]) -> Machine:
        """The same machine with these coordinates prescribed, and no others."""
        chosen = (names,) if isinstance(names, str) else tuple(names)
        faults = check_prescribed(chosen, self.coordinates, self.actuated_coordinates)
        if faults:
            raise ModelError(faults, self.name)
        return replace(self, prescribed=chosen)

    def with_sensors(self, sensors: Iterable[Sensor]) -> Machine:
        """The same machine with these sensors, and no others."""
        return _checked(replace(self, sensors=tuple(sensors)))

    def with_controllers(self, controllers: Iterable[Controller]) -> Machine:
        """The same machine with these controllers, and no others."""
        new = tuple(controllers)
        if not new and not self.controllers:
            return self
        faults = check_controllers(new, self.kinds, self.actuated_coordinates, self.elements, self.prescribed)
        if faults:
            raise ModelError(faults, self.name)
        made = replace(self, controllers=new)
        made.shaped_as(self)
        return made

    def with_formulation(self, formulation: Formulation) -> Machine:
        """The same machine in another formulation, refused by name where that cannot carry it."""
        fault = formulation_fault(formulation)
        if fault is not None:
            raise ModelError(fault, self.name)
        return self if formulation == self.formulation else _checked(self.formulated(formulation))

    def formulated(self, formulation: Formulation) -> Machine:
        """The same machine in another formulation, whether or not that can carry it; the forms that were made of it go along."""
        made = replace(self, formulation=formulation)
        vars(made)["forms"] = self.forms  # they are made of what both have in common
        vars(made)["shapes"] = self.shapes
        return made

    def evaluator(self, parameters: ArrayLike | None = None, *, friction_speed: float = 0.0) -> Any:
        """Inverse and forward dynamics, regressor and mass matrix of one state a call: a :class:`veridyn.dynamics.Evaluator`."""
        return above("veridyn.mechanics.tree.dynamics.evaluator", "Evaluator")(
            self, parameters, friction_speed=friction_speed
        )

    def __repr__(self) -> str:
        parts = [f"{len(self.links)} bodies", f"{len(self.joints)} joints", f"formulation {self.formulation!r}"]
        return f"Machine({self.name!r}, {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_machine")(self)._repr_html_()


def _checked(machine: Machine) -> Machine:
    """The machine, refused by name where its formulation cannot carry it."""
    above("veridyn.mechanics.formulation", "check_formulation")(machine)
    return machine


def _car_with(machine: Machine, car: CarDescription, new: ParameterSet) -> Machine:
    """A car with other parameters: its few numbers and its body have them."""
    described = car_with(car, new)
    plain = bool(np.array_equal(new.typical, car_parameters(described).typical))
    stated = None if plain else new
    return replace(machine, car=described, links=(car_link(new),), stated=stated, uncertainty=None)


def _with_ten(link: Link, ten: list[float]) -> Link:
    if not link.real:
        return link
    x = np.array(ten)
    return replace(link, inertia=None if np.isnan(x).all() else x)


def _with_value(element: Element, values: Mapping[str, float]) -> Element:
    value = values[element.parameter_name]
    same = value == element.value or (np.isnan(value) and np.isnan(element.value))
    return element if same else replace(element, value=value)
