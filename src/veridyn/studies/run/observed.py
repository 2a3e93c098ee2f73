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
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.car.system import STATE_UNITS
from veridyn.observe.consistency.findings import cause_lines, named_findings, observation_findings, prediction_findings
from veridyn.observe.consistency.nis import Consistency
from veridyn.observe.consistency.predictions import check_figures
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation, Reading
from veridyn.observe.result import ObserverFinding, Track
from veridyn.signals.spectrum import Whiteness
from veridyn.studies.config.observe import ObserveAccept
from veridyn.studies.result import ParameterRow, Result, Run, csv_text, limits_missed, parameter_row, rms_of
from veridyn.studies.run.machine import IDENTIFIED
from veridyn.studies.run.observe_log import gaps, withheld_figures

if TYPE_CHECKING:  # what a drive has brings compiled equations along
    from veridyn.identify.car_fit import CarFit
    from veridyn.studies.run.recordings import StudyDrive

UNUSED = (Status.NOT_FINITE, Status.FROZEN, Status.OUTLIER, Status.LATE)


def rejected_readings(o: Observation) -> dict[str, int]:
    """Output → readings that were there and were not used."""
    return {name: sum(counts[s.name.lower()] for s in UNUSED) for name, counts in o.estimates.counts().items()}


def consistency_figures(o: Observation, skip: int = 0) -> dict[str, float]:
    """How innovations of a run from sample `skip` on compare with what its filter states, and what became of readings."""
    (low, high), white = o.nis(skip).band, [w.is_white for w in o.whiteness(skip).values()]
    rejected = rejected_readings(o)
    return {
        "nis_low": low,
        "nis_high": high,
        "consistent": float(o.nis(skip).consistent),
        "share_white": float(np.mean(white)) if white else float("nan"),
        "white": float(bool(white) and all(white)),
        "rejected": float(sum(rejected.values())),
        **{f"rejected_{name}": float(count) for name, count in rejected.items()},
    }


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
    gaps: tuple[tuple[float, float], ...]
    figures: Mapping[str, float]
    frozen: Mapping[str, float]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, eq=False)
class ObserveRun:
    """An observation with its log and its virtual sensors. `skip` samples at the beginning do not count in the figures; `missed` are
    sentences about limits of the study file that are not kept. `seen` is None where only the way of a car was observed."""

    seen: Observation | None
    log: Experiment
    virtual: Mapping[str, Reading]
    skip: int
    step_microseconds: float
    inputs: Mapping[str, str]
    accept: ObserveAccept | Mapping[str, tuple[float, float]]
    findings: tuple[str, ...] = ()  # of the log before it was observed, and of a drive
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

    @cached_property
    def nis(self) -> Consistency:
        return self.observation.nis(self.skip)

    @cached_property
    def whiteness(self) -> dict[str, Whiteness]:
        return self.observation.whiteness(self.skip)

    @cached_property
    def rejected(self) -> dict[str, int]:
        """Output → readings that were there and were not used."""
        return rejected_readings(self.observation)

    @cached_property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the observer by, named as in `result.json`."""
        if self.drive is not None:
            return {**self.drive.figures}
        o = self.observation
        return {
            "samples": float(len(o)),
            "duration": float(o.t[-1] - o.t[0]),
            "states": float(len(o.states)),
            "nis": self.nis.mean,
            **consistency_figures(o, self.skip),
            **withheld_figures(o.estimates),
            **check_figures(o.predictions),
            **_model_error_figures(o),
            "step_microseconds": self.step_microseconds,
        }

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
        if a.findings is not None and len(self.named) > a.findings:
            causes = ", ".join(f"{one.cause} of '{one.place}'" for one in self.named)
            out.append(
                f"findings: {len(self.named)}, and at most {a.findings} are accepted (accept.findings): {causes}."
            )
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
        """What a user should know of the sensors, and of noise that the log could not tell."""
        if self.drive is not None:
            return (
                *(str(f) for f in self.drive.faults),
                *self.findings,
                *(
                    f"'{n}' is frozen: the drive excites it too little, and {100.0 * share:.0f} % of its deviation are left."
                    for n, share in self.drive.frozen.items()
                ),
            )
        o = self.observation
        out = [*self.findings, *(f"{e}." for e in o.episodes())]
        reported = {e.output for e in o.episodes()}
        out += gaps(o.t)
        table = o.system.table
        for n, k in zip(table.names, table.owner, strict=True):
            wide, quantum = (
                float(np.nanmax(self.log[n].values) - np.nanmin(self.log[n].values)),
                table.sensors[k].quantum,
            )
            if 0.0 < wide < 0.5 * quantum:
                out.append(
                    f"the readings of '{n}' differ by {wide:.3g} at most, which is less than the quantum of its sensor, {quantum:g}: "
                    "is that its unit?"
                )
        out += [
            f"{count} {'reading' if count == 1 else 'readings'} of '{n}' not used."
            for n, count in self.rejected.items()
            if count and n not in reported
        ]
        level = 1.0 - self.nis.level
        size = observation_findings(o, self.log, self.skip, false_alarms=level, usable=(1.0, 1.0))
        return (*out, *size, *cause_lines(o, self.skip), *prediction_findings(o))

    @cached_property
    def named(self) -> tuple[ObserverFinding, ...]:
        """What limits what may be concluded from the observation, by rank."""
        return () if self.seen is None else named_findings(self.seen, self.log, self.skip)

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
            y = self.log[output].values
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
        return replace(made, findings=tuple(one.record for one in self.named))

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
            lines.append("  " + self.nis.summary())
        lines += [f"  innovations of '{name}' {w.summary()}" for name, w in self.whiteness.items()]
        lines += [f"  {line}" for line in o.consistency_lines(self.skip)]
        if o.tuning is not None:
            lines.append(f"  noise chosen on this log: {o.tuning.summary()}")
        if o.model_error is not None:
            lines += [f"  {line}" for line in o.model_error.lines()]
        return "\n".join(lines)

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


def _model_error_figures(o: Observation) -> dict[str, float]:
    """The model error by coordinate (rad/s^2 or m/s^2 rms), and as the largest share of a coordinate's own acceleration."""
    error = o.model_error
    if error is None:
        return {}
    shares = [rms / moves for rms, moves in zip(error.rms.tolist(), error.moves.tolist(), strict=True) if moves > 0.0]
    return {
        "share_model_error": max(shares, default=0.0),
        **{f"model_error_{name}": rms for name, rms in zip(error.coordinates, error.rms.tolist(), strict=True)},
    }
