"""What every observation has: states by name, consistency and a summary, of a machine of joints and of a car alike."""

import numpy as np
import pytest

import veridyn as vd
from observe import textbook
from observe.builders import log_of, pendulum, pendulum_log, start_of, system_of
from veridyn.errors import DataError
from veridyn.filters import CarNoise
from veridyn.manoeuvres import Steered
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.linear import Kalman, Linear, steady_state
from veridyn.observe.filters.run import run
from veridyn.observe.history import StateHistory, closed_loop, poles
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief


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


def pendulum_history() -> StateHistory:
    rod = vd.Link(name="rod", inertia=[0.33, 0, 0, 0.33, 0, 0.01, 0, 0, -0.5, 1.0])
    hinge = vd.Joint(name="hinge", a="ground", b="rod")
    machine = vd.Machine.build([rod], [hinge], sensors=[vd.Sensor("angle", "coordinate", "hinge", 1e-3)])
    log = vd.simulate(machine, vd.manoeuvres.Driven(1.0, 50.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    return vd.observe(machine, log, settings=vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-3)))


def car() -> StateHistory:
    machine = vd.model.car_machine("small", {"mass": 900.0, "front": 1.0, "rear": 1.4})
    drive = Steered(4.0, 25.0, speed=20.0, steer=lambda t: 0.03 * np.sin(t))
    log = vd.simulate(machine, drive, rng=np.random.default_rng(0))
    return vd.observe(machine, log, settings=vd.ObserveSettings(process_noise=CarNoise(slip_error=1e-3, bank=1e-3)))


@pytest.mark.parametrize("made", [pendulum_history, car])
def test_every_observation_has_states_consistency_and_a_summary(made) -> None:
    found = made()
    assert isinstance(found, StateHistory) and len(found) == len(found.t) == len(found.reduced) == len(found.sigma)
    assert len(found.states) == len(found.units) == found.reduced.shape[1]
    name = found.states[0]
    np.testing.assert_array_equal(found.state(name), found.reduced[:, 0])
    assert name in found.summary() and "NIS" in found.summary() and type(found).__name__ in repr(found)
    assert 0.3 < found.nis(10).mean < 3.0 and set(found.whiteness()) == set(found.estimates.outputs)
    assert found.bounded() == () and found.episodes() == ()
    assert found.system.name in found._repr_html_() and len(found.to_frame()) == len(found)
    with pytest.raises(DataError, match="there is no state 'nothing'"):
        found.state("nothing")
