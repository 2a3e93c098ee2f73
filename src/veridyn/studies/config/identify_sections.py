"""The settings of ``kind: identify`` with one section more.

``fleet``: many machines of one model, each from its own logs. ``payload``: what a machine carries, weighed with the machine itself.
``drives``: from commands and encoders; ``flexible``: from motor and link encoders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from veridyn.identify.drives.drive_method import DriveRun, Drives
from veridyn.identify.flexible.result import FlexibleSettings
from veridyn.model.machine import Machine
from veridyn.studies.config.identify import (
    EstimatorSettings,
    IdentifyAccept,
    IdentifyFile,
    ModelSettings,
    OutputSettings,
    Recording,
    check_encoder_study,
)
from veridyn.studies.config.settings_section import section_of
from veridyn.studies.config.study import Number, RunName, StudySection

MACHINE_PLACEHOLDER = "{machine}"  # stands for the name of a machine in a pattern of paths
MACHINE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_. -]*$"
Three = tuple[Number, Number, Number]


def _several(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Logs = Annotated[
    tuple[Recording, ...],
    Field(min_length=1),
    BeforeValidator(_several, json_schema_input_type=Recording | tuple[Recording, ...]),
]


class FleetSettings(StudySection):
    """The machines and their logs: by name, or by a pattern of paths."""

    machines: dict[Annotated[str, Field(pattern=MACHINE_NAME)], Logs] = Field(default_factory=dict)
    """Name of a machine → its log, or a list of them."""
    logs: str = ""
    """In place of machines: a pattern of paths, such as logs/{machine}/*.csv, in which {machine} is the name of the machine, * any text
    without a slash and ? any letter."""
    significance: Number = Field(default=0.01, gt=0.0, lt=1.0)
    """The chance that any machine of a sound fleet is called an outlier, over all machines and parameters together."""
    fits: bool = False
    """Keep the fit of each machine in the run folder, fits/MACHINE_NAME.json, as other studies take it (model: {fit: …})."""

    @model_validator(mode="after")
    def _one_way(self) -> FleetSettings:
        if bool(self.machines) == bool(self.logs):
            raise ValueError("either machines, or logs, a pattern of paths")
        if self.logs and self.logs.count(MACHINE_PLACEHOLDER) != 1:
            raise ValueError(f"{MACHINE_PLACEHOLDER} once in logs, for the name of the machine")
        return self


class FleetAccept(StudySection):
    """Limits that the result must keep; the exit code is 1 where it misses one."""

    outliers: int | None = Field(default=None, ge=0)
    """Most machines that may stand apart."""
    left_out: int | None = Field(default=None, ge=0)
    """Most machines and logs that may be left out."""
    validation_percent: Number | None = None
    """Largest relative error of any machine on its validation logs."""


class FleetFile(IdentifyFile):
    """Many machines of one model: each its parameters, their distribution over the fleet, and the machines that stand apart."""

    name: RunName = "fleet"
    fleet: FleetSettings
    training: tuple[Recording, ...] = ()
    """Not here: the logs stand under fleet."""
    validation: tuple[Recording, ...] | Literal["none"] = ()
    """The last 30 % of each log are held out; none: all samples are fitted."""
    estimator: EstimatorSettings = EstimatorSettings()
    """How the parameters of each machine are estimated; machines are compared by their deviations, so these allow for autocorrelation."""
    checks: bool = False
    """Look for swapped columns, wrong units and the like in the logs of every machine."""
    accept: FleetAccept = FleetAccept()  # pyright: ignore[reportIncompatibleVariableOverride]

    @model_validator(mode="after")
    def _of_a_fleet(self) -> FleetFile:
        if self.training or self.validation not in ((), "none"):
            raise ValueError("logs under fleet only, and validation: none or nothing")
        if self.output != OutputSettings():
            raise ValueError("no output: fleet.fits keeps the fit of each machine")
        return self

    def of_one(self, logs: tuple[Any, ...]) -> IdentifyFile:
        """The study of one machine of the fleet."""
        own = {name: getattr(self, name) for name in IdentifyFile.model_fields}
        return IdentifyFile.model_construct(
            **{**own, "training": logs, "accept": IdentifyAccept(), "executor": "none", "output": OutputSettings()}
        )


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


class PayloadAccept(IdentifyAccept):
    """Limits that the result must keep; the exit code is 1 where it misses one."""

    verdict: Literal["good", "fair"] | None = None
    """The least grade of the verdict on the load that will do."""


class PayloadFile(IdentifyFile):
    """What a machine carries, from runs without and with it, written out as controllers take it."""

    name: RunName = "payload"
    payload: PayloadSettings
    training: tuple[Recording, ...] = Field(min_length=1)
    """Runs with the load."""
    estimator: EstimatorSettings = EstimatorSettings()
    """How parameters of the machine and of its load are estimated."""
    accept: PayloadAccept = PayloadAccept()  # pyright: ignore[reportIncompatibleVariableOverride]

    @model_validator(mode="after")
    def _known_machine(self) -> PayloadFile:
        if bool(self.payload.empty) == bool(self.model.fit):
            raise ValueError("either payload.empty, the runs that identify the machine, or model.fit, a run that did")
        if self.model.fit and self.payload.gain_sigma is not None:
            raise ValueError("payload.empty beside gain_sigma: a fit keeps what was known of its gains")
        if self.model.fit and self.model != ModelSettings(fit=self.model.fit):
            raise ValueError("model: {fit: …} alone: the machine is weighed with as it was identified")
        validation = () if self.validation == "none" else self.validation
        if any(r.load is not None for r in (*self.training, *validation)):
            raise ValueError("known loads under payload.empty only: training and validation carry the unknown one")
        if self.output != OutputSettings():
            raise ValueError("no output: the load goes to payload.json and the fit to fit.json")
        if self.estimator.trust:
            raise ValueError("an estimator without trust: the machine is known")
        return self


class DriveRunSection(StudySection):
    """What was different while one of the training logs was recorded; nothing where it is empty."""

    kp: Number | None = Field(default=None, gt=0.0)
    """Gain of the position of all drives in this log, N*m/rad or N/m."""
    kd: Number | None = Field(default=None, gt=0.0)
    """Gain of the speed of all drives in this log, N*m*s/rad or N*s/m."""
    model: ModelSettings | None = None
    """The machine of this log, with other loads or another pose of its base: the same joints and elements."""


class DrivesSection(section_of(Drives, own=["runs"])):
    """What the drives are known to be, and what is found."""

    runs: tuple[DriveRunSection, ...] = ()
    """What was different in each training log, one for each: other gains, or a machine with other loads. The first describes the result."""

    def method(self, machines: Mapping[int, Machine] | None = None) -> Drives:
        """The same for the estimator, with machines of runs by their number."""
        runs = tuple(DriveRun(kp=run.kp, kd=run.kd, machine=(machines or {}).get(k)) for k, run in enumerate(self.runs))
        return self.settings(runs=runs)


class DrivesAccept(StudySection):
    """Limits that the result must keep; the exit code is 1 where it misses one."""

    rms_held_out: Number | None = Field(default=None, gt=0.0)
    """Largest rms of the encoders behind `until`, over all joints and training logs, rad or m."""
    rms_validation: Number | None = Field(default=None, gt=0.0)
    """The same of the worst validation log."""
    worse_than_file: Number | None = Field(default=None, ge=0.0)
    """How many held-out parts of logs the values of the model file may follow more closely than those of the fit."""
    verdict: Literal["good", "fair"] | None = None
    """The least grade of the verdict that will do."""


class DrivesFile(IdentifyFile):
    """Armature, friction, encoder zeros, delays and gains of drives from what was commanded and what encoders read."""

    name: RunName = "drives"
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
        held_out = self.drives.method().until < math.inf
        if self.accept.rms_held_out is not None and not held_out:
            raise ValueError("rms_held_out needs drives: {until: …}, behind which samples are held out")
        if self.accept.rms_validation is not None and not self.validation:
            raise ValueError("rms_validation needs logs for validation")
        if self.accept.worse_than_file is not None and not held_out and not self.validation:
            raise ValueError(
                "worse_than_file needs drives: {until: …} or logs for validation: something that is not fitted"
            )
        return self


class FlexibleSection(section_of(FlexibleSettings, "joints", ..., own=["joints", "band"])):
    """Which joints, and how their stiffness is found."""

    joints: tuple[str, ...] = ()
    """Coordinates of their link sides; all flexible joints of the model if left out."""
    band: Number | Literal["auto"] = Field(default="auto")
    """Low-pass of the equations, Hz; auto: five times the frequency below which 99.9 % of the speed's power lies."""


class FlexibleAccept(StudySection):
    """Limits that the result must keep; the exit code is 1 where it misses one."""

    deflection_std_percent: dict[str, Number] = Field(default_factory=dict)
    """Joint → largest error of its predicted deflection on the validation logs, % of the standard deviation."""
    agreement: Number | None = None
    """Largest difference of a stiffness between training and validation logs, in standard deviations of the difference."""
    verdict: Literal["good", "fair"] | None = None
    """The least grade of the verdict that will do."""


class FlexibleFile(IdentifyFile):
    """Stiffness, damping and friction of flexible joints from motor encoders and encoders or inertial sensors of the link."""

    name: RunName = "flexible"
    flexible: FlexibleSection
    validation: tuple[Recording, ...] = Field(min_length=1)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Logs on which the deflection is predicted."""
    accept: FlexibleAccept = FlexibleAccept()  # pyright: ignore[reportIncompatibleVariableOverride]

    @model_validator(mode="after")
    def _of_encoders(self) -> FlexibleFile:
        check_encoder_study(self, "flexible", (*self.training, *self.validation))
        return self
