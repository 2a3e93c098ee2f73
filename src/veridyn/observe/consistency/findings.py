"""What limits what may be concluded from a run of a filter: one list for the verb, which warns of it, and for the command, which prints it.

NIS far from 1    beyond what consistent filters reach once in ten thousand logs, and far enough to make the bands wrong
sensors           readings whose mean lies beside what the model expects, or none of which was used
noise, loops      a density that the log does not determine; constraints that were left out and open

What became of single readings is told by :meth:`~veridyn.observe.observation.Observation.episodes`.
"""

from __future__ import annotations

from dataclasses import replace

from veridyn.errors import DataWarning, Fault, warn
from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.nis import Consistency
from veridyn.observe.consistency.sensor_findings import finding_lines, sensor_findings
from veridyn.observe.history import StateHistory
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Observation

FALSE_ALARMS = 1e-4  # of consistent filters: as many are reported by chance
USABLE_NIS = StateHistory.usable_nis
OPEN_CONSTRAINT = 1e-6  # m or 1: of a constraint that was left out as redundant and should be closed


def observation_findings(
    found: StateHistory,
    log: Experiment | None = None,
    skip: int = 0,
    false_alarms: float = FALSE_ALARMS,
    usable: tuple[float, float] | None = None,
) -> tuple[str, ...]:
    """Sentences about a run from sample `skip` on; `log` shows which sensors repeat themselves. Sensors stand first.

    A page that is read says more than a warning that interrupts: with `false_alarms` 0.05 and `usable` (1, 1), every NIS outside its band
    of 95 %. By default `usable` is that of the machine.
    """
    size = _size(found, skip, false_alarms, usable or found.usable_nis)
    return (*finding_lines(sensor_findings(found, log, skip)), *_limits(found), *size)


def serious_findings(found: StateHistory, log: Experiment | None = None, skip: int = 0) -> tuple[str, ...]:
    """What makes the bands of a run wrong from sample `skip` on: sensors are named where its NIS is far from 1, which stands last."""
    size = _size(found, skip, FALSE_ALARMS, found.usable_nis)
    return observation_findings(found, log, skip) if size else tuple(_limits(found))


def warn_of_findings(found: StateHistory, log: Experiment | None) -> None:
    """Warn of what makes the bands of a run wrong. Sensors are named where the innovations are not as large as stated: their means are
    watched more closely than that, and shift with the start of a run, of which the verb is not told how long it takes."""
    for text in serious_findings(found, log):
        warn(DataWarning, Fault(text, where=f"{found.filter} on {found.system.name}"))


def _limits(found: StateHistory) -> list[str]:
    """Readings that are never used, noise that the log does not determine, constraints that open."""
    out = [
        f"no reading of '{name}' is used: is its unit right, and its sensor where the machine has it?"
        for name, became in found.estimates.counts().items()
        if not became["used"]
    ]
    if found.tuning is not None and not found.tuning.converged:
        what = f"the noise chosen on this log is doubtful: {found.tuning.message}."
        out.append(f"{what} Give a density of the process noise.")
    if not isinstance(found, Observation) or not isinstance(found.system, MachineSystem):
        return out
    names = found.system.model.left_out
    if names and (open_by := float(found.constraint_errors()[:, 0].max())) > OPEN_CONSTRAINT:
        left = ", ".join(f"'{name}'" for name in names)
        out.append(
            f"constraints that were left out as redundant ({left}) open by up to {open_by:.3g}: the motion passes a pose where they "
            "are needed, and from there on the estimates are those of another mechanism."
        )
    return out


def _size(found: StateHistory, skip: int, false_alarms: float, usable: tuple[float, float]) -> list[str]:
    if not found.estimates.dof[skip:].any():
        return []
    considers = found.system.considered is not None
    finding = nis_finding(found.nis(skip), usable, considers, false_alarms)
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
