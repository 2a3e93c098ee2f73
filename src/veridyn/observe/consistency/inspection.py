"""What the log of an observation shows to be wrong by itself, which no filter can tell from a motion.

Readings that their sensor did not make are left out (:mod:`veridyn.observe.hung`), and outliers count little: both are findings of what
became of readings. Here stand outputs that never change while others do, by :func:`veridyn.signals.quality.inspect`, where their sensor has
noise and no steps, so that not even a joint at rest reads like that; and clocks that differ. What acts is left alone: it is often a
command, which may hold a value, jump and stop.
"""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array
from veridyn.inference.finding import FoundCause
from veridyn.mechanics.formulation import Outputs
from veridyn.model.experiment import Experiment
from veridyn.signals.clock_offset import offset_findings, sensor_clock_offsets
from veridyn.signals.findings import Finding
from veridyn.signals.quality import inspect


def inspected(log: Experiment, table: Outputs, clocks: bool = False) -> tuple[FoundCause, ...]:
    """The findings about outputs of the sensors of `table`; `clocks`: about offsets between sensors as well."""
    sensors = {name: table.sensors[k] for name, k in zip(table.names, table.owner, strict=True) if name in log}
    still = [name for name in sensors if _never_changes(log[name].values)]
    told = {name: log[name] for name in still if not sensors[name].quantum} if len(still) < len(sensors) else {}
    found = list(inspect(Experiment(told, log.name)).of("constant")) if told else []
    found += offset_findings(sensor_clock_offsets(table.sensors, log)) if clocks else ()
    return tuple(_cause(one) for one in found)


def _never_changes(values: Array) -> bool:
    """Whether all readings are one number: asked of every log, so that little else is looked at."""
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool((finite == finite[0]).all())


def _cause(finding: Finding) -> FoundCause:
    """A finding about a log as one about an observation: how often is its evidence, and the first time (s) its size."""
    return FoundCause(
        cause=finding.kind,
        place=finding.channel,
        evidence=float(finding.count),
        size=finding.t_start,
        message=finding.message,
    )
