"""A machine in natural coordinates, as :mod:`veridyn.mechanics.formulation` asks for it: names, what acts, models for stepping, motions.

One with tyres or prescribed coordinates is run over the freedoms that it has as a tree (:class:`FreedomsForm`), every other over sets of
its own coordinates that take over from each other (:class:`PointsForm`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import cast

from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Limit, ModelError, did_you_mean
from veridyn.mechanics.formulation import (
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
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory
from veridyn.model.place import PointRef
from veridyn.model.sensor import Sensor
from veridyn.progress import Progress, silent

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

    def integrated(
        self,
        t: Array,
        q: ArrayLike,
        qd: ArrayLike,
        inputs: Inputs | None,
        *,
        base: BaseState | None = None,
        method: Method | None = None,
        progress: Progress = silent,
    ) -> Trajectory:
        """:func:`veridyn.mechanics.natural.steps.machine_motion.integrate_natural_machine` of this machine."""
        from veridyn.mechanics.natural.steps.machine_motion import integrate_natural_machine  # names need none of it

        if inputs is not None and inputs.sampled is not None:
            raise CapabilityError(self.word, "control laws", *NO_CONTROLLER, where=self.machine.name)
        return integrate_natural_machine(self.machine, t, q, qd, inputs, base=base, method=method, progress=progress)


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
        unknown = None if s.unknown is None else tuple(self.drives.get(name, name) for name in s.unknown)
        independents = s.independents or self._independents(q)
        model = minimal(system, q, independents, unknown, () if known is None else known.names)
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
        unknown = None if s.unknown is None else tuple(self.drives.get(name, name) for name in s.unknown)
        made = free_model(self.machine, independents=s.independents, unknown=unknown, friction_speed=s.friction_speed)
        model = replace(made, form=self)
        model.loads(dict.fromkeys(s.inputs, 0.0))  # a name that is no input is refused here
        q, qd = model.start_of(s.start, s.rates)
        return cast(MachineModel, model), q, qd  # some of its properties are kept once computed

    def quantity(self, model: FreeModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> FreeQuantity:
        """A virtual sensor on the machine."""
        return FreeQuantity(model, name, kind, on)
