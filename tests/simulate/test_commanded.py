"""A machine that follows commands by its own controllers: logs, commands out of logs, and what is refused."""

from __future__ import annotations

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
