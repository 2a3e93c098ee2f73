"""Quarter turns as they are written in files: which angles are taken for one, and what is said of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from strangers.pinocchio_logs import three_joints, urdf
from veridyn.errors import DataWarning
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.mjcf import load_mjcf
from veridyn.files.machine.quarter_turns import quarter_turn, snap_quarter_turns
from veridyn.identify.base import base_parameters

QUARTER = math.pi / 2
ROUNDED = (1.57, 1.571, 1.5708, 1.57079, 1.570796, -1.5707, 3.14, 3.142, -3.1416, 3.141592, 4.712, 4.7124, 6.283)
OTHERS = (1.6, 1.56, 1.58, 1.5709, 1.5706, 1.58079, 3.1, 3.13, 3.15, 0.0, 0.0001, 1e-9, 0.7854, 1.0472, 2.0944, 1.5)


@pytest.mark.parametrize("angle", ROUNDED)
def test_digits_of_a_quarter_turn_are_one(angle: float) -> None:
    exact = quarter_turn(angle)
    assert exact / QUARTER == round(exact / QUARTER)
    assert 0.0 < abs(exact - angle) < 0.002


@pytest.mark.parametrize("angle", OTHERS)
def test_other_angles_stay(angle: float) -> None:
    assert quarter_turn(angle) == angle


def test_single_precision_is_enough() -> None:
    """What a 32-bit number makes of π/2 and −π is 4e-8 and 9e-8 rad off."""
    assert quarter_turn(float(np.float32(QUARTER))) == QUARTER
    assert quarter_turn(-float(np.float32(math.pi))) == -math.pi
    assert quarter_turn(QUARTER + 4e-7) != QUARTER


def test_words_name_what_is_changed_and_not_what_nobody_could_see() -> None:
    assert snap_quarter_turns([1.5708, 0.3, -3.1416]) == ([QUARTER, 0.3, -math.pi], "1.5708 is π/2, -3.1416 is −π")
    assert snap_quarter_turns([4.7124, 1.5707963268]) == ([3 * QUARTER, QUARTER], "4.7124 is 3π/2")


def test_a_urdf_is_snapped_with_a_note_that_names_joint_line_and_angle(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(urdf(three_joints(), 4).replace("<joint", "\n<joint"), encoding="utf-8")
    with pytest.warns(DataWarning, match=r"joint 'q2' \(line 3\): its angle is a quarter turn[\s\S]*1.5708 is π/2"):
        rounded = load_model(file)
    file.write_text(urdf(three_joints()), encoding="utf-8")
    exact = load_model(file)
    for a, b in zip(rounded.joints, exact.joints, strict=True):
        np.testing.assert_array_equal(
            rounded.attachment(a.a).placement.rotation, exact.attachment(b.a).placement.rotation
        )
    base = base_parameters(rounded)
    assert base.relations() == base_parameters(exact).relations()
    assert not any("999999" in line or "000000" in line for line in base.relations())


MODEL = """
veridyn: 2
name: arm
bodies: {link1: {}, link2: {}}
joints:
  q1: {kind: turning, a: ground, b: link1}
  q2: {kind: turning, a: {body: link1, PLACE}, b: link2}
"""


@pytest.mark.parametrize("place", ["mdh: {alpha: 1.5708, d: 0.1}", "position: [0.1, 0, 0], rpy: [1.5708, 0, 0]"])
def test_a_model_file_is_snapped_too(place: str) -> None:
    with pytest.warns(DataWarning, match=r"a.yaml, .*'q2'.*: its angle is a quarter turn[\s\S]*1.5708 is π/2"):
        rounded = parse_machine(MODEL.replace("PLACE", place), "a.yaml")
    exact = parse_machine(MODEL.replace("PLACE", place.replace("1.5708", "pi/2")), "a.yaml")
    for a, b in zip(rounded.joints, exact.joints, strict=True):
        np.testing.assert_array_equal(
            rounded.attachment(a.a).placement.rotation, exact.attachment(b.a).placement.rotation
        )


def test_euler_angles_of_mjcf_are_snapped_too(tmp_path: Path) -> None:
    file = tmp_path / "arm.xml"
    file.write_text(
        "<mujoco><compiler angle='radian'/><worldbody><body name='link1' euler='1.5708 0 0'><joint name='q1' axis='0 0 1'/>"
        "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body></worldbody></mujoco>",
        encoding="utf-8",
    )
    with pytest.warns(DataWarning, match="1.5708 is π/2"):
        machine = load_mjcf(file)
    assert set(np.abs(np.asarray(machine.attachment(machine.joints[-1].a).placement.rotation)).ravel()) == {0.0, 1.0}
