"""Moments that are known exactly, the textbook's weights, and where a tangent fails."""

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete

NONE = np.zeros(0)


def system(f, h=lambda x, u, t: x[:1], n=2, Q=0.0, R=1.0, **more):
    return Discrete([f"x{i}" for i in range(n)], ("y",), f, h, np.full(n, Q), [R], **more)


@pytest.mark.parametrize("alpha", [1e-2, 0.5, 1.0, 1.4])
def test_the_square_of_a_normal_number_has_its_exact_mean_and_variance(alpha):
    # x ~ N(m, v): E x² = m² + v, var x² = 4 m² v + 2 v²; with β = 2 the transform has both, for any α.
    s = system(lambda x, u, t, dt: x**2, n=1)
    x, P, F = UKF(alpha=alpha).predict(s, Belief([3.0], [[0.5]]), NONE, 0.0, 1.0)
    assert x[0] == pytest.approx(9.5) and P[0, 0] == pytest.approx(4 * 9 * 0.5 + 2 * 0.25, rel=1e-8)
    assert F[0, 0] == pytest.approx(6.0)


@pytest.mark.parametrize(("alpha", "beta", "kappa"), [(0.6, 2.0, 1.0), (1.0, 2.0, 0.0), (0.3, 3.0, 0.5)])
def test_equals_the_published_weights(alpha, beta, kappa):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 3))
    x, P = rng.standard_normal(3), A @ A.T + np.eye(3)

    def f(x, u=None, t=None, dt=None):
        return np.array([np.sin(x[0]) + x[1] ** 2, x[0] * x[2], np.cos(x[1]) - x[2]])

    n, lam = 3, alpha**2 * (3 + kappa) - 3
    L = np.linalg.cholesky((n + lam) * P)
    X = np.vstack([x, x + L.T, x - L.T])
    wm = np.full(7, 0.5 / (n + lam))
    wc = wm.copy()
    wm[0], wc[0] = lam / (n + lam), lam / (n + lam) + 1 - alpha**2 + beta
    Y = np.array([f(p) for p in X])
    mean = wm @ Y
    covariance = (wc[:, None] * (Y - mean)).T @ (Y - mean)
    cross = (wc[:, None] * (X - x)).T @ (Y - mean)
    settings = UKF(alpha=alpha, beta=beta, kappa=kappa)
    got, got_P, F = settings.predict(system(f, n=3), Belief(x, P), NONE, 0.0, 1.0)
    assert np.allclose(got, mean, atol=1e-12) and np.allclose(got_P, covariance, atol=1e-10)
    assert np.allclose(P @ F.T, cross, atol=1e-10)
    # and the update: K = P_xy (P_yy + R)⁻¹, P − K S Kᵀ
    R = np.diag([0.3, 0.4, 0.5])
    sensors = Discrete(("a", "b", "c"), ("p", "q", "r"), f, lambda x, u, t: f(x), np.zeros(3), R)
    y = np.array([0.3, -0.2, 0.1])
    e = run(settings, sensors, Measurements([0.0], [y], ("p", "q", "r")), Belief(x, P))
    K = cross @ np.linalg.inv(covariance + R)
    assert np.allclose(e.x[0], x + K @ (y - mean), atol=1e-10) and np.allclose(e.K[0], K, atol=1e-10)
    assert np.allclose(e.P[0], P - K @ (covariance + R) @ K.T, atol=1e-10)


def test_polar_readings_of_a_far_target_bend_less_than_the_tangent():
    """A range and a bearing with a wide prior: the mean of the position is nearer to the truth than a tangent's."""
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal([1.0, np.pi / 2], np.diag([0.02**2, 0.26**2]), 200_000)
    exact = np.column_stack([draws[:, 0] * np.cos(draws[:, 1]), draws[:, 0] * np.sin(draws[:, 1])])

    def f(x, u, t, dt):
        return np.array([x[0] * np.cos(x[1]), x[0] * np.sin(x[1])])

    x, P, _ = UKF().predict(system(f), Belief([1.0, np.pi / 2], np.diag([0.02**2, 0.26**2])), NONE, 0.0, 1.0)
    assert x == pytest.approx(exact.mean(axis=0), abs=2e-3)  # the tangent says y = 1, which is off by 0.033
    assert np.abs(P - np.cov(exact.T)).max() < 2e-3


def test_a_quadratic_sensor_at_its_vertex():
    """y = x² tells nothing at x = 0 to a tangent, which then believes itself unchanged; the points know better."""
    s = system(
        lambda x, u, t, dt: x, lambda x, u, t: x**2, n=1, R=0.01,
        F=lambda x, u, t, dt: [[1.0]], H=lambda x, u, t: [2 * x],
    )  # fmt: skip
    log = Measurements([0.0], [[4.0]], ("y",))
    tangent, points = (run(k, s, log, Belief([0.0], [1.0])) for k in (EKF(gate=None), UKF(gate=None)))
    assert tangent.nis[0] > 1000.0 and points.nis[0] == pytest.approx((4 - 1) ** 2 / (2 + 0.01))


def test_points_leave_the_null_space_of_a_semi_definite_covariance_alone():
    seen = []

    def f(x, u, t, dt):
        seen.append(x.copy())
        return x

    P = np.outer([1.0, 2.0], [1.0, 2.0])
    _, after, F = UKF().predict(system(f), Belief(np.zeros(2), P), NONE, 0.0, 1.0)
    assert np.allclose(after, P, atol=1e-12) and np.allclose([p[1] - 2 * p[0] for p in seen], 0.0, atol=1e-12)
    assert np.allclose(F @ P, P)


def test_weights_that_could_turn_a_covariance_negative_are_refused():
    with pytest.raises(ModelError, match="may make a covariance negative"):
        UKF(alpha=1.0, beta=0.5)
    with pytest.raises(ModelError, match="alpha > 0"):
        UKF(alpha=0.0)
    with pytest.raises(ModelError, match=r"the points have no spread(.|\n)*kappa > −2"):
        UKF(kappa=-2.0).predict(system(lambda x, u, t, dt: x), Belief(np.zeros(2), np.eye(2)), NONE, 0.0, 1.0)


def test_units_of_the_states_change_nothing():
    """A semi-definite covariance of states in units of 1e-9 (a power of two, exact): moments of a linear step, by matrices."""
    F, v = np.array([[1.0, 0.5], [0.2, 0.9]]), np.array([2.0, -1.0])
    for unit in (1.0, 2.0**-30):
        P = np.outer(v, v) * unit**2
        s = system(lambda x, u, t, dt: x @ F.T, Q=0.3 * unit**2)
        _, after, _ = UKF().predict(s, Belief(np.zeros(2), P), NONE, 0.0, 1.0)
        assert after / unit**2 == pytest.approx(F @ np.outer(v, v) @ F.T + 0.3 * np.eye(2), rel=1e-9)
