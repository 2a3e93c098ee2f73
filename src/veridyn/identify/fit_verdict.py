"""The verdict of a fit of equations: the common rule (:mod:`veridyn.inference.verdict`) asked of its rows, findings and held-out errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError

from veridyn.arrays import Array
from veridyn.identify.estimator import WLS
from veridyn.identify.result import Fit, HeldOutRows
from veridyn.inference.departure import chance_of_departure
from veridyn.inference.finding import CONTRADICTION
from veridyn.inference.verdict import Outcome, Reason, Verdict, verdict_of
from veridyn.wording import count, listed

CONTRADICTING_SAMPLES = 10.0  # of a row for each parameter: rows with fewer fit their own noise (chosen)
MAY = {
    True: "Simulating motions like those recorded, {words}.",
    False: "Computing the forces of motions like those recorded (feed-forward control, sizing of drives, noticing contact).",
}
WHY_POOR = "Finding out what the model lacks: see where the difference between measured and predicted is largest."
SIMULATION_FAILED = "With the identified parameters the held-out data cannot be simulated:"
VALIDATION = "Planning a validation: record a motion that is not used for the fit, and in which every joint moves."
NEW_CONDITIONS = "Faster motions, another tool or load, or friction at another temperature, without recording again."


def verdict_of_fit(fit: Fit) -> Verdict:
    """Of a fit by itself."""
    return verdict_of_outcome(outcome_of(fit))


def verdict_of_outcome(outcome: Outcome) -> Verdict:
    """The verdict, of which a poor one says only how to go on."""
    verdict = verdict_of(outcome)
    if outcome.unjudged:
        return replace(
            verdict, headline=f"The model “{outcome.name}” cannot be judged: {outcome.unjudged}.", may=(VALIDATION,)
        )
    return replace(verdict, may=(WHY_POOR,)) if verdict.grade == "poor" else verdict


def outcome_of(fit: Fit) -> Outcome:
    """What is known of a fit."""
    name, check = fit.described.name, fit.unseen or HeldOutRows(rows=())
    doubtful = bool(fit.findings)
    return Outcome(
        name=name,
        fitted=fit.rows,
        held_out=check.rows,
        before=check.before,
        share=check.share,
        departure=_departure(fit.values - fit.priors, fit.covariance),
        contradiction=_contradiction(fit),
        disagreement=fit.disagreement,
        findings=fit.findings,
        unjudged=check.unjudged,
        further=[Reason("poor", "simulation", f"{SIMULATION_FAILED} {check.failed}.")] if check.failed else [],
        headlines={
            "good": f"The model “{name}” is identified, and it predicts motion not used for the fit.",
            "fair": f"The model “{name}” is identified, with reservations.",
            "not validated": f"The model “{name}” is identified; whether it predicts motion not used for the fit is not known.",
            "poor": f"The model “{name}” is not to be used as it is.",
        },
        may=_may(fit, doubtful),
        may_not=_may_not(fit, doubtful),
    )


def _departure(away: Array, covariance: Array) -> float:
    """How often estimates lie as far from values that are right, `away` from them with this covariance; 0 where it is not known."""
    if not len(away) or not np.isfinite(away).all():
        return 0.0
    try:
        return chance_of_departure(away, covariance)
    except (LinAlgError, ValueError):
        return 0.0


def _contradiction(fit: Fit) -> float:
    """How much more all rows together leave than each by itself, where no finding says so and rows do not fit their own noise."""
    few = min((r.samples for r in fit.rows), default=0) < CONTRADICTING_SAMPLES * len(fit.values)
    named = any(f.cause == CONTRADICTION for f in fit.findings)
    return 1.0 if few or named or fit.estimator != WLS.title else fit.residual_sigma


def _may(fit: Fit, doubtful: bool) -> tuple[str, ...]:
    simulating = fit.replay_settings is not None
    use = MAY[simulating].format(words="" if fit.replay_settings is None else fit.replay_settings.words)
    well = fit.well_identified()
    quoting = f"Quoting the {count(len(well), 'parameter')} with σ below 10 %, with their deviations."
    return (use, quoting) if well and not doubtful else (use,)


def _may_not(fit: Fit, doubtful: bool) -> tuple[str, ...]:
    out = ["The values of parameters, before the possible faults are cleared up."] if doubtful else []
    groups = fit.base.relations()
    if groups:
        out.append(
            f"Mass or inertia of single bodies, where they are known only in one of {count(len(groups), 'sum')}: within a sum the split "
            "is that of the prior and not of the data."
        )
    well = set(fit.well_identified())
    poor = [n for n in fit.names if n not in well]
    if poor:
        out.append(
            f"The values of {listed(poor)}: their deviations are large beside them, because they are small or the motion hardly shows them."
        )
    return (*out, NEW_CONDITIONS)
