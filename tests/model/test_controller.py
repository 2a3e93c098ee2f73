"""Controllers as data: their constants with units and deviations, and every fault by name."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.mechanics.control.gantries import cart, gantry, point_mass, servo
from tests.mechanics.control.two_links import arm

from veridyn.errors import ModelError
from veridyn.mechanics.tree.elsewhere import rebased
from veridyn.mechanics.tree.weld import welded
from veridyn.model.controller import CONTROLLER_KINDS, check_controllers
from veridyn.model.elements.element import dc_motor
from veridyn.model.graph import Body
from veridyn.model.machine import Machine


def test_constants_have_names_units_bounds_and_deviations():
    machine = cart(servo("pid", name="lift", kp=40.0, ki=5.0, kd=3.0, limit=60.0, sigma={"kp": 4.0}))
    found = {c.name: c for c in machine.controller_constants}
    assert list(found) == ["lift.kp", "lift.ki", "lift.kd", "lift.limit"]
    assert [c.unit for c in found.values()] == ["N/m", "N/(m*s)", "N*s/m", "N"]
    assert found["lift.kp"].sigma == 4.0
    assert np.isnan(found["lift.kd"].sigma)
    turning = arm(servo("cascade", on="q1", kp=2.0, kv=3.0))
    assert [c.unit for c in turning.controller_constants] == ["1/s", "N*m*s/rad"]


def test_constants_are_changed_by_name():
    machine = cart(servo(name="lift", kp=40.0, kd=3.0)).with_controller_constants({"lift.kp": 50})
    assert machine.controllers[0].constants == {"kp": 50.0, "kd": 3.0}
    with pytest.raises(ModelError, match=r"there is no constant 'lift\.kq'.*[\s\S]*'lift\.kp'"):
        machine.with_controller_constants({"lift.kq": 1.0})
    with pytest.raises(ModelError, match=r"'lift\.kp': the value is out of bounds"):
        machine.with_controller_constants({"lift.kp": -1.0})


def test_a_controller_can_be_pickled_and_compared():
    c = servo("pid", kd=3.0, ki=1.0, kp=2.0, sigma={"kp": 1.0})
    assert list(c.constants) == ["kp", "ki", "kd"]  # in the order of the kind
    assert pickle.loads(pickle.dumps(c)) == c


@pytest.mark.parametrize(
    ("c", "message"),
    [
        (servo(on="w", kp=1.0), "there is no coordinate 'w'"),
        (servo(on="free", kp=1.0), "'free' is a passive joint: no motor moves it"),
        (servo(kp=1.0, limit=-3.0), "limit is the greatest force, in either direction, and cannot be -3"),
        (servo(kp=-1.0), "kp is force per error of position, and cannot be -1"),
        (servo(kp=1.0, measurement_delay=-1e-3), "measurement_delay is .* and cannot be -0.001"),
        (servo(kp=float("nan")), "kp is .* and cannot be nan"),
        (servo(kd=1.0), "kp is missing: force per error of position"),
        (servo(kp=1.0, kv=2.0), "a controller of kind pd has no 'kv'"),
        (servo(kp=1.0, rate=0.0), "its rate is not above zero"),
        (servo("pdi", kp=1.0), "kind cannot be 'pdi'"),
        (servo("pid", kp=1.0, ki=1.0, anti_windup="back_calculation"), "back_calculation needs tracking_time"),
        (servo("pid", kp=1.0, ki=1.0, tracking_time=0.0), "tracking_time is .* and cannot be 0"),
        (servo("computed_torque", kp=1.0, feedforward="gravity"), "a computed torque has no feedforward"),
        (servo(kp=1.0, feedforward="all"), "feedforward cannot be 'all'"),
        (servo(kp=1.0, sigma={"kd": 1.0}), "sigma is given for 'kd', which has no value"),
        (servo(kp=1.0, sigma={"kp": 0.0}), "the standard deviation of kp is not above zero"),
        (servo(kp=1.0, current_rate=100.0), "only a controller with a motor has a current_rate"),
        (servo(kp=1.0, motor="m", current_kp=1.0), "there is no motor 'm'"),
        (servo(kp=1.0, motor="m1", current_kp=1.0, current_rate=250.0), "its current loop does not tick with it"),
        (servo(kp=1.0, motor="m2", current_kp=1.0), "the torque constant of 'm2' is 0"),
        (servo(kp=1.0, motor="m3", current_kp=1.0), "'m3' does not act on 'z' alone"),
        (servo(kp=1.0, motor="m1"), "current_kp is missing"),
        (servo(kp=1.0, load_friction=-0.1), "load_friction is .* and cannot be -0.1"),
        (servo(kp=1.0, load_friction=0.1), "adds to dry friction of its joint, which has none"),
        (
            servo(kp=1.0, load_friction=0.1, backdrive_friction=-0.2),
            "its gear would push where the load drives the motor",
        ),
        (servo(kp=1.0, load_friction=0.1, motor="m1", current_kp=1.0), "its motor has a current loop"),
    ],
)
def test_faults_name_the_controller_and_what_is_wrong(c, message):
    motors = [
        dc_motor("z", "u1", 1.0, 1e-3, 0.1, 0.1, "m1"),
        dc_motor("z", "u2", 1.0, 1e-3, 0.1, 0.0, "m2"),
        dc_motor("x", "u3", 1.0, 1e-3, 0.1, 0.1, "m3"),
    ]
    faults = check_controllers([c], ["z", "x", "free"], ["z", "x"], motors)
    with pytest.raises(ModelError, match=f"controller 'servo': .*{message}"):
        raise ModelError(faults)


def test_names_and_coordinates_stand_once_and_prescribed_ones_have_no_controller():
    two = [servo(kp=1.0), servo(on="x", kp=1.0)]
    with pytest.raises(ModelError, match="the name is used 2 times"):
        gantry(*two)
    with pytest.raises(ModelError, match="2 controllers move 'z'"):
        gantry(two[0], replace(two[0], name="other"))
    with pytest.raises(ModelError, match="'z' is prescribed"):
        gantry().with_prescribed(["z"]).with_controllers([two[0]])


def test_every_required_constant_is_one_without_default():
    for kind, constants in CONTROLLER_KINDS.items():
        needed = {c.key for c in constants if c.required}
        found = check_controllers([servo(kind)], ["z"], ["z"])
        assert {f.what.partition(" ")[0] for f in found} == needed


def test_controllers_go_with_a_machine_that_changes():
    bodies = [Body("base", None, "fixed"), Body("a", "base"), Body("b", "a")]
    inertia = {b.name: point_mass(1.0) for b in bodies}
    walker = Machine.of_bodies(bodies, base="free", inertia=inertia).with_controllers(
        [servo(on="a", name="1", kp=1.0), servo(on="b", name="2", kp=1.0)]
    )
    assert [c.name for c in rebased(walker, "b").controllers] == ["1", "2"]
    assert [c.name for c in welded(walker, {"a": 0.0}).controllers] == ["2"]
    assert walker.with_sensors([]).controllers == walker.controllers
