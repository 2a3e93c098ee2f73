"""How good a fit of drives is, why it is no better, and what it may be used for: the sentences of this kind of fit, and its reasons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.identify.drives.drive_log import SATURATION
from veridyn.identify.drives.drive_result import DrivesFit
from veridyn.identify.drives.held_out import WORSE_THAN_FILE
from veridyn.identify.result import HeldOutRows
from veridyn.inference.error_measures import nothing_judged
from veridyn.inference.verdict import GRADES, Outcome, Reason, Verdict, verdict_of, worse_than_before


def drives_verdict(fit: DrivesFit) -> Verdict:
    """The verdict on a fit of drives, by what was held out, and by the samples of the fit where nothing was."""
    check = fit.unseen or HeldOutRows(rows=())
    known, total = len(fit.determined), len(fit.drives)
    worse = [f.place for f in fit.findings if f.cause == WORSE_THAN_FILE]
    saturated = [f for f in fit.findings if f.cause == SATURATION]
    bounds = [str(f) for f in saturated]
    bounds += [f"At the bound of zero: {', '.join(fit.at_zero)}."] if fit.at_zero else []
    outcome = Outcome(
        name=fit.described.name,
        fitted=fit.rows,
        held_out=check.rows,
        before=check.before,
        departure=fit.chance,
        disagreement=fit.disagreement,
        findings=[f for f in fit.findings if f not in saturated],
        bounds=bounds,
        unjudged=nothing_judged(check.rows, "encoder"),
        undetermined=[d.name for d in fit.drives if not d.determined],
        headlines=dict.fromkeys(GRADES, f"The simulation follows the encoders {_closeness(fit)}."),
        may=() if worse else ("Simulation of this machine under its own drives.",),
        may_not=(
            "Forces and speeds far beyond those of the log.",
            "Contact: the machine was held.",
            *(("Simulation in place of the model file, whose values follow held-out data better.",) if worse else ()),
        ),
    )
    if worse and not worse_than_before(outcome):  # of single parts, though not of all together
        what = f"{', '.join(worse)}: held-out samples are followed less closely than with the values of the model file."
        outcome = replace(outcome, further=[Reason("poor", "worse than file", what)])
    verdict = verdict_of(outcome)
    said = f"{known} of {total} numbers are determined by the log; the others stay near what was known."
    return replace(verdict, findings=(said, *(r.text for r in verdict.reasons)))


def disagreement_of(widening: float) -> str:
    """That parts of the log disagree on what they determine; nothing where they agree."""
    return f"Parts of the log disagree: variances are widened up to {widening:.1f} times." if widening > 1.0 else ""


def _closeness(fit: DrivesFit) -> str:
    """How much more closely than with the values of the file, over what was held out where there is something."""
    now, before = fit.errors
    times = before / now if now > 0.0 else np.inf
    shown = f"{times:.0f}" if 10.0 <= times < np.inf else f"{times:.2g}"
    return f"{shown} times as closely as with the values of the model file"
