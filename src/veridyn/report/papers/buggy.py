"""The page of ``veridyn demo buggy``: Tables 5 and 6 of paper 003 on a buggy that can be built, and what its observers do without GPS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.machines.buggy import CORNERS
from veridyn.report.blocks import Animation, Block, Figure, Key, Section, Table, Text, Verdict
from veridyn.report.drawing import Plot
from veridyn.report.page import page
from veridyn.report.plots import Series, curves
from veridyn.report.words import number
from veridyn.studies.papers.buggy.outage import Outage
from veridyn.studies.papers.buggy.scores import QUANTITIES, UNITS, Scored
from veridyn.studies.papers.buggy.study import (
    GYRO_BIAS,
    HEAD_WIND,
    TABLES,
    TRUE_RESISTANCE,
    WRONG_RESISTANCE,
    YAW_ERROR,
    BuggyRun,
    BuggyStudy,
)
from veridyn.studies.result import Result
from veridyn.view.buggy import buggy_layer
from veridyn.view.scene import scene

Array = NDArray[np.float64]
WORDS = {"error_ekf": "errorEKF", "force": "with forces", "ekf": "EKF, exact derivatives"}
KINDS = {"straight": "Straight on (Table 5)", "circular": "Circle (Table 6)"}
BEST, TRUTH, PLAIN, OTHER = 0, 1, 2, 3  # colours, in plots and as layers of the scene
CURVE_POINTS, FRAMES = 900, 120
SHOWN = {"x": "base.x", "y": "base.y", "yaw": "base.yaw", "xd": "base.vx"}
NEES_BAND = (0.75, 1.25)


def buggy_page(study: BuggyStudy, result: Result, command: str) -> str:
    """The whole page."""
    f, circle = study.figures, study.runs["circular"]
    keys = [
        Key(f"{1000 * f['rms_circular_x']:.2g} mm", "rms of x on the circle, best observer"),
        Key(f"{f['rms_circular_x_plain']:.1f} m", "the same, model left to itself"),
        Key(number(f["nees"], 3), "NEES per state (ideal 1)"),
        Key(
            f"{100 * f['share_inside_three_sigma_outage']:.0f} %",
            "vehicles that stay inside 3σ without GPS",
        ),
        Key(f"{f['real_time_factor_tree']:.1f}×", "real time, errorEKF on the closed tree, one core"),
        Key(f"{f['real_time_factor_natural']:.1f}×", "the same in natural coordinates, index-3 steps"),
    ]
    sections = [
        Section(
            "The drive",
            [_animation(study, circle), _paths(circle)],
            "The true buggy, the one that the best observer believes in, and the model left to itself, whose tyres resist twice as much.",
        ),
        *(Section(KINDS[kind], _run(kind, run), _lead(study)) for kind, run in study.runs.items()),
        Section("Hubs that are not straight", _misaligned(study), "Course over ground is not yaw."),
        Section("Without GPS", _outage(study), _outage_lead(study)),
        Section(
            "When something else is wrong", [_faults(study)], "Each on the same drives; best observer unless said."
        ),
    ]
    settings = {
        "truth": f"Magic Formula tyres with relaxation, rolling resistance {TRUE_RESISTANCE:g}, stepped at 1 ms",
        "model": f"the same with {WRONG_RESISTANCE:g}, stepped at 2 ms; known start",
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
    consistent = NEES_BAND[0] <= f["nees"] <= NEES_BAND[1]
    held = f["share_inside_three_sigma_outage"] >= 0.95
    seconds = study.extent.silent[1] - study.extent.silent[0]
    better = f["rms_circular_xd_error_ekf"] / f["rms_circular_xd"]
    findings = [
        f"On the circle the model left to itself is {number(f['rms_circular_x_plain'], 3)} m off in x (rms); the errorEKF is "
        f"{1000 * f['rms_circular_x_error_ekf']:.1f} mm off, the one with forces {1000 * f['rms_circular_x_force']:.1f} mm, and the best "
        f"observer {1000 * f['rms_circular_x']:.2f} mm.",
        f"With estimated forces every quantity is {'within' if below else 'not within'} the errors that the thesis reports; "
        f"with exact derivatives the speed is {better:.0f} times better than by our own errorEKF.",
        f"NEES per state of the best observer on further logs: {number(f['nees'], 3)} (ideal 1).",
        f"{seconds:g} seconds without GPS: {1000 * f['rms_outage_end']:.1f} mm off at the end (rms), where the observer says "
        f"{1000 * f['sigma_outage_end']:.1f} mm.",
    ]
    may = ["Position, yaw, speeds and wheel angles within the bands of the best observer."] if consistent else []
    may_not = [] if consistent else ["The bands of the best observer as they stand."]
    may_not.append("A claim about the vehicle of the thesis: its geometry and its log were never published.")
    good = below and consistent and held
    headline = "The model runs beside its sensors, and knows how far it is from the truth."
    if not consistent:
        headline = "The model follows the vehicle closely, but its bands are not those of its errors."
    return Verdict(
        "good" if good else "fair" if below else "poor", headline, tuple(findings), tuple(may), tuple(may_not)
    )


def _lead(study: BuggyStudy) -> str:
    logs = len(study.seeds)
    return f"Mean over {logs} log{'s' if logs > 1 else ''} that differ by the noise of the sensors; first 20 samples left out, worst wheel."


def _run(kind: str, run: BuggyRun) -> list[Block]:
    rows = [
        (
            quantity.replace("_", " "),
            UNITS[quantity],
            number(run.plain_rms(quantity), 3),
            number(TABLES[kind][quantity], 3),
            *(number(run.rms(name, quantity), 2) for name in WORDS),
        )
        for quantity in QUANTITIES
    ]
    columns = ("rms", "unit", "model alone", "thesis", *WORDS.values())
    caption = "The thesis drives another vehicle: its wheels are smaller, and its course is not its yaw. Its errors are context."
    return [Table(columns, rows, caption, strong=(6,)), *_curves(run)]


def _curves(run: BuggyRun) -> list[Block]:
    score, other = run.scores["ekf"][0], run.scores["error_ekf"][0]
    plots = [_error(score, other, name, quantity) for quantity, name in SHOWN.items()]
    wheel = [
        _error(score, other, f"spin_{CORNERS[2]}{end}", q) for q, end in (("wheel_angle", ""), ("wheel_speed", "_dot"))
    ]
    return [Figure([*plots, *wheel], "Errors, first log", "Shaded: what the best observer says of itself, ±1.96 σ.")]


def _error(score: Scored, other: Scored, state: str, quantity: str) -> Plot:
    error, sigma = score.of(state)
    seen = slice(None, None, max(1, len(score.t) // CURVE_POINTS))
    band = (-1.96 * sigma[seen], 1.96 * sigma[seen])
    rough, _ = other.of(state)
    apart = slice(None, None, max(1, len(other.t) // CURVE_POINTS))
    size = 1.1 * float(max(np.quantile(np.abs(rough), 0.99), np.abs(error).max()))
    return curves(
        f"{quantity.replace('_', ' ')}, {UNITS[quantity]}",
        [
            Series("errorEKF", other.t[apart], rough[apart], colour=OTHER),
            Series("best observer", score.t[seen], error[seen], style="thick", band=band, colour=BEST),
        ],
        "time, s",
        UNITS[quantity],
        y_range=(-size, size),
    )


def _paths(run: BuggyRun) -> Figure:
    """The ways over the ground."""
    thin = slice(None, None, max(1, len(run.truth.t) // CURVE_POINTS))
    q = np.asarray(run.example.track.x)
    believed = slice(None, None, max(1, len(q) // CURVE_POINTS))
    plot = curves(
        "way over the ground",
        [
            Series("model alone", run.plain.q[thin, 0], run.plain.q[thin, 1], colour=PLAIN),
            Series("best observer", q[believed, 0], q[believed, 1], style="thick", colour=BEST),
            Series("truth", run.truth.q[thin, 0], run.truth.q[thin, 1], style="dashed", colour=TRUTH),
        ],
        "x, m",
        "y, m",
    )
    return Figure([plot], "Way over the ground")


def _animation(study: BuggyStudy, run: BuggyRun) -> Animation:
    tree = study.model.tree
    at = np.linspace(0, len(run.truth.t) - 1, FRAMES).astype(int)
    stamps = np.searchsorted(run.example.estimates.t, run.truth.t[at]).clip(0, len(run.example.estimates.t) - 1)
    believed = np.asarray(run.example.track.x)[stamps][:, : run.truth.q.shape[1]]
    layers = [
        buggy_layer(tree, believed, "best observer", dashed=True),
        buggy_layer(tree, run.truth.q[at], "truth"),
        buggy_layer(tree, run.plain.q[at], "model alone"),
    ]
    return Animation(
        scene(run.truth.t[at], layers, "the circle", view=(-60.0, 30.0)),
        "The true vehicle, the observed one on top of it, and the model left behind.",
    )


def _misaligned(study: BuggyStudy) -> list[Block]:
    f = study.figures
    text = (
        "With the hubs turned as on the thesis' vehicle the rack must be held at 4 mm to go straight, and the vehicle goes slightly "
        f"sideways: course less yaw is {1000 * f['rms_misaligned_course_less_yaw']:.1f} mrad rms. An observer that takes the course for "
        f"the yaw learns that error ({1000 * f['rms_misaligned_yaw_error_ekf']:.1f} mrad); one that knows the vehicle does not "
        f"({1000 * f['rms_misaligned_yaw_ekf']:.2f} mrad)."
    )
    return [Text(text)]


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
        f"{100 * f['share_inside_three_sigma_outage']:.0f} % of the vehicles stay inside three deviations in x and y. At the end of the "
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
            colour=BEST if k == 0 else OTHER,
        )
        for k, run in enumerate(every)
    ]
    return curves(f"error of {label}", series[::-1], "time, s", "m")


def _faults(study: BuggyStudy) -> Table:
    f = study.figures
    white = {1.0: "white", 0.0: "not white"}
    rows = [
        ("GPS of 1 m", f"x {f['rms_coarse_gps_x']:.3f} m, y {f['rms_coarse_gps_y']:.3f} m rms"),
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
