"""Laws as machine code, against the same laws on numbers; and that controllers of one kind share their code."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from tests.mechanics.control.gantries import servo

from veridyn.mechanics.control.law import ControlConstants, ControlTick, law_states, limited, requested, voltage
from veridyn.mechanics.control.law_kernel import FIELDS, PARTS, WIDTH, connect_law, law_kernel
from veridyn.mechanics.tree.steps.record import call_kernel

LAWS = [
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


@pytest.mark.parametrize("c", LAWS)
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
