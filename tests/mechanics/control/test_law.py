"""One tick of a control law: by hand, as expressions, and its derivatives against differences; integrals at limits in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.mechanics.control.gantries import servo

from veridyn.mechanics.control.law import (
    ControlConstants,
    ControlTick,
    bounded,
    law_states,
    limited,
    requested,
    voltage,
)
from veridyn.spatial.algebra import FLOATS
from veridyn.symbolic.derivative import forward
from veridyn.symbolic.expression import Graph, evaluate

X = ControlTick(r=1.0, rd=0.5, rdd=-2.0, q=0.7, qd=0.1, model=3.0)


def ticked(c, x=X, state=None):
    k, state = ControlConstants(c), state or dict.fromkeys(law_states(c), 0.0)
    return limited(c, x, requested(c, x, state, k), state, k)


def test_pd_and_pid_are_gains_times_errors():
    given = {"kp": 10.0, "kd": 2.0, "velocity_feedforward": 0.4, "acceleration_feedforward": 0.3}
    expected = 10 * 0.3 + 2 * 0.4 + 0.4 * 0.5 - 0.3 * 2 + 3.0
    assert ticked(servo("pd", **given)) == (pytest.approx(expected), {})
    force, after = ticked(servo("pid", ki=5.0, **given), state={"integral": 0.25})
    assert force == pytest.approx(expected + 0.25)
    assert after == {"integral": pytest.approx(0.25 + 5 * 0.3 / 100)}


@pytest.mark.parametrize("kind", ["pd", "pid", "cascade", "computed_torque"])
def test_an_encoder_zero_is_read_with_the_position(kind):
    given = (
        {"kp": 4.0} | ({"kv": 6.0} if kind == "cascade" else {}) | ({"ki": 5.0} if kind in ("pid", "cascade") else {})
    )
    assert ticked(servo(kind, zero=0.05, **given)) == ticked(servo(kind, **given), X._replace(q=X.q + 0.05))


def test_a_cascade_asks_for_a_speed_within_its_limit():
    c = servo("cascade", kp=4.0, kv=6.0, ki=2.0)
    wanted = 4 * 0.3 + 0.5
    force, after = ticked(c)
    assert force == pytest.approx(6 * (wanted - 0.1) + 3.0)
    assert after["integral"] == pytest.approx(2 * (wanted - 0.1) / 100)
    assert ticked(servo("cascade", kp=4.0, kv=6.0, speed_limit=0.8))[0] == pytest.approx(6 * (0.8 - 0.1) + 3.0)
    assert ticked(servo("cascade", kp=4.0, kv=6.0, speed_feedforward=0.0))[0] == pytest.approx(6 * (1.2 - 0.1) + 3.0)


def test_a_computed_torque_asks_for_an_acceleration():
    c = servo("computed_torque", kp=4.0, kd=6.0)
    assert requested(c, X, {}, ControlConstants(c)) == pytest.approx(-2.0 + 4 * 0.3 + 6 * 0.4)


@pytest.mark.parametrize("x", [0.3, -0.3, 0.7, -0.7, 0.1 + 0.2, 5.0, -5.0, 0.0])
def test_what_is_within_a_limit_is_unchanged_to_the_last_bit(x):
    assert bounded(x, 0.7, FLOATS) == max(-0.7, min(0.7, x))


def test_a_force_changes_by_no_more_than_its_rate_allows():
    c = servo("pd", kp=10.0, rate_limit=50.0)
    force, after = ticked(c, state={"force": 1.0})
    assert (force, after) == (pytest.approx(1.5), {"force": pytest.approx(1.5)})


def run_integral(c, errors):
    """Integral and force at each tick of a law without proportional part."""
    state, found = {"integral": 0.0}, []
    for e in errors:
        force, state = ticked(c, ControlTick(e, 0.0, 0.0, 0.0, 0.0), state)
        found.append((state["integral"], force))
    return np.array(found).T


def test_a_clamped_integral_stops_at_the_limit_and_leaves_it_at_once():
    c = servo("pid", kp=0.0, ki=30.0, limit=2.0)  # grows by 0.3 a tick with e = 1
    integral, force = run_integral(c, [1.0] * 50 + [-1.0] * 2)
    assert integral[:50] == pytest.approx(
        np.minimum(0.3 * np.arange(1, 51), 2.1)
    )  # the first value beyond 2, then no more
    assert force[:50] == pytest.approx(np.minimum(0.3 * np.arange(50), 2.0))
    assert force[51] == pytest.approx(2.1 - 0.3)  # one tick after the error has turned
    wound = run_integral(replace(c, anti_windup="none"), [1.0] * 50 + [-1.0] * 2)
    assert wound[0][49] == pytest.approx(15.0)
    assert wound[1][51] == 2.0


def test_back_calculation_settles_where_growth_and_excess_balance():
    # ki e + (L − I)/T_t = 0 gives I = L + T_t ki e; the distance shrinks by 1 − T/T_t each tick once the force is limited.
    c = servo("pid", kp=0.0, ki=30.0, limit=2.0, tracking_time=0.1, anti_windup="back_calculation")
    integral, _ = run_integral(c, [1.0] * 100)
    settled = 2.0 + 0.1 * 30.0
    limited_from = int(np.argmax(integral > 2.0))
    away = integral[limited_from:] - settled
    assert away == pytest.approx(away[0] * 0.9 ** np.arange(len(away)), abs=1e-12)


def test_the_current_loop_is_a_pi_within_its_voltage():
    c = servo(
        "pd",
        kp=1.0,
        motor="m",
        current_kp=2.0,
        current_ki=100.0,
        current_limit=3.0,
        voltage_limit=10.0,
        current_rate=400.0,
    )
    k = ControlConstants(c)
    u, integral = voltage(c, 2.5, 0.5, 1.0, k)
    assert (u, integral) == (pytest.approx(2 * 2.0 + 1.0), pytest.approx(1.0 + 100 * 2.0 / 400))
    u, integral = voltage(c, 50.0, -2.0, 1.0, k)  # 3 A are asked for; 11 V would be needed
    assert (u, integral) == (10.0, 1.0)
    assert voltage(c, -50.0, 2.0, -1.0, k) == (-10.0, -1.0)


LAWS = [
    servo("pd", kp=10.0, kd=2.0, velocity_feedforward=0.4, acceleration_feedforward=0.3, limit=100.0),
    servo("pid", kp=10.0, ki=5.0, kd=2.0, limit=1.5),
    servo("pid", kp=10.0, ki=5.0, kd=2.0, limit=1.5, tracking_time=0.1, anti_windup="back_calculation"),
    servo("pid", kp=10.0, ki=5.0, rate_limit=20.0, limit=30.0),
    servo("cascade", kp=4.0, kv=6.0, ki=2.0, speed_limit=0.8, limit=50.0),
    servo("cascade", kp=4.0, kv=6.0, ki=2.0, speed_limit=8.0, rate_limit=300.0),
]


@pytest.mark.parametrize("c", LAWS)
def test_as_an_expression_it_has_the_same_values_and_exact_derivatives_by_state_and_constants(c):
    graph, states = Graph(), law_states(c)
    x = ControlTick(*(graph.input(name) for name in ControlTick._fields))
    k, state = ControlConstants(c, graph), {name: graph.input(name) for name in states}
    force, after = limited(c, x, requested(c, x, state, k), state, k)
    outputs = [force, *(after[name] for name in states)]
    names = [*ControlTick._fields, *states, *(f"servo.{key}" for key in c.constants)]
    point = dict(zip(ControlTick._fields, X, strict=True)) | {"integral": 0.2, "force": 1.0}
    point |= {f"servo.{key}": value for key, value in c.constants.items()}

    def floats(changed):
        own = replace(c, constants={key: changed[f"servo.{key}"] for key in c.constants})
        now = {name: changed[name] for name in states}
        force, after = ticked(own, ControlTick(*(changed[name] for name in ControlTick._fields)), now)
        return np.array([force, *(after[name] for name in states)])

    assert np.array(evaluate(graph, outputs, point)) == pytest.approx(floats(point), rel=1e-14)
    inputs = [name for name in names if name in graph.inputs]
    slopes = forward(graph, outputs, [graph.input(name) for name in inputs])
    for name, exact in zip(inputs, slopes, strict=True):
        up, down = ({**point, name: point[name] + h} for h in (1e-6, -1e-6))
        by_differences = (floats(up) - floats(down)) / 2e-6
        assert np.array(evaluate(graph, exact, point), dtype=float) == pytest.approx(by_differences, rel=1e-6, abs=1e-8)
