"""A new filter states two things and inherits the rest."""

from dataclasses import dataclass

import numpy as np
import pytest

from observe import textbook
from observe.builders import log_of, start_of, system_of
from veridyn.errors import ModelError, SimulationError
from veridyn.observe.filters.filter import Filter, advance, starting_belief
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.filters.update import Expectation
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete


@dataclass(frozen=True)
class Fading(Filter):
    """A filter that trusts its model less than it should: P is inflated at each step."""

    factor: float = 1.1

    def predict(self, system, belief, u, t, dt):
        x, F = system.move_and_jacobian(belief.x, u, t, dt)
        return x, self.factor * F @ belief.P @ F.T + system.noise(belief.x, u, t, dt), F

    def expect(self, system, x, P, u, t):
        return Expectation(*system.sense_and_jacobian(x, u, t), system.sensor_noise(t))


def test_a_new_filter_needs_two_methods_only():
    case = textbook.oscillator()
    _, y = case.simulate(50, np.random.default_rng(0))
    plain, fading = (run(k, system_of(EKF, case), log_of(case, y), start_of(case)) for k in (EKF(), Fading()))
    same = run(Fading(factor=1.0), system_of(EKF, case), log_of(case, y), start_of(case))
    assert (fading.sigma[5:] > plain.sigma[5:]).all() and np.allclose(same.x, plain.x, atol=1e-13)
    assert fading.filter == "Fading"


def test_no_time_no_change():
    case = textbook.oscillator()
    belief = Belief(case.x0, case.P0, 2.0)
    p = advance(EKF(), system_of(EKF, case), belief, np.zeros(0), 2.0)
    assert p.x is belief.x and p.P is belief.P and np.array_equal(p.F, np.eye(3))


def test_a_start_gets_its_time_and_its_full_covariance():
    case = textbook.oscillator()
    b = starting_belief(system_of(EKF, case), Belief(case.x0, [1.0, 2.0, 3.0]), 4.0)
    assert b.t == 4.0 and np.array_equal(b.P, np.diag([1.0, 2.0, 3.0]))


def test_a_sensor_model_that_is_not_finite_is_named():
    system = Discrete(
        ("x",), ("good", "bad"), lambda x, u, t, dt: x, lambda x, u, t: [x[0], np.inf], [1.0], [1.0, 1.0],
        F=lambda x, u, t, dt: [[1.0]], H=lambda x, u, t: [[1.0], [1.0]],
    )  # fmt: skip
    with pytest.raises(SimulationError, match="the model of 'bad' is not finite at 3 s"):
        run(EKF(), system, Measurements([3.0], np.zeros((1, 2)), ("good", "bad")), Belief([0.0], [1.0]))


def test_bad_settings_are_refused():
    with pytest.raises(ModelError, match=r"EKF.horizon: the value is not valid"):
        EKF(late="rewind", horizon=-1.0)


def drifting_cart(sigma: float = 0.01) -> Discrete:
    """A cart with its position and its speed measured, and next to no process noise."""
    F = np.array([[1.0, 0.01], [0.0, 1.0]])
    return Discrete(
        ("x", "v"),
        ("x", "v"),
        lambda x, u, t, dt: F @ x,
        lambda x, u, t: x,
        np.diag([1e-12, 1e-12]),
        [sigma**2, sigma**2],
        lambda x, u, t, dt: F,
        lambda x, u, t: np.eye(2),
    )


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_the_gate_auto_refuses_outliers_and_opens_again_for_a_filter_that_is_wrong(engine):
    """A cart is pushed from 1 m/s to 2 m/s at 2 s, which its model does not know: from the 21st refused reading on it is found again."""
    t = 0.01 * np.arange(400)
    v = np.where(t < 2.0, 1.0, 2.0)
    x = np.concatenate([[0.0], np.cumsum(0.01 * v[:-1])])
    rng = np.random.default_rng(4)
    y = np.column_stack([x, v]) + 0.01 * rng.standard_normal((400, 2))
    y[50, 0] += 1.0  # an outlier
    log, start = Measurements(t, y, ("x", "v")), Belief(np.array([0.0, 1.0]), np.array([1e-4, 1e-4]))
    found = run(EKF(gate="auto", engine=engine), drifting_cart(), log, start)
    assert found.status[50, 0] == Status.OUTLIER and (found.status[60:200] == Status.USED).all()
    assert (found.status[200:220, 1] == Status.OUTLIER).all() and found.status[220, 1] == Status.USED
    assert np.abs(found.x[230:] - np.column_stack([x, v])[230:]).max() < 0.05  # five deviations of a reading
    error = found.x[230:] - np.column_stack([x, v])[230:]
    assert np.mean(np.abs(error) < 3.0 * found.sigma[230:]) > 0.9
    stays = run(EKF(gate=0.999999, engine=engine), drifting_cart(), log, start)
    assert (stays.status[200:, 1] == Status.OUTLIER).all()  # a gate with a number never opens by itself
    assert run(EKF(gate=None, engine=engine), drifting_cart(), log, start).dof.sum() == 800


def test_the_gate_is_a_probability_auto_or_none():
    assert EKF().gate == "auto" and EKF(gate="auto").pass_probability == 1.0 - 1e-6
    assert EKF(gate=0.99).pass_probability == 0.99 and EKF(gate=None).pass_probability is None
    with pytest.raises(ModelError, match="gate"):
        EKF(gate="open")  # pyright: ignore[reportArgumentType]
