"""Rotor inertia in a first study file: proposed where a file knows of a motor, and its absence stated where it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veridyn.files.machine.load import load_model
from veridyn.files.yaml_reader import plain_yaml
from veridyn.model.load import Transmission
from veridyn.studies.config.rotors import motor_combinations, rotor_lines, urdf_transmissions
from veridyn.studies.config.study import load_study, parse_study
from veridyn.studies.config.template import template
from veridyn.studies.run.machine import study_machine

INERTIAL = "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"


def _urdf() -> str:
    links = "".join(f"<link name='l{k}'>{INERTIAL}</link>" for k in range(4))
    joints = "".join(
        f"<joint name='j{k}' type='revolute'><parent link='l{k - 1}'/><child link='l{k}'/><axis xyz='0 0 1'/>"
        f"<origin xyz='0.3 0 0'/><limit lower='-1' upper='1' effort='9' velocity='9'/></joint>"
        for k in range(1, 4)
    )
    old = (
        "<transmission name='t1'><type>transmission_interface/SimpleTransmission</type><joint name='j1'>"
        "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>"
        "<actuator name='m1'><mechanicalReduction>50</mechanicalReduction></actuator></transmission>"
    )
    new = (
        "<ros2_control name='robot' type='system'><joint name='j3'/><transmission name='t2'><plugin>p</plugin>"
        "<joint name='j2' role='joint2'><mechanical_reduction>2</mechanical_reduction></joint></transmission></ros2_control>"
    )
    return f"<robot name='three'>{links}{joints}{old}{new}</robot>"


MJCF = """\
<mujoco model="two">
  <compiler angle="radian"/>
  <worldbody>
    <body name="a">
      <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <joint name="j1" type="hinge" axis="0 0 1" armature="0.2"/>
      <body name="b" pos="0.3 0 0">
        <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
        <joint name="j2" type="hinge" axis="0 1 0"/>
      </body>
    </body>
  </worldbody>
  ACTUATORS
</mujoco>
"""


def log_of(folder: Path, joints: int) -> Path:
    """A log with columns of every joint."""
    rng, names = np.random.default_rng(1), [f"{kind}{k}" for kind in ("q", "tau") for k in range(1, joints + 1)]
    table = np.column_stack([np.arange(200) / 100.0, rng.normal(size=(200, 2 * joints))])
    np.savetxt(folder / "run.csv", table, delimiter=",", header=",".join(["t", *names]), comments="")
    return folder / "run.csv"


def proposed(folder: Path, model: Path, joints: int):
    """The elements of the study, its text, and the parameters that its machine has of rotors."""
    log, file = log_of(folder, joints), folder / "study.yaml"
    text = template(model, load_model(model), [log], file)
    file.write_text(text, encoding="utf-8")
    loaded = load_study(file, "identify")
    machine = study_machine(loaded, ("model",), loaded.study.model)
    return parse_study(plain_yaml(text, "study.yaml")).model.elements, text, machine


def test_joints_with_a_transmission_in_a_urdf_get_a_rotor(tmp_path: Path) -> None:
    model = tmp_path / "three.urdf"
    model.write_text(_urdf(), encoding="utf-8")
    assert urdf_transmissions(model) == ("j1", "j2")  # j3 is named by <ros2_control>, in no transmission
    elements, text, machine = proposed(tmp_path, model, 3)
    assert [e.on for e in elements if e.kind == "inertia"] == ["j1", "j2"]
    assert "no gear, transmission or armature is known of j3; " in text
    assert {e.parameter_name for e in machine.elements if e.kind == "inertia"} == {"Ia_j1", "Ia_j2"}


def test_an_armature_stands_in_the_model_and_its_absence_is_stated(tmp_path: Path) -> None:
    model = tmp_path / "two.xml"
    model.write_text(MJCF.replace("ACTUATORS", ""), encoding="utf-8")
    elements, text, machine = proposed(tmp_path, model, 2)
    assert elements == () and "besides those of the model: Ia_j1" in text
    assert "known of j2; where a motor turns through a gear: - {kind: inertia, on: j2}" in text
    assert [e.parameter_name for e in machine.elements if e.kind == "inertia"] == ["Ia_j1"]


def test_a_gear_without_an_armature_gets_a_rotor(tmp_path: Path) -> None:
    motors = '<actuator><motor name="m1" joint="j1" gear="30"/><motor name="m2" joint="j2" gear="50"/></actuator>'
    model = tmp_path / "two.xml"
    model.write_text(MJCF.replace("ACTUATORS", motors), encoding="utf-8")
    elements, text, machine = proposed(tmp_path, model, 2)
    assert [(e.kind, e.on) for e in elements] == [("inertia", "j2")]
    assert "no gear" not in text
    assert sorted(e.parameter_name for e in machine.elements if e.kind == "inertia") == ["Ia_j1", "Ia_j2"]


def test_a_coupled_motor_turns_with_both_joints(tmp_path: Path) -> None:
    """Motors of 80 q1 and −60 (q1 + q2): by hand, the rotors turn with q1 and with q1 + q2."""
    T = np.linalg.inv([[80.0, 0.0], [-60.0, -60.0]])
    both = Transmission(("m1", "m2"), ("q1", "q2"), T)
    assert motor_combinations(both) == {"m1": {"q1": 1.0}, "m2": {"q1": 1.0, "q2": 1.0}}
    model = tmp_path / "coupled.yaml"
    body = "{{name: {0}, antecedent: {1}, joint: turning, inertia: {{mass: 1, centre: [0.1, 0, 0], about_centre: [1, 0, 0, 1, 0, 1]}}}}"
    text = "veridyn: 2\nname: coupled\nbodies:\n  - " + body.format(1, "0").replace("antecedent: 0, ", "")
    text += "\n  - " + body.format(2, "1") + "\nelements:\n  - {kind: inertia, on: {q1: 2, q2: 2}}\n"
    text += "transmission: {motors: [m1, m2], joints: [q1, q2], matrix: [[1/80, 0], [-1/80, -1/60]]}\n"
    model.write_text(text, encoding="utf-8")
    machine = load_model(model)
    assert np.allclose(machine.transmission.matrix, T)
    lines = rotor_lines(model, machine)
    assert len(lines) == 1 and lines[0].startswith("    - {kind: inertia, on: q1} #")  # the model has the other
    (line,) = [x for x in rotor_lines(model, machine.without_elements(machine.element_names)) if "q2" in x]
    assert line.startswith("    - {kind: inertia, on: {q1: 1, q2: 1}} #")


@pytest.mark.parametrize("joints", [3, 9])
def test_a_model_that_knows_of_no_motor_gets_a_comment(tmp_path: Path, joints: int) -> None:
    links = "".join(f"<link name='l{k}'>{INERTIAL}</link>" for k in range(joints + 1))
    moving = "".join(
        f"<joint name='j{k}' type='continuous'><parent link='l{k - 1}'/><child link='l{k}'/></joint>"
        for k in range(1, joints + 1)
    )
    model = tmp_path / "bare.urdf"
    model.write_text(f"<robot name='bare'>{links}{moving}</robot>", encoding="utf-8")
    (line,) = rotor_lines(model, load_model(model))
    assert line.lstrip().startswith("#") and ("…" in line) == (joints > 6)
