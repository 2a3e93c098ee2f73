"""Rotor inertia in a first study file: proposed where a file knows of a motor, and its absence stated where it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from real_logs import folder
from veridyn.files.log.load import survey
from veridyn.files.machine.load import load_model
from veridyn.files.yaml_reader import plain_yaml
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.studies.config.guessing import (
    Guess,
    LogTable,
    guesses,
    motor_combinations,
    name_words,
    rotor_lines,
    time_column,
    time_unit,
    urdf_transmissions,
    wrench_columns,
)
from veridyn.studies.config.study import load_study, parse_study
from veridyn.studies.config.template import template
from veridyn.studies.run.machine import study_machine

N = 50
X = np.sin(np.arange(N))


@pytest.mark.parametrize(
    "name", ["t", "Time (Seconds)", "MocapTime", "field.header.stamp", "Time_s", "__time", "timestamp", "ros_time_ns"]
)
def test_a_clock_is_found_by_its_name(name: str) -> None:
    assert time_column({"MocapFrame": np.arange(N), "a": X, name: np.arange(N) / 100.0}) == name


def test_a_clock_is_found_by_even_steps_and_a_counter_or_a_turning_motor_is_none() -> None:
    jitter = np.arange(N) / 100.0 + 1e-3 * np.random.default_rng(1).uniform(size=N)
    assert time_column({"a": X, "b": jitter}) == "b"
    assert time_column({"frame": np.arange(N), "a": X}) == ""
    assert time_column({"a": np.cumsum(1.1 + X), "b": X}) == ""  # only increases, and in uneven steps
    assert name_words("DeviceFrame.Time2 (s)") == ["device", "frame", "time", "s"]


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)])
@pytest.mark.parametrize(("start", "rate"), [(0.0, 10.0), (0.0, 100.0), (0.0, 1000.0), (1.7e9, 2.0), (1.7e9, 8000.0)])
def test_the_unit_of_a_clock_by_its_step_or_by_its_date(unit: str, seconds: float, start: float, rate: float) -> None:
    """Nanoseconds of ROS used to be taken for microseconds."""
    stamps = np.round((start + np.arange(N) / rate) / seconds, 9)
    assert time_unit("time", {"time": stamps}, {})[0] == unit
    assert time_unit("time", {"time": stamps}, {"time": "min"}) == ("min", "")


def arm(names: list[str], transmission: Transmission | None = None) -> Machine:
    bodies = [Body(str(k), str(k - 1) if k else None, coordinate=c) for k, c in enumerate(names)]
    return Machine.of_bodies(bodies, transmission=transmission)


def guessed(machine: Machine, columns: list[str], texts: dict[str, str] | None = None) -> dict[str, Guess]:
    table = LogTable({c: np.sin(np.arange(20.0)) for c in columns}, {}, texts or {})
    return {g.channel: g for g in guesses(machine, table)}


def test_ur_real_time_data_exchange() -> None:
    kinds = ["target_q", "target_qd", "target_qdd", "target_moment", "actual_q", "actual_qd", "actual_current"]
    columns = [f"{kind}_{k}" for kind in [*kinds, "actual_TCP_force", "actual_TCP_speed"] for k in range(6)]
    found = guessed(arm([f"q{k}" for k in range(1, 7)]), columns)
    assert found["q.q3"].column == "actual_q_2" and "before target_q_2" in found["q.q3"].why
    assert found["qd.q6"].column == "actual_qd_5"
    assert found["force.q1"].column == "target_moment_0" and "commanded, it seems" in found["force.q1"].why
    assert not any(channel.startswith("qdd.") for channel in found)  # commanded accelerations are of no use


def test_franka_states() -> None:
    kinds = ["q", "q_d", "dq", "dq_d", "ddq_d", "tau_J", "tau_J_d", "tau_ext_hat_filtered", "theta"]
    found = guessed(arm([f"q{k}" for k in range(1, 8)]), [f"{kind}[{k}]" for kind in kinds for k in range(7)])
    assert [found[f"{kind}.q7"].column for kind in ("q", "qd", "force")] == ["q[6]", "dq[6]", "tau_J[6]"]
    assert "before tau_J_d[6]" in found["force.q7"].why and "theta[6]" in found["q.q7"].why


def test_ros_joint_states_are_matched_by_the_names_in_their_rows() -> None:
    columns = [f"field.{kind}{k}" for kind in ("position", "velocity", "effort") for k in range(2)]
    found = guessed(arm(["shoulder", "elbow"]), columns, {"field.name0": "elbow", "field.name1": "shoulder"})
    assert found["q.shoulder"].column == "field.position1" and found["force.elbow"].column == "field.effort0"


MATRIX = np.array([[0.01, 0.0], [0.02, 0.0125]])


@pytest.mark.parametrize(
    ("columns", "motors", "taken"),
    [
        (["motor_pos_1", "motor_pos_2", "motor_torque_1", "motor_torque_2"], ("m1", "m2"), "motor_pos_2"),
        (["m5_pos", "m6_pos", "m5_tau", "m6_tau"], ("m5", "m6"), "m6_pos"),
        (["q_motor_5", "q_motor_6", "tau_motor_5", "tau_motor_6"], ("m5", "m6"), "q_motor_6"),
        (["rotor.q.0", "rotor.q.1", "rotor.tau.0", "rotor.tau.1"], ("a", "b"), "rotor.q.1"),
    ],
)
def test_columns_of_motors_where_the_machine_has_a_transmission(
    columns: list[str], motors: tuple[str, str], taken: str
) -> None:
    found = guessed(arm(["q1", "q2"], Transmission(motors, ("q1", "q2"), MATRIX)), columns)
    assert set(found) == {f"{kind}_motor.{m}" for kind in ("q", "force") for m in motors}
    assert found[f"q_motor.{motors[1]}"].column == taken and "of a motor" in found[f"q_motor.{motors[1]}"].why


def test_which_side_of_the_gear_is_said_where_names_leave_it_open() -> None:
    found = guessed(arm(["q1", "q2"], Transmission(("m1", "m2"), ("q1", "q2"), MATRIX)), ["q1", "q2", "tau1", "tau2"])
    assert "of the joint and not of q_motor.m1 and q_motor.m2" in found["q.q2"].why
    without = guessed(arm(["q1", "q2"]), ["motor_pos_1", "motor_pos_2"])
    assert "name its gear under model: transmission" in without["q.q1"].why


def test_force_plates_by_their_six_columns() -> None:
    names = [f"{axis}{k}" for k in (1, 2) for axis in ("Fx", "Fy", "Fz", "Mx", "My", "Mz")] + ["FP_Fx", "tau1"]
    assert [six["mz"] for six in wrench_columns(names)] == ["Mz1", "Mz2"]


def test_measured_and_commanded_torques_of_real_logs() -> None:
    pendulum = survey(folder("double_pendulum") / "trajectory_00.csv")
    columns = {n: x for n, x in pendulum.columns.items() if n != "time"}
    found = {g.channel: g for g in guesses(arm(["q1", "q2"]), LogTable(columns))}
    assert found["force.q1"].column == "tau_meas1" and "before tau_con1" in found["force.q1"].why
    kuka = survey(folder("kuka_lwr4") / "measurements_1.npz")
    found = {g.channel: g for g in guesses(arm([f"lwr_{k}_joint" for k in range(7)]), LogTable(kuka.columns))}
    assert found["qdd.lwr_0_joint"].column == "accelerations.0"
    assert found["q.lwr_3_joint"].column == "positions.3" and "target_positions.3" in found["q.lwr_3_joint"].why


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
