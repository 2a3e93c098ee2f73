"""Which sensor is wrong: what a gate refused of each, and whether the innovations that it let pass have a mean.

    z = Σ ν_k/√S_k / √N        normal with deviation 1 where filter and sensor agree (N readings that were used)

A sensor is named where more of its readings were refused than a gate of probability p refuses of good ones by chance, or where an
output's z is beyond `MEAN_DEVIATIONS`. One that is wrong pulls the others' innovations along as far as it was let in: the strongest
evidence stands first, and beside one that repeats itself, which no model is needed to see, those with a smaller mean since then are not
named. Where `SEVERAL` stand side by side the fault is likely to lie in what they are compared with: an input, or the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.health import WORDS, Episode, episodes
from veridyn.observe.history import StateHistory
from veridyn.observe.measurements import Status
from veridyn.observe.result import Estimates

Array = NDArray[np.float64]
REFUSED_SHARE = 0.03  # of a sensor's readings: a gate of 0.99 or more refuses fewer good ones (chosen)
MEAN_DEVIATIONS = 6.0  # of the mean innovation: models are not exact (chosen)
REPEATED_SHARE = 0.98  # of neighbours that are equal, from which on a sensor without steps repeats itself
SEVERAL = 3  # sensors named at once
LEAST = 3  # readings in a row that make an episode


@dataclass(frozen=True)
class SensorFinding:
    """What is wrong with a sensor, in words, since when (s); the share of its readings that was not used, and its largest |z|."""

    sensor: str
    what: str
    since: float
    share: float
    deviations: float

    def __str__(self) -> str:
        share = f" ({100 * self.share:.0f} % of its readings not used)" if self.share > REFUSED_SHARE else ""
        return f"sensor '{self.sensor}' {self.what} from {self.since:.6g} s{share}"


def sensor_findings(found: StateHistory, log: Experiment | None = None, skip: int = 0) -> tuple[SensorFinding, ...]:
    """Sensors that do not agree with the others and the model from sample `skip` on, the strongest evidence first.

    `log` tells those that repeat themselves.
    """
    e, table = _from(found.estimates, skip), found.system.table
    stretches = episodes(e, LEAST)
    named = []
    for number, sensor in enumerate(table.sensors):
        outputs = [j for j, owner in enumerate(table.owner) if owner == number]
        names = [e.outputs[j] for j in outputs]
        own = [s for s in stretches if s.output in names]
        heard = e.status[:, outputs] != Status.MISSING
        refused = sum(
            int(((e.status[:, j] != Status.USED) & (e.status[:, j] != Status.MISSING)).sum()) for j in outputs
        )
        silent = sum(s.count for s in own if s.status == Status.MISSING)
        share = (refused + silent) / max(int(heard.sum()) + silent, 1)
        means = [mean_deviations(e, j) for j in outputs]
        z, since = max(((abs(m), t) for m, t in means), default=(0.0, 0.0))
        if share > REFUSED_SHARE and own:
            since = min(s.since for s in own)
            named.append(SensorFinding(sensor.name, _word(own, names, since, sensor.quantum, log), since, share, z))
        elif z > MEAN_DEVIATIONS:
            named.append(SensorFinding(sensor.name, "reads beside what the model expects", since, share, z))
    named = [n for n in named if not _pulled_along(n, named)]
    return tuple(sorted(named, key=lambda n: (n.share <= REFUSED_SHARE, -n.share, -n.deviations)))


def finding_lines(findings: Sequence[SensorFinding]) -> tuple[str, ...]:
    """What episodes do not say: sensors whose mean is beside what is expected, or that several at once point to what acts on all."""
    if len(findings) < SEVERAL:
        return tuple(f"{finding}." for finding in findings if finding.share <= REFUSED_SHARE)
    names = ", ".join(f"'{f.sensor}'" for f in findings)
    return (
        f"{len(findings)} sensors at once do not fit the model ({names}): look at what acts on it, and at its parameters.",
    )


def _pulled_along(finding: SensorFinding, named: Sequence[SensorFinding]) -> bool:
    """Whether a mean is smaller than that of a sensor which repeated itself before, and was let in in part."""
    stuck = [n for n in named if n.what == WORDS[Status.FROZEN]]
    return finding.share <= REFUSED_SHARE and any(
        n.since <= finding.since and n.deviations > finding.deviations for n in stuck
    )


def _from(e: Estimates, skip: int) -> Estimates:
    """The estimates from a sample on, as far as readings are concerned."""
    parts = ("t", "status", "innovations", "innovation_variances")
    return replace(e, **{name: getattr(e, name)[skip:] for name in parts}) if skip else e


def mean_deviations(e: Estimates, j: int) -> tuple[float, float]:
    """z of the readings of output j that were used, and the time (s) at which their sum leaves the line to its end the farthest."""
    used = np.flatnonzero(e.status[:, j] == Status.USED)
    if len(used) == 0:
        return 0.0, float(e.t[0])
    total = np.cumsum(e.innovations[used, j] / np.sqrt(e.innovation_variances[used, j]))
    line = total[-1] * np.arange(1, len(used) + 1) / len(used)
    return float(total[-1] / np.sqrt(len(used))), float(e.t[used[int(np.argmax(np.abs(total - line)))]])


def _word(own: list[Episode], names: list[str], since: float, quantum: float, log: Experiment | None) -> str:
    whole = sum(s.count for s in own)
    for status in (Status.MISSING, Status.FROZEN):
        if sum(s.count for s in own if s.status == status) > 0.5 * whole:
            return WORDS[status]
    if log is not None and not quantum and all(_repeats(log, name, since) for name in names if name in log):
        return WORDS[Status.FROZEN]
    return WORDS[Status.OUTLIER]


def _repeats(log: Experiment, name: str, since: float) -> bool:
    late = log[name].values[log[name].t >= since]
    return len(late) > 1 and float(np.mean(np.diff(late) == 0.0)) >= REPEATED_SHARE
