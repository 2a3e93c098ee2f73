"""Rates against the stationary poles; a gain that decides; and the test that cannot fail."""

import numpy as np
import pytest

from observe import textbook
from observe.builders import log_of, pendulum, pendulum_log, start_of, system_of
from veridyn.errors import DataError
from veridyn.observe.ekf import EKF
from veridyn.observe.linear import Kalman, Linear, steady_state
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.run import run
from veridyn.observe.stability import closed_loop, poles


def test_rates_are_the_logarithms_of_the_stationary_poles():
    case = textbook.oscillator()
    e = run(Kalman(), system_of(Kalman, case), log_of(case, np.zeros((2000, 2))), start_of(case))
    settled = steady_state(case.F, case.H, case.Q, case.R)
    expected = np.sort(np.log(np.abs(settled.poles)) / case.step)[::-1]
    loop = closed_loop(e, skip=200)
    # a product of 1800 steps of 0.1 s knows its rates to a few units of 1/180 s
    assert loop.rates == pytest.approx(expected, abs=0.015) and loop.stable
    assert loop.radius[-1] == pytest.approx(np.abs(settled.poles).max(), rel=1e-6)
    assert loop.memory == pytest.approx(-1 / expected[0], rel=0.02) and "stable: errors fall" in loop.summary()
    assert closed_loop(e, scales=[1.0, 10.0, 0.1], skip=200).rates == pytest.approx(expected, abs=0.05)


def test_the_gain_decides():
    F, H = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    assert np.abs(poles(F, [[0.5], [0.5]], H)).max() < 1.0
    assert np.abs(poles(F, [[0.5], [-0.5]], H)).max() > 1.0
    # The matrix of equation 65: the machine, the model and the error it feeds. Its eigenvalues know nothing of the gain.
    for K in ([[0.5], [0.5]], [[0.5], [-0.5]], [[90.0], [-7.0]]):
        K = np.array(K)
        Z = np.zeros((2, 2))
        printed = np.block([[F, Z, Z], [Z, F, Z], [F @ K @ H, -F @ K @ H, Z]])
        assert np.sort(np.abs(np.linalg.eigvals(printed))) == pytest.approx([0, 0, 1, 1, 1, 1], abs=1e-6)


def test_a_state_that_nothing_measures_is_not_forgotten():
    F = np.diag([0.9, 1.01])
    system = Linear(("seen", "unseen"), ("y",), F, [[1.0, 0.0]], [0.1, 0.1], [1.0], step=0.1)
    log = Measurements(0.1 * np.arange(300), np.zeros(300), ("y",))
    loop = closed_loop(run(Kalman(), system, log, Belief([0.0, 0.0], [1.0, 1.0])))
    assert not loop.stable and loop.memory == np.inf
    assert loop.rates[0] == pytest.approx(np.log(1.01) / 0.1, rel=1e-6)
    assert "not stable: an error grows at 0.0995 1/s" in loop.summary()


def test_rates_of_a_pendulum_are_how_fast_two_starts_meet():
    _, log, start = pendulum_log(200, 0.02, np.random.default_rng(0))
    a = run(EKF(), pendulum(), log, start)
    b = run(EKF(), pendulum(), log, Belief(start.x + np.array([1e-4, 0.0]), start.P))
    gap = np.linalg.norm(a.x - b.x, axis=1)
    rate = closed_loop(a).rates[0]
    assert rate < 0.0 and np.log(gap[-1] / gap[20]) / (180 * 0.02) == pytest.approx(rate, abs=0.5 * abs(rate))


def test_one_sample_is_not_enough():
    case = textbook.oscillator()
    e = run(Kalman(), system_of(Kalman, case), log_of(case, np.zeros((1, 2))), start_of(case))
    with pytest.raises(DataError, match="one sample makes no step"):
        closed_loop(e)
