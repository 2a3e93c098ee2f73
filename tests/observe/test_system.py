"""Integrators and their derivatives; states on a circle; what callables may not return."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from observe.builders import pendulum
from veridyn.errors import ModelError
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.filters.run import run, smooth
from veridyn.observe.measurements import Measurements
from veridyn.observe.process_noise import van_loan
from veridyn.observe.result import Belief
from veridyn.observe.system import Continuous, Discrete, check_jacobian, numeric_jacobian

NONE = np.zeros(0)
X = np.array([0.7, -0.4])


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_an_integrator_has_its_order(integrator, order):
    reference = solve_ivp(lambda t, x: pendulum().f(x, NONE, t), (0, 0.8), X, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = [
        np.abs(pendulum(integrator=integrator, step=h).move(X, NONE, 0.0, 0.8) - reference).max() for h in (0.02, 0.01)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("integrator", ["euler", "midpoint", "rk4"])
@pytest.mark.parametrize("step", [np.inf, 0.07])
def test_the_derivative_is_that_of_the_integrators_own_map(integrator, step):
    s = pendulum(integrator=integrator, step=step)
    x, F = s.move_and_jacobian(X, NONE, 0.0, 0.3)
    assert np.array_equal(x, s.move(X, NONE, 0.0, 0.3))
    assert np.abs(F - numeric_jacobian(lambda v: s.move(v, NONE, 0.0, 0.3), X)[0]).max() < 1e-9
    check_jacobian(lambda v: s.sense(v, NONE, 0.0), lambda v: s.sense_and_jacobian(v, NONE, 0.0)[1], X)


def test_time_and_input_reach_the_callables():
    s = Continuous(
        ("x",), ("y",), lambda x, u, t: u * t, lambda x, u, t: x + u, [0.0], [1.0], F=lambda x, u, t: [[0.0]]
    )
    assert s.move(np.zeros(1), np.array([3.0]), 2.0, 1.0) == pytest.approx([3.0 * (9 - 4) / 2])
    assert s.sense(np.zeros(1), np.array([3.0]), 0.0) == pytest.approx([3.0])


def test_noise_of_a_step_is_van_loans_with_or_without_a_derivative():
    A = np.array([[0.0, 1.0], [-G_COS, -0.2]])
    expected = van_loan(A, np.diag([0.0, 0.02]), 0.1)[1]
    assert np.abs(pendulum().noise(X, NONE, 0.0, 0.1) - expected).max() < 1e-15
    assert np.abs(pendulum(False).noise(X, NONE, 0.0, 0.1) - expected).max() < 1e-9


G_COS = 9.806 * np.cos(0.7)


def test_many_states_at_once_or_one_by_one():
    many = np.random.default_rng(0).standard_normal((5, 2))
    batched, single = (
        pendulum(),
        Discrete(
            ("a", "b"),
            ("y",),
            lambda x, u, t, dt: np.array([x[1], x[0] * dt]),
            lambda x, u, t: [x[0]],
            np.eye(2),
            [1.0],
        ),
    )
    one_by_one = np.array([batched.move(x, NONE, 0.0, 0.1) for x in many])
    assert np.allclose(batched.move(many, NONE, 0.0, 0.1), one_by_one, atol=1e-15)
    assert single.move(many, NONE, 0.0, 0.1).shape == (5, 2) and single.sense(many, NONE, 0.0).shape == (5, 1)


def circle(kind):
    """A heading as a point (cos, sin) of the circle, turned by a known rate; a compass that reads an angle in (−π, π]."""

    def turn(x, d):
        d = np.asarray(d)[..., 0]
        c, s = np.cos(d), np.sin(d)
        return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], axis=-1)

    def between(a, b):
        return np.arctan2(b[..., 0] * a[..., 1] - b[..., 1] * a[..., 0], (a * b).sum(axis=-1))[..., None]

    return Discrete(
        ("heading",),
        ("compass",),
        lambda x, u, t, dt: turn(x, u * dt),
        lambda x, u, t: np.arctan2(x[..., 1], x[..., 0])[..., None],
        [1e-3],
        [0.04],
        F=(lambda x, u, t, dt: [[1.0]]) if kind is EKF else None,
        H=(lambda x, u, t: [[1.0]]) if kind is EKF else None,
        add_change=turn,
        change_between=between,
        reading_error=lambda y, e: np.mod(y - e + np.pi, 2 * np.pi) - np.pi,
        batched=True,
    )


@pytest.mark.parametrize("kind", [EKF, UKF], ids=lambda k: k.__name__)
def test_a_state_on_a_circle_is_the_plain_angle_filter_without_its_jumps(kind):
    rng = np.random.default_rng(1)
    t, rate = np.arange(100) * 0.1, 1.3
    angle = 2.0 + rate * t + np.cumsum(rng.standard_normal(100)) * np.sqrt(1e-3)
    y = angle + 0.2 * rng.standard_normal(100)
    u = np.full((100, 1), rate)
    wrapped = Measurements(t, np.mod(y + np.pi, 2 * np.pi) - np.pi, ("compass",), inputs=u)
    system = circle(kind)
    e = run(kind(), system, wrapped, Belief(np.array([np.cos(2.0), np.sin(2.0)]), [0.04]))
    plain = Discrete(
        ("heading",), ("compass",), lambda x, u, t, dt: x + u * dt, lambda x, u, t: x, [1e-3], [0.04],
        F=lambda x, u, t, dt: [[1.0]], H=lambda x, u, t: [[1.0]],
    )  # fmt: skip
    p = run(EKF(), plain, Measurements(t, y, ("compass",), inputs=u), Belief([2.0], [0.04]))
    assert np.abs(e.x - np.column_stack([np.cos(p.x), np.sin(p.x)])).max() < 1e-9
    assert np.abs(e.P - p.P).max() < 1e-9
    s, q = smooth(e, system), smooth(p)
    assert np.abs(s.x - np.column_stack([np.cos(q.x), np.sin(q.x)])).max() < 1e-9
    assert "compass" in e.summary()


def test_wrong_shapes_and_settings_are_refused_by_the_name_of_the_callable():
    def made(**changes):
        given = {
            "states": ("a", "b"),
            "outputs": ("y",),
            "f": lambda x, u, t, dt: x,
            "h": lambda x, u, t: x[:1],
            "Q": np.eye(2),
            "R": [1.0],
            "F": lambda x, u, t, dt: np.eye(2),
            "H": lambda x, u, t: np.ones((1, 2)),
        }
        return Discrete(**(given | changes))

    x = np.zeros(2)
    with pytest.raises(ModelError, match=r"f has the wrong shape(.|\n)*\(2,\), found \(3,\)"):
        made(f=lambda x, u, t, dt: np.zeros(3)).move(x, NONE, 0.0, 0.1)
    with pytest.raises(ModelError, match="h has the wrong shape"):
        made(h=lambda x, u, t: x).sense(x, NONE, 0.0)
    with pytest.raises(ModelError, match="F has the wrong shape"):
        made(F=lambda x, u, t, dt: np.eye(3)).move_and_jacobian(x, NONE, 0.0, 0.1)
    with pytest.raises(ModelError, match="H has the wrong shape"):
        made(H=lambda x, u, t: np.ones(2)).sense_and_jacobian(x, NONE, 0.0)
    with pytest.raises(ModelError, match=r"the system has no H, which this filter needs(.|\n)*UKF"):
        made(H=None).sense_and_jacobian(x, NONE, 0.0)
    with pytest.raises(ModelError, match=r"process noise at 0.5 s: the variance of 'b' is negative"):
        made(Q=lambda x, u, t, dt: [1.0, -1.0]).noise(x, NONE, 0.5, 0.1)
    with pytest.raises(ModelError, match=r"measurement noise at 2 s: the variance of 'y' is negative"):
        made(R=lambda t: [-1.0]).sensor_noise(2.0)
    with pytest.raises(ModelError, match="there is no integrator 'rk5'"):
        pendulum(integrator="rk5")
    with pytest.raises(ModelError, match="longest step"):
        pendulum(step=0.0)
    with pytest.raises(ModelError, match="a continuous system's state is a plain vector"):
        pendulum(add_change=lambda x, d: x)


def test_callable_noise_is_used():
    A = np.array([[0.0, 1.0], [0.0, 0.0]])
    s = Continuous(
        ("x", "v"), ("y",), lambda x, u, t: A @ x, lambda x, u, t: x[:1], lambda x, u, t: [0.0, t], lambda t: [t],
        F=lambda x, u, t: A,
    )  # fmt: skip
    x, F = s.move_and_jacobian(np.ones(2), NONE, 2.0, 0.5)
    assert np.allclose(F, expm(A * 0.5)) and np.allclose(x, [1.5, 1.0])
    assert np.allclose(s.noise(np.ones(2), NONE, 2.0, 0.5), van_loan(A, np.diag([0.0, 2.0]), 0.5)[1])
    assert s.sensor_noise(3.0) == np.array([[3.0]])
