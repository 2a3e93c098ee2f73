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

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from veridyn.errors import DataError, DataWarning, Fault, ModelError, did_you_mean, warn
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.mechanics.formulation import Outputs
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.consistency.inspection import inspected
from veridyn.observe.consistency.withheld import Spans, withhold
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import filter_of
from veridyn.observe.hung import without_hung
from veridyn.observe.machine_run import run_machine
from veridyn.observe.measurements import Measurements, first_positions, measurements_of
from veridyn.observe.noise_choice import NoiseTuning, tuned
from veridyn.observe.observation import Observation
from veridyn.observe.observer_setup import ObserverSetup, PreparedMachine
from veridyn.observe.settings import ObserveSettings
from veridyn.progress import Progress, silent

# Stage → those that are made of it, and must be made again where it is replaced.
MADE_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "prepared": ("inspection", "readings", "noise", "states"),
        "inspection": ("states",),
        "readings": ("noise", "states"),
        "noise": ("states",),
        "states": (),
    }
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservationRun(ABC):
    """What every observation passes through; see the module for its stages.

    Parameters
    ----------
    setup : ObserverSetup
        The filter with its settings.
    machine, log
        What is observed, and what its sensors read: an Experiment, or Measurements that are made ready.
    withheld : mapping of sensors to spans (s)
        Readings that are compared with their predictions and not used.
    settle : float
        Time (s) at the beginning that judgements leave out.
    progress : callable (task, done, total)
        Called as samples are filtered.
    """

    setup: ObserverSetup
    machine: GivenMachine
    log: Experiment | Measurements
    withheld: Spans = field(default_factory=dict[str, Sequence[tuple[float, float]]])
    settle: float = 0.0
    progress: Progress = silent

    def replacing(self, **stages: Any) -> Self:
        """The same run with these stages as they are given; what comes after them is made of them."""
        unknown = [name for name in stages if name not in MADE_OF]
        if unknown:
            hint = did_you_mean(unknown[0], tuple(MADE_OF))
            raise ModelError(f"an observation has no stage '{unknown[0]}'.", where="replacing", hint=hint)
        made_anew = {later for name in stages for later in MADE_OF[name]}
        made = replace(self)
        vars(made).update(
            {name: made for name, made in vars(self).items() if name in MADE_OF.keys() - made_anew} | stages
        )
        return made

    @cached_property
    def inspection(self) -> tuple[FoundCause, ...]:
        """What the log shows to be wrong by itself; of Measurements nothing is known but what they read."""
        return self._inspected(self.log) if isinstance(self.log, Experiment) else ()

    @cached_property
    def readings(self) -> Measurements:
        """The readings of the sensors on one clock, without those that a sensor did not make or that are withheld."""
        table = self._table()
        made = self.log if isinstance(self.log, Measurements) else self._measured(self.log)
        asked = withhold(made, table, self.withheld) if self.withheld else made
        return without_hung(asked, table, self.setup.settings.frozen_after)

    @cached_property
    def states(self) -> Observation:
        """The states along the readings, with what the log itself shows to be wrong, and from which sample on they are judged."""
        made = self._observed()
        settled = int(np.searchsorted(made.t, self._settles_until(made)))
        return replace(made, inspection=self.inspection, settled=settled)

    def _settles_until(self, states: Observation) -> float:
        """The time (s) from which on the states are judged."""
        return float(states.t[0]) + self.settle

    @property
    def findings(self) -> tuple[FoundCause, ...]:
        """What limits what may be concluded from the states, by rank."""
        return self.states.findings

    @property
    def verdict(self) -> Verdict:
        """How good the states are, and why they are no better."""
        return self.states.verdict

    @abstractmethod
    def _inspected(self, log: Experiment) -> tuple[FoundCause, ...]:
        """What the log shows to be wrong by itself."""

    @abstractmethod
    def _table(self) -> Outputs:
        """The sensors that are read."""

    @abstractmethod
    def _measured(self, log: Experiment) -> Measurements:
        """The channels of the sensors on one clock, with what acts."""

    @abstractmethod
    def _observed(self) -> Observation:
        """The filter along the readings."""


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
