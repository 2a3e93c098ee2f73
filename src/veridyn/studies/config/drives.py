"""The settings of ``kind: identify`` from encoders: sections ``drives``, from commands, and ``flexible``, from motor and link encoders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from veridyn.identify.drives.drive_method import DEFAULT_KEYS, Drives
from veridyn.identify.drives.drive_run import DriveRun
from veridyn.identify.flexible.result import FlexibleSettings
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


class FlexibleSection(StudySection):
    """Which joints, and how their stiffness is found."""

    joints: tuple[str, ...] = ()
    """Coordinates of their link sides; all flexible joints of the model if left out."""
    band: Number | Literal["auto"] = Field(default="auto")
    """Low-pass of the equations, Hz; auto: five times the frequency below which 99.9 % of the speed's power lies."""
    lowpass: Number = Field(default=15.0, gt=0.0)
    """Low-pass of the deflections that are predicted and compared, Hz."""
    spread: Number = Field(default=0.7, gt=0.0)
    """Prior standard deviation of the logarithm of a stiffness where the model has no sigma for it; 0.7 is a factor of two."""
    delay: Number = Field(default=0.01, gt=0.0)
    """Prior standard deviation of the delay between the encoders, s."""
    relaxation: Number = Field(default=0.01, gt=0.0)
    """Prior standard deviation of damping over stiffness, s."""
    dead_zone: Number = Field(default=0.05, gt=0.0, lt=1.0)
    """Share of the largest speed below which a joint counts as standing still: such samples are predicted, and not fitted."""
    common_delay: bool = True
    """Whether the encoders of all joints have one delay."""
    gain: Number = Field(default=0.01, gt=0.0)
    """Prior standard deviation of the gains of inertial sensors on the link, and of what each axis reads of the others."""
    place: Number = Field(default=0.005, gt=0.0)
    """Prior standard deviation of the places of accelerometers on the link, m."""

    def settings(self) -> FlexibleSettings:
        """The same for the estimator."""
        own = self.model_dump(exclude={"joints", "band"})
        return FlexibleSettings(band=None if self.band == "auto" else self.band, **own)


class FlexibleAccept(StudySection):
    """Limits that the result must keep; the exit code is 1 where it misses one."""

    deflection_std_percent: dict[str, Number] = Field(default_factory=dict)
    """Joint → largest error of its predicted deflection on the validation logs, % of the standard deviation."""
    agreement: Number | None = None
    """Largest difference of a stiffness between training and validation logs, in standard deviations of the difference."""


class FlexibleFile(IdentifyFile):
    """Stiffness, damping and friction of flexible joints from motor encoders and encoders or inertial sensors of the link."""

    name: str = Field(default="flexible", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the run folder, which gets a number."""
    flexible: FlexibleSection
    validation: tuple[Recording, ...] = Field(min_length=1)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Logs on which the deflection is predicted."""
    accept: FlexibleAccept = FlexibleAccept()  # pyright: ignore[reportIncompatibleVariableOverride]

    @model_validator(mode="after")
    def _of_encoders(self) -> FlexibleFile:
        check_encoder_study(self, "flexible", (*self.training, *self.validation))
        return self
