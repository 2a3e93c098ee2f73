"""Pages of drives and of flexible joints: what the encoders determine, and what was simulated or predicted beside what was measured."""

from __future__ import annotations

import numpy as np

from veridyn.identify.drives.drive_result import DriveReplay
from veridyn.inference.verdict import Verdict
from veridyn.report import listed, measured, number, percent
from veridyn.report.blocks import Animation, Figure, Key, Listing, Section, Table, attempted
from veridyn.report.faults import open_section
from veridyn.report.motion import machine_animation
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.traces import compared_plot
from veridyn.studies.result import Result
from veridyn.studies.run.drives import DrivesRun, FlexibleRun

DETERMINED = (
    "A number is determined where its standard deviation is at most half that of its prior. Deviations allow for residuals that are "
    "autocorrelated"
)


def drives_page(run: DrivesRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``drives``."""
    fit, figures = run.fit, run.figures
    word = "held_out" if "rms_held_out" in figures else "fitted"
    said = "held out" if word == "held_out" else "of the fit"
    keys = [
        Key(f"{number(1e3 * figures[f'rms_{word}'], 3)} mrad", f"rms of the encoders, {said}"),
        Key(f"{number(1e3 * figures[f'rms_{word}_defaults'], 3)} mrad", "with the values of the model file"),
        Key(f"{len(fit.determined)} of {len(fit.drives)}", "numbers that the log determines"),
    ]
    if "share_inside_two_sigma" in figures:
        keys.append(Key(f"{number(100.0 * figures['share_inside_two_sigma'], 2)} %", "of the true values within 2σ"))
    title = "The machine on held-out data" if run.validation or np.isfinite(fit.until) else "The machine"
    note = f" Samples after {fit.until:g} s were not fitted." if np.isfinite(fit.until) else ""
    lead = f"{DETERMINED}, and for parts of the log that disagree."
    sections = [
        _errors(run, note),
        Section("What the encoders show", [_numbers(run)], lead),
        *open_section(fit.open),
        *_terms(run),
        Section("Measured and simulated", [_replays(run)], f"From the commands alone.{note}"),
        Section(title, [attempted(title, lambda: _animation(run))]),
        Section("Assumed and noted", [Listing(fit.notes)]),
    ]
    name = f"Drives of “{fit.described.name}”"
    return page(name, drives_verdict(run), keys, sections, result, command, missed=run.missed)


def drives_verdict(run: DrivesRun) -> Verdict:
    """Whether the simulation may be used, and for what not."""
    return run.verdict


def _errors(run: DrivesRun, note: str) -> Section:
    """Of every log, fitted and held out, beside the values of the model file; those for validation are held out as a whole."""
    fit, several = run.fit, len(run.fit.replays) + len(run.validation) > 1
    held = np.isfinite(fit.until) or bool(run.validation)
    spans = [("fitted", 0.0, fit.until)] + ([("held out", fit.until, np.inf)] if held else [])
    head = (
        *(("log",) if several else ()),
        "joint",
        *(x for word, _, _ in spans for x in (f"{word}, mrad", "model file's values")),
    )
    logs = [(r, d, spans) for r, d in zip(fit.replays, fit.replays_defaults, strict=True)]
    whole = [("fitted", np.inf, np.inf), ("held out", 0.0, np.inf)]
    logs += [(r, d, whole) for r, d in zip(run.validation, run.validation_defaults, strict=True)]
    rows = []
    for now, before, own in logs:
        pairs = [(r.rms(a, b) if r.reaches(a) and a < b else None) for _, a, b in own for r in (now, before)]
        for joint in now.joints:
            cells = ("–" if pair is None else number(1e3 * pair[joint], 3) for pair in pairs)
            rows.append((*((now.name,) if several else ()), joint, *cells))
    lead = (
        "rms of measured less simulated encoder; the simulation starts once and sees nothing but commands from then on."
    )
    names = ", ".join(f"“{r.name}”" for r in fit.replays)
    plots = [p for both in zip(fit.replays, fit.replays_defaults, strict=True) for p in _error_plots(run, *both)]
    figure = Figure(plots, "Measured less simulated", f"Of {names}.{note}")
    return Section("Errors", [Table(head, rows, left=(1,) if several else ()), figure], lead)


def _error_plots(run: DrivesRun, now: DriveReplay, before: DriveReplay) -> list[Plot]:
    """Errors over a whole log, with the identified drives and with the values of the model file."""
    made = []
    for k, joint in enumerate(now.joints):
        series = [
            Series(word, r.t, 1e3 * (r.measured - r.simulated)[:, k], colour=colour)
            for word, r, colour in (("model file's values", before, 3), ("identified", now, 1))
        ]
        unit = "mrad" if run.fit.described.kinds[joint] == "turning" else "mm"
        title = f"{joint}, {now.name}" if run.fit.further else joint
        made.append(curves(title, series, "time, s", unit, clock=now.name))
    return made


def _numbers(run: DrivesRun) -> Table:
    quantities = [
        QuantityLine(
            *(d.name, d.unit, d.value, d.sigma, d.prior, d.prior_sigma, run.truth.get(d.name, np.nan)),
            given="" if d.determined else "not determined",
            weak=not d.determined,
        )
        for d in run.fit.drives
    ]
    return quantity_table(quantities, "number")


def _terms(run: DrivesRun) -> list[Section]:
    kept = [t for t in run.fit.terms if t.kept]
    if not kept:
        return []
    joints = listed(list(dict.fromkeys(t.joint for t in kept)))
    lead = f"The fitted samples show more than one number of dry friction at {joints}, by Schwarz's criterion."
    rows = [(t.joint, t.term.removesuffix("_2")) for t in kept]
    return [Section("Friction that is not one number", [Table(("joint", "term"), rows, left=(1,))], lead)]


def _replays(run: DrivesRun) -> Figure:
    """Encoders of every log, measured and simulated, on samples of the fit and on those that were held out."""
    plots, kinds = [], run.fit.described.kinds
    logs = (*run.fit.replays, *run.validation)
    for place, replay in enumerate(logs):
        fitted = replay.t < (run.fit.until if place < len(run.fit.replays) else 0.0)
        for k, joint in enumerate(replay.joints):
            title = joint if len(logs) == 1 else f"{joint}, {replay.name}"
            x, unit = replay.simulated[:, k], "rad" if kinds[joint] == "turning" else "m"
            lines = {"simulated": np.where(fitted, x, np.nan), "simulated, held out": np.where(fitted, np.nan, x)}
            plots.append(compared_plot(title, unit, replay.t, replay.measured[:, k], lines, replay.name))
    return Figure(plots)


def _animation(run: DrivesRun) -> Animation:
    """The last replay, of a validation log where there is one, else of the samples behind `until`."""
    fit = run.fit
    replay = run.validation[-1] if run.validation else fit.replay
    own = replay.t >= (fit.until if not run.validation and np.isfinite(fit.until) else 0.0)
    caption = (
        f"“{replay.name}” as its encoders read it, and as the identified drives move the model under the same commands."
    )
    motions = {"measured": replay.measured[own], "simulated": replay.simulated[own]}
    return machine_animation(fit.described, replay.t[own], motions, caption)


def flexible_page(run: FlexibleRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``flexible``."""
    value, sigma = measured(1e3 * run.fit.delay, 1e3 * run.fit.delay_sigma)
    keys = [Key(f"{value} ±\N{NO-BREAK SPACE}{sigma} ms", "delay of the link encoders or sensors")]
    keys += [Key(f"{percent(x)} %", f"error of the deflection of {c}") for c, x in run.std_percent.items()]
    sections = [
        Section("What the encoders show", [_joints(run)], f"{DETERMINED}."),
        _agreement(run),
        _deflections(run),
    ]
    title = f"Flexible joints of “{run.fit.described.name}”"
    return page(title, flexible_verdict(run), keys, sections, result, command, missed=run.missed)


def flexible_verdict(run: FlexibleRun) -> Verdict:
    """Which stiffnesses may be used."""
    return run.verdict


def _joints(run: FlexibleRun) -> Table:
    quantities = [
        QuantityLine(
            *(f"{c}, {x.name}", x.unit, x.value, x.sigma, x.prior, x.prior_sigma),
            given="" if x.determined else "not determined",
            weak=not x.determined,
        )
        for c, joint in run.fit.joints.items()
        for x in joint.quantities.values()
    ]
    return quantity_table(quantities, "quantity")


def _agreement(run: FlexibleRun) -> Section:
    rows = []
    for c, joint in run.fit.joints.items():
        a, b = joint.stiffness, run.again.joints[c].stiffness
        cells = [(number(x.value, 4), number(x.sigma, 2), "yes" if x.determined else "no") for x in (a, b)]
        own = (number(1e3 * joint.own_delay[0], 4), number(1e3 * run.again.joints[c].own_delay[0], 4))
        rows.append((c, *cells[0], *cells[1], number(run.agreement[c], 2), *own))
    head = (
        "joint",
        "training",
        "± σ",
        "determined",
        "validation",
        "± σ",
        "determined",
        "apart, σ",
        "delay, ms",
        "delay, ms",
    )
    lead = "The same fit of the training logs and of the validation logs; delays are those of each joint by itself."
    return Section("Twice from other logs", [Table(head, rows, left=(3, 6))], lead)


def _deflections(run: FlexibleRun) -> Section:
    plots = []
    for c, joint in run.fit.joints.items():
        samples, predicted = joint.predict(run.logs[0])
        what, unit = joint.compared
        shown = {"predicted": 1e3 * predicted}
        plots.append(compared_plot(f"{c}, {what}", f"m{unit}", samples.t, 1e3 * samples.deflection, shown, c))
    lead = (
        "Motor less link as the encoders show it, or the reading of a sensor on the link less that of a rigid joint, the delay in it. The "
        "zero of the encoders and the dry friction that acts at the start "
        "are those of the log; at standstill friction stays as it was."
    )
    return Section("Deflection on the validation log", [Figure(plots)], lead)
