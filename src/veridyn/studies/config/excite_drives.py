"""The settings of ``kind: excite`` with a section ``drives``: from a model and limits to commands that determine its drives."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from veridyn.identify.drives.drive_excitation import DriveExcitation
from veridyn.studies.config.identify import ModelSettings
from veridyn.studies.config.settings_section import section_of
from veridyn.studies.config.study import Number, RunName, StudyFile, StudySection


class DriveRangeSettings(StudySection):
    """What one joint may do; what is left out is taken from the model's file, where that is a URDF or MJCF."""

    range: tuple[Number, Number] | None = None
    """Least and largest position, rad or m."""
    speed: Number | None = Field(default=None, gt=0.0)
    """Largest speed, rad/s or m/s."""
    force: Number | None = Field(default=None, gt=0.0)
    """Largest force of the drive, N*m or N."""


class DriveExciteSection(section_of(DriveExcitation, called={"rate": "sampling", "ticks": "rate"})):
    """What is known of the drives, and what the commands are to determine."""


class DriveExciteFile(StudyFile):
    """Commands designed for the identification of drives: what to run, and how well each number will be known."""

    kind: Literal["excite"] = "excite"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done."""
    name: RunName = "commands"
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
