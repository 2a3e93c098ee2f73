"""The key ``executor`` of a study file: who shares in the work."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from veridyn.studies.config.study import StudySection


class ExecutorSettings(StudySection):
    """Threads of this machine, or a cluster of Dask; one of the two."""

    local: int | None = Field(default=None, ge=1)
    """How many threads of this machine."""
    dask: str | None = Field(default=None, min_length=1)
    """Address of a Dask scheduler, such as tcp://10.0.0.1:8786 (extra cluster); its workers need the same version of veridyn."""

    @model_validator(mode="after")
    def _one(self) -> ExecutorSettings:
        if (self.local is None) == (self.dask is None):
            raise ValueError("either {local: THREADS} or {dask: ADDRESS}")
        return self


Executing = Literal["none", "local"] | ExecutorSettings
