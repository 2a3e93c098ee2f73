"""``kind: excite`` with a section ``drives``, run: commands within the limits of the joints, and what a recording of them promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridyn.errors import IdentificationError, did_you_mean
from veridyn.files.machine.load import MJCF_ENDINGS
from veridyn.files.machine.mjcf import mjcf_limits
from veridyn.files.machine.urdf import urdf_limits
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.identify.drives.drive_excitation import DriveRange, design_drive_commands
from veridyn.identify.drives.drive_plan import DrivePlan
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.studies.config.drive_excite import DriveExciteFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, fingerprint
from veridyn.studies.run.machine import model_path, study_machine


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
        rows = tuple(
            ParameterRow(
                n.name, n.unit, n.value, n.sigma, 100.0 * n.sigma / abs(n.value) if n.value else np.inf, n.value
            )
            for n in self.plan.numbers
        )
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
        plan = design_drive_commands(machine, ranges, study.drives.method(), rng=rng, progress=progress)
    known = {n.name: n for n in plan.numbers}
    for name in study.accept:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise loaded.error_at(("accept", name), f"'{name}' is no number of these drives.", hint=hint)
    missed = tuple(
        f"{name}: σ of {known[name].sigma:.3g} {known[name].unit} is promised, and at most {limit:g} is accepted."
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
