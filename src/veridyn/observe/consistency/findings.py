"""What limits what may be concluded from a run of a filter: one list for the verb, which warns of it, and for the command, which prints it.

NIS far from 1    beyond what consistent filters reach once in ten thousand logs, and far enough to make the bands wrong
sensors           readings whose mean lies beside what the model expects, or none of which was used
noise, loops      a density that the log does not determine; constraints that were left out and open

A sensor is named where more of its readings were refused than a gate of probability p refuses of good ones by chance, or where an
output's mean innovation is beyond `MEAN_DEVIATIONS`:

    z = Σ ν_k/√S_k / √N        normal with deviation 1 where filter and sensor agree (N readings that were used)

One that is wrong pulls the others' innovations along as far as it was let in: the strongest evidence stands first, and beside one that
repeats itself, which no model is needed to see, those with a smaller mean since then are not named. Where `SEVERAL` stand side by side the
fault is likely to lie in what they are compared with: an input, or the model. What became of single readings is reported by
:meth:`~veridyn.observe.observation.Observation.episodes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataWarning, Fault, warn
from veridyn.inference.finding import FoundCause
from veridyn.model.experiment import Experiment
from veridyn.model.sensor import Sensor
from veridyn.observe.consistency.health import WORDS, Episode, episodes
from veridyn.observe.consistency.nis import Consistency, direction_checks, wrong_directions
from veridyn.observe.consistency.observability import DeadCentre, dead_centres
from veridyn.observe.consistency.predictions import wrong_predictions
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.model_error import ModelErrorDensity
from veridyn.observe.observation import Observation
from veridyn.observe.result import Estimates

REFUSED_SHARE = 0.03  # of a sensor's readings: a gate of 0.99 or more refuses fewer good ones (chosen)
MEAN_DEVIATIONS = 6.0  # of the mean innovation: models are not exact (chosen)
REPEATED_SHARE = 0.98  # of neighbours that are equal, from which on a sensor without steps repeats itself
SEVERAL = 3  # sensors named at once
LEAST = 3  # readings in a row that make an episode
FALSE_ALARMS = 1e-4  # of consistent filters: as many are reported by chance
USABLE_NIS = Observation.usable_nis
USABLE_PREDICTION = 4.0  # of z²: stated deviations are half of what they should be
FEW_SAMPLES = 500  # of a log: they know the mean square of innovations along a direction within six percent
OPEN_CONSTRAINT = 1e-6  # m or 1: of a constraint that was left out as redundant and should be closed


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


@checked
def sensor_findings(found: Observation, log: Experiment | None = None, skip: int = 0) -> tuple[SensorFinding, ...]:
    """Sensors that do not agree with the others and the model from sample `skip` on, the strongest evidence first.

    `log` tells those that repeat themselves, where the readings of the run were changed before; its own do by default.
    """
    e, table = _from(found.estimates, skip), found.system.table
    stretches = episodes(e, LEAST)
    named = []
    for number, sensor in enumerate(table.sensors):
        outputs = [j for j, owner in enumerate(table.owner) if owner == number]
        names = [e.outputs[j] for j in outputs]
        own = [s for s in stretches if s.output in names and not _between_steps(found, sensor, s)]
        heard = e.status[:, outputs] != Status.MISSING
        refused = sum(
            int((~np.isin(e.status[:, j], (Status.USED, Status.MISSING, Status.WITHHELD))).sum()) for j in outputs
        )
        silent = sum(s.count for s in own if s.status == Status.MISSING)
        share = (refused + silent) / max(int(heard.sum()) + silent, 1)
        means = [mean_deviations(e, j) for j in outputs]
        z, since = max(((abs(m), t) for m, t in means), default=(0.0, 0.0))
        if share > REFUSED_SHARE and own:
            since = min(s.since for s in own)
            late = () if sensor.quantum else _late_values(found.readings, names, since, log)
            named.append(SensorFinding(sensor.name, _word(own, late), since, share, z))
        elif z > MEAN_DEVIATIONS:
            named.append(SensorFinding(sensor.name, "reads beside what the model expects", since, share, z))
    named = [n for n in named if not _pulled_along(n, named)]
    return tuple(sorted(named, key=lambda n: (n.share <= REFUSED_SHARE, -n.share, -n.deviations)))


def _between_steps(found: Observation, sensor: Sensor, stretch: Episode) -> bool:
    """Whether a sensor that speaks at every step had none to speak of: its coordinate moved by less than one."""
    if (
        stretch.status != Status.MISSING
        or not sensor.quantum
        or not isinstance(sensor.on, str)
        or sensor.kind != "coordinate"
    ):
        return False
    there = (found.t >= stretch.since) & (found.t <= stretch.until)
    return float(np.ptp(found.coordinate(sensor.on)[0][there])) <= sensor.quantum


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


def _word(own: list[Episode], late: Sequence[Array]) -> str:
    whole = sum(s.count for s in own)
    for status in (Status.MISSING, Status.FROZEN):
        if sum(s.count for s in own if s.status == status) > 0.5 * whole:
            return WORDS[status]
    if late and all(len(y) > 1 and float(np.mean(np.diff(y) == 0.0)) >= REPEATED_SHARE for y in late):
        return WORDS[Status.FROZEN]
    return WORDS[Status.OUTLIER]


def _late_values(readings: Measurements, names: list[str], since: float, log: Experiment | None) -> list[Array]:
    """What these outputs read from a time (s) on, by the readings of a run or by another log."""
    if log is not None:
        return [log[name].values[log[name].t >= since] for name in names if name in log]
    columns = [readings.values[readings.t >= since, readings.names.index(name)] for name in names]
    return [y[np.isfinite(y)] for y in columns]


def observation_findings(
    found: Observation, false_alarms: float = FALSE_ALARMS, usable: tuple[float, float] | None = None
) -> tuple[str, ...]:
    """Sentences about a run from where it has settled. Sensors stand first.

    A page that is read says more than a warning that interrupts: with `false_alarms` 0.05 and `usable` (1, 1), every NIS outside its band
    of 95 %. By default `usable` is that of the machine.
    """
    size = _size(found, false_alarms, usable or found.usable_nis)
    return (*finding_lines(sensor_findings(found, skip=found.settled)), *map(str, limits(found)), *size)


def serious_findings(found: Observation) -> tuple[str, ...]:
    """What makes the bands of a run wrong from where it has settled: sensors are named where its NIS is far from 1, which stands last."""
    size = _size(found, FALSE_ALARMS, found.usable_nis)
    lost = tuple(map(str, found.lost))
    more = (
        *map(str, delays_of(found)),
        *map(str, dead_centres_of(found)),
        *map(str, wrong_by_prediction(found, quick=True)),
    )
    if size:
        return (*lost, *observation_findings(found), *more)
    chosen = found.made_by.method.gate if found.made_by is not None else None
    named = (
        sensor_findings(found, skip=found.settled) if chosen == "auto" else ()
    )  # what a gate of one's own refuses is in the summary
    refused = [f for f in named if f.share > REFUSED_SHARE and f.what != WORDS[Status.MISSING]]
    return (*lost, *(f"{finding}." for finding in refused), *map(str, limits(found)), *more)


def delays_of(found: Observation) -> Iterator[FoundCause]:
    """Delays of outputs that are not told; none of a run whose model is said to be exact, and none of one that is lost at a dead centre:
    the rates that it predicts are those of another motion."""
    if found.model_error is None or (found.delays and lost_coordinates(found)):
        return
    for one in found.delays:
        yield FoundCause(
            cause="delay", place=one.output, evidence=one.evidence, size=one.size, sigma=one.sigma, message=str(one)
        )


def dead_centres_of(found: Observation) -> Iterator[FoundCause]:
    """Coordinates of which the sensors lose sight."""
    for one in lost_coordinates(found):
        times = float(len(one.times))
        yield FoundCause(cause="dead centre", place=one.coordinate, evidence=times, size=one.share, message=str(one))


def lost_coordinates(found: Observation) -> tuple[DeadCentre, ...]:
    """Coordinates that the sensors lose sight of, where the innovations show that the filter did not survive it."""
    if not isinstance(found.system, MachineSystem) or not _size(found, FALSE_ALARMS, found.usable_nis):
        return ()
    return dead_centres(found.system, found.estimates)


def wrong_by_prediction(found: Observation, quick: bool = False) -> Iterator[FoundCause]:
    """Readings that were not used and lie beside their predictions, outputs that contradict each other along a direction, and a model that
    explains next to nothing of the motion; nothing where the model is said to be exact. `quick`: what takes long is asked only where
    innovations, or a part of them, give reason to."""
    if found.model_error is None:
        return
    considers = found.system.considered is not None
    checks = found.urgent_predictions() if quick else found.predictions
    for check, text in wrong_predictions(checks, FALSE_ALARMS, USABLE_PREDICTION, considers):
        yield FoundCause(cause="predictions", place=check.output, evidence=check.z2, size=check.z2, message=text)
    few = direction_checks(found.estimates, most=FEW_SAMPLES) if quick else ()
    if not quick or any(one.z2 > 0.5 * USABLE_PREDICTION for one in few):
        for along, text in wrong_directions(found.directions(), FALSE_ALARMS, USABLE_PREDICTION):
            yield FoundCause(cause="directions", place=along.named, evidence=along.z2, size=along.z2, message=text)
    for name, rms, share, text in model_error_findings(found.model_error):
        yield FoundCause(cause="model error", place=name, evidence=share, size=rms, message=text)


def model_error_findings(error: ModelErrorDensity) -> tuple[tuple[str, float, float, str], ...]:
    """Coordinates whose model error was learned and is as large as their acceleration: name, rms, share of it, and a sentence."""
    if not error.learned:
        return ()
    rows = zip(error.coordinates, error.units, error.rms.tolist(), error.moves.tolist(), strict=True)
    return tuple(
        (
            name,
            rms,
            rms / moves,
            f"the innovations demand a model error of '{name}' as large as its acceleration: {rms:.3g} of {moves:.3g} {unit}/s^2. "
            "An input, a parameter or a sensor is wrong, or the model lacks a part.",
        )
        for name, unit, rms, moves in rows
        if rms >= moves > 0.0
    )


def warn_of_findings(found: Observation) -> None:
    """Warn of what the log shows by itself, and of what makes the bands of a run wrong. Sensors are named where the innovations are not as
    large as stated: their means are watched more closely than that, and shift with the start of a run."""
    for one in found.inspection:
        warn(DataWarning, Fault(str(one)))
    for text in serious_findings(found):
        warn(DataWarning, Fault(text, where=f"{found.filter} on {found.system.name}"))


def limits(found: Observation) -> Iterator[FoundCause]:
    """Outputs that are never used, noise that the log does not determine, constraints that open."""
    for name, became in found.estimates.counts().items():
        if not became["used"] and not became["withheld"]:
            what = f"no reading of '{name}' is used: is its unit right, and its sensor where the machine has it?"
            yield FoundCause(cause="never used", place=name, size=1.0, message=what)
    floor = found.model_error is not None  # which stands in for a noise that the log shows none of
    if found.tuning is not None and not found.tuning.converged and not (floor and found.tuning.negligible):
        what = f"the noise chosen on this log is doubtful: {found.tuning.message}. Give a density of the process noise."
        yield FoundCause(cause="process noise", place=found.system.name, message=what)
    names = found.system.model.left_out if isinstance(found.system, MachineSystem) else ()
    if names and (open_by := float(found.constraint_errors()[:, 0].max())) > OPEN_CONSTRAINT:
        left = ", ".join(f"'{name}'" for name in names)
        what = (
            f"constraints that were left out as redundant ({left}) open by up to {open_by:.3g}: the motion passes a pose where they "
            "are needed, and from there on the estimates are those of another mechanism."
        )
        yield FoundCause(cause="open constraints", place=left, size=open_by, message=what)


def _size(found: Observation, false_alarms: float, usable: tuple[float, float]) -> list[str]:
    if not found.estimates.dof[found.settled :].any():
        return []
    considers = found.system.considered is not None
    finding = nis_finding(found.nis(), usable, considers, false_alarms)
    return [finding] if finding else []


def nis_finding(
    nis: Consistency,
    usable: tuple[float, float] = USABLE_NIS,
    considers: bool = False,
    false_alarms: float = FALSE_ALARMS,
) -> str:
    """That innovations are not as large as the filter states, where neither chance explains it nor the bands survive it; else "".

    `considers`: parameters are considered, whose one error all innovations share, so that they count as one sample in the worst case.
    """
    low, high = replace(nis, level=1.0 - false_alarms, independent=1.0 if considers else nis.independent).band
    if min(low, usable[0]) <= nis.mean <= max(high, usable[1]):
        return ""
    words = "too sure of itself" if nis.mean > 1.0 else "too cautious"
    share = f"{100 * (1 - false_alarms):g} %"
    return f"the filter is {words}: NIS {nis.mean:.4g}, and {share} of consistent ones lie in {low:.3f} to {high:.3f}."
