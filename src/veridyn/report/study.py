"""Sections of a report about how a study went: possible faults, missed limits, how the cut-off was chosen, friction, and the reduced model.

The friction ladder lists what was tried, what held-out data said of it, and what entered. The reduced model of essential parameters stands
beside the full one: values, deviations, and errors on training and held-out data.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from veridyn.identify.cutoff import Cutoff
from veridyn.identify.essential import EliminationStep
from veridyn.identify.friction.evidence import FrictionLadder
from veridyn.identify.validation import Validation
from veridyn.report.blocks import Block, Figure, Listing, Section, Table, Text
from veridyn.report.plots import Series, curves
from veridyn.report.words import count, listed, measured, number, percent, unit_text
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.run.identify import IdentifyRun
from veridyn.studies.run.machine import Closing

LEFT_OUT = "0"
REMOVAL_REASONS = ("removed_at_sigma_percent", "f_statistic", "p_value", "joint_p_value")
REDUCED_COLUMNS = ("parameter", "unit", "full", "σ", "reduced", "σ of it", "σ % when removed", "F", "p")
FRICTION_COLUMNS = (
    "term",
    "coordinate",
    "error without %",
    "error with %",
    "square falls by %",
    "beside all others %",
    "verdict",
)


def reduced_section(study: IdentificationStudy) -> Section | None:
    """What the reduced model is, and how much worse it predicts; None where nothing was left out."""
    if not study.essential.steps:
        return None
    lean = study.essential
    lead = (
        f"{count(len(lean.fit.values), 'parameter')} of {len(study.fit.values)} are essential by this rule: {lean.stated_rule}. "
        "The others are zero here, and the rest is estimated anew by weighted least squares."
    )
    if study.reduced_is_worse:
        lead += f" On {study.judged_on} the reduced model is noticeably worse than the full one: what it leaves out matters."
    errors = Table(
        ("model", "parameters", "training %", "validation %", "worst row, validation %"),
        [
            _error_row("full", len(study.fit.values), study.own, study.check),
            _error_row("reduced", len(lean.fit.values), study.essential_own, study.essential_check),
        ],
        "Relative errors ‖r‖/‖y‖ of the forces.",
        strong=(3,),
    )
    caption = "Parameters of both models; deviations of the reduced one assume uncorrelated residuals."
    values = Table(REDUCED_COLUMNS, reduced_rows(study), caption, left=(1,))
    return Section("Reduced model", [errors, values], lead)


def reduced_rows(study: IdentificationStudy) -> list[tuple[str, ...]]:
    """One row for each base parameter: value and deviation in the full and in the reduced model, and why it was removed."""
    rows = []
    for name, unit, x, sigma, own, s in _both(study):
        if own is not None:
            tail = (*measured(*own), "–", "–", "–")
        elif s is not None:
            tail = (LEFT_OUT, "–", percent(s.relative_sigma), number(s.f_statistic, 3), number(s.p_value, 2))
        else:  # a fit with a prior estimates what least squares cannot
            tail = ("–",) * 5
        rows.append((name, unit_text(unit), *measured(x, sigma), *tail))
    return rows


def _both(
    study: IdentificationStudy,
) -> Iterator[tuple[str, str, float, float, tuple[float, float] | None, EliminationStep | None]]:
    """For each base parameter its name, unit, value and σ; value and σ in the reduced model; the step that removed it. None: not so."""
    full, lean = study.fit, study.essential
    own = dict(
        zip(lean.fit.base.columns, zip(lean.fit.values.tolist(), lean.fit.sigma.tolist(), strict=True), strict=True)
    )
    steps = {study.model.parameters.index(s.name): s for s in lean.steps}
    for c, name, unit, x, sigma in zip(full.base.columns, full.names, full.units, full.values, full.sigma, strict=True):
        yield name, unit, float(x), float(sigma), own.get(c), steps.get(c)


def reduced_table(study: IdentificationStudy) -> str:
    """Both models as the text of a CSV file; cells of what does not apply are empty."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["name", "unit", "full", "full_sigma", "reduced", "reduced_sigma", *REMOVAL_REASONS])
    for name, unit, x, sigma, own, s in _both(study):
        cells: list[float | str] = [*(own or ("", "")), "", "", "", ""]
        if s is not None:
            cells = [0.0, "", s.relative_sigma, s.f_statistic, s.p_value, s.joint_p_value]
        out.writerow([name, unit, *(v if isinstance(v, str) else f"{v:.9g}" for v in (x, sigma, *cells))])
    return text.getvalue()


def reduced_line(study: IdentificationStudy) -> str:
    """The same in one line, for a terminal."""
    full, less = (percent(100.0 * v.relative_error) for v in (study.check, study.essential_check))
    counts = f"{len(study.essential.fit.values)} of {len(study.fit.values)} parameters"
    of = " in forces" if study.by_simulation else ""
    return f"reduced model: {counts}, off by {less} %{of} on {study.judged_on}, the full one by {full} %"


def _error_row(name: str, parameters: int, own: Validation | None, check: Validation) -> tuple[str, ...]:
    training = "–" if own is None else percent(100.0 * own.relative_error)
    held_out, worst = percent(100.0 * check.relative_error), percent(100.0 * check.worst_relative_error)
    return name, f"{parameters}", training, held_out, worst


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


def study_sections(run: IdentifyRun) -> list[Section]:
    """What stands before the rest, because it may make the rest worthless; then how the filter was chosen."""
    out = []
    if run.missed:
        out.append(
            Section(
                "Limits that are missed", [Listing(run.missed)], "The study file sets limits, and these are not kept."
            )
        )
    if run.suspicions:
        lead = "Something about the data or the model may be wrong. Until it is cleared up, the numbers below are not to be used."
        out.append(Section("Possible faults", [Text(str(s)) for s in run.suspicions], lead))
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
