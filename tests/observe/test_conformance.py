"""What every filter must do. A new filter joins FILTERS in builders.py and passes all of this, or does not ship."""

import numpy as np
import pytest

from observe import textbook
from observe.builders import FILTERS, log_of, pendulum, pendulum_log, start_of, system_of
from observe.linear import Kalman
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.observe.consistency.nis import innovation_whiteness, nees, nis, pooled
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.filters.run import run, smooth
from veridyn.observe.measurements import Measurements, Status, frozen
from veridyn.observe.result import Belief
from veridyn.observe.streaming.stream import Stream
from veridyn.observe.system import Discrete

CASE = textbook.oscillator()
COUNT = 120


@pytest.fixture(params=FILTERS, ids=lambda f: f.__name__)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def log():
    truth, y = CASE.simulate(COUNT, np.random.default_rng(1))
    return truth, y


def test_equals_the_exact_linear_filter(kind, log):
    e = run(kind(), system_of(kind, CASE), log_of(CASE, log[1]), start_of(CASE))
    x, P = textbook.kalman(CASE, log[1])
    assert np.abs(e.x - x).max() < 1e-10
    assert np.abs(e.P - P).max() < 1e-10
    assert e.states == CASE.states and e.filter == kind.__name__ and len(e) == COUNT


def test_equals_the_exact_filter_with_missing_readings(kind, log):
    mask = np.random.default_rng(2).random((COUNT, 2)) > 0.4
    e = run(kind(), system_of(kind, CASE), log_of(CASE, log[1], flags=mask), start_of(CASE))
    x, P = textbook.kalman(CASE, log[1], mask)
    assert np.abs(e.x - x).max() < 1e-10 and np.abs(e.P - P).max() < 1e-10
    assert np.array_equal(e.status == Status.MISSING, ~mask)
    assert np.isnan(e.innovations[~mask]).all() and np.isfinite(e.innovations[mask]).all()
    assert np.array_equal(e.dof, mask.sum(axis=1))


def test_last_state_is_the_least_squares_solution_of_the_whole_log(kind, log):
    e = run(kind(), system_of(kind, CASE), log_of(CASE, log[1]), start_of(CASE))
    x, cov = textbook.whole_log(CASE, log[1])
    assert np.abs(e.x[-1] - x[-1]).max() < 1e-9
    assert np.abs(e.P[-1] - cov[-1, :, -1]).max() < 1e-9


def test_smoothed_states_are_the_least_squares_solution_of_the_whole_log(kind, log):
    mask = np.random.default_rng(3).random((COUNT, 2)) > 0.3
    s = smooth(run(kind(), system_of(kind, CASE), log_of(CASE, log[1], flags=mask), start_of(CASE)))
    x, cov = textbook.whole_log(CASE, log[1], mask)
    assert np.abs(s.x - x).max() < 1e-9
    assert np.abs(s.P - np.array([cov[k, :, k] for k in range(COUNT)])).max() < 1e-9


@pytest.mark.parametrize("runs", [25, pytest.param(50, marks=pytest.mark.slow)])
def test_unbiased_and_consistent_over_many_runs(kind, runs):
    """Bands of fewer runs are wider by themselves; fifty are slow."""
    rng = np.random.default_rng(4)
    system, errors, normalised, innovations, white, last = system_of(kind, CASE), [], [], [], [], np.ones(3)
    for _ in range(runs):
        truth, y = CASE.simulate(60, rng)
        e = run(kind(), system, log_of(CASE, y), start_of(CASE))
        errors.append(e.x[-1] - truth[-1])
        normalised.append(nees(e, truth))
        innovations.append(nis(e))
        last = e.sigma[-1]
        white += [w.is_white for w in innovation_whiteness(e).values()]
    # the mean of 50 errors has σ/√50; three states, so 3 of these
    assert (np.abs(np.mean(errors, axis=0)) < 3.0 * last / np.sqrt(runs)).all()
    assert pooled(normalised).consistent and pooled(innovations).consistent
    assert 0.85 < pooled(normalised).share_inside <= 1.0 and 0.85 < pooled(innovations).share_inside <= 1.0
    assert np.mean(white) >= 0.9


@pytest.mark.parametrize("runs", [25, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [EKF, UKF], ids=lambda f: f.__name__)
def test_consistent_on_a_pendulum_over_many_runs(kind, runs):
    rng = np.random.default_rng(5)
    system = pendulum(kind is EKF)
    found, last = [], np.ones(2)
    for _ in range(runs):
        truth, log, start = pendulum_log(40, 0.05, rng)
        e = run(kind(), system, log, start)
        found.append((nees(e, truth), nis(e), e.x[-1] - truth[-1]))
        last = e.sigma[-1]
    assert pooled([f[0] for f in found]).consistent, pooled([f[0] for f in found]).summary()
    assert pooled([f[1] for f in found]).consistent, pooled([f[1] for f in found]).summary()
    assert (np.abs(np.mean([f[2] for f in found], axis=0)) < 3.0 * last / np.sqrt(runs)).all()


def test_nan_and_infinite_readings_are_not_available_and_are_reported(kind, log):
    y = log[1].copy()
    y[10:30, 0], y[40, 1] = np.nan, np.inf
    mask = np.isfinite(y)
    e = run(kind(), system_of(kind, CASE), log_of(CASE, y), start_of(CASE))
    assert np.array_equal(e.status == Status.NOT_FINITE, ~mask)
    assert np.abs(e.x - textbook.kalman(CASE, np.nan_to_num(y, posinf=0.0), mask)[0]).max() < 1e-10
    assert e.counts()["y0"]["not_finite"] == 20 and "20 not finite" in e.summary()


def test_a_sensor_that_dies_leaves_the_filter_running_with_a_growing_band(kind, log):
    flags = np.ones((COUNT, 2), dtype=bool)
    flags[60:] = False
    e = run(kind(), system_of(kind, CASE), log_of(CASE, log[1], flags=flags), start_of(CASE))
    assert np.isfinite(e.x).all() and (np.diff(e.sigma[60:, 2]) > 0.0).all()
    assert e.sigma[-1, 2] > 1.5 * e.sigma[59, 2]


def test_a_frozen_sensor_is_left_out_by_its_flag(kind, log):
    y = log[1].copy()
    y[50:, 1] = y[50, 1]
    plain = log_of(CASE, y)
    flagged = plain.flagged(frozen(y, 3), Status.FROZEN)
    e = run(kind(), system_of(kind, CASE), flagged, start_of(CASE))
    assert (e.status[53:, 1] == Status.FROZEN).all() and (e.status[:53] == Status.USED).all()
    mask = flagged.flags == Status.USED
    assert np.abs(e.x - textbook.kalman(CASE, y, mask)[0]).max() < 1e-10


def test_outliers_are_refused_by_the_gate_and_named(kind, log):
    y = log[1].copy()
    wild = [20, 45, 46, 90]
    y[wild, 0] += 50.0
    e = run(kind(gate=0.9999), system_of(kind, CASE), log_of(CASE, y), start_of(CASE))
    assert np.flatnonzero(e.status[:, 0] == Status.OUTLIER).tolist() == wild
    assert (e.status[:, 1] == Status.USED).all()
    mask = e.status == Status.USED
    assert np.abs(e.x - textbook.kalman(CASE, y, mask)[0]).max() < 1e-10
    assert (np.abs(e.innovations[wild, 0]) > 40.0).all()  # what was refused is still shown


def test_a_sensor_that_jumps_for_good_is_shut_out_and_its_band_grows(kind, log):
    y = log[1].copy()
    y[60:, 0] += 50.0
    e = run(kind(gate=0.9999), system_of(kind, CASE), log_of(CASE, y), start_of(CASE))
    assert (e.status[60:, 0] == Status.OUTLIER).all() and (e.status[60:, 1] == Status.USED).all()
    assert (np.diff(e.sigma[60:, 2]) > 0.0).all() and f"{COUNT - 60} outlier" in e.summary()


def test_covariances_stay_symmetric_and_positive_when_it_is_hard(kind):
    # A sensor a million times better than the start: the short form P − K H P loses its sign here.
    hard = textbook.LinearCase(
        np.array([[1.0, 0.1], [0.0, 1.0]]),
        np.array([[1.0, 0.0], [1.0, 1e-6]]),
        np.diag([0.0, 1e-14]),
        np.diag([1e-12, 1e-12]),
        np.zeros(2),
        np.diag([1e6, 1e6]),
    )
    y = np.zeros((300, 2))
    e = run(kind(), system_of(kind, hard), log_of(hard, y), start_of(hard))
    assert np.array_equal(e.P, np.swapaxes(e.P, 1, 2))
    assert (np.linalg.eigvalsh(e.P)[:, 0] > 0.0).all() and (np.linalg.eigvalsh(e.P_predicted)[:, 0] > 0.0).all()


def test_a_start_without_any_doubt_is_allowed(kind, log):
    exact = textbook.LinearCase(CASE.F, CASE.H, np.diag([0.0, 4e-3, 0.0]), CASE.R, CASE.x0, np.zeros((3, 3)))
    e = run(kind(), system_of(kind, exact), log_of(exact, log[1]), start_of(exact))
    x, P = textbook.kalman(exact, log[1])
    assert np.abs(e.x - x).max() < 1e-10 and np.abs(e.P - P).max() < 1e-10
    assert np.abs(smooth(e).x[0] - exact.x0).max() < 1e-10


def test_same_input_same_numbers_and_inputs_are_left_alone(kind, log):
    m = log_of(CASE, log[1])
    before = m.values.copy()
    a, b = (run(kind(gate=0.99), system_of(kind, CASE), m, start_of(CASE)) for _ in range(2))
    for name in ("x", "P", "innovations", "nis", "log_likelihood", "status", "K"):
        assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "innovations")
    assert np.array_equal(m.values, before)


def test_a_run_may_be_cut_in_two(kind, log):
    system = system_of(kind, CASE)
    whole = run(kind(), system, log_of(CASE, log[1]), start_of(CASE))
    first = run(kind(), system, log_of(CASE, log[1][:50]), start_of(CASE))
    t = CASE.step * np.arange(COUNT)
    second = run(kind(), system, Measurements(t[50:], log[1][50:], CASE.outputs), first.last)
    assert np.allclose(np.vstack([first.x, second.x]), whole.x, atol=1e-12)


def test_late_readings_dropped_used_or_taken_back_in_time(kind, log):
    t = CASE.step * np.arange(COUNT)
    arrival = np.repeat(t[:, None], 2, axis=1)
    late = np.random.default_rng(6).random(COUNT) < 0.4
    late[-8:] = False
    arrival[late, 0] += 0.37  # between three and four steps
    m = log_of(CASE, log[1], arrival=arrival)
    system, start = system_of(kind, CASE), start_of(CASE)
    on_time = run(kind(), system, log_of(CASE, log[1]), start)

    used = run(kind(late="use"), system, m, start)
    assert np.array_equal(used.x, on_time.x)

    mask = np.ones((COUNT, 2), dtype=bool)
    mask[late, 0] = False
    dropped = run(kind(late="drop"), system, m, start)
    assert np.array_equal(dropped.status == Status.LATE, ~mask)
    assert np.abs(dropped.x - textbook.kalman(CASE, log[1], mask)[0]).max() < 1e-10

    back = run(kind(late="rewind"), system, m, start)
    assert (back.status == Status.USED).all() and back.replayed
    assert np.abs(back.x[-1] - on_time.x[-1]).max() < 1e-9 and np.abs(back.P[-1] - on_time.P[-1]).max() < 1e-9
    k = 60  # in between it knows what had arrived by then, no more and no less
    known = arrival[: k + 1] <= t[k]
    assert np.abs(back.x[k] - textbook.kalman(CASE, log[1][: k + 1], known)[0][-1]).max() < 1e-9

    short = run(kind(late="rewind", horizon=0.2), system, m, start)
    assert np.array_equal(short.status == Status.LATE, ~mask)
    assert np.abs(short.x - dropped.x).max() < 1e-10
    with pytest.raises(DataError, match="no single chain of steps for a smoother"):
        smooth(back)


def test_a_stream_gives_the_numbers_of_a_run(kind, log):
    e = run(kind(gate=0.99), system_of(kind, CASE), log_of(CASE, log[1]), start_of(CASE))
    stream = Stream(kind(gate=0.99), system_of(kind, CASE), start_of(CASE))
    for k in range(COUNT):
        step = stream.step(CASE.step * k, log[1][k])
        assert np.array_equal(step.belief.x, e.x[k]) and np.array_equal(step.belief.P, e.P[k])
        assert [int(s) for s in step.status.values()] == e.status[k].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"R": [0.1, -0.2]}, "measurement noise: the variance of 'y1' is negative"),
        ({"Q": [0.1, 0.1, -1e-3]}, "process noise: the variance of 's2' is negative"),
        ({"R": [0.1, 0.0]}, "measurement noise: the variance of 'y1' is zero"),
        ({"R": [0.1]}, "measurement noise: the covariance has the wrong shape"),
        ({"Q": np.array([[1.0, 2.0, 0], [2.0, 1.0, 0], [0, 0, 1.0]])}, "'s0' and 's1' are correlated beyond"),
    ],
)
def test_bad_noise_is_refused_by_name(kind, change, message):
    with pytest.raises(ModelError, match=message):
        system_of(kind, CASE, **change)


def test_bad_shapes_starts_and_clocks_are_refused_by_name(kind, log):
    system, good, y = system_of(kind, CASE), start_of(CASE), log[1]
    with pytest.raises(DataError, match=r"start: the start is not a state of this system(.|\n)*3 states s0, s1, s2"):
        run(kind(), system, log_of(CASE, y), Belief(np.zeros(2), CASE.P0))
    with pytest.raises(ModelError, match="start: the variance of 's1' is negative"):
        run(kind(), system, log_of(CASE, y), Belief(CASE.x0, np.array([1.0, -1.0, 1.0])))
    with pytest.raises(DataError, match="start is later than the first reading"):
        run(kind(), system, log_of(CASE, y), Belief(CASE.x0, CASE.P0, t=3.0))
    with pytest.raises(DataError, match="start is not finite"):
        run(kind(), system, log_of(CASE, y), Belief(np.array([0.0, np.nan, 0.0]), CASE.P0))
    with pytest.raises(DataError, match=r"there is no output 'y1'(.|\n)*Did you mean 'y10'"):
        run(kind(), system, Measurements(np.arange(3.0), np.zeros((3, 2)), ("y0", "y10")), good)
    with pytest.raises(DataError, match=r"measurements.t: the clock stands still(.|\n)*at sample 2"):
        Measurements(np.array([0.0, 0.1, 0.1]), np.zeros((3, 2)), CASE.outputs)
    with pytest.raises(ModelError, match=r"gate: the value is not valid(.|\n)*above 0 and below 1"):
        kind(gate=3.0)
    with pytest.raises(ModelError, match=r"late: the value is not valid"):
        kind(late="ignore")


def test_columns_are_found_by_name(kind, log):
    swapped = Measurements(CASE.step * np.arange(COUNT), log[1][:, ::-1], CASE.outputs[::-1])
    a = run(kind(), system_of(kind, CASE), swapped, start_of(CASE))
    b = run(kind(), system_of(kind, CASE), log_of(CASE, log[1]), start_of(CASE))
    assert np.array_equal(a.x, b.x)


def test_progress_is_told(kind, log):
    told = []
    run(kind(), system_of(kind, CASE), log_of(CASE, log[1]), start_of(CASE), lambda *a: told.append(a))
    assert told[-1] == (f"running {kind.__name__}", COUNT, COUNT)


@pytest.mark.parametrize("kind", [EKF, UKF], ids=lambda f: f.__name__)
def test_a_state_that_runs_away_is_an_error_with_its_time(kind):
    def f(x, u, t, dt):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.exp(x * 5.0) - 1.0

    system = Discrete(
        ("x",), ("y",), f, lambda x, u, t: x, [1.0], [1.0], lambda x, u, t, dt: [[1.0]], lambda x, u, t: [[1.0]]
    )
    nothing = Measurements(np.arange(20.0), np.full((20, 1), np.nan), ("y",))
    with pytest.raises(SimulationError, match=r"the prediction is no longer finite at \d s"):
        run(kind(), system, nothing, Belief([1.0], [0.01]))


def test_the_linear_filter_refuses_what_is_not_linear():
    with pytest.raises(ModelError, match="Kalman: the system is not linear"):
        run(Kalman(), system_of(EKF, CASE), log_of(CASE, np.zeros((3, 2))), start_of(CASE))
