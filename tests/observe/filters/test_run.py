"""The door: logs with clocks of their own, and rewinding beside a correlated partner. The rest is the conformance suite."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import least_squares

from observe import textbook
from observe.builders import FILTERS, log_of, pendulum, pendulum_log, start_of, system_of
from observe.linear import Kalman, Linear, from_rates
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.filters.run import RunLikelihood, _gain, _History, fill, in_order, run, smooth
from veridyn.observe.filters.update import CompiledPassage, PassageLayout
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete


def test_sensors_on_clocks_of_their_own():
    """A fast gyroscope and a slow position sensor equal least squares over the union of their stamps."""
    rng = np.random.default_rng(0)
    fast, slow = np.arange(0.0, 2.0, 0.01), np.arange(0.003, 2.0, 0.1)
    log = Experiment(
        {
            "rate": Channel("rate", fast, np.cos(fast) + 0.1 * rng.standard_normal(len(fast)), "rad/s"),
            "angle": Channel("angle", slow, np.sin(slow) + 0.02 * rng.standard_normal(len(slow)), "rad"),
        }
    )
    system = from_rates(
        ("angle", "rate"), ("angle", "rate"), [[0.0, 1.0], [0.0, 0.0]], np.eye(2), [0.0, 1.0], [4e-4, 1e-2]
    )
    m = Measurements.from_experiment(log, ("angle", "rate"))
    e = run(Kalman(), system, m, Belief([0.0, 1.0], [1.0, 1.0]))
    assert len(e) == len(fast) + len(slow)
    assert e.counts()["angle"]["used"] == len(slow) and e.counts()["rate"]["used"] == len(fast)
    x, covariance = _all_at_once(e.t, m.values, m.flags == Status.USED, np.diag([4e-4, 1e-2]))
    assert np.abs(e.x[-1] - x[-1]).max() < 1e-8 and np.abs(e.P[-1] - covariance[-2:, -2:]).max() < 1e-8


def _all_at_once(t, y, used, R):
    """The states of all stamps as one least-squares problem, whitened rows stacked and solved by QR."""
    n = 2 * len(t)
    rows, right = [np.eye(2, n)], [np.array([0.0, 1.0])]
    for k in range(1, len(t)):
        dt = t[k] - t[k - 1]
        W = np.linalg.inv(np.linalg.cholesky(np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])))
        row = np.zeros((2, n))
        row[:, 2 * k - 2 : 2 * k], row[:, 2 * k : 2 * k + 2] = -W @ [[1.0, dt], [0.0, 1.0]], W
        rows.append(row)
        right.append(np.zeros(2))
    for k, j in np.argwhere(used):
        row = np.zeros((1, n))
        row[0, 2 * k + j] = 1 / np.sqrt(R[j, j])
        rows.append(row)
        right.append([y[k, j] / np.sqrt(R[j, j])])
    Q, T = np.linalg.qr(np.vstack(rows))
    inverse = np.linalg.inv(T)
    return (inverse @ Q.T @ np.concatenate(right)).reshape(-1, 2), inverse @ inverse.T


@pytest.mark.parametrize("kind", FILTERS, ids=lambda f: f.__name__)
def test_the_input_of_a_stamp_acts_until_the_next_and_is_seen_at_its_own(kind):
    """x_k = 0.5 x_{k-1} + u_{k-1}, y = x + 2 u, without any noise that matters: worked out by hand."""
    u = np.array([1.0, 2.0, -1.0, 3.0])
    system = Discrete(
        ("x",), ("y",), lambda x, u, t, dt: 0.5 * x + u, lambda x, u, t: x + 2 * u, [0.0], [1.0],
        F=lambda x, u, t, dt: [[0.5]], H=lambda x, u, t: [[1.0]],
    )  # fmt: skip
    if kind is Kalman:
        system = Linear(("x",), ("y",), [[0.5]], [[1.0]], [0.0], [1.0], B=[[1.0]], D=[[2.0]])
    x = np.array([4.0, 3.0, 3.5, 0.75])
    e = run(kind(), system, Measurements(np.arange(4.0), x + 2 * u + 0.5, ("y",), inputs=u), Belief([4.0], [1e-20]))
    assert e.x[:, 0] == pytest.approx(x) and e.innovations[:, 0] == pytest.approx([0.5] * 4)


def test_a_reading_later_than_the_end_of_the_log_stays_late():
    case = textbook.oscillator()
    _, y = case.simulate(20, np.random.default_rng(1))
    arrival = np.repeat(case.step * np.arange(20)[:, None], 2, axis=1)
    arrival[15, 1] = 99.0
    e = run(EKF(late="rewind"), system_of(EKF, case), log_of(case, y, arrival=arrival), start_of(case))
    assert np.argwhere(e.status == Status.LATE).tolist() == [[15, 1]]
    mask = arrival < 90.0
    assert np.abs(e.x - textbook.kalman(case, y, mask)[0]).max() < 1e-10
    assert e.dof.tolist() == mask.sum(axis=1).tolist()


def test_rewinding_two_late_readings_of_one_stamp_keeps_their_correlation():
    case = textbook.oscillator()  # its two sensors have correlated noise
    _, y = case.simulate(12, np.random.default_rng(2))
    t = case.step * np.arange(12)
    arrival = np.repeat(t[:, None], 2, axis=1)
    arrival[4] = [t[6], t[8]]
    e = run(EKF(late="rewind"), system_of(EKF, case), log_of(case, y, arrival=arrival), start_of(case))
    on_time = run(EKF(), system_of(EKF, case), log_of(case, y), start_of(case))
    assert np.abs(e.x[8:] - on_time.x[8:]).max() < 1e-10 and (e.status == Status.USED).all()
    assert e.dof[4] == 2 and e.nis[4] == pytest.approx(on_time.nis[4])


@pytest.mark.parametrize("horizon", [np.inf, 0.25, 0.05])
def test_what_a_rewinding_filter_knows_in_the_end_is_one_chain_that_can_be_smoothed(horizon):
    """The chain ends where the replay ends, reports the same readings as late, and its smoothed states are the least-squares solution."""
    case = textbook.oscillator()
    rng = np.random.default_rng(3)
    _, y = case.simulate(50, rng)
    arrival = case.step * np.arange(50)[:, None] + np.where(rng.random((50, 2)) < 0.4, rng.uniform(0, 0.6, (50, 2)), 0)
    log, how = log_of(case, y, arrival=arrival), EKF(late="rewind", horizon=horizon)
    replay = run(how, system_of(EKF, case), log, start_of(case))
    chain = run(how, system_of(EKF, case), in_order(how, log), start_of(case))
    assert replay.replayed and not chain.replayed
    assert np.array_equal(chain.status, replay.status) and (chain.status == Status.LATE).any()
    assert np.abs(chain.x[-1] - replay.x[-1]).max() < 1e-9 and np.abs(chain.P[-1] - replay.P[-1]).max() < 1e-9
    x, _ = textbook.whole_log(case, y, chain.status == Status.USED)
    assert np.abs(smooth(chain).x - x).max() < 1e-9
    assert in_order(EKF(), log) is log


NONE = np.zeros(0)


def test_a_local_level_in_closed_form():
    # Two readings of a walk, q = r = 1 and a flat start: x₁ given both is (2 y₁ + y₂)/3 with variance 2/3.
    walk = Linear(("x",), ("y",), [[1.0]], [[1.0]], [1.0], [1.0])
    s = smooth(run(Kalman(), walk, Measurements([0.0, 1.0], [[3.0], [6.0]], ("y",)), Belief([0.0], [1e9])))
    assert s.x[:, 0] == pytest.approx([4.0, 5.0], rel=1e-8) and s.P[:, 0, 0] == pytest.approx([2 / 3, 2 / 3], rel=1e-8)
    assert s.filter == "Kalman smoothed" and s.sigma.shape == (2, 1)


def test_without_process_noise_every_state_is_the_last_one():
    constant = Linear(("x",), ("y",), [[1.0]], [[1.0]], [0.0], [1.0])
    y = np.random.default_rng(0).standard_normal(30)
    s = smooth(run(Kalman(), constant, Measurements(np.arange(30.0), y, ("y",)), Belief([0.0], [1e6])))
    assert s.x[:, 0] == pytest.approx(np.full(30, y.mean()), abs=1e-5) and s.P[:, 0, 0] == pytest.approx(
        1 / 30, rel=1e-4
    )


@pytest.mark.parametrize("kind", [EKF, UKF], ids=lambda k: k.__name__)
def test_on_a_pendulum_it_is_near_the_most_likely_trajectory(kind):
    _, log, start = pendulum_log(60, 0.05, np.random.default_rng(1))
    system = pendulum(kind is EKF)
    e = run(kind(), system, log, start)
    s = smooth(e)
    assert (s.sigma <= e.sigma * (1 + 1e-12)).all()

    # The most likely trajectory of all, by Gauss-Newton over every state at once. A tangent at the filtered instead of the
    # smoothed state costs a few per cent of a deviation.
    whiten = np.linalg.inv(np.linalg.cholesky([system.noise(x, NONE, 0.0, 0.05) for x in e.x[:-1]]))

    def residuals(flat):
        x = flat.reshape(-1, 2)
        steps = np.einsum("kij,kj->ki", whiten, x[1:] - system.move(x[:-1], NONE, 0.0, 0.05))
        readings = (log.values - system.sense(x, NONE, 0.0)) / [0.05, 0.2]
        return np.concatenate([(x[0] - start.x) / np.sqrt(start.P), steps.ravel(), readings.ravel()])

    best = least_squares(residuals, e.x.ravel(), jac_sparsity=_pattern(60)).x.reshape(-1, 2)
    assert (np.abs(s.x - best) < 0.05 * s.sigma).all()


def _pattern(count):
    """Which residual depends on which state: a start, then steps from one state to the next, then readings."""
    S = np.zeros((2 + 2 * (count - 1) + 2 * count, 2 * count), dtype=int)
    S[:2, :2] = 1
    for k in range(count - 1):
        S[2 + 2 * k : 4 + 2 * k, 2 * k : 2 * k + 4] = 1
    for k in range(count):
        S[2 * count + 2 * k : 2 * count + 2 * k + 2, 2 * k : 2 * k + 2] = 1
    return S


def test_smoothed_errors_are_smaller_and_as_large_as_claimed():
    rng = np.random.default_rng(2)
    scaled, filtered, smoothed = [], [], []
    for _ in range(40):
        truth, log, start = pendulum_log(40, 0.05, rng)
        e = run(EKF(), pendulum(), log, start)
        s = smooth(e)
        scaled.append((s.x - truth) / s.sigma)
        filtered.append(e.x - truth)
        smoothed.append(s.x - truth)
    assert (np.std(smoothed, axis=(0, 1)) < 0.85 * np.std(filtered, axis=(0, 1))).all()
    assert np.mean(np.square(scaled)) == pytest.approx(1.0, abs=0.15)


def test_covariances_stay_symmetric_and_positive():
    F = np.array([[1.0, 0.1], [0.0, 1.0]])
    system = Linear(("x", "v"), ("y",), F, [[1.0, 0.0]], [0.0, 1e-12], [1e-8])
    s = smooth(
        run(Kalman(), system, Measurements(0.1 * np.arange(200), np.zeros(200), ("y",)), Belief([0, 0], [1e4, 1e4]))
    )
    assert np.array_equal(s.P, np.swapaxes(s.P, 1, 2)) and (np.linalg.eigvalsh(s.P)[:, 0] > 0.0).all()


@pytest.mark.parametrize("given", [False, True], ids=["as vectors", "by the system"])
def test_three_states_are_those_of_all_equations_at_once(given):
    """Start, steps and readings as one weighted least-squares problem: its solution and the blocks of its inverse."""
    rng = np.random.default_rng(7)
    n, count = 3, 5
    F, H = np.eye(n) + 0.3 * rng.standard_normal((n, n)), rng.standard_normal((2, n))
    Q, R, P = (A @ A.T + 0.2 * np.eye(len(A)) for A in (rng.standard_normal((k, k)) for k in (n, 2, n)))
    x0, y = rng.standard_normal(n), rng.standard_normal((count, 2))
    system = Linear(("a", "b", "c"), ("y", "z"), F, H, Q, R)
    e = run(Kalman(), system, Measurements(np.arange(float(count)), y, ("y", "z")), Belief(x0, P))
    s = smooth(e, system) if given else smooth(e)

    information, vector = np.zeros((n * count, n * count)), np.zeros(n * count)

    def add(rows, weights, value):
        nonlocal information, vector
        information += rows.T @ weights @ rows
        vector += rows.T @ weights @ value

    block = [np.eye(n * count)[n * k : n * (k + 1)] for k in range(count)]
    add(block[0], np.linalg.inv(P), x0)
    for k in range(count):
        add(H @ block[k], np.linalg.inv(R), y[k])
        if k:
            add(block[k] - F @ block[k - 1], np.linalg.inv(Q), np.zeros(n))
    covariance = np.linalg.inv(information)
    assert s.x == pytest.approx((covariance @ vector).reshape(count, n), rel=1e-8)
    for k in range(count):
        own = slice(n * k, n * (k + 1))
        assert s.P[k] == pytest.approx(covariance[own, own], rel=1e-7, abs=1e-12)


def test_gains_do_not_depend_on_units_nor_need_an_inverse():
    """G P = C: with states of 1e-10 and 1 side by side, and where two states are one and the same, so that P has no inverse."""
    tiny = np.diag([1e-20, 1.0])
    assert _gain(0.5 * tiny, tiny) == pytest.approx(0.5 * np.eye(2))
    v = np.array([2e-3, 50.0])
    same = np.outer(v, v)
    cross = np.array([[0.3, 0.1], [-0.2, 0.4]]) @ same
    assert _gain(cross, same) @ same == pytest.approx(cross, rel=1e-9)


def test_rows_of_many_steps_are_kept_as_single_steps_are():
    """Rows in the order of `PassageLayout`, four of six that a call has room for: every array, and the belief at the end."""
    layout, rng = PassageLayout(5, 3, 2), np.random.default_rng(9)
    rows = rng.standard_normal((6, layout.size))
    end = layout.short
    rows[:, end - 5 : end - 3], rows[:, end - 2] = rng.integers(0, 5, (6, 2)), rng.integers(0, 3, 6)
    system, t = SimpleNamespace(states=("a", "b", "c"), outputs=("y", "z")), np.arange(7.0)
    for kept in (lambda: _History(system, 7, 5), lambda: RunLikelihood(7, 3, 2, 5)):
        together, singly = kept(), kept()
        together.put_rows(2, 4, rows)
        for k in range(4):
            singly.put(2 + k, CompiledPassage(layout, rows[k], t[2 + k]))
        arrays = [name for name, value in vars(singly).items() if np.ndim(value) and len(value) == 7]
        assert {"log_likelihood", "variances", "status"} <= set(arrays)
        for name in arrays:
            assert np.array_equal(getattr(together, name)[2:6], getattr(singly, name)[2:6]), name
        a, b = together.belief(5, t), singly.belief(5, t)
        assert np.array_equal(a.x, b.x) and np.array_equal(a.P, b.P) and a.t == b.t == 5.0
        assert np.array_equal(a.x, rows[3, :5]) and np.array_equal(a.P, rows[3, 5:14].reshape(3, 3))


class Adding:
    """A step that adds the input of the stamp before to a single state; of many steps it takes as many as `bites` says, in turn."""

    def __init__(self, bites):
        self.bites, self.calls = iter(bites), []

    def row(self, x, value, sigma):
        layout = PassageLayout(1, 1, 1)
        row = np.zeros(layout.size)
        row[0], row[1], row[layout.short - 6] = x, sigma**2, value
        return row

    def marched(self, belief, u, t, values, flags, inputs, sigma, whole):
        assert whole and len(t) == len(values) == len(flags) == len(inputs) == len(sigma) <= 500
        taken = min(next(self.bites, 0), len(t))
        before = np.vstack([u, inputs])[:taken, 0]
        x = belief.x[0] + np.cumsum(before)
        self.calls.append(("many", taken))
        return taken, np.array([self.row(*one) for one in zip(x, values[:taken, 0], sigma[:taken, 0])])

    def __call__(self, belief, u, t, values, flags, inputs, sigma):
        self.calls.append(("one", 1))
        return CompiledPassage(PassageLayout(1, 1, 1), self.row(belief.x[0] + u[0], values[0], sigma[0]), t)


@pytest.mark.parametrize(
    ("bites", "expected"),
    [
        ([999] * 9, [("many", 500), ("many", 120)]),
        ([0, 999, 999], [("many", 0), *[("one", 1)] * 16, ("many", 500), ("many", 104)]),
        ([40, 999, 999], [("many", 40), ("one", 1), ("many", 500), ("many", 79)]),
        ([0] * 99, ([("many", 0), *[("one", 1)] * 16] * 39)[: 39 + 620]),
    ],
    ids=["all at once", "none at first", "some", "never"],
)
def test_steps_are_taken_together_where_machine_code_takes_them(bites, expected):
    """620 steps, up to 500 in a call: one by Python after a call that stopped early, 16 after one that took none."""
    rng = np.random.default_rng(10)
    u, sigma, values = rng.standard_normal((620, 1)), rng.uniform(1.0, 2.0, (620, 1)), rng.standard_normal((620, 1))
    log = Measurements(np.arange(620.0), values, ("y",), inputs=u, sigma=sigma)
    system = SimpleNamespace(states=("x",), outputs=("y",))
    history, step, told = _History(system, 620, 1), Adding(bites), []
    fill(history, step, EKF(), log, Belief([4.0], [[1.0]]), lambda task, done, total: told.append((done, total)))
    assert step.calls == expected
    assert history.x[:, 0] == pytest.approx(4.0 + u[0, 0] + np.concatenate([[0.0], np.cumsum(u[:-1, 0])]))
    assert history.P[:, 0, 0] == pytest.approx(sigma[:, 0] ** 2)  # that of each step
    assert told[-1] == (620, 620) and [done for done, _ in told] == sorted(done for done, _ in told)
    if bites[-1] == 0:
        assert [done for done, _ in told] == [1, 101, 201, 301, 401, 501, 601, 620]


def test_results_that_are_held_together_fit_the_cache():
    """A short row of `PassageLayout` a step: of a state of 40 with 12 readings at most 500,000 numbers are held, and hardly fewer."""

    class Refusing:
        def marched(self, belief, u, t, *rest, whole):
            assert not whole
            raise StopIteration(len(t))

    n, m, N = 40, 12, 600
    log = Measurements(np.arange(float(N)), np.zeros((N, m)), tuple(f"y{k}" for k in range(m)))
    with pytest.raises(StopIteration) as found:
        fill(RunLikelihood(N, n, m, n), Refusing(), EKF(), log, Belief(np.zeros(n), np.eye(n)))
    assert 0.95 < found.value.value * PassageLayout(n, n, m).short / 500_000 < 1.05


def test_a_replay_reports_every_hundredth_stamp_and_the_last():
    case, told = textbook.oscillator(), []
    _, y = case.simulate(120, np.random.default_rng(4))
    arrival = case.step * np.arange(120)[:, None] + np.zeros((1, 2))
    how = EKF(late="rewind")
    run(
        how, system_of(EKF, case), log_of(case, y, arrival=arrival), start_of(case), lambda *said: told.append(said[1:])
    )
    assert told == [(1, 120), (101, 120), (120, 120)]
