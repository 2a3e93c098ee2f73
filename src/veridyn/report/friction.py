"""The friction ladder of a study: what was tried, what held-out data said, and what entered."""

from __future__ import annotations

from veridyn.identify.friction.evidence import FrictionLadder
from veridyn.report.blocks import Section, Table
from veridyn.report.words import count, number, percent

COLUMNS = (
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
        "Friction, term by term", [Table(COLUMNS, friction_rows(ladder), caption, left=(1, 6), strong=(4,))], lead
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
