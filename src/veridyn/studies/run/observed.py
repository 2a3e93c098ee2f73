"""What came of a study of kind observe: states with deviations, virtual sensors with bands, and how far to trust them, of any machine.

Of a drive also what was identified first, references, and the way of the car.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault
from veridyn.files.machine.write import model_text
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import Reason, Verdict
from veridyn.model.machine import Machine
from veridyn.observe.car.system import STATE_UNITS
from veridyn.observe.consistency.figures import observation_figures
from veridyn.observe.consistency.judge import remarks
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation, Reading
from veridyn.observe.result import Track
from veridyn.signals.spectrum import Whiteness
from veridyn.studies.config.observe import ObserveAccept
from veridyn.studies.result import (
    ParameterRow,
    Result,
    Run,
    csv_text,
    grade_missed,
    limits_missed,
    parameter_row,
    rms_of,
)
from veridyn.studies.run.machine import IDENTIFIED

if TYPE_CHECKING:  # what a drive has brings compiled equations along
    from veridyn.identify.car_fit import CarFit
    from veridyn.studies.run.recordings import StudyDrive


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservedDrive:
    """What a drive has besides the states of its car: the `car` as it was observed, with the parameters that were `fitted` first and are
    `identified`; references on the clock of the `drive`; the sideslip of a linear filter; the `path` with the `gaps` of its positions;
    `frozen` parameters, and what the checks found."""

    car: Machine
    drive: StudyDrive
    fitted: CarFit | None
    identified: tuple[ParameterRow, ...]
    reference: Mapping[str, Array]
    linear: Array | None
    path: Track | None
    path_verdict: Verdict | None
    gaps: tuple[tuple[float, float], ...]
    figures: Mapping[str, float]
    frozen: Mapping[str, float]
    faults: tuple[Fault, ...]

    def sentences(self) -> Iterator[str]:
        """How far sideslip is off where there is a reference, and what the drive does not show."""
        f = self.figures
        if "rms_sideslip" in f:
            share = 100.0 * f["share_inside_two_sigma"]
            text = f"Sideslip is {np.degrees(f['rms_sideslip']):.2f}° rms off the reference, {share:.0f} % inside 2σ"
            linear = {
                "a stiffness identified from the same drive": "rms_sideslip_linear_identified",
                "the stiffness of the model file, which is not identified": "rms_sideslip_linear",
            }
            compared = [f"{np.degrees(f[name]):.2f}° with {what}" for what, name in linear.items() if name in f]
            if compared:
                text += f"; a linear filter is off by {' and by '.join(compared)}"
            yield f"{text}."
        yield from (f"'{n}' is frozen: the drive excites it too little." for n in self.frozen)


@dataclass(frozen=True, eq=False)
class ObserveRun:
    """An observation with its virtual sensors. `missed` are sentences about limits of the study file that are not kept; `notes`: what
    reading the file showed. `seen` is None where only the way of a car was observed."""

    seen: Observation | None
    virtual: Mapping[str, Reading]
    step_microseconds: float
    inputs: Mapping[str, str]
    accept: ObserveAccept | Mapping[str, tuple[float, float]]
    notes: tuple[str, ...] = ()
    drive: ObservedDrive | None = None

    @property
    def observation(self) -> Observation:
        """The states along the log."""
        if self.seen is None:
            raise DataError(
                "only the way of the car was observed.", where=self.machine_name, expected="its lateral motion"
            )
        return self.seen

    @property
    def machine_name(self) -> str:
        """The name of the machine that was observed."""
        return self.observation.system.name if self.drive is None else self.drive.car.name

    @property
    def skip(self) -> int:
        """The sample from which on figures count; those of a car count from the first."""
        return self.observation.settled if self.drive is None else 0

    @cached_property
    def whiteness(self) -> dict[str, Whiteness]:
        return self.observation.whiteness(self.skip)

    @cached_property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the observer by, named as in `result.json`."""
        if self.drive is not None:
            return {**self.drive.figures}
        return {**observation_figures(self.observation), "step_microseconds": self.step_microseconds}

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """Sentences about limits that are not kept."""
        f, a, out = self.figures, self.accept, []
        if not isinstance(a, ObserveAccept):
            return limits_missed(a, f)
        if a.nis is not None and not a.nis[0] <= f["nis"] <= a.nis[1]:
            out.append(f"NIS: {f['nis']:.4g}, and {a.nis[0]:g} to {a.nis[1]:g} is accepted (accept.nis).")
        if a.share_white is not None and not f["share_white"] >= a.share_white:
            coloured = ", ".join(f"'{n}'" for n, w in self.whiteness.items() if not w.is_white) or "too few readings"
            out.append(
                f"share of outputs with white innovations: {f['share_white']:.3g}, and at least {a.share_white:g} is accepted "
                f"(accept.share_white); not white: {coloured}."
            )
        if a.rejected is not None and f["rejected"] > a.rejected:
            out.append(
                f"readings not used: {f['rejected']:.0f}, and at most {a.rejected} are accepted (accept.rejected)."
            )
        if a.findings is not None and len(self.findings) > a.findings:
            causes = ", ".join(f"{one.cause} of '{one.place}'" for one in self.findings)
            out.append(
                f"findings: {len(self.findings)}, and at most {a.findings} are accepted (accept.findings): {causes}."
            )
        out += grade_missed(self.observation.verdict, a.verdict)
        horizons = {name: value for name, value in f.items() if name.startswith("nis_horizon_")}
        for limit, figures in (
            ("nis_horizon", horizons),
            ("nis_muted", {"nis_muted": f.get("nis_muted", np.nan)}),
            ("model_error", {"share_model_error": f.get("share_model_error", np.nan)}),
        ):
            most = getattr(a, limit)
            if most is not None:
                named = figures or {limit: np.nan}  # what cannot be computed is not accepted
                out += [
                    f"{name}: {value:.4g}, and at most {most:g} is accepted (accept.{limit})."
                    for name, value in named.items()
                    if not value <= most
                ]
        return tuple(out)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of the file, the sensors, and noise that the log could not tell."""
        if self.drive is None:
            return (*self.notes, *(() if self.seen is None else remarks(self.seen)))
        way = self.drive.path_verdict
        return (
            *self.notes,
            *(r.text for r in (way.reasons if way is not None else ())),
            *(
                f"'{n}' is frozen: the drive excites it too little, and {100.0 * share:.0f} % of its deviation are left."
                for n, share in self.drive.frozen.items()
            ),
        )

    @property
    def findings(self) -> tuple[FoundCause, ...]:
        """What limits what may be concluded from the observation, by rank."""
        return () if self.seen is None else self.seen.findings

    @cached_property
    def verdict(self) -> Verdict:
        """That of the states and of the way of a car, with what speaks against it: limits of the study that are missed."""
        drive, seen = self.drive, self.seen
        if drive is None or drive.path_verdict is None:
            verdict = self.observation.verdict
        elif seen is None:
            verdict = drive.path_verdict.with_reasons([Reason("poor", "log", str(f)) for f in drive.faults])
        else:
            verdict = seen.verdict.with_reasons(drive.path_verdict.reasons)
        more = () if drive is None else drive.sentences()
        return replace(verdict, findings=(*verdict.findings, *more)).against(self.missed)

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """The states at the end; of a drive, after what was identified first."""
        if self.seen is None:
            return ()
        o, at_end = self.seen, "" if self.drive is None else "end."
        before = () if self.drive is None else self.drive.identified
        return (
            *before,
            *(
                parameter_row(f"{at_end}{name}", unit, float(x), float(s))
                for name, unit, x, s in zip(o.states, o.units, o.reduced[-1], o.sigma[-1], strict=True)
            ),
        )

    @property
    def validation(self) -> dict[str, dict[str, float]]:
        """Output → its innovations, and what became of its readings."""
        if self.seen is None:
            return {}
        e, table = self.seen.estimates, {}
        for j, output in enumerate(e.outputs):
            used = e.status[self.skip :, j] == Status.USED
            y = self.seen.readings.values[:, self.seen.readings.names.index(output)]
            table[output] = {
                "samples": float(used.sum()),
                "rms": rms_of(e.innovations[self.skip :, j][used]),
                "measured_rms": rms_of(y[np.isfinite(y)]),
                **{what: float(count) for what, count in e.counts()[output].items()},
            }
        return table

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """The run as the record that its folder keeps."""
        every = (*self.warnings, *warnings)
        made = Result(name, seed, False, self.inputs, self.figures, self.parameters, self.validation, every)
        return replace(made, findings=tuple(one.record for one in self.findings), verdict=self.verdict.record)

    def summary(self) -> str:
        """The states at the end, whether innovations are white, and how the noise was chosen."""
        o = self.seen
        if o is None:
            return f"the way of {self.machine_name}: {self.figures['samples']:.0f} samples"
        lines = [f"{o.filter} on {self.machine_name}: {len(o)} samples, {o.t[0]:.6g} s to {o.t[-1]:.6g} s"]
        lines += [f"  {p.name:<24}{p.value:14.6g} ± {p.sigma:<12.3g}{p.unit}" for p in self.parameters]
        lines += [
            f"  {name:<24}{v.values[-1, 0]:14.6g} ± {v.sigma[-1, 0]:<12.3g}{v.units[0]}"
            for name, v in (self.virtual.items() if self.drive is not None else ())
        ]
        if o.estimates.dof[self.skip :].any():
            lines.append("  " + o.nis(self.skip).summary())
        lines += [f"  innovations of '{name}' {w.summary()}" for name, w in self.whiteness.items()]
        lines += [f"  {line}" for line in o.consistency_lines(self.skip)]
        if o.tuning is not None:
            lines.append(f"  noise chosen on this log: {o.tuning.summary()}")
        if o.model_error is not None:
            lines += [f"  {line}" for line in o.model_error.lines()]
        return "\n".join([*lines, f"verdict: {self.verdict.grade}"])

    def keep(self, run: Run) -> None:
        """Write what its run folder gets beside the result: the states and, of a drive, the car as it was observed."""
        run.write_text("states.csv", self.table())
        if self.drive is not None:
            run.write_text(IDENTIFIED, model_text(self.drive.car))

    def table(self) -> str:
        """The estimates as CSV: time, each state and its deviation, each virtual sensor with deviation and 95 % band; SI.

        A state of a car may be asked for as a quantity as well, so that its quantities are called virtual.NAME; then comes its way.
        """
        path = None if self.drive is None else self.drive.path
        t = self.seen.t if self.seen is not None else path.t if path is not None else np.zeros(0)
        head, columns = ["t [s]"], [t]
        for name, unit, x, s in self._states():
            head += [f"{name} [{unit}]", f"{name}.sigma [{unit}]"]
            columns += [x, s]
        called = "" if self.drive is None else "virtual."
        for reading in self.virtual.values():
            low, high = reading.band()
            for j, component in enumerate(reading.components):
                head += [f"{called}{component}{part} [{reading.units[j]}]" for part in ("", ".sigma", ".low", ".high")]
                columns += [reading.values[:, j], reading.sigma[:, j], low[:, j], high[:, j]]
        if path is not None:
            for j, (name, unit) in enumerate(zip(path.states, STATE_UNITS, strict=True)):
                head += [f"path.{name} [{unit}]", f"path.{name}.sigma [{unit}]"]
                columns += [path.x[:, j], path.sigma[:, j]]
        return csv_text(head, ([f"{value:.10g}" for value in row] for row in np.column_stack(columns)))

    def _states(self) -> Iterator[tuple[str, str, Array, Array]]:
        if self.seen is not None:
            yield from zip(self.seen.states, self.seen.units, self.seen.reduced.T, self.seen.sigma.T, strict=True)
