"""The observer that a study of kind observe describes: its machine with the sensors that the log has, and a filter; and its run.

It is checked before any log is read. Its run gives states with deviations, virtual sensors with bands, and how far to trust them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from veridyn.errors import DataError, Fault, ModelError, VeridynError, did_you_mean
from veridyn.mechanics.formulated import GivenMachine, PointsForm, formulated
from veridyn.mechanics.natural.channels import motor_names, readout
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, natural_system
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.graph import placed_load, placed_sensor
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Observation, Virtual, quantity_of
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import MachineObservation
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.progress import Progress, silent
from veridyn.studies.config.observe import ObserveFile, PlaceSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import fingerprint
from veridyn.studies.run.machine import existing_file, model_file, named_machine
from veridyn.studies.run.observe_log import beside, derived_faults, observed_log, withheld_placed
from veridyn.studies.run.observed import ObserveRun


@dataclass(frozen=True, kw_only=True)
class Described:
    """The names of a machine that a study may use: coordinates, loads, channels of what acts, and outputs of its sensors.

    `base`: the coordinates of a free base, base.x … base.yaw.
    """

    name: str
    coordinates: tuple[str, ...]
    loads: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    base: tuple[str, ...] = ()


def observed_machine(loaded: Loaded[ObserveFile]) -> tuple[Machine, Described]:
    """The machine with the sensors that the log has, and its names; what is wrong with it is reported under the name of its file."""
    machine = _measured(loaded, _machine(loaded))
    try:
        return machine, _in_points(machine) if machine.formulation == "natural" else _in_joints(machine)
    except ModelError as error:
        raise ModelError(error.faults, model_file(loaded).name) from error


def _in_joints(machine: Machine) -> Described:
    tree_readout(tree_of(machine))  # refuses sensors that it cannot have
    return Described(
        name=machine.name,
        coordinates=machine.coordinates,
        loads=tuple(load.name for load in machine.loads),
        inputs=_acting(machine),
        outputs=_outputs([placed_sensor(machine, i) for i in machine.sensors], 3),
        base=BASE_NAMES if machine.base == "free" else (),
    )


def _in_points(machine: Machine) -> Described:
    """One with tyres or prescribed coordinates is run over the freedoms of its joints, and has their names."""
    system = natural_system(machine)
    _refuse_unread(system)
    points = isinstance(formulated(machine), PointsForm)
    prescribed = [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    return Described(
        name=machine.name,
        coordinates=system.coordinates if points else machine.coordinates,
        loads=tuple(load.name for load in system.mechanism.loads),
        inputs=(*system.forces.places, *motor_names(machine), *prescribed),
        outputs=_outputs(machine.sensors, machine.dimension),
        base=BASE_NAMES if not points and machine.base == "free" else (),
    )


def _machine(loaded: Loaded[ObserveFile]) -> Machine:
    """The machine in the formulation of the study."""
    machine = named_machine(loaded)
    return machine.with_formulation(loaded.study.model.formulation or machine.formulation)


def _acting(machine: Machine) -> tuple[str, ...]:
    """The channels of a log that act on a machine in joint coordinates."""
    found = [c for load in machine.loads for c in placed_load(machine, load).channels]
    found += [f"force.{c}" for c in machine.actuated_coordinates if c not in machine.prescribed]
    found += [f"signal.{name}" for name in machine.signals]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    found += [f"wrench.{b.name}.{row}" for b in machine.links for row in WRENCH_ROWS]
    return tuple(found)


def _outputs(sensors: Sequence[Sensor], dimension: int) -> tuple[str, ...]:
    return tuple(c for s in sensors for c in s.channels(dimension))


def _refuse_unread(system: NaturalSystem) -> None:
    """Refuse sensors that points and vectors cannot read, all of them at once."""
    faults = []
    for i in system.mechanism.sensors:
        try:
            readout(system, [i])
        except ModelError as error:
            faults += [replace(f, where=f"sensor '{i.name}', {f.where}") for f in error.faults]
    if faults:
        raise ModelError(faults)


def _measured(loaded: Loaded[ObserveFile], machine: Machine) -> Machine:
    """The machine with the sensors that the log has, and the noise the study gives them."""
    s = loaded.study
    names = [i.name for i in machine.sensors]
    faults = [
        loaded.fault(at, f"'{name}' is no sensor of '{machine.name}'.", hint=did_you_mean(name, names))
        for at, name in (
            *((("without", k), name) for k, name in enumerate(s.without)),
            *((("process_noise", "sensors", name), name) for name in s.process_noise.sensors),
        )
        if name not in names
    ]
    kept = [i for i in machine.sensors if i.name not in s.without]
    if not kept:
        at = ("without",) if s.without else ("model",)
        faults.append(loaded.fault(at, "no sensor is left, so there is nothing to observe it by."))
    for i in kept:
        sigma = s.process_noise.sensors.get(i.name, i.sigma)
        if sigma < 0.0 or (sigma == 0.0 and i.quantum == 0.0):
            at = ("process_noise", "sensors", i.name)
            faults.append(loaded.fault(at, "this is no deviation.", "a positive number", f"{sigma:g}"))
    if faults:
        raise loaded.error(faults)
    return replace(machine, sensors=tuple(replace(i, sigma=s.process_noise.sensors.get(i.name, i.sigma)) for i in kept))


@dataclass(frozen=True, eq=False)
class PreparedObserver:
    """A machine without redundant constraints, its filter with settings, the system these make, and the virtual sensors wanted."""

    machine: GivenMachine
    setup: ObserverSetup
    system: MachineSystem
    virtual: tuple[Virtual, ...]

    def along(self, study: ObserveFile, log: Experiment, progress: Progress = silent) -> MachineObservation:
        """The observation of a log."""
        return MachineObservation(
            setup=self.setup,
            machine=self.machine,
            log=log,
            withheld=study.withheld,
            settle=study.settle,
            choose_noise=study.process_noise.tuned,
            progress=progress,
        )


def observer_of(loaded: Loaded[ObserveFile]) -> PreparedObserver:
    """The observer of a study; a FileError names what the study asks of the machine and the machine does not have."""
    machine, described = observed_machine(loaded)
    wanted = tuple(Virtual(name, v.kind, _on(v.on)) for name, v in loaded.study.virtual.items())
    setup = _setup(loaded, described)
    system = _checked(loaded, setup, machine, wanted)
    return PreparedObserver(system.model.form, setup, system, wanted)


def _setup(loaded: Loaded[ObserveFile], mechanism: Described) -> ObserverSetup:
    s, f, u = loaded.study, loaded.study.filter, loaded.study.process_noise
    loads, outputs = mechanism.loads, mechanism.outputs
    moving = (*mechanism.base, *mechanism.coordinates)
    faults = [
        loaded.fault(at, f"'{n}' is no coordinate of '{mechanism.name}'.", hint=did_you_mean(n, known))
        for at, n, known in (
            *((("start", "coordinates", n), n, moving) for n in s.start_given.coordinates),
            *((("start", "rates", n), n, moving) for n in s.start_given.rates),
            *((("filter", "independents", k), n, mechanism.coordinates) for k, n in enumerate(f.independents)),
        )
        if n not in known
    ]
    faults += [
        loaded.fault(
            ("filter", "unknown", k),
            f"'{n}' is neither a coordinate nor a load of '{mechanism.name}'.",
            hint=did_you_mean(n, [*moving, *loads]),
        )
        for k, n in enumerate(f.unknown or ())
        if n not in (*moving, *loads)
    ]
    if f.unknown and f.name == "error_ekf":
        what = "the error_ekf takes forces as known."
        faults.append(loaded.fault(("filter", "unknown"), what, "error_ekf_force, ekf, ukf or smoother"))
    faults += [
        loaded.fault(
            ("log", "columns", name),
            f"'{name}' is neither a sensor's output nor a load of '{mechanism.name}'.",
            hint=did_you_mean(name, [*outputs, *mechanism.inputs]),
        )
        for name in s.log.columns
        if name not in outputs and name not in mechanism.inputs and not beside(name, outputs)
    ]
    faults += derived_faults(loaded, outputs)
    faults += [
        loaded.fault(
            ("log", "columns"),
            f"no column is given for the sensor's output '{name}'.",
            hint="Name its column, or list the sensor under without.",
        )
        for name in outputs
        if name not in s.log.columns and name.rpartition(".")[0] not in s.log.geodetic
    ]
    if faults:
        raise loaded.error(faults)
    process_noise = ProcessNoise(
        u.position or 0.0, u.acceleration or 0.0, u.force or 0.0, u.start, u.start_rate, u.start_force
    )
    settings = ObserveSettings(
        process_noise=process_noise,
        model_error=u.model_error,
        start="readings" if s.start == "readings" else s.start_given.coordinates or None,
        rates=s.start_given.rates or None,
        independents=f.independents,
        unknown=f.unknown,
        inputs=tuple(name for name in s.log.columns if name in mechanism.inputs),
        frozen_after=f.frozen_after,
        step=f.step,
        input_hold=f.input_hold,
        drifts=f.drifts,
    )
    return ObserverSetup(f.method(), settings)


def _checked(
    loaded: Loaded[ObserveFile], setup: ObserverSetup, machine: Machine, wanted: Sequence[Virtual]
) -> MachineSystem:
    """The system, once everything that the study says of it is known to be possible: before the log is read."""
    try:
        form = formulated(machine)
        if isinstance(form, PointsForm):
            start_of(form.system, loaded.study.start_given.coordinates or None, setup.settings.rates)
    except DataError as error:
        at = ("start", "rates" if error.faults[0].at[:1] == ("rates",) else "coordinates")
        raise loaded.error([loaded.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]) from error
    except ModelError as error:
        raise ModelError(error.faults, model_file(loaded).name) from error
    try:
        system, q, qd = setup.system(form)
        system.belief(q, qd)
    except VeridynError as error:
        raise loaded.error([_placed(loaded, fault) for fault in error.faults]) from error
    faults, taken = [], {"t", *system.states}
    for v in wanted:
        try:
            components = quantity_of(system, v).components
        except VeridynError as error:
            faults += [loaded.fault(("virtual", v.name), f.what, f.expected, f.found, f.hint) for f in error.faults]
            continue
        faults += [
            loaded.fault(
                ("virtual", v.name), f"'{c}' is the name of another column.", hint="Give it a name of its own."
            )
            for c in components
            if c in taken
        ]
        taken |= set(components)
    if faults:
        raise loaded.error(faults)
    return system


def _placed(loaded: Loaded[ObserveFile], fault: Fault) -> Fault:
    """A fault of the section process_noise, or of the independent coordinates that are asked for, with its line; others as they are."""
    if fault.at[:1] == ("process_noise",):
        at = fault.at
    elif loaded.study.filter.independents and fault.at == ("independents",):
        at = ("filter", "independents")
    else:
        return fault
    return loaded.fault(at, fault.what, fault.expected, fault.found, fault.hint)


def _on(on: str | tuple[str, str] | PlaceSettings) -> str | tuple[str, str] | Marker:
    return Marker(on.body, on.at, on.axis, on.side) if isinstance(on, PlaceSettings) else on


def observe_study(
    loaded: Loaded[Any], progress: Progress = silent, clock: Callable[[], float] = time.process_time
) -> ObserveRun:
    """Observe what a study file of kind observe names: a machine, or a car of a few numbers along a drive.

    `step_microseconds` is processor time by `clock` over the samples; choosing the noise, learning the model's error and compiling are
    left out.
    """
    if loaded.study.of_a_drive:
        from veridyn.studies.run.car_observe import observe_drive  # here: it brings the equations of a car along

        return observe_drive(loaded, progress)
    return _observe_machine(loaded, progress, clock)


def _observe_machine(loaded: Loaded[ObserveFile], progress: Progress, clock: Callable[[], float]) -> ObserveRun:
    s = loaded.study
    prepared = observer_of(loaded)
    log_file = existing_file(loaded, s.log.file, ("log", "file"))
    log, false_counts = observed_log(loaded, prepared.system, log_file)
    with withheld_placed(loaded):
        found = prepared.along(s, log, progress).states
    spent = _step_microseconds(found, clock)
    if not found.estimates.dof[found.settled :].any():
        what = "no reading is left to judge the filter by."
        shown = f"{s.settle:g} s of a log that lasts {found.t[-1] - found.t[0]:.3g} s"
        fault = loaded.fault(("settle",), what, found=shown, hint="Is the unit of log.time right?")
        raise loaded.error(fault)
    inputs = {
        "study": fingerprint(loaded.text),
        "model": fingerprint(model_file(loaded)),
        "log": fingerprint(log_file),
    }
    wanted = prepared.virtual
    return ObserveRun(found, found.virtual(*wanted) if wanted else {}, spent, inputs, s.accept, false_counts)


def _step_microseconds(found: Observation, clock: Callable[[], float]) -> float:
    """The time of one sample of the run, made once more now that its noise is known and its code is made."""
    assert found.made_by is not None
    begin = clock()
    found.made_by.repeated()
    return 1e6 * (clock() - begin) / len(found)
