"""Servos as flat arrays: what the table holds, and that its equations are those of the reference."""

from __future__ import annotations

import numpy as np
import pytest
from tests.mechanics.control.gantries import HEAVIER, MASS, Wave, gantry, servo

from veridyn.errors import DataError, ModelError
from veridyn.manoeuvres import Commanded
from veridyn.mechanics.control.servo_table import BACK_CALCULATION, CLAMP, servo_table
from veridyn.mechanics.system.simulation import Method


def machine():
    slow = servo("pid", on="z", name="slow", rate=100.0, kp=60.0, ki=30.0, kd=20.0, limit=25.0, command_delay=0.02)
    fast = servo(on="x", name="fast", rate=200.0, kp=90.0, kd=15.0, velocity_feedforward=2.0, rate_limit=800.0)
    return gantry(fast, slow)


def test_entries_are_in_the_order_of_the_coordinates_with_defaults_that_do_nothing():
    table = servo_table(machine())
    assert table.names == ("slow", "fast")
    assert table.joints.tolist() == [0, 1]
    assert table.period.tolist() == [0.01, 0.005]
    assert table.ki.tolist() == [30.0, 0.0]
    assert table.limit.tolist() == [25.0, np.inf]
    assert table.rate_limit.tolist() == [np.inf, 800.0]
    assert table.velocity_feedforward.tolist() == [0.0, 2.0]
    assert table.command_delay.tolist() == [0.02, 0.0]
    assert table.windup.tolist() == [CLAMP, CLAMP]
    back = servo("pid", on="z", kp=1.0, ki=1.0, tracking_time=0.5, anti_windup="back_calculation")
    assert servo_table(gantry(back)).windup.tolist() == [BACK_CALCULATION]


def test_the_equations_of_the_table_are_those_of_the_reference():
    table, command, T = servo_table(machine()), Wave(2), 0.005
    mass, integral, before = np.array([HEAVIER, MASS]), np.zeros(2), np.zeros(2)
    q, qd, path, ticks = np.zeros(2), np.zeros(2), [], table.ticks(T)
    for k in range(60):
        path.append(q.copy())
        for j in np.flatnonzero(k % ticks == 0):
            r, rd, rdd = (x[j] for x in command.at(max(k * T - table.command_delay[j], 0.0)))
            raw = table.kp[j] * (r - q[j]) + table.kd[j] * (rd - qd[j]) + integral[j]
            raw += table.velocity_feedforward[j] * rd + table.acceleration_feedforward[j] * rdd
            force = np.clip(raw, -table.limit[j], table.limit[j])
            most = table.rate_limit[j] * table.period[j]
            force = before[j] + np.clip(force - before[j], -most, most)
            growth = table.ki[j] * (r - q[j])
            integral[j] += 0.0 if (raw - force) * growth > 0.0 else table.period[j] * growth
            before[j] = force
        a = before / mass
        q, qd = q + T * qd + 0.5 * T**2 * a, qd + T * a
    motion = Commanded(command, 0.295, 200.0, q=[0.0, 0.0], method=Method("RK4", step=T)).run(machine()).motion
    assert motion.q == pytest.approx(np.array(path), abs=1e-12)


def test_a_step_that_is_no_part_of_a_period_is_named():
    with pytest.raises(DataError, match=r"controller 'fast': its period is no multiple of the step"):
        servo_table(machine()).ticks(0.002)


def test_columns_over_all_joints_do_nothing_where_there_is_no_servo():
    table = servo_table(gantry(servo(on="x", kp=90.0, measurement_delay=0.01)))
    assert table.on_joints("kp", 2).tolist() == [0.0, 90.0]
    assert table.on_joints("limit", 2).tolist() == [np.inf, np.inf]
    assert table.lags(0.005).tolist() == [2]
    with pytest.raises(DataError, match="its measurement_delay is no multiple of the step"):
        table.lags(0.004)


def test_what_is_no_servo_is_named():
    with pytest.raises(ModelError, match=r"controller 'servo'.*\n.*found kind cascade, feedforward gravity"):
        servo_table(gantry(servo("cascade", kp=1.0, kv=1.0, feedforward="gravity")))
