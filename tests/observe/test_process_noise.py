"""Process noise by number and by name, the covariance of a step against its integral, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad_vec
from scipy.linalg import expm

from observe.textbook import integrated_white_noise
from veridyn.errors import ModelError
from veridyn.observe.process_noise import (
    ProcessNoise,
    as_covariance,
    quick_covariance,
    sizes,
    van_loan,
)


def test_van_loan_is_the_integral():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    L = rng.standard_normal((4, 2))
    W, dt = L @ L.T, 0.3
    F, Q = van_loan(A, W, dt)
    reference = quad_vec(lambda s: expm(A * s) @ W @ expm(A * s).T, 0.0, dt, epsabs=1e-13)[0]
    assert np.abs(F - expm(A * dt)).max() < 1e-13
    assert np.abs(Q - reference).max() < 1e-12
    assert np.array_equal(Q, Q.T)


def test_two_half_steps_are_one_step():
    A, W = np.array([[0.0, 1.0], [-4.0, -0.3]]), np.diag([0.1, 2.0])
    F, Q = van_loan(A, W, 0.05)
    F2, Q2 = van_loan(A, W, 0.1)
    assert np.abs(F @ F - F2).max() < 1e-14 and np.abs(F @ Q @ F.T + Q - Q2).max() < 1e-14
    same, none = van_loan(A, W, 0.0)
    assert np.array_equal(same, np.eye(2)) and not none.any()


def test_closed_forms_are_van_loan_of_integrators():
    q, dt = np.array([0.7, 3.0]), 0.02
    for order in (1, 2, 3):
        A = np.kron(np.diag(np.ones(order - 1), 1), np.eye(2))
        W = np.kron(np.diag([0.0] * (order - 1) + [1.0]), np.diag(q))
        assert np.abs(integrated_white_noise(q, dt, order) - van_loan(A, W, dt)[1]).max() < 1e-16
    assert integrated_white_noise(3.0, 0.2, 2) == pytest.approx(3.0 * np.array([[0.008 / 3, 0.02], [0.02, 0.2]]))


def test_a_simulated_walk_has_this_covariance():
    rng, dt, fine = np.random.default_rng(1), 0.5, 400
    w = rng.standard_normal((20_000, fine)) * np.sqrt(2.0 * dt / fine)
    v = np.cumsum(w, axis=1)
    x = (v.sum(axis=1) - v[:, -1] / 2) * dt / fine
    found = np.cov(np.column_stack([x, v[:, -1]]).T)
    assert found == pytest.approx(integrated_white_noise(2.0, dt, 2), rel=4 * np.sqrt(2 / 20_000))


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([1.0, -2.0, 1.0], r"belief: the variance of 'b' is negative(.|\n)*found -2"),
        ([1.0, -2.0, -1.0], r"2 faults(.|\n)*'b' is negative(.|\n)*'c' is negative"),
        (np.diag([1.0, np.nan, 1.0]), "the covariance of 'b' is not finite"),
        (np.eye(2), r"wrong shape(.|\n)*\(3, 3\) or \(3,\), found \(2, 2\)"),
        (np.array([[1, 0.5, 0], [0.2, 1, 0], [0, 0, 1]]), r"not symmetric between 'a' and 'b'"),
        (np.array([[1, 0, 0], [0, 1, 1.5], [0, 1.5, 1]]), r"'b' and 'c' are correlated beyond ±1(.|\n)*found 1.5"),
        (np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]), "not positive semi-definite"),
        (np.array([[0, 0.9, 0], [0.9, 1, 0], [0, 0, 1]]), "not positive semi-definite"),
    ],
)
def test_what_is_no_covariance_is_refused_by_name(P, message):
    with pytest.raises(ModelError, match=message):
        as_covariance(P, ("a", "b", "c"), "belief")


def test_semi_definite_is_allowed_unless_definite_is_asked():
    P = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert np.array_equal(as_covariance(P, "ab", "x"), P)
    assert np.array_equal(as_covariance([0.0, 2.0], "ab", "x"), np.diag([0.0, 2.0]))
    # variances of very different size are compared as correlations, so a unit does not decide
    assert as_covariance(np.array([[1e-18, 0.5e-9], [0.5e-9, 1.0]]), "ab", "x").shape == (2, 2)
    with pytest.raises(ModelError, match="not positive definite"):
        as_covariance(P, "ab", "x", definite=True)
    with pytest.raises(ModelError, match=r"the variance of 'a' is zero(.|\n)*quantum"):
        as_covariance([0.0, 2.0], "ab", "x", definite=True)


def test_the_quick_check_sees_signs_shapes_and_nan():
    assert np.array_equal(quick_covariance(np.eye(2), "ab", "x"), np.eye(2))
    assert np.array_equal(quick_covariance([1.0, 2.0], "ab", "x"), np.diag([1.0, 2.0]))
    for bad in (np.diag([1.0, -1.0]), np.diag([1.0, np.inf]), np.eye(3)):
        with pytest.raises(ModelError):
            quick_covariance(bad, "ab", "x")


def test_bad_steps_and_densities_are_refused():
    with pytest.raises(ModelError, match="the step is not a time"):
        van_loan(np.eye(2), np.eye(2), -0.1)
    with pytest.raises(ModelError, match="A and W do not belong together"):
        van_loan(np.eye(2), np.eye(3), 0.1)


NAMES = ("x", "swing")


def test_one_number_for_all_or_numbers_by_name() -> None:
    assert sizes(0.5, NAMES, "start").tolist() == [0.5, 0.5]
    assert sizes({"swing": 0.1, "x": 0.2}, NAMES, "start").tolist() == [0.2, 0.1]


@pytest.mark.parametrize(
    ("what", "default"), [("start", 1.0), ("start_rate", 1.0), ("start_force", 0.0), ("force", 0.0)]
)
def test_a_name_that_is_left_out_keeps_the_default(what: str, default: float) -> None:
    """So that naming one coordinate does not make the others known exactly."""
    assert sizes({"swing": 0.1}, NAMES, what).tolist() == [default, 0.1]


def test_what_is_not_usable_is_named() -> None:
    with pytest.raises(ModelError, match=r"(?s)there is no 'swign' here.*swing.*that of 'x' is not usable.*-1"):
        sizes({"swign": 0.1, "x": -1.0}, NAMES, "start")
    with pytest.raises(ModelError, match="that of 'x' is not usable"):
        sizes(float("nan"), ("x",), "position")


def test_coordinates_that_come_in_later_get_the_largest_density_given() -> None:
    one, named = ProcessNoise(position=0.1, acceleration=2.0), ProcessNoise(acceleration={"x": 1.0, "swing": 3.0})
    assert one.coordinate_densities(("L.x", "L.y")).tolist() == [0.1, 0.1, 2.0, 2.0]
    assert named.coordinate_densities(("x", "L.y")).tolist() == [0.0, 0.0, 1.0, 3.0]
