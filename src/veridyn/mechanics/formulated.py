"""Machines in their formulations, as :mod:`veridyn.mechanics.formulation` asks for them: names, what acts, models for stepping, motions.

A machine is a tree (:class:`TreeForm`), or has points and vectors. One of those with tyres or prescribed coordinates is run over the
freedoms that it has as a tree (:class:`FreedomsForm`), every other over sets of its own coordinates that take over from each other
(:class:`PointsForm`). :func:`formulated` is the one door to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast, get_args

from veridyn.arrays import Array
from veridyn.errors import DataError, Limit, ModelError, did_you_mean
from veridyn.mechanics.formulation import (
    WRENCH,
    Ability,
    Capabilities,
    Formulated,
    MachineModel,
    RunSettings,
    require,
    wrench_bodies,
)
from veridyn.mechanics.natural.channels import inputs_on_points, with_motor_inputs, with_wrenches
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import (
    BODY_LAWS,
    HOLDING,
    OWN_STATES,
    SIGNAL_LAWS,
    mechanism_of,
    mechanism_with,
    rounded,
)
from veridyn.mechanics.natural.equations.position import independent, start_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of, with_parameter_slopes
from veridyn.mechanics.natural.steps.free_model import FreeModel, free_model
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.mechanics.natural.steps.model import Charts, NaturalModel
from veridyn.mechanics.natural.virtual import FreeQuantity, PointsQuantity
from veridyn.mechanics.system.simulation import Trajectory
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.readout import TreeReadout, tree_readout
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree.virtual import TreeQuantity
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.graph import placed_sensor
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift
from veridyn.model.place import PointRef
from veridyn.model.sensor import Sensor

GivenMachine = Machine | Formulated  # observers hand on what they have prepared of a machine
ALL: Capabilities = MappingProxyType(dict.fromkeys(get_args(Ability)))
AS_TREE = "Use its tree: with_formulation('tree')."
NO_CONTROLLER = Limit(
    "not built: its motion is not integrated from tick to tick of a controller",
    "Use formulation: tree, or machine.with_formulation('tree').",
)
NO_SLOPES = Limit("not built: its index-3 steps have no derivatives by parameters", AS_TREE)
SHARED: dict[Ability, Limit | None] = {
    "simulate": None,
    "observe": None,
    "regressor": Limit("its equations hold forces of constraints, which are no parameters", AS_TREE),
    "tyres": None,
    "prescribed coordinates": None,
    "signals": None,
    "laws of measured signals": SIGNAL_LAWS,
    "dry friction, rounded off": None,
    "dry friction that holds": HOLDING,
    "elements with states of their own": OWN_STATES,
    "laws of a body's motion": BODY_LAWS,
    "control laws": NO_CONTROLLER,
}
ON_POINTS: Capabilities = MappingProxyType(
    {
        **SHARED,
        "estimated parameters": None,
        "considered parameters": None,
        "considered parameters in an unscented filter": None,
        "attitude rows": None,
        "wrenches": None,
    }
)
OVER_FREEDOMS: Capabilities = MappingProxyType(
    {
        **SHARED,
        "estimated parameters": NO_SLOPES,
        "considered parameters": NO_SLOPES,
        "considered parameters in an unscented filter": NO_SLOPES,
        "wrenches": Limit(
            "not built: its compiled steps hold loads that do not turn with the pose, and a wrench turns with its body",
            "Observe with_formulation('tree'), or list the inputs that are used: inputs=….",
        ),
        "attitude rows": Limit(
            "not built: its sensors read a pose closed at every instant, and rows of the attitude alone are not taken from it",
            "Observe the machine in formulation tree, or leave accelerometer at its default.",
        ),
    }
)


def in_joints(machine: Machine) -> TreeForm:
    """A machine in joint coordinates, in which motions are given whichever way they are computed."""
    return TreeForm(machine)


def formulated(machine: GivenMachine) -> Formulated:
    """A machine in its own formulation."""
    if not isinstance(machine, Machine):
        return machine
    if machine.formulation == "tree":
        return in_joints(machine)
    return FreedomsForm(machine) if machine.prescribed or machine.wheels else PointsForm(machine)


@dataclass(frozen=True, eq=False)
class TreeForm(Formulated):
    """A machine in joint coordinates."""

    @property
    def tree(self) -> Tree:
        """The machine as joint coordinates are computed with."""
        return tree_of(self.machine)

    @property
    def word(self) -> str:
        return "tree"

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        return self.tree.sensors

    @property
    def drifts(self) -> Mapping[str, Drift]:
        return self.tree.parameters.drifts

    @property
    def capabilities(self) -> Capabilities:
        return ALL

    @property
    def regressor(self) -> Callable[..., Any]:
        """:func:`veridyn.mechanics.tree.dynamics.inverse.regressor` of this tree: forces are linear in its parameters."""
        from veridyn.mechanics.tree.dynamics.inverse import regressor

        return lambda *args, **kwargs: regressor(self.tree, *args, **kwargs)

    def placed(self, sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
        """Sensors on bodies; on a planar machine they read x and y, and turn about z."""
        return tuple(placed_sensor(self.machine, s) for s in sensors)

    def inputs_in(self, names: Sequence[str]) -> tuple[str, ...]:
        """The channels that act: forces of actuated coordinates, motions of prescribed ones, signals, wrenches, loads.

        Components of loads across the plane of a planar machine move nothing, and are none.
        """
        tree = self.tree
        found = [f"force.{c}" for c in tree.actuated_coordinates if c not in tree.prescribed]
        own = {state.name for state in tree.states}
        found += [f"signal.{name}" for name in tree.signals if name not in own]
        found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in tree.prescribed]
        found += tree.load_channels
        for body in tree.bodies:
            six = [f"{WRENCH}{body.name}.{row}" for row in WRENCH_ROWS]
            found += six if all(name in names for name in six) else []
        if self.machine.dimension == 2:
            found = [name for name in found if name not in self._across]
        return tuple(name for name in dict.fromkeys(found) if name in names)

    @property
    def _across(self) -> set[str]:
        """Components of loads across the plane of a planar machine."""
        forces = {f"{load.name}.z" for load in self.tree.loads if isinstance(load, Force)}
        return forces | {f"{load.name}.{a}" for load in self.tree.loads if isinstance(load, Torque) for a in "xy"}

    def readout(self, sensors: Sequence[Sensor]) -> TreeReadout:
        """What sensors on it read along a motion in joint coordinates."""
        return tree_readout(self.tree, sensors)

    def taking(self, inputs: Sequence[str]) -> TreeForm:
        """Itself: a tree takes all its inputs."""
        return self

    def prepared(self, settings: RunSettings) -> tuple[MachineModel, Array, Array]:
        """The tree over its independent coordinates, and the configuration and rates it starts from.

        Inputs: force.C, signal.S, wrench.B.fx … mz, or components of loads; all six components of a wrench.
        """
        tree, s = self.tree, settings
        loads = {name: load for load in tree.loads for name in load.channels}
        forces: tuple[str, ...] | None = None
        pushed: tuple[str, ...] = ()
        if s.unknown is not None:
            forces = tuple(self.drives.get(n, n) for n in s.unknown if isinstance(loads.get(n), Drive | None))
            pushed = tuple(name for name in s.unknown if name in loads and not isinstance(loads[name], Drive))
        bodies = wrench_bodies(s.inputs, [b.name for b in tree.bodies], tree.name)
        uncertainty = tree.uncertainty.without(s.parameters) if s.consider and tree.uncertainty is not None else None
        made = tree_model(
            tree,
            independents=s.independents,
            unknown=forces,
            varying=(*pushed, *s.parameters, *(() if uncertainty is None else uncertainty.names)),
            wrenches=bodies,
            friction_speed=s.friction_speed,
        )
        return _started(replace(made, uncertainty=uncertainty, form=self), s)

    def quantity(self, model: TreeModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> TreeQuantity:
        """A virtual sensor on the tree."""
        return TreeQuantity(model, name, kind, on)

    @property
    def integrator(self) -> Callable[..., Trajectory]:
        """:func:`veridyn.mechanics.system.integrate.integrate`."""
        from veridyn.mechanics.system.integrate import integrate  # which compiles; names need none of it

        return integrate


@dataclass(frozen=True, eq=False)
class _Natural(Formulated):
    """What both have in common."""

    @property
    def word(self) -> str:
        return "natural"

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        return mechanism_of(self.machine).sensors

    def placed(self, sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
        """The same: points and vectors read them where they are described."""
        return tuple(sensors)

    def _forces(self, settings: RunSettings) -> tuple[str, ...] | None:
        """The forces that belong to the state, those of drives by their coordinates."""
        wanted = settings.unknown
        return None if wanted is None else tuple(self.drives.get(name, name) for name in wanted)

    @property
    def integrator(self) -> Callable[..., Trajectory]:
        """:func:`veridyn.mechanics.natural.steps.machine_motion.integrate_natural_machine`."""
        from veridyn.mechanics.natural.steps.machine_motion import integrate_natural_machine  # names need none of it

        return integrate_natural_machine


@dataclass(frozen=True, eq=False)
class PointsForm(_Natural):
    """A machine over its points, vectors and added coordinates.

    `wrenches`: bodies on which measured wrenches act. `reduced`: the system that a model was prepared of, without redundant constraints.
    """

    wrenches: tuple[str, ...] = ()
    reduced: NaturalSystem | None = None

    @cached_property
    def system(self) -> NaturalSystem:
        """Constraints, mass and forces, with slopes by the parameters whose uncertainty the machine has."""
        return self._made(self._mechanism) if self.reduced is None else self.reduced

    @property
    def _mechanism(self) -> Mechanism:
        laid = self.wrenches and self.machine.description is None
        return mechanism_with(self.machine, oriented=self.wrenches) if laid else mechanism_of(self.machine)

    def _made(self, mechanism: Mechanism, estimated: tuple[str, ...] = (), consider: bool = True) -> NaturalSystem:
        made = with_wrenches(system_of(mechanism), self.wrenches)
        return with_parameter_slopes(made, self.machine, estimated, consider)

    def _stepped(self, s: RunSettings) -> NaturalSystem:
        """The system for steps: dry friction is rounded off, and there are slopes by the parameters that belong to the state."""
        own = self._mechanism
        mechanism = rounded(own, s.friction_speed)
        if mechanism is own and not s.parameters and (s.consider or self.machine.uncertainty is None):
            return self.system
        return self._made(mechanism, s.parameters, s.consider)

    @property
    def capabilities(self) -> Capabilities:
        return ON_POINTS

    def inputs_in(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the channels of a log that act on it."""
        return inputs_on_points(self.machine, names)

    def taking(self, inputs: Sequence[str]) -> PointsForm:
        """The machine with a drive for each force.C among the inputs, and wrenches on the bodies that they name."""
        bodies = wrench_bodies(inputs, self.machine.body_names, self.name)
        made = with_motor_inputs(self.machine, inputs)
        if made is self.machine and (not bodies or set(inputs) <= set(self.system.forces.places)):
            return self
        return PointsForm(made, bodies)

    def _independents(self, q: Array) -> tuple[str, ...]:
        """The coordinates that determine the machine as a tree, where its points have them and they do so at the pose q; else none."""
        if self.machine.base == "free":
            return ()
        names = tuple(c for c in self.machine.described.independent if c not in self.machine.prescribed)
        if not set(names) <= set(self.system.coordinates) or set(independent(self.system, q, names)) != set(names):
            return ()
        return names

    def prepared(self, settings: RunSettings) -> tuple[MachineModel, Array, Array]:
        """The mechanism over a set of independent coordinates that does where it starts, and its pose and rates there.

        `unknown` may name loads of one number too; inputs are numbers of loads. Redundant constraints are left out, with a warning.
        """
        s, system = settings, self._stepped(settings)
        q, qd = start_of(system, s.start, s.rates)
        known = system.parameters
        independents = s.independents or self._independents(q)
        model = minimal(system, q, independents, self._forces(s), () if known is None else known.names)
        if model.f == 0:
            raise ModelError("it cannot move.", where=self.name, found="no degree of freedom")
        for name in s.inputs:
            if name not in system.forces.places:
                hint = did_you_mean(name, list(system.forces.places))
                raise DataError(f"there is no load '{name}'.", where=self.name, hint=hint)
        made = NaturalModel(system=model.system, charts=Charts(model), form=replace(self, reduced=model.system))
        return cast(MachineModel, made), q, qd

    def quantity(self, model: NaturalModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> PointsQuantity:
        """A virtual sensor on the mechanism."""
        return PointsQuantity(model, name, kind, on)


@dataclass(frozen=True, eq=False)
class FreedomsForm(_Natural):
    """A machine with tyres or prescribed coordinates, over the freedoms that it has as a tree."""

    @property
    def capabilities(self) -> Capabilities:
        return OVER_FREEDOMS

    def inputs_in(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the channels of a log that act on it."""
        found = inputs_on_points(self.machine, names)
        refused = [name for name in found if name.startswith("wrench.")]
        if refused:
            require(self, "wrenches", where=self.name, found=", ".join(refused))
        return found

    def taking(self, inputs: Sequence[str]) -> FreedomsForm:
        """The machine with a drive for each force.C among the inputs."""
        made = with_motor_inputs(self.machine, inputs)
        return self if made is self.machine else FreedomsForm(made)

    def prepared(self, settings: RunSettings) -> tuple[MachineModel, Array, Array]:
        """The machine over its freedoms, and its pose and rates at the start; inputs are numbers of loads, and q.C, qd.C and qdd.C."""
        s, known = settings, self.machine.uncertainty
        if s.parameters:
            require(self, "estimated parameters", where=self.name, found=", ".join(s.parameters))
        if s.consider and known is not None:
            require(self, "considered parameters", where=self.name, found=", ".join(known.names))
        made = free_model(
            self.machine, independents=s.independents, unknown=self._forces(s), friction_speed=s.friction_speed
        )
        return _started(replace(made, form=self), s)

    def quantity(self, model: FreeModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> FreeQuantity:
        """A virtual sensor on the machine."""
        return FreeQuantity(model, name, kind, on)


def _started(model: TreeModel | FreeModel, settings: RunSettings) -> tuple[MachineModel, Array, Array]:
    """A model, and its configuration and rates where it starts; a name among its inputs that is none is refused."""
    model.loads(dict.fromkeys(settings.inputs, 0.0))
    q, qd = model.start_of(settings.start, settings.rates)
    return cast(MachineModel, model), q, qd  # some of its properties are kept once computed
