"""The settings of ``kind: identify`` with a section ``flexible``: stiffness of joints from motor and link encoders."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from veridyn.identify.flexible.two_encoders import FlexibleSettings
from veridyn.studies.config.identify import IdentifyFile, check_encoder_study
from veridyn.studies.config.log import Recording
from veridyn.studies.config.study import Number, StudySection


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
    """Share of the largest speed below which a joint counts as standing still: dry friction is anything there."""
    friction_speed: Number = Field(default=0.005, gt=0.0)
    """Speed at which 76 % of dry friction is reached, rad/s or m/s."""
    common_delay: bool = True
    """Whether the encoders of all joints have one delay."""

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
    """Stiffness, damping and friction of flexible joints from motor and link encoders, with the delay between them."""

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
