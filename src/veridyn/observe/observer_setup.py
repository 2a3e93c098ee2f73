"""From a machine, its sensors and what is not known of it to the system a filter runs on: everything checked, faults by name.

A setup is a filter with its settings. Its steps are machine code, one for each layout of compiled tables that formulations have. A machine
that moves little is seen by the linear Kalman filter as straight lines through one state:

    x_{k+1} = f(x₀) + F (x_k − x₀),    y = h(x₀) + H (x − x₀),    F, H, Q at x₀                    (paper 003, equations 45 to 50)

A filter on it has gains that do not depend on what is read; the extended one falls back to it where nothing turns far. Poses stay closed:
a change of state solves the position and velocity problems as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError
from veridyn.mechanics.formulated import GivenMachine, PointsForm, formulated
from veridyn.mechanics.formulation import Formulated, MachineModel, RunSettings, require
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.model.sensor import Sensor, chosen_sensors
from veridyn.model.single_track import CarNoise
from veridyn.observe.filters.compiled_step import CompiledStep
from veridyn.observe.filters.filter import ErrorModel, Filter
from veridyn.observe.filters.machine_step import compiled_step
from veridyn.observe.filters.methods import EKF, UKF, ErrorEKF, LinearKF
from veridyn.observe.filters.stepping import LONGEST_STEP_S, mode_step
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements
from veridyn.observe.model_error import ModelErrorDensity, foreseen_floor, given_model_error, learn_model_error
from veridyn.observe.process_noise import DriftingStates, ProcessNoise, StateNames, as_covariance, followed_drifts
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.settings import Estimated, ObserveSettings, ParameterBounds, read_parameters
from veridyn.observe.system import System
from veridyn.progress import Progress, silent


def start_covariance(form: Formulated, model: MachineModel, drifts: dict[str, Drift]) -> Uncertainty | None:
    """The covariance at the start of the drifting and the considered parameters together; None where there are no drifting ones."""
    if not drifts:
        return None
    considered = () if model.uncertainty is None else model.uncertainty.names
    names = tuple(name for name in model.varying if name in drifts or name in considered)
    C, known = np.zeros((len(names), len(names))), form.uncertainty
    if known is not None:
        here = [k for k, name in enumerate(names) if name in known.names]
        there = [known.names.index(names[k]) for k in here]
        C[np.ix_(here, here)] = known.covariance[np.ix_(there, there)]
    for k, name in enumerate(names):
        C[k, k] += drifts[name].by ** 2 if name in drifts else 0.0
    return Uncertainty(names, C)


class Drifting(Protocol):
    """A system some of whose parameters drift, with states of their own."""

    @property
    def drifts(self) -> DriftingStates | None: ...
    @property
    def frozen(self) -> tuple[str, ...]: ...


Drifts = TypeVar("Drifts", bound=Drifting)


def with_frozen(system: Drifts, estimates: Estimates) -> Drifts:
    """The system with those drifting parameters frozen that the readings of a run along a log do not determine; the same where all are."""
    if system.drifts is None:
        return system
    frozen = system.drifts.frozen_along(estimates, system.frozen)
    return system if len(frozen) == len(system.frozen) else frozen_in(system, frozen)


def frozen_in(system: Drifts, names: tuple[str, ...]) -> Drifts:
    """The system with these drifting parameters frozen, and no others."""
    return cast(Drifts, replace(cast(Any, system), frozen=names)) if names != system.frozen else system


def determined(system: Drifts, estimates: Estimates, again: Callable[[Drifts], Estimates]) -> tuple[Drifts, Estimates]:
    """A run along a log, and runs made `again` for as long as they leave a drifting parameter undetermined: the last, and its system."""
    while (other := with_frozen(system, estimates)) is not system:
        system, estimates = other, again(other)
    return system, estimates


def machine_system(
    machine: GivenMachine, settings: ObserveSettings, error_model: ErrorModel = "exact"
) -> tuple[MachineSystem, Array, Array]:
    """The system that a filter runs on, and the configuration and velocity it starts from.

    Without inputs or process noise in the settings there are none; a start that a log gives is not known here.
    """
    given, inputs = settings.process_noise or ProcessNoise(), tuple(settings.inputs or ())
    if isinstance(given, CarNoise):
        raise ModelError(
            "this noise is that of a car of a few numbers.",
            where="ObserveSettings.process_noise",
            expected="ProcessNoise(force=…)",
            found="CarNoise",
        )
    form = formulated(machine).taking(inputs)
    chosen = form.placed(chosen_sensors(form.sensors, settings.sensors, "observe"))
    if not chosen:
        raise ModelError(
            "it has no sensors, so there is nothing to observe it by.",
            where=form.name,
            hint="Give it some: a section `sensors` in its file, or ObserveSettings(sensors=…).",
        )
    names, estimated = read_parameters(settings.parameters)
    drifts = followed_drifts(form.drifts, settings.drifts, names, form.name)
    names = (*names, *drifts)
    estimated |= {name: Estimated(0.0, drift.density) for name, drift in drifts.items()}
    model, q, qd = form.prepared(
        RunSettings(
            independents=tuple(settings.independents),
            unknown=None if settings.unknown is None else tuple(settings.unknown),
            parameters=names,
            consider=settings.consider,
            inputs=inputs,
            start=None if isinstance(settings.start, str) else settings.start,
            rates=settings.rates,
            friction_speed=settings.friction_speed,
        )
    )
    made = _system(form, model, chosen, given, estimated, error_model, settings)
    made = replace(made, carried=start_covariance(form, model, drifts))
    return (made if settings.step is not None else replace(made, longest=mode_step(made, q, qd))), q, qd


def _system(
    form: Formulated,
    model: MachineModel,
    sensors: Sequence[Sensor],
    given: ProcessNoise,
    estimated: Mapping[str, Estimated],
    error_model: ErrorModel,
    settings: ObserveSettings,
) -> MachineSystem:
    """Names of states, noises, bounds and biases, from a model of a machine, its sensors and what is given of its noise and parameters."""
    table, names = model.readout(sensors), _estimated(model)
    drifting = tuple(j for j, k in enumerate(table.owner) if table.sensors[k].drifts)
    biased = [table.sensors[table.owner[j]] for j in drifting]
    of = StateNames(model.names, model.unknown, names, len(model.varying) - len(names), model.inner)
    walk, sigma = ({name: getattr(how, part) for name, how in estimated.items()} for part in ("walk", "sigma"))
    noise = given.on_coordinates(form.drives).with_parameters(names, walk, sigma)
    return MachineSystem(
        model=model,
        table=table,
        process_noise=noise,
        error_model=error_model,
        inputs=tuple(settings.inputs or ()),
        states=(
            *model.names,
            *model.rate_names,
            *(f"force.{name}" for name in model.unknown),
            *(f"parameter.{name}" for name in model.varying),
            *(f"state.{name}" for name in model.inner),
            *(f"bias.{table.names[j]}" for j in drifting),
        ),
        outputs=table.names,
        drifting=drifting,
        R=as_covariance(table.variances, table.names, "measurement noise", definite=True),
        density=noise.densities(of, [sensor.bias_walk for sensor in biased]),
        deviations=noise.deviations(of, [sensor.bias_sigma for sensor in biased]),
        selector=np.eye(len(table.names))[:, list(drifting)],
        wraps=np.array([table.sensors[k].wraps for k in table.owner], dtype=np.bool_),
        longest=settings.step or LONGEST_STEP_S,
        bounds=_bounds(model, estimated),
        varying=model.varying,
        inner=model.inner,
        uncertainty=model.uncertainty,
        steps=compiled_step,
    )


def _estimated(model: MachineModel) -> tuple[str, ...]:
    """The varying loads and parameters that are estimated: those before the considered ones."""
    considered = 0 if model.uncertainty is None else len(model.uncertainty.names)
    return model.varying[: len(model.varying) - considered]


def _bounds(model: MachineModel, estimated: Mapping[str, Estimated]) -> ParameterBounds | None:
    """The bounds of those that have some; refused where the machine's own value is beyond, or a constant's law has no meaning there."""
    held = {n: e for n, e in estimated.items() if np.isfinite([e.lower, e.upper]).any()}
    laws = {c.name: c for c in model.constants}
    faults, first = Faults(), len(model.unknown)
    values = dict(zip(model.varying, model.start_unknown[first : first + len(model.varying)].tolist(), strict=True))
    for name, how in held.items():
        where = f"parameters, '{name}'"
        if not how.lower <= values[name] <= how.upper:
            expected = f"between {how.lower:g} and {how.upper:g}"
            faults.add(
                "the machine's own value is beyond its bounds.",
                where=where,
                expected=expected,
                found=f"{values[name]:g}",
            )
        law = laws.get(name)
        if law is not None and not (law.low <= how.lower and how.upper <= law.high):
            expected = f"bounds within {law.low:g} and {law.high:g}"
            faults.add(
                "its law has no meaning there.", where=where, expected=expected, found=f"{how.lower:g}, {how.upper:g}"
            )
    faults.raise_if_any(ModelError, model.name)
    if not held:
        return None
    places = np.array([first + model.varying.index(name) for name in held], dtype=np.int64)
    return ParameterBounds(
        names=tuple(held),
        places=model.nq + model.nv + places,
        changes=2 * model.f + places,
        lower=np.array([e.lower for e in held.values()]),
        upper=np.array([e.upper for e in held.values()]),
    )


@dataclass(frozen=True, eq=False)
class Linearised:
    """`system` about the state `at`, as a :class:`~veridyn.observe.system.System`."""

    system: MachineSystem
    at: Array

    @property
    def states(self) -> tuple[str, ...]:
        return self.system.states

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.system.outputs

    @property
    def bounds(self) -> ParameterBounds | None:
        """Of estimated parameters, which hold for a linear filter too."""
        return self.system.bounds

    @property
    def considered(self) -> NDArray[np.bool_] | None:
        """Which states no reading corrects."""
        return self.system.considered

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return self.move_and_jacobian(x, u, t, dt)[0]

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        there, F = self.system.move_and_jacobian(self.at, u, t, dt)
        return self.system.add(there, self.system.subtract(x, self.at) @ F.T), F

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return self.system.noise(self.at, u, t, dt)

    def sense(self, x: Array, u: Array, t: float) -> Array:
        return self.sense_and_jacobian(x, u, t)[0]

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        y, H = self.system.sense_and_jacobian(self.at, u, t)
        return y + self.system.subtract(x, self.at) @ H.T, H

    def compiled_step(self, limit: float) -> CompiledStep | None:
        return self.system.compiled_step(limit, self.at)

    def sensor_noise(self, t: float) -> Array:
        return self.system.sensor_noise(t)

    def add(self, x: Array, d: Array) -> Array:
        return self.system.add(x, d)

    def subtract(self, a: Array, b: Array) -> Array:
        return self.system.subtract(a, b)

    def residual(self, y: Array, expected: Array) -> Array:
        return self.system.residual(y, expected)


class PreparedMachine(NamedTuple):
    """A setup, the system that it makes of a machine, and the configuration and velocity from which that starts."""

    setup: ObserverSetup
    system: MachineSystem
    q: Array
    qd: Array


@dataclass(frozen=True)
class ObserverSetup:
    """A filter, and the settings that it is run with."""

    method: Filter = field(default_factory=EKF)
    settings: ObserveSettings = field(default_factory=ObserveSettings)

    def replaced(self, **settings: Any) -> ObserverSetup:
        """The same filter with some settings replaced."""
        return replace(self, settings=replace(self.settings, **settings))

    def system(self, machine: GivenMachine) -> tuple[MachineSystem, Array, Array]:
        """The system that the filter runs on, and the configuration and velocity it starts from."""
        settings = self.settings if self.method.estimates_forces else replace(self.settings, unknown=())
        made = machine_system(machine, settings, self.method.error_model)
        considered = made[0].uncertainty
        if considered is not None and isinstance(self.method, UKF):
            what = "considered parameters in an unscented filter"
            require(made[0].model.form, what, where="observe", found=", ".join(considered.names))
        return made

    def prepared(self, machine: GivenMachine) -> PreparedMachine:
        """The setup with what :meth:`system` makes of it."""
        return PreparedMachine(self, *self.system(machine))

    def started(self, system: MachineSystem, start: Mapping[str, float]) -> PreparedMachine:
        """The setup with another start, and what :meth:`system` gives for it, where `system` differs in nothing else."""
        other = self.replaced(start=start)
        start_of = getattr(system.model, "start_of", None)
        if start_of is None:  # a set of independent coordinates is chosen where the machine starts
            return other.prepared(system.model.form)
        q, qd = start_of(start, other.settings.rates)
        return PreparedMachine(other, replace(system, longest=other.settings.step or mode_step(system, q, qd)), q, qd)

    def model_error(
        self,
        system: MachineSystem,
        q: Array,
        start: Belief,
        ordered: Measurements,
        first: Estimates,
        progress: Progress = silent,
        scales_walk: bool = False,
        foreseen: Array | None = None,
    ) -> ModelErrorDensity | None:
        """The error of the model that the settings ask for, None for none; it is learned on the readings along which `first` ran without,
        `ordered` by :func:`~veridyn.observe.filters.run.in_order`.
        `scales_walk`: the walk of the unknown forces was chosen on these readings too, and may be scaled beside it.
        `foreseen`: the floor that `first` has, by :meth:`foreseen_floor`."""
        given = self.settings.model_error
        if given == "off":
            return None
        if given == "learned":
            seen = partial(self.seen, q=q)
            return learn_model_error(self.method, system, seen, ordered, start, first, progress, scales_walk, foreseen)
        return given_model_error(given, system, start, ordered, first)

    def foreseen_floor(self, system: MachineSystem, q: Array, start: Belief, ordered: Measurements) -> Array | None:
        """The least model error of a long log by its beginning, where one is learned; None where the first run has none."""
        if self.settings.model_error != "learned":
            return None
        return foreseen_floor(self.method, system, partial(self.seen, q=q), ordered, start)

    def seen(self, system: MachineSystem, q: Array) -> System:
        """The machine as the filter takes it: itself, with rows of H as paper 003 prints them, or its tangent at rest where it starts."""
        if isinstance(self.method, ErrorEKF):
            kinds = [system.table.sensors[k].kind for k in system.table.owner]
            if self.method.accelerometer == "attitude":
                require(system.model.form, "attitude rows", where="ErrorEKF.accelerometer")
                system = replace(system, attitude_rows=np.array([kind == "accelerometer" for kind in kinds]))
            if self.method.position == "place":
                require(system.model.form, "attitude rows", where="ErrorEKF.position")
                if not system.model.free:
                    raise ModelError(
                        "no base turns here.", where="ErrorEKF.position", expected="a machine with a free base"
                    )
                system = replace(system, place_rows=np.array([kind == "position" for kind in kinds]))
            if self.method.correction == "velocity":
                if not isinstance(system.model.form, PointsForm):
                    raise ModelError(
                        "all of its coordinates are independent, or follow exactly.",
                        where="ErrorEKF.correction",
                        expected="a machine of points in natural coordinates",
                    )
                system = replace(system, along_tangent=True, steps=None)
            return system
        if not isinstance(self.method, LinearKF):
            return system
        alone = replace(system, model=system.model.keeping())
        return Linearised(alone, system.belief(q, np.zeros(system.nv)).x)
