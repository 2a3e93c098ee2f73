"""The observer that a study of kind observe describes, made ready: checked against its machine before any log is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.errors import DataError, Fault, ModelError, VeridynError, did_you_mean
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.mechanics.natural.formulation import PointsForm
from veridyn.mechanics.natural.minimal import start_of
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.observe.consistency.tuning import Tuning
from veridyn.observe.filters.methods import FILTERS
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status, frozen
from veridyn.observe.observe import tuned
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.virtual import Virtual, quantity_of
from veridyn.progress import Progress, silent
from veridyn.studies.config.observe import ObserveFile, PlaceSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.observe_channels import beside, derived_faults
from veridyn.studies.run.observe_machine import Described, model_file, observed_machine


@dataclass(frozen=True, eq=False)
class PreparedObserver:
    """A machine without redundant constraints, its filter with settings, the system these make, and the virtual sensors wanted."""

    machine: GivenMachine
    setup: ObserverSetup
    system: MachineSystem
    virtual: tuple[Virtual, ...]

    def tuned(
        self, study: ObserveFile, readings: Measurements, progress: Progress = silent
    ) -> tuple[PreparedObserver, Measurements, Tuning | None]:
        """With the process noise under which these readings are most likely, where the study gives no density.

        Frozen readings are flagged first: a sensor that repeats one number carries no information about the noise.
        """
        frozen_after = self.setup.settings.frozen_after
        if frozen_after is not None:
            readings = readings.flagged(frozen(readings.values, frozen_after), Status.FROZEN)
        if not study.process_noise.tuned:
            return self, readings, None
        process_noise, tuning = tuned(self.setup, self.machine, [readings], progress)
        return replace(self, setup=self.setup.replaced(process_noise=process_noise)), readings, tuning


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
            *((("start", "coordinates", n), n, moving) for n in s.start.coordinates),
            *((("start", "rates", n), n, moving) for n in s.start.rates),
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
        start=s.start.coordinates or None,
        rates=s.start.rates or None,
        independents=f.independents,
        unknown=f.unknown,
        inputs=tuple(name for name in s.log.columns if name in mechanism.inputs),
        frozen_after=f.frozen_after,
        step=f.step,
    )
    horizon = np.inf if f.horizon is None else f.horizon
    return ObserverSetup(FILTERS[f.name](gate=f.gate, late=f.late, horizon=horizon), settings)


def _checked(
    loaded: Loaded[ObserveFile], setup: ObserverSetup, machine: Machine, wanted: Sequence[Virtual]
) -> MachineSystem:
    """The system, once everything that the study says of it is known to be possible: before the log is read."""
    try:
        form = formulated(machine)
        if isinstance(form, PointsForm):
            start_of(form.system, loaded.study.start.coordinates or None, setup.settings.rates)
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
