"""Servos in a URDF: gains as an XML parser of its own reads them, what is left out in words, and a file that has tags already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import veridyn as vd
from veridyn.errors import DataWarning
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.machines.leg import leg

ARMATURE = "a URDF has no place for Ia_thigh, Ia_calf"


def changed(machine: vd.Machine, **constants: float) -> vd.Machine:
    return machine.with_controllers([replace(c, constants={**c.constants, **constants}) for c in machine.controllers])


def gains(file: Path) -> dict[str, dict[str, float]]:
    root = ElementTree.parse(file).getroot()  # written here, a moment ago
    found = {}
    for joint in root.findall("ros2_control/joint"):
        found[joint.get("name", "")] = {p.get("name", ""): float(p.text or "nan") for p in joint.findall("param")}
    return found


def test_gains_are_written_and_the_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "leg.urdf"
    with pytest.warns(DataWarning, match=ARMATURE):
        save_urdf(changed(leg(), kp=21.5, kd=0.9), file)
    assert gains(file) == {j: {"pos_kp": 21.5, "pos_ki": 0.0, "pos_kd": 0.9} for j in ("thigh", "calf")}
    root = ElementTree.parse(file).getroot()
    assert [e.get("name") for e in root.findall("ros2_control/joint/command_interface")] == ["position_pid"] * 2
    again = load_urdf(file, "fixed")
    assert again.coordinates == ("thigh", "calf")
    assert again.parameters["fs_calf"] == 0.2


@pytest.mark.filterwarnings(f"ignore:.*{ARMATURE}")
def test_what_the_tags_cannot_hold_is_named(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="no place for delays of commands, encoder zeros, limits of force: left out"):
        save_urdf(changed(leg(), command_delay=0.004, zero=0.01, limit=20.0), tmp_path / "leg.urdf")
    other = leg().with_controllers([replace(c, feedforward="gravity") for c in leg().controllers])
    with pytest.warns(DataWarning, match="no place for controller thigh_drive, controller calf_drive: left out"):
        save_urdf(other, tmp_path / "other.urdf")
    assert gains(tmp_path / "other.urdf") == {}


@pytest.mark.filterwarnings(f"ignore:.*{ARMATURE}")
def test_a_file_keeps_its_own_tags(tmp_path: Path) -> None:
    file, copy = tmp_path / "leg.urdf", tmp_path / "copy.urdf"
    save_urdf(leg(), file)
    with pytest.warns(DataWarning, match="of its own, which stays as it is"):
        save_urdf(changed(leg(), kp=99.0), copy, file)
    assert gains(copy) == gains(file)
    bare = leg().with_controllers([])
    save_urdf(bare, tmp_path / "bare.urdf")
    save_urdf(changed(leg(), kp=33.0), tmp_path / "with.urdf", tmp_path / "bare.urdf")
    assert gains(tmp_path / "with.urdf")["calf"]["pos_kp"] == 33.0
