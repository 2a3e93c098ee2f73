"""What a formulation of a machine hands out for running it: one protocol, whichever coordinates it computes in.

    machine ─ formulated() ─→ Formulated ─ prepared(settings) ─→ MachineModel: state, inputs → next state, readings, derivatives

A :class:`Formulated` machine knows names, capabilities and how to integrate; a :class:`MachineModel` is the machine over chosen independent
coordinates, with what is unknown of it. Trees and natural coordinates implement both. Who runs a model asks these two and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, Limit, ModelWarning, did_you_mean, warn
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.load import Load, drives_of
from veridyn.model.machine import Machine
from veridyn.model.parameter_set import Constant
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.model.place import PointRef
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import check_car_machine
from veridyn.progress import Progress, silent

WRENCH = "wrench."  # begins the name of an input on a body: wrench.B.fx … mz
UNIQUE_REACTION = 1e-7  # share of a reaction's size that undetermined multipliers may change: rounding
FRICTION_SPEED = 1e-2  # rad/s and m/s below which dry friction is rounded off: a jump has no tangent
Ability = Literal[
    "simulate",
    "observe",
    "regressor",
    "estimated parameters",
    "considered parameters",
    "considered parameters in an unscented filter",
    "attitude rows",
    "wrenches",
    "tyres",
    "prescribed coordinates",
    "signals",
    "laws of measured signals",
    "dry friction, rounded off",
    "dry friction that holds",
    "elements with states of their own",
    "laws of a body's motion",
    "control laws",
]
Capabilities = Mapping[Ability, Limit | None]  # None: it has it

if TYPE_CHECKING:
    from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory


@dataclass(frozen=True, eq=False)
class Instant:
    """A pose with its rates, accelerations and multipliers, and the derivatives of all of them with respect to x = (z, ż, u).

    `R` (n, f) = ∂q/∂z = ∂q̇/∂ż, `qd_z` (n, f) = ∂q̇/∂z, `qdd_x` (n, 2f + k), `multipliers_x` (m, 2f + k). `F` (2f, 2f + k): after a step, the
    derivative of (z, ż) with respect to x before it.
    """

    q: Array
    qd: Array
    qdd: Array
    multipliers: Array
    R: Array
    qd_z: Array
    qdd_x: Array
    multipliers_x: Array
    F: Array


class ModelStep(NamedTuple):
    """A state moved by a step: the instant `found` there over the set `number`, unknown quantities `u`, and the set `after` it.

    `into` and `onto`: d(z', ż')/d(z, ż) of a change to another set before and after the step, None without one. `settled`: the instant is
    that of the state under the same inputs, so that nobody need compute it again.
    """

    found: Instant
    u: Array
    number: int = 0
    after: int = 0
    into: Array | None = None
    onto: Array | None = None
    settled: bool = False


class QuantityReading(NamedTuple):
    """A quantity (c,) of (q, q̇, q̈, λ, u), and its derivatives by each."""

    y: Array
    by_q: Array
    by_qd: Array
    by_qdd: Array
    by_lam: Array
    by_u: Array


class StateQuantity(Protocol):
    """A virtual sensor made ready: what nobody measures, from a state."""

    @property
    def components(self) -> tuple[str, ...]: ...
    @property
    def units(self) -> tuple[str, ...]: ...

    def at(self, q: Array, qd: Array, u: Array, at: Instant, loads: Any) -> QuantityReading:
        """The value at a state whose instant is known, under the loads that the instant was made with."""
        ...


class Outputs(Protocol):
    """What is read, by name and unit, and by which sensor; `owner` (m,) numbers the sensor of each output."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def units(self) -> tuple[str, ...]: ...
    @property
    def sensors(self) -> tuple[Sensor, ...]: ...
    @property
    def owner(self) -> tuple[int, ...]: ...


class Readings(Outputs, Protocol):
    """What sensors read, y = h(q, q̇, q̈) without noise, and its derivatives."""

    @property
    def bias(self) -> Array: ...
    @property
    def variances(self) -> Array: ...
    @property
    def moves(self) -> bool: ...
    @property
    def accelerates(self) -> bool: ...

    def read(self, q: Array, qd: Array, qdd: Array) -> Array: ...
    def derivatives(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a machine is to be run.

    `independents`: coordinates that determine it, none for its own choice. `unknown`: forces that belong to the state, None for one on
    every independent coordinate. `parameters`: those that are estimated with it. `consider`: let the uncertainty of the others belong to
    it as well. `inputs`: names of what acts and is measured. `start`, `rates`: where and how fast, by name; what is not given is at home,
    and at rest. `friction_speed`: below it (rad/s, m/s) dry friction is rounded off, because a jump has no tangent.
    """

    independents: tuple[str, ...] = ()
    unknown: tuple[str, ...] | None = None
    parameters: tuple[str, ...] = ()
    consider: bool = True
    inputs: tuple[str, ...] = ()
    start: Mapping[str, float] | None = None
    rates: Mapping[str, float] | None = None
    friction_speed: float = FRICTION_SPEED


class MachineModel(Protocol):
    """A machine over independent coordinates z, as filters and simulators run it.

    A state is a configuration q (nq,), rates q̇ (nv,) and unknown quantities u: forces on `unknown`, then values of `varying` (loads,
    parameters, constants of laws), then the states `inner` that elements have of their own. Errors of it are changes of (z, ż, u). A
    formulation that has several sets of independent coordinates numbers them; `names` and what is reported are those of the first.
    """

    @property
    def form(self) -> Formulated:
        """The machine it is a model of, prepared as far as it can be."""
        ...

    @property
    def kernel(self) -> str:
        """The layout of its compiled tables: "tree", "points" or "freedoms"."""
        ...

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def rate_names(self) -> tuple[str, ...]: ...
    @property
    def unknown(self) -> tuple[str, ...]: ...
    @property
    def varying(self) -> tuple[str, ...]: ...
    @property
    def inner(self) -> tuple[str, ...]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def prescribed(self) -> tuple[str, ...]: ...
    @property
    def constants(self) -> tuple[Constant, ...]: ...
    @property
    def uncertainty(self) -> Uncertainty | None:
        """Of the last of `varying`, which are considered and not estimated."""
        ...

    @property
    def left_out(self) -> tuple[str, ...]:
        """Constraints that follow from the others and are not computed with, by name."""
        ...

    @property
    def f(self) -> int: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def free(self) -> bool:
        """Whether its base is free, so that its attitude is reported as roll, pitch and yaw, and changed by turns."""
        ...

    @property
    def placed(self) -> bool:
        """Whether inputs place coordinates, so that a pose is that of an instant."""
        ...

    @property
    def sizes(self) -> Array:
        """Typical sizes (nv,) of the coordinates whose rates these are."""
        ...

    @property
    def start_unknown(self) -> Array: ...

    def unit_of(self, coordinate: str) -> str: ...
    def force_unit(self, name: str) -> str: ...
    def varying_unit(self, name: str) -> str: ...
    def names_in(self, number: int) -> tuple[str, ...]:
        """The independent coordinates of a set."""
        ...

    def keeping(self) -> MachineModel:
        """The same model that keeps to its first set."""
        ...

    def loads(self, given: Mapping[str, ArrayLike] | None = None) -> Any:
        """What acts, for the calls below, from inputs by name; those not given are as the machine has them."""
        ...

    def instant(
        self, q: Array, qd: Array, u: Array, loads: Any, /, derivative: bool = True, *, number: int = 0
    ) -> Instant: ...

    def posed(
        self, q: Array, qd: Array, u: Array, loads: Any, /, *, number: int = 0, accelerates: bool = True
    ) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ that sensors read at one state or many; q̈ only where it is asked for."""
        ...

    def advanced(
        self, q: Array, qd: Array, u: Array, h: float, loads: Any, derivative: bool, since: float, number: int, /
    ) -> ModelStep:
        """The state a time h later, `since` seconds after the loads were given, with the derivative of the step."""
        ...

    def changed(self, q: Array, qd: Array, u: Array, d: Array, number: int = 0, /) -> tuple[Array, Array]:
        """q and q̇ of the state changed by d (…, 2f + k), the dependent coordinates following."""
        ...

    def local(self, q: Array, qd: Array, number: int = 0, /) -> Array:
        """(z, ż) (…, 2f) as they are reported."""
        ...

    def difference(self, qa: Array, qda: Array, qb: Array, qdb: Array, number: int = 0, /) -> Array:
        """The change (…, 2f) that leads from the state b to the state a."""
        ...

    def reporting(self, q: Array, /) -> Array | None:
        """d(reported z)/d(change of z) (f, f) where they differ."""
        ...

    def change(self, at: Instant, to: int) -> Array:
        """d(z', ż')/d(z, ż) (2f, 2f) from the set of an instant to another."""
        ...

    def accelerated(self, found: Instant, number: int = 0) -> Array:
        """∂z̈/∂(z, ż, u) of an instant over a set."""
        ...

    def readout(self, sensors: Sequence[Sensor]) -> Readings: ...
    def energies(self, q: Array, qd: Array, /) -> Array:
        """Kinetic, gravity's and elastic energy (J) along a motion, (N, 3)."""
        ...

    def constraint_errors(self, q: Array, qd: Array, qdd: Array, /) -> tuple[float, float, float]:
        """The largest error of the constraints, of their rates and of their second rates."""
        ...


@dataclass(frozen=True, eq=False)
class Formulated(ABC):
    """A machine in the coordinates of its formulation; made by :func:`veridyn.mechanics.formulated.formulated`."""

    machine: Machine

    @property
    @abstractmethod
    def word(self) -> str:
        """The formulation: "tree" or "natural"."""

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    @abstractmethod
    def sensors(self) -> tuple[Sensor, ...]:
        """Its sensors, at places that the formulation reads."""

    @property
    def loads(self) -> tuple[Load, ...]:
        """Loads as the machine is described with them."""
        return self.machine.loads

    @property
    def drives(self) -> Mapping[str, str]:
        """The coordinate that each drive acts on: its unknown force is that of the coordinate."""
        return drives_of(self.machine.loads)

    @property
    def drifts(self) -> Mapping[str, Drift]:
        """The parameters that change while the machine is used; a machine without a tree has no parameters."""
        return {} if self.machine.stated is None else self.machine.stated.drifts

    @property
    def uncertainty(self) -> Uncertainty | None:
        """The covariance of its parameters."""
        return self.machine.uncertainty

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @property
    def regressor(self) -> Callable[..., Any] | None:
        """The regressor of a motion (N, rows, parameters) where forces are linear in parameters; None where they are not."""
        return None

    @abstractmethod
    def placed(self, sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
        """Sensors of the machine's description at places that this formulation reads."""

    @abstractmethod
    def inputs_in(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the channels of a log that act on the machine, in one order; what it cannot take is refused."""

    @abstractmethod
    def taking(self, inputs: Sequence[str]) -> Formulated:
        """The machine able to take these inputs."""

    @abstractmethod
    def prepared(self, settings: RunSettings) -> tuple[MachineModel, Array, Array]:
        """The machine over its independent coordinates, and the configuration and rates it starts from."""

    @abstractmethod
    def quantity(self, model: Any, name: str, kind: str, on: PointRef | tuple[str, str]) -> StateQuantity:
        """A virtual sensor on a model that was prepared here."""

    @property
    @abstractmethod
    def integrator(self) -> Callable[..., Trajectory]:
        """What integrates its motion, with the arguments of :meth:`integrated` behind the machine."""

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
        """The motion from joint coordinates q and rates q̇ under inputs, given in joint coordinates."""
        if inputs is not None and inputs.sampled is not None:
            require(self, "control laws", where=self.name)
        return self.integrator(self.machine, t, q, qd, inputs, base=base, method=method, progress=progress)


def require(form: Formulated, *abilities: Ability, where: str = "", found: str = "") -> None:
    """Refuse what a formulation has not."""
    for ability in abilities:
        limit = form.capabilities[ability]
        if limit is not None:
            raise CapabilityError(form.word, ability, *limit, where=where, found=found)


def wrench_bodies(inputs: Sequence[str], known: Sequence[str], where: str) -> tuple[str, ...]:
    """The bodies on which wrenches among the inputs of a machine `where` act; one that is not `known` is refused."""
    bodies = tuple(dict.fromkeys(name.split(".")[1] for name in inputs if name.startswith(WRENCH)))
    for body in bodies:
        if body not in known:
            hint = did_you_mean(body, known)
            raise DataError(f"a wrench acts on '{body}', which is no body.", where=where, hint=hint)
    return bodies


def check_determined(
    sensor: str, components: Sequence[str], free: NDArray[np.bool_], share: str, found: str, hint: str
) -> None:
    """Refuse a virtual sensor none of whose components the equations of motion determine, and warn of those that they leave `free`.

    `share`: what is done to those, with their names in place of {}.
    """
    if not free.any():
        return
    fault = Fault(
        share.format(", ".join(f"'{name}'" for name, left in zip(components, free, strict=True) if left)),
        where=f"virtual sensor '{sensor}'",
        expected="a reaction that the equations of motion determine",
        found=found,
        hint=hint,
    )
    if free.all():
        raise DataError(fault)
    warn(ModelWarning, fault)


def check_formulation(machine: Machine) -> None:
    """Refuse by name what the machine's own formulation cannot carry."""
    if machine.formulation == "tree":
        tree_of(machine)
    elif machine.formulation == "single_track":
        check_car_machine(machine)
    else:
        # Here: most machines are used as trees only.
        from veridyn.mechanics.natural.description.of_machine import mechanism_of

        mechanism_of(machine)
