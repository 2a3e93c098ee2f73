"""From a machine, its sensors and what is not known of it to the system a filter runs on: everything checked, faults by name.

A setup says what a filter is run with: the method, the process noise, where the machine starts, what is unknown of it and what is measured.
A machine that moves little is seen by the linear Kalman filter as straight lines through one state:

    x_{k+1} = f(x₀) + F (x_k − x₀),    y = h(x₀) + H (x − x₀),    F, H, Q at x₀                    (paper 003, equations 45 to 50)

A filter on it has gains that do not depend on what is read; the extended one falls back to it where nothing turns far. Poses stay closed:
a change of state solves the position and velocity problems as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.mechanics.formulation import FRICTION_SPEED, MachineModel, RunSettings, require
from veridyn.model.sensor import Choice, Sensor, chosen_sensors
from veridyn.observe.bounds import Estimated, ParameterBounds, Parameters, read_parameters
from veridyn.observe.filters.compiled_step import compiled_step
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.filter import CompiledStep, ErrorModel, Filter
from veridyn.observe.filters.methods import ErrorEKF, LinearKF, filter_of
from veridyn.observe.filters.stepping import LONGEST_STEP_S, mode_step
from veridyn.observe.filters.ukf import UKF
from veridyn.observe.machine import MachineSystem
from veridyn.observe.noise import as_covariance
from veridyn.observe.process_noise import ProcessNoise, Size, sizes
from veridyn.observe.readings import InputHold
from veridyn.observe.system import System


def machine_system(
    machine: GivenMachine,
    process_noise: ProcessNoise,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    parameters: Parameters = (),
    independents: tuple[str, ...] = (),
    sensors: Sequence[Sensor] | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float | None = None,
    friction_speed: float = FRICTION_SPEED,
    consider: bool = True,
) -> tuple[MachineSystem, Array, Array]:
    """The system, and the configuration and velocity it starts from.

    Parameters
    ----------
    machine
        The machine with its sensors, in its own formulation.
    unknown
        Forces that are estimated: coordinates, base.x … base.yaw, or components of loads; None for one on every independent coordinate.
    parameters
        Parameters of the machine, and constants inside the laws of its elements ("fst_q1.speed"), that are estimated with the state: names,
        or name → (sigma, walk, lower, upper) or :class:`~veridyn.observe.bounds.Estimated`, which counts before `process_noise`.
    inputs
        What acts and is measured: force.C, signal.S, wrench.B.fx … mz, q.C, qd.C and qdd.C, or components of loads.
    start, rates
        Coordinates and rates by name; what is not given is at home, and at rest.
    step
        The longest step of the integration (s); None for that of :func:`~veridyn.observe.filters.stepping.mode_step`.
    friction_speed
        Below it (rad/s, m/s) dry friction is rounded off, because a jump has no tangent.
    consider
        Let the uncertainty of the machine's parameters, where a fit has given it one, widen that of the states.
    """
    form = formulated(machine).taking(inputs)
    chosen = form.sensors if sensors is None else form.placed(sensors)
    _refuse_unobservable(form.name, chosen, LONGEST_STEP_S if step is None else step)
    names, estimated = read_parameters(parameters)
    model, q, qd = form.prepared(
        RunSettings(
            independents=independents,
            unknown=unknown,
            parameters=tuple(names),
            consider=consider,
            inputs=inputs,
            start=start,
            rates=rates,
            friction_speed=friction_speed,
        )
    )
    noise = _noise_with(_noise_on(process_noise, form.drives), model, estimated)
    made = _system(model, chosen, noise, error_model, inputs, step)
    made = replace(made, bounds=_bounds(model, estimated))
    return (made if step is not None else replace(made, longest=mode_step(made, q, qd))), q, qd


def _refuse_unobservable(name: str, sensors: Sequence[Sensor], step: float) -> None:
    """Refuse a machine without sensors, and a step that is no time."""
    if not 0.0 < step < np.inf:
        raise ModelError(
            "the longest step is not usable.", where="observe", expected="a positive time", found=f"{step:g} s"
        )
    if not sensors:
        raise ModelError(
            "it has no sensors, so there is nothing to observe it by.",
            where=name,
            hint="Give it some: a section `sensors` in its file, or sensors=.",
        )


def _system(
    model: MachineModel,
    sensors: Sequence[Sensor],
    process_noise: ProcessNoise,
    error_model: ErrorModel,
    inputs: tuple[str, ...],
    step: float | None,
) -> MachineSystem:
    """Names of states, noises and biases, from a model and its sensors."""
    table = model.readout(sensors)
    drifting = tuple(j for j, k in enumerate(table.owner) if table.sensors[k].drifts)
    estimated = _estimated(model)
    density = [
        sizes(process_noise.position, model.names, "position"),
        sizes(process_noise.acceleration, model.names, "acceleration"),
        sizes(process_noise.force, model.unknown, "force"),
        sizes(process_noise.parameter, estimated, "parameter"),
        np.zeros(len(model.varying) - len(estimated)),
        sizes(process_noise.element, model.inner, "element"),
        [table.sensors[table.owner[j]].bias_walk for j in drifting],
    ]
    return MachineSystem(
        model=model,
        table=table,
        process_noise=process_noise,
        error_model=error_model,
        inputs=tuple(inputs),
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
        density=np.concatenate(density),
        selector=np.eye(len(table.names))[:, list(drifting)],
        wraps=np.array([table.sensors[k].wraps for k in table.owner], dtype=np.bool_),
        longest=step or LONGEST_STEP_S,
        varying=model.varying,
        inner=model.inner,
        uncertainty=model.uncertainty,
        steps=compiled_step,
    )


def _estimated(model: MachineModel) -> tuple[str, ...]:
    """The varying loads and parameters that are estimated: those before the considered ones."""
    considered = 0 if model.uncertainty is None else len(model.uncertainty.names)
    return model.varying[: len(model.varying) - considered]


def _noise_on(given: ProcessNoise, drives: Mapping[str, str]) -> ProcessNoise:
    """The process noise with forces that are named by their drives named by the coordinates these act on, as states are."""
    force, start = (_renamed(size, drives) for size in (given.force, given.start_force))
    return (
        given if force is given.force and start is given.start_force else replace(given, force=force, start_force=start)
    )


def _renamed(size: Size, names: Mapping[str, str]) -> Size:
    if not isinstance(size, Mapping) or not set(size) & set(names):
        return size
    return {names.get(name, name): value for name, value in size.items()}


def _noise_with(given: ProcessNoise, model: MachineModel, estimated: Mapping[str, Estimated]) -> ProcessNoise:
    """The process noise, with what parameters bring of their own."""
    if not estimated:
        return given
    names = _estimated(model)
    walk = _sized(given.parameter, names, {n: e.walk for n, e in estimated.items()})
    sigma = _sized(given.start_parameter, names, {n: e.sigma for n, e in estimated.items()})
    return replace(given, parameter=walk, start_parameter=sigma)


def _sized(given: Size, names: Sequence[str], own: Mapping[str, float]) -> dict[str, float]:
    """A number for each name: its own, else what is given for it or for all."""
    rest = given if isinstance(given, Mapping) else dict.fromkeys(names, float(given))
    return {**{n: float(v) for n, v in rest.items()}, **own}


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
        there, F = self.system.move_and_jacobian(self.at, u, t, dt)
        return self.system.add(there, self.system.subtract(x, self.at) @ F.T)

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        return self.move(x, u, t, dt), self.system.move_and_jacobian(self.at, u, t, dt)[1]

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return self.system.noise(self.at, u, t, dt)

    def sense(self, x: Array, u: Array, t: float) -> Array:
        y, H = self.system.sense_and_jacobian(self.at, u, t)
        return y + self.system.subtract(x, self.at) @ H.T

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        return self.sense(x, u, t), self.system.sense_and_jacobian(self.at, u, t)[1]

    def compiled_step(self, gate: float | None) -> CompiledStep | None:
        return self.system.compiled_step(gate, self.at)

    def sensor_noise(self, t: float) -> Array:
        return self.system.sensor_noise(t)

    def add(self, x: Array, d: Array) -> Array:
        return self.system.add(x, d)

    def subtract(self, a: Array, b: Array) -> Array:
        return self.system.subtract(a, b)

    def residual(self, y: Array, expected: Array) -> Array:
        return self.system.residual(y, expected)


Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ObserverSetup:
    """How to observe; every field has the meaning that :func:`~veridyn.observe.observe.observe` gives it."""

    method: Filter = field(default_factory=EKF)
    process_noise: ProcessNoise | None = None
    start: Mapping[str, float] | Literal["readings"] | None = None
    rates: Mapping[str, float] | None = None
    independents: tuple[str, ...] = ()
    unknown: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    frozen_after: int | None = None
    step: float | None = None
    input_hold: InputHold = "zero"
    friction_speed: float = FRICTION_SPEED
    parameters: Parameters = ()
    sensors: Choice | None = None
    consider: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", filter_of(self.method, "observe"))
        if isinstance(self.start, str) and self.start != "readings":
            expected = 'coordinates with their values, or "readings"'
            raise ModelError("it is not known.", where="observe, start", expected=expected, found=f"{self.start!r}")
        if self.input_hold not in get_args(InputHold):
            expected = " or ".join(get_args(InputHold))
            raise ModelError(
                "it is not known.", where="observe, input_hold", expected=expected, found=f"{self.input_hold!r}"
            )
        if not self.friction_speed > 0.0:
            found = f"{self.friction_speed}"
            raise ModelError(
                "it is not usable.", where="observe, friction_speed", expected="a speed above zero", found=found
            )
        for name in ("independents", "unknown", "inputs", "parameters"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                object.__setattr__(self, name, tuple(given))

    def system(self, machine: GivenMachine, process_noise: ProcessNoise) -> tuple[MachineSystem, Array, Array]:
        """The system that the filter runs on, and the configuration and velocity it starts from."""
        form = formulated(machine).taking(self.inputs or ())
        made = machine_system(
            form,
            process_noise,
            error_model=self.method.error_model,
            unknown=self.unknown if self.method.estimates_forces else (),
            independents=self.independents,
            inputs=self.inputs or (),
            start=None if isinstance(self.start, str) else self.start,  # a log tells it once the sensors are known
            rates=self.rates,
            parameters=self.parameters,
            sensors=chosen_sensors(form.sensors, self.sensors, "observe"),
            consider=self.consider,
            friction_speed=self.friction_speed,
            step=self.step,
        )
        considered = made[0].uncertainty
        if considered is not None and isinstance(self.method, UKF):
            what = "considered parameters in an unscented filter"
            require(form, what, where="observe", found=", ".join(considered.names))
        return made

    def seen(self, system: MachineSystem, q: Array) -> System:
        """The machine as the filter takes it: itself, with rows of H for the attitude alone, or its tangent at rest where it starts."""
        if isinstance(self.method, ErrorEKF) and self.method.accelerometer == "attitude":
            require(system.model.form, "attitude rows", where="ErrorEKF.accelerometer")
            kinds = [system.table.sensors[k].kind for k in system.table.owner]
            return replace(system, attitude_rows=np.array([kind == "accelerometer" for kind in kinds]))
        if not isinstance(self.method, LinearKF):
            return system
        alone = replace(system, model=system.model.keeping())
        return Linearised(alone, system.belief(q, np.zeros(system.nv)).x)
