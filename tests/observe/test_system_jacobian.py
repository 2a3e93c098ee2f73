"""The judge is right on closed forms, finds every wrong entry, and is not fooled by scales, zeros or noise."""

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.observe.system import check_jacobian, numeric_jacobian

X = np.array([0.4, -1.2, 2.0])


def h(x):
    return np.array([np.sin(x[0]) * x[1], np.exp(x[2]) / x[1], x[0] ** 3, 7.0])


def H(x):
    return np.array(
        [
            [np.cos(x[0]) * x[1], np.sin(x[0]), 0.0],
            [0.0, -np.exp(x[2]) / x[1] ** 2, np.exp(x[2]) / x[1]],
            [3 * x[0] ** 2, 0.0, 0.0],
            [0.0, 0.0, 0.0],
        ]
    )


def test_differences_are_accurate_and_know_how_accurate():
    J, accuracy = numeric_jacobian(h, X)
    assert np.abs(J - H(X)).max() < 1e-9 and (np.abs(J - H(X)) <= 10 * accuracy + 1e-11).all()


def test_a_right_derivative_passes():
    found = check_jacobian(h, H, X)
    assert found.error < 1e-9 and found.given.shape == (4, 3)


def test_every_wrong_entry_is_named():
    def wrong(x):
        J = H(x)
        J[0, 1], J[1, 2], J[3, 0] = 0.0, -J[1, 2], 1e-3
        return J

    with pytest.raises(ModelError, match=r"3 faults(.|\n)*∂\(gps\)/∂\(yaw\): H is not the derivative of h") as caught:
        check_jacobian(h, wrong, X, outputs=["gyro", "wheel", "course", "gps"], states=["yaw", "rate", "slip"])
    assert "∂(gyro)/∂(rate)" in str(caught.value) and "found 0." in str(caught.value)


def test_a_relative_error_of_one_in_a_hundred_thousand_is_found():
    with pytest.raises(ModelError, match="output 2"):
        check_jacobian(lambda x: h(x), lambda x: H(x) * np.array([[1.0], [1.0], [1.00001], [1.0]]), X)


def test_a_dropped_lever_arm_is_found():
    """Speed of an antenna at the arm (a, b) on a turning vehicle; dropping the arm's columns is a wrong H (paper 003, 91)."""

    def speed(x):
        yaw, rate, v = x
        return [v * np.cos(yaw) - rate * (0.8 * np.sin(yaw)), v * np.sin(yaw) + rate * (0.8 * np.cos(yaw))]

    def full(x):
        yaw, rate, v = x
        s, c = np.sin(yaw), np.cos(yaw)
        return [[-v * s - 0.8 * rate * c, -0.8 * s, c], [v * c - 0.8 * rate * s, 0.8 * c, s]]

    check_jacobian(speed, full, [0.3, 0.5, 10.0])
    with pytest.raises(ModelError, match=r"2 faults(.|\n)*state 1"):
        check_jacobian(speed, lambda x: np.array(full(x)) * [1.0, 0.0, 1.0], [0.3, 0.5, 10.0])


def test_scales_make_small_and_large_states_comparable():
    def tiny(x):
        return [np.sin(1e6 * x[0]) + x[1] / 1e6]

    def tiny_H(x):
        return [[1e6 * np.cos(1e6 * x[0]), 1e-6]]

    check_jacobian(tiny, tiny_H, [3e-7, 2e6], scales=[1e-6, 1e6])
    with pytest.raises(ModelError, match="state 1"):
        check_jacobian(tiny, lambda x: [[tiny_H(x)[0][0], 2e-6]], [3e-7, 2e6], scales=[1e-6, 1e6])


def test_a_state_that_is_no_vector():
    def turn(x, d):
        c, s = np.cos(d[0]), np.sin(d[0])
        return np.array([c * x[0] - s * x[1], s * x[0] + c * x[1]])

    x = np.array([np.cos(0.7), np.sin(0.7)])
    check_jacobian(lambda p: [3 * p[0]], lambda p: [[-3 * p[1]]], x, add=turn)
    with pytest.raises(ModelError, match="not the derivative"):
        check_jacobian(lambda p: [3 * p[0]], lambda p: [[3 * p[1]]], x, add=turn)


def test_wrong_shapes_and_nan_are_refused():
    with pytest.raises(ModelError, match=r"H has the wrong shape(.|\n)*\(4, 3\), found \(1, 3\)"):
        check_jacobian(h, lambda x: np.zeros(3), X)
    with pytest.raises(ModelError, match="found nan"):
        check_jacobian(lambda x: [x[0]], lambda x: [[np.nan]], [1.0])
