"""Sections of the buggy's report: Tables 5 to 8 of paper 003 beside the thesis', Fig. 24, ways over the ground, states and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.tree.recursion.kinematics import Posture
from veridyn.model.machine import Machine
from veridyn.papers.buggy.ground import COARSE_GPS, START_M, START_RAD, SURVEY_SIGMA, GroundRun
from veridyn.papers.buggy.machine import CONTACT, CORNERS
from veridyn.papers.buggy.observers import QUANTITIES, UNITS, Scored
from veridyn.papers.buggy.state_figures import CURVE_POINTS, STATES, error_plots, state_figure
from veridyn.papers.buggy.study import LARGEST, TABLES, BuggyRun, BuggyStudy
from veridyn.papers.buggy.tracking import SKIP
from veridyn.papers.buggy.trials import (
    NAMES,
    PRESSURE_SIGMA,
    RACK_SIGMA,
    TORQUE_GAIN,
    TORQUE_SIGMA,
    InputRun,
)
from veridyn.report import number
from veridyn.report.blocks import Animation, Block, Figure, Table
from veridyn.report.plots import Plot, Series, curves
from veridyn.spatial.rotations import matrix_of
from veridyn.view.scene import Layer, Meaning, scene, tree_layer

WORDS = {"error_ekf": "errorEKF", "force": "with forces", "ekf": "EKF, exact derivatives"}
OTHERS = {
    "error_ekf": "errorEKF: 20 states",
    "error_ekf_printed": "rows as printed (116)",
    "error_ekf_28": "28 states",
    "force_alone": "corrected by forces alone",
    "force": "by place, velocity and force",
}
REAL_DRIVE = {  # rms and largest errors of the thesis on its real drive, against its sensors: Table 7, then Table 8
    "x": ((0.0080, 0.1191), (0.0706, 0.4301)),
    "y": ((0.0081, 0.0987), (0.0759, 0.4364)),
    "xd": ((0.0725, 0.8319), (0.1142, 1.1579)),
    "yd": ((0.0799, 0.8664), (0.1247, 1.1850)),
    "wheel_angle": ((0.2061, 0.9354), (0.1930, 0.9863)),
    "yaw": ((0.0469, 0.2482), (0.0332, 0.2729)),
    "yaw_rate": ((0.0253, 0.1212), (0.0236, 0.1177)),
}
INPUT_LEAD = (
    "The thesis measures wheel torque, brake pressure and the rack. The buggy speeds up, rolls and brakes on a circle; torque, pressure "
    f"and rack are exact, or read with noise of {TORQUE_SIGMA:g} N·m (and a gain that is {100 * (TORQUE_GAIN - 1):.0f} % wrong), "
    f"{PRESSURE_SIGMA:g} bar and {1000 * RACK_SIGMA:g} mm. The observers are not told. One log."
)
PRINTED_LEAD = (
    "The thesis leaves parts of H out: of the accelerometer everything but the attitude (116), of the receiver's position the lever "
    f"arm (89). The errorEKF on the circle, from a yaw that is {np.rad2deg(START_RAD):.0f}° wrong and known to be uncertain, with either "
    "and both. One log."
)
PRINTED = {"full": "H the derivative of h", "116": "(116)", "89": "(89)", "both": "both"}
MILLI = ("yaw", "yaw_rate")  # quantities that tables have in thousandths of their unit
SAWTOOTH_S = 0.1  # s, of Fig. 24: five fixes of the receiver
Pair = tuple[float, float]


def both(pair: Pair | None, scale: float = 1.0) -> str:
    """Rms, and the largest error in brackets."""
    return "–" if pair is None else f"{number(scale * pair[0], 2)} ({number(scale * pair[1], 2)})"


def table_of(columns: Mapping[str, Callable[[str], Pair | None]], caption: str, last: bool = False) -> Table:
    """One row for each quantity, the worst wheel, with rms and largest error of each column; whether the `last` one matters most.

    Yaw and its rate are in thousandths, and units stand beside the names: a page has room for seven such columns.
    """
    rows = []
    for q in QUANTITIES:
        scale, unit = (1e3, f"m{UNITS[q]}") if q in MILLI else (1.0, UNITS[q])
        rows.append((f"{q.replace('_', ' ')}, {unit}", *(both(of(q), scale) for of in columns.values())))
    return Table(("rms (largest)", *columns), rows, caption, strong=(len(columns),) if last else ())


def errors_of(score: Scored, after: float = 0.0) -> Callable[[str], Pair]:
    """Quantity → rms and largest error from so many seconds on."""
    return lambda q: (score.rms(q, after), score.largest(q, after))


def run_blocks(kind: str, run: BuggyRun) -> list[Block]:
    """Table 5 or 6 beside the thesis', the other observers of the thesis, all errors, and the sawtooth of Fig. 24."""

    def of(name: str) -> Callable[[str], Pair]:
        return lambda q: (run.rms(name, q), run.largest(name, q))

    columns: dict[str, Callable[[str], Pair | None]] = {
        "model alone": lambda q: (run.plain_rms(q), run.plain_largest(q)),
        "thesis": lambda q: (TABLES[kind][q], LARGEST[kind][q]),
        **{word: of(name) for name, word in WORDS.items()},
    }
    caption = "The thesis drives another vehicle: its wheels are smaller, and its course is not its yaw. Its errors are context."
    others = (
        "Variants of the thesis' observers. Rows of the accelerometer as printed know the attitude alone. Suspensions among the "
        "states have no sensor: what corrects them is the noise of the others. Forces alone never make the model jump, and lag."
    )
    return [
        table_of(columns, caption, last=True),
        table_of({word: of(name) for name, word in OTHERS.items()}, others),
        traced("Estimates and errors, first log", run),
        Figure(
            sawtooth(run.scores),
            "Variance of x between fixes (Fig. 24)",
            "The variance grows until the next fix of the receiver, every 20 ms, takes it down.",
        ),
    ]


def traced(title: str, run: BuggyRun, states: Mapping[str, str] = STATES) -> Figure:
    """States along the first log, above the errors of the best observer and of the errorEKF: Figs. 35 to 62."""
    true = run.truth.reduced(run.example.system.model)[SKIP:]
    best, other = (run.scores[name][0] for name in ("ekf", "error_ekf"))
    return state_figure(title, true, run.plain_score, best, {WORDS["error_ekf"]: other}, states)


def sawtooth(scores: Mapping[str, Sequence[Scored]]) -> list[Plot]:
    """σ² of x of each observer at every sample of the last tenth of a second."""
    plots = []
    for name, word in WORDS.items():
        score = scores[name][0]
        last = score.t >= score.t[-1] - SAWTOOTH_S
        variance = np.square(1e3 * score.of("base.x")[1][last])
        plots.append(curves(f"{word}: variance of x", [Series(word, score.t[last], variance)], "time, s", "mm²"))
    return plots


def ground_lead(run: GroundRun) -> str:
    heights = run.height()
    return (
        "In place of the real drive of Table 7, whose log was never published: left, right and left again over ground that rises "
        f"and falls by {heights.max() - heights.min():.2f} m below the vehicle. The observers have a survey of it, "
        f"{1000 * SURVEY_SIGMA:g} mm off at each point, and look it up where their model has the wheels. One log of "
        f"{run.truth.t[-1]:g} s."
    )


def ground_blocks(run: GroundRun) -> list[Block]:
    """Table 7's place: every observer on uneven ground, the way, and errors."""
    thin = slice(None, None, max(1, len(run.truth.t) // CURVE_POINTS))
    way = curves(
        "way over the ground",
        [
            Series("model alone", run.plain.q[thin, 0], run.plain.q[thin, 1], colour="plain"),
            Series("truth", run.truth.q[thin, 0], run.truth.q[thin, 1], colour="truth"),
        ],
        "x, m",
        "y, m",
    )
    below = curves(
        "height below the chassis", [Series("ground", run.truth.t[thin], run.height()[thin])], "time, s", "m"
    )
    score = run.scores["ekf"]
    caption = (
        f"The thesis' errors are against its sensors, on another vehicle. NEES per state of the best observer: {number(score.nees, 3)}, "
        "with the process noise of a survey that is not exact."
    )
    shown = {"x": "base.x", "yaw": "base.yaw"}
    return [
        *_ground_tables(run.scores, 0, caption, 0.0),
        Figure([way, below], "Drive"),
        Figure(
            error_plots(score, run.scores["error_ekf"], shown),
            "Errors",
            "Shaded: what the best observer says of itself, ±1.96 σ.",
        ),
    ]


def coarse_lead(run: GroundRun) -> str:
    return (
        f"The same drive with a receiver of {COARSE_GPS:g} m. With an exact start and exact equations it would have nothing to say, so the "
        f"start is uncertain by {START_M:g} m and {np.rad2deg(START_RAD):.0f}°, drawn, which every observer is given. Errors count from "
        f"{run.caught:g} s on."
    )


def coarse_blocks(run: GroundRun) -> list[Block]:
    """Table 8's place: every observer with a receiver of a metre."""
    score = run.coarse["ekf"]
    nees = number(score.nees, 3)
    caption = (
        f"The thesis' errors are against its sensors, on another vehicle. NEES per state of the best observer: {nees}."
    )
    shown = {"x": "base.x", "y": "base.y", "yaw": "base.yaw"}
    return [
        *_ground_tables(run.coarse, 1, caption, run.caught),
        Figure(
            error_plots(score, run.coarse["error_ekf"], shown),
            "Errors",
            "Shaded: what the best observer says of itself, ±1.96 σ.",
        ),
    ]


def input_blocks(run: InputRun) -> list[Block]:
    """Observers with exact and with measured inputs, and the drive."""
    columns = {
        f"{WORDS[name]}, {word} inputs": errors_of(scores[name])
        for name in NAMES
        for word, scores in (("exact", run.exact), ("measured", run.measured))
    }
    truth = run.truth
    assert truth.pressure is not None
    thin = slice(None, None, max(1, len(truth.t) // CURVE_POINTS))
    speed = np.hypot(truth.qd[:, 0], truth.qd[:, 1])
    plots = [
        curves("speed", [Series("speed", truth.t[thin], speed[thin])], "time, s", "m/s"),
        curves("brake pressure", [Series("pressure", truth.t[thin], truth.pressure[thin])], "time, s", "bar"),
    ]
    return [table_of(columns, "Rms, and the largest error in brackets."), Figure(plots, "Drive")]


def printed_blocks(found: Mapping[str, Scored]) -> list[Block]:
    """What rows of H cost that are not the derivative of h."""
    columns = {word: errors_of(found[name]) for name, word in PRINTED.items()}
    return [
        table_of(columns, "Rms, and the largest error in brackets; the beginning, where the yaw is wrong, included.")
    ]


def _ground_tables(scores: Mapping[str, Scored], table: int, caption: str, after: float) -> list[Table]:
    """Table 7 or 8 beside the thesis', and the other observers of the thesis."""

    def thesis(q: str) -> Pair | None:
        return REAL_DRIVE[q][table] if q in REAL_DRIVE else None

    columns: dict[str, Callable[[str], Pair | None]] = {"thesis": thesis}
    columns |= {w: errors_of(scores[n], after) for n, w in {"plain": "model alone", **WORDS}.items()}
    others = {word: errors_of(scores[name], after) for name, word in OTHERS.items()}
    variants = table_of(others, "Variants of the thesis' observers.")
    return [table_of(columns, caption, last=True), variants]


RIM = 12  # corners of a wheel
RING = 24  # corners of a band
CROSS = 0.25  # m, half the width of a fix
FRAMES, FIXES = 120, 25
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
