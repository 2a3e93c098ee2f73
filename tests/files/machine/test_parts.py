"""The section ``controllers`` of model files: read, refused by line, and written back."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from veridyn.cli.app import app
from veridyn.errors import ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.mjcf_write import save_mjcf
from veridyn.files.machine.schema import model_schema
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.files.machine.write import model_text
from veridyn.files.yaml_reader import plain_yaml

ARM = """\
veridyn: 2
name: arm
bodies:
  - {name: upper, joint: turning, coordinate: q1, mdh: {alpha: pi/2}, inertia: {ZZ: 0.5, XX: 0.3, YY: 0.3, M: 2}}
  - {name: lower, antecedent: upper, joint: turning, coordinate: q2, mdh: {d: 0.4}, inertia: {ZZ: 0.2, XX: 0.1, YY: 0.2, M: 1}}
  - {name: hook, antecedent: lower, joint: turning, coordinate: q3, actuated: false, mdh: {d: 0.4},
     inertia: {ZZ: 0.2, XX: 0.1, YY: 0.2, M: 1}}
elements:
  - {kind: dc_motor, on: {q2: 50}, name: elbow_motor, signal: volts, value: 0.07, resistance: 0.8, inductance: 1e-3, emf: 0.07}
"""
LAWS = """\
controllers:
  - {name: shoulder, kind: pid, on: q1, rate: 1000, kp: 400, ki: 800, kd: 25, limit: 60, rate_limit: 5e3, tracking_time: 0.1,
     anti_windup: back_calculation, feedforward: gravity, command_delay: 0.002, measurement_delay: 0.0005, sigma: {kp: 40, kd: 3}}
  - {name: elbow, kind: cascade, on: q2, rate: 500, kp: 20, kv: 5, ki: 50, speed_limit: 2, anti_windup: none, motor: elbow_motor,
     current_kp: 2, current_ki: 900, current_limit: 10, voltage_limit: 24, current_rate: 5000}
"""


def test_controllers_are_read_with_all_they_have():
    shoulder, elbow = parse_machine(ARM + LAWS).controllers
    assert (shoulder.kind, shoulder.on, shoulder.rate, shoulder.feedforward) == ("pid", "q1", 1000.0, "gravity")
    assert shoulder.constants["ki"] == 800.0
    assert dict(shoulder.sigma) == {"kp": 40.0, "kd": 3.0}
    assert (elbow.motor, elbow.current_ticks, elbow.anti_windup) == ("elbow_motor", 10, "none")


def test_what_is_written_is_read_back_to_the_last_bit():
    machine = parse_machine(ARM + LAWS)
    text = model_text(machine)  # which compares the machine that it reads back
    assert parse_machine(text).controllers == machine.controllers
    assert "controllers:" not in model_text(machine.with_controllers([]))


def test_a_mapping_of_names_will_do():
    machine = parse_machine(ARM + "controllers:\n  s: {kind: pd, on: q1, rate: 100, kp: 2*pi}\n")
    assert machine.controllers[0].name == "s"


def test_the_schema_has_every_key():
    validator = Draft202012Validator(model_schema())
    content = plain_yaml(ARM + LAWS, "arm.yaml").values
    assert not list(validator.iter_errors(content))
    content["controllers"][0]["gain"] = 3
    assert list(validator.iter_errors(content))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{name: a, kind: pd, on: q3, rate: 100, kp: 1}", r"controller 'a' \(line 11\): 'q3' is a passive joint"),
        ("{name: a, kind: pd, on: q4, rate: 100, kp: 1}", r"controller 'a' \(line 11\): there is no coordinate 'q4'"),
        ("{name: a, kind: pd, on: q1, rate: 100, kp: 1, limit: -2}", r"\(line 11\): limit is .* cannot be -2"),
        (
            "{name: a, kind: pd, on: q1, rate: 100, kp: 1, command_delay: -1}",
            r"\(line 11\): command_delay is .* cannot be -1",
        ),
        ("{name: a, kind: pd, on: q1, kp: 1}", "the key 'rate' is missing"),
        ("{name: a, kind: pq, on: q1, rate: 100, kp: 1}", "'pq'"),
        ("{name: a, kind: pd, on: q1, rate: 100, kp: 1, gain: 2}", "there is no key 'gain' here"),
        ("servo", "a controller is a mapping, such as {name: servo"),
    ],
)
def test_faults_have_lines(entry, message):
    with pytest.raises(ModelError, match=message):
        parse_machine(ARM + f"controllers:\n  - {entry}\n")


def test_faults_of_several_controllers_come_at_once():
    both = "controllers:\n  - {name: a, kind: pd, on: q3, rate: 100, kp: 1}\n  - {name: b, kind: pd, on: q1, rate: -1, kp: 1}\n"
    with pytest.raises(ModelError) as caught:
        parse_machine(ARM + both)
    assert [f.line for f in caught.value.faults] == [11, 12]


def test_model_show_prints_them(tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text(ARM + LAWS)
    shown = CliRunner().invoke(app, ["model", "show", str(file)])
    assert "controller shoulder: pid on q1 at 1000 Hz: kp 400 ± 40 N·m/rad" in shown.output
    assert "motor elbow_motor, current loop at 5000 Hz" in shown.output
    content = json.loads(CliRunner().invoke(app, ["model", "show", str(file), "--json"]).output)
    assert set(content["controllers"]) == {"shoulder", "elbow"}


def test_exports_name_the_controllers_that_they_leave_out(tmp_path):
    machine = parse_machine(ARM + LAWS).without_elements(["elbow_motor"]).with_controllers([])
    machine = machine.with_controllers(parse_machine(ARM + LAWS).controllers[:1])
    with pytest.warns(match="a URDF has no place for controller shoulder"):
        save_urdf(machine, tmp_path / "arm.urdf")
    with pytest.warns(match="its 1 controllers are left out"):
        save_mjcf(machine, tmp_path / "arm.xml")
