"""Sequential Joseph updates against the information form, the multivariate density, and a closed-form scalar filter."""

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from veridyn.errors import ModelError
from veridyn.observe.filters.update import (
    CompiledPassage,
    Expectation,
    PassageLayout,
    correct,
    noise_of_readings,
    threshold,
)
from veridyn.observe.measurements import Status


def random_case(rng, n=4, m=3, correlated=True):
    A, B = rng.standard_normal((n, n)), rng.standard_normal((m, m))
    R = B @ B.T + 0.1 * np.eye(m) if correlated else np.diag(rng.uniform(0.1, 1.0, m))
    return A @ A.T, Expectation(np.zeros(m), rng.standard_normal((m, n)), R), rng.standard_normal(m)


def used(m):
    return np.zeros(m, dtype=np.int8)


@pytest.mark.parametrize("correlated", [False, True])
def test_equals_the_information_form(correlated):
    rng = np.random.default_rng(0)
    for _ in range(20):
        P, e, nu = random_case(rng, correlated=correlated)
        c = correct(P, e, nu, used(3))
        V = np.linalg.inv(e.R)
        after = np.linalg.inv(np.linalg.inv(P) + e.H.T @ V @ e.H)
        assert np.allclose(c.P, after, atol=1e-10, rtol=1e-8)
        assert np.allclose(c.dx, after @ e.H.T @ V @ nu, atol=1e-9)
        assert np.allclose(c.K, after @ e.H.T @ V, atol=1e-9) and np.allclose(c.K @ nu, c.dx, atol=1e-12)
        assert np.array_equal(c.P, c.P.T)


@pytest.mark.parametrize("correlated", [False, True])
def test_readings_with_noise_of_their_own_one_by_one_and_all_at_once(correlated):
    """Paper 003, (124): scalar updates, each with the state already updated, are the update with all readings."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        P, e, nu = random_case(rng, correlated=correlated)
        sigma = np.array([rng.uniform(0.01, 3.0), np.nan, rng.uniform(0.01, 3.0)])
        R = noise_of_readings(e.R, sigma)
        d = np.sqrt(np.diag(e.R))
        expected = np.where(np.isnan(sigma), d, sigma)
        assert np.allclose(R, (e.R / np.outer(d, d)) * np.outer(expected, expected), rtol=1e-13)
        assert np.array_equal(R[0, 0], sigma[0] ** 2) and R[1, 1] == e.R[1, 1]
        c = correct(P, Expectation(e.y, e.H, R), nu, used(3))
        S = e.H @ P @ e.H.T + R
        K = np.linalg.solve(S, e.H @ P).T
        assert np.allclose(c.dx, K @ nu, atol=1e-11) and np.allclose(c.P, P - K @ S @ K.T, atol=1e-10)
        if not correlated:
            x, after = np.zeros(4), P
            for j in range(3):
                one = Expectation(e.y[:1], e.H[j : j + 1], R[j : j + 1, j : j + 1])
                step = correct(after, one, nu[j : j + 1] - e.H[j] @ x, used(1))
                x, after = x + step.dx, step.P
            assert np.allclose(x, c.dx, atol=1e-13) and np.allclose(after, c.P, atol=1e-13)
    R = np.eye(3)
    assert noise_of_readings(R, None) is R and noise_of_readings(R, np.full(3, np.nan)) is R


@pytest.mark.parametrize("correlated", [False, True])
def test_likelihood_and_nis_are_those_of_all_readings_at_once(correlated):
    rng = np.random.default_rng(1)
    P, e, nu = random_case(rng, correlated=correlated)
    c = correct(P, e, nu, used(3))
    S = e.H @ P @ e.H.T + e.R
    assert c.log_likelihood == pytest.approx(multivariate_normal(np.zeros(3), S).logpdf(nu), rel=1e-12)
    assert c.nis == pytest.approx(nu @ np.linalg.inv(S) @ nu, rel=1e-11) and c.dof == 3
    assert c.variances == pytest.approx(np.diag(S))


def test_the_order_of_the_sensors_changes_nothing():
    rng = np.random.default_rng(2)
    P, e, nu = random_case(rng)
    nu[1] = 30.0
    order = [2, 0, 1]
    turned = Expectation(e.y[order], e.H[order], e.R[np.ix_(order, order)])
    a, b = correct(P, e, nu, used(3), 0.999), correct(P, turned, nu[order], used(3), 0.999)
    assert np.allclose(a.dx, b.dx, atol=1e-11) and np.allclose(a.P, b.P, atol=1e-11)
    assert a.status[order].tolist() == b.status.tolist() and Status.OUTLIER in a.status


def test_missing_readings_are_as_if_they_were_not_there():
    rng = np.random.default_rng(3)
    P, e, nu = random_case(rng)
    flags = np.array([Status.USED, Status.MISSING, Status.FROZEN], dtype=np.int8)
    c = correct(P, e, nu, flags)
    alone = correct(P, Expectation(e.y[:1], e.H[:1], e.R[:1, :1]), nu[:1], used(1))
    assert np.allclose(c.dx, alone.dx) and np.allclose(c.P, alone.P)
    assert not c.K[:, 1:].any() and c.dof == 1
    assert np.isnan(c.innovations[1]) and c.innovations[2] == nu[2]  # what a frozen sensor says is still shown
    assert c.rejected(("a", "b", "c")) == {"b": "missing", "c": "frozen"}


def test_nan_counts_as_not_available_and_is_reported():
    rng = np.random.default_rng(4)
    P, e, _ = random_case(rng)
    c = correct(P, e, np.full(3, np.nan), used(3), 0.99)
    assert (c.status == Status.NOT_FINITE).all() and not c.dx.any() and c.P is P
    assert (c.nis, c.dof, c.log_likelihood) == (0.0, 0, 0.0)


def test_the_gate_passes_its_share_of_honest_readings():
    assert threshold(0.95) == pytest.approx(1.959964**2, rel=1e-6) == pytest.approx(chi2.ppf(0.95, 1))
    rng = np.random.default_rng(5)
    P, e = np.array([[2.0]]), Expectation(np.zeros(1), np.array([[1.0]]), np.array([[0.5]]))
    passed = [correct(P, e, np.array([v]), used(1), 0.9).dof for v in rng.standard_normal(4000) * np.sqrt(2.5)]
    assert np.mean(passed) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 4000))


def test_n_readings_of_a_constant_are_their_mean():
    P = np.array([[1e12]])
    y = np.random.default_rng(6).normal(3.0, 2.0, 50)
    x, r = 0.0, 4.0
    for v in y:
        c = correct(P, Expectation(np.array([x]), np.ones((1, 1)), np.array([[r]])), np.array([v - x]), used(1))
        x, P = x + c.dx[0], c.P
    assert x == pytest.approx(y.mean(), rel=1e-9) and P[0, 0] == pytest.approx(r / 50, rel=1e-9)


def test_bad_noise_is_refused():
    P, H = np.eye(2), np.eye(2)
    with pytest.raises(ModelError, match="the noise of the sensors is not positive definite"):
        correct(P, Expectation(np.zeros(2), H, np.array([[1.0, 2.0], [2.0, 1.0]])), np.zeros(2), used(2))
    with pytest.raises(ModelError, match="a reading without any uncertainty meets a state without any"):
        correct(np.zeros((2, 2)), Expectation(np.zeros(2), H, np.zeros((2, 2))), np.zeros(2), used(2))
    with pytest.raises(ModelError, match="the gate is not a probability"):
        threshold(1.0)


def test_considered_states_stay_and_their_uncertainty_counts():
    """Schmidt (1966): the optimal gain with rows of zeros for what is considered, and Joseph's form of it, by matrices."""
    rng = np.random.default_rng(11)
    P, e, nu = random_case(rng, m=1)
    considered = np.array([False, True, False, True])
    c = correct(P, e, nu, used(1), considered=considered)
    K = P @ e.H.T / (e.H @ P @ e.H.T + e.R)
    K[considered] = 0.0
    left = np.eye(4) - K @ e.H
    assert c.dx == pytest.approx(K @ nu) and not c.dx[considered].any()
    assert pytest.approx(left @ P @ left.T + K @ e.R @ K.T) == c.P


def test_fields_lie_in_the_order_of_the_layout() -> None:
    layout = PassageLayout(5, 3, 2)
    given = {
        "x": np.arange(5.0),
        "P": 10.0 + np.arange(9.0).reshape(3, 3),
        "innovations": np.array([70.0, np.nan]),
        "variances": np.array([80.0, np.nan]),
        "status": np.array([0.0, 4.0]),
        "statistics": np.array([1.5, 1.0, -2.5]),
        "x_predicted": 20.0 + np.arange(5.0),
        "P_predicted": 30.0 + np.arange(9.0).reshape(3, 3),
        "F": 40.0 + np.arange(9.0).reshape(3, 3),
        "dx": 50.0 + np.arange(3.0),
        "K": 60.0 + np.arange(6.0).reshape(3, 2),
        "H": 90.0 + np.arange(6.0).reshape(2, 3),
    }
    row = np.concatenate([v.ravel() for v in given.values()])
    assert len(row) == layout.size
    assert layout.short == sum(given[name].size for name in list(given)[:6])
    passed = CompiledPassage(layout, row, 0.25)
    p, c = passed.prediction, passed.correction
    found = {"x": passed.belief.x, "P": passed.belief.P, "x_predicted": p.x, "P_predicted": p.P, "F": p.F, "dx": c.dx}
    found |= {"K": c.K, "innovations": c.innovations, "variances": c.variances, "H": passed.H}
    for name, value in found.items():
        assert np.array_equal(value, given[name], equal_nan=True), name
    assert passed.status.tolist() == [0, 4] and passed.status.dtype == np.int8 and c.status is passed.status
    assert (c.nis, c.dof, c.log_likelihood) == (1.5, 1, -2.5) and passed.used == 1
    assert passed.belief.t == p.t == 0.25 and c.P is passed.belief.P


def test_an_update_of_the_covariance_alone_states_what_is_not_so():
    """Section 4.5.3 of the thesis: a sensor that is taken out goes on in the covariance, "without state updating but with covariance one".

    A random walk read once a step with the noise of its step: the stated variance goes to (√5 − 1)/2, as with the sensor, while the error
    of a state that is not updated grows by one each step.
    """
    e = Expectation(np.zeros(1), np.ones((1, 1)), np.ones((1, 1)))
    P, error = np.ones((1, 1)), 1.0
    for _ in range(50):
        P, error = (
            correct(P + 1.0, e, np.zeros(1), used(1)).P,
            error + 1.0,
        )  # the reading is its prediction: nothing moves the state
    assert P[0, 0] == pytest.approx((np.sqrt(5.0) - 1.0) / 2.0, abs=1e-12)
    assert error / P[0, 0] > 80.0
