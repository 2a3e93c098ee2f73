"""An observation from its log to its verdict, stage by stage: the one way of the verb, of studies and the command, of reports and `live`.

    run = observation_run(machine, log, EKF(), ObserveSettings())
    run.inspection     what the log shows to be wrong by itself
    run.prepared       the machine as the filter sees it: inputs that the log has, and where it starts
    run.readings       of its sensors, on one clock; those that hang and those that are withheld are masked
    run.noise          the process noise, given or chosen by the readings
    run.states         states with deviations: :class:`~veridyn.observe.observation.Observation`
    run.findings, run.verdict

Each stage is made when it is asked for, once, of those before it. Any of them may be taken out and used alone, or replaced:
``run.replacing(readings=other).states`` goes on with other readings, and with everything else as it is. Rules that nobody states, such as
when a sensor hangs, how much noise there is, or how long a step is, belong to the stages, so that they are the same at every door.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from veridyn.errors import DataError, DataWarning, Fault, warn
from veridyn.inference.finding import FoundCause
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.mechanics.formulation import Outputs
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.consistency.inspection import inspected
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import filter_of
from veridyn.observe.machine_run import run_machine
from veridyn.observe.measurements import Measurements, first_positions, measurements_of
from veridyn.observe.noise_choice import NoiseTuning, tuned
from veridyn.observe.observation import Observation
from veridyn.observe.observer_setup import ObserverSetup, PreparedMachine
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.stages import ObservationRun
from veridyn.progress import Progress, silent


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineObservation(ObservationRun):
    """The observation of a machine of bodies and joints, in any formulation.

    `choose_noise`: the readings choose the densities of the process noise also where the settings have some deviations for its start.
    """

    choose_noise: bool = False

    @cached_property
    def prepared(self) -> PreparedMachine:
        """The setup with the inputs of the log, the system that it makes of the machine, and where that starts."""
        form, setup, log = formulated(self.machine), self.setup, self.log
        if setup.settings.inputs is None and isinstance(log, Experiment):
            setup = setup.replaced(inputs=inputs_in(form, log.names, log.name))
        made = setup.prepared(form)
        if setup.settings.start != "readings":
            return made
        if isinstance(log, Measurements):
            raise DataError(
                "first readings are taken from a log's channels.", where="observe, start", expected="an Experiment"
            )
        return setup.started(made.system, first_positions(made.system, log))

    def _inspected(self, log: Experiment) -> tuple[FoundCause, ...]:
        system = self.prepared.system
        return inspected(log, system.table, system.model.free)

    @cached_property
    def noise(self) -> tuple[ObserverSetup, NoiseTuning | None]:
        """The setup with its process noise, and how the readings chose it; None where it is given."""
        setup, system = self.prepared.setup, self.prepared.system
        if setup.settings.process_noise is not None and not self.choose_noise:
            return setup, None
        learns = setup.settings.model_error == "learned"
        chosen, tuning = tuned(setup, system.model.form, [self.readings], self.progress, walk_alone=learns)
        return setup.replaced(process_noise=chosen), tuning

    def _table(self) -> Outputs:
        return self.prepared.system.table

    def _measured(self, log: Experiment) -> Measurements:
        return measurements_of(self.prepared.system, log, self.setup.settings.input_hold)

    def _observed(self) -> Observation:
        setup, tuning = self.noise
        prepared = self.prepared if tuning is None else setup.prepared(self.prepared.system.model.form)
        return run_machine(prepared, self.readings, tuning, self.progress)


def observation_run(
    machine: GivenMachine,
    log: Experiment | Measurements,
    method: Filter | str = "ekf",
    settings: ObserveSettings | None = None,
    **more: Any,
) -> ObservationRun:
    """The stages of :func:`~veridyn.observe.observe.observe` for a machine, its log, a filter and settings.

    `more`: what a run may be told beside them: withheld, settle, progress.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> from veridyn.observe.pipeline import observation_run
    >>> rod = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
    >>> inertia = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    >>> encoder = vd.Sensor("encoder", "coordinate", "q1", 1e-3)
    >>> pendulum = vd.Machine.of_bodies([rod], inertia=inertia, sensors=[encoder])
    >>> log = vd.simulate(pendulum, vd.manoeuvres.Driven(2.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    >>> run = observation_run(pendulum, log, "ekf", vd.ObserveSettings(start="readings"))
    >>> run.readings.names, len(run.readings), run.findings, run.verdict.grade
    (('encoder',), 201, (), 'good')
    """
    setup = ObserverSetup(filter_of(method, "observe"), settings or ObserveSettings())
    if isinstance(machine, Machine) and machine.car is not None:
        from veridyn.observe.car.pipeline import CarObservationRun  # here: it brings compiled equations along

        return CarObservationRun(setup=setup, machine=machine, log=log, **more)
    return MachineObservation(setup=setup, machine=machine, log=log, **more)


def observe_with(
    setup: ObserverSetup, machine: GivenMachine, log: Experiment | Measurements, progress: Progress = silent
) -> Observation:
    """The states of a machine of bodies, by a setup and without warnings of findings."""
    return MachineObservation(setup=setup, machine=machine, log=log, progress=progress).states


def inputs_in(machine: GivenMachine, names: Sequence[str], where: str) -> tuple[str, ...]:
    """The channels of a log that act on a machine, in one order; `names` are those of the log that is called `where`.

    Those that the machine has and its formulation cannot take are refused; those named as forces, wrenches or loads of the machine that
    nevertheless act on nothing are reported by a warning.
    """
    form = formulated(machine)
    found, known = form.inputs_in(names), {name for load in form.loads for name in load.channels}
    _warn_of_unused([n for n in names if n not in found and (n in known or n.startswith(("force.", "wrench.")))], where)
    return found


def _warn_of_unused(names: Sequence[str], where: str) -> None:
    if names:
        warn(
            DataWarning,
            Fault(
                "these channels of the log act on nothing of the machine, and are not used.",
                where=where,
                expected="force.C of a coordinate with a motor, all six components of a wrench on a body, loads by their names",
                found=", ".join(names),
                hint="Rename them, give the machine a motor or load there, or list those that are used: ObserveSettings(inputs=…).",
            ),
        )
