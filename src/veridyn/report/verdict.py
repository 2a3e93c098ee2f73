"""What a study means, in plain words and with its scope: what was identified, how well, and what it may and may not be used for.

A fit by output error is judged by its simulation of data that it was not fitted to, coordinate by coordinate.
"""

from __future__ import annotations

import math

import numpy as np

from veridyn.inference.error_measures import MIN_SIGNAL_TO_NOISE, RowReport
from veridyn.inference.finding import CONTRADICTION
from veridyn.inference.verdict import Verdict
from veridyn.report import count, listed, number, percent, unit_text
from veridyn.report.blocks import Block, Section, Table, Text
from veridyn.studies.identification import IdentificationStudy

SIMULATION_HEAD = ("coordinate", "unit", "% of std, validation", "training", "% of rms, validation", "rms error", "std")
CLOSE, USEFUL = (
    5.0,
    15.0,
)  # percent of the force's standard deviation, beyond noise, on held-out data: "closely", "usefully"
MIN_ROW_SHARE = (
    0.05  # of the largest standard deviation of its unit: what a row must carry to decide the grade (chosen)
)
NOISE_RATIO = 1.5  # times the rms error on its own motion: more than this is not noise
WITHIN_TWO = 0.9545  # of normal errors are within two standard deviations
MAX_SHIFT = 3.0  # deviations of a parameter: its stated deviation is not true with more
CONTRADICTION_SIGMA = 1.1  # σ of (26) above which the rows contradict each other


def simulation_lines(study: IdentificationStudy) -> list[tuple[str, ...]]:
    """A line for each coordinate that is compared: its errors on the validation data, and on the training data beside."""
    own = {r.row: r for r in study.judging_own.rows}
    return [
        (
            r.row,
            unit_text(r.unit),
            percent(100.0 * r.std_error),
            percent(100.0 * own[r.row].std_error),
            percent(100.0 * r.relative_error),
            number(r.rms, 3),
            number(r.measured_std, 3),
        )
        for r in study.judging.rows
    ]


def simulation_section(study: IdentificationStudy) -> list[Section]:
    """The section of a report; none where the fit was not made by simulation."""
    settings = study.fit.replay_settings
    if settings is None:
        return []
    compared = "coordinates" if settings.law is None else "forces of the closed loop"
    lead = (
        f"The fit compares {compared} with a simulation, and is judged by one: {settings.words}, each from the measured state. "
        "The forces below are those of inverse dynamics, which it does not use."
    )
    failed: list[Block] = [Text(f"The validation data cannot be simulated: {study.not_simulated}.")]
    blocks = (
        failed if study.not_simulated else [Table(SIMULATION_HEAD, simulation_lines(study), left=(1,), strong=(2,))]
    )
    return [Section("Simulation of the validation data", blocks, lead)]


def verdict(study: IdentificationStudy, doubtful: bool = False) -> Verdict:
    """Judge a study by its own figures: what noise of the measurement does not explain, on samples that the fit did not use.

    `doubtful`: possible faults are named, so that predictions of like motions stand and values are not quoted.
    Forces of inverse dynamics or, where the fit was made by simulation, simulated coordinates.
    """
    error = 100.0 * max((r.error_beyond_noise for r in carrying(study)), default=math.nan)
    grade = "good" if error < CLOSE else "fair" if error < USEFUL else "poor"
    name = study.model.name
    if study.held_out < 1.0:
        grade = "fair" if grade == "good" else grade
        headline = {
            "fair": f"The model “{name}” fits samples that were used to identify it; whether it predicts others is not known.",
            "poor": f"The model “{name}” does not fit the samples it is judged by, though the fit used them.",
        }[grade]
    else:
        headline = {
            "good": f"The model “{name}” is identified, and it predicts motion not used for the fit.",
            "fair": f"The model “{name}” is identified; on motion not used for the fit it is roughly right.",
            "poor": f"The model “{name}” does not yet predict motion not used for the fit.",
        }[grade]
    against = contradicted(study)
    if against and grade == "good":
        grade = "fair"
        headline = (
            f"The model “{name}” predicts motion not used for the fit, but its parameters are in doubt: {against}."
        )
    if study.unjudged:
        headline = f"The model “{name}” cannot be judged: {study.unjudged}."
    return Verdict(
        grade, headline, tuple(_findings(study)), tuple(_may(study, grade, doubtful)), tuple(_may_not(study, doubtful))
    )


def grade_rule(study: IdentificationStudy) -> str:
    """How the grade follows from the figures, for those who check it."""
    worst = 100.0 * max((r.error_beyond_noise for r in carrying(study)), default=math.nan)
    what = "simulated coordinates" if study.by_simulation else "forces"
    return (
        f"largest error of {what} beyond noise {percent(worst)} % of the standard deviation of what was measured; good below "
        f"{CLOSE:g} %, fair below {USEFUL:g} %; good becomes fair where validation samples were used for the fit, where a finding of rank "
        f"one moves a parameter by more than {MAX_SHIFT:g} deviations, where rows contradict each other, or where a possible fault "
        "is named; a limit of the study file that is missed makes it poor"
    )


def contradicted(study: IdentificationStudy) -> str:
    """What speaks against the parameters, in a few words: a cause of rank one that moves one of them by more than `MAX_SHIFT`, or rows
    that contradict each other; empty where nothing does."""
    first = next((f for f in study.fit.findings if f.rank == 1), None)
    if first is not None and first.shift > MAX_SHIFT:
        return f"{first.cause} of {first.place} moves {first.moves} by {first.shift:.2g} deviations"
    if any(f.cause == CONTRADICTION for f in study.fit.findings):
        return "the rows of its equations contradict each other"
    return ""


def carrying(study: IdentificationStudy) -> tuple[RowReport, ...]:
    """Judged rows of the validation data that vary by at least MIN_ROW_SHARE of what the largest row of the same unit does."""
    most: dict[str, float] = {}
    for r in study.judging.rows:
        most[r.unit] = max(most.get(r.unit, 0.0), r.measured_std)
    return tuple(r for r in study.judging.rows if r.judged and r.measured_std > MIN_ROW_SHARE * most[r.unit])


def _findings(study: IdentificationStudy) -> list[str]:
    f, fit = study.figures, study.fit
    well = int(f["well_identified"])
    total = fit.base.count
    out = [
        f"Of {int(f['parameters_estimated'])} parameters to be estimated, {study.structure.count} combinations are identifiable; "
        + ("this motion excites all of them. " if total == study.structure.count else f"this motion excites {total}. ")
        + f"{well} of {total} are known to better than 10 % (one standard deviation)."
    ]
    worst = max(carrying(study), key=lambda r: r.std_error, default=None)
    if worst is not None:
        out.append(_errors(study, worst))
    if study.held_out == 0.0:
        out.append(
            "Every sample was used for the fit and none was kept for validation: these errors say nothing of other motion."
        )
    elif study.held_out < 1.0:
        out.append(
            f"Only {100 * study.held_out:.0f} % of the validation samples were not used for the fit, so the errors say little of "
            "other motion."
        )
    noisy = [r for r in study.judging.rows if not r.judged]
    if noisy and not study.unjudged:
        rows = listed([f"{r.row} (rms error {number(r.rms, 2)} {unit_text(r.unit)})" for r in noisy])
        what = "position" if study.by_simulation else "force"
        out.append(
            f"Not judged, because the measured {what} varies by less than {MIN_SIGNAL_TO_NOISE:g} times its noise: {rows}."
        )
    idle = [r for r in study.judging.rows if r.judged and r not in carrying(study) and 100.0 * r.std_error > CLOSE]
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
            + (" The stated deviations are too small." if _too_small(study) else "")
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
    if study.fit.residual_sigma > CONTRADICTION_SIGMA:
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


def _may(study: IdentificationStudy, grade: str, doubtful: bool) -> list[str]:
    if study.unjudged:
        return ["Planning a validation: record a motion that is not used for the fit, and in which every joint moves."]
    if grade == "poor":
        return ["Finding out what the model lacks: see where the difference between measured and predicted is largest."]
    machine, speed = study.model, np.abs(study.training.qd).max(axis=0)
    units = {"turning": "rad/s", "sliding": "m/s"}
    own = [
        f"{machine.coordinates[k]}\N{NO-BREAK SPACE}{number(speed[k], 2)} {units[machine.coordinate_kinds[k]]}"
        for k in machine.independent
    ]
    reach = listed(own, 8)
    if study.fit.replay_settings is not None:
        use = f"Simulating motions like those recorded, {study.fit.replay_settings.words}"
    else:
        use = "Computing the forces of motions like those recorded (feed-forward control, sizing of drives, noticing contact)"
    out = [f"{use}, up to the speeds seen: {reach}."]
    well = study.fit.well_identified()
    if well and not doubtful:
        trust = (
            ", with their deviations." if not _too_small(study) else "; their true deviations are larger than stated."
        )
        out.append(f"Quoting the {count(len(well), 'parameter')} with σ below 10 %{trust}")
    if (
        study.inessential and not study.reduced_is_worse and not study.by_simulation
    ):  # decided by least squares on forces
        out.append(
            f"Leaving out {listed(study.inessential)}, if a smaller model is wanted: zero explains the data as well, and the worst "
            f"row is then off by {percent(study.figures['worst_cross_validation_essential_percent'])} %."
        )
    return out


def _too_small(study: IdentificationStudy) -> bool:
    """Whether fewer true values lie within 2σ than chance explains: three deviations of a binomial share below 95.4 %."""
    share = study.figures.get("share_inside_two_sigma", 1.0)
    return share < WITHIN_TWO - 3.0 * math.sqrt(WITHIN_TWO * (1.0 - WITHIN_TWO) / len(study.truth))


def _may_not(study: IdentificationStudy, doubtful: bool) -> list[str]:
    out = ["The values of parameters, before the possible faults below are cleared up."] if doubtful else []
    groups = study.fit.base.relations()
    if groups:
        out.append(
            f"Mass or inertia of single bodies, where they are known only in one of the {count(len(groups), 'sum')} listed below: "
            "within a sum the split is that of the prior and not of the data."
        )
    poor = [n for n in study.fit.names if n not in set(study.fit.well_identified())]
    if poor:
        out.append(
            f"The values of {listed(poor)}: their deviations are large beside them, because they are small or the motion hardly shows them."
        )
    if study.reduced_is_worse:
        full, less = (percent(100.0 * v.relative_error) for v in (study.check, study.essential_check))
        out.append(
            f"The reduced model without {listed(study.inessential)}: on {study.judged_on} it is off by {less} %, the full one by {full} %."
        )
    out.append("Faster motions, another tool or load, or friction at another temperature, without recording again.")
    if np.isfinite(study.truth).any():
        out.append("Any statement about a real machine: everything here was simulated.")
    return out
