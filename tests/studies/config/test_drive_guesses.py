"""Columns of commands by their usual spellings, and gains guessed from a leg that MuJoCo simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import KD, TRUE_KP, TRUTH, leg, recorded

from veridyn.identify.drives.drive_log import drive_records
from veridyn.studies.config.drive_guesses import command_guesses, drive_numbers
from veridyn.studies.config.guessing import LogTable

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
