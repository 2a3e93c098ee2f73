"""The report of a study of flexible joints: stiffness, delay of the encoders, and the deflection predicted on other logs."""

from __future__ import annotations

import numpy as np

from veridyn.report.blocks import Figure, Key, Listing, Section, Table, Verdict
from veridyn.report.page import page
from veridyn.report.plots import Series, curves
from veridyn.report.words import listed, measured, number, percent, unit_text
from veridyn.studies.result import Result
from veridyn.studies.run.flexible import FlexibleRun

LARGEST_AGREEMENT = 2.0  # standard deviations by which two fits may differ before the verdict doubts them
DRAWN = 500  # samples of a curve


def flexible_page(run: FlexibleRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``flexible``."""
    value, sigma = measured(1e3 * run.fit.delay, 1e3 * run.fit.delay_sigma)
    keys = [Key(f"{value} ± {sigma} ms", "delay of the link encoders")]
    keys += [Key(f"{percent(x)} %", f"error of the deflection of {c}") for c, x in run.std_percent.items()]
    sections = [_joints(run), _agreement(run), _deflections(run)]
    if run.missed:
        sections.insert(0, Section("Limits that are missed", [Listing(run.missed)]))
    title = f"Flexible joints of “{run.fit.described.name}”"
    return page(title, flexible_verdict(run), keys, sections, result, command)


def flexible_verdict(run: FlexibleRun) -> Verdict:
    """Which stiffnesses may be used."""
    known = [c for c, joint in run.fit.joints.items() if joint.stiffness.determined]
    apart = [c for c in known if run.agreement[c] > LARGEST_AGREEMENT]
    lines = []
    for c in known:
        value, sigma = measured(run.fit.joints[c].stiffness.value, run.fit.joints[c].stiffness.sigma)
        lines.append(f"{c}: {value} ± {sigma} {unit_text(run.fit.joints[c].stiffness.unit)}.")
    lines += run.fit.notes()
    lines += [f"Training and validation logs differ in {listed(apart)} by more than two deviations."] if apart else []
    lines += [f"Missed: {text}" for text in run.missed]
    head = f"The logs determine the stiffness of {listed(known)}." if known else "The logs determine no stiffness."
    grade = "poor" if not known or run.missed else "fair" if len(known) < len(run.fit.joints) or apart else "good"
    never = ["Frequencies above the band of the fit: resonances are not in these logs."]
    return Verdict(grade, head, tuple(lines), ("Correcting link angles for the load.",) if known else (), tuple(never))


def _joints(run: FlexibleRun) -> Section:
    rows = []
    for c, joint in run.fit.joints.items():
        for x in joint.quantities.values():
            shown = measured(x.value, x.sigma) if x.determined else ("not determined", "–")
            rows.append((c, x.name, *shown, number(x.prior, 3), number(x.prior_sigma, 2), unit_text(x.unit)))
    lead = (
        "A quantity is determined where its standard deviation is at most half that of its prior. Deviations allow for residuals that are "
        "autocorrelated."
    )
    head = ("joint", "quantity", "value", "± σ", "prior", "± σ", "unit")
    return Section("What the encoders show", [Table(head, rows, left=(1, 6), strong=(2,))], lead)


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
        y = samples.deflection - np.mean(samples.deflection - predicted)
        thin = slice(None, None, max(1, len(y) // DRAWN))
        series = [
            Series("measured", samples.t[thin], 1e3 * y[thin], style="dots"),
            Series("predicted", samples.t[thin], 1e3 * predicted[thin], colour=1),
        ]
        plots.append(curves(c, series, "t, s", f"deflection, m{'rad' if joint.turning else 'm'}", clock=c))
    lead = (
        "Motor less link as the encoders show it, the delay in it, where the joint moves; the zero of the encoders is that of the log. At "
        "standstill dry friction may be anything, and the model predicts nothing."
    )
    return Section("Deflection on the validation log", [Figure(plots)], lead)
