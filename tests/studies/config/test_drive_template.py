"""A study of drives written from a log runs as it is; what is guessed is marked as guessed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import JOINTS, KD, TRUE_KP, TRUTH, leg, recorded
from typer.testing import CliRunner

from veridyn.cli.app import app
from veridyn.errors import FileError
from veridyn.files.log.load import survey
from veridyn.files.machine.load import load_model
from veridyn.identify.drives.drive_log import drive_records
from veridyn.studies.config.drive_template import Gains, command_guesses, drive_numbers, drive_template, is_drive_log
from veridyn.studies.config.guessing import LogTable
from veridyn.studies.config.identify_sections import DrivesFile
from veridyn.studies.config.study import load_study
from veridyn.studies.run.drives import run_drives

BARE = """<robot name="leg"><link name="hip"/>
<link name="thigh"><inertial><origin xyz="0 0.02 -0.05"/><mass value="1.1"/>
<inertia ixx="0.006" iyy="0.006" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="calf"><inertial><origin xyz="0.01 0 -0.12"/><mass value="0.4"/>
<inertia ixx="0.002" iyy="0.002" izz="0.0001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="toe"><inertial><mass value="0.001"/>
<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="thigh" type="continuous"><origin xyz="0 0 1"/><axis xyz="0 1 0"/><parent link="hip"/><child link="thigh"/></joint>
<joint name="calf" type="continuous"><origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/><parent link="thigh"/><child link="calf"/>
<dynamics damping="0" friction="0"/></joint>
<joint name="toe" type="continuous"><origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/><parent link="calf"/><child link="toe"/></joint>
</robot>"""  # the leg of MuJoCo with a toe that is not driven, without armature and friction
SPELLINGS = [
    ("command.{c}", "position.{c}"),
    ("q_des_{i}", "q_{i}"),
    ("q{i}_des", "q{i}"),
    ("q_cmd[{i}]", "q[{i}]"),
    ("target_{c}", "actual_{c}_pos"),
    ("{c}_target", "{c}"),
    ("des_pos_{i}", "pos_{i}"),
    ("dof_target_{o}", "dof_pos_{o}"),
    ("dof_pos_target_{o}", "dof_pos_{o}"),
    ("joint_command.{o}", "joint_position.{o}"),
    ("{c}_setpoint", "{c}_measured_position"),
    ("cmd{i}", "theta{i}"),
]


def written(folder: Path, degrees: bool = False, clock: bool = True, extra: str = "") -> Path:
    log, scale = recorded(6.0), 180.0 / np.pi if degrees else 1.0
    t = log["command.thigh"].t
    parts = [*([t] if clock else []), *(scale * log[f"command.{j}"].values for j in JOINTS)]
    parts += [scale * log[f"position.{j}"].values for j in JOINTS]
    head = [*(["t"] if clock else []), "q_des_0", "q_des_1", "q_0", "q_1", *([extra] if extra else [])]
    parts += [np.sin(t)] if extra else []
    file = folder / "encoders.csv"
    np.savetxt(file, np.stack(parts, axis=1), delimiter=",", header=",".join(head), comments="", fmt="%.10g")
    return file


def study(folder: Path, model: str, log: Path, **given: object) -> tuple[str, Path]:
    out = folder / "study.yaml"
    text = drive_template(folder / model, load_model(folder / model), survey(log), out, **given)  # pyright: ignore
    out.write_text(text, encoding="utf-8")
    return text, out


def test_from_a_log_to_gains(tmp_path: Path) -> None:
    leg(tmp_path)
    log = written(tmp_path, degrees=True)
    assert is_drive_log(load_model(tmp_path / "leg.xml"), survey(log))
    text, file = study(tmp_path, "leg.xml", log)
    assert "q_des_0 [deg] # guessed by its number" in text and re.search(r"kp: (19|2\d) # guessed from the log", text)
    loaded = load_study(file, "identify")
    assert isinstance(loaded.study, DrivesFile) and loaded.study.drives.until == pytest.approx(4.2)
    assert loaded.study.accept.worse_than_file == 0.0  # exit code 1 where the file is better on what is held out
    done = run_drives(loaded)
    assert done.figures["worse_than_file"] == 0.0 and not done.missed
    assert done.figures["rms_held_out"] < 0.1 * done.figures["rms_held_out_defaults"]
    for joint, kp in zip(JOINTS, TRUE_KP, strict=True):
        assert done.fit.drive(f"{joint}_drive.kp").value == pytest.approx(kp, rel=0.03)


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_two_recordings_are_two_logs(tmp_path: Path, kind: str) -> None:
    """Of drives they were refused, or parts of one log: the last is simulated from its commands, and judges."""
    leg(tmp_path)
    files = []
    for name in ("run1", "run2"):
        table = np.loadtxt(written(tmp_path), delimiter=",", skiprows=1)
        files.append(tmp_path / f"{name}.{kind}")
        if kind == "csv":
            np.savetxt(files[-1], table, delimiter=",", header="t,q_des_0,q_des_1,q_0,q_1", comments="", fmt="%.10g")
        else:
            np.savez(files[-1], **dict(zip(("t", "q_des_0", "q_des_1", "q_0", "q_1"), table.T, strict=True)))
    study = tmp_path / "new.yaml"
    done = CliRunner().invoke(app, ["new", str(tmp_path / "leg.xml"), *map(str, files), "--out", str(study)])
    assert done.exit_code == 0, done.output
    loaded = load_study(study, "identify")
    assert isinstance(loaded.study, DrivesFile) and loaded.study.drives.until is None
    assert [[r.file for r in own] for own in (loaded.study.training, loaded.study.validation)] == [
        [f"run1.{kind}"],
        [f"run2.{kind}"],
    ]
    if kind == "csv":
        figures = run_drives(loaded).figures
        assert figures["rms_validation"] < 0.1 * figures["rms_validation_defaults"] and figures["worse_than_file"] == 0


def test_recordings_of_drives_with_other_headers_are_refused_by_name(tmp_path: Path) -> None:
    leg(tmp_path)
    first = written(tmp_path)
    other = tmp_path / "other.csv"
    other.write_text(first.read_text().replace("q_des_0", "target_0"))
    with pytest.raises(FileError, match="called otherwise") as caught:
        drive_template(
            tmp_path / "leg.xml", load_model(tmp_path / "leg.xml"), [survey(first), survey(other)], tmp_path / "n.yaml"
        )
    assert caught.value.source == "other.csv"


def test_a_urdf_without_friction_gets_starting_values_and_locks_what_has_no_column(tmp_path: Path) -> None:
    (tmp_path / "leg.urdf").write_text(BARE)
    text, file = study(tmp_path, "leg.urdf", written(tmp_path), gains=Gains(kp=20.0, kd=KD))
    assert "  lock: [toe] # guessed: 1 joint has no command and position" in text
    assert "  base: fixed" in text and "kp: 20 # N*m/rad" in text
    loaded = load_study(file, "identify")
    done = run_drives(loaded)
    keys = {d.key for d in done.fit.drives}
    assert keys >= {"armature", "viscous", "coulomb", "kp", "zero"}
    assert done.figures["rms_held_out"] < 2e-3  # noise of 1e-4 rad, and a toe of 1 g


def test_a_log_without_a_clock_takes_its_rate(tmp_path: Path) -> None:
    leg(tmp_path)
    text, file = study(tmp_path, "leg.xml", written(tmp_path, clock=False), rate=200.0)
    assert "  rate: 200" in text
    assert load_study(file, "identify").study.drives.until == pytest.approx(4.2)


def test_forces_make_it_another_study(tmp_path: Path) -> None:
    machine = leg(tmp_path)
    assert is_drive_log(machine, survey(written(tmp_path, extra="tau_cmd_0")))
    assert not is_drive_log(machine, survey(written(tmp_path, extra="tau_0")))


def test_logs_of_which_no_study_can_be_written(tmp_path: Path) -> None:
    leg(tmp_path)
    log = tmp_path / "run.csv"
    log.write_text("t,q_0,q_1\n" + "\n".join(f"{0.01 * k},0,0" for k in range(60)))
    with pytest.raises(FileError, match="no commands and positions of any joint"):
        study(tmp_path, "leg.xml", log)
    file = written(tmp_path)
    lines = file.read_text().splitlines()
    lines[9] = lines[9].rpartition(",")[0] + ","
    file.write_text("\n".join(lines))
    with pytest.raises(FileError, match="columns have holes"):
        study(tmp_path, "leg.xml", file)


def test_gains_that_the_log_does_not_show_are_asked_for(tmp_path: Path) -> None:
    leg(tmp_path)
    file = written(tmp_path)
    rows = np.loadtxt(file, delimiter=",", skiprows=1)
    rows[:, 3:5] = rows[:, 1:3]  # positions that are the commands
    np.savetxt(file, rows, delimiter=",", header="t,q_des_0,q_des_1,q_0,q_1", comments="")
    text, _ = study(tmp_path, "leg.xml", file)
    assert "  kp: # N*m/rad: write that of the drives' configuration" in text


def columns(asked: str, read: str) -> dict[str, np.ndarray]:
    out = {}
    for form in (asked, read):
        for k, c in enumerate(("thigh", "calf")):
            out[form.format(c=c, i=k + 1, o=k)] = 0.1 * np.arange(9.0)
    return out


@pytest.mark.parametrize(("asked", "read"), SPELLINGS)
def test_usual_spellings(asked: str, read: str, tmp_path: Path) -> None:
    found = {g.channel: g.column for g in command_guesses(leg(tmp_path), LogTable(columns(asked, read)))}
    own = list(columns(asked, read))
    assert found == dict(zip(("command.thigh", "command.calf", "position.thigh", "position.calf"), own, strict=True))


@pytest.mark.parametrize(
    ("asked", "read"), [("tau_cmd_{i}", "q_{i}"), ("dq_des_{i}", "q_{i}"), ("q_des_{i}", "tau_{i}"), ("a_{i}", "q_{i}")]
)
def test_commands_of_forces_and_speeds_are_none_of_positions(asked: str, read: str, tmp_path: Path) -> None:
    assert command_guesses(leg(tmp_path), LogTable(columns(asked, read))) == []


def test_degrees_for_all_joints_or_for_none(tmp_path: Path) -> None:
    given = columns("q_des_{i}", "q_{i}")
    given["q_des_1"] = given["q_1"] = np.linspace(-60.0, 40.0, 9)
    found = command_guesses(leg(tmp_path), LogTable(given))
    assert {g.unit for g in found} == {"deg"} and all("unit guessed" in g.why for g in found)
    stated = command_guesses(leg(tmp_path), LogTable(given, dict.fromkeys(given, "rad")))
    assert {g.unit for g in stated} == {"rad"}


def test_gains_and_friction_that_the_log_suggests(tmp_path: Path) -> None:
    """Near enough to start from: the leg is MuJoCo's, its delay of 4 ms is not guessed, and kd comes with viscous friction."""
    robot = leg(tmp_path)
    found = drive_numbers(robot, drive_records(robot, recorded(6.0))[0])
    assert found.values[:, 0] == pytest.approx(TRUE_KP, rel=0.15)
    assert found.values[:, 1] == pytest.approx([KD + TRUTH["h0"], KD + TRUTH["h1"]], rel=0.15)
    assert found.values[:, 3] == pytest.approx([TRUTH["f0"], TRUTH["f1"]], rel=0.5)
    assert found.gains is not None and found.gains[0] == pytest.approx(np.mean(TRUE_KP), rel=0.15)


def test_no_gains_where_nothing_moves_by_itself(tmp_path: Path) -> None:
    """Positions that are the commands show no drive at all."""
    robot, log = leg(tmp_path), recorded(2.0)
    record = drive_records(robot, log)[0]
    same = type(record)(
        name="x",
        coordinates=record.coordinates,
        start=0.0,
        step=record.step,
        command=record.command,
        position=record.command,
    )
    assert drive_numbers(robot, same).gains is None
