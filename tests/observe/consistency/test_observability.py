"""Unobservable combinations named, sensors that mend them found, and the Gramian as the judge."""

import numpy as np
import pytest

from observe.builders import pendulum
from veridyn.errors import DataError, SimulationError
from veridyn.observe.consistency.observability import ExtraSensor, observability, observability_history
from veridyn.observe.filters.linear import Linear
from veridyn.observe.system import Discrete

T = np.arange(50) * 0.1


def two_carts():
    """Positions and velocities of two carts of which only the distance is measured."""
    F = np.eye(4) + 0.1 * np.eye(4, k=2)
    return Linear(("x1", "x2", "v1", "v2"), ("distance",), F, [[-1.0, 1.0, 0.0, 0.0]], np.zeros(4), [0.01])


def test_singular_values_are_those_of_the_whole_stack():
    rng = np.random.default_rng(0)
    F, H = np.eye(3) + 0.1 * rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    R, scales = np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([1.0, 10.0, 0.1])
    system = Linear(("a", "b", "c"), ("y", "z"), F, H, np.zeros(3), R)
    o = observability(system, T, np.zeros((50, 3)), scales)
    W = np.linalg.inv(np.linalg.cholesky(R))
    stack = np.vstack([W @ H @ np.linalg.matrix_power(F, k) for k in range(50)]) * scales
    assert o.singular_values == pytest.approx(np.linalg.svd(stack, compute_uv=False), rel=1e-9)
    assert o.observable and not o.unseen and "observable: all 3 states" in o.summary()
    # information: without process noise, the covariance of the start is the inverse Gramian
    gramian = sum((S := np.linalg.matrix_power(F, k).T @ H.T) @ np.linalg.inv(R) @ S.T for k in range(50))
    assert o.singular_values[-1] ** -2 == pytest.approx(
        np.linalg.eigvalsh(np.diag(1 / scales) @ np.linalg.inv(gramian) @ np.diag(1 / scales))[-1], rel=1e-6
    )


def test_steps_that_do_not_commute_are_taken_in_their_order():
    rng = np.random.default_rng(1)
    F, H = rng.standard_normal((6, 3, 3)), np.array([[1.0, 0.0, 0.0]])
    system = Linear(("a", "b", "c"), ("y",), lambda t, dt: F[round(t * 10)], H, np.zeros(3), [1.0])
    rows, Phi = [H], np.eye(3)
    for k in range(5):
        Phi = F[k] @ Phi
        rows.append(H @ Phi)
    o = observability(system, T[:6], np.zeros((6, 3)), np.ones(3))
    assert o.singular_values == pytest.approx(np.linalg.svd(np.vstack(rows), compute_uv=False), rel=1e-9)


def test_what_cannot_be_seen_is_named_and_the_sensor_that_mends_it_found():
    extra = [
        ExtraSensor("second distance", [[-1.0, 1.0, 0.0, 0.0]], 0.01),
        ExtraSensor("speed of cart 1", [[0.0, 0.0, 1.0, 0.0]], 0.1),
        ExtraSensor("position of cart 2", lambda x, u: [[0.0, 1.0, 0.0, 0.0]], 0.5),
    ]
    o = observability(two_carts(), T, np.zeros((50, 4)), np.ones(4), extra=extra)
    assert o.rank == 2 and not o.observable and o.gap > 1e6
    assert {d.text for d in o.unseen} == {"'x1' by 1 and 'x2' by 1 together", "'v1' by 1 and 'v2' by 1 together"}
    assert [(name, rank) for name, rank, _ in o.remedies] == [
        ("position of cart 2", 4),
        ("speed of cart 1", 3),
        ("second distance", 2),
    ]
    assert o.enough == ("position of cart 2",)
    text = o.summary()
    assert "2 of 4 directions are seen" in text and "no reading changes with 'x1' by 1 and 'x2' by 1 together" in text
    assert "with 'speed of cart 1': 3 of 4" in text and "enough: position of cart 2" in text


def test_units_do_not_decide_and_changes_are_in_the_states_own_units():
    scaled = observability(two_carts(), T, np.zeros((50, 4)), [1.0, 1.0, 1e-3, 1e3])
    assert scaled.rank == 2
    F = np.eye(2)
    system = Linear(("metres", "millimetres"), ("y",), F, [[1.0, 1e-3]], np.zeros(2), [1e-4])
    o = observability(system, T, np.zeros((50, 2)), [1.0, 1000.0])
    assert o.unseen[0].text == "'metres' by 1 and 'millimetres' by -1000 together"
    assert o.unseen[0].change == pytest.approx([1.0, -1000.0]) or o.unseen[0].change == pytest.approx([-1.0, 1000.0])


def test_two_sensors_where_no_one_alone_is_enough():
    system = Linear(("a", "b", "c"), ("y",), np.eye(3), [[1.0, 0.0, 0.0]], np.zeros(3), [1.0])
    b, c = (ExtraSensor(f"sensor {n}", [row], 1.0) for n, row in (("b", [0.0, 1, 0]), ("c", [0.0, 0, 1])))
    x = np.zeros((50, 3))
    o = observability(system, T, x, np.ones(3), extra=[b, c])
    assert set(o.enough) == {"sensor b", "sensor c"} and {d.text for d in o.unseen} == {"'b'", "'c'"}
    lost = observability(system, T, x, np.ones(3), extra=[b])
    assert lost.enough == () and "none of these sensors makes it observable" in lost.summary()


def test_what_is_hardly_seen_is_said_to_be():
    system = Linear(("a", "b"), ("y", "z"), np.eye(2), np.eye(2), np.zeros(2), [1e-4, 1e6])
    o = observability(system, T, np.zeros((50, 2)), np.ones(2))
    assert o.observable and [d.text for d in o.weak] == ["'b'"]
    assert o.weak[0].seen == pytest.approx(np.sqrt(50) / 1e3) and "hardly seen (0.0071 sigma): 'b'" in o.summary()


def test_motion_can_make_observable_what_rest_does_not():
    """A scale error of an odometer is seen only while driving: y = (1 + s) v t is not, y = x with ẋ = (1 + s) v is."""

    def odometer(v):
        return Discrete(
            ("x", "scale"), ("position",), lambda x, u, t, dt: np.array([x[0] + (1 + x[1]) * u[0] * dt, x[1]]),
            lambda x, u, t: x[:1], np.zeros(2), [0.01],
            F=lambda x, u, t, dt: [[1.0, u[0] * dt], [0.0, 1.0]], H=lambda x, u, t: [[1.0, 0.0]],
        )  # fmt: skip

    x, scales = np.zeros((50, 2)), [1.0, 0.1]
    rest = observability(odometer(0.0), T, x, scales, inputs=np.zeros(50))
    driving = observability(odometer(3.0), T, x, scales, inputs=np.full(50, 3.0))
    assert not rest.observable and rest.unseen[0].text == "'scale'" and driving.observable
    starts_late = np.where(T < 2.5, 0.0, 3.0)
    t, s = observability_history(odometer(0.0), T, x, scales, 10, inputs=starts_late)
    assert t == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0]) and (s[:2, 1] < 1e-12).all() and (s[3:, 1] > 1.0).all()


def test_a_pendulum_is_observable_from_its_bob():
    x = np.array([[0.5, 0.0]])
    for _ in range(49):
        x = np.vstack([x, pendulum().move(x[-1], np.zeros(0), 0.0, 0.1)])
    assert observability(pendulum(), T, x, [1.0, 3.0]).observable


def test_bad_questions_are_refused():
    with pytest.raises(DataError, match=r"typical sizes are missing(.|\n)*4 positive numbers"):
        observability(two_carts(), T, np.zeros((50, 4)), [1.0, 1.0, 0.0, 1.0])
    with pytest.raises(DataError, match="do not belong together"):
        observability(two_carts(), T, np.zeros((49, 4)), np.ones(4))
    with pytest.raises(DataError, match="the window does not fit"):
        observability_history(two_carts(), T, np.zeros((50, 4)), np.ones(4), 51)
    wild = Linear(("a",), ("y",), [[1e200]], [[1.0]], [0.0], [1.0])
    with pytest.raises(SimulationError, match=r"derivative is no longer finite at 0\.2 s"):
        observability(wild, T, np.zeros((50, 1)), [1.0])
