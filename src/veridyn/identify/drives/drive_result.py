"""Identified drives: values with deviations, what stayed open, and the simulation beside what was measured, in this log and in others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import (
    CapabilityError,
    DataError,
    Fault,
    IdentificationWarning,
    Limit,
    did_you_mean,
    warn,
)
from veridyn.identify.drives.drive_group import DriveGroup, groups_of_joints
from veridyn.identify.drives.drive_log import SATURATION, Between, DriveRecord, drive_records
from veridyn.identify.drives.drive_unknowns import GAINS
from veridyn.identify.drives.friction_choice import Rung
from veridyn.identify.drives.held_out import WORSE_THAN_FILE, HeldOut, held_out, worse_than_file
from veridyn.identify.drives.undetermined import OpenDirection
from veridyn.identify.result import Estimate, Fit, HeldOutRows
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import Moments, RowReport
from veridyn.inference.finding import FoundCause
from veridyn.inference.log_inspection import findings_of
from veridyn.inference.posterior import DETERMINED_SHARE
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.progress import Progress, silent

NO_FORCES = Limit(
    "its log has commands and positions, and no forces or filters to compare",
    "Leave 'by' out: a fit of drives is judged by its simulation.",
)


@dataclass(frozen=True, kw_only=True)
class DriveEstimate:
    """One number of the drives: its value and deviations before (`prior`, `prior_sigma`) and after; `left` is their ratio on the scale
    that is estimated, the logarithm of what is positive. `assumed`: no deviation was given before, and the default was taken."""

    name: str
    key: str
    joints: tuple[str, ...]
    unit: str
    value: float
    sigma: float
    prior: float
    prior_sigma: float
    left: float
    assumed: bool

    @property
    def determined(self) -> bool:
        """Whether the data left at most half of the prior's deviation."""
        return self.left <= DETERMINED_SHARE


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveReplay:
    """Encoders measured and simulated (K, n) from the commands alone, at times t (K,) since the start of the log."""

    name: str
    joints: tuple[str, ...]
    t: Array
    measured: Array
    simulated: Array

    def rms(self, start: float = 0.0, end: float = np.inf) -> dict[str, float]:
        """Of each joint, rad or m, from `start` to before `end`."""
        own = (self.t >= start) & (self.t < end)
        if not own.any():
            raise DataError("there are no samples in this time.", where=self.name, found=f"{start:g} to {end:g} s")
        off = np.sqrt(((self.measured - self.simulated)[own] ** 2).mean(axis=0))
        return dict(zip(self.joints, off.tolist(), strict=True))

    def rms_of_all(self, start: float = 0.0, end: float = np.inf) -> float:
        """Over all joints."""
        return float(np.sqrt(np.mean(np.square(list(self.rms(start, end).values())))))

    def reaches(self, start: float) -> bool:
        """Whether there are samples from `start` on."""
        return bool((self.t >= start).any())

    def part(self, start: float = 0.0, end: float = np.inf) -> DriveReplay:
        """The samples from `start` to before `end`."""
        own = (self.t >= start) & (self.t < end)
        return replace(self, t=self.t[own], measured=self.measured[own], simulated=self.simulated[own])


def pooled_rms(replays: Sequence[DriveReplay], start: float = 0.0, end: float = np.inf) -> dict[str, float]:
    """Of each joint over all samples of several replays, as :meth:`DriveReplay.rms` of one; those without samples there are left out."""
    own = [r for r in replays if ((r.t >= start) & (r.t < end)).any()] or list(replays[:1])
    counts = np.array([((r.t >= start) & (r.t < end)).sum() for r in own], dtype=np.float64)
    squares = np.array([list(r.rms(start, end).values()) for r in own]) ** 2
    return dict(zip(own[0].joints, np.sqrt(counts @ squares / counts.sum()).tolist(), strict=True))


def rms_of_all(replays: Sequence[DriveReplay], start: float = 0.0, end: float = np.inf) -> float:
    """The same over all joints."""
    return float(np.sqrt(np.mean(np.square(list(pooled_rms(replays, start, end).values())))))


def encoder_rows(
    machine: Machine, parts: Iterable[DriveReplay], sigma: Mapping[str, float] | None = None
) -> tuple[RowReport, ...]:
    """Errors of each encoder over these parts of logs; none where there are none. `sigma`: by which a fit weighs each."""
    several = list(parts)
    rows = []
    for k, joint in enumerate(several[0].joints if several else ()):
        y, error = Moments(), Moments()
        for r in several:
            y = y.merge(Moments.of(r.measured[:, k]))
            error = error.merge(Moments.of((r.measured - r.simulated)[:, k]))
        rows.append(
            RowReport(
                row=joint,
                samples=y.samples,
                rms=error.rms,
                measured_rms=y.rms,
                sigma=(sigma or {}).get(joint, np.nan),
                measured_std=y.std,
                noise=y.noise,
                unit="rad" if machine.kinds[joint] == "turning" else "m",
            )
        )
    return tuple(rows)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DrivesFit(Fit):
    """Drives that were identified from commands and positions: `drives` are all estimates, gains, zeros and delays among them.

    As a ``Fit`` it has the parameters of the machine (armature, friction) and their covariance; `rows` are the encoders. `open`: what the
    log does not determine. `terms`: terms of friction that were tried. `until`: the time of each log up to which samples were fitted.
    `replay` and `replay_defaults` are of the first log, with the identified drives and with the values of the model file; `further` has
    such a pair of each other log, and `replays` and `replays_defaults` are all of them. `chance`: how often estimates would lie as far from
    the values of the model file if these were right. `validation`: such a pair of each log of :meth:`with_validation`, which is not saved.
    """

    drives: tuple[DriveEstimate, ...]
    open: tuple[OpenDirection, ...]
    terms: tuple[Rung, ...]
    started: Machine
    between: Between
    until: float
    widening: float
    replay: DriveReplay
    replay_defaults: DriveReplay
    further: tuple[tuple[DriveReplay, DriveReplay], ...] = ()
    chance: float = 0.0
    validation: tuple[tuple[DriveReplay, DriveReplay], ...] = ()

    @property
    def replays(self) -> tuple[DriveReplay, ...]:
        """Every log simulated with the identified drives, in the order in which they were given."""
        return (self.replay, *(own for own, _ in self.further))

    @property
    def replays_defaults(self) -> tuple[DriveReplay, ...]:
        """Every log simulated with the values of the model file."""
        return (self.replay_defaults, *(own for _, own in self.further))

    @property
    def held_out_replays(self) -> tuple[tuple[DriveReplay, DriveReplay], ...]:
        """What was not fitted, with the identified drives and with the values of the model file: logs behind `until`, then validation."""
        both = zip(self.replays, self.replays_defaults, strict=True)
        behind = [tuple(r.part(self.until) for r in pair) for pair in both if pair[0].reaches(self.until)]
        return (*((now, before) for now, before in behind), *self.validation)

    @property
    def held_out_logs(self) -> tuple[HeldOut, ...]:
        """How far both are off there, log by log."""
        return tuple(
            held_out(now.name, now.measured - now.simulated, before.measured - before.simulated)
            for now, before in self.held_out_replays
        )

    @property
    def held_out_rows(self) -> tuple[RowReport, ...]:
        """Errors of the encoders there; none where everything was fitted."""
        return encoder_rows(self.described, (now for now, _ in self.held_out_replays))

    @property
    def held_out_rows_defaults(self) -> tuple[RowReport, ...]:
        """The same with the values of the model file."""
        return encoder_rows(self.described, (before for _, before in self.held_out_replays))

    @property
    def errors(self) -> tuple[float, float]:
        """rms over all joints, and the same with the values of the file: of what was held out, or else of what was fitted; rad or m."""
        fitted = (r.part(0.0, self.until) for r in self.replays_defaults)
        check = self.unseen or HeldOutRows(rows=self.rows, before=encoder_rows(self.described, fitted))
        now, before = (np.sqrt(np.mean([r.rms**2 for r in rows])) for rows in (check.rows, check.before))
        return float(now), float(before)

    @property
    def at_zero(self) -> tuple[str, ...]:
        """Delays that the search ended at its bound with."""
        return tuple(d.name for d in self.drives if d.key.endswith("_delay") and d.value <= 0.0)

    @property
    def verdict(self) -> Verdict:
        """How good it is, why it is no better, and what it may be used for."""
        return above("veridyn.identify.drives.drive_verdict", "drives_verdict")(self)

    def with_validation(self, logs: Experiment | Sequence[Experiment], progress: Progress = silent) -> DrivesFit:
        """The fit judged by logs that it did not use as well: they are inspected, and simulated from their commands and first samples."""
        records = drive_records(self.started, logs, self.between)
        made = self.machine()
        pairs = list[tuple[DriveReplay, DriveReplay]]()
        for k, record in enumerate(records):
            progress("simulating the encoders", float(k), float(len(records)))
            pairs.append((replayed(made, record), replayed(self.started, record)))
        judged = replace(self, validation=tuple(pairs))
        return judged.with_findings(findings_of([m for record in records for m in record.mistakes]))

    def with_findings(self, more: Sequence[FoundCause] = ()) -> DrivesFit:
        """The same with further findings, and with held-out parts that the values of the file follow better; what is new is a warning."""
        own = [f for f in self.findings if f.cause != WORSE_THAN_FILE]
        every = [*own, *more, *worse_than_file(self.held_out_logs, self.chance)]
        known = {(f.cause, f.place) for f in self.findings}
        for finding in every:
            if (
                finding.cause,
                finding.place,
            ) not in known and finding.cause != SATURATION:  # which its log was warned of
                warn(IdentificationWarning, Fault(finding.message))
        unseen = (
            HeldOutRows(rows=self.held_out_rows, before=self.held_out_rows_defaults) if self.held_out_logs else None
        )
        return replace(self, unseen=unseen, findings=tuple(replace(f, rank=rank) for rank, f in enumerate(every, 1)))

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number of the drives, by name."""
        return {d.name: Estimate(d.name, d.value, d.sigma, d.unit) for d in self.drives}

    def drive(self, name: str) -> DriveEstimate:
        """An estimate with its prior, by name."""
        found = {d.name: d for d in self.drives}
        if name not in found:
            raise DataError(
                f"there is no '{name}'.", where=f"drives of {self.described.name}", hint=did_you_mean(name, [*found])
            )
        return found[name]

    @property
    def determined(self) -> tuple[str, ...]:
        """Names of the numbers that the data determine."""
        return tuple(d.name for d in self.drives if d.determined)

    def machine(self, *, unexcited: float | None = None) -> Machine:
        """The machine with the identified drives and the covariance of its parameters. `unexcited` is not needed: priors stay."""
        return self._made

    @property
    def valued(self) -> Machine:
        """The machine with the identified drives: gains, zeros and delays too."""
        return self._made

    @cached_property
    def _made(self) -> Machine:
        found = with_values(self.described, {d.name: (d.key, d.joints, d.value) for d in self.drives})
        return found.with_uncertainty(Uncertainty(self.names, self.covariance))

    def simulate(self, log: Experiment) -> DriveReplay:
        """The encoders of another log, simulated from its commands and its first sample."""
        return replayed(self.machine(), drive_records(self.started, log, self.between)[0])

    def simulate_defaults(self, log: Experiment) -> DriveReplay:
        """The same with the values of the model file."""
        return replayed(self.started, drive_records(self.started, log, self.between)[0])

    @property
    def rms_held_out(self) -> float:
        """rms of the samples behind `until`, rad or m, of all joints and logs; NaN where all were fitted."""
        return rms_of_all(self.replays, self.until) if self.until < np.inf else float("nan")

    @property
    def rms_held_out_defaults(self) -> float:
        """The same with the values that the model file had."""
        return rms_of_all(self.replays_defaults, self.until) if self.until < np.inf else float("nan")

    def __repr__(self) -> str:
        return f"DrivesFit({self.described.name!r}, {len(self.drives)} numbers of {len(self.rows)} drives)"

    def summary(self) -> str:
        """Each number with deviation and prior, errors of the simulation, and what stays open."""
        wide = max(len(d.name) for d in self.drives)
        known = len(self.determined)
        lines = [
            f"{self.described.name}: {len(self.drives)} numbers of its drives from encoders, {known} of them determined"
        ]
        lines.append(f"{'':{wide}}  {'value':>10} {'σ':>9}   {'prior':>10} {'σ':>9}")
        for d in self.drives:
            mark = "" if d.determined else "   not determined"
            lines.append(
                f"{d.name:{wide}}  {d.value:10.4g} {d.sigma:9.2g}   {d.prior:10.4g} {d.prior_sigma:9.2g} {d.unit}{mark}"
            )
        ends = {"fitted": (0.0, self.until)} | ({"held out": (self.until, np.inf)} if self.until < np.inf else {})
        for word, (a, b) in ends.items():
            was = rms_of_all(self.replays_defaults, a, b)
            lines.append(f"{word}: rms {rms_of_all(self.replays, a, b):.3g}, with the model file's values {was:.3g}")
            lines.append("  " + ", ".join(f"{j} {x:.2g}" for j, x in pooled_rms(self.replays, a, b).items()))
            lines += self._by_log(a, b) if self.further else []
        lines += [str(one) for one in self.findings]
        lines += [f"not determined: {one}" for one in self.open]
        return "\n".join([*lines, *self.notes, self.verdict.summary()])

    def _by_log(self, start: float, end: float) -> list[str]:
        """A line for each log that has samples in this time."""
        both = zip(self.replays, self.replays_defaults, strict=True)
        return [
            f"  {now.name}: {now.rms_of_all(start, end):.3g}, with the model file's values {before.rms_of_all(start, end):.3g}"
            for now, before in both
            if now.reaches(start)
        ]


def with_values(machine: Machine, values: Mapping[str, tuple[str, tuple[str, ...], float]]) -> Machine:
    """A machine with other numbers of its drives: name → (key, joints, value)."""
    own = {n: v for n, (_, _, v) in values.items() if n in machine.parameters.names}
    inner = {c.name: values[c.name][2] for c in machine.constants if c.name in values}
    laws = {c.on: dict(c.constants) for c in machine.controllers}
    for name, (key, joints, value) in values.items():
        for joint in joints if name not in own and name not in inner else ():
            laws[joint][key] = value
    controllers = [replace(c, constants=laws[c.on]) for c in machine.controllers]
    return machine.with_parameters(own).with_constants(inner).with_controllers(controllers)


def in_run(
    values: Mapping[str, tuple[str, tuple[str, ...], float]], first: Machine, own: Machine
) -> dict[str, tuple[str, tuple[str, ...], float]]:
    """The same numbers in a run whose machine has other gains than the first: a gain changes in proportion."""
    laws, others = ({c.on: c for c in m.controllers} for m in (first, own))
    return {
        name: (key, joints, x * others[joints[0]].constant(key) / laws[joints[0]].constant(key) if key in GAINS else x)
        for name, (key, joints, x) in values.items()
    }


def replayed(machine: Machine, record: DriveRecord) -> DriveReplay:
    """A record simulated from its first sample under its commands, by the machine of its run."""
    alone = replace(record, run=0)
    simulated = np.empty_like(record.position)
    for joints in groups_of_joints(machine):
        group = DriveGroup(machine, joints, ())
        at = [record.coordinates.index(c) for c in group.joints]
        simulated[:, at] = group.simulate(alone, np.zeros(0), False)[0]
    return DriveReplay(
        name=record.name, joints=record.coordinates, t=record.t, measured=record.position, simulated=simulated
    )


def validate_drives(fit: Fit, data: Any, by: str = "fit", progress: Progress = silent, **others: Any) -> Validation:
    """What ``validate`` does with a fit of drives: `data` are logs with ``command.JOINT`` and ``position.JOINT``.

    Each simulation starts once, at the first sample, and sees nothing but commands from then on.
    """
    if not isinstance(fit, DrivesFit):
        raise DataError("it is no fit of drives.", where="validate, fit", found=fit.estimator)
    if by not in ("fit", "simulation"):
        raise CapabilityError(
            fit.described.formulation, f"validation of drives by {by}", *NO_FORCES, where="validate, by"
        )
    for name, value in others.items():
        if value is not None:
            raise DataError(
                f"'{name}' belongs to equations of forces.",
                where="validate",
                hint="Drives are judged by validate(fit, log): every sample of the log.",
                source=fit.described.name,
            )
    logs: list[Any] = list(data) if isinstance(data, list | tuple) else [data]
    replays = []
    for k, log in enumerate(logs):
        if not isinstance(log, Experiment):
            hint = "Read it with veridyn.load_log; its channels are command.JOINT and position.JOINT."
            raise DataError("drives are judged on logs.", where="validate, data", found=type(log).__name__, hint=hint)
        progress("simulating the encoders", float(k), float(len(logs)))
        replays.append(fit.simulate(log))
    return Validation(encoder_rows(fit.described, replays), by="simulation", fit=fit)
