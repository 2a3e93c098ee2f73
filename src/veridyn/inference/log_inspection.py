"""What inspection of a log says against a result that was made of it: clocks in another unit, and sensors that hang, drop out or clip.

    mistakes = log_mistakes(logs, roles);  findings = findings_of(mistakes)

Whatever is identified from logs asks this, and nothing else, of the channels that it reads: :func:`veridyn.signals.quality.inspect` has the
rules. A joint that dwells repeats its reading as a hung encoder does, so that channels are shown to it under the names of a log of joints
(``q.C``, ``qd.C``, ``force.C``), by which the others say whether the machine rests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.inference.finding import FoundCause, Mistake
from veridyn.model.experiment import Experiment
from veridyn.signals.findings import SLOWEST_CLOCK, slow_clock
from veridyn.signals.quality import inspect

# Kinds of findings that spoil what is made of a channel
SPOILING = ("constant", "spike", "dropout", "frozen", "clipping", "held", "coarse")


def log_mistakes(logs: Sequence[Experiment], roles: Mapping[str, str]) -> list[Mistake]:
    """What speaks against the measured channels of these logs; `roles`: channel → its name in a log of joints. Others are not looked at."""
    measured = [_by_role(log, {name: name for name in roles}) for log in logs]
    return [*odd_clocks(measured), *(m for log in logs for m in sensor_mistakes(log, roles, f"{log.name}, channel"))]


def sensor_mistakes(log: Experiment, roles: Mapping[str, str], part: str = "channel") -> list[Mistake]:
    """Channels that are constant, clipped, frozen, held or coarse, or have spikes and dropouts; each is named as a `part`."""
    called = {role: name for name, role in roles.items()}
    return [
        Mistake(f.kind, replace(f.fault, where=f"{part} '{called[f.channel]}'", line=None, at=()))
        for f in inspect(_by_role(log, roles))
        if f.kind in SPOILING and f.severity == "warning"
    ]


def odd_clocks(logs: Sequence[Experiment]) -> list[Mistake]:
    """Clocks in another unit: rates that no logger of machines has."""
    slowest = {log.name: min((c.rate for c in log.channels.values()), default=np.inf) for log in logs}
    return [clock_mistake(name, rate) for name, rate in slowest.items() if rate < SLOWEST_CLOCK]


def clock_mistake(where: str, rate: float) -> Mistake:
    """That a log of `rate` samples per second is too slow."""
    return Mistake("clock unit", slow_clock(where, rate))


def findings_of(mistakes: Sequence[Mistake]) -> tuple[FoundCause, ...]:
    """Mistakes as findings of a result, by rank."""
    return tuple(mistake.finding(rank) for rank, mistake in enumerate(mistakes, 1))


def _by_role(log: Experiment, roles: Mapping[str, str]) -> Experiment:
    return Experiment({role: replace(log[n], name=role) for n, role in roles.items() if n in log}, log.name)
