"""How good a fleet of fits is, why it is no better, and what it may be used for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from veridyn.identify.fleet import FEWEST, Fleet
from veridyn.inference.error_measures import RowReport, nothing_judged
from veridyn.inference.verdict import GRADES, Outcome, Reason, Verdict, verdict_of

POOR_SHARE = 0.5  # of the machines: with fewer fits a fleet says little
NAMED = 5  # values that stand apart, in a verdict


def fleet_verdict(fleet: Fleet) -> Verdict:
    """The verdict on a fleet: errors are those of a row over all machines; machines that stand apart are named."""
    total, found = len(fleet.fits) + len(fleet.failed), len(fleet.fits)
    apart = list(dict.fromkeys(o.machine for o in fleet.outliers))
    further = []
    if found < POOR_SHARE * total:
        further.append(Reason("poor", "few fits", f"Only {found} of {total} machines are identified."))
    for o in fleet.outliers[:NAMED]:
        side = "above" if o.deviations > 0.0 else "below"
        what = f"{o.machine}: {o.parameter} is {abs(o.deviations):.2g} deviations {side} the others."
        further.append(Reason("fair", "apart", what))
    if len(fleet.outliers) > NAMED:
        further.append(Reason("fair", "apart", f"{len(fleet.outliers) - NAMED} more values stand apart."))
    if fleet.failed:
        further.append(Reason("fair", "left out", f"Left out: {', '.join(fleet.failed)}."))
    for name, logs in fleet.logs_left_out.items():
        further.append(Reason("fair", "left out", f"Left out of {name}: {', '.join(logs)}."))
    if found < FEWEST:
        further.append(Reason("fair", "few machines", f"Outliers are not looked for, which takes {FEWEST} machines."))
    disagreeing = [name for name, fit in fleet.fits.items() if fit.disagreement]
    head = f"{found} of {total} machines are identified"
    head += (
        f"; {', '.join(apart)} {'stands' if len(apart) == 1 else 'stand'} apart."
        if apart
        else ", and none stands apart."
    )
    checks = [fit.unseen for fit in fleet.fits.values() if fit.unseen is not None]
    held_out = rows_of_all(row for check in checks for row in check.rows)
    outcome = Outcome(
        name="fleet",
        fitted=rows_of_all(row for fit in fleet.fits.values() for row in fit.rows),
        held_out=held_out,
        share=min((check.share for check in checks), default=1.0),
        disagreement=f"Logs of {', '.join(disagreeing)} disagree." if disagreeing else "",
        findings=[replace(f, message=f"{name}: {f}") for name, fit in fleet.fits.items() for f in fit.findings],
        unjudged=nothing_judged(held_out, "force"),
        further=further,
        headlines=dict.fromkeys(GRADES, head),
        may=("Choosing which machines to look at first, and priors for further machines of this model.",),
        may_not=(
            "Comparing machines that carried different loads or drives: their parameters differ for that reason.",
        ),
    )
    verdict = verdict_of(outcome)
    return replace(verdict, findings=tuple(r.text for r in verdict.reasons))


def rows_of_all(rows: Iterable[RowReport]) -> tuple[RowReport, ...]:
    """Errors of each row over all machines, which count by their samples."""
    several: dict[str, list[RowReport]] = {}
    for row in rows:
        several.setdefault(row.row, []).append(row)
    return tuple(_pooled(own) for own in several.values())


def _pooled(rows: list[RowReport]) -> RowReport:
    count = sum(r.samples for r in rows)

    def rms(name: str) -> float:
        return math.sqrt(sum(r.samples * getattr(r, name) ** 2 for r in rows) / count) if count else math.nan

    return replace(
        rows[0],
        samples=count,
        rms=rms("rms"),
        measured_rms=rms("measured_rms"),
        measured_std=rms("measured_std"),
        noise=rms("noise"),
    )
