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

from veridyn.errors import DataError, Fault, ModelError, VeridynError, did_you_mean
from veridyn.mechanics.natural.minimal import start_of
from veridyn.mechanics.natural.redundant import Reduced
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.experiment import Experiment
from veridyn.model.place import Marker
from veridyn.model.tree import Tree
from veridyn.observe.consistency import Consistency
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Status, frozen
from veridyn.observe.mechanism import MechanismSystem
from veridyn.observe.methods import FILTERS
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe_with, tuned
from veridyn.observe.observer_setup import ObserverSetup, ready
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.readings import measurements_of
from veridyn.observe.sensor_findings import finding_lines, sensor_findings
from veridyn.observe.virtual import Reading, Virtual, quantity_of
from veridyn.progress import Progress, silent
from veridyn.signals.whiteness import Whiteness
from veridyn.studies.config.observe import ObserveAccept, ObserveFile, PlaceSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, fingerprint
from veridyn.studies.run.observe_channels import beside, derived_faults
from veridyn.studies.run.observe_log import gaps, observed_log
from veridyn.studies.run.observe_machine import Described, existing_file, model_file, observed_machine

Array = NDArray[np.float64]
OPEN = 1e-6  # of a constraint that should be closed
WARM = 4  # samples that are run first, so that the time of a step is not that of compiling
UNUSED = (Status.NOT_FINITE, Status.FROZEN, Status.OUTLIER, Status.LATE)


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
        found = self.observation.estimates.counts()
        return {name: sum(counts[s.name.lower()] for s in UNUSED) for name, counts in found.items()}

    @cached_property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the observer by, named as in `result.json`."""
        o, (low, high) = self.observation, self.nis.band
        white = [w.is_white for w in self.whiteness.values()]
        return {
            "samples": float(len(o)),
            "duration": float(o.t[-1] - o.t[0]),
            "states": float(len(o.states)),
            "nis": self.nis.mean,
            "nis_low": low,
            "nis_high": high,
            "consistent": float(self.nis.consistent),
            "share_white": float(np.mean(white)) if white else float("nan"),
            "white": float(bool(white) and all(white)),
            "rejected": float(sum(self.rejected.values())),
            **{f"rejected_{name}": float(count) for name, count in self.rejected.items()},
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
        told = {e.output for e in o.episodes()}
        out += [
            f"no reading of '{n}' is used: is its unit right, and its sensor where the mechanism has it?"
            for n, counts in o.estimates.counts().items()
            if not counts["used"]
        ]
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
            if count and n not in told
        ]
        if o.tuning is not None and not o.tuning.converged:
            out.append(
                f"the noise chosen on this log is doubtful: {o.tuning.message}. Give a density in the section process_noise."
            )
        natural = o.system.model.system if isinstance(o.system, MechanismSystem) else None
        if isinstance(natural, Reduced) and (open_by := float(o.constraint_errors()[:, 0].max())) > OPEN:
            left = ", ".join(f"'{name}'" for name in natural.left_out)
            out.append(
                f"constraints that were left out as redundant ({left}) open by up to {open_by:.3g}: the motion passes a pose where they "
                "are needed, and from there on the estimates are those of another mechanism."
            )
        if not self.nis.consistent:
            words = "too sure of itself" if self.nis.mean > 1.0 else "too cautious"
            low, high = self.nis.band
            out.append(
                f"the filter is {words}: NIS {self.nis.mean:.3f}, and 95 % of honest ones lie in {low:.3f} to {high:.3f}."
            )
        return tuple(out)

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
    machine, described = observed_machine(loaded)
    log_file = existing_file(loaded, s.log.file, ("log", "file"))
    wanted = [Virtual(name, v.kind, _on(v.on)) for name, v in s.virtual.items()]
    settings = _settings(loaded, described)
    system = _checked(loaded, settings, machine, wanted)
    machine = ready(system)  # without redundant constraints, which it has told of
    log, findings = observed_log(loaded, system, log_file)
    readings = measurements_of(system, log)
    if settings.frozen_after is not None:  # before the log chooses the noise: a sensor that hangs says nothing about it
        readings = readings.flagged(frozen(readings.values, settings.frozen_after), Status.FROZEN)
    tuning = None
    if s.process_noise.tuned:
        process_noise, tuning = tuned(settings, machine, [readings], progress)
        settings = replace(settings, process_noise=process_noise)
    observe_with(settings, machine, readings.first(WARM))
    begin = clock()
    found = replace(observe_with(settings, machine, readings, progress), tuning=tuning)
    spent = 1e6 * (clock() - begin) / len(found)
    skip = int(np.searchsorted(found.t, found.t[0] + s.settle))
    if not found.estimates.dof[skip:].any():
        fault = loaded.fault(
            ("settle",),
            "no reading is left to judge the filter by.",
            found=f"{s.settle:g} s of a log that lasts {found.t[-1] - found.t[0]:.3g} s",
            hint="Is the unit of log.time right?",
        )
        raise loaded.error(fault)
    inputs = {
        "study": fingerprint(loaded.text),
        "model": fingerprint(model_file(loaded)),
        "log": fingerprint(log_file),
    }
    told = (*findings, *finding_lines(sensor_findings(found, log, skip)))
    return ObserveRun(found, log, found.virtual(*wanted) if wanted else {}, skip, spent, inputs, s.accept, told)


def _settings(loaded: Loaded[ObserveFile], mechanism: Described) -> ObserverSetup:
    s, f, u = loaded.study, loaded.study.filter, loaded.study.process_noise
    loads, outputs = mechanism.loads, mechanism.outputs
    moving = (*mechanism.base, *mechanism.coordinates)
    faults = [
        loaded.fault(at, f"'{n}' is no coordinate of '{mechanism.name}'.", hint=did_you_mean(n, known))
        for at, n, known in (
            *((("start", "coordinates", n), n, moving) for n in s.start.coordinates),
            *((("start", "rates", n), n, moving) for n in s.start.rates),
            *((("filter", "independents", k), n, mechanism.coordinates) for k, n in enumerate(f.independents)),
        )
        if n not in known
    ]
    faults += [
        loaded.fault(
            ("filter", "unknown", k),
            f"'{n}' is neither a coordinate nor a load of '{mechanism.name}'.",
            hint=did_you_mean(n, [*moving, *loads]),
        )
        for k, n in enumerate(f.unknown or ())
        if n not in (*moving, *loads)
    ]
    if f.unknown and f.name == "error_ekf":
        what = "the error_ekf takes forces as known."
        faults.append(loaded.fault(("filter", "unknown"), what, "error_ekf_force, ekf, ukf or smoother"))
    faults += [
        loaded.fault(
            ("log", "columns", name),
            f"'{name}' is neither a sensor's output nor a load of '{mechanism.name}'.",
            hint=did_you_mean(name, [*outputs, *mechanism.inputs]),
        )
        for name in s.log.columns
        if name not in outputs and name not in mechanism.inputs and not beside(name, outputs)
    ]
    faults += derived_faults(loaded, outputs)
    faults += [
        loaded.fault(
            ("log", "columns"),
            f"no column is given for the sensor's output '{name}'.",
            hint="Name its column, or list the sensor under without.",
        )
        for name in outputs
        if name not in s.log.columns and name.rpartition(".")[0] not in s.log.geodetic
    ]
    if faults:
        raise loaded.error(faults)
    process_noise = ProcessNoise(
        u.position or 0.0, u.acceleration or 0.0, u.force or 0.0, u.start, u.start_rate, u.start_force
    )
    return ObserverSetup(
        method=FILTERS[f.name](gate=f.gate, late=f.late, horizon=np.inf if f.horizon is None else f.horizon),
        process_noise=process_noise,
        start=s.start.coordinates or None,
        rates=s.start.rates or None,
        independents=f.independents,
        unknown=f.unknown,
        inputs=tuple(name for name in s.log.columns if name in mechanism.inputs),
        frozen_after=f.frozen_after,
        step=f.step,
    )


def _checked(
    loaded: Loaded[ObserveFile], settings: ObserverSetup, machine: NaturalSystem | Tree, wanted: list[Virtual]
) -> MachineSystem:
    """The system, once everything that the study says of it is known to be possible: before the log is read."""
    try:
        if not isinstance(machine, Tree):
            start_of(machine, loaded.study.start.coordinates or None, settings.rates)
    except DataError as error:
        at = ("start", "rates" if error.faults[0].at[:1] == ("rates",) else "coordinates")
        raise loaded.error([loaded.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]) from error
    except ModelError as error:
        raise ModelError(error.faults, model_file(loaded).name) from error
    try:
        system, q, qd = settings.system(machine, settings.process_noise or ProcessNoise())
        system.belief(q, qd)
    except VeridynError as error:
        raise loaded.error([_placed(loaded, fault) for fault in error.faults]) from error
    faults, taken = [], {"t", *system.states}
    for v in wanted:
        try:
            components = quantity_of(system, v).components
        except VeridynError as error:
            faults += [loaded.fault(("virtual", v.name), f.what, f.expected, f.found, f.hint) for f in error.faults]
            continue
        faults += [
            loaded.fault(
                ("virtual", v.name), f"'{c}' is the name of another column.", hint="Give it a name of its own."
            )
            for c in components
            if c in taken
        ]
        taken |= set(components)
    if faults:
        raise loaded.error(faults)
    return system


def _placed(loaded: Loaded[ObserveFile], fault: Fault) -> Fault:
    """A fault of the section process_noise, or of the independent coordinates that are asked for, with its line; others as they are."""
    if fault.at[:1] == ("process_noise",):
        at = fault.at
    elif loaded.study.filter.independents and fault.at == ("independents",):
        at = ("filter", "independents")
    else:
        return fault
    return loaded.fault(at, fault.what, fault.expected, fault.found, fault.hint)


def _on(on: str | tuple[str, str] | PlaceSettings) -> str | tuple[str, str] | Marker:
    return Marker(on.body, on.at, on.axis, on.side) if isinstance(on, PlaceSettings) else on


def _rms(x: Array) -> float:
    return float(np.sqrt((x**2).mean())) if len(x) else float("nan")
