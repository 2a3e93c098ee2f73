"""The tangent, worked by hand; and the error-state filter as an extended one with another transition."""

from types import SimpleNamespace

import numpy as np
import pytest

from observe.builders import pendulum, pendulum_log
from observe.textbook import integrated_white_noise
from veridyn.errors import ModelError
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete

NONE = np.zeros(0)


def test_one_step_of_a_quadratic_by_hand():
    # x ← x²/2, y = x³: from 2 ± 0.5 the prediction is 2 with P = F P F + Q = 2·0.25·2 + 0.1 = 1.1
    system = Discrete(
        ("x",), ("y",), lambda x, u, t, dt: x**2 / 2, lambda x, u, t: x**3, [0.1], [4.0],
        F=lambda x, u, t, dt: [x], H=lambda x, u, t: [3 * x**2],
    )  # fmt: skip
    e = run(EKF(), system, Measurements([0.0, 1.0], [[np.nan], [9.0]], ("y",)), Belief([2.0], [0.25]))
    S = 12**2 * 1.1 + 4
    assert e.x_predicted[1, 0] == 2.0 and e.P_predicted[1, 0, 0] == pytest.approx(1.1)
    assert e.innovations[1, 0] == 1.0 and e.innovation_variances[1, 0] == pytest.approx(S)
    assert e.K[1, 0, 0] == pytest.approx(12 * 1.1 / S) and e.x[1, 0] == pytest.approx(2 + 12 * 1.1 / S)
    assert e.P[1, 0, 0] == pytest.approx(1.1 - (12 * 1.1) ** 2 / S) and e.F[1, 0, 0] == 2.0 and e.H[1, 0, 0] == 12.0


def test_the_error_state_filter_is_this_filter_with_an_integrator_as_transition():
    """Paper 003, equations 54 and 57: the model is corrected, so the predicted error is zero, and F only integrates."""
    truth, log, start = pendulum_log(200, 0.02, np.random.default_rng(0))
    machine = pendulum()
    assert machine.H is not None
    Q = integrated_white_noise(1.0, 0.02, 2)
    system = Discrete(
        machine.states, machine.outputs, lambda x, u, t, dt: machine.move(x, u, t, dt), machine.h, Q, machine.R,
        F=lambda x, u, t, dt: [[1.0, dt], [0.0, 1.0]], H=machine.H,
    )  # fmt: skip
    e = run(EKF(), system, log, start)
    x, P = start.x.copy(), np.diag(start.P)
    F = np.array([[1.0, 0.02], [0.0, 1.0]])
    for k in range(200):
        if k:
            x, P = machine.move(x, NONE, 0.0, 0.02), F @ P @ F.T + Q
        H = machine.H(x, NONE, 0.0)
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + machine.R)
        error = K @ (log.values[k] - machine.h(x, NONE, 0.0))
        x, P = x + error, (np.eye(2) - K @ H) @ P
        assert np.abs(e.x[k] - x).max() < 1e-10
    assert np.sqrt(np.mean((e.x - truth)[50:] ** 2, axis=0)).max() < 0.2


def test_a_pendulum_is_followed_from_a_wrong_start():
    truth, log, _ = pendulum_log(300, 0.02, np.random.default_rng(1))
    e = run(EKF(), pendulum(), log, Belief([-0.3, 1.0], [1.0, 4.0]))
    rms = np.sqrt(np.mean((e.x - truth)[100:] ** 2, axis=0))
    assert (rms < [0.03, 0.1]).all() and (rms < 2.0 * e.sigma[-1]).all()


def test_without_derivatives_it_says_so():
    _, log, start = pendulum_log(3, 0.02, np.random.default_rng(1))
    with pytest.raises(ModelError, match=r"the system has no H, which this filter needs"):
        run(EKF(), pendulum(derivatives=False), log, start)


class _Own(EKF):
    """A filter whose expectation is its own."""

    def expect(self, system, x, P, u, t):
        return super().expect(system, x, P, u, t)


def test_a_filter_with_steps_of_its_own_runs_them_and_no_machine_code():
    """Machine code is that of the extended filter; whoever overrides a step gets what was written."""
    made = SimpleNamespace(keeps_derivatives=True)
    system = SimpleNamespace(compiled_step=lambda gate: made)
    assert EKF().compiled_step(system) is made
    assert EKF(engine="python").compiled_step(system) is None
    assert _Own().compiled_step(system) is None
    with pytest.raises(ModelError, match="there is no compiled step of this filter on this system"):
        _Own(engine="compiled").compiled_step(system)
    with pytest.raises(ModelError, match="found refresh 2"):
        _Own(refresh=2).compiled_step(system)
