"""Reports of identification studies: possible faults, missed limits, the cut-off, friction, the reduced model; and of payload studies.

The friction ladder lists what was tried, what held-out data said of it, and what entered. The reduced model of essential parameters stands
beside the full one: values, deviations, and errors on training and held-out data.

Of a payload study: the load, how sure it is and why, and what to type into a controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridyn.identify.cutoff import Cutoff
from veridyn.identify.friction_ladder import FrictionLadder
from veridyn.identify.pipeline.loop_closing import Closing
from veridyn.inference.finding import Mistake
from veridyn.inference.verdict import Verdict
from veridyn.report import count, listed, measured, number, percent, unit_text
from veridyn.report.blocks import Block, Code, Figure, Key, Listing, Section, Table, Text
from veridyn.report.page import identification_page, page
from veridyn.report.plots import Series, curves
from veridyn.report.verdict import verdict
from veridyn.spatial.inertia import INERTIAL, six
from veridyn.studies.result import Result
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.payload import CONVENTIONS, PayloadRun

FRICTION_COLUMNS = (
    "term",
    "coordinate",
    "error without %",
    "error with %",
    "square falls by %",
    "beside all others %",
    "verdict",
)


def friction_section(ladder: FrictionLadder) -> Section:
    """The evidence for every term."""
    tried = sum(not s.reason for s in ladder.steps)
    times = (
        "its standard error" if ladder.standard_errors == 1.0 else f"{ladder.standard_errors:g} of its standard errors"
    )
    lead = (
        f"{count(len(ladder.entered), 'term')} of {tried} entered. A term enters if the error on blocks of the training data that the fit "
        f"did not use falls by more than {times}, which allows for residuals that are correlated within blocks and from one to the next. "
        "Viscous and Coulomb friction come first, then on each coordinate always the term under which the error falls most; in the end "
        "each that entered is tried once more beside all others."
    )
    if ladder.needs_loads:
        lead += f" Load-dependent friction reads {', '.join(ladder.needs_loads)}, joint forces of the machine without friction."
    if ladder.note:
        lead += f" {ladder.note}"
    caption = "Held-out errors ‖r‖/‖y‖ over all rows, each weighed by its noise; ± one standard error."
    return Section(
        "Friction, term by term",
        [Table(FRICTION_COLUMNS, friction_rows(ladder), caption, left=(1, 6), strong=(4,))],
        lead,
    )


def friction_rows(ladder: FrictionLadder) -> list[tuple[str, ...]]:
    """One row for each term and coordinate."""
    rows = []
    for s in ladder.steps:
        if s.reason:
            rows.append((s.term, s.on, *("–",) * 4, s.verdict))
            continue
        fall = f"{number(s.fall_percent, 3)} ± {number(s.sigma_percent, 2)}"
        last = "–" if s.last is None else f"{number(s.last[0], 3)} ± {number(s.last[1], 2)}"
        rows.append((s.term, s.on, percent(s.before_percent), percent(s.after_percent), fall, last, s.verdict))
    return rows


STANDSTILL = 1e-9  # rad or m: what moves less stands still


def identified_page(run: IdentifyRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify``, of any machine."""
    first, sections = trouble_sections(run), study_sections(run)
    if run.drive is None:
        found = identified_verdict(run)
        return identification_page(run.study, result, command, sections, found=found, first=first, model=run.model_file)
    from veridyn.report.observed import (  # here: they bring the pages of observers along
        identified_keys,
        identified_sections,
    )

    title, keys = f"Identification of “{run.machine.name}”", identified_keys(run.drive)
    return page(
        title, identified_verdict(run), keys, [*first, *sections, *identified_sections(run.drive)], result, command
    )


def identified_verdict(run: IdentifyRun) -> Verdict:
    """The verdict on an identification, of any machine."""
    if run.drive is None:
        return verdict(run.study).against(run.missed, named_faults(run.suspicions))
    from veridyn.report.observed import shown_verdict

    return shown_verdict(run.machine.name, run.drive).against(run.missed)


def named_faults(suspicions: Sequence[Mistake]) -> list[str]:
    """A sentence for each kind of possible fault, with the places that have it."""
    places: dict[str, list[str]] = {}
    for s in suspicions:
        places.setdefault(s.fault.what, []).append(s.fault.where)
    return [f"{where}: {what}" if (where := listed([w for w in own if w], 4)) else what for what, own in places.items()]


def trouble_sections(run: IdentifyRun) -> list[Section]:
    """What stands before the rest, because it may make the rest worthless."""
    out = []
    if run.missed:
        out.append(
            Section(
                "Limits that are missed", [Listing(run.missed)], "The study file sets limits, and these are not kept."
            )
        )
    suspicions = [str(s) for s in (run.suspicions if run.drive is None else run.drive.faults)]
    if suspicions:
        lead = "Something about the data or the model may be wrong. Until it is cleared up, the numbers below are not to be used."
        out.append(Section("Possible faults", [Text(text) for text in suspicions], lead))
    return out


def study_sections(run: IdentifyRun) -> list[Section]:
    """How the filter was chosen, delays, loops and friction, and what was not looked for."""
    out = []
    if run.cutoff is not None:
        out.append(_cutoff(run.cutoff))
    if run.delays.seconds:
        late = run.delays
        rows = [
            (
                c,
                number(1e3 * d, 3),
                number(1e3 * late.sigma.get(c, np.nan), 2),
                "yes" if c in late.confirmed else "no",
            )
            for c, d in late.seconds.items()
        ]
        lead = (
            "How late each measured force is against the positions, estimated beside the parameters. Friction that lags looks like one, "
            "too, most of all in joints that carry little. Confirmed are those that lower the error of parts of the log that they were not "
            "fitted to; no other one is proposed, or taken out."
        )
        out.append(Section("Delays", [Table(("coordinate", "delay, ms", "σ, ms", "confirmed"), rows)], lead))
    if run.closing is not None:
        out.append(_loops(run.closing, run))
    if run.ladder is not None:
        out.append(friction_section(run.ladder))
    if run.omitted:
        title = "What was not looked for"
        out.append(Section(title, [Listing(run.omitted)], "Mistakes in model and log are looked for. Not among them:"))
    return out


def _loops(c: Closing, run: IdentifyRun) -> Section:
    units = {"turning": "rad", "sliding": "m"}
    rows = [
        (
            name,
            units[kind],
            "measured" if name in c.given else "measured, and follows" if name in c.spare else "follows",
            number(c.spans[name][0], 3) if np.ptp(c.spans[name]) > STANDSTILL else "–",
            number(c.spans[name][1], 3) if np.ptp(c.spans[name]) > STANDSTILL else "stands still",
        )
        for name, kind in zip(run.machine.coordinates, run.machine.coordinate_kinds, strict=True)
    ]
    lead = (
        f"{count(len(c.given), 'coordinate')} were measured ({listed(c.given)}), low-passed and differentiated; the other "
        f"{len(rows) - len(c.given)} follow at every sample from {count(len(run.machine.cut_joints), 'closed loop')}. "
        "The equations are those of the drives."
    )
    chosen = (
        f"The condition of what was solved for is {number(c.home, 2)} where the machine is assembled and at most {number(c.worst, 2)} "
        f"in these logs, at t = {number(c.at, 4)} s; at a singular position it is infinite."
    )
    blocks: list[Block] = [
        Text(chosen),
        Table(("coordinate", "unit", "how it is known", "from", "to"), rows, left=(1, 2)),
    ]
    if c.spare:
        off = [(name, number(s.mean, 3), number(s.rms, 3), number(s.span, 3)) for name, s in c.spare.items()]
        blocks.append(
            Table(
                ("measured besides", "mean difference", "rms difference", "span"),
                off,
                "Measured less what follows from the others: zeros of encoders and lengths of the model that are wrong show here.",
            )
        )
    return Section("How its loops were closed", blocks, lead)


def _cutoff(c: Cutoff) -> Section:
    f = np.array([t.cutoff for t in c.trials])
    series = [
        Series("fitted, filtered", f, [t.training_percent for t in c.trials]),
        Series("held out, as measured", f, [t.unfiltered_percent for t in c.trials]),
    ]
    drawn = curves("Error over the cut-off", series, "cut-off, Hz", "error, %", log_x=True, log_y=True)
    rows = [
        (
            number(t.cutoff, 3),
            number(t.training_percent, 3),
            number(t.unfiltered_percent, 3),
            f"{t.excess_percent:.2f} ± {t.noise_percent:.2f}",
            c.reason(t),
        )
        for t in c.trials
    ]
    lead = (
        f"Proposed: {number(c.proposed, 3)} Hz, the widest band whose error against the forces as measured, on blocks not fitted, "
        f"is within one standard error of the least, which is that at {number(c.best.cutoff, 3)} Hz. Every row counts alike: "
        "“above the least” compares it with the least error that any cut-off reaches in it, ± the standard error of the difference "
        "from the best."
    )
    head = ("cut-off, Hz", "fitted %", "held out, as measured %", "above the least, %", "")
    table = Table(head, rows, left=(4,), strong=(3,))
    return Section("Cut-off of the low-pass", [Figure([drawn]), table], lead)


GOOD_PERCENT = 3.0  # of the mass: a larger deviation is fair at best
LARGEST_SHIFT = 3.0  # standard deviations that consistency may move a load before the verdict doubts it
UNCERTAIN_INERTIA = 0.5  # of a moment of inertia: a larger deviation is reported
LEAST_SIGMAS = 3.0  # a mass nearer to zero than so many deviations may be none


def payload_page(run: PayloadRun, settings: Mapping[str, Any], result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``payload``; `settings` are those of controllers."""
    x = run.load
    value, sigma = measured(x.mass, x.mass_sigma)
    keys = [
        Key(f"{value} ±\N{NO-BREAK SPACE}{sigma} kg", "mass of the load"),
        Key(", ".join(number(1e3 * v, 3) for v in x.centre) + " mm", "centre of mass in the flange frame"),
        Key(percent(100.0 * run.weighed.study.check.relative_error) + " %", f"error on {run.weighed.study.judged_on}"),
    ]
    first = [
        Section("The load", load_blocks(run), "Mass, centre of mass and inertia about it, in the frame of the flange."),
        Section(
            "Settings for controllers",
            controller_blocks(settings),
            "The same load in the form that three controllers expect.",
        ),
    ]
    first = [*trouble_sections(run.weighed), *first]
    title, more = f"The load on “{x.body}”", study_sections(run.weighed)
    return identification_page(run.weighed.study, result, command, more, title, payload_verdict(run), keys, first)


def payload_verdict(run: PayloadRun) -> Verdict:
    """Whether the load may be used, and what its deviation contains."""
    x, w = run.load, run.weighed
    value, sigma = measured(x.mass, x.mass_sigma)
    share = 100.0 * x.mass_sigma / x.mass
    budget = [f"{name} {number(s, 2)} kg" for name, s in x.mass_budget.items()]
    findings = [f"σ = {sigma} kg: {', '.join(budget)}.", f"Drive gains: {run.gains}."]
    if x.shift > 0.0:
        findings.append(
            f"No physical body has the estimated inertia; the nearest that one has is {number(x.shift, 2)} standard deviations away."
        )
    if x.has_inertia and (x.inertia_sigma[[0, 3, 5]] > UNCERTAIN_INERTIA * np.diag(x.inertia)).any():
        findings.append(
            "Its inertia about the centre of mass is hardly determined: deviations are of the size of the values."
        )
    if run.unexcited:
        findings.append(
            f"The runs that identify the machine do not show {listed(run.unexcited[:6])}: if the loaded runs do, the load takes it."
        )
    findings += [f"Possible fault: {s.fault.what}" for s in w.suspicions] + [f"Missed: {m}" for m in run.missed]
    poor = x.mass < LEAST_SIGMAS * x.mass_sigma or x.shift > LARGEST_SHIFT or bool(run.missed)
    fair = share > GOOD_PERCENT or bool(w.suspicions) or bool(run.unexcited) or "exact" in run.gains
    what = "The load cannot be distinguished from none" if x.mass < LEAST_SIGMAS * x.mass_sigma else "The load weighs"
    if x.shift > LARGEST_SHIFT:
        what = "No possible load explains these runs well: the nearest weighs"
    kept = ["Compensating for the load in a controller (payload.json), gravity first."]
    never = ["Loads that move or bend, and friction that grows with the load: neither is in the model."]
    if not x.has_inertia:
        never.append("The inertia of the load: it was not estimated, and is written as zero.")
    headline = f"{what}: {value} ± {sigma} kg."
    return Verdict("poor" if poor else "fair" if fair else "good", headline, tuple(findings), tuple(kept), tuple(never))


def load_blocks(run: PayloadRun) -> list[Block]:
    """The load in a table, and where the deviation of its mass comes from."""
    x = run.load
    rows = [_row("mass", x.mass, x.mass_sigma, "kg")]
    rows += [
        _row(f"centre {a}", float(v), float(s), "m") for a, v, s in zip("xyz", x.centre, x.centre_sigma, strict=True)
    ]
    if x.has_inertia:
        rows += [
            _row(name, float(v), float(s), "kg*m^2")
            for name, v, s in zip(INERTIAL, six(x.inertia), x.inertia_sigma, strict=False)
        ]
    table = Table(["", "value", "deviation", "unit"], rows, left=(0, 3))
    sources = [[name, number(s, 2), f"{100.0 * (s / x.mass_sigma) ** 2:.0f}"] for name, s in x.mass_budget.items()]
    caption = "Where the deviation of the mass comes from: independent sources, whose squares add up."
    return [table, Table(["source", "deviation, kg", "% of the variance"], sources, caption, left=(0,))]


def _row(name: str, value: float, sigma: float, unit: str) -> list[str]:
    if sigma == 0.0:
        return [name, number(value, 4), "given", unit_text(unit)]
    shown, deviation = measured(value, sigma)
    return [name, shown, deviation, unit_text(unit)]


def controller_blocks(settings: Mapping[str, Any]) -> list[Block]:
    """What is typed into each controller, with its conventions."""
    franka = settings["franka"]
    inertia = "{" + ", ".join(f"{v:.6g}" for v in franka["load_inertia"]) + "}"
    place = "{" + ", ".join(f"{v:.6g}" for v in franka["F_x_Cload"]) + "}"
    return [
        Text(f"Universal Robots. {CONVENTIONS['ur']}."),
        Code(settings["ur"]["script"].replace("], [", "],\n  [")),
        Text(f"Franka. {CONVENTIONS['franka']}."),
        Code(f"robot.setLoad({franka['mass']:.6g}, {place},\n  {inertia});"),
        Text(f"KUKA. {CONVENTIONS['kuka']}."),
        Code(settings["kuka"]["script"]),
    ]
