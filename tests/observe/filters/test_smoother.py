"""Against least squares over the whole log (in the conformance suite), Gauss-Newton, and Monte Carlo."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from observe.builders import pendulum, pendulum_log
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.linear import Kalman, Linear
from veridyn.observe.filters.run import run
from veridyn.observe.filters.smoother import _gain, smooth
from veridyn.observe.filters.ukf import UKF
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief

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
