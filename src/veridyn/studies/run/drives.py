"""Studies of encoders, run: sections ``drives``, drives from commands, and ``flexible``, stiffness of joints from two encoders.

Identified drives are judged by simulation of what was not fitted, stiffness by the deflection of other logs. Of ``kind: excite``,
commands for drives: they keep the limits of the joints, and come with what a recording of them promises.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.errors import DataError, IdentificationError, did_you_mean
from veridyn.files.machine.load import MJCF_ENDINGS
from veridyn.files.machine.mjcf import mjcf_limits
from veridyn.files.machine.urdf import urdf_limits
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.identify.drives.drive_excitation import DrivePlan, DriveRange, design_drive_commands
from veridyn.identify.drives.drive_result import DriveReplay, DrivesFit, pooled_rms, rms_of_all
from veridyn.identify.drives.drives import identify_drives
from veridyn.identify.drives.held_out import WORSE_THAN_FILE
from veridyn.identify.flexible.result import FlexibleFit
from veridyn.identify.flexible.two_encoders import identify_flexible
from veridyn.identify.validation import Validation
from veridyn.inference.verdict import Verdict
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.studies.config.excite_drives import DriveExciteFile
from veridyn.studies.config.identify_sections import DrivesFile, FlexibleFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import Result, csv_text, fingerprint, grade_missed, parameter_row
from veridyn.studies.run.machine import model_path, study_machine
from veridyn.studies.run.recordings import Recordings

NAMED = 6  # numbers in a warning


@dataclass(frozen=True, eq=False)
class DrivesRun:
    """The fit, judged by validation logs where there are some, and the processor seconds of its search.

    `truth`: true values by name, of a machine that was simulated.
    """

    fit: DrivesFit
    cpu_seconds: float
    inputs: dict[str, str]
    missed: tuple[str, ...] = ()
    truth: Mapping[str, float] = field(default_factory=dict)
    quick: bool = False

    @property
    def validation(self) -> tuple[DriveReplay, ...]:
        """The encoders of validation logs, simulated with the fit."""
        return tuple(now for now, _ in self.fit.validation)

    @property
    def validation_defaults(self) -> tuple[DriveReplay, ...]:
        """The same with the values of the model file."""
        return tuple(before for _, before in self.fit.validation)

    @property
    def verdict(self) -> Verdict:
        """That of the fit, and limits of the study."""
        return self.fit.verdict.against(self.missed)

    @cached_property
    def figures(self) -> dict[str, float]:
        """Numbers by name; rms of all joints together, rad or m, over all logs and, where there are several, of each: NAME_log_1, ….

        `rms_validation` is that of the worst validation log, and `rms_validation_defaults` the model file's on the same log.
        """
        fit = self.fit
        out = _of_logs("rms_fitted", fit.replays, 0.0, fit.until)
        out |= _of_logs("rms_fitted_defaults", fit.replays_defaults, 0.0, fit.until)
        if np.isfinite(fit.until):
            out |= _of_logs("rms_held_out", fit.replays, fit.until)
            out |= _of_logs("rms_held_out_defaults", fit.replays_defaults, fit.until)
            out |= {f"rms_held_out_{j}": x for j, x in pooled_rms(fit.replays, fit.until).items()}
        if fit.validation:
            out |= _of_logs("rms_validation", self.validation)
            out |= _of_logs("rms_validation_defaults", self.validation_defaults)
            now, before = max(fit.validation, key=lambda pair: pair[0].rms_of_all())
            out |= {"rms_validation": now.rms_of_all(), "rms_validation_defaults": before.rms_of_all()}
        worse = [f for f in fit.findings if f.cause == WORSE_THAN_FILE]
        out |= {"worse_than_file": float(len(worse))} if fit.held_out_logs else {}
        out |= {"numbers": float(len(fit.drives)), "determined": float(len(fit.determined))}
        zeros = [abs(d.value) for d in fit.drives if d.key == "zero"]
        out |= {"largest_zero": max(zeros)} if zeros else {}
        near = [abs(d.value - self.truth[d.name]) <= 2.0 * d.sigma for d in fit.drives if d.name in self.truth]
        out |= {"share_inside_two_sigma": float(np.mean(near))} if near else {}
        return out | {"cpu_seconds": self.cpu_seconds}

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """What is not determined is no parameter of the result; the warnings name it.

        Its validation is of all samples that were not fitted, of the fitted ones where there are no others.
        """
        fit = self.fit
        rows = [
            parameter_row(d.name, d.unit, d.value, d.sigma, d.prior, self.truth.get(d.name, np.nan))
            for d in fit.drives
            if d.determined
        ]
        return Result(
            name,
            seed,
            self.quick,
            self.inputs,
            self.figures,
            tuple(rows),
            Validation(fit.held_out_rows or fit.rows, by="simulation").table,
            (*warnings, *self._open()),
            findings=tuple(one.record for one in fit.findings),
            verdict=self.verdict.record,
        )

    def _open(self) -> tuple[str, ...]:
        """One sentence for all that the log leaves open; the report has every direction in words."""
        left = [d.name for d in self.fit.drives if not d.determined]
        if not left:
            return ()
        named = ", ".join(left[:NAMED]) + (", …" if len(left) > NAMED else "")
        return (f"{len(left)} of {len(self.fit.drives)} numbers are not determined by the log: {named}.",)

    def table(self) -> str:
        """Measured and simulated encoders of every joint, rad or m, as CSV: the training logs, then those for validation."""
        head = ("log", "t", *(f"{j}.{word}" for j in self.fit.replay.joints for word in ("measured", "simulated")))
        rows: list[tuple[str, ...]] = []
        for replay in (*self.fit.replays, *self.validation):
            both = np.stack([replay.measured, replay.simulated], axis=2).reshape(len(replay.t), -1)
            rows += [(replay.name, *(f"{x:.9g}" for x in (t, *row))) for t, row in zip(replay.t, both, strict=True)]
        return csv_text(head, rows)


def _of_logs(name: str, logs: Sequence[DriveReplay], start: float = 0.0, end: float = np.inf) -> dict[str, float]:
    """The rms over all logs, and of each where there are several."""
    out = {name: rms_of_all(logs, start, end)}
    for k, one in enumerate(logs if len(logs) > 1 else (), 1):
        out |= {f"{name}_log_{k}": one.rms_of_all(start, end)} if one.reaches(start) else {}
    return out


def run_drives(loaded: Loaded[DrivesFile], progress: Progress = silent) -> DrivesRun:
    """Read the logs that the study names, and fit the drives to those for training."""
    study = loaded.study
    machine = study_machine(loaded, ("model",), study.model, "unknown")
    progress("reading the logs", 0.0, None)
    inner: Loaded[Any] = loaded
    recorded = Recordings(inner)
    training = [part.cut() for part in recorded.training]
    models = {
        k: (("drives", "runs", k, "model"), run.model)
        for k, run in enumerate(study.drives.runs)
        if run.model is not None
    }
    machines = {k: study_machine(loaded, at, model, "unknown") for k, (at, model) in models.items()}
    with loaded.placing(("drives",), DataError, IdentificationError):
        begun = time.process_time()
        fit = identify_drives(machine, training, study.drives.method(machines), progress=progress)
        spent = time.process_time() - begun
        if study.validation:
            fit = fit.with_validation([part.cut() for part in recorded.validation], progress)
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), study.model))}
    inputs |= {f"model_{k + 1}": fingerprint(model_path(loaded, at, model)) for k, (at, model) in models.items()}
    run = DrivesRun(fit, spent, {**inputs, **recorded.hashes})
    return replace(run, missed=tuple(_missed(study, run)))


def _missed(study: DrivesFile, run: DrivesRun) -> list[str]:
    limits = {
        "rms_held_out": study.accept.rms_held_out,
        "rms_validation": study.accept.rms_validation,
        "worse_than_file": study.accept.worse_than_file,
    }
    out = [
        f"{word.replace('_', ' ')}: {run.figures[word]:.4g}, and at most {limit:g} is accepted."
        for word, limit in limits.items()
        if limit is not None and not run.figures[word] <= limit
    ]
    return [*out, *grade_missed(run.fit.verdict, study.accept.verdict)]


@dataclass(frozen=True, eq=False)
class DriveExciteRun:
    """The designed commands. `missed`: sentences about deviations that are larger than the study accepts."""

    machine: Machine
    plan: DrivePlan
    inputs: Mapping[str, str]
    missed: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, float]:
        """Numbers by name; `sigma_to_chirp` is the mean ratio, geometric, of asked deviations to those of a plain chirp."""
        plan = self.plan
        asked = [n for n in plan.numbers if n.asked]
        ratios = [n.sigma / n.plain_sigma for n in asked if np.isfinite(n.plain_sigma)]
        out = {"asked": float(len(asked)), "asked_determined": float(sum(n.determined for n in asked))}
        out |= {"duration": float(plan.t[-1]), "largest_share_of_limit": max(plan.used.values())}
        return out | ({"sigma_to_chirp": float(np.exp(np.mean(np.log(ratios))))} if ratios else {})

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """The record that the run folder keeps: promised deviations."""
        rows = tuple(parameter_row(n.name, n.unit, n.value, n.sigma, n.value) for n in self.plan.numbers)
        return Result(name, seed, False, dict(self.inputs), self.figures, rows, {}, warnings)

    def summary(self) -> str:
        return self.plan.summary()


def run_drive_excite(loaded: Loaded[DriveExciteFile], progress: Progress = silent) -> DriveExciteRun:
    """Design the commands of a study."""
    study = loaded.study
    machine = study_machine(loaded, ("model",), study.model)
    file = model_path(loaded, ("model",), study.model)
    for joint in study.limits:
        if joint not in machine.coordinates:
            hint = did_you_mean(joint, machine.coordinates)
            raise loaded.error_at(("limits", joint), f"'{joint}' is no coordinate.", hint=hint)
    ranges = drive_ranges(machine, file, study)
    with loaded.placing(("drives",), IdentificationError):
        rng = np.random.default_rng(study.seed)
        plan = design_drive_commands(machine, ranges, study.drives.settings(), rng=rng, progress=progress)
    known = {n.name: n for n in plan.numbers}
    for name in study.accept:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise loaded.error_at(("accept", name), f"'{name}' is no number of these drives.", hint=hint)
    missed = tuple(
        f"{name}: σ of {known[name].sigma:.3g} {known[name].unit} is predicted, and at most {limit:g} is accepted."
        for name, limit in study.accept.items()
        if not known[name].sigma <= limit
    )
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(file)}
    return DriveExciteRun(machine, plan, inputs, missed)


def drive_ranges(machine: Machine, file: Path, study: DriveExciteFile) -> dict[str, DriveRange]:
    """What each joint may do: by the study, else by the file of the model."""
    of_file: Mapping[str, UrdfLimits] = {}
    if file.suffix.lower() == ".urdf":
        of_file = urdf_limits(file)
    elif file.suffix.lower() in MJCF_ENDINGS:
        of_file = mjcf_limits(file)
    out = {}
    for c in machine.coordinates:
        own, given = study.limits.get(c), of_file.get(c, UrdfLimits())
        low, high = own.range if own is not None and own.range is not None else (given.lower, given.upper)
        speed = given.velocity if own is None or own.speed is None else own.speed
        force = given.effort if own is None or own.force is None else own.force
        out[c] = DriveRange(low=low, high=high, speed=speed, force=force)
    return out


@dataclass(frozen=True, eq=False)
class FlexibleRun:
    """The fit of the training logs, judged by the validation logs."""

    fit: FlexibleFit
    again: FlexibleFit
    inputs: dict[str, str]
    missed: tuple[str, ...] = ()

    @property
    def logs(self) -> tuple[Experiment, ...]:
        """Those of validation."""
        return self.again.logs

    @property
    def std_percent(self) -> Mapping[str, float]:
        return self.fit.std_percent

    @property
    def agreement(self) -> Mapping[str, float]:
        return self.fit.agreement

    @property
    def verdict(self) -> Verdict:
        """That of the fit, and limits of the study."""
        return self.fit.verdict.against(self.missed)

    @property
    def figures(self) -> dict[str, float]:
        """Numbers by name; joints are numbered in order."""
        out: dict[str, float] = {}
        for k, (c, joint) in enumerate(self.fit.joints.items(), 1):
            x, other = joint.stiffness, self.again.joints[c].stiffness
            out |= {f"stiffness_{k}": x.value, f"sigma_stiffness_{k}": x.sigma}
            out |= {f"stiffness_{k}_determined": float(x.determined)}
            out |= {f"stiffness_{k}_validation": other.value, f"sigma_stiffness_{k}_validation": other.sigma}
            out |= {f"stiffness_{k}_agreement": self.agreement[c]}
            out |= {f"encoder_delay_{k}": joint.own_delay[0], f"sigma_encoder_delay_{k}": joint.own_delay[1]}
            out |= {f"deflection_std_percent_{k}": self.std_percent[c]}
            moving = max(joint.std_percent(log, moving=True) for log in self.logs)
            out |= {f"deflection_moving_std_percent_{k}": moving}
        out |= {"encoder_delay": self.fit.delay, "sigma_encoder_delay": self.fit.delay_sigma}
        out |= {
            "encoder_delay_chance": self.fit.delay_chance,
            "encoder_delay_validation_chance": self.again.delay_chance,
        }
        out |= {"encoder_delay_validation": self.again.delay, "sigma_encoder_delay_validation": self.again.delay_sigma}
        return out | {"deflection_std_percent": max(self.std_percent.values())}

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """What is not determined is no parameter of the result; the warnings name it."""
        rows = [
            parameter_row(f"{x.name}_{c}", x.unit, x.value, x.sigma, x.prior)
            for c, joint in self.fit.joints.items()
            for x in joint.quantities.values()
            if x.determined
        ]
        checks = {
            r.row: {
                "samples": float(r.samples),
                "measured_std": r.measured_std,
                "error_std_percent": self.std_percent[r.row],
            }
            for r in self.fit.held_out_rows
        }
        told, findings = (*warnings, *self.fit.notes()), tuple(one.record for one in self.fit.findings)
        verdict = self.verdict.record
        return Result(
            name, seed, False, self.inputs, self.figures, tuple(rows), checks, told, findings=findings, verdict=verdict
        )

    def table(self) -> str:
        """Measured and predicted deflection of every joint on the validation logs, rad or m, as CSV."""
        rows: list[tuple[str, ...]] = []
        for log in self.logs:
            for c, joint in self.fit.joints.items():
                samples, predicted = joint.predict(log)
                both = zip(samples.t, samples.deflection, predicted, strict=True)
                rows += [(log.name, c, *(f"{x:.9g}" for x in row)) for row in both]
        return csv_text(("log", "joint", "t", "measured", "predicted"), rows)


def run_flexible(loaded: Loaded[FlexibleFile], progress: Progress = silent) -> FlexibleRun:
    """Read the logs that the study names, and fit the joints to those for training."""
    study = loaded.study
    machine = study_machine(loaded, ("model",), study.model, "unknown")
    progress("reading the logs", 0.0, None)
    inner: Loaded[Any] = loaded
    recorded = Recordings(inner)
    band, joints = study.flexible.band, study.flexible.joints
    own = study.flexible.settings(band=None if band == "auto" else band)
    with loaded.placing(("flexible",), DataError):
        training, validation = ([part.cut() for part in some] for some in (recorded.training, recorded.validation))
        progress("fitting the joints", 0.0, None)
        fit = identify_flexible(machine, training, joints=joints, settings=own, validation=validation)
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), study.model))}
    assert fit.again is not None  # a study names logs for validation
    run = FlexibleRun(fit, fit.again, {**inputs, **recorded.hashes})
    return replace(run, missed=tuple(_missed_deflections(loaded, run)))


def _missed_deflections(loaded: Loaded[FlexibleFile], run: FlexibleRun) -> list[str]:
    accept, out = loaded.study.accept, []
    for c, limit in accept.deflection_std_percent.items():
        if c not in run.std_percent:
            at = ("accept", "deflection_std_percent", c)
            raise loaded.error_at(at, f"'{c}' is none of the joints.", ", ".join(run.std_percent))
        if not run.std_percent[c] <= limit:
            out.append(
                f"deflection of {c}, % of its standard deviation: {run.std_percent[c]:.4g}, and at most {limit:g} is accepted."
            )
    for c, off in run.agreement.items():
        if accept.agreement is not None and not off <= accept.agreement:
            out.append(
                f"stiffness of {c} differs by {off:.3g} standard deviations, and at most {accept.agreement:g} is accepted."
            )
    return [*out, *grade_missed(run.fit.verdict, accept.verdict)]
