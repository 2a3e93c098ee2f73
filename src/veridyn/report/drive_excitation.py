"""The report of designed commands of drives: what they promise beside a plain chirp, what they leave open, and the commands."""

from __future__ import annotations

import numpy as np

from veridyn.report.blocks import Figure, Key, Listing, Section, Table, Verdict
from veridyn.report.page import page
from veridyn.report.plots import Series, curves
from veridyn.report.words import number, percent, unit_text
from veridyn.studies.result import Result
from veridyn.studies.run.drive_excite import DriveExciteRun


def drive_excitation_page(run: DriveExciteRun, result: Result, command: str) -> str:
    """The report of ``veridyn excite`` for a study with a section ``drives``."""
    plan, figures = run.plan, run.figures
    keys = [
        Key(f"{number(figures['duration'])} s", "to run it"),
        Key(f"{figures['asked_determined']:.0f} of {figures['asked']:.0f}", "numbers that were asked for, determined"),
        Key(percent(100.0 * figures["largest_share_of_limit"]) + " %", "of the tightest limit used"),
    ]
    if "sigma_to_chirp" in figures:
        keys.append(Key(number(figures["sigma_to_chirp"], 2), "of the deviations of a plain chirp"))
    sections = [_promised(run), _open(run), _commands(run), _limits(run)]
    if run.missed:
        sections.insert(0, Section("Deviations that are missed", [Listing(run.missed)]))
    kept = [s for s in sections if s is not None]
    return page(f"Commands for the drives of “{plan.name}”", drive_excitation_verdict(run), keys, kept, result, command)


def drive_excitation_verdict(run: DriveExciteRun) -> Verdict:
    """What the commands are good for."""
    figures = run.figures
    all_known = figures["asked_determined"] == figures["asked"]
    if run.missed:
        head = "The commands miss a deviation that the study sets."
    elif all_known:
        head = "The commands keep every limit and determine what was asked for."
    else:
        head = "The commands keep every limit and leave a part of what was asked for open."
    lines = [
        f"{figures['asked_determined']:.0f} of {figures['asked']:.0f} numbers that were asked for will be determined."
    ]
    lines += [f"Missed: {text}" for text in run.missed]
    grade = "poor" if run.missed else "good" if all_known else "fair"
    use = (
        "Bring the joints to the first line of commands.csv, play it to the drives, and record command.JOINT and position.JOINT; then "
        "veridyn new MODEL LOG.",
    )
    never = ("Collisions: they are not checked; joints move within their own ranges alone.",)
    return Verdict(grade, head, tuple(lines), use, never)


def _promised(run: DriveExciteRun) -> Section:
    plan = run.plan
    rows = [
        (
            n.name,
            number(n.value, 3),
            number(n.prior_sigma, 2),
            number(n.sigma, 2),
            number(n.plain_sigma, 2) if np.isfinite(n.plain_sigma) else "none keeps the limits",
            unit_text(n.unit),
            "yes" if n.asked else "",
        )
        for n in plan.numbers
    ]
    head = ("number", "assumed", "σ before", "σ promised", "σ of a chirp", "unit", "asked for")
    lead = (
        f"Standard deviations for residuals of {number(plan.noise)} rad or m of which {number(plan.memory)} samples are worth one, at the "
        "assumed values of the drives. The chirp goes from 0.1 to 3 Hz within the same limits."
    )
    return Section("What they promise", [Table(head, rows, left=(5, 6), strong=(3,))], lead)


def _open(run: DriveExciteRun) -> Section | None:
    if not run.plan.open:
        return None
    return Section("What they leave open", [Listing([str(one) for one in run.plan.open])])


def _commands(run: DriveExciteRun) -> Section:
    plan = run.plan
    plots = [
        curves(
            j, [Series("command", plan.t, plan.command[:, k], colour=1)], "t, s", "rad" if kind == "turning" else "m"
        )
        for k, (j, kind) in enumerate(zip(plan.joints, plan.kinds, strict=True))
    ]
    return Section("The commands", [Figure(plots)], "As commands.csv has them.")


def _limits(run: DriveExciteRun) -> Section:
    rows = [(j, percent(100.0 * share)) for j, share in run.plan.used.items()]
    lead = "Of position, speed and force, as simulated, whichever is nearest to its limit."
    return Section("Limits", [Table(("joint", "used, %"), rows)], lead)
