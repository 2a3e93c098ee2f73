"""A machine that follows commands by its own controllers: logs, commands out of logs, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.mechanics.control.gantries import MASS, Step, Wave, cart, gantry, servo
from tests.mechanics.control.two_links import arm

import veridyn as vd
from veridyn.errors import CapabilityError, DataError
from veridyn.manoeuvres import Commanded, CommandLog
from veridyn.mechanics.system.simulation import Inputs, Method
from veridyn.model.elements.element import coulomb, dc_motor
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive
from veridyn.model.sensor import Sensor
from veridyn.simulate.commanded import growth_per_tick


def test_the_log_has_commands_beside_what_sensors_read():
    machine = arm(*(servo(on=q, name=q, rate=500.0, kp=80.0, kd=8.0) for q in ("q1", "q2")))
    encoder = Sensor("encoder", "coordinate", "q1", 1e-4)
    log = vd.simulate(machine.with_sensors([encoder]), Commanded(Wave(2), 0.2, 50.0), rng=np.random.default_rng(0))
    assert set(log.names) == {"encoder", "force.q1", "force.q2", "command.q1", "command.q2"}
    assert log["command.q2"].values == pytest.approx(Wave(2).at(log["command.q2"].t)[0][:, 1])
    assert log["command.q1"].unit == "rad"


def test_a_simulated_log_commands_the_next_machine():
    machine = cart(servo(rate=50.0, kp=60.0, kd=12.0))
    first = vd.simulate(machine, Commanded(Wave(), 0.5, 50.0))
    again = vd.simulate(machine, Commanded(CommandLog(first, ("z",), "cubic"), 0.5, 50.0))
    assert again["q.z"].values == pytest.approx(
        first["q.z"].values, abs=2e-5
    )  # the spline's slopes at the ends are its own
    held = vd.simulate(machine, Commanded(first, 0.5, 50.0))  # without the speed of the command it lags
    assert np.abs(held["q.z"].values - first["q.z"].values).max() > 0.01


TABLE = Experiment(
    {"command.z": Channel("command.z", np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 0.0]), "m")}, "table"
)


@pytest.mark.parametrize(
    ("between", "expected"),
    [("hold", ([1, 1, 2, 2, 0, 0], [0] * 6)), ("linear", ([1, 1.5, 2, 1, 0, 0], [1, 1, -1, -1, 0, 0]))],
)
def test_between_commands_it_holds_or_moves_along_a_line(between, expected):
    r, rd, rdd = CommandLog(TABLE, ("z",), between).at([0.0, 0.5, 1.0, 2.0, 3.0, 9.0])
    assert r[:, 0].tolist() == expected[0]
    assert rd[:, 0].tolist() == expected[1]
    assert not rdd.any()


def test_a_cubic_of_commands_has_their_rates():
    t = np.linspace(0.0, 2.0, 201)
    log = Experiment({"command.z": Channel("command.z", t, np.sin(t), "m")}, "sine")
    r, rd, rdd = CommandLog(log, ("z",), "cubic").at(1.234)
    # A cubic spline of step h = 0.01 errs by h⁴, h³ and h² in the three.
    assert (r[0], rd[0], rdd[0]) == (
        pytest.approx(np.sin(1.234), abs=1e-8),
        pytest.approx(np.cos(1.234), abs=1e-6),
        pytest.approx(-np.sin(1.234), abs=1e-4),
    )


def test_commands_that_are_missing_or_no_numbers_are_named():
    with pytest.raises(DataError, match=r"there is no channel 'command\.x'[\s\S]*command\.z"):
        CommandLog(TABLE, ("x",))
    bad = Experiment({"command.z": Channel("command.z", np.array([0.0, 0.5]), np.array([1.0, np.nan]), "m")}, "bad")
    with pytest.raises(DataError, match=r"'command\.z' is not a finite number at 0\.5 s"):
        CommandLog(bad, ("z",))
    one = Experiment({"command.z": Channel("command.z", np.array([0.0]), np.array([1.0]), "m")}, "one")
    assert CommandLog(one, ("z",), "linear").at(3.0)[0].tolist() == [1.0]
    with pytest.raises(DataError, match=r"'command\.z' has one command"):
        CommandLog(one, ("z",), "cubic")
    with pytest.raises(DataError, match="between cannot be 'spline'"):
        CommandLog(TABLE, ("z",), "spline")


def test_friction_holds_a_joint_whose_controller_pushes_too_little():
    # kp · error = 3 N is below the friction of 4 N; a command twice as far moves it.
    machine = cart(servo(kp=3.0, kd=5.0), elements=[coulomb("z", 4.0)])
    still = Commanded(Step(), 0.5, 50.0, q=[0.0]).run(machine).motion
    assert np.abs(still.q).max() < 1e-15  # what rounding of the balance leaves
    moves = Commanded(Wave(a=0.0, b=2.0), 0.5, 50.0, q=[0.0]).run(machine).motion
    # 6 N − 4 N on 2 kg at first, within a period of 10 ms.
    assert moves.qdd[0, 0] == pytest.approx(2.0 / MASS)


def test_other_drives_forces_and_loads_act_besides():
    machine = gantry(servo(on="x", kp=60.0, kd=12.0))
    push = Drive("push", "z", 10.0)
    more = Inputs(forces=lambda t, q, qd: np.array([5.0, 0.0]))
    motion = Commanded(Step(), 1.0, 10.0, q=[0.0, 1.0], inputs=more).run(machine).motion
    assert motion.q[-1, 0] == pytest.approx(0.5, abs=1e-9)  # ½ (5 N/5 kg) (1 s)²
    motion = Commanded(Step(), 1.0, 10.0, q=[0.0, 1.0]).run(replace(machine, loads=(push,))).motion
    assert motion.q[-1, 0] == pytest.approx(1.0, abs=1e-9)


def test_a_motor_records_its_voltage_and_current():
    motor = dc_motor({"z": 30.0}, "volts", 1.2, 4e-3, 0.08, 0.08, "m")
    c = servo(kp=200.0, kd=30.0, motor="m", current_kp=3.0, current_ki=400.0)
    log = vd.simulate(cart(c, elements=[motor]), Commanded(Step(), 0.1, 100.0, q=[0.0]))
    assert set(log.names) == {"q.z", "command.z", "signal.volts", "signal.m.i"}
    assert (log["signal.volts"].unit, log["signal.m.i"].unit) == ("V", "A")
    with pytest.raises(DataError, match=r"element 'm': the step is too long for its winding"):
        vd.simulate(cart(c, elements=[motor]), Commanded(Step(), 0.1, 100.0, q=[0.0], method=Method("RK4", step=0.02)))


def test_formulations_without_ticks_and_commands_of_other_machines_are_refused():
    machine = cart(servo(kp=1.0, kd=1.0))
    with pytest.raises(CapabilityError, match="formulation natural has no control laws"):
        vd.simulate(machine.with_formulation("natural"), Commanded(Step(), 0.1, 100.0))
    with pytest.raises(DataError, match="the command is not one of this machine"):
        vd.simulate(machine, Commanded(Step(2), 0.1, 100.0))
    with pytest.raises(DataError, match="it has no controllers"):
        vd.simulate(cart(), Commanded(Step(), 0.1, 100.0))


def test_an_unstable_gain_is_named_before_the_run():
    machine = gantry(
        servo(on="z", name="calm", kp=60.0, kd=12.0), servo(on="x", name="wild", kp=1e5, kd=1.0, limit=5.0)
    )
    with pytest.warns(match=r"controller 'wild': about the start, small errors double every .* s .* those of 'x'"):
        vd.simulate(machine, Commanded(Wave(2), 0.1, 100.0))


def test_a_free_base_carries_controllers():
    bodies = [vd.model.Body("trunk", None, "fixed"), vd.model.Body("leg", "trunk", coordinate="hip")]
    ten = vd.spatial.from_centre(2.0, (0.1, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
    walker = vd.Machine.of_bodies(bodies, base="free", gravity=[0, 0, 0], inertia={"trunk": ten, "leg": ten})
    run = Commanded(Step(), 1.0, 50.0, q=[0.0]).run(walker.with_controllers([servo(on="hip", kp=20.0, kd=1.0)]))
    assert run.motion.q[-1, 0] == pytest.approx(1.0, abs=0.02)
    # Nothing acts from outside, so the momentum stays zero: the trunk turns back as the leg goes ahead.
    assert run.motion.base.omega[:, 2] @ run.motion.qd[:, 0] < 0.0


def roots_of_pd(kp, kd, T, m):
    """|z| of a mass under a PD held over T: x⁺ = (Φ − G K) x with Φ = [1 T; 0 1], G = [T²/2; T]/m."""
    A = np.array([[1.0 - kp * T**2 / (2 * m), T - kd * T**2 / (2 * m)], [-kp * T / m, 1.0 - kd * T / m]])
    return np.abs(np.linalg.eigvals(A)).max()


@pytest.mark.parametrize("gains", [(60.0, 12.0), (1e4, 12.0), (1e5, 400.0), (60.0, 450.0)])
def test_a_mass_under_a_sampled_pd_has_the_roots_of_its_two_by_two_map(gains):
    found = growth_per_tick(cart(servo(kp=gains[0], kd=gains[1], rate=100.0)), np.zeros(1))
    assert found.factor == pytest.approx(roots_of_pd(*gains, 0.01, MASS), rel=1e-7)
    assert (found.doubling_time == math.inf) == (found.factor <= 1.0)


def test_the_highest_stable_damping_is_two_masses_a_period():
    # Without kp the speed obeys v⁺ = (1 − kd T/m) v: stable up to kd = 2 m/T.
    for kd, stable in ((0.99 * 2 * MASS * 100, True), (1.01 * 2 * MASS * 100, False)):
        found = growth_per_tick(cart(servo(kp=1e-9, kd=kd, rate=100.0)), np.zeros(1))
        assert (found.factor <= 1.0 + 1e-7) == stable


@pytest.mark.parametrize("delay", [0.004, 0.01, 0.023])
def test_errors_grow_as_they_do_in_a_simulation(delay):
    c = servo(kp=900.0, kd=5.0, rate=100.0, measurement_delay=delay)
    machine = cart(c)
    found = growth_per_tick(machine, np.zeros(1))
    assert found.factor > 1.0
    with pytest.warns(match="small errors double"):
        motion = Commanded(Still(), 3.0, 100.0, q=[1e-6], method=Method("RK4", step=5e-3)).run(machine).motion
    x = np.abs(motion.q[:, 0])
    peaks = [k for k in range(100, len(x) - 1) if x[k - 1] < x[k] > x[k + 1]]
    grown = (x[peaks[-1]] / x[peaks[0]]) ** (1.0 / (peaks[-1] - peaks[0]))
    assert grown == pytest.approx(
        found.factor, rel=3e-3
    )  # peaks between samples are missed by up to a few per cent in all


class Still:
    def at(self, t, /):
        zero = np.zeros((*np.shape(t), 1))
        return zero, zero, zero


def test_the_unstable_joint_is_named():
    machine = gantry(servo(on="z", name="calm", kp=60.0, kd=12.0), servo(on="x", name="wild", kp=1e6, kd=1.0))
    found = growth_per_tick(machine, np.zeros(2))
    assert (found.coordinate, found.controller) == ("x", "wild")


@pytest.mark.parametrize("kind", ["pid", "cascade", "computed_torque", "gravity"])
def test_every_kind_of_law_holds_an_arm_with_usual_gains_whatever_its_limits_and_dry_friction(kind):
    gains = {
        "pid": {"kp": 80.0, "ki": 40.0, "kd": 8.0, "limit": 1.0},
        "cascade": {"kp": 8.0, "kv": 10.0, "ki": 20.0, "speed_limit": 0.01},
        "computed_torque": {"kp": 100.0, "kd": 20.0},
        "gravity": {"kp": 80.0, "kd": 8.0, "feedforward": "gravity"},
    }[kind]
    word = "pd" if kind == "gravity" else kind
    laws = [servo(word, on=q, name=q, rate=500.0, **gains) for q in ("q1", "q2")]
    machine = arm(*laws, elements=[coulomb("q1", 2.0), coulomb("q2", 1.0)])
    assert growth_per_tick(machine, np.array([0.3, 0.4])).factor < 1.0


def test_an_upright_arm_falls_from_a_weak_controller():
    weak = [servo(on=q, name=q, rate=500.0, kp=1.0, kd=0.1) for q in ("q1", "q2")]
    assert growth_per_tick(arm(*weak), np.array([np.pi / 2, 0.0])).doubling_time < 1.0


def test_several_rates_have_no_single_map():
    assert (
        growth_per_tick(
            gantry(servo(on="z", name="a", kp=1.0), servo(on="x", name="b", rate=50.0, kp=1.0)), np.zeros(2)
        )
        is None
    )
