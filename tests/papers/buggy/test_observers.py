"""The observers of the buggy on a short drive: what paper 003 needs its sensors for, and that the better ones are better."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.model.experiment import Experiment
from veridyn.observe.filters.methods import ErrorEKF
from veridyn.papers.buggy.drive import RATE, BuggyDrive, BuggyTruth, driven
from veridyn.papers.buggy.machine import CORNERS, buggy
from veridyn.papers.buggy.observers import (
    REFRESH,
    SUSPENSIONS,
    Scored,
    error_ekf,
    force_observer,
    run_observers,
    score_track,
    scored,
    standing_start,
    with_course,
    with_edges,
)
from veridyn.papers.buggy.tracking import BuggyTrack
from veridyn.spatial.rotations import matrix_of

pytestmark = pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=3.0, rack=-0.010))


@pytest.fixture(scope="module")
def log(truth: BuggyTruth) -> Experiment:
    return truth.log(np.random.default_rng(11), buggy().sensors)


@pytest.fixture(scope="module")
def tracks(log: Experiment) -> dict[str, BuggyTrack]:
    """The truth differs by its rolling resistance alone, which is what the observers are told."""
    model = buggy(rolling_resistance=0.030)
    return dict(run_observers(model, log, standing_start(model), model_error=None))


@pytest.fixture(scope="module")
def scores(truth: BuggyTruth, tracks: dict[str, BuggyTrack]) -> dict[str, Scored]:
    return {name: score_track(track, truth) for name, track in tracks.items()}


def test_each_observer_is_better_than_the_one_before(scores: dict[str, Scored]):
    for quantity in ("x", "xd", "wheel_angle", "wheel_speed"):
        rough, force, best = (scores[name].rms(quantity) for name in ("error_ekf", "force", "ekf"))
        assert best < force < rough, quantity
    assert scores["ekf"].rms("x") < 1e-3 and scores["ekf"].rms("yaw") < 5e-4
    assert scores["force"].rms("wheel_speed") < 0.06


def test_correction_by_forces_alone_never_jumps_and_lags(tracks: dict[str, BuggyTrack], scores: dict[str, Scored]):
    """Places change by rates alone, to the trapezoidal rule; errors are larger than with all three corrected, and below the errorEKF's."""
    jumps = []
    for track in (tracks["force_alone"], tracks["force"]):
        q, qd, _, _ = track.system.split(track.x)
        moved = 0.5 * np.diff(track.t)[:, None] * (qd[1:, :3] + qd[:-1, :3])
        jumps.append(np.abs(np.diff(q[:, :3], axis=0) - moved).max())
    assert jumps[0] < 1e-12 and jumps[1] > 1e-6
    for quantity in ("x", "xd", "wheel_angle"):
        assert scores["force"].rms(quantity) < scores["force_alone"].rms(quantity) < scores["error_ekf"].rms(quantity)


def test_rows_as_printed_know_the_attitude_alone(log: Experiment):
    """Equation 116: derivatives of the reading by attitude at constant accelerations, −[a]× of the reading at the chassis itself."""
    model, short = buggy(rolling_resistance=0.030), _first(log, 0.5)
    made = error_ekf(accelerometer="attitude"), error_ekf()
    printed, full = (o.observe(model, short, standing_start(model)) for o in made)
    names, outputs = printed.system.states, printed.system.outputs
    rows = [outputs.index(f"accelerometer.{axis}") for axis in "xyz"]
    H = printed.estimates.H[200][rows]
    turned = [names.index(f"base.{axis}") for axis in ("roll", "pitch", "yaw")]
    assert (np.abs(np.delete(H, turned, axis=1)) == 0.0).all()
    assert np.abs(np.delete(full.estimates.H[200][rows], turned, axis=1)).max() > 1.0
    x = printed.estimates.x_predicted[200]
    q = printed.system.split(x)[0]
    at = printed.system.instant(x, printed.inputs[200])
    R = matrix_of(q[3:7])
    a = R.T @ (at.qdd[:3] + np.array([0.0, 0.0, 9.80665]))  # v̇ − g, in the chassis' axes
    np.testing.assert_allclose(H[:, turned], [[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]], atol=0.02)


def _first(log: Experiment, seconds: float) -> Experiment:
    """The first part of a log."""
    kept = [log[name] for name in log.names]
    return log.replacing(*(replace(c, t=c.t[c.t <= seconds], values=c.values[c.t <= seconds]) for c in kept))


def test_rows_as_printed_are_the_same_by_machine_code_and_by_the_reference(log: Experiment):
    model, short = buggy(rolling_resistance=0.030), _first(log, 0.05)
    made = [
        replace(error_ekf(accelerometer="attitude"), method=ErrorEKF(accelerometer="attitude", engine=engine))
        for engine in ("compiled", "python")
    ]
    tracks = [o.observe(model, short, standing_start(model)).track for o in made]
    np.testing.assert_allclose(tracks[0].x, tracks[1].x, atol=1e-9)
    np.testing.assert_allclose(tracks[0].P, tracks[1].P, atol=1e-12)


def test_positions_as_printed_know_the_place_alone(truth: BuggyTruth, log: Experiment):
    """Equation 89: ∂h/∂(x, y, z) = 1 and nothing else, though the antenna is on a lever arm; both engines do it."""
    model, short = buggy(rolling_resistance=0.030), _first(log, 0.05)
    found = [
        replace(error_ekf(), method=ErrorEKF(position="place", engine=engine)).observe(
            model, short, standing_start(model)
        )
        for engine in ("compiled", "python")
    ]
    np.testing.assert_allclose(found[0].track.x, found[1].track.x, atol=1e-9)
    np.testing.assert_allclose(found[0].track.P, found[1].track.P, atol=1e-12)
    outputs = found[0].system.outputs
    rows = [outputs.index(f"gps.{axis}") for axis in "xyz"]
    full = error_ekf().observe(model, short, standing_start(model)).estimates.H[20][rows]
    H = found[0].estimates.H[20][rows]
    np.testing.assert_array_equal(H, np.eye(3, H.shape[1]))
    assert np.abs(full[:, 3:6]).max() == pytest.approx(0.84, abs=0.01)  # m, of the antenna above the centre of gravity


def test_variance_of_a_place_is_a_sawtooth_between_fixes(scores: dict[str, Scored]):
    """Fig. 24: at 50 Hz of fixes and 500 Hz of steps the variance of x falls at every tenth sample and grows at the nine others."""
    for name in ("error_ekf", "force"):
        variance = scores[name].of("base.x")[1] ** 2
        change, fix = np.diff(variance)[-200:], np.rint(scores[name].t[1:] * RATE).astype(int)[-200:] % 10 == 0
        assert (change[fix] < 0.0).all() and (change[~fix] > 0.0).all(), name


def test_suspensions_in_the_filter_are_never_known(tracks: dict[str, BuggyTrack]):
    """28 states: within three seconds the deviation of every suspension more than doubles."""
    large = tracks["error_ekf_28"]
    names = large.system.states
    carried = [n for n in names if not n.startswith("state.") and large.last[names.index(n), names.index(n)] > 0.0]
    assert len(carried) == 28
    for name in SUSPENSIONS:
        k = names.index(name)
        assert large.sigma[-1, k] > 2.0 * large.sigma[0, k]


def test_the_error_ekf_leaves_suspensions_to_the_model(tracks: dict[str, BuggyTrack]):
    small = tracks["error_ekf"]
    names = small.system.states
    P = small.last
    for name in SUSPENSIONS:
        k = names.index(name)
        assert P[k, k] == 0.0 and P[names.index(f"{name}_dot"), names.index(f"{name}_dot")] == 0.0
    carried = [n for n in names if not n.startswith("state.") and P[names.index(n), names.index(n)] > 0.0]
    assert len(carried) == 20  # equation 79
    assert len(small.system.outputs) == 16  # position 3, velocity 2, course, gyroscope 3, accelerometer 3, wheels 4


def test_derivatives_kept_over_steps_leave_the_error_ekf_alone(truth: BuggyTruth, log: Experiment):
    """By less than a quarter of its deviations: it needs them for the accelerometer alone.

    Without a gate, whose decision on a reading next to it, a matter of rounding, moves a rate by .4 deviations.
    """
    model = buggy(rolling_resistance=0.030)
    made = (replace(error_ekf(), method=ErrorEKF(refresh=refresh, gate=None)) for refresh in (1, REFRESH))
    fresh, kept = (scored(one.observe(model, log, standing_start(model)), truth) for one in made)
    carried = fresh.sigma[-1] > 0.0
    apart = np.sqrt(np.mean(((kept.errors - fresh.errors)[:, carried] / fresh.sigma[:, carried]) ** 2, axis=0))
    assert apart.max() < 0.25


def test_edges_are_read_within_their_deviations(truth: BuggyTruth, log: Experiment):
    """Readings of a wheel's angle at edges: fewer than samples, errors as large as the deviations that go with them."""
    read = with_edges(log)
    for corner in CORNERS:
        angle, sigma = read[f"angle_{corner}"], read[f"angle_{corner}.sigma"]
        true = truth.q[np.rint(angle.t * RATE).astype(int), 7 + truth.machine.coordinates.index(f"spin_{corner}")]
        assert 10 < len(angle) < len(truth.t) / 3
        assert 0.5 < float(np.sqrt(np.mean(((angle.values - true) / sigma.values) ** 2))) < 1.3


def test_a_course_at_walking_pace_is_no_reading(log: Experiment):
    log = with_course(log)
    speed = np.hypot(log["gps_velocity.x"].values, log["gps_velocity.y"].values)
    assert np.isnan(log["course"].values[speed < 1.0]).all() and np.isfinite(log["course"].values[speed >= 1.0]).all()


def test_subsystems_of_integrators_have_the_ranks_of_the_thesis():
    """Equations 70, 71 and 74: positions of the chassis 6 of 6, wheel angles 8 of 8, suspensions with two rates alone 2 of 12."""

    def rank(count: int, H: np.ndarray) -> int:
        F = np.eye(2 * count)
        F[:count, count:] = 2e-3 * np.eye(count)
        return int(np.linalg.matrix_rank(np.vstack([H @ np.linalg.matrix_power(F, k) for k in range(2 * count)])))

    assert rank(3, np.eye(3, 6)) == 6
    assert rank(4, np.eye(4, 8)) == 8
    assert rank(6, np.eye(12)[[10, 11]]) == 2
    assert rank(3, np.eye(6)) == 6  # equations 75 and 78: roll, pitch and yaw with their rates


def test_forces_walk_as_those_of_tyres_that_are_not_the_models() -> None:
    """σ/√.15 s with σ = 5.77 % of 1378.3 N across, the same at half of 2.715 m about z, and 1.155 % of it along, by hand."""
    walk = force_observer().noise.force
    assert isinstance(walk, dict)
    sizes = {name: np.sqrt(walk[name]) for name in ("base.x", "base.y", "base.yaw")}
    assert sizes == pytest.approx({"base.x": 41.09, "base.y": 205.5, "base.yaw": 278.9}, rel=1e-3)
    machine = buggy()
    mass = sum(
        v for n, v in zip(machine.parameters.names, machine.parameters.values, strict=True) if n.startswith("M_")
    )
    assert mass == pytest.approx(1378.3, rel=1e-3)  # which the sizes are made of
