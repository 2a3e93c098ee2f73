"""A machine, described once: a graph of bodies and joints, from which every formulation is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veridyn.errors import ModelError
from veridyn.lazy import above
from veridyn.model.constants import Constant, ElementState
from veridyn.model.elements import Element
from veridyn.model.graph import Acting, Formulation, MachineGraph, PointDescription
from veridyn.model.link import Joint, Link
from veridyn.model.load import Load
from veridyn.model.loop import Assembly
from veridyn.model.machine_check import check_graph, formulation_fault
from veridyn.model.natural import Mechanism
from veridyn.model.natural_parts import Damper
from veridyn.model.parameters import ParameterSet
from veridyn.model.sensor import Sensor
from veridyn.model.spanning import tree_of
from veridyn.model.transmission import Transmission
from veridyn.model.tree import GRAVITY, Rows, Tree
from veridyn.model.uncertainty import Uncertainty
from veridyn.spatial.inertia import INERTIAL

__all__ = ["Joint", "Link", "Machine"]
NO_TREE = (
    "The machine has no tree, which parameters, regressors, inverse dynamics, identification and excitation need. It can be observed in "
    "natural coordinates, and simulated by a study file."
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Machine(MachineGraph):
    """A machine as a user describes it; made by :meth:`build`, which checks it whole.

    `tree` and `mechanism` are the same machine as the kernels take it: a tree with cut joints, and points and unit vectors. Both are made
    when first used. What one of them cannot carry is refused there by name, except in the machine's own `formulation`, which
    :meth:`build` makes at once.
    """

    @classmethod
    def build(
        cls,
        links: Iterable[Link],
        joints: Iterable[Joint],
        *,
        name: str = "machine",
        elements: Iterable[Acting] = (),
        loads: Iterable[Load] = (),
        sensors: Iterable[Sensor] = (),
        prescribed: Iterable[str] = (),
        parameters: ParameterSet | None = None,
        transmission: Transmission | None = None,
        assembly: Assembly | None = None,
        gravity: ArrayLike | None = None,
        dimension: int = 3,
        formulation: Formulation = "tree",
        description: PointDescription | None = None,
    ) -> Machine:
        """Check a description whole and make the machine.

        Parameters
        ----------
        links : the bodies.
        joints : the joints between frames on them, or on "ground".
        elements : springs, dampers, friction, motor inertias and so on, by coordinates.
        loads, sensors : what acts and what measures.
        prescribed : names of coordinates whose motion is an input.
        parameters : values, typical sizes, states and ties; by default those that links and elements give.
        assembly : where the machine stands when it is put together.
        gravity : (3,) m/s^2 in the ground's axes; by default along −z, in the plane along −y.
        dimension : 2 for a planar machine, which moves in the ground's x-y plane.
        formulation : "tree" or "natural", what is meant by default.

        Returns
        -------
        Machine

        Examples
        --------
        >>> from veridyn.model.machine import Joint, Link, Machine
        >>> rod = Link(name="rod", inertia=[0.33, 0, 0, 0.33, 0, 0, 0, 0, -0.5, 1.0])
        >>> pendulum = Machine.build([rod], [Joint(name="hinge", a="ground", b="rod")], name="pendulum")
        >>> pendulum.coordinates
        ('hinge',)
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
            stated=parameters,
        )
        faults = check_graph(machine)
        if faults:
            raise ModelError(faults, name)
        _ = machine.tree if formulation == "tree" else machine.mechanism
        return machine

    @cached_property
    def tree(self) -> Tree:
        """The machine as a tree with cut joints; refused by name where joint coordinates cannot carry it."""
        try:
            return tree_of(self)
        except ModelError as error:
            if self.formulation != "natural":
                raise
            raise ModelError([replace(fault, hint=NO_TREE) for fault in error.faults], error.source) from error

    @cached_property
    def mechanism(self) -> Mechanism:
        """The machine in natural coordinates."""
        from veridyn.model.points import mechanism_of  # here: most machines are used as trees only

        return mechanism_of(self)

    @property
    def parameters(self) -> ParameterSet:
        """Its parameters in the order of the regressor's columns."""
        return self.tree.parameters

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the joint coordinates, in order."""
        return self.tree.coordinates

    @property
    def n(self) -> int:
        """The number of joint coordinates."""
        return self.tree.n

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
        return tuple(e.parameter_name if isinstance(e, Element) else e.name for e in self.elements)

    @property
    def coordinate_kinds(self) -> tuple[str, ...]:
        """'turning' or 'sliding' for each joint coordinate."""
        return self.tree.coordinate_kinds

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants inside the laws of its elements."""
        return self.tree.constants

    @property
    def states(self) -> tuple[ElementState, ...]:
        """The states that its elements have of their own, in order."""
        return self.tree.states

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that its elements need."""
        return self.tree.signals

    @property
    def rows(self) -> tuple[str, ...]:
        """All rows, in order; see :attr:`~veridyn.model.tree.Tree.rows`."""
        return self.tree.rows

    @property
    def base(self) -> str:
        """ "fixed" or "free"."""
        return self.tree.base

    @property
    def actuated(self) -> tuple[bool, ...]:
        """Whether each coordinate has a motor."""
        return self.tree.actuated

    @property
    def actuated_coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates with a motor, in order."""
        return self.tree.actuated_coordinates

    def select_rows(self, rows: Rows) -> tuple[int, ...]:
        """The numbers of rows by word or name; see :meth:`~veridyn.model.tree.Tree.select_rows`."""
        return self.tree.select_rows(rows)

    def with_parameters(self, values: ParameterSet | Mapping[str, float] | ArrayLike) -> Machine:
        """The same machine with other parameters: its links and elements have them in every formulation.

        What was known of their uncertainty does not go with it.
        """
        new = values if isinstance(values, ParameterSet) else self.parameters.replacing(values)
        by_name = dict(zip(new.names, new.values.tolist(), strict=True))
        bodies = {b.name: b for b in self.tree.bodies}
        links = [
            _with_ten(k, [by_name[bodies[k.name].parameter(s)] for s in INERTIAL] if k.real else []) for k in self.links
        ]
        elements = [_with_value(e, by_name) for e in self.elements]
        return replace(self, links=tuple(links), elements=tuple(elements), stated=new, uncertainty=None)

    def with_uncertainty(self, uncertainty: Uncertainty | None) -> Machine:
        """The same machine with a covariance of its parameters and of constants in the laws of its elements, or without one."""
        constants = {c.name for c in self.constants}
        for name in uncertainty.names if uncertainty is not None else ():
            if name not in constants:
                self.parameters.index(name)  # refuses a name that is no parameter
        return replace(self, uncertainty=uncertainty)

    def with_elements(self, elements: Iterable[Element]) -> Machine:
        """The same machine with these elements besides its own; values, states and typical sizes of the others stay."""
        more = tuple(elements)
        return replace(self, elements=(*self.elements, *more), stated=self.tree.with_elements(more).parameters)

    def without_elements(self, names: Iterable[str]) -> Machine:
        """The same machine without these elements, by the names of their parameters."""
        gone = {names} if isinstance(names, str) else set(names)
        new = self.tree.without_elements(gone).parameters
        kept = [e for e, name in zip(self.elements, self.element_names, strict=True) if name not in gone]
        known = None if self.uncertainty is None else self.uncertainty.without(tuple(gone))
        return replace(self, elements=tuple(kept), stated=new, uncertainty=known)

    def with_constants(self, values: Mapping[str, float]) -> Machine:
        """The same machine with other constants of its elements, by name ("fst_q1.speed")."""
        new = dict(zip(self.element_names, self.tree.with_constants(values).elements, strict=True))
        touched = {name.rpartition(".")[0] for name in values}
        elements = (new[n] if n in touched else e for n, e in zip(self.element_names, self.elements, strict=True))
        return replace(self, elements=tuple(elements))

    def with_prescribed(self, names: Iterable[str]) -> Machine:
        """The same machine with these coordinates prescribed, and no others."""
        return replace(self, prescribed=self.tree.with_prescribed(names).prescribed)

    def with_sensors(self, sensors: Iterable[Sensor]) -> Machine:
        """The same machine with these sensors, and no others."""
        made = replace(self, sensors=tuple(sensors))
        _ = made.tree if made.formulation == "tree" else made.mechanism
        return made

    def with_formulation(self, formulation: Formulation) -> Machine:
        """The same machine in another formulation, refused by name where that cannot carry it."""
        fault = formulation_fault(formulation)
        if fault is not None:
            raise ModelError(fault, self.name)
        made = replace(self, formulation=formulation)
        _ = made.tree if formulation == "tree" else made.mechanism
        return made

    def evaluator(self, parameters: ArrayLike | None = None, *, friction_speed: float = 0.0) -> Any:
        """Inverse and forward dynamics, regressor and mass matrix of one state a call: a :class:`veridyn.dynamics.Evaluator`."""
        return above("veridyn.mechanics.evaluator", "Evaluator")(self, parameters, friction_speed=friction_speed)

    def __repr__(self) -> str:
        parts = [f"{len(self.links)} bodies", f"{len(self.joints)} joints", f"formulation {self.formulation!r}"]
        return f"Machine({self.name!r}, {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_machine")(self)._repr_html_()


def _with_ten(link: Link, ten: list[float]) -> Link:
    if not link.real:
        return link
    x = np.array(ten)
    return replace(link, inertia=None if np.isnan(x).all() else x)


def _with_value(acting: Acting, values: Mapping[str, float]) -> Acting:
    if isinstance(acting, Element):
        value = values[acting.parameter_name]
        same = value == acting.value or (np.isnan(value) and np.isnan(acting.value))
        return acting if same else replace(acting, value=value)
    value = values[acting.name]
    return replace(acting, coefficient=value) if isinstance(acting, Damper) else replace(acting, stiffness=value)
