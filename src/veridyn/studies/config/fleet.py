"""The settings of ``kind: identify`` with a section ``fleet``: many machines of one model, each from its own logs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from veridyn.studies.config.identify import EstimatorSettings, IdentifyAccept, IdentifyFile, OutputSettings, Recording
from veridyn.studies.config.study import Number, StudySection

MACHINE = "{machine}"  # stands for the name of a machine in a pattern of paths
NAME = r"^[A-Za-z0-9][A-Za-z0-9_. -]*$"


def _several(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Logs = Annotated[
    tuple[Recording, ...],
    Field(min_length=1),
    BeforeValidator(_several, json_schema_input_type=Recording | tuple[Recording, ...]),
]


class FleetSettings(StudySection):
    """The machines and their logs: by name, or by a pattern of paths."""

    machines: dict[Annotated[str, Field(pattern=NAME)], Logs] = Field(default_factory=dict)
    """Name of a machine → its log, or a list of them."""
    logs: str = ""
    """In place of machines: a pattern of paths, such as logs/{machine}/*.csv, in which {machine} is the name of the machine, * any text
    without a slash and ? any letter."""
    significance: Number = Field(default=0.01, gt=0.0, lt=1.0)
    """The chance that any machine of a sound fleet is called an outlier, over all machines and parameters together."""
    fits: bool = False
    """Keep the fit of each machine in the run folder, fits/NAME.json, as other studies take it (model: {fit: …})."""

    @model_validator(mode="after")
    def _one_way(self) -> FleetSettings:
        if bool(self.machines) == bool(self.logs):
            raise ValueError("either machines, or logs, a pattern of paths")
        if self.logs and self.logs.count(MACHINE) != 1:
            raise ValueError(f"{MACHINE} once in logs, for the name of the machine")
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

    name: str = Field(default="fleet", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the run folder, which gets a number."""
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
