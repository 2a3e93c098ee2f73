"""What every observation passes through, whatever its machine, and how a stage is replaced; :mod:`veridyn.observe.pipeline` lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from veridyn.errors import ModelError, did_you_mean
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.formulated import GivenMachine
from veridyn.mechanics.formulation import Outputs
from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.withheld import Spans, withhold
from veridyn.observe.hung import without_hung
from veridyn.observe.measurements import Measurements
from veridyn.observe.observation import Observation
from veridyn.observe.observer_setup import ObserverSetup
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
    """What every observation passes through; see :mod:`veridyn.observe.pipeline` for its stages.

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
