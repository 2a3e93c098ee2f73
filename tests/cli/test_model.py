import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from veridyn.cli.app import app

ARM = str(resources.files("veridyn.machines").joinpath("arm.yaml"))


def test_a_model_is_shown_with_its_bodies_groups_and_what_has_no_effect() -> None:
    done = CliRunner().invoke(app, ["model", "show", ARM])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "arm: 6 bodies on a fixed base, 6 coordinates"
    assert lines[2].split() == ["1", "ground", "turning", "q1", "6.2"]
    assert any(line.split()[:5] == ["hm6", "damper", "q5", "+", "q6"] for line in lines)
    assert "transmission: q5 = m5; q6 = − m5 + m6" in lines
    assert "XX6R = XX6 - YY6" in lines
    assert any(line.startswith("without effect: XX1, XY1") for line in lines)


@pytest.mark.parametrize("name", ["arm.yaml", "pendulum.urdf"])
def test_nothing_is_imported_that_an_open_machine_does_not_need(name: str, tmp_path: Path) -> None:
    """SciPy, numba, LLVM, and the readers of other formats take longer to import than the rest of the command."""
    (tmp_path / "pendulum.urdf").write_text(
        '<robot name="pendulum"><link name="base"/><link name="rod"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    file = ARM if name == "arm.yaml" else str(tmp_path / name)
    code = (
        f"import sys; sys.argv = ['veridyn', 'model', 'show', {file!r}]\n"
        "from veridyn.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = ['scipy', 'numba', 'llvmlite', 'veridyn.mechanics.tree.dynamics.formula', 'veridyn.files.machine.mjcf']\n"
        "heavy += ['veridyn.mechanics.natural.description.of_machine']\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_passive_virtual_and_unknown_parts_are_named(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(
        "veridyn: 2\nname: odd\nbase: free\nbodies:\n"
        "  - {name: trunk}\n"
        "  - {name: slide, antecedent: trunk, joint: sliding, actuated: false, virtual: true}\n"
        "  - {name: foot, antecedent: slide, joint: fixed, mdh: {d: 0.1}}\n"
    )
    done = CliRunner().invoke(app, ["model", "show", str(file)])
    assert done.exit_code == 0, done.output
    assert "odd: 3 bodies on a free base, 1 coordinate" in done.stdout
    assert "sliding, passive" in done.stdout
    assert "virtual" in done.stdout
    assert "without a value: XX_trunk" in done.stdout


def test_a_bad_model_ends_with_2_and_all_its_faults(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("veridyn: 2\nbodies:\n  - {name: a, antecedent: b, joint: turning}\n  - {name: c, joint: turnig}\n")
    done = CliRunner().invoke(app, ["model", "show", str(file)])
    assert done.exit_code == 2
    assert done.stderr.startswith("ModelError: bad.yaml, 2 faults:")
    assert done.stdout == ""


def test_loops_are_shown() -> None:
    done = CliRunner().invoke(app, ["model", "show", ARM.replace("arm.yaml", "linkage.yaml")])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["pin", "turning", "coupler", "rocker"] in [line[:4] for line in lines]
    assert any(line[:1] == ["pin"] and line[-1] == "closed" for line in lines)
    assert "1 degree of freedom: q1" in done.stdout


EXCAVATOR = Path(__file__).parents[2] / "examples" / "studies" / "excavator_model.yaml"


def test_a_pin_on_the_wrong_side_is_seen_in_the_assembled_pose(tmp_path: Path) -> None:
    right = CliRunner().invoke(app, ["model", "show", str(EXCAVATOR)])
    assert right.exit_code == 0 and "Far from their guesses" not in right.stdout
    assert ["s1", "held", "1.28", "m"] in [line.split() for line in right.stdout.splitlines()]
    text = EXCAVATOR.read_text()
    file = tmp_path / "wrong.yaml"
    file.write_text(text.replace("position: [-0.35, 0.10, 0]", "position: [0.35, 0.10, 0]"))
    wrong = CliRunner().invoke(app, ["model", "show", str(file)])
    assert wrong.exit_code == 0 and "Far from their guesses: reach, a2." in wrong.stdout
    file.write_text(text.replace("s2: 1.31", "s2: 2.31"))
    open_ = CliRunner().invoke(app, ["model", "show", str(file)])
    assert open_.exit_code == 2 and "its loops cannot be closed" in open_.stderr
    pin = next(line.split() for line in open_.stdout.splitlines() if line.startswith("stick pin"))
    assert float(pin[-1]) > 0.1  # how far it stays open is printed before


ODD = """<robot name="odd"><link name="base"><inertial><mass value="1e-6"/>
<inertia ixx="1e-6" ixy="1e-6" ixz="1e-6" iyy="1e-6" iyz="1e-6" izz="1e-6"/></inertial></link>
<link name="leg"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="hip" type="continuous"><parent link="base"/><child link="leg"/><dynamics D="1" K="2"/></joint></robot>"""
COUNTED = (
    "odd.urdf, 1 of 2 links has an inertia that no physical body has (base); it is taken as unknown, to be identified."
)


def test_a_urdf_with_odd_inertias_is_shown_with_one_line_for_each_kind(tmp_path: Path) -> None:
    file = tmp_path / "odd.urdf"
    file.write_text(ODD)
    done = CliRunner().invoke(app, ["model", "show", str(file), "--base", "free"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("odd: 3 bodies on a free base, 1 coordinate")
    assert "without a value: XX_base, XY_base, XZ_base, YY_base, YZ_base, ZZ_base\n" in done.stdout
    assert done.stderr.splitlines() == [
        f"warning: {COUNTED}",
        "warning: odd.urdf, joint 'hip' (line 4): 'D', 'K' of its <dynamics> are not read.",
    ]


@pytest.mark.parametrize("command", [["model", "show"], ["codegen"], ["view"]])
def test_strict_refuses_them_and_names_no_keyword_of_python(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "odd.urdf"
    file.write_text(ODD)
    done = CliRunner().invoke(app, [*command, str(file), "--strict"])
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith(
        "ModelError: odd.urdf, link 'base' (line 1): no distribution of mass has this inertia"
    )
    assert done.stderr.endswith("Without strict the file is read, and such inertias are unknown.\n")
    assert "=" not in done.stderr


def test_a_model_file_has_its_own_base() -> None:
    done = CliRunner().invoke(app, ["model", "show", ARM, "--base", "free"])
    assert done.exit_code == 2 and "Write base: free in the file." in done.stderr


def test_laws_of_ones_own_are_shown() -> None:
    model = Path(__file__).parents[2] / "examples" / "studies" / "balanced_arm_model.yaml"
    done = CliRunner().invoke(app, ["model", "show", str(model)])
    assert done.exit_code == 0 and "hoses: value × ((c - 2.6) ** 3)" in done.output
    assert (
        "balancer: value × table, 7 points of c from 0.4 to 2.2, smooth; outside it holds its end values" in done.output
    )


def test_a_car_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "car.yaml"
    car = "car: {mass: 900, front: 1.0, rear: {value: 1.4, sigma: 0.1}}\n"
    file.write_text(f"veridyn: 2\nname: small\nformulation: single_track\n{car}", "utf-8")
    shown = CliRunner().invoke(app, ["model", "show", str(file)])
    assert shown.stdout.splitlines()[0] == "small: a car with tanh tyres, formulation single_track"
    row = next(line.split() for line in shown.stdout.splitlines() if line.startswith("rear "))
    assert row[:5] == ["rear", "estimated", "m", "1.4", "0.1"]
    told = json.loads(CliRunner().invoke(app, ["--json", "model", "show", str(file)]).stdout)
    assert told["sigma"] == {"rear": 0.1} and told["values"]["mass"] == 900.0 and told["sensors"] == ["yaw_rate", "ay"]


def test_flexible_joints_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "arm.yaml"
    body = "{name: hip, joint: turning, flexible: {stiffness: 900, inertia: 0.25}}"
    file.write_text(f"veridyn: 2\nname: arm\nbodies:\n  - {body}\n", "utf-8")
    done = CliRunner().invoke(app, ["model", "show", str(file)])
    wanted = "hip: stiffness 900 N·m/rad, damping 0 N·m·s/rad, rotor inertia 0.25 kg·m²; its motor side is hip_motor"
    assert done.exit_code == 0 and wanted in done.output
    told = CliRunner().invoke(app, ["model", "show", str(file), "--json"])
    assert json.loads(told.stdout)["flexible_joints"] == {"hip": "hip_motor"}


def test_controllers_and_springs_between_bodies_are_shown(tmp_path: Path) -> None:
    """Constants with units and deviations, and what limits them; a spring with the places of both its ends."""
    servos = Path(__file__).parents[2] / "examples" / "studies" / "servo_arm_model.yaml"
    done = CliRunner().invoke(app, ["model", "show", str(servos)])
    lines = [line for line in done.output.splitlines() if line.startswith("controller ")]
    assert done.exit_code == 0 and len(lines) == 2
    assert lines[0].startswith(
        "controller shoulder_servo: pid on shoulder at 500 Hz: kp 60 ± 6 N·m/rad, ki 30 N·m/(rad·s), kd 4 ± 0.4"
    )
    assert "feedforward gravity, anti_windup clamp" in lines[0]
    assert lines[1].endswith("motor elbow_motor, current loop at 2000 Hz")
    file = tmp_path / "pulled.yaml"
    spring = "{kind: spring, between: [{body: ground, at: [0, 0, 1]}, {body: hip, at: [0.5, 0, 0]}], value: 30}"
    file.write_text(
        f"veridyn: 2\nname: arm\nbodies:\n  - {{name: hip, joint: turning}}\nelements:\n  - {spring}\n", "utf-8"
    )
    done = CliRunner().invoke(app, ["model", "show", str(file)])
    assert done.exit_code == 0 and "ground (0, 0, 1) to hip (0.5, 0, 0)" in done.output
