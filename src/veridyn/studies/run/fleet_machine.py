"""One machine of a fleet study, run wherever there is room: a study of its own, of which the fit and what it is judged by come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from veridyn.errors import VeridynError, noted
from veridyn.files.yaml_plain import Place, PlainYaml
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.progress import silent
from veridyn.studies.config.fleet import FleetFile
from veridyn.studies.config.identify import RecordingSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.fleet_logs import BY_NAME, BY_PATTERN, Logs
from veridyn.studies.run.identify import IdentifyRun, run_identify
from veridyn.studies.run.preparing import Preparing
from veridyn.studies.run.recordings import Recordings


@dataclass(frozen=True)
class MachineJob:
    """A machine, its logs, and where the study file has them: their `place`, and the lines of what stands below it."""

    name: str
    logs: tuple[RecordingSettings, ...]
    place: Place
    lines: Mapping[Place, int]


@dataclass(frozen=True, eq=False)
class MachineRun:
    """`fit` of one machine, None where `why` says why not; `left_out`: log → why it was not used.

    `figures` are those of its study, `warnings` what was noticed on the way, `inputs` the hashes of its logs.
    """

    fit: Fit | None = None
    why: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)


def jobs_of(loaded: Loaded[FleetFile], logs: Logs) -> list[MachineJob]:
    """One job for each machine."""
    if not loaded.study.fleet.machines:
        return [MachineJob(name, own, BY_PATTERN, {}) for name, own in logs.items()]
    lines: dict[str, dict[Place, int]] = {name: {} for name in logs}
    for place, line in loaded.yaml.lines.items():
        if place[:2] == BY_NAME and len(place) > 2:
            lines[str(place[2])][place] = line
    return [MachineJob(name, own, (*BY_NAME, name), lines[name]) for name, own in logs.items()]


def shipped_study(loaded: Loaded[FleetFile]) -> Loaded[FleetFile]:
    """The study as it travels to workers with every job: without the list of machines, with its whole path, and of the environment only
    the variables that it names."""
    used = set(re.findall(r"\$\{(\w+)\}", loaded.text))
    lines = {place: line for place, line in loaded.yaml.lines.items() if place[:2] != BY_NAME}
    fleet = loaded.study.fleet.model_copy(update={"machines": {}})
    return replace(
        loaded,
        study=loaded.study.model_copy(update={"fleet": fleet}),
        file=loaded.file.absolute(),
        yaml=PlainYaml({}, lines, loaded.yaml.source),
        text="",
        variables={name: v for name, v in loaded.variables.items() if name in used},
    )


def run_machine(machine: Machine, loaded: Loaded[FleetFile], job: MachineJob) -> MachineRun:
    """Identify one machine from its logs. A log that cannot be read is left out by name, and the machine goes on with the others."""
    logs = job.logs
    with noted() as said:
        try:
            done, left_out = _identified(machine, loaded, job, logs), {}
        except VeridynError as error:
            why = str(error)
            left_out = _unusable(machine, loaded, job) if len(logs) > 1 else {}
            rest = tuple(r for r in logs if _words(r) not in left_out)
            if not left_out or not rest:
                return MachineRun(why=why)
            said.clear()
            try:
                done = _identified(machine, loaded, job, rest)
            except VeridynError as again:
                return MachineRun(why=str(again), left_out=left_out)
    study = done.study
    figures = {**study.figures, **done.figures}
    inputs = {key: value for key, value in done.inputs.items() if key not in ("study", "model")}
    return MachineRun(study.fit, "", left_out, figures, tuple(dict.fromkeys(str(f) for f in said)), inputs)


def _identified(
    machine: Machine, loaded: Loaded[FleetFile], job: MachineJob, logs: tuple[RecordingSettings, ...]
) -> IdentifyRun:
    return run_identify(_part(loaded, job, logs), silent, machine)


def _part(loaded: Loaded[FleetFile], job: MachineJob, logs: tuple[RecordingSettings, ...]) -> Loaded[Any]:
    """The study of one machine; its faults stand where the fleet study has its logs."""
    yaml = replace(loaded.yaml, lines={**loaded.yaml.lines, **job.lines})
    return replace(loaded, study=loaded.study.of_one(logs), yaml=yaml, places={"training": job.place})


def _unusable(machine: Machine, loaded: Loaded[FleetFile], job: MachineJob) -> dict[str, str]:
    """Log → why it cannot be read or mended, each tried alone."""
    found = {}
    for log in job.logs:
        part = _part(loaded, job, (log,))
        try:
            Preparing(part, machine, Recordings(part), silent)
        except VeridynError as error:
            found[_words(log)] = str(error)
    return found


def _words(log: RecordingSettings) -> str:
    return log.file or ", ".join(log.files.values())
