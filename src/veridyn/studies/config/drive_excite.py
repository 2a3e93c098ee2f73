"""The settings of ``kind: excite`` with a section ``drives``: commands from which drives are to be identified."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from veridyn.identify.drives.drive_excitation import DriveExcitation
from veridyn.identify.drives.drive_method import DEFAULT_KEYS
from veridyn.studies.config.identify import ModelSettings
from veridyn.studies.config.study import Number, StudyFile, StudySection


class DriveRangeSettings(StudySection):
    """What one joint may do; what is left out is taken from the model's file, where that is a URDF or MJCF."""

    range: tuple[Number, Number] | None = None
    """Least and largest position, rad or m."""
    speed: Number | None = Field(default=None, gt=0.0)
    """Largest speed, rad/s or m/s."""
    force: Number | None = Field(default=None, gt=0.0)
    """Largest force of the drive, N*m or N."""


class DriveExciteSection(StudySection):
    """What is known of the drives, and what the commands are to determine."""

    ask: tuple[str, ...] = ()
    """Numbers to determine: keys such as kp, armature, coulomb, zero and command_delay, or names such as knee_drive.kp; all if left out."""
    duration: Number = Field(default=20.0, gt=0.0)
    """Of the recording, s."""
    sampling: Number = Field(default=200.0, gt=0.0)
    """Commands, and samples of the log, each second."""
    noise: Number = Field(default=1e-3, gt=0.0)
    """What a simulation will leave of the encoders, rad or m."""
    memory: Number = Field(default=10.0, ge=1.0)
    """How many samples of that are worth one independent one."""
    tries: int = Field(default=60, ge=1)
    """Commands that are simulated for each group of joints that move each other."""
    kp: Number = Field(default=0.0, ge=0.0)
    """Gain of the position, N*m/rad or N/m, of joints that have no controller in the model file; required where one is missing."""
    kd: Number = Field(default=0.0, ge=0.0)
    """Gain of the speed, N*m*s/rad or N*s/m, of the same joints."""
    rate: Number = Field(default=1000.0, gt=0.0)
    """Ticks of these drives each second."""
    estimate: tuple[str, ...] = DEFAULT_KEYS
    """What will be estimated: any of armature, viscous, coulomb, kp, kd, zero, command_delay, measurement_delay."""
    commands: Literal["hold", "linear"] = "hold"
    """Whether a drive holds each command until the next, or moves along the line between both."""

    def method(self) -> DriveExcitation:
        """The same for the design."""
        own = self.model_dump(exclude={"sampling", "rate"})
        return DriveExcitation(**own, rate=self.sampling, ticks=self.rate)


class DriveExciteFile(StudyFile):
    """Commands designed for the identification of drives: what to run, and how well each number will be known."""

    kind: Literal["excite"] = "excite"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done."""
    name: str = Field(default="commands", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the run folder, which gets a number."""
    model: ModelSettings
    drives: DriveExciteSection
    limits: dict[str, DriveRangeSettings] = Field(default_factory=dict)
    """Joint → what it may do."""
    accept: dict[str, Number] = Field(default_factory=dict)
    """Largest deviation that will do, by name of a number: missed ones are told, exit code 1."""

    @model_validator(mode="after")
    def _ends(self) -> DriveExciteFile:
        for joint, own in self.limits.items():
            if own.range is not None and not own.range[0] < own.range[1]:
                raise ValueError(f"the range of {joint} is two positions, the lower one first")
        return self
