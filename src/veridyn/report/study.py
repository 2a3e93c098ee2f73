"""Sections of a report about how a study went: possible faults, missed limits, how the cut-off was chosen, friction, and the reduced model.

The friction ladder lists what was tried, what held-out data said of it, and what entered. The reduced model of essential parameters stands
beside the full one: values, deviations, and errors on training and held-out data.
"""

from __future__ import annotations

import numpy as np

from veridyn.identify.cutoff import Cutoff
from veridyn.identify.friction.evidence import FrictionLadder
from veridyn.report.blocks import Block, Figure, Listing, Section, Table, Text, Verdict
from veridyn.report.page import identification_page, page
from veridyn.report.plots import Series, curves
from veridyn.report.verdict import verdict
from veridyn.report.words import count, listed, number, percent
from veridyn.studies.result import Result
from veridyn.studies.run.identified import IdentifyRun
from veridyn.studies.run.machine import Closing

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
    sections = study_sections(run)
    if run.drive is None:
        return identification_page(run.study, result, command, sections, model=run.model_file)
    from veridyn.report.car import identified_keys, identified_sections  # here: they bring the pages of observers along

    title, keys = f"Identification of “{run.machine.name}”", identified_keys(run.drive)
    return page(title, identified_verdict(run), keys, [*sections, *identified_sections(run.drive)], result, command)


def identified_verdict(run: IdentifyRun) -> Verdict:
    """The verdict on an identification, of any machine."""
    if run.drive is None:
        return verdict(run.study)
    from veridyn.report.car import shown_verdict

    return shown_verdict(run.machine.name, run.drive)


def study_sections(run: IdentifyRun) -> list[Section]:
    """What stands before the rest, because it may make the rest worthless; then how the filter was chosen."""
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
    if run.cutoff is not None:
        out.append(_cutoff(run.cutoff))
    if run.delays.seconds:
        rows = [(c, number(1e3 * d, 3)) for c, d in run.delays.seconds.items()]
        lead = (
            "How late each measured force is against the positions, estimated beside the parameters. Friction that lags looks like one, "
            "too, most of all in joints that carry little."
        )
        out.append(Section("Delays", [Table(("coordinate", "delay, ms"), rows)], lead))
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
