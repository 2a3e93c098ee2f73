import numpy as np

from veridyn.papers.car.simulator.vectors import attitude, cross, symmetric, turned, turned_back


def test_products_are_numpy_s():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3))
    assert np.allclose(cross(tuple(a), tuple(b)), np.cross(a, b))
    J = rng.standard_normal(6)
    full = np.array([[J[0], J[1], J[2]], [J[1], J[3], J[4]], [J[2], J[4], J[5]]])
    assert np.allclose(symmetric(J, tuple(a)), full @ a)


def test_a_quaternion_turns_as_its_half_angle_says():
    angle, axis = 0.7, np.array([2.0, -1.0, 2.0]) / 3.0
    q = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
    R = attitude(*q)
    v = np.array([0.3, 0.2, -0.5])
    rodrigues = v * np.cos(angle) + np.cross(axis, v) * np.sin(angle) + axis * (axis @ v) * (1 - np.cos(angle))
    assert np.allclose(turned(R, tuple(v)), rodrigues)
    assert np.allclose(turned_back(R, turned(R, tuple(v))), v)
