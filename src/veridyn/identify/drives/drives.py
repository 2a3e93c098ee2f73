"""Drives from encoders alone: their armature, friction, encoder zeros, delays and gains, by simulation of the closed loop from commands.

    fit = identify(robot, log, Drives(kp=20, kd=1.5));  fit.machine()      the machine with identified drives

The log has ``command.JOINT`` and ``position.JOINT`` and no forces. The machine stands or hangs on a fixed base. Branches of it that do not
move each other are fitted one after the other (:mod:`~veridyn.identify.drives.drive_group`), from the values of the model file and the
data sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.base import BaseParameters
from veridyn.identify.drives.drive_group import DriveGroup, groups_of_joints, label_of, part_of
from veridyn.identify.drives.drive_log import DriveRecord, drive_records
from veridyn.identify.drives.drive_method import Drives, machines_of_runs
from veridyn.identify.drives.drive_result import (
    DriveEstimate,
    DriveReplay,
    DrivesFit,
    encoder_rows,
    in_run,
    replayed,
    with_values,
)
from veridyn.identify.drives.drive_search import DriveMinimum, DrivePosterior, DriveProblem, posterior
from veridyn.identify.drives.drive_unknowns import (
    LOAD,
    PRESLIDING,
    RUNGS,
    STARTS,
    DriveUnknown,
    drive_unknowns,
    load_terms,
    rung_terms,
    start_unknowns,
)
from veridyn.identify.drives.drive_verdict import disagreement_of
from veridyn.identify.drives.friction_choice import Rung, choose_terms, settle, with_columns, without_columns
from veridyn.identify.drives.presliding import choose_presliding, with_presliding
from veridyn.identify.drives.undetermined import open_directions
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.departure import chance_of_departure
from veridyn.inference.error_measures import RowReport
from veridyn.inference.log_inspection import findings_of
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.settings import changed

PRIOR_CONFLICT_SIGMAS = 3.0  # of a prior: an estimate so far from it contradicts it
MOST_NAMED = 8  # numbers in a note


@dataclass(frozen=True, eq=False)
class GroupFit:
    """What was found for joints that move each other."""

    problem: DriveProblem
    found: DriveMinimum
    posterior: DrivePosterior
    terms: tuple[Rung, ...]

    @property
    def _kept(self) -> list[int]:
        """Those of the active unknowns that are numbers of drives, not of the start of a run."""
        return [a for a, k in enumerate(self.problem.active) if self.problem.unknowns[k].key not in STARTS]

    @property
    def unknowns(self) -> tuple[DriveUnknown, ...]:
        """Numbers of drives that were estimated."""
        return tuple(self.problem.unknowns[self.problem.active[a]] for a in self._kept)

    @property
    def z(self) -> Array:
        """Of these."""
        return self.found.z[[self.problem.active[a] for a in self._kept]]

    @property
    def covariance(self) -> Array:
        """Of their z."""
        return self.posterior.covariance[np.ix_(self._kept, self._kept)]

    @property
    def estimates(self) -> tuple[DriveEstimate, ...]:
        left = np.sqrt(np.diag(self.covariance))
        return tuple(
            DriveEstimate(
                name=u.name,
                key=u.key,
                joints=u.joints,
                unit=u.unit,
                value=u.value(x),
                sigma=s * u.slope(x),
                prior=u.prior,
                prior_sigma=u.spread * u.prior if u.scales else u.spread,
                left=s,
                assumed=not u.stated,
            )
            for u, x, s in zip(self.unknowns, self.z.tolist(), left.tolist(), strict=True)
        )


def identify_drives(
    machine: Machine,
    data: Any,
    method: Drives | str = "drives",
    settings: IdentifySettings | None = None,
    *,
    validation: Any = None,
    progress: Progress = silent,
    diagnose: object = "fast",
    **others: Any,
) -> DrivesFit:
    """What ``identify`` does with the method ``drives``: `data` are logs with commands and positions.

    `validation`: other logs, which are simulated; without them, or with "none", what is held out are the samples behind ``Drives.until``.
    """
    chosen = Drives() if isinstance(method, str) else method
    chosen.check()
    how = settings or IdentifySettings()
    for name in (*others, *(name for name in changed(how) if name != "acceptance")):
        raise IdentificationError(
            f"'{name}' belongs to equations that are linear in the parameters.",
            where="identify",
            hint="Drives are identified by identify(machine, log, Drives(…)).",
            source=machine.name,
        )
    logs = 1 if not isinstance(data, Sequence) else max(len(data), 1)
    machines = machines_of_runs(machine, chosen.runs, logs, chosen.kp, chosen.kd, chosen.rate)
    machine = machines[0]
    records = drive_records(machine, data, chosen.commands)
    fitted = tuple(r.until(chosen.until) for r in records)
    terms = rung_terms(machine, fitted)
    larger = tuple(m.with_elements([e for _, e in terms]) for m in machines)
    groups = groups_of_joints(machine)
    done: list[GroupFit] = []
    with one_blas_thread():
        for k, joints in enumerate(groups):
            progress("drives of " + label_of(joints), float(k), float(len(groups)))
            done.append(fit_group(larger, joints, fitted, [u for u, _ in terms], chosen))
    kept = {u.name for g in done for u in g.unknowns}
    yields = {u.joints[0]: u.prior for g in done for u in g.unknowns if u.key == PRESLIDING}
    final = [with_presliding(m.with_elements([e for u, e in terms if u.name in kept]), yields) for m in machines]
    fit = replace(_result(machines, final, done, records, chosen), acceptance=how.acceptance)
    fit = fit.with_findings(() if diagnose == "off" else findings_of([m for r in records for m in r.mistakes]))
    return fit if validation is None or validation == "none" else fit.with_validation(validation, progress)


def fit_group(
    machines: Sequence[Machine],
    joints: tuple[str, ...],
    records: tuple[DriveRecord, ...],
    further: list[DriveUnknown],
    how: Drives,
) -> GroupFit:
    """The drives of joints that move each other; `machines` of the runs have the elements of all `further` terms."""
    base = drive_unknowns(machines[0], joints, label_of(joints), how.estimate)
    if not base:
        raise IdentificationError(
            "there is nothing to estimate.", where=", ".join(joints), expected=", ".join(how.estimate)
        )
    own = [u for u in further if u.joints[0] in joints] if how.friction == "auto" else []
    base = (*base, *start_unknowns(joints, records))
    parts = tuple(part_of(m, joints) for m in machines)
    group = DriveGroup(parts[0], joints, (*base, *own), parts)
    problem = DriveProblem(group=group, records=records, active=tuple(range(len(base))), weights=np.ones(len(joints)))
    z = np.zeros(len(base) + len(own))
    problem, found = settle(*problem.reweighted(problem.at(z)), how.iterations)
    tried: tuple[Rung, ...] = ()
    if own:
        problem, found = with_columns(problem, found, load_terms(machines[0], joints))
        problem, found, first = choose_presliding(problem, found, how.iterations, rivals=True)
        problem, found, terms = choose_terms(problem, found, how.iterations)
        problem, found = without_columns(problem, found, LOAD)
        problem, found, last = choose_presliding(problem, found, how.iterations, rivals=False)
        tried = (*first, *terms, *last)
    problem, found = settle(problem, found, how.iterations, how.tolerance)
    return GroupFit(problem, found, posterior(problem, found), tried)


def _result(
    started: Sequence[Machine],
    final: Sequence[Machine],
    done: list[GroupFit],
    records: Sequence[DriveRecord],
    how: Drives,
) -> DrivesFit:
    """The fit; `started` and `final`: the machine of each run before, and with the elements that it has in the end."""
    drives, machine = tuple(d for g in done for d in g.estimates), final[0]
    p = machine.parameters
    own = [d for d in drives if d.name in p.names]
    C = np.asarray(block_diag(*[_covariance(g, p.names) for g in done]), dtype=np.float64)
    named = {d.name: (d.key, d.joints, d.value) for d in drives}
    found = with_values(machine, named)
    runs = list(zip(started, final, records, strict=True))
    replays = [replayed(with_values(m, in_run(named, started[0], one)), record) for one, m, record in runs]
    defaults = [replayed(one, record) for one, _, record in runs]
    columns = tuple(p.index(d.name) for d in own)
    matrix = np.zeros((len(columns), len(p)))
    matrix[range(len(columns)), columns] = 1.0
    scaled = (
        np.linalg.eigvalsh(C / np.outer(p.typical[list(columns)], p.typical[list(columns)])) if columns else np.ones(1)
    )
    base = BaseParameters(
        parameters=p,
        columns=columns,
        matrix=matrix,
        dead=(),
        gap=np.inf,
        singular_values=1.0 / np.sqrt(np.maximum(scaled, np.finfo(np.float64).tiny)),
        source="each number by itself, with its prior",
    )
    share = np.full(len(p), np.nan)
    share[list(columns)] = [d.left**2 for d in own]
    raw = np.sqrt(np.maximum(np.linalg.eigvalsh(C), np.finfo(np.float64).tiny)) if columns else np.ones(1)
    widening = max(g.posterior.widening for g in done)
    opened = tuple(one for g in done for one in open_directions(g.unknowns, g.covariance))
    return DrivesFit(
        described=machine,
        base=base,
        values=np.array([d.value for d in own]),
        covariance=C,
        rows=_rows(machine, replays, done, how),
        estimator=Drives.title,
        residual_sigma=1.0,
        condition=float(raw[-1] / raw[0]),
        condition_scaled=float(np.sqrt(max(scaled[-1], 0.0) / max(scaled[0], np.finfo(np.float64).tiny))),
        standard_values=found.parameters.values,
        prior_share=share,
        notes=tuple(_notes(done, drives, how)),
        disagreement=disagreement_of(widening),
        drives=drives,
        open=opened,
        terms=tuple(t for g in done for t in g.terms),
        started=started[0],
        between=how.commands,
        until=how.until,
        widening=widening,
        replay=replays[0],
        replay_defaults=defaults[0],
        further=tuple(zip(replays[1:], defaults[1:], strict=True)),
        chance=chance_of_departure(
            np.concatenate([g.z for g in done]), np.asarray(block_diag(*[g.covariance for g in done]))
        ),
    )


def _covariance(g: GroupFit, names: tuple[str, ...]) -> Array:
    """Of the parameters of the machine among the unknowns of a group, in their own units."""
    at = [k for k, u in enumerate(g.unknowns) if u.name in names]
    slopes = np.array([g.unknowns[k].slope(float(g.z[k])) for k in at])
    return g.covariance[np.ix_(at, at)] * np.outer(slopes, slopes)


def _rows(machine: Machine, replays: Sequence[DriveReplay], done: list[GroupFit], how: Drives) -> tuple[RowReport, ...]:
    """Errors of the encoders over the fitted samples of all logs."""
    sigma: dict[str, float] = {}
    for g in done:
        raw = np.sqrt(((g.found.linear.residuals / g.problem.weights) ** 2).mean(axis=0))
        sigma |= dict(zip(g.problem.group.joints, raw.tolist(), strict=True))
    return encoder_rows(machine, (r.part(0.0, how.until) for r in replays), sigma)


def _notes(done: list[GroupFit], drives: tuple[DriveEstimate, ...], how: Drives) -> list[str]:
    notes = [f"commands are {'held between samples' if how.commands == 'hold' else 'interpolated linearly'}"]
    assumed = sorted({d.key for d in drives if d.assumed and d.key not in RUNGS})
    if assumed:
        words = {"kp": "gains within 10 %", "kd": "gains within 10 %", "zero": "encoder zeros of 0 ± 0.02"}
        words |= dict.fromkeys(("armature", "viscous", "coulomb"), "armature and friction within a factor of 4")
        words |= dict.fromkeys(("command_delay", "measurement_delay"), "delays of 0 to 5 ms")
        notes.append(
            f"assumed before the fit, one standard deviation: {'; '.join(dict.fromkeys(words[k] for k in assumed))}"
        )
    kept = [f"{t.joint} ({t.term.split('_')[0]})" for g in done for t in g.terms if t.kept]
    if kept:
        notes.append(f"further terms of friction by Schwarz's criterion: {', '.join(dict.fromkeys(kept))}")
    kinks = [g for g in done if g.found.beyond > how.tolerance]
    if kinks:
        words = ", ".join(f"{label_of(g.problem.group.joints)} {g.found.beyond:.1f}" for g in kinks)
        notes.append(
            "the least residual lies where friction just stops a joint, or just does not: no step reduces it, though on one side of it a "
            f"linear model would move all numbers together by so many deviations: {words}"
        )
    off = [d for d in drives if abs(_sigmas(d)) > PRIOR_CONFLICT_SIGMAS]
    if off:
        named = ", ".join(f"{d.name} ({_sigmas(d):+.1f}σ)" for d in off[:MOST_NAMED])
        notes.append(f"note: far from what was known before: {named}")
    return notes


def _sigmas(d: DriveEstimate) -> float:
    """How far an estimate is from its prior, in deviations of that."""
    if d.key in ("armature", "viscous", "coulomb", "kp", "kd", PRESLIDING):
        return float(np.log(d.value / d.prior) / (d.prior_sigma / d.prior))
    return (d.value - d.prior) / d.prior_sigma
