"""Closed-form scalar filters, SciPy's Riccati equation, time-varying systems, and steps of any length."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from observe import textbook
from observe.linear import Kalman, Linear, from_rates, steady_state
from veridyn.errors import ModelError
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief


def test_a_random_walk_settles_at_the_golden_ratio():
    # Q = R = 1: the prediction variance p solves p² − p − 1 = 0, and the gain is 1/golden ratio.
    golden = (1 + np.sqrt(5)) / 2
    walk = Linear(("x",), ("y",), [[1.0]], [[1.0]], [1.0], [1.0])
    e = run(Kalman(), walk, Measurements(np.arange(40.0), np.zeros(40), ("y",)), Belief([0.0], [5.0]))
    assert e.P_predicted[-1, 0, 0] == pytest.approx(golden, abs=1e-12)
    assert e.K[-1, 0, 0] == pytest.approx(1 / golden, abs=1e-12)
    settled = steady_state([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    assert settled.P_predicted[0, 0] == pytest.approx(golden, abs=1e-12) and settled.stable
    assert settled.poles == pytest.approx([1 - 1 / golden])


def test_a_long_run_reaches_the_riccati_solution():
    case = textbook.oscillator()
    settled = steady_state(case.F, case.H, case.Q, case.R)
    assert np.allclose(settled.P_predicted, solve_discrete_are(case.F.T, case.H.T, case.Q, case.R), atol=1e-12)
    system = Linear(case.states, case.outputs, case.F, case.H, case.Q, case.R, step=case.step)
    log = Measurements(case.step * np.arange(600), np.zeros((600, 2)), case.outputs)
    e = run(Kalman(), system, log, Belief(case.x0, case.P0))
    assert np.abs(e.P_predicted[-1] - settled.P_predicted).max() < 1e-10
    assert np.abs(e.P[-1] - settled.P).max() < 1e-10 and np.abs(e.K[-1] - settled.K).max() < 1e-9
    assert (np.abs(settled.poles) < 1.0).all()


def test_steady_state_is_refused_where_there_is_none():
    with pytest.raises(ModelError, match=r"the filter has no stationary gain(.|\n)*observability"):
        steady_state(np.diag([1.0, 1.2]), [[1.0, 0.0]], np.eye(2), np.eye(1))


def test_steps_of_any_length_are_exact():
    rng = np.random.default_rng(0)
    A, B = np.array([[0.0, 1.0], [-9.0, -0.4]]), np.array([[0.0], [1.0]])
    system = from_rates(("x", "v"), ("y",), A, [[1.0, 0.0]], [0.0, 0.5], [0.01], B)
    t = np.cumsum(rng.uniform(0.01, 0.2, 80))
    y, u = rng.standard_normal((80, 1)), rng.standard_normal((80, 1))
    coarse = run(Kalman(), system, Measurements(t, y, ("y",), inputs=u), Belief([0.0, 0.0], [1.0, 1.0]))
    # The same log with an empty row in the middle of every step, under the same held input.
    middle = (t[:-1] + t[1:]) / 2
    fine_t = np.sort(np.concatenate([t, middle]))
    fine_y, fine_u = np.full((159, 1), np.nan), np.empty((159, 1))
    fine_y[::2], fine_u[::2], fine_u[1::2] = y, u, u[:-1]
    fine = run(Kalman(), system, Measurements(fine_t, fine_y, ("y",), inputs=fine_u), Belief([0.0, 0.0], [1.0, 1.0]))
    assert np.abs(fine.x[::2] - coarse.x).max() < 1e-10 and np.abs(fine.P[::2] - coarse.P).max() < 1e-10


def test_an_input_moves_the_state_as_its_integral():
    system = from_rates(("x", "v"), ("y",), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0]], [0.0, 0.0], [1.0], [[0.0], [1.0]])
    nothing = Measurements(np.arange(5.0), np.full(5, np.nan), ("y",), inputs=np.full(5, 2.0))
    e = run(Kalman(), system, nothing, Belief([0.0, 0.0], [1.0, 1.0]))
    assert e.x[:, 0] == pytest.approx(np.arange(5.0) ** 2) and e.x[:, 1] == pytest.approx(2 * np.arange(5.0))


def test_a_start_before_the_first_reading_is_predicted_to_it():
    system = from_rates(("x", "v"), ("y",), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0]], [0.0, 1.0], [1.0])
    e = run(Kalman(), system, Measurements([2.0], [[np.nan]], ("y",)), Belief([1.0, 3.0], [1.0, 1.0], t=0.0))
    assert e.x[0] == pytest.approx([7.0, 3.0])
    assert e.P[0] == pytest.approx(np.array([[1 + 4 + 8 / 3, 2 + 2], [2 + 2, 1 + 2]]))


def test_time_varying_matrices_equal_least_squares():
    """A line seen through a lens that changes: y_k = (1, sin t) x, x constant; the filter is recursive least squares."""
    rng = np.random.default_rng(1)
    t = np.arange(200) * 0.05
    H = np.column_stack([np.ones(200), np.sin(t)])
    sigma = 0.1 + 0.05 * np.cos(t)
    y = H @ [2.0, -1.0] + sigma * rng.standard_normal(200)
    system = Linear(
        ("a", "b"), ("y",), np.eye(2), lambda s: [[1.0, np.sin(s)]], np.zeros((2, 2)),
        lambda s: [(0.1 + 0.05 * np.cos(s)) ** 2],
    )  # fmt: skip
    e = run(Kalman(), system, Measurements(t, y, ("y",)), Belief([0.0, 0.0], [1e8, 1e8]))
    W = H / sigma[:, None]
    assert e.x[-1] == pytest.approx(np.linalg.lstsq(W, y / sigma, rcond=None)[0], rel=1e-7)
    assert e.P[-1] == pytest.approx(np.linalg.inv(W.T @ W), rel=1e-5)


def test_feedthrough_and_callables_of_the_step():
    system = Linear(
        ("x",), ("y",), lambda t, dt: [[np.exp(-dt)]], [[2.0]], lambda t, dt: [dt], [1.0],
        B=lambda t, dt: [[dt]], D=lambda t: [[10.0]],
    )  # fmt: skip
    log = Measurements([0.0, 0.5], [[np.nan], [np.nan]], ("y",), inputs=np.array([[1.0], [3.0]]))
    e = run(Kalman(), system, log, Belief([1.0], [1.0]))
    assert e.x[1, 0] == pytest.approx(np.exp(-0.5) + 0.5) and e.P[1, 0, 0] == pytest.approx(np.exp(-1) + 0.5)
    assert system.sense(e.x[1], np.array([3.0]), 0.5) == pytest.approx(2 * e.x[1] + 30)


def test_a_step_of_another_length_is_refused():
    system = Linear(("x",), ("y",), [[1.0]], [[1.0]], [1.0], [1.0], step=0.1)
    with pytest.raises(ModelError, match=r"the step at 0.1 s is not(.|\n)*0.1 s, found 0.2 s(.|\n)*from_rates"):
        run(Kalman(), system, Measurements([0.0, 0.1, 0.3], np.zeros(3), ("y",)), Belief([0.0], [1.0]))


def test_wrong_matrices_are_refused_by_name():
    with pytest.raises(ModelError, match=r"H has the wrong shape(.|\n)*\(1, 2\), found \(2, 1\)"):
        Linear(("a", "b"), ("y",), np.eye(2), [[1.0], [0.0]], np.eye(2), [1.0])
    with pytest.raises(ModelError, match="B has the wrong shape"):
        Linear(("a", "b"), ("y",), np.eye(2), [[1.0, 0.0]], np.eye(2), [1.0], B=np.zeros((3, 1)))
    wrong = Linear(("a",), ("y",), [[1.0]], [[1.0]], [1.0], [1.0], B=np.zeros((1, 2)))
    with pytest.raises(ModelError, match="B has the wrong shape"):
        run(Kalman(), wrong, Measurements([0.0, 1.0], np.zeros(2), ("y",)), Belief([0.0], [1.0]))
    with pytest.raises(ModelError, match="spectral density: the variance of 'v' is negative"):
        from_rates(("x", "v"), ("y",), np.zeros((2, 2)), [[1.0, 0.0]], [0.0, -1.0], [1.0])


def test_several_states_move_at_once_as_written_out():
    F, B = np.array([[1.0, 0.1], [0.0, 0.9]]), np.array([[0.0], [0.2]])
    system = Linear(("x", "v"), ("y",), F, [[1.0, 0.0]], [0.0, 1.0], [1.0], B)
    moved = system.move(np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([5.0]), 0.0, 0.1)
    assert moved == pytest.approx(np.array([[1.2, 2.8], [2.9, 0.1]]))  # x + 0.1 v, 0.9 v + 0.2 · 5
    assert system.sense(moved, np.array([5.0]), 0.1) == pytest.approx(np.array([[1.2], [2.9]]))


def test_poles_are_the_eigenvalues_of_what_an_error_obeys():
    """Noise-free runs from a wrong start: after n steps the predicted error is (F (I − K H))ⁿ of the first, with the settled gain."""
    case = textbook.oscillator()
    settled = steady_state(case.F, case.H, case.Q, case.R)
    error, steps = np.eye(len(case.F)), 12
    for _ in range(steps):
        error = case.F @ (error - settled.K @ (case.H @ error))
    assert np.sort_complex(settled.poles**steps) == pytest.approx(np.sort_complex(np.linalg.eigvals(error)), abs=1e-12)


def test_two_inputs_are_felt_by_two_readings():
    """ẏ of each input by its column of B and of D, two columns each, worked out by hand."""
    D, B = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[3.0, 0.5]])
    s = Linear(("x",), ("y", "z"), [[1.0]], [[1.0], [2.0]], [0.0], [1.0, 1.0], B=B, D=D)
    u = np.array([0.5, 4.0])
    assert s.move(np.array([1.0]), u, 0.0, 1.0) == pytest.approx([4.5])
    assert s.sense(np.array([1.0]), u, 0.0) == pytest.approx([9.5, -2.0])


def test_a_step_may_differ_by_a_millionth():
    s = Linear(("x",), ("y",), [[1.0]], [[1.0]], [0.0], [1.0], step=0.01)
    assert s.move(np.ones(1), np.zeros(0), 0.0, 0.01 * (1.0 + 0.9e-6)) == pytest.approx([1.0])
    with pytest.raises(ModelError, match="is not the one of this system"):
        s.move(np.ones(1), np.zeros(0), 0.0, 0.01 * (1.0 + 1.5e-6))


def test_steps_that_differ_by_the_rounding_of_a_clock_are_made_once():
    """Stamps of some seconds are known to 1e-15 s or so: what differs by less than 1e-12 s is the same step."""
    s = from_rates(("x", "v"), ("y",), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0]], [0.0, 1.0], [1.0])
    assert s.F(0.0, 0.01) is s.F(5.0, 0.01 + 3e-13)
    assert s.F(0.0, 0.01) is not s.F(0.0, 0.01 + 3e-12)
