"""One tick of a control law: by hand, as expressions, and its derivatives against differences; integrals at limits in closed form.

And joints that follow a reference.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from tests.mechanics.control.gantries import servo

from veridyn.errors import DataError
from veridyn.mechanics.control.law import (
    CURRENT_LOOP,
    FIELDS,
    LAW,
    PARTS,
    READ,
    WIDTH,
    ControlConstants,
    ControlTick,
    Tracker,
    bounded,
    connect_law,
    feedforward,
    law_kernel,
    law_states,
    limited,
    requested,
    schedule,
    voltage,
)
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_home, closed_motion
from veridyn.mechanics.tree.steps.record import call_kernel
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import POSE, machine, truth
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.spatial.algebra import FLOATS
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH
from veridyn.symbolic.expression import Graph, evaluate, forward

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


COMPILED_LAWS = [
    servo("pd", kp=10.0, kd=2.0, velocity_feedforward=0.4, acceleration_feedforward=0.3, limit=1.0),
    servo("pid", kp=10.0, ki=5.0, kd=2.0, limit=1.5),
    servo("pid", kp=10.0, ki=5.0, limit=1.5, tracking_time=0.1, anti_windup="back_calculation", rate_limit=20.0),
    servo("pid", kp=10.0, ki=5.0, limit=1.5, anti_windup="none"),
    servo("cascade", kp=4.0, kv=6.0, ki=2.0, speed_limit=0.8, limit=5.0),
    servo("computed_torque", kp=4.0, kd=6.0, limit=5.0),
]


@njit
def call(codes, part):
    call_kernel(codes, 6 * part)


def row_of(values):
    row = np.zeros(WIDTH)
    for name, value in values.items():
        row[FIELDS.index(name)] = value
    return row


@pytest.mark.parametrize("c", COMPILED_LAWS)
def test_a_tick_is_that_of_the_law_on_numbers(c):
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = ControlTick(*rng.uniform(-1.0, 1.0, 6).tolist())
        state = {name: float(rng.uniform(-2.0, 2.0)) for name in law_states(c)}
        row = row_of({**x._asdict(), **state})
        codes, held = connect_law(c, row)
        call(np.array(codes), PARTS.index("request"))
        call(np.array(codes), PARTS.index("limit"))
        assert held
        k = ControlConstants(c)
        raw = requested(c, x, state, k)
        force, after = limited(c, x, raw, state, k)
        assert row[FIELDS.index("raw")] == pytest.approx(raw, rel=1e-14, abs=1e-14)
        assert row[FIELDS.index("out")] == pytest.approx(force, rel=1e-13, abs=1e-14)
        for name, value in after.items():
            assert row[FIELDS.index(f"{name}_after")] == pytest.approx(value, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("more", [{"current_ki": 40.0, "current_limit": 3.0, "voltage_limit": 9.0}, {}])
def test_a_tick_of_the_current_loop_is_that_on_numbers(more):
    c = servo(kp=1.0, motor="m", current_kp=3.0, current_rate=400.0, **more)
    for wanted in (-5.0, 0.3, 8.0):
        row = row_of({"wanted": wanted, "current": 0.5, "current_integral": 0.7})
        codes, _held = connect_law(c, row)
        call(np.array(codes), PARTS.index("voltage"))
        u, integral = voltage(c, wanted, 0.5, 0.7, ControlConstants(c))
        assert row[FIELDS.index("volts")] == pytest.approx(u, rel=1e-14)
        assert row[FIELDS.index("current_integral_after")] == pytest.approx(integral, rel=1e-14)


def test_controllers_that_differ_in_names_and_values_share_their_code():
    a, b = servo("pid", kp=1.0, ki=2.0), servo("pid", kp=7.0, ki=3.0, name="other", on="x")
    assert law_kernel(a, "request") is law_kernel(b, "request")
    assert law_kernel(a, "request") is not law_kernel(servo("pid", kp=1.0, ki=2.0, limit=3.0), "limit")


def events(*controllers, start=0.0, end):
    s = schedule(controllers, start, end)
    found = list(zip(s.what.tolist(), s.controller.tolist(), s.number.tolist(), strict=True))
    return {round(t, 9): found[a:b] for t, a, b in zip(s.time.tolist(), s.first[:-1], s.first[1:], strict=True)}


def test_a_law_reads_and_ticks_at_its_rate_and_first_of_all_the_start():
    assert events(servo(kp=1.0, rate=10.0), end=0.2) == {
        0.0: [(LAW, 0, 0)],  # there is nothing to read before the start
        0.1: [(READ, 0, 1), (LAW, 0, 1)],
        0.2: [(READ, 0, 2), (LAW, 0, 2)],
    }


def test_delayed_measurements_are_instants_of_their_own():
    found = events(servo(kp=1.0, rate=10.0, measurement_delay=0.13), start=1.0, end=1.3)
    assert found == {
        1.0: [(LAW, 0, 0)],
        1.07: [(READ, 0, 2)],
        1.1: [(LAW, 0, 1)],
        1.17: [(READ, 0, 3)],
        1.2: [(LAW, 0, 2)],
        1.3: [(LAW, 0, 3)],
    }


def test_current_loops_tick_between_ticks_of_their_law():
    c = servo(kp=1.0, rate=10.0, motor="m", current_kp=1.0, current_rate=20.0)
    assert events(c, end=0.1) == {0.0: [(LAW, 0, 0)], 0.05: [(CURRENT_LOOP, 0, 0)], 0.1: [(READ, 0, 1), (LAW, 0, 1)]}


def test_instants_of_two_controllers_that_differ_by_rounding_are_one():
    a, b = servo(kp=1.0, rate=30.0), servo(kp=1.0, rate=10.0, name="b", measurement_delay=0.1)
    found = events(a, b, end=0.1)
    assert list(found) == pytest.approx([0.0, 1 / 30, 2 / 30, 0.1])
    # 0.1 − 0.1 is the start, which needs no reading; at 0.1 the first law reads and both act, in their order.
    assert found[0.1] == [(READ, 0, 3), (LAW, 0, 3), (LAW, 1, 1)]


class Swing:
    """A reference that any class with `at` can be."""

    def at(self, t, /):
        angle = np.asarray(t, dtype=float)[..., None] * np.array([3.0, 5.0])
        w = np.array([3.0, 5.0])
        return 0.5 * np.sin(angle), 0.5 * w * np.cos(angle), -0.5 * w**2 * np.sin(angle)


def arm(**settings):
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.4))]
    ten = from_centre(2.0, (0.2, 0.01, 0.0), np.diag([0.01, 0.03, 0.03]))
    return Tree.build(bodies, name="arm", inertia={"1": ten, "2": ten}, **settings)


def test_the_law_is_feedforward_plus_gains_times_errors():
    law = Tracker(Swing(), np.array([10.0, 20.0]), np.array([1.0, 2.0]), lambda t: np.array([t, 7.0]))
    wanted, speed, _ = Swing().at(0.3)
    error, slip = np.array([0.1, -0.2]), np.array([0.5, 0.25])
    force = law(0.3, wanted - error, speed - slip)
    assert np.allclose(force, [0.3 + 10 * 0.1 + 0.5, 7.0 - 20 * 0.2 + 2 * 0.25])
    assert np.allclose(Tracker(Swing(), law.kp, law.kd)(0.3, wanted, speed), 0.0)


def test_feedforward_is_inverse_dynamics_along_the_reference():
    tree = arm(elements=[damper("q1", 0.3)])
    table = feedforward(tree, Swing(), 0.0, 2.0)
    t = np.random.default_rng(1).uniform(0.0, 2.0, 50)
    exact = inverse_dynamics(tree, Motion(np.sort(t), *Swing().at(np.sort(t))))
    # a cubic spline at 2 ms through frequencies of about 10 rad/s: (0.02)⁴/384 of the force
    assert np.allclose([table(x) for x in np.sort(t)], exact, atol=1e-6)
    assert np.array_equal(table(-1.0), table(0.0)) and np.array_equal(table(99.0), table(2.0))


def test_soft_friction_replaces_the_jump_and_nothing_else():
    combined = coulomb({"q1": 1.0, "q2": -2.0}, 0.7)
    rough, smooth = arm(elements=[combined]), arm()
    soft, plain = (feedforward(tree, Swing(), 0.0, 2.0, friction_speed=0.2) for tree in (rough, smooth))
    for t in np.linspace(0.0, 2.0, 41):  # on the table's own times
        v = Swing().at(t)[1] @ np.array([1.0, -2.0])
        assert np.allclose(soft(t) - plain(t), 0.7 * v / (v**8 + 0.2**8) ** 0.125 * np.array([1.0, -2.0]), atol=1e-9)
    hard = feedforward(rough, Swing(), 0.0, 2.0)
    assert np.allclose(hard(0.0) - plain(0.0), 0.7 * np.sign(1.5 - 5.0) * np.array([1.0, -2.0]))


def test_a_perfect_model_tracks_and_a_wrong_one_stays_near():
    tree = arm()
    t = np.linspace(0.0, 1.0, 51)
    q, qd, _ = Swing().at(0.0)
    gains = np.array([200.0, 60.0]), np.array([20.0, 6.0])
    worst = []
    for model in (tree, tree.with_parameters(0.7 * tree.parameters.values), None):
        table = None if model is None else feedforward(model, Swing(), 0.0, 1.0)
        found = integrate(tree, t, q, qd, Tracker(Swing(), *gains, table), method=Method(rtol=1e-8, atol=1e-9))
        worst.append(np.abs(found.motion.q - Swing().at(t)[0]).max())
    assert worst[0] < 1e-7
    assert worst[0] < worst[1] < worst[2] < 0.3


def test_gains_and_tables_that_do_not_fit_are_refused():
    with pytest.raises(
        DataError, match=r"tracking control, 2 faults(.|\n)*kp(.|\n)*\(2,\), each zero or more(.|\n)*kd"
    ):
        Tracker(Swing(), np.ones(3), np.array([1.0, -1.0]))
    with pytest.raises(
        DataError, match=r"feed-forward: it has another number of coordinates(.|\n)*\(2,\), found \(3,\)"
    ):
        Tracker(Swing(), np.ones(2), np.ones(2), lambda t: np.zeros(3))
    with pytest.raises(DataError, match="an end after the start"):
        feedforward(arm(), Swing(), 1.0, 1.0)


def test_the_feedforward_of_a_closed_machine_is_what_its_drives_must_do():
    """A hexapod with friction in passive joints, some of it tied: against equations of the platform that share nothing with the tree's."""
    tree, by_hand = truth(), machine(friction_speed=1e-9)
    legs = closed_home(tree)[list(tree.independent)]
    k = np.arange(1.0, 7.0)
    swing = FourierTrajectory(legs, 0.02 * np.cos(k)[:, None], 0.02 * np.sin(k)[:, None], 1.0)
    t = np.array([0.1, 0.2, 0.3])  # knots of the table
    whole = closed_motion(tree, t, *swing.at(t))
    pose = [tree.coordinates.index(c) for c in POSE]
    assert np.abs(np.delete(whole.qd, pose, axis=1)).min() > 20 * 1e-4  # where rounding friction off changes nothing
    wanted = by_hand.forces(whole.q[:, pose], whole.qd[:, pose], whole.qdd[:, pose])
    found = feedforward(tree, swing, 0.0, 0.4, friction_speed=1e-4)
    assert np.allclose([found(time) for time in t], wanted, atol=1e-6)
