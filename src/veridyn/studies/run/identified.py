"""What came of a study of kind identify: parameters with deviations, judged on data they have not seen, of any machine.

Of a drive what it shows of its car, and what it does not, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veridyn.errors import DataError, Fault
from veridyn.files.archive import save
from veridyn.identify.cutoff import Cutoff
from veridyn.identify.diagnosis.delays import Delays
from veridyn.identify.diagnosis.mistake import Mistake
from veridyn.identify.estimators.trust import Trust
from veridyn.identify.friction.ladder import FrictionLadder
from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.model.machine import Machine
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.result import ParameterRow, Result, Run
from veridyn.studies.run.machine import FIT, Closing

if TYPE_CHECKING:  # what a drive has brings compiled equations along
    from veridyn.identify.car.result import CarFit
    from veridyn.signals.drive import Line
    from veridyn.studies.run.car.log import StudyDrive


@dataclass(frozen=True, eq=False, kw_only=True)
class IdentifiedDrive:
    """What a drive shows of a car. `lines`: name → line of wheels and axles; `checked`: name → the same on the rest; `not_shown`: what the
    drive cannot show, and why."""

    drive: StudyDrive
    fitted: CarFit | None
    lines: Mapping[str, Line]
    checked: Mapping[str, Line]
    parameters: tuple[ParameterRow, ...]
    figures: Mapping[str, float]
    validation: Validation | None
    not_shown: Mapping[str, str]
    faults: tuple[Fault, ...]

    def summary(self) -> str:
        """Parameters with deviations, and what the drive cannot show."""
        return "\n".join(
            f"  {p.name:<24}{p.value:14.6g} ± {p.sigma:<10.3g} {p.unit}"
            + ("" if p.name not in self.not_shown else "   not shown by this drive")
            for p in self.parameters
        )


@dataclass(frozen=True, eq=False)
class IdentifyRun:
    """What a study found. `missed`: sentences about limits of the study file that are not kept; `cutoff`: what was tried, if anything.

    `closing`: how loops were closed, where there are any; `omitted`: what was not looked for, and why. `ladder`: the friction that was
    tried, where the study asks for it; `machine` has what entered. `judged` is None of a car of a few numbers, which has a `drive`.
    """

    judged: IdentificationStudy | None
    machine: Machine
    model_file: Path
    lowpass: float | None
    cutoff: Cutoff | None
    delays: Delays
    suspicions: tuple[Mistake, ...]
    missed: tuple[str, ...]
    inputs: Mapping[str, str]
    trust: Trust[Any] | None = None
    closing: Closing | None = None
    omitted: tuple[str, ...] = ()
    ladder: FrictionLadder | None = None
    drive: IdentifiedDrive | None = None

    @property
    def study(self) -> IdentificationStudy:
        """What equations of motion have identified."""
        if self.judged is None:
            expected = "a machine of bodies and joints"
            raise DataError(
                "a drive gives no forces of joints to judge by.", where=self.machine.name, expected=expected
            )
        return self.judged

    @property
    def fit(self) -> Fit | None:
        """The parameters with their covariance; None where a drive shows lines of wheels and axles alone."""
        return self.study.fit if self.drive is None else self.drive.fitted

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """The record that the run folder keeps."""
        if self.drive is not None:
            d = self.drive
            told = (
                *(str(f) for f in d.faults),
                *(f"not shown by this drive: {n}: {x}" for n, x in d.not_shown.items()),
            )
            table = {} if d.validation is None else d.validation.table
            return Result(name, seed, False, self.inputs, self.figures, d.parameters, table, (*told, *warnings))
        made = self.study.result(name, seed=seed, quick=False, inputs=dict(self.inputs), warnings=warnings)
        findings = tuple(f.record for f in self.study.fit.findings)
        return replace(made, figures={**made.figures, **self.figures}, findings=findings)

    @property
    def figures(self) -> dict[str, float]:
        """Numbers that the study adds to those of the identification; of a drive, all of them."""
        if self.drive is not None:
            return {**self.drive.figures}
        out = {"suspicions": float(len(self.suspicions)), "limits_missed": float(len(self.missed))}
        if self.lowpass is not None:
            out["lowpass"] = self.lowpass
        if self.trust is not None:
            out["prior_relative"] = self.trust.scale
            out |= {f"prior_relative_{group}": scale for group, scale in self.trust.groups.items()}
        out |= {} if self.ladder is None else self.ladder.figures
        out |= {f"delay_{c}": d for c, d in self.delays.seconds.items()}
        return out

    def keep(self, run: Run) -> None:
        """Write what its run folder gets beside the result: the fit, and what was tried on the way."""
        if self.fit is not None:
            save(self.fit, run.folder / FIT)
        if self.cutoff is not None:
            run.write_text("cutoffs.csv", self.cutoff.table())
        if self.ladder is not None:
            run.write_text("friction.csv", self.ladder.table())
