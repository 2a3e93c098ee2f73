"""What a drive of the buggy looks like: the replay, the ways over the ground with the fixes of the receiver, and errors with bands."""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.tree.recursion.kinematics import Posture
from veridyn.model.machine import Machine
from veridyn.papers.buggy.machine import CONTACT, CORNERS
from veridyn.papers.buggy.observers import UNITS, Scored
from veridyn.papers.buggy.study import BuggyRun, BuggyStudy
from veridyn.report.blocks import Animation, Figure
from veridyn.report.plots import Plot, Series, curves
from veridyn.spatial.rotations import matrix_of
from veridyn.view.scene import Layer, Meaning, scene, tree_layer

RIM = 12  # corners of a wheel
RING = 24  # corners of a band
CROSS = 0.25  # m, half the width of a fix
OTHER = 3  # the colour of another observer
CURVE_POINTS, FRAMES, FIXES = 900, 120, 25
MAGNIFIED = 500.0  # bands in the scene: a millimetre cannot be seen beside a vehicle


def buggy_layer(machine: Machine, x: Array, label: str, dashed: bool = False, meaning: Meaning | None = None) -> Layer:
    """The buggy at configurations (N, 7 + n): place, attitude and joints."""
    p, R, q = x[:, :3], matrix_of(x[:, 3:7]), x[:, 7:]
    lines = tree_layer(machine, q, label, position=p, rotation=R, dashed=dashed)
    points, edges = [np.asarray(lines.points)], list(lines.segments)
    first = points[0].shape[1]
    radius, turn = CONTACT["UNLOADED_RADIUS"], 2.0 * np.pi * np.arange(RIM) / RIM
    rim = radius * np.column_stack([np.cos(turn), np.zeros(RIM), np.sin(turn)])  # a wheel turns about its y axis
    poses = Posture(machine, q).frames()
    for corner in CORNERS:
        A, centre = poses[f"wheel_{corner}"]
        own = centre[:, None, :] + np.einsum("nij,kj->nki", A, rim)
        points.append(p[:, None, :] + np.einsum("nij,nkj->nki", R, own))
        edges += [(first + k, first + (k + 1) % RIM) for k in range(RIM)] + [(first, first + RIM // 2)]
        first += RIM
    return Layer(label, np.concatenate(points, axis=1), edges, dashed=dashed, meaning=meaning)


def fixes_layer(t: Array, heard: Array, fixes: Array, label: str) -> Layer:
    """Crosses at the `fixes` (k, 3) of a receiver, each from the time at which it was `heard` (k,); before that it lies on the last one."""
    arms = CROSS * np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    last = np.maximum(np.searchsorted(heard, t, side="right") - 1, 0)
    which = np.minimum(np.arange(len(heard))[None, :], last[:, None])  # (frames, k)
    points = (fixes[which][:, :, None, :] + arms).reshape(len(t), -1, 3)
    edges = [(4 * k + a, 4 * k + a + 1) for k in range(len(heard)) for a in (0, 2)]
    return Layer(label, points, edges, meaning="measured")


def band_layer(p: Array, covariance: Array, deviations: float, label: str) -> Layer:
    """A ring of so many deviations around places (frames, 3), by the covariance (frames, 2, 2) of x and y."""
    turn = 2.0 * np.pi * np.arange(RING) / RING
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    values, vectors = np.linalg.eigh(covariance)
    axes = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    flat = deviations * np.einsum("nij,kj->nki", axes, ring)
    points = p[:, None, :] + np.concatenate([flat, np.zeros((len(p), RING, 1))], axis=2)
    return Layer(label, points, [(k, (k + 1) % RING) for k in range(RING)], meaning="estimate")


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


def error_plot(score: Scored, other: Scored, state: str, quantity: str, corner: str = "") -> Plot:
    """The error of a state along a drive: the best observer's with its band, and another's behind it. `corner`: of which wheel it is."""
    error, sigma = score.of(state)
    seen = slice(None, None, max(1, len(score.t) // CURVE_POINTS))
    rough, _ = other.of(state)
    apart = slice(None, None, max(1, len(other.t) // CURVE_POINTS))
    size = 1.1 * float(max(np.quantile(np.abs(rough), 0.99), np.abs(error).max()))
    half = np.minimum(1.96 * sigma[seen], size)  # a band that is wider than the picture ends at its edge
    return curves(
        f"{f'{quantity} {corner}'.strip().replace('_', ' ')}, {UNITS[quantity]}",
        [
            Series("errorEKF", other.t[apart], rough[apart], colour=OTHER),
            Series("best observer", score.t[seen], error[seen], style="thick", band=(-half, half), colour="estimate"),
        ],
        "time, s",
        UNITS[quantity],
        y_range=(-size, size),
    )
