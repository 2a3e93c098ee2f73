"""``flexible`` of a joint: read as a motor side with a spring, written as one line again, and refused by line."""

from __future__ import annotations

import jsonschema
import pytest
from ruamel.yaml import YAML

from veridyn.errors import ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.schema import model_schema
from veridyn.files.machine.write import model_text
from veridyn.model.check.differences import differences
from veridyn.model.elements.element import coulomb
from veridyn.model.flexible import Flexible, flexible_joints

CARRIED = """
veridyn: 2
name: arm
bodies:
  - name: upper
    joint: turning
    flexible: {stiffness: 4e4, damping: 12, inertia: 0.01*100**2}
    inertia: {mass: 10, centre: [0.2, 0, 0], about_centre: {XX: 0.1, YY: 0.2, ZZ: 0.2}}
  - name: lower
    antecedent: upper
    joint: sliding
    mdh: {alpha: pi/2}
    flexible: {stiffness: unknown}
elements:
  - {kind: coulomb, on: upper_motor, value: 3}
sensors:
  - {name: motor, kind: coordinate, on: upper_motor, sigma: 1e-5}
"""
BETWEEN = """
veridyn: 2
name: arm
bodies:
  - name: upper
    inertia: {mass: 10, centre: [0.2, 0, 0], about_centre: {XX: 0.1, YY: 0.2, ZZ: 0.2}}
joints:
  - {name: hip, a: ground, b: upper, flexible: {stiffness: 4e4, inertia: 2}}
"""


@pytest.mark.parametrize("text", [CARRIED, BETWEEN])
def test_read_and_written_as_one_line(text: str):
    machine = parse_machine(text, "arm.yaml")
    written = model_text(machine)
    again = parse_machine(written, "again.yaml")
    assert differences(machine, again) == ()
    assert "flexible: {stiffness: 40000.0" in written
    assert "_motor\n" not in written
    schema = jsonschema.Draft202012Validator(model_schema())
    assert [e.message for e in schema.iter_errors(YAML(typ="safe").load(written))] == []


def test_link_and_motor_sides():
    machine = parse_machine(CARRIED, "arm.yaml")
    assert machine.coordinates == ("upper", "lower", "upper_motor", "lower_motor")
    assert machine.actuated_coordinates == ("upper_motor", "lower_motor")
    assert flexible_joints(machine)["upper"] == Flexible(stiffness=4e4, damping=12.0, inertia=100.0)
    assert machine.parameters.missing()[-2:] == ("stiffness_lower", "Ia_lower_motor")
    units = dict(zip(machine.parameters.names, machine.parameters.units, strict=True))
    assert (units["stiffness_upper"], units["stiffness_lower"]) == ("N*m/rad", "N/m")
    assert parse_machine(BETWEEN, "arm.yaml").actuated_coordinates == ("hip_motor",)


def test_what_one_line_cannot_hold_is_written_out():
    """Elements added later stand behind; an estimate of a negative damping is kept, by the parts that it belongs to."""
    machine = parse_machine(CARRIED, "arm.yaml").with_elements([coulomb("lower_motor", 1.0)])
    assert differences(machine, parse_machine(model_text(machine), "again.yaml")) == ()
    odd = machine.with_parameters({"damping_upper": -1.0})
    written = model_text(odd)
    assert "name: upper_motor" in written
    assert differences(odd, parse_machine(written, "again.yaml")) == ()


def test_backlash_and_hysteresis_stay_one_line():
    more = "damping: 12, backlash: 1e-3, hysteresis: 20, hysteresis_deflection: 2e-4"
    machine = parse_machine(CARRIED.replace("damping: 12", more, 1), "arm.yaml")
    assert flexible_joints(machine)["upper"].backlash == 1e-3
    written = model_text(machine)
    assert "backlash: 0.001" in written and "hysteresis: 20" in written and "name: upper_motor" not in written
    assert differences(machine, parse_machine(written, "again.yaml")) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("damping: 12", "damping: 12, backlash: unknown", "backlash"),
        ("damping: 12", "damping: 12, hysteresis: 2", "hysteresis_deflection"),
        ("joint: sliding", "joint: fixed", r"body 'lower' \(line 13\): a joint of this kind cannot be flexible"),
        ("stiffness: 4e4", "stiffness: -4e4", r"flexible \(line 7\): its stiffness cannot be this"),
        ("stiffness: 4e4", "stifness: 4e4", r"Did you mean 'stiffness'"),
        ("damping: 12", "inertia: 0", "'inertia'|above zero"),
        ("    inertia: {mass", "    actuated: false\n    inertia: {mass", "a flexible joint has a motor"),
        ("kind: coulomb, on: upper_motor", "kind: inertia, on: upper", "Write on: upper_motor"),
        ("on: upper_motor, value", "on: uper_motor, value", "Did you mean 'upper_motor'"),
    ],
)
def test_faults_name_the_line(old: str, new: str, message: str):
    assert old in CARRIED
    with pytest.raises(ModelError, match=message):
        parse_machine(CARRIED.replace(old, new, 1), "arm.yaml")
