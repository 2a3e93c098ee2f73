"""The settings of ``kind: identify`` with a section ``drives``: drives from commands and encoders, without forces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from veridyn.identify.drives.drive_method import DEFAULT_KEYS, Drives
from veridyn.identify.drives.drive_run import DriveRun
from veridyn.model.machine import Machine
from veridyn.studies.config.identify import IdentifyFile, ModelSettings, check_encoder_study
from veridyn.studies.config.log import Recording
from veridyn.studies.config.study import Number, StudySection


class DriveRunSection(StudySection):
    """What was different while one of the training logs was recorded; nothing where it is empty."""

    kp: Number | None = Field(default=None, gt=0.0)
    """Gain of the position of all drives in this log, N*m/rad or N/m."""
    kd: Number | None = Field(default=None, gt=0.0)
    """Gain of the speed of all drives in this log, N*m*s/rad or N*s/m."""
    model: ModelSettings | None = None
    """The machine of this log, with other loads or another pose of its base: the same joints and elements."""


class DrivesSection(StudySection):
    """What the drives are known to be, and what is found."""

    kp: Number = Field(default=0.0, ge=0.0)
    """Gain of the position, N*m/rad or N/m, of joints that have no controller in the model file; required where one is missing."""
    kd: Number = Field(default=0.0, ge=0.0)
    """Gain of the speed, N*m*s/rad or N*s/m, of the same joints."""
    rate: Number = Field(default=1000.0, gt=0.0)
    """Ticks of these drives each second."""
    estimate: tuple[str, ...] = DEFAULT_KEYS
    """What is estimated: any of armature, viscous, coulomb, kp, kd, zero, command_delay, measurement_delay."""
    friction: Literal["auto", "coulomb"] = "auto"
    """auto: further terms of dry friction where the fitted samples show them by Schwarz's criterion."""
    commands: Literal["hold", "linear"] = "hold"
    """Whether a drive holds each command until the next, or moves along the line between both."""
    until: Number | None = Field(default=None, gt=0.0)
    """Seconds of each training log that are fitted; the rest is held out, and simulated on from the start. All if left out."""
    iterations: int = Field(default=60, ge=1)
    """Steps of each search, at most."""
    tolerance: Number = Field(default=0.3, gt=0.0)
    """The step, in posterior deviations, below which a search has converged."""
    runs: tuple[DriveRunSection, ...] = ()
    """What was different in each training log, one for each: other gains, or a machine with other loads. The first describes the result."""

    def method(self, machines: Mapping[int, Machine] | None = None) -> Drives:
        """The same for the estimator, with machines of runs by their number."""
        own = self.model_dump(exclude={"until", "runs"})
        runs = tuple(DriveRun(kp=run.kp, kd=run.kd, machine=(machines or {}).get(k)) for k, run in enumerate(self.runs))
        return Drives(until=math.inf if self.until is None else self.until, runs=runs, **own)


class DrivesAccept(StudySection):
    """Limits that the result must keep; the exit code is 1 where it misses one."""

    rms_held_out: Number | None = Field(default=None, gt=0.0)
    """Largest rms of the encoders behind `until`, over all joints, rad or m."""
    rms_validation: Number | None = Field(default=None, gt=0.0)
    """The same of the worst validation log."""


class DrivesFile(IdentifyFile):
    """Armature, friction, encoder zeros, delays and gains of drives from what was commanded and what encoders read."""

    name: str = Field(default="drives", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the run folder, which gets a number."""
    drives: DrivesSection
    validation: tuple[Recording, ...] = ()  # pyright: ignore[reportIncompatibleVariableOverride]
    """Other logs, whose encoders are simulated from their commands."""
    accept: DrivesAccept = DrivesAccept()  # pyright: ignore[reportIncompatibleVariableOverride]

    @model_validator(mode="after")
    def _of_encoders(self) -> DrivesFile:
        check_encoder_study(self, "drives", (*self.training, *self.validation))
        if self.drives.runs and len(self.drives.runs) != len(self.training):
            found = f"{len(self.drives.runs)} for {len(self.training)}"
            raise ValueError(
                f"drives.runs: one for each training log ({{}} where nothing was different); found {found}"
            )
        if self.accept.rms_held_out is not None and self.drives.until is None:
            raise ValueError("rms_held_out needs drives: {until: …}, behind which samples are held out")
        if self.accept.rms_validation is not None and not self.validation:
            raise ValueError("rms_validation needs logs for validation")
        return self
