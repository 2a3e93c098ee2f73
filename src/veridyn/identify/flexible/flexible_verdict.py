"""How good a fit of flexible joints is, why it is no better, and what it may be used for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import block_diag

from veridyn.identify.flexible.result import FlexibleFit
from veridyn.inference.departure import chance_of_departure
from veridyn.inference.error_measures import nothing_judged
from veridyn.inference.verdict import GRADES, Outcome, Reason, Verdict, verdict_of

LARGEST_AGREEMENT = 2.0  # standard deviations by which two fits may differ before the verdict doubts them
OF_JOINT = [0, 1, 2, 4]  # of the QUANTITIES: all but the delay, which is that of its sensors


def flexible_verdict(fit: FlexibleFit) -> Verdict:
    """The verdict on a fit of flexible joints, by its deflections on validation logs, and by those of the fit where there are none."""
    known = [c for c, joint in fit.joints.items() if joint.stiffness.determined]
    left = [c for c in fit.joints if c not in known]
    apart = [c for c in known if fit.agreement.get(c, 0.0) > LARGEST_AGREEMENT]
    limit = f"more than {LARGEST_AGREEMENT:g} deviations"
    further = [
        Reason("fair" if known else "poor", "undetermined", f"The stiffness of {_listed(left)} is not determined.")
    ]
    head = f"The logs determine the stiffness of {_listed(known)}." if known else "The logs determine no stiffness."
    outcome = Outcome(
        name=fit.described.name,
        fitted=fit.rows,
        held_out=fit.held_out_rows,
        before=fit.held_out_rows_defaults,
        departure=_departure(fit),
        disagreement=f"Training and validation logs differ in {_listed(apart)} by {limit}." if apart else "",
        findings=fit.findings,
        undetermined=[f"{name} of {c}" for c, joint in fit.joints.items() for name in joint.undetermined],
        unjudged=nothing_judged(fit.held_out_rows, "deflection"),
        further=further if left else (),
        headlines=dict.fromkeys(GRADES, head),
        may=("Correcting link angles for the load.",) if known else (),
        may_not=("Frequencies above the band of the fit: resonances are not in these logs.",),
    )
    verdict = verdict_of(outcome)
    stiffness = [fit.joints[c].stiffness for c in known]
    lines = [f"{c}: {x.value:.4g} ± {x.sigma:.2g} {x.unit}." for c, x in zip(known, stiffness, strict=True)]
    return replace(verdict, findings=(*lines, *(r.text for r in verdict.reasons)))


def _departure(fit: FlexibleFit) -> float:
    """How often estimates would lie as far from the values of the model, were these right."""
    z, C = [], []
    for joint in fit.joints.values():
        found, scale = joint.estimate, joint.sigma[OF_JOINT]
        values = found.values if found.free is None else found.free
        z.append((values[OF_JOINT] - joint.mean[OF_JOINT]) / scale)
        C.append(found.covariance[np.ix_(OF_JOINT, OF_JOINT)] / np.outer(scale, scale))
    return chance_of_departure(np.concatenate(z), np.asarray(block_diag(*C)))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
