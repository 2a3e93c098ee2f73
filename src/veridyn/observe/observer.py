"""The door to filters on mechanisms: a machine with sensors and a log in, states with bands and virtual sensors out.

    states = observe(machine, log, filter="error_ekf")            a whole log
    observer = Observer(machine, "ekf", unsure=…); observer.step(t, {"encoder": 0.31})      beside a running program

========================= =========================================================================== ==============
filter                    what carries the covariance                                                 forces
========================= =========================================================================== ==============
linear                    the mechanism's tangent where it starts, at rest: the linear Kalman filter     estimated
error_ekf                 an integrator (paper 003, equation 54): the thesis' errorEKF                taken as known
error_ekf_force           the accelerations' exact derivatives, in first order: its future work       estimated
ekf                       the exact derivative of the mechanism's step                                estimated
ukf                       2n + 1 mechanisms side by side                                              estimated
smoother                  that of the ekf, then backwards (Rauch, Tung and Striebel)                  estimated
========================= =========================================================================== ==============
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults, ModelError, did_you_mean
from veridyn.mechanics.measurement import readout
from veridyn.mechanics.natural.system import NaturalSystem, system_of
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.natural import Mechanism
from veridyn.model.sensor import Sensor
from veridyn.model.tree import Tree
from veridyn.observe.ekf import EKF, Engine
from veridyn.observe.filter import Filter, Late
from veridyn.observe.health import Repeats, Silence
from veridyn.observe.linearised import Linearised
from veridyn.observe.machine import ErrorModel, MachineSystem
from veridyn.observe.measurements import (
    MISSING,
    NOT_FINITE,
    SAME,
    STATUSES,
    USED,
    Codes,
    Measurements,
    Status,
    frozen,
)
from veridyn.observe.mechanism import MechanismSystem
from veridyn.observe.mechanism_setup import mechanism_system
from veridyn.observe.observation import Observation
from veridyn.observe.result import Belief
from veridyn.observe.run import in_order, run
from veridyn.observe.smoother import smooth
from veridyn.observe.stepping import warn_of_long_steps
from veridyn.observe.stream import Stream, statuses
from veridyn.observe.system import System
from veridyn.observe.tree_setup import inputs_in, tree_system
from veridyn.observe.tuning import Tuning, tune
from veridyn.observe.ukf import UKF
from veridyn.observe.unsure import Unsure
from veridyn.observe.virtual import Virtual, quantity_of
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
Observable = Machine | Tree | Mechanism | NaturalSystem
KINDS: Mapping[str, tuple[type[Filter], ErrorModel, bool]] = {  # filter, error model, whether forces are estimated
    "linear": (EKF, "exact", True),
    "error_ekf": (EKF, "integrator", False),
    "error_ekf_force": (EKF, "forward", True),
    "ekf": (EKF, "exact", True),
    "ukf": (UKF, "exact", True),
    "smoother": (EKF, "exact", True),
}
TUNED_ON = 1000  # samples of a log that choose the noise where none is given


@dataclass(frozen=True)
class Settings:
    """How to observe; every field has the meaning that :func:`observe` gives it."""

    filter: str = "error_ekf"
    unsure: Unsure | None = None
    start: Mapping[str, float] | None = None
    rates: Mapping[str, float] | None = None
    independents: tuple[str, ...] = ()
    unknown: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    gate: float | None = None
    late: Late = "use"
    horizon: float = np.inf
    frozen_after: int | None = None
    step: float = 0.01
    parameters: tuple[str, ...] = ()
    sensors: tuple[Sensor, ...] | None = None
    consider: bool = True
    engine: Engine = "auto"

    def __post_init__(self) -> None:
        if self.filter not in KINDS:
            raise ModelError(
                Fault(
                    f"there is no filter '{self.filter}'.",
                    "observe",
                    ", ".join(KINDS),
                    hint=did_you_mean(self.filter, list(KINDS)),
                )
            )
        if self.engine == "compiled" and KINDS[self.filter][0] is not EKF:
            raise ModelError(
                Fault(
                    f"the filter '{self.filter}' has no compiled step.", "observe", "engine auto or python", "compiled"
                )
            )

    def method(self) -> Filter:
        kind = KINDS[self.filter][0]
        if kind is EKF:
            return EKF(gate=self.gate, late=self.late, horizon=self.horizon, engine=self.engine)
        return kind(gate=self.gate, late=self.late, horizon=self.horizon)

    def system(self, machine: Observable, unsure: Unsure) -> tuple[MachineSystem, Array, Array]:
        machine = formulated(machine)
        _, error_model, forces = KINDS[self.filter]
        common: dict[str, Any] = {
            "error_model": error_model,
            "unknown": self.unknown if forces else (),
            "independents": self.independents,
            "inputs": self.inputs or (),
            "start": self.start,
            "rates": self.rates,
            "step": self.step,
        }
        if isinstance(machine, Tree):
            chosen = {"parameters": self.parameters, "sensors": self.sensors, "consider": self.consider}
            return tree_system(machine, unsure, **chosen, **common)
        if self.parameters:
            raise ModelError(
                Fault(
                    "parameters are estimated with the state on trees only.",
                    "observe",
                    found=", ".join(self.parameters),
                    hint="Describe the machine as a tree with joints; springs and masses of mechanisms are fixed.",
                )
            )
        natural = machine if isinstance(machine, NaturalSystem) else system_of(machine)
        table = None if self.sensors is None else readout(natural, self.sensors)
        return mechanism_system(natural, unsure, sensors=table, **common)

    def seen(self, system: MachineSystem, q: Array) -> System:
        """The machine as the filter takes it: itself, or its tangent at rest in the pose it starts from."""
        if self.filter != "linear":
            return system
        alone = replace(system, one_set=True) if isinstance(system, MechanismSystem) else system
        return Linearised(alone, system.belief(q, np.zeros(system.nv)).x)


def observe(
    machine: Observable,
    log: Experiment | Measurements,
    filter: str = "error_ekf",
    *,
    unsure: Unsure | None = None,
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    independents: Sequence[str] = (),
    unknown: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    gate: float | None = None,
    late: Late = "use",
    horizon: float = np.inf,
    frozen_after: int | None = None,
    step: float = 0.01,
    parameters: Sequence[str] = (),
    sensors: Sequence[Sensor] | None = None,
    consider: bool = True,
    engine: Engine = "auto",
    progress: Progress = silent,
) -> Observation:
    """Estimate the states of a machine from a log of its sensors.

    Parameters
    ----------
    machine
        A tree, open or closed, on a fixed base or a free one, or a mechanism in natural coordinates, with its sensors.
    log
        Channels by the names of the sensors' outputs and of the inputs, in the sensors' units.
    filter
        One of the table above.
    unsure
        The process noise: how far the model is trusted. Without it the density of the unknown forces (or of white acceleration) is the
        one under which the first thousand samples of the log are most likely.
    start, rates
        Where the model starts, and how fast, by coordinate.
    unknown
        The forces that are estimated, by independent coordinate or load; by default one on each independent coordinate.
    inputs
        Loads whose values are channels of the log; by default, for a tree, all that the log has.
    gate
        The probability that a good reading passes, such as 0.999.
    late, horizon
        See :class:`~veridyn.observe.filter.Filter`; a smoother with late="rewind" smooths what such a filter knows in the end.
    frozen_after
        So many repeats of one number mean that a sensor hangs.
    step
        The longest step of the integration (s).
    parameters
        Parameters of a tree that are estimated with the state; `unsure` gives their walk and their deviation at the start.
    sensors
        Sensors instead of the machine's own.
    consider
        Let the uncertainty of the parameters of ``fit.machine()`` widen the bands of the states.
    engine
        "python" runs the reference instead of the compiled filter step, see :class:`~veridyn.observe.ekf.EKF`.
    """
    settings = Settings(
        filter,
        unsure,
        start,
        rates,
        tuple(independents),
        None if unknown is None else tuple(unknown),
        None if inputs is None else tuple(inputs),
        gate,
        late,
        horizon,
        frozen_after,
        step,
        tuple(parameters),
        None if sensors is None else tuple(sensors),
        consider,
        engine,
    )
    return observe_with(settings, machine, log, progress)


def observe_with(
    settings: Settings, machine: Observable, log: Experiment | Measurements, progress: Progress = silent
) -> Observation:
    """:func:`observe` with its settings in one object."""
    _refuse_other(machine, log)
    machine = formulated(machine)
    tuning: Tuning | None = None
    unsure = settings.unsure
    if settings.inputs is None and isinstance(machine, Tree) and isinstance(log, Experiment):
        settings = replace(settings, inputs=inputs_in(machine, log.names))
    system, q, qd = settings.system(machine, unsure or Unsure())
    readings = log if isinstance(log, Measurements) else measurements_of(system, log)
    if settings.frozen_after is not None:
        readings = readings.flagged(frozen(readings.values, settings.frozen_after), Status.FROZEN)
    if unsure is None:
        machine = ready(system)
        unsure, tuning = tuned(settings, machine, [readings], progress)
        system, q, qd = settings.system(machine, unsure)
    method = settings.method()
    if settings.filter == "smoother":  # it goes back along one chain of steps
        readings = in_order(method, readings.select(system.outputs))
    estimates = run(method, settings.seen(system, q), readings, system.belief(q, qd), progress)
    if settings.filter != "linear" and not estimates.replayed and len(estimates) > 1:
        warn_of_long_steps(system, estimates, readings.inputs)
    found = Observation(settings.filter, system, estimates, estimates, readings.inputs, unsure, tuning)
    return smoothed(found) if settings.filter == "smoother" else found


def smoothed(found: Observation) -> Observation:
    """The same log in the light of all its readings: backwards over what a filter left behind."""
    return replace(found, filter="smoother", track=smooth(found.estimates, found.system))


def tuned(
    settings: Settings,
    machine: Observable,
    logs: Sequence[Measurements],
    progress: Progress = silent,
    samples: int = TUNED_ON,
) -> tuple[Unsure, Tuning]:
    """The `unsure` under which the logs are most likely: one number scales the walk of all forces, or all white accelerations.

    The scale is that of an acceleration of 1 rad/s² or 1 m/s²: a force density of θ (Rᵀ M R)² for θ in (unit/s²)²/s.
    """
    base = settings.unsure or Unsure()
    system, q, qd = settings.system(machine, base)
    start = system.belief(q, qd)
    f, forces = system.f, system.model.unknown
    at = system.instant(start.x, np.zeros(len(system.inputs)) if not logs else logs[0].inputs[0])

    def described(values: Mapping[str, float]) -> Unsure:
        theta = values["density"]
        if not forces:
            return replace(base, acceleration=theta)
        push = np.abs(system.accelerated(at, 0)[:, 2 * f : 2 * f + len(forces)]).max(axis=0)
        return replace(base, force={n: theta / max(float(p), 1e-12) ** 2 for n, p in zip(forces, push)})

    def build(values: Mapping[str, float]) -> System:
        return settings.seen(settings.system(ready(system), described(values))[0], q)

    parts = [(_first(log, samples), system.belief(q, qd)) for log in logs]
    found = tune(settings.method(), build, {"density": 1.0}, parts, decades=5.0, progress=progress)
    return described(found.values), found


def _first(log: Measurements, count: int) -> Measurements:
    if len(log) <= count:
        return log
    arrival = None if log.arrival is None else log.arrival[:count]
    return Measurements(log.t[:count], log.values[:count], log.names, log.flags[:count], log.inputs[:count], arrival)


def formulated(machine: Observable) -> Tree | Mechanism | NaturalSystem:
    """A machine in the formulation it is described in; what is one already stays."""
    if not isinstance(machine, Machine):
        return machine
    return machine.tree if machine.formulation == "tree" else machine.mechanism


def ready(system: MachineSystem) -> Observable:
    """The machine of a system, prepared as far as it can be: redundant constraints have been reported once."""
    return system.model.system if isinstance(system, MechanismSystem) else system.model.tree


def _refuse_other(machine: object, log: object) -> None:
    """Refuse what is no machine, or no log, by name."""
    if not isinstance(machine, Machine | Tree | Mechanism | NaturalSystem):
        raise ModelError(
            Fault("this is no machine that can be observed.", "observe", "a machine", type(machine).__name__)
        )
    if not isinstance(log, Experiment | Measurements):
        raise DataError(
            Fault("this is no log.", "observe", "an Experiment, as load_log returns it", type(log).__name__)
        )


def measurements_of(system: MachineSystem, log: Experiment) -> Measurements:
    """The channels of the system's sensors on the union of their clocks, each at the time it speaks of.

    An input acts from its own stamp to its next one: where it changes between readings there is a row without any.
    """
    table, faults = system.table, Faults()
    delays = np.array([table.sensors[k].delay for k in table.owner])
    moved = {}
    for name, unit, delay in zip(table.names, table.units, delays.tolist()):
        channel = log[name]
        if channel.unit != unit:
            faults.add(
                "its unit is not that of the sensor.",
                where=f"{log.name}, channel '{name}'",
                expected=unit,
                found=channel.unit,
                hint="Convert it where the log is loaded.",
            )
        moved[name] = Channel(name, channel.t - delay, channel.values, unit)
    faults.raise_if_any(DataError)
    known = [log[name] for name in system.inputs]
    changes = [c.t[1:][c.values[1:] != c.values[:-1]] for c in known]
    readings = Measurements.from_experiment(Experiment(moved, log.name), table.names, np.concatenate([*changes, []]))
    first = min(float(log[name].t[0]) for name in table.names if len(log[name]))
    held = np.zeros((len(readings), len(known)))
    for j, channel in enumerate(known):
        if len(channel) == 0 or channel.t[0] > first:
            raise DataError(
                Fault("the input starts after the first reading.", where=f"{log.name}, channel '{channel.name}'")
            )
        acting = np.searchsorted(channel.t, readings.t + SAME, side="right") - 1
        held[:, j] = channel.values[np.maximum(acting, 0)]  # where a delay looks back to before it: as it begins
    arrival = readings.t[:, None] + delays if delays.any() else None
    return replace(readings, inputs=held, arrival=arrival)


class ObserverStep:
    """What an observer knows after a step at the time `t`: the `belief`, and what it has to say about its sensors.

    `values` and `sigma`: the states and their deviations by name; `status`: what became of the reading of each output, by name; all three
    are made when they are first read. `said` is empty while all is well; a sensor that fails is named when it fails and when it is back.
    """

    def __init__(self, system: MachineSystem, t: float, belief: Belief, codes: Codes, said: tuple[str, ...]) -> None:
        self._system, self._codes = system, codes
        self.t, self.belief, self.said = t, belief, said

    @cached_property
    def values(self) -> Mapping[str, float]:
        return dict(zip(self._system.states, self._system.reduced(self.belief.x).tolist()))

    @cached_property
    def sigma(self) -> Mapping[str, float]:
        P = self._system.reported(self.belief.x, self.belief.P)
        return dict(zip(self._system.states, np.sqrt(np.diag(P)).tolist()))

    @cached_property
    def status(self) -> Mapping[str, Status]:
        return statuses(self._system.outputs, self._codes)


class Observer:
    """An observer beside a running program: :meth:`step` takes readings as they come and tells the state at once.

    Settings are those of :func:`observe`; `unsure` must be given, because there is no log to choose it from. It changes with every step;
    not for two threads at once. Sensors with a delay make it go back in time by itself.
    """

    def __init__(self, machine: Observable, filter: str = "ekf", *, unsure: Unsure, **settings: Any) -> None:
        chosen = Settings(filter, unsure, **settings)
        if chosen.filter == "smoother":
            raise ModelError(Fault("a smoother needs the whole log.", "observer", "another filter"))
        self.system, q, qd = chosen.system(machine, unsure)
        delays = np.array([self.system.table.sensors[k].delay for k in self.system.table.owner])
        if delays.any() and chosen.late == "use":
            chosen = replace(chosen, late="rewind", horizon=2.0 * float(delays.max()))
        # The longest wait first, and to the present itself though all are delayed.
        waits = sorted({0.0, *delays.tolist()}, reverse=True)
        self._waits = [(delay, delays == delay) for delay in waits] if delays.any() else []
        self._stream = Stream(chosen.method(), chosen.seen(self.system, q), self.system.belief(q, qd))
        self._repeats = Repeats(len(self.system.outputs), chosen.frozen_after)
        self._silence = Silence(len(self.system.outputs))
        self._places = {name: j for j, name in enumerate(self.system.outputs)}
        self._bad: dict[int, int] = {}
        self._inputs = np.zeros(0)  # as the mechanism has them, until some are given

    @property
    def belief(self) -> Belief:
        return self._stream.belief

    def step(
        self, t: float, measurements: ArrayLike | Mapping[str, float], inputs: ArrayLike | None = None
    ) -> ObserverStep:
        """Take in readings stamped `t` (s): by name, or an array with NaN where there is none; and the loads that act from now on."""
        if isinstance(measurements, Mapping):
            values, codes = self._by_name(measurements)
        else:
            values = np.array(measurements, dtype=np.float64)
            codes = np.zeros(len(self._places), dtype=np.int8)
        if values.shape != codes.shape:
            raise DataError(Fault("wrong shape.", "step", f"{codes.shape}", f"{values.shape}"))
        if inputs is not None:
            self._inputs = np.atleast_1d(np.asarray(inputs, dtype=np.float64))
        silent = self._silence.since(t, codes)
        codes = self._repeats.flags(values, codes)
        if self._waits:
            codes = self._delayed(t, values, codes, inputs)
        elif not isfinite(t):
            codes = self._stream.step(t, values, inputs, codes).codes  # refuses it
        else:
            if not isfinite(np.add.reduce(values)):  # which the sum is where all readings are
                codes[(codes == USED) & ~np.isfinite(values)] = NOT_FINITE
            codes = self._stream.take(t, values, codes, inputs).codes
        said = self._said(t, codes.tolist(), silent)
        return ObserverStep(self.system, t, self._stream.belief, codes, said)

    def _by_name(self, measurements: Mapping[str, float]) -> tuple[Array, Codes]:
        """Readings and codes (m,), MISSING for the outputs that are not named."""
        values, codes = np.full(len(self._places), np.nan), np.full(len(self._places), MISSING, dtype=np.int8)
        for name, value in measurements.items():
            j = self._places.get(name)
            if j is None:
                names = self.system.outputs
                raise DataError(Fault(f"there is no output '{name}'.", "step", hint=did_you_mean(name, names)))
            values[j], codes[j] = value, USED
        return values, codes

    def _delayed(self, t: float, values: Array, codes: Codes, inputs: ArrayLike | None) -> Codes:
        """Each reading at the time it speaks of; the status of all."""
        status = np.full(len(codes), MISSING, dtype=np.int8)
        for delay, concerned in self._waits:
            here = np.where(concerned, codes, np.int8(MISSING))
            if delay > 0.0 and (here == MISSING).all():
                continue
            step = self._stream.step(t - delay, values, inputs if delay == 0.0 else None, here)
            status[concerned] = step.codes[concerned]
        return status

    def virtual(self, wanted: Virtual) -> tuple[Array, Array]:
        """The value (k,) of a virtual sensor now, and its standard deviation."""
        belief = self._stream.belief
        y, G = quantity_of(self.system, wanted).at(belief.x, self.system.instant(belief.x, self._inputs), self._inputs)
        return y, np.sqrt(np.maximum(((G @ belief.P) * G).sum(axis=1), 0.0))

    def _said(self, t: float, codes: list[int], silent: list[bool]) -> tuple[str, ...]:
        if not self._bad and not any(codes):
            return ()
        told = []
        for j, (now, gone) in enumerate(zip(codes, silent)):
            before = self._bad.get(j, USED)
            if now == before or (now == MISSING and not gone):
                continue
            name = self.system.outputs[j]
            if now == USED:
                del self._bad[j]
                told.append(f"{t:.6g} s: '{name}' is used again.")
            else:
                self._bad[j] = now
                why = "silent" if now == MISSING else STATUSES[now].name.lower().replace("_", " ")
                told.append(f"{t:.6g} s: '{name}' is not used ({why}); its band grows.")
        return tuple(told)
