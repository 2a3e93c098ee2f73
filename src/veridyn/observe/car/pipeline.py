"""The observation of a car of a few numbers from a drive, stage by stage as that of every machine: :mod:`veridyn.observe.pipeline`.

A part of a drive is observed by a filter that has settled before it, where the log begins early enough. Deviations of its noise are
those of the settings: innovations of a car are correlated, and their likelihood chooses none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from veridyn.errors import Fault
from veridyn.inference.finding import FoundCause
from veridyn.mechanics.formulation import Outputs
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.car.observation import CarObservation, SensorTable, observed_car, run_car, sensing_car
from veridyn.observe.car.system import drive_of, lateral_measurements
from veridyn.observe.measurements import Measurements
from veridyn.observe.observation import Observation
from veridyn.observe.stages import ObservationRun
from veridyn.signals.drive import DriveLog, log_faults

SETTLING_S = 3.0  # left out of judgements after a start
SETTLED_LOGS = 10.0  # times that: a shorter drive is judged as a whole
WARM_UP_S = 10.0  # that a filter runs before the first sample it is asked about, where the log has them
CHECKED_S = 60.0  # s of a drive that tell whether its axles are exchanged


def drive_fault(fault: Fault) -> FoundCause:
    """A mistake that the log of a drive shows, as a finding."""
    return FoundCause(cause="log", place=fault.where, message=str(fault))


@dataclass(frozen=True, eq=False, kw_only=True)
class CarObservationRun(ObservationRun):
    """See the module. `span`: from and to (s), as the log counts; all of it by default."""

    machine: Machine
    span: tuple[float, float] = (-float("inf"), float("inf"))

    @cached_property
    def prepared(self) -> Machine:
        """The car with the sensors that are used; what belongs to machines of bodies is refused."""
        return sensing_car(self.setup, self.machine, "observe")

    def _inspected(self, log: Experiment) -> tuple[FoundCause, ...]:
        return tuple(drive_fault(fault) for fault in log_faults(log, self.prepared))

    @cached_property
    def noise(self) -> None:
        """Given by the settings, or the deviations that a CarNoise has by default."""

    @cached_property
    def drive(self) -> DriveLog:
        """The channels on one clock, from where the filter begins to warm up."""
        assert isinstance(self.log, Experiment)
        whole, (low, high) = drive_of(self.prepared, self.log), self.span
        return whole.between(low - WARM_UP_S, high)

    def _table(self) -> Outputs:
        return SensorTable(self.prepared.sensors)

    def _measured(self, log: Experiment) -> Measurements:
        return lateral_measurements(self.drive, self.prepared)

    def _observed(self) -> CarObservation:
        car = observed_car(self.prepared, self.setup.settings, self.readings)
        made = run_car(self.setup.method, car, self.readings, self.progress)
        if isinstance(self.log, Experiment):
            first = max(self.span[0], float(made.t[0]))
            made = replace(made, beginning=self.drive.between(first, first + CHECKED_S))
        return made if self.span[0] <= made.t[0] else made.since(self.span[0])

    @property
    def observed(self) -> CarObservation:
        """The states, as those of a car."""
        assert isinstance(self.states, CarObservation)
        return self.states

    def _settles_until(self, states: Observation) -> float:
        """A start takes some seconds; a short drive has none to spare."""
        assert isinstance(states, CarObservation)
        first, last = float(states.t[0]), float(states.t[-1])
        began = first if states.whole is None else float(states.whole.t[0])
        short = last - first <= SETTLED_LOGS * SETTLING_S
        return max(super()._settles_until(states), first if short else began + SETTLING_S)
