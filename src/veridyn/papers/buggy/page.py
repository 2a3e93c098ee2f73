"""The page of ``veridyn demo buggy``: Tables 5 and 6 of paper 003 on a buggy that can be built, and what its observers do without GPS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from scipy.stats import t as student_t

from veridyn.inference.verdict import Verdict
from veridyn.observe.consistency.findings import SEVERAL
from veridyn.papers.buggy.observers import COURSE_SIGMA, QUANTITIES
from veridyn.papers.buggy.page_sections import (
    INPUT_LEAD,
    PRINTED_LEAD,
    coarse_blocks,
    coarse_lead,
    ground_blocks,
    ground_lead,
    input_blocks,
    paths,
    printed_blocks,
    replay,
    run_blocks,
    traced,
)
from veridyn.papers.buggy.state_figures import CURVE_POINTS, OTHER, STATES
from veridyn.papers.buggy.study import (
    FULL,
    GYRO_BIAS,
    HEAD_WIND,
    TABLES,
    TRUE_RESISTANCE,
    WRONG_RESISTANCE,
    YAW_ERROR,
    BuggyStudy,
)
from veridyn.papers.buggy.trials import FaultRun, Outage
from veridyn.papers.requirements import Requirement, at_least, reasons_of
from veridyn.report import number
from veridyn.report.blocks import Block, Figure, Key, Section, Table, Text
from veridyn.report.page import page
from veridyn.report.plots import Plot, Series, curves
from veridyn.studies.result import Result

KINDS = {"straight": "Straight on (Table 5)", "circular": "Circle (Table 6)"}
ASIDE = ("y", "yd", "yaw", "yaw_rate")  # quantities that a symmetric vehicle would have nothing of
NEES_BAND = (0.75, 1.25)
LEVEL = 0.95  # of the interval of a mean NEES, which decides nothing where it is wider than the band


def buggy_page(study: BuggyStudy, result: Result, command: str) -> str:
    """The whole page."""
    f, circle = study.figures, study.runs["circular"]
    keys = [
        Key(f"{1000 * f['rms_circular_x']:.2g} mm", "rms of x on the circle, best observer"),
        Key(f"{f['rms_circular_x_plain']:.1f} m", "the same, model left to itself"),
        Key(number(f["nees"], 3), "NEES per state (ideal 1)"),
        Key(f"{100 * f['share_inside_three_sigma_outage']:.0f} %", "vehicles that stay inside 3σ without GPS"),
        Key(f"{f['real_time_factor_tree']:.1f}×", "real time, errorEKF on the closed tree, one core"),
        Key(f"{f['real_time_factor_natural']:.1f}×", "the same in natural coordinates, index-3 steps"),
    ]
    sections = [
        Section(
            "The drive",
            [replay(study, circle), paths(circle)],
            "The true buggy, the best observer's estimate of it, and the model left to itself, whose tyres resist twice as much.",
        ),
        *(Section(KINDS[kind], run_blocks(kind, run), _lead(study)) for kind, run in study.runs.items()),
        Section("Hubs that are not straight", [*_misaligned(study), _aside(study)], "Course over ground is not yaw."),
        Section("Without GPS", _outage(study), _outage_lead(study)),
        Section("Three turns over uneven ground (Table 7)", ground_blocks(study.ground), ground_lead(study.ground)),
        Section("With a receiver of a metre (Table 8)", coarse_blocks(study.ground), coarse_lead(study.ground)),
        Section("Measured inputs, and braking", input_blocks(study.braked), INPUT_LEAD),
        Section("Rows of H as printed", printed_blocks(study.printed), PRINTED_LEAD),
        Section("A sensor fails", [_failing(study)], _failing_lead(study)),
        Section("When something else is wrong", [_other(study)], "Each on the same drives; best observer unless said."),
    ]
    settings = {
        "truth": f"Magic Formula tyres with relaxation, rolling resistance {TRUE_RESISTANCE:g}, stepped at 1 ms",
        "model of the observers": f"the same with {WRONG_RESISTANCE:g}, stepped at 2 ms; known start",
        "sensors": "GPS 0.02 m and 0.1 m/s at 50 Hz; gyroscope 2e-4 rad/s, accelerometer 0.5 m/s², 40 holes a wheel at 500 Hz",
        "logs": f"seeds {study.seeds[0]} to {study.seeds[-1]}",
    }
    return page(
        "Observers on a buggy: from GPS to tyres", buggy_verdict(study), keys, sections, result, command, settings
    )


def buggy_verdict(study: BuggyStudy) -> Verdict:
    """By the study's own figures."""
    f = study.figures
    below = all(study.runs[k].rms("force", q) <= TABLES[k][q] for k in study.runs for q in QUANTITIES)
    # In the first half second NEES is far above one, and in a shorter drive that weighs more: it is not the figure of the full run.
    consistent = consistency(f, study.extent.further) if study.extent.duration >= FULL.duration else None
    seconds = study.extent.silent[1] - study.extent.silent[0]
    better = f["rms_circular_xd_error_ekf"] / f["rms_circular_xd"]
    findings = [
        f"On the circle the model left to itself is {number(f['rms_circular_x_plain'], 3)} m off in x (rms); the errorEKF is "
        f"{1000 * f['rms_circular_x_error_ekf']:.1f} mm off, the one with forces {1000 * f['rms_circular_x_force']:.1f} mm, and the best "
        f"observer {1000 * f['rms_circular_x']:.2f} mm.",
        f"With estimated forces every quantity is {'within' if below else 'not within'} the errors that the thesis reports; "
        f"with exact derivatives the speed is {better:.0f} times better than by our own errorEKF.",
        f"NEES per state of the best observer on further logs, which assumes that its equations are exact: {number(f['nees'], 3)} (ideal 1)"
        + (
            "."
            if consistent is not None
            else f", of {study.extent.further} logs of {study.extent.duration:g} s: too few to judge it."
        ),
        f"{100 * f['share_sensor_faults_named']:.0f} % of the sensors that fail in turn are named by their innovations.",
        f"{seconds:g} seconds without GPS: {1000 * f['rms_outage_end']:.1f} mm off at the end (rms), where the observer says "
        f"{1000 * f['sigma_outage_end']:.1f} mm.",
    ]
    may = ["Position, yaw, speeds and wheel angles within the bands of the best observer."] if consistent else []
    may_not = [] if consistent else ["The bands of the best observer as they stand."]
    if consistent is None:
        may_not = ["The bands of the best observer before a full run has judged them."]
    may_not.append("A claim about the vehicle of the thesis: its geometry and its log were never published.")
    unjudged = "Its bands are not judged." if consistent is None else "Its bands are not those of its errors."
    requirements = (
        Requirement(below, "A quantity is further off than the thesis reports.", "poor"),
        Requirement(bool(consistent), unjudged),
        at_least("Share of the vehicles inside 3σ without GPS", f["share_inside_three_sigma_outage"], 0.95),
    )
    headline = "The model runs beside its sensors, and knows how far it is from the truth."
    if consistent is None:
        headline = (
            "The model follows the vehicle closely; whether its bands are those of its errors, the full run says."
        )
    elif not consistent:
        headline = "The model follows the vehicle closely, but its bands are not those of its errors."
    found = Verdict("good", headline, tuple(findings), tuple(may), tuple(may_not))
    return found.with_reasons(reasons_of(requirements))


def consistency(figures: Mapping[str, float], logs: int) -> bool | None:
    """Whether the mean NEES lies in its band; None where the logs are too few to say: their interval is wider than the band."""
    half = float(student_t.ppf(0.5 + 0.5 * LEVEL, logs - 1)) * figures["nees_sigma"] if logs > 1 else math.inf
    if 2.0 * half > NEES_BAND[1] - NEES_BAND[0]:
        return None
    return NEES_BAND[0] <= figures["nees"] <= NEES_BAND[1]


def _lead(study: BuggyStudy) -> str:
    logs = len(study.seeds)
    return f"Mean over {logs} log{'s' if logs > 1 else ''} that differ by the noise of the sensors; first 20 samples left out, worst wheel."


def _misaligned(study: BuggyStudy) -> list[Block]:
    f = study.figures
    course, own, best = (
        1000.0 * f[f"rms_misaligned_{name}"] for name in ("course_less_yaw", "yaw_error_ekf", "yaw_ekf")
    )
    text = (
        "With the hubs turned as on the thesis' vehicle the rack must be held at 4 mm to go straight, and the vehicle goes slightly "
        f"sideways: course less yaw is {number(course, 2)} mrad rms. The errorEKF takes the course for the yaw, as a reading with a "
        f"deviation of {1000.0 * COURSE_SIGMA:g} mrad beside the gyroscope and a known start; its own yaw is {number(own, 2)} mrad off, "
        f"{number(100.0 * own / course, 2)} % of that error. The best observer, which knows the vehicle and does not take the course for "
        f"the yaw, is {number(best, 2)} mrad off."
    )
    return [Text(text)]


def _aside(study: BuggyStudy) -> Figure:
    shown = {label: state for label, state in STATES.items() if label in ASIDE}
    return traced("Estimates and errors, first log (Figs. 36, 38, 47 and 48)", study.misaligned, shown)


def _outage_lead(study: BuggyStudy) -> str:
    count, e = len(study.outages), study.extent
    return (
        f"{count} vehicle{'s' if count > 1 else ''}, each with another rolling resistance, tyre radii, tyre stiffnesses and mass, on a "
        f"circle of {e.outage:g} s; the receiver is silent from {e.silent[0]:g} to {e.silent[1]:g} s."
    )


def _outage(study: BuggyStudy) -> list[Block]:
    f = study.figures
    plots = [_outage_plot(study.outages, state, label) for state, label in (("base.x", "x"), ("base.y", "y"))]
    text = (
        "The vehicles have the equations of the observer and other numbers, which it assumes. "
        f"{100 * f['share_inside_three_sigma_outage']:.0f} % of them stay inside three deviations in x and y. At the end of the "
        f"silence they are {1000 * f['rms_outage_end']:.1f} mm off (rms), with a stated deviation of {1000 * f['sigma_outage_end']:.1f} mm."
    )
    return [Figure(plots, "Errors", "Shaded: ±3 σ of the first vehicle's observer."), Text(text)]


def _outage_plot(every: Sequence[Outage], state: str, label: str) -> Plot:
    first = every[0].score
    thin = slice(None, None, max(1, len(first.t) // CURVE_POINTS))
    _, sigma = first.of(state)
    series = [
        Series(
            "first vehicle" if k == 0 else "the others" if k == 1 else "",
            run.score.t[thin],
            run.score.of(state)[0][thin],
            style="thick" if k == 0 else "line",
            band=(-3.0 * sigma[thin], 3.0 * sigma[thin]) if k == 0 else None,
            colour="estimate" if k == 0 else OTHER,
        )
        for k, run in enumerate(every)
    ]
    return curves(f"error of {label}", series[::-1], "time, s", "m")


def _failing_lead(study: BuggyStudy) -> str:
    begins = study.faults[0].begins
    return (
        f"Each sensor of the buggy in turn is wrong from {begins:g} s on. The observer knows nothing of it: what it reports comes from its "
        "innovations, and a gate keeps it from using the rest."
    )


def _failing(study: BuggyStudy) -> Table:
    rows = []
    for run in study.faults:
        what = "nothing" if run.fault is None else f"{run.fault.sensor}: {run.fault.how}"
        rows.append((what, _reported(run), number(run.rms("x"), 2), number(run.rms("yaw"), 2)))
    caption = (
        "Errors are rms from the fault on. Drive torque and rack are inputs: they have no innovations of their own."
    )
    return Table(("what fails", "what the observer reports", "x, m", "yaw, rad"), rows, caption, left=(0, 1))


def _reported(run: FaultRun) -> str:
    findings = run.findings
    if not findings:
        return "nothing"
    if len(findings) >= SEVERAL:
        return f"{len(findings)} sensors at once do not fit the model: look at what acts on it (torque, rack)"
    return "; ".join(f"{f.sensor} {f.what}, from {f.since:.2f} s" for f in findings)


def _other(study: BuggyStudy) -> Table:
    f = study.figures
    white = {1.0: "white", 0.0: "not white"}
    rows = [
        ("GPS of 1 m", f"x {1000 * f['rms_coarse_gps_x']:.2f} mm, y {1000 * f['rms_coarse_gps_y']:.2f} mm rms"),
        (
            f"start yaw {YAW_ERROR:g} rad wrong, gyroscope biased by {GYRO_BIAS:g} rad/s",
            f"yaw {1000 * f['rms_wrong_start_yaw']:.2f} mrad rms after 5 s",
        ),
        (
            f"head wind of {abs(HEAD_WIND):.0f} N",
            f"innovations of the GPS: errorEKF {white[f['white_in_wind_error_ekf']]}, with forces "
            f"{white[f['white_in_wind_force']]}",
        ),
    ]
    return Table(("what", "found"), rows, left=(0, 1))
