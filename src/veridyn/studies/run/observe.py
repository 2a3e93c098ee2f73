"""One machine observed as a study file says: its states with deviations, its virtual sensors with bands, and how far to trust them."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.findings import observation_findings
from veridyn.observe.consistency.nis import Consistency
from veridyn.observe.history import StateHistory
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe_with
from veridyn.observe.readings import measurements_of
from veridyn.observe.virtual import Reading
from veridyn.progress import Progress, silent
from veridyn.signals.whiteness import Whiteness
from veridyn.studies.config.observe import ObserveAccept, ObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, Run, fingerprint
from veridyn.studies.run.observe_log import gaps, observed_log
from veridyn.studies.run.observer import existing_file, model_file, observer_of

Array = NDArray[np.float64]
WARM = 4  # samples that are run first, so that the time of a step is not that of compiling
UNUSED = (Status.NOT_FINITE, Status.FROZEN, Status.OUTLIER, Status.LATE)


def rejected_readings(o: StateHistory) -> dict[str, int]:
    """Output → readings that were there and were not used."""
    return {name: sum(counts[s.name.lower()] for s in UNUSED) for name, counts in o.estimates.counts().items()}


def consistency_figures(o: StateHistory, skip: int = 0) -> dict[str, float]:
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


@dataclass(frozen=True, eq=False)
class ObserveRun:
    """An observation with its log and its virtual sensors. `skip` samples at the beginning do not count in the figures; `missed` are
    sentences about limits of the study file that are not kept."""

    observation: Observation
    log: Experiment
    virtual: Mapping[str, Reading]
    skip: int
    step_microseconds: float
    inputs: Mapping[str, str]
    accept: ObserveAccept
    findings: tuple[str, ...] = ()  # of the log before it was observed

    @property
    def machine_name(self) -> str:
        """The name of the machine that was observed."""
        return self.observation.system.name

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
        o = self.observation
        return {
            "samples": float(len(o)),
            "duration": float(o.t[-1] - o.t[0]),
            "states": float(len(o.states)),
            "nis": self.nis.mean,
            **consistency_figures(o, self.skip),
            "step_microseconds": self.step_microseconds,
        }

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """Sentences about limits that are not kept."""
        f, a, out = self.figures, self.accept, []
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
        return tuple(out)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of the sensors, and of noise that the log could not tell."""
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
        return (*out, *observation_findings(o, self.log, self.skip, false_alarms=level, usable=(1.0, 1.0)))

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """The states at the end."""
        o = self.observation
        return tuple(
            ParameterRow(name, unit, float(x), float(s), float(100.0 * s / abs(x)) if x else float("nan"))
            for name, unit, x, s in zip(o.states, o.units, o.reduced[-1], o.sigma[-1], strict=True)
        )

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """The run as the record that its folder keeps; `validation` tells of each output its innovations and what became of readings."""
        e, table = self.observation.estimates, {}
        for j, output in enumerate(e.outputs):
            used = e.status[self.skip :, j] == Status.USED
            y = self.log[output].values
            table[output] = {
                "samples": float(used.sum()),
                "rms": _rms(e.innovations[self.skip :, j][used]),
                "measured_rms": _rms(y[np.isfinite(y)]),
                **{what: float(count) for what, count in e.counts()[output].items()},
            }
        return Result(name, seed, False, self.inputs, self.figures, self.parameters, table, (*self.warnings, *warnings))

    def summary(self) -> str:
        """The states at the end, whether innovations are white, and how the noise was chosen."""
        o = self.observation
        lines = [f"{o.filter} on {self.machine_name}: {len(o)} samples, {o.t[0]:.6g} s to {o.t[-1]:.6g} s"]
        lines += [f"  {p.name:<24}{p.value:14.6g} ± {p.sigma:<12.3g}{p.unit}" for p in self.parameters]
        lines.append("  " + self.nis.summary())
        lines += [f"  innovations of '{name}' {w.summary()}" for name, w in self.whiteness.items()]
        if o.tuning is not None:
            lines.append(f"  noise chosen on this log: {o.tuning.summary()}")
        return "\n".join(lines)

    def keep(self, run: Run) -> None:
        """Write what its run folder gets beside the result."""
        run.write_text("states.csv", self.table())

    def table(self) -> str:
        """The estimates as CSV: time, each state and its deviation, each virtual sensor with deviation and 95 % band; SI."""
        o = self.observation
        head, columns = ["t [s]"], [o.t]
        for name, unit, x, s in zip(o.states, o.units, o.reduced.T, o.sigma.T, strict=True):
            head += [f"{name} [{unit}]", f"{name}.sigma [{unit}]"]
            columns += [x, s]
        for reading in self.virtual.values():
            low, high = reading.band()
            for j, component in enumerate(reading.components):
                head += [f"{component}{part} [{reading.units[j]}]" for part in ("", ".sigma", ".low", ".high")]
                columns += [reading.values[:, j], reading.sigma[:, j], low[:, j], high[:, j]]
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(head)
        out.writerows([f"{value:.10g}" for value in row] for row in np.column_stack(columns))
        return text.getvalue()


def observe_study(
    loaded: Loaded[ObserveFile], progress: Progress = silent, clock: Callable[[], float] = time.process_time
) -> ObserveRun:
    """Observe what a study file of kind observe names.

    `step_microseconds` is processor time by `clock` over the samples; choosing the noise and compiling are left out.
    """
    s = loaded.study
    prepared = observer_of(loaded)
    log_file = existing_file(loaded, s.log.file, ("log", "file"))
    log, findings = observed_log(loaded, prepared.system, log_file)
    readings = measurements_of(prepared.system, log)
    prepared, readings, tuning = prepared.tuned(s, readings, progress)
    setup, machine, wanted = prepared.setup, prepared.machine, prepared.virtual
    observe_with(setup, machine, readings.first(WARM))
    begin = clock()
    found = replace(observe_with(setup, machine, readings, progress), tuning=tuning)
    spent = 1e6 * (clock() - begin) / len(found)
    skip = int(np.searchsorted(found.t, found.t[0] + s.settle))
    if not found.estimates.dof[skip:].any():
        what = "no reading is left to judge the filter by."
        shown = f"{s.settle:g} s of a log that lasts {found.t[-1] - found.t[0]:.3g} s"
        fault = loaded.fault(("settle",), what, found=shown, hint="Is the unit of log.time right?")
        raise loaded.error(fault)
    inputs = {
        "study": fingerprint(loaded.text),
        "model": fingerprint(model_file(loaded)),
        "log": fingerprint(log_file),
    }
    return ObserveRun(found, log, found.virtual(*wanted) if wanted else {}, skip, spent, inputs, s.accept, findings)


def _rms(x: Array) -> float:
    return float(np.sqrt((x**2).mean())) if len(x) else float("nan")
