"""The report of a study of drives: what the encoders determine, errors joint by joint, and the simulation beside what was measured."""

from __future__ import annotations

import numpy as np

from veridyn.report.blocks import Figure, Key, Listing, Section, Table, Verdict
from veridyn.report.page import page
from veridyn.report.plots import Series, curves
from veridyn.report.words import listed, measured, number, unit_text
from veridyn.studies.result import Result
from veridyn.studies.run.drives import DrivesRun

DRAWN = 700  # samples of a curve


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
    sections = [_errors(run), _numbers(run), _open(run), _terms(run), _replay(run)]
    if run.missed:
        sections.insert(0, Section("Limits that are missed", [Listing(run.missed)]))
    sections.append(Section("Assumed and noted", [Listing(fit.notes)]))
    kept = [s for s in sections if s is not None]
    return page(f"Drives of “{fit.described.name}”", drives_verdict(run), keys, kept, result, command)


def drives_verdict(run: DrivesRun) -> Verdict:
    """Whether the simulation may be used, and for what not."""
    fit, figures = run.fit, run.figures
    word = "held_out" if "rms_held_out" in figures else "fitted"
    now, before = figures[f"rms_{word}"], figures[f"rms_{word}_defaults"]
    ratio = before / now if now > 0.0 else np.inf
    head = (
        f"The simulation follows the encoders {number(ratio, 2)} times as closely as with the values of the model file."
    )
    lines = [
        f"{len(fit.determined)} of {len(fit.drives)} numbers are determined by the log; the others stay near what was known."
    ]
    if word == "fitted":
        lines.append("All samples were fitted: no sample is left that could contradict.")
    lines += [f"Missed: {text}" for text in run.missed]
    grade = "poor" if run.missed or ratio < 1.0 else "good" if word == "held_out" else "fair"
    never = ["Forces and speeds far beyond those of the log.", "Contact: the machine was held."]
    return Verdict(grade, head, tuple(lines), ("Simulation of this machine under its own drives.",), tuple(never))


def _errors(run: DrivesRun) -> Section:
    fit = run.fit
    spans = [("fitted", 0.0, fit.until)] + ([("held out", fit.until, np.inf)] if np.isfinite(fit.until) else [])
    pairs = [(r.rms(a, b), d.rms(a, b)) for _, a, b in spans for r, d in ((fit.replay, fit.replay_defaults),)]
    head = ("joint", *(x for word, _, _ in spans for x in (f"{word}, mrad", "model file's values")))
    rows = [(j, *(number(1e3 * x[j], 3) for pair in pairs for x in pair)) for j in fit.replay.joints]
    lead = (
        "rms of measured less simulated encoder; the simulation starts once and sees nothing but commands from then on."
    )
    return Section("Errors", [Table(head, rows)], lead)


def _numbers(run: DrivesRun) -> Section:
    rows = []
    for d in run.fit.drives:
        shown = measured(d.value, d.sigma) if d.determined else (number(d.value, 3), "not determined")
        rows.append((d.name, *shown, number(d.prior, 3), number(d.prior_sigma, 2), unit_text(d.unit)))
    lead = (
        "A number is determined where its standard deviation is at most half that of its prior. Deviations allow for residuals that have a "
        "memory, and for parts of the log that disagree."
    )
    head = ("number", "value", "± σ", "prior", "± σ", "unit")
    return Section("What the encoders show", [Table(head, rows, left=(5,), strong=(1,))], lead)


def _open(run: DrivesRun) -> Section | None:
    if not run.fit.open:
        return None
    lead = "Directions in which the numbers may move together without the encoders showing it, and what would tell."
    return Section("What the log does not determine", [Listing([str(one) for one in run.fit.open])], lead)


def _terms(run: DrivesRun) -> Section | None:
    kept = [t for t in run.fit.terms if t.kept]
    if not kept:
        return None
    joints = listed(list(dict.fromkeys(t.joint for t in kept)))
    lead = f"The fitted samples show more than one number of dry friction at {joints}, by Schwarz's criterion."
    rows = [(t.joint, t.term.removesuffix("_2")) for t in kept]
    return Section("Friction that is not one number", [Table(("joint", "term"), rows, left=(1,))], lead)


def _replay(run: DrivesRun) -> Section:
    plots = []
    for replay in (run.fit.replay, *run.validation):
        thin = slice(None, None, max(1, len(replay.t) // DRAWN))
        for k, joint in enumerate(replay.joints):
            title = joint if not run.validation else f"{joint}, {replay.name}"
            series = [
                Series("measured", replay.t[thin], replay.measured[thin, k], style="dots"),
                Series("simulated", replay.t[thin], replay.simulated[thin, k], colour=1),
            ]
            plots.append(curves(title, series, "t, s", "encoder, rad", clock=replay.name))
    end = f" Samples behind {run.fit.until:g} s were not fitted." if np.isfinite(run.fit.until) else ""
    return Section("Measured and simulated", [Figure(plots)], f"From the commands alone.{end}")
