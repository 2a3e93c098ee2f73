"""How good a load is that was weighed, why it is no better, and what it may be used for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.identify.result import HeldOutRows
from veridyn.identify.weighing import Payload
from veridyn.inference.verdict import GRADES, Outcome, Reason, Verdict, verdict_of

GOOD_PERCENT = 3.0  # of the mass: a larger deviation is fair at best
LARGEST_SHIFT = 3.0  # standard deviations that consistency may move a load before the verdict doubts it
UNCERTAIN_INERTIA = 0.5  # of a moment of inertia: a larger deviation is reported
LEAST_SIGMAS = 3.0  # a mass nearer to zero than so many deviations may be none
NAMED = 6  # parameters in a sentence


def payload_verdict(run: Payload) -> Verdict:
    """The verdict on a load, by runs with it that were held out, and by those of the fit where there are none."""
    x, check = run.load, run.fit.unseen or HeldOutRows(rows=())
    weight = f"{x.mass:.4g} ± {x.mass_sigma:.2g} kg"
    none, impossible = x.mass < LEAST_SIGMAS * x.mass_sigma, x.shift > LARGEST_SHIFT
    what = "The load cannot be distinguished from none" if none else "The load weighs"
    if impossible:
        what = "No possible load explains these runs well: the nearest weighs"
    vague = x.has_inertia and bool((x.inertia_sigma[[0, 3, 5]] > UNCERTAIN_INERTIA * np.diag(x.inertia)).any())
    findings = {(f.cause, f.place): f for fit in (run.empty, run.fit) for f in fit.findings}
    outcome = Outcome(
        name=f"the load on '{x.body}'",
        fitted=run.fit.rows,
        held_out=check.rows,
        share=check.share,
        disagreement=run.fit.disagreement or run.empty.disagreement,
        findings=list(findings.values()),
        unjudged=check.unjudged,
        further=_reasons(run, none, impossible),
        headlines=dict.fromkeys(GRADES, f"{what}: {weight}."),
        may=("Compensating for the load in a controller (payload.json), gravity first.",),
        may_not=(
            "Loads that move or bend, and friction that grows with the load: neither is in the model.",
            *(() if x.has_inertia else ("The inertia of the load: it was not estimated, and is written as zero.",)),
            *(("The inertia about the centre of mass: deviations are of the size of the values.",) if vague else ()),
        ),
    )
    verdict = verdict_of(outcome)
    budget = ", ".join(f"{name} {s:.2g} kg" for name, s in x.mass_budget.items())
    lines = [f"σ = {x.mass_sigma:.2g} kg: {budget}.", f"Drive gains: {run.gains}."]
    if 0.0 < x.shift <= LARGEST_SHIFT:
        lines.append(_distance(run))
    return replace(verdict, findings=(*lines, *(r.text for r in verdict.reasons)))


def _reasons(run: Payload, none: bool, impossible: bool) -> list[Reason]:
    """What only a load has."""
    x = run.load
    share = 100.0 * x.mass_sigma / x.mass
    out = []
    if none:
        out.append(Reason("poor", "no load", f"Its mass is nearer to zero than {LEAST_SIGMAS:g} deviations."))
    if impossible:
        out.append(Reason("poor", "impossible", _distance(run)))
    if share > GOOD_PERCENT:
        out.append(Reason("fair", "deviation", f"The deviation of its mass is {share:.2g} % of it."))
    if run.unexcited:
        named = ", ".join(run.unexcited[:NAMED]) + (", …" if len(run.unexcited) > NAMED else "")
        what = f"The runs that identify the machine do not show {named}: if the loaded runs do, the load takes it."
        out.append(Reason("fair", "unexcited", what))
    if "exact" in run.gains:
        out.append(Reason("fair", "gains", f"How far drive gains are off is not known: {run.gains}."))
    return out


def _distance(run: Payload) -> str:
    return f"No physical body has the estimated inertia; the nearest that one has is {run.load.shift:.2g} standard deviations away."
