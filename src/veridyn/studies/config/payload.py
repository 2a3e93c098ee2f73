"""The settings of ``kind: identify`` with a section ``payload``: what a machine carries, weighed with the machine itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from veridyn.studies.config.identify import EstimatorSettings, IdentifyFile, ModelSettings, OutputSettings, Recording
from veridyn.studies.config.study import Number, StudySection

Three = tuple[Number, Number, Number]


class FrameSettings(StudySection):
    """A frame fixed to a body."""

    position: Three = (0.0, 0.0, 0.0)
    """Its origin in the body's frame, m."""
    rpy: Three = (0.0, 0.0, 0.0)
    """Roll, pitch and yaw of its axes about the fixed axes x, y and z of the body, rad, as in URDF."""


class PayloadSettings(StudySection):
    """A load of unknown mass on a machine that is known from runs without it."""

    body: str
    """Body that carries it."""
    flange: FrameSettings = FrameSettings()
    """The flange on that body: mass, centre and inertia are reported in this frame."""
    empty: tuple[Recording, ...] = ()
    """Runs that identify the machine: without a load, or with a known one (load:), which calibrates drive gains that are estimated.
    None where model names a fit."""
    estimate: Literal["all", "mass"] = "all"
    """All ten parameters of the load, physically consistent, or its mass alone, where its centre is known."""
    centre: Three | None = None
    """Centre of mass in the flange's frame, m, where the mass alone is estimated; the load is then a point mass there."""
    gain_sigma: Number | None = Field(default=None, gt=0.0, lt=1.0)
    """Standard deviation of each drive gain that is known, or of each measured torque's scale where there are no gains, as a share."""
    largest_sigma: Number | None = Field(default=None, gt=0.0)
    """Largest standard deviation of the mass that will do, kg: the exit code is 1 where it is missed."""

    @model_validator(mode="after")
    def _belongs(self) -> PayloadSettings:
        if self.estimate == "mass" and self.centre is None:
            raise ValueError("centre, the known centre of mass, where the mass alone is estimated")
        if self.estimate == "all" and self.centre is not None:
            raise ValueError("no centre, since it is estimated; or estimate: mass")
        return self


class PayloadFile(IdentifyFile):
    """What a machine carries, from runs without and with it, written out as controllers take it."""

    name: str = Field(default="payload", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the run folder, which gets a number."""
    payload: PayloadSettings
    training: tuple[Recording, ...] = Field(min_length=1)
    """Runs with the load."""
    estimator: EstimatorSettings = EstimatorSettings()
    """How parameters of the machine and of its load are estimated."""

    @model_validator(mode="after")
    def _known_machine(self) -> PayloadFile:
        if bool(self.payload.empty) == bool(self.model.fit):
            raise ValueError("either payload.empty, the runs that identify the machine, or model.fit, a run that did")
        if self.model.fit and self.payload.gain_sigma is not None:
            raise ValueError("payload.empty beside gain_sigma: a fit keeps what was known of its gains")
        if self.model.fit and self.model != ModelSettings(fit=self.model.fit):
            raise ValueError("model: {fit: …} alone: the machine is weighed with as it was identified")
        judged = () if self.validation == "none" else self.validation
        if any(r.load is not None for r in (*self.training, *judged)):
            raise ValueError("known loads under payload.empty only: training and validation carry the unknown one")
        if self.output != OutputSettings():
            raise ValueError("no output: the load goes to payload.json and the fit to fit.json")
        if self.estimator.trust:
            raise ValueError("an estimator without trust: the machine is known")
        return self
