"""Limits of a URDF that can be meant are kept; others are guessed, and say so."""

from pathlib import Path

import numpy as np
import pytest

from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.studies.config.guessed_limits import force_sizes, guessed_efforts, guessed_limits, guessed_noise

LINK = (
    '<link name="{n}"><inertial><origin xyz="0.2 0 0"/><mass value="{m}"/>'
    '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = '<joint name="{n}" type="{k}"><parent link="{p}"/><child link="{c}"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>{more}</joint>'


def robot(folder: Path) -> Path:
    """A joint with limits, one with those of nobody, one without ends, and a slide, in a row."""
    limits = (
        '<limit lower="-1" upper="0.5" velocity="1.5" effort="40"/>',
        '<limit lower="-10" upper="10" velocity="1000" effort="1000"/>',
        '<limit velocity="1" effort="2"/><dynamics friction="1.9"/>',
        '<limit lower="0" upper="0.04" velocity="0.2" effort="100"/>',
    )
    kinds = ("revolute", "revolute", "continuous", "prismatic")
    text = '<robot name="four"><link name="l0"/>'
    text += "".join(LINK.format(n=f"l{k + 1}", m=2.0 / (k + 1)) for k in range(4))
    text += "".join(JOINT.format(n=f"j{k + 1}", k=kinds[k], p=f"l{k}", c=f"l{k + 1}", more=limits[k]) for k in range(4))
    file = folder / "four.urdf"
    file.write_text(text + "</robot>")
    return file


def test_what_the_file_says_is_kept_where_it_can_be_meant(tmp_path: Path) -> None:
    file = robot(tmp_path)
    one, two, three, slide = guessed_limits(load_urdf(file), file)
    assert (one.low, one.high, one.speed, one.guessed) == (-1.0, 0.5, 1.5, ("acceleration",))
    assert (two.low, two.high, two.speed) == pytest.approx((-np.pi, np.pi, 2.0))
    assert two.guessed == ("acceleration", "range", "speed")
    assert (three.low, three.high) == pytest.approx((-np.pi, np.pi)) and "range" in three.guessed
    assert (slide.low, slide.high, slide.speed, slide.acceleration) == pytest.approx((0.0, 0.04, 0.2, 0.8))
    usable, rest = guessed_efforts(load_urdf(file), file)
    assert usable == {"j1": 40.0, "j2": 1000.0, "j4": 100.0} and rest == {"j3": 2.0}


def test_machines_with_loops_move_about_the_pose_they_are_assembled_in() -> None:
    machine = load_model("veridyn:palletizer.yaml")
    limits = guessed_limits(machine, Path("palletizer.yaml"))
    assert [x.name for x in limits] == [machine.coordinates[k] for k in machine.independent]
    assert all(x.high - x.low == pytest.approx(2.0) for x in limits)
    assert force_sizes(machine, limits) == {}


def test_noise_is_two_percent_of_what_the_model_predicts(tmp_path: Path) -> None:
    """Static moments of the first joint alone, by Σ m g r cos q with all other joints straight, are of the same size."""
    file = robot(tmp_path)
    machine = load_urdf(file)
    limits = guessed_limits(machine, file)
    sizes = force_sizes(machine, limits)
    straight = Motion(np.zeros(1), *np.zeros((3, 1, 4)))
    held = abs(inverse_dynamics(machine, straight)[0, 0])
    assert 0.2 * held < sizes["j1"] < 3.0 * held
    noise = guessed_noise(machine, sizes)
    assert noise["j1"] == pytest.approx(0.02 * sizes["j1"], rel=0.05)  # two digits
    assert guessed_noise(machine, {"j1": 100.0, "j2": 1e-6, "j3": 1.0, "j4": 1e-3}) == pytest.approx(
        {"j1": 2.0, "j2": 0.1, "j3": 0.1, "j4": 2e-5}
    )
