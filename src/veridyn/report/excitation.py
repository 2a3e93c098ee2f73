"""Pages of experiment design: the motion or the commands, what they use of limits, what they promise and what they leave open."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.excitation.plan import ExcitationPlan
from veridyn.identify.excitation.shape import Trajectory
from veridyn.inference.verdict import Verdict
from veridyn.report import number, percent, unit_text
from veridyn.report.blocks import Block, Figure, Key, Listing, Section, Table, Text, attempted
from veridyn.report.faults import open_section
from veridyn.report.motion import machine_animation
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.trials import search_blocks
from veridyn.studies.result import Result
from veridyn.studies.run.drives import DriveExciteRun
from veridyn.studies.run.excite import ExcitationStudy

CRITERIA = {
    "d": "D-optimal: the smallest volume of uncertainty",
    "a": "A-optimal: the smallest sum of variances, in typical sizes",
    "e": "E-optimal: the best worst direction, in typical sizes",
    "condition": "the least condition number of the regressor",
}


def excitation_page(study: ExcitationStudy, result: Result, command: str) -> str:
    """The report of ``veridyn excite``."""
    plan = study.plan
    keys = [
        Key(f"{len(plan.names)}", "base parameters"),
        Key(f"{number(plan.frequency)} Hz", "frequency of the motion"),
        Key(f"{number(plan.lead + plan.periods * plan.trajectory.period)} s", "to run it"),
        Key(percent(100.0 * max(plan.used.values())) + " %", "of the tightest limit used"),
        Key(number(plan.condition, 3), "condition of the regressor"),
    ]
    limits = "Those that were checked, on a grid four times as fine as that of the search."
    promise = (
        f"Deviations of the best linear estimate from {plan.periods} periods of {round(plan.rate * plan.trajectory.period)} samples. "
        "They fall with the square root of the number of periods."
    )
    sections = [
        Section(
            "The motion", motion_blocks(study), f"{CRITERIA[plan.criterion]}. One period, once it is at full pace."
        ),
        Section("Predicted deviations", [promised_table(plan)], promise),
        Section("Limits", limit_blocks(plan), limits),
        Section("The search", search_blocks(plan)),
    ]
    settings = {
        "criterion": CRITERIA[plan.criterion],
        "noise": "none given: 1 N or N*m assumed on every row" if plan.noise.assumed else "as the study says",
        "recording": f"{plan.periods} periods at {plan.rate:g} Hz",
    }
    title = f"Excitation of “{plan.name}”"
    return page(title, verdict_of(study), keys, sections, result, command, settings, missed=study.missed)


def verdict_of(study: ExcitationStudy) -> Verdict:
    """What the plan is good for."""
    p = study.plan
    known = np.isfinite(p.relative_sigma)
    weak = [name for name, r, k in zip(p.names, p.relative_sigma, known, strict=True) if k and r >= 10.0]
    findings = [
        f"{len(p.names)} base parameters, {int((p.relative_sigma < 10.0).sum())} of them with deviations below 10 % of their prior."
    ]
    if weak:
        findings.append("With a larger one: " + ", ".join(weak[:12]) + (" …" if len(weak) > 12 else "") + ".")
    if not known.all():
        findings.append(f"{int((~known).sum())} have no prior value to compare their deviation with.")
    if p.noise.assumed:
        findings = [
            "No noise was given: deviations are those for 1 N or N·m on every row, and only their ratios count."
        ]
    if p.unchecked:
        findings.append("Not checked: " + "; ".join(p.unchecked) + ".")
    findings += [f"Missed: {sentence}" for sentence in study.missed]
    grade = "poor" if study.missed else "fair" if weak or p.unchecked or p.noise.assumed else "good"
    kept = "every limit" if not p.unchecked else f"the {len(p.used)} limits that were checked"
    rest = "" if not p.unchecked else "; others were not checked"
    return Verdict(
        grade,
        f"The motion keeps {kept} and excites every base parameter{rest}."
        if not study.missed
        else "The motion misses a deviation that the study sets.",
        tuple(findings),
        (
            "Run trajectory.csv, or joint_trajectory.yaml under ROS: it starts from rest, and repeats with a period of a whole number of "
            "samples.",
        ),
        (
            "Promises about noise of positions, elastic modes and what the model leaves out: its deviations count none of them.",
        ),
    )


def motion_blocks(study: ExcitationStudy) -> list[Block]:
    """Positions, speeds and accelerations of the designed coordinates over one period, in the form of Fig. 1 of paper 002."""
    plan, motion, machine = study.plan, study.motion, study.machine
    t = np.linspace(0.0, plan.trajectory.period, 240)
    caption = "The designed motion from rest, and one period of it; drag to turn."
    title, run_up = "The machine on the designed motion", np.linspace(0.0, plan.lead + plan.trajectory.period, 300)
    speed = plan.reference.at(run_up)[1]
    shown = [Series(name, run_up, speed[:, k]) for k, name in enumerate(plan.coordinates)]
    note = f"The machine follows the path of the motion from rest and is at full pace after {number(plan.lead, 3)} s."
    return [
        attempted(title, lambda: machine_animation(machine, motion.t, {machine.name: motion.q}, caption)),
        trajectory_figure(plan.trajectory, plan.coordinates, machine.kinds, t),
        Figure([curves("speeds from rest", shown, "time, s", "rad/s, m/s")], "Entered from rest", note),
    ]


def trajectory_figure(trajectory: Trajectory, names: tuple[str, ...], kinds: Mapping[str, str], t: Array) -> Figure:
    """Curves of each kind of coordinate: position, speed, acceleration."""
    orders = list(trajectory.at(t))
    orders[0] = orders[0] - trajectory.centre
    plots: list[Plot] = []
    for kind, unit in (("sliding", "m"), ("turning", "rad")):
        own = [k for k, name in enumerate(names) if kinds[name] == kind]
        for x, what, per in zip(
            orders, ("position about the centre", "speed", "acceleration"), ("", "/s", "/s²"), strict=True
        ):
            if own:
                shown = [Series(names[k], t, x[:, k], colour=k) for k in own]
                plots.append(curves(f"{what}, {', '.join(names[k] for k in own)}", shown, "time, s", f"{unit}{per}"))
    return Figure(plots, "One period", "Coordinates that are designed.")


def promised_table(plan: ExcitationPlan) -> Table:
    """The predicted deviation of each parameter beside its prior."""
    rows = zip(plan.names, plan.units, plan.priors.tolist(), plan.sigma.tolist(), strict=True)
    return quantity_table([QuantityLine(*row) for row in rows], percents=True, value="prior")


def limit_blocks(plan: ExcitationPlan) -> list[Block]:
    """How much of each limit is used."""
    ordered = sorted(plan.used.items(), key=lambda item: -item[1])
    rows = [[name, f"{100.0 * share:.1f}"] for name, share in ordered]
    table = Table(["limit", "% used"], rows, left=(0,))
    if not plan.unchecked:
        return [table]
    return [Text("Not checked, because no limit is given or for the reason named:"), Listing(plan.unchecked), table]


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
    plots = [
        curves(j, [Series("command", plan.t, x, colour=1)], "time, s", "rad" if kind == "turning" else "m")
        for j, kind, x in zip(plan.joints, plan.kinds, plan.command.T, strict=True)
    ]
    used = [(j, percent(100.0 * share)) for j, share in plan.used.items()]
    nearest = "Of position, speed and force, as simulated, whichever is nearest to its limit."
    sections = [
        _promised(run),
        *open_section(plan.open, "What these commands do not determine"),
        Section("The commands", [Figure(plots)], "As commands.csv has them."),
        Section("Limits", [Table(("joint", "used, %"), used)], nearest),
    ]
    name, verdict = f"Commands for the drives of “{plan.name}”", drive_excitation_verdict(run)
    return page(name, verdict, keys, sections, result, command, missed=run.missed)


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
            unit_text(n.unit),
            number(n.value, 3),
            number(n.prior_sigma, 2),
            number(n.sigma, 2),
            number(n.plain_sigma, 2) if np.isfinite(n.plain_sigma) else "none keeps the limits",
            "yes" if n.asked else "",
        )
        for n in plan.numbers
    ]
    head = ("number", "unit", "assumed", "σ before", "σ predicted", "σ of a chirp", "asked for")
    lead = (
        f"Standard deviations for residuals of {number(plan.noise)} rad or m of which {number(plan.memory)} samples are worth one, at the "
        "assumed values of the drives. The chirp goes from 0.1 to 3 Hz within the same limits."
    )
    return Section("Predicted deviations", [Table(head, rows, left=(1, 6), strong=(4,))], lead)
