"""How good the fit of a car is, why it is no better, and what it may be used for.

A sensor is judged by what the filter does not say of its error: the noise of its row is the deviation that the filter states, of the sensor
and of what the equations leave out. That these deviations are themselves wrong is a finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from veridyn.identify.car_fit import CarFit
from veridyn.identify.result import HeldOutRows
from veridyn.inference.departure import chance_of_departure
from veridyn.inference.error_measures import RowReport, nothing_judged
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import FALSE_ALARM, GRADES, Outcome, Reason, Verdict, verdict_of
from veridyn.signals.drive import Line


def car_verdict(fit: CarFit) -> Verdict:
    """The verdict on the fit of a car, by predictions of held-out samples, and by those of the fit where there are none."""
    name, left = fit.described.name, {n: why for n, why in fit.not_shown.items() if n not in fit.fit.at_bound}
    shown = [n for n in fit.names if n not in fit.not_shown]
    check = fit.unseen or HeldOutRows(rows=())
    held_out = _stated(check.rows)
    further = [Reason("poor", "search", str(fault)) for fault in fit.faults]
    if left:
        further.append(Reason("fair", "undetermined", f"Not shown by this drive: {', '.join(left)}."))
    outcome = Outcome(
        name=name,
        fitted=_stated(fit.rows),
        held_out=held_out,
        before=_stated(check.before),
        departure=_departure(fit),
        disagreement=fit.disagreement,
        findings=fit.findings,
        bounds=[f"{n} ends at its bound {fit.fit.values[n]:.4g}." for n in fit.fit.at_bound],
        undetermined=list(left),
        unjudged=nothing_judged(held_out, "sensor", "what the filter states of its errors"),
        further=further,
        headlines=dict.fromkeys(GRADES, f"{name}: what the drive shows of the car."),
        may=("Observing this car: its values go with their deviations into the bands.",),
        may_not=("Accelerations far beyond those of the drive: tyres are not linear.",),
    )
    verdict = verdict_of(outcome)
    said = f"{len(shown)} parameters determined: {', '.join(shown)}." if shown else "No parameter is determined."
    return replace(verdict, findings=(said, *(r.text for r in verdict.reasons)))


def verdict_of_drive(
    name: str,
    fit: CarFit | None,
    findings: Sequence[FoundCause],
    not_shown: Mapping[str, str],
    lines: Mapping[str, Line],
    checked: Mapping[str, Line],
) -> Verdict:
    """The verdict on all that a drive shows of a car: on its fit, where there is one, and on straight lines of wheels, axles and drag.

    `checked`: the lines on samples that were held out.
    """
    more = [f for f in findings if fit is None or f not in fit.findings]
    further = [Reason("fair", "finding", str(f)) for f in more]
    left = [n for n in not_shown if fit is None or n not in fit.not_shown]
    if left:
        further.append(Reason("fair", "undetermined", f"Not shown by this drive: {', '.join(left)}."))
    apart = [n for n, line in lines.items() if n in checked and _apart(line, checked[n])]
    if apart:
        further.append(Reason("fair", "disagreement", f"{', '.join(apart)}: not the same on held-out samples."))
    if fit is not None:
        verdict = fit.verdict.with_reasons(further)
        return replace(verdict, findings=(*verdict.findings, *(r.text for r in further)))
    if lines and not checked.keys() >= lines.keys():
        further.append(Reason("not validated", "validation", "Not all lines could be checked on held-out samples."))
    headline = f"{name}: what the drive shows of the car."
    verdict = Verdict(GRADES[0], headline).with_reasons(further)
    said = (
        f"{len(lines)} lines determined: {', '.join(lines)}." if lines else "No line of wheels or axles is determined."
    )
    return replace(verdict, findings=(said, *(r.text for r in verdict.reasons)))


def _apart(one: Line, other: Line) -> bool:
    """Whether the coefficients of a line differ between two parts of a drive by more than chance explains."""
    z = [(one.value[k] - other.value[k]) / np.hypot(one.sigma[k], other.sigma[k]) for k in one.value]
    return bool(np.max(np.abs(z)) > -float(ndtri(0.5 * FALSE_ALARM / len(z))))


def _stated(rows: Sequence[RowReport]) -> tuple[RowReport, ...]:
    """Rows whose noise is what the filter states of them."""
    return tuple(replace(r, noise=r.sigma) for r in rows)


def _departure(fit: CarFit) -> float:
    """How often estimates would lie as far from the values of the model file, were these right."""
    found = fit.fit
    spread = np.array([found.guesses[n].spread(found.values[n]) for n in fit.names])
    z = [
        np.log(found.values[n] / g.value) * g.value / g.sigma if g.positive else (found.values[n] - g.value) / g.sigma
        for n in fit.names
        for g in (found.guesses[n],)
    ]
    return chance_of_departure(np.array(z), fit.covariance / np.outer(spread, spread))
