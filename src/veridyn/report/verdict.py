"""What a study means, in plain words and with its scope: what was identified, how well, and what it may and may not be used for.

A fit by output error is judged by its simulation of data that it was not fitted to, coordinate by coordinate.
"""

from __future__ import annotations

import math
from dataclasses import replace

from veridyn.identify.pipeline.identified import IdentificationStudy
from veridyn.identify.pipeline.study_verdict import deviations_too_small
from veridyn.inference.error_measures import MIN_SIGNAL_TO_NOISE, RowReport
from veridyn.inference.verdict import CLOSE, CONTRADICTION_SIGMA, USEFUL, Verdict, carrying, error_beyond_noise
from veridyn.report import listed, number, percent, unit_text

NOISE_RATIO = 1.5  # times the rms error on its own motion: more than this is not noise


def verdict(study: IdentificationStudy) -> Verdict:
    """The verdict of a study, with what its figures say in sentences."""
    return replace(study.verdict, findings=tuple(_findings(study)))


def grade_rule(study: IdentificationStudy) -> str:
    """How the grade follows from the figures, for those who check it."""
    worst = error_beyond_noise(study.judging.rows)
    what = "simulated coordinates" if study.by_simulation else "forces"
    return (
        f"largest error of {what} beyond noise {percent(worst)} % of the standard deviation of what was measured; good below "
        f"{CLOSE:g} %, fair below {USEFUL:g} %; not validated where no sample was held out; at best fair where samples of the fit were "
        "used for validation, where rows or logs contradict each other, or where a possible fault is named; poor where the values from "
        "before predict held-out samples better, or a limit of the study file is missed"
    )


def _findings(study: IdentificationStudy) -> list[str]:
    f, fit = study.figures, study.fit
    well = int(f["well_identified"])
    total = fit.base.count
    out = [
        f"Of {int(f['parameters_estimated'])} parameters to be estimated, {study.structure.count} combinations are identifiable; "
        + ("this motion excites all of them. " if total == study.structure.count else f"this motion excites {total}. ")
        + f"{well} of {total} are known to better than 10 % (one standard deviation)."
    ]
    worst = max(carrying(study.judging.rows), key=lambda r: r.std_error, default=None)
    if worst is not None:
        out.append(_errors(study, worst))
    noisy = [r for r in study.judging.rows if not r.judged]
    if noisy and not study.unjudged:
        rows = listed([f"{r.row} (rms error {number(r.rms, 2)} {unit_text(r.unit)})" for r in noisy])
        what = "position" if study.by_simulation else "force"
        out.append(
            f"Not judged, because the measured {what} varies by less than {MIN_SIGNAL_TO_NOISE:g} times its noise: {rows}."
        )
    idle = [
        r
        for r in study.judging.rows
        if r.judged and r not in carrying(study.judging.rows) and 100.0 * r.std_error > CLOSE
    ]
    if idle:
        idle_rows = listed(
            [
                f"{r.row} ({percent(100 * r.std_error)} % of {number(r.measured_std, 2)} {unit_text(r.unit)})"
                for r in idle
            ]
        )
        what = (
            ("Coordinates that move little", "way")
            if study.by_simulation
            else ("Rows that carry little force", "force")
        )
        out.append(f"{what[0]} are off by more, which is little in {what[1]}: {idle_rows}.")
    if "share_inside_two_sigma" in f:
        out.append(
            f"The log is simulated, so the truth is known: {100 * f['share_inside_two_sigma']:.0f} % of the parameters lie within two "
            f"standard deviations of it (95 % are expected), the furthest {f['largest_error_in_sigma']:.1f} σ away."
            + (" The stated deviations are too small." if deviations_too_small(study) else "")
        )
    return out + _cautions(study)


def _errors(study: IdentificationStudy, worst: RowReport) -> str:
    """How far predicted forces, or simulated positions, are off: in all and at worst, in their unit too, and what noise explains of it."""
    if study.by_simulation:
        return _simulation_errors(study, worst)
    f = study.figures
    sentence = (
        f"On the validation data the rms error of the forces is {percent(f['cross_validation_std_percent'])} % of their standard "
        f"deviation in all, at worst {percent(100 * worst.std_error)} % ({number(worst.rms, 2)} {unit_text(worst.unit)}) in row {worst.row}"
    )
    if worst.error_beyond_noise == 0.0:
        sentence += ", no more than the noise of the measured force"
    if study.before is not None and "worst_cross_validation_before_std_percent" in f:
        sentence += f"; with the prior values, the worst row was off by {percent(f['worst_cross_validation_before_std_percent'])} %"
    return sentence + "."


def _simulation_errors(study: IdentificationStudy, worst: RowReport) -> str:
    """How far a simulation strays, and what inverse dynamics, which this fit does not use, would say of the same data."""
    settings = study.fit.replay_settings
    assert settings is not None  # the caller looked
    force = study.check.std_error
    beside = (
        f" Forces by inverse dynamics, which this fit does not use, are off by {percent(100 * force)} %: they take positions "
        "differentiated twice."
        if math.isfinite(force)
        else ""
    )
    return (
        f"Simulated {settings.words} from measured states, the validation data are reproduced with an rms error of "
        f"{percent(100 * study.judging.std_error)} % of their standard deviation in all, at worst {percent(100 * worst.std_error)} % "
        f"({number(worst.rms, 2)} {unit_text(worst.unit)}) in {worst.row}.{beside}"
    )


def _cautions(study: IdentificationStudy) -> list[str]:
    out = []
    own = {r.row: r.rms for r in study.judging_own.rows}
    worse = [r.row for r in study.judging.rows if r.rms > NOISE_RATIO * own[r.row]]
    if worse:
        out.append(
            f"In {listed(worse)} the rms error on the other motion is more than {NOISE_RATIO:g} times that on its own: the model may "
            "have fitted noise there, or the other motion shows something the model lacks."
        )
    told = any(r.kind == "contradiction" for r in study.verdict.reasons)
    if study.fit.residual_sigma > CONTRADICTION_SIGMA and not told:
        out.append(
            f"The rows contradict each other (σ of the weighted residual is {study.fit.residual_sigma:.2f}, 1 is right): "
            "something in the model, or in the scale of a sensor, is missing or wrong."
        )
    coloured = [row for row, w in study.whiteness.items() if not w.is_white]
    if coloured and not study.by_simulation:  # of forces
        allowed = study.fit.white_covariance is not None
        out.append(
            f"The residuals of {listed(coloured)} are correlated in time; the stated deviations "
            + ("allow for it." if allowed else "are too small where the covariance assumes white noise.")
        )
    return out
