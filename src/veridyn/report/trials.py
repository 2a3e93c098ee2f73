"""What was tried, and what came of it: terms of friction, cut-offs of the low-pass, starts of a search."""

from __future__ import annotations

import numpy as np

from veridyn.identify.cutoff import Cutoff
from veridyn.identify.excitation.plan import ExcitationPlan
from veridyn.identify.friction_ladder import FrictionLadder
from veridyn.report import count, number, percent
from veridyn.report.blocks import Block, Figure, Section, Table
from veridyn.report.plots import Series, curves

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


def cutoff_section(c: Cutoff) -> Section:
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


def search_blocks(plan: ExcitationPlan) -> list[Block]:
    """What each start reached."""
    rows = [
        [f"{k}", number(goal, 5), f"{100.0 * np.exp(min(plan.goals) - goal):.1f}"]
        for k, goal in enumerate(plan.goals, 1)
    ]
    caption = "Natural logarithms; the last column compares each start with the best, which the plan is made of."
    return [Table(["start", "criterion", "% of the best"], rows, caption)]
