"""What a drive of the buggy looks like: the replay, the ways over the ground with the fixes of the receiver, and errors with bands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.report.blocks import Animation, Figure
from veridyn.report.drawing import Plot
from veridyn.report.plots import Series, curves
from veridyn.studies.papers.buggy.scores import UNITS, Scored
from veridyn.studies.papers.buggy.study import BuggyRun, BuggyStudy
from veridyn.view.buggy import band_layer, buggy_layer, fixes_layer
from veridyn.view.scene import scene

Array = NDArray[np.float64]
OTHER = 3  # the colour of another observer
CURVE_POINTS, FRAMES, FIXES = 900, 120, 25
MAGNIFIED = 500.0  # bands in the scene: a millimetre cannot be seen beside a vehicle


def paths(run: BuggyRun) -> Figure:
    """The ways over the ground with the fixes of the receiver, and what the observer makes of these."""
    thin = slice(None, None, max(1, len(run.truth.t) // CURVE_POINTS))
    q = run.example.x
    shown = slice(None, None, max(1, len(q) // CURVE_POINTS))
    _, fixes = _fixes(run, 2 * FIXES)
    way = curves(
        "way over the ground",
        [
            Series("GPS", fixes[:, 0], fixes[:, 1], style="dots", colour="measured"),
            Series("model alone", run.plain.q[thin, 0], run.plain.q[thin, 1], colour="plain"),
            Series("best observer", q[shown, 0], q[shown, 1], style="thick", colour="estimate"),
            Series("truth", run.truth.q[thin, 0], run.truth.q[thin, 1], style="dashed", colour="truth"),
        ],
        "x, m",
        "y, m",
    )
    exact = run.truth.readings([s for s in run.truth.machine.sensors if s.name == "gps"])["gps.x"]
    score = run.scores["ekf"][0]
    error, sigma = score.of("base.x")
    seen = slice(None, None, max(1, len(score.t) // CURVE_POINTS))
    errors = curves(
        "x, m",
        [
            Series("GPS", exact.t, run.log["gps.x"].values - exact.values, style="dots", colour="measured"),
            Series(
                "best observer",
                score.t[seen],
                error[seen],
                style="thick",
                band=(-1.96 * sigma[seen], 1.96 * sigma[seen]),
                colour="estimate",
            ),
        ],
        "time, s",
        "m",
    )
    caption = "Left: every so many fixes. Right: errors of all fixes at the antenna, and of the observer with its band (±1.96 σ)."
    return Figure([way, errors], "Way over the ground, and errors of GPS and observer", caption)


def _fixes(run: BuggyRun, most: int) -> tuple[Array, Array]:
    """Times (k,) and places (k, 3) of at most so many fixes of the receiver."""
    channels = [run.log[f"gps.{axis}"] for axis in "xyz"]
    some = slice(None, None, max(1, -(-len(channels[0]) // most)))
    return channels[0].t[some], np.column_stack([c.values[some] for c in channels])


def replay(study: BuggyStudy, run: BuggyRun) -> Animation:
    machine = study.model
    at = np.linspace(0, len(run.truth.t) - 1, FRAMES).astype(int)
    stamps = np.searchsorted(run.example.t, run.truth.t[at]).clip(0, len(run.example.t) - 1)
    estimated = run.example.x[stamps][:, : run.truth.q.shape[1]]
    place = run.example.place[stamps]
    layers = [
        buggy_layer(machine, estimated, "best observer", dashed=True, meaning="estimate"),
        buggy_layer(machine, run.truth.q[at], "truth", meaning="truth"),
        buggy_layer(machine, run.plain.q[at], "model alone", meaning="plain"),
        fixes_layer(run.truth.t[at], *_fixes(run, FIXES), "GPS"),
        band_layer(estimated[:, :3], place, 3.0 * MAGNIFIED, f"3 σ of the observer, {MAGNIFIED:g} times"),
    ]
    return Animation(
        scene(run.truth.t[at], layers, "the circle", view=(-60.0, 30.0)),
        "The true vehicle, the observed one on top of it, and the model left behind; crosses are fixes of the receiver as they come in, "
        f"the ring is where the observer says it may be, {MAGNIFIED:g} times as wide.",
    )


def error_plot(score: Scored, other: Scored, state: str, quantity: str) -> Plot:
    """The error of a state along a drive: the best observer's with its band, and another's behind it."""
    error, sigma = score.of(state)
    seen = slice(None, None, max(1, len(score.t) // CURVE_POINTS))
    rough, _ = other.of(state)
    apart = slice(None, None, max(1, len(other.t) // CURVE_POINTS))
    size = 1.1 * float(max(np.quantile(np.abs(rough), 0.99), np.abs(error).max()))
    half = np.minimum(1.96 * sigma[seen], size)  # a band that is wider than the picture ends at its edge
    return curves(
        f"{quantity.replace('_', ' ')}, {UNITS[quantity]}",
        [
            Series("errorEKF", other.t[apart], rough[apart], colour=OTHER),
            Series("best observer", score.t[seen], error[seen], style="thick", band=(-half, half), colour="estimate"),
        ],
        "time, s",
        UNITS[quantity],
        y_range=(-size, size),
    )
