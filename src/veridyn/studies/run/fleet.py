"""A fleet study, run: every machine identified from its own logs by whoever has time, then compared with the others.

Machines and logs are given by name or by a pattern of paths. Each machine is a study of its own, run wherever there is a free worker; its
fit and what it is judged by come back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.errors import DataWarning, Fault, IdentificationWarning, VeridynError, noted, warn
from veridyn.files.yaml_reader import Place, PlainYaml
from veridyn.identify.fleet import Fleet, fleet_of
from veridyn.identify.regression.workers import map_in_order
from veridyn.identify.result import Fit
from veridyn.inference.verdict import Verdict
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.studies.config.identify_sections import MACHINE_NAME, MACHINE_PLACEHOLDER, FleetFile
from veridyn.studies.config.log import RecordingSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import Result, csv_text, fingerprint, parameter_row
from veridyn.studies.run.estimation import IdentifyRun, check_estimation, estimation_of, executor_of, on_cluster
from veridyn.studies.run.identify import pipeline_of, run_identify
from veridyn.studies.run.machine import model_path, study_machine
from veridyn.studies.run.recordings import Recordings

Logs = Mapping[str, tuple[RecordingSettings, ...]]
BY_PATTERN: Place = ("fleet", "logs")
BY_NAME: Place = ("fleet", "machines")


def logs_of(loaded: Loaded[FleetFile]) -> Logs:
    """Machine → its logs, in the order of the file or of the alphabet; a pattern that finds nothing is refused with its line."""
    own = loaded.study.fleet
    if own.machines:
        return own.machines
    pattern = loaded.path(own.logs.replace(MACHINE_PLACEHOLDER, _STAND_IN), BY_PATTERN)
    found: dict[str, list[RecordingSettings]] = {}
    folder = loaded.file.parent
    name_at = _named(pattern)
    for file in sorted(_matching(pattern)):
        match = name_at.fullmatch(str(file))
        if match is not None and re.fullmatch(MACHINE_NAME, match[1]):
            inside = file.is_relative_to(folder)
            path = file.relative_to(folder) if inside else file.absolute()
            found.setdefault(match[1], []).append(RecordingSettings(file=path.as_posix()))
    if not found:
        shown = str(pattern).replace(_STAND_IN, MACHINE_PLACEHOLDER)
        hint = "Paths are relative to the study file; * stands for any text without a slash."
        raise loaded.error_at(BY_PATTERN, "no log has such a path.", found=shown, hint=hint)
    return {name: tuple(logs) for name, logs in found.items()}


_STAND_IN = "\N{REPLACEMENT CHARACTER}"  # for {machine}, which is no text of a path


def _matching(pattern: Path) -> list[Path]:
    """Files and folders of bags that a pattern fits, wherever it is."""
    parts = pattern.parts
    fixed = next(k for k, part in enumerate(parts) if _STAND_IN in part or "*" in part or "?" in part)
    rest = "/".join(parts[fixed:]).replace(_STAND_IN, "*")
    return list(Path(*parts[:fixed]).glob(rest))


def _named(pattern: Path) -> re.Pattern[str]:
    """A pattern of paths as an expression whose first group is the name of the machine."""
    words = {_STAND_IN: "([^/\\\\]+?)", "*": "[^/\\\\]*", "?": "[^/\\\\]"}
    return re.compile("".join(words.get(letter, re.escape(letter)) for letter in str(pattern)))


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
            rest = tuple(r for r in logs if _log_words(r) not in left_out)
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
            _ = pipeline_of(part, machine, Recordings(part)).start().logs.repaired
        except VeridynError as error:
            found[_log_words(log)] = str(error)
    return found


def _log_words(log: RecordingSettings) -> str:
    return log.file or ", ".join(log.files.values())


TASK = "identifying machines"
SHOWN_NAMES = 5  # machines that a warning names which many share
VALIDATION = ("samples_training", "samples_validation", "cross_validation_percent", "cross_validation_std_percent")


@dataclass(frozen=True, eq=False)
class FleetRun:
    """What a fleet study found: the `fleet`, and machine → its run, also of those that are left out."""

    fleet: Fleet
    machines: Mapping[str, MachineRun]
    inputs: Mapping[str, str]
    missed: tuple[str, ...]
    units: tuple[str, ...]
    priors: tuple[float, ...]

    @property
    def verdict(self) -> Verdict:
        """That of the fleet, and limits of the study."""
        return self.fleet.verdict.against(self.missed)

    @property
    def logs_left_out(self) -> Mapping[str, Mapping[str, str]]:
        """Machine → log → why it was not used."""
        return self.fleet.logs_left_out

    @property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the fleet by; `between_NAME` is the deviation between machines, in the unit of the parameter."""
        fleet = self.fleet
        errors = [100.0 * e for e in self.errors.values()]
        out = {
            "machines": float(len(fleet.fits)),
            "machines_left_out": float(len(fleet.failed)),
            "logs_left_out": float(sum(map(len, self.logs_left_out.values()))),
            "machines_apart": float(len({o.machine for o in fleet.outliers})),
            "outliers": float(len(fleet.outliers)),
            "parameters": float(len(fleet.names)),
            "median_cross_validation_percent": float(np.median(errors)),
            "worst_cross_validation_percent": float(max(errors)),
        }
        return out | {f"between_{name}": spread.between for name, spread in fleet.distribution.items()}

    @property
    def errors(self) -> dict[str, float]:
        """Machine → relative error on its validation samples, as a share."""
        return {name: self.machines[name].figures["cross_validation_percent"] / 100.0 for name in self.fleet.fits}

    def result(self, name: str, seed: int) -> Result:
        """The record of the run: parameters are the means over the fleet, validation has one line for each machine."""
        means = zip(self.fleet.distribution.items(), self.units, self.priors, strict=True)
        rows = [parameter_row(name, unit, s.mean, s.sigma, prior) for (name, s), unit, prior in means]
        checked = {
            machine: {key: found[key] for key in VALIDATION if key in found}
            for machine in self.fleet.fits
            for found in (self.machines[machine].figures,)
        }
        verdict = self.verdict.record
        return Result(name, seed, False, self.inputs, self.figures, tuple(rows), checked, verdict=verdict)

    def table(self) -> str:
        """One line for each machine and parameter, as CSV."""
        fleet, head = self.fleet, ["machine", "parameter", "unit", "value", "sigma", "deviations_from_fleet", "outlier"]
        apart = {(o.machine, o.parameter) for o in fleet.outliers}
        rows = (
            [machine, n, unit, repr(float(v)), repr(float(s)), f"{d:.4g}", int((machine, n) in apart)]
            for machine, *found in zip(fleet.fits, fleet.values, fleet.sigma, fleet.deviations, strict=True)
            for n, unit, v, s, d in zip(fleet.names, self.units, *found, strict=True)
        )
        return csv_text(head, rows)

    def as_dict(self) -> dict[str, object]:
        """fleet.json: distribution, outliers, and what was left out and why."""
        fleet = self.fleet
        return {
            "machines": list(fleet.fits),
            "significance": fleet.significance,
            "distribution": {
                name: {"unit": unit, "mean": s.mean, "sigma": s.sigma, "between": s.between, "machines": s.count}
                for (name, s), unit in zip(fleet.distribution.items(), self.units, strict=True)
            },
            "outliers": [o._asdict() for o in fleet.outliers],
            "machines_left_out": dict(fleet.failed),
            "logs_left_out": {name: dict(logs) for name, logs in self.logs_left_out.items()},
        }


def run_fleet(loaded: Loaded[FleetFile], progress: Progress = silent) -> FleetRun:
    """Identify every machine of the study file and compare them; a machine or log that cannot be used does not stop the others."""
    study = loaded.study
    machine = study_machine(loaded, ("model",), study.model, "unknown")
    here = (
        loaded if not on_cluster(study.executor) else replace(loaded, study=study.model_copy(update={"device": "cpu"}))
    )
    check_estimation(loaded, ("estimator",), machine, estimation_of(here, ("estimator",), study.estimator))
    if study.device != "cpu" and study.executor != "none" and not on_cluster(study.executor):
        hint = "Drop executor, or name a cluster whose workers have a GPU each."
        raise loaded.error_at(("executor",), "the threads of this machine would share its GPU.", hint=hint)
    jobs = jobs_of(loaded, logs_of(loaded))
    found: dict[str, MachineRun] = {}
    with executor_of(loaded) as executor:
        work = partial(run_machine, machine, shipped_study(loaded))
        progress(TASK, 0.0, float(len(jobs)))
        runs = map_in_order(executor, work, jobs)
        for job, one in zip(jobs, runs, strict=True):
            found[job.name] = one
            progress(TASK, float(len(found)), float(len(jobs)))
    fits = {name: one.fit for name, one in found.items() if one.fit is not None}
    fleet = fleet_of(fits, {name: one.why for name, one in found.items() if one.fit is None}, study.fleet.significance)
    fleet = replace(fleet, logs_left_out={name: one.left_out for name, one in found.items() if one.left_out})
    _warn_of(found)
    first = next(iter(fleet.fits.values()))
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), study.model))}
    for one in found.values():
        inputs |= one.inputs
    priors = tuple(float(p) for p in first.priors)
    done = FleetRun(fleet, found, inputs, (), tuple(first.units), priors)
    return replace(done, missed=_missed(loaded, done))


def _warn_of(found: Mapping[str, MachineRun]) -> None:
    """Logs that were left out, by name; and what was noticed on the way, once for all machines of which it is said."""
    for name, one in found.items():
        for log, why in one.left_out.items():
            warn(DataWarning, Fault(f"the log is left out: {why}", f"{name}, {log}"))
    texts: dict[str, list[str]] = {}
    for name, one in found.items():
        for text in one.warnings:
            texts.setdefault(text, []).append(name)
    for text, names in texts.items():
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        warn(IdentificationWarning, Fault(text, ", ".join(names[:SHOWN_NAMES]) + more))


def _missed(loaded: Loaded[FleetFile], done: FleetRun) -> tuple[str, ...]:
    """Sentences about limits of the study file that are not kept."""
    accept, f, out = loaded.study.accept, done.figures, []
    counts = {
        "outliers": ("machines that stand apart", f["machines_apart"]),
        "left_out": ("machines and logs left out", f["machines_left_out"] + f["logs_left_out"]),
    }
    for key, (words, value) in counts.items():
        limit = getattr(accept, key)
        if limit is not None and value > limit:
            out.append(f"{words}: {value:g}, and at most {limit} are accepted (accept.{key}).")
    if accept.validation_percent is not None:
        for name, error in done.errors.items():
            if not 100.0 * error <= accept.validation_percent:
                out.append(
                    f"relative error of '{name}' on its validation logs, %: {100.0 * error:.4g}, and at most "
                    f"{accept.validation_percent:g} is accepted (accept.validation_percent)."
                )
    return tuple(out)
