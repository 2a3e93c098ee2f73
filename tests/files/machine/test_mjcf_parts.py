"""Friction that yields, written into files of simulators whose friction does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import veridyn as vd
from veridyn.files.machine.mjcf_parts import with_rigid_friction


def servo(*elements: vd.Element) -> vd.Machine:
    inertia = {"arm": [0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 0.2]}
    return vd.Machine.of_bodies([vd.model.Body("arm")], name="servo", inertia=inertia, elements=elements)


SOFT = (vd.elements.lugre("arm", 2e-3, 1e-5, 0.6, "fs_arm"), vd.elements.damper("arm", 0.1, "h_arm"))


def test_parameters_keep_their_order_and_values() -> None:
    machine = servo(*SOFT)
    rigid, words = with_rigid_friction(machine)
    assert [e.kind for e in rigid.elements] == ["coulomb", "damper"] and not rigid.states
    assert rigid.parameters.names == machine.parameters.names
    assert rigid.parameters["fs_arm"] == 0.6 and "fs_arm (0.002)" in words[0]
    plain = servo(vd.elements.coulomb("arm", 0.6, "fs_arm"))
    assert with_rigid_friction(plain) == (plain, [])


@pytest.mark.parametrize(("name", "text"), [("servo.xml", 'frictionloss="0.6"'), ("servo.urdf", 'friction="0.6"')])
def test_simulators_get_the_friction_and_the_user_a_word(tmp_path: Path, name: str, text: str) -> None:
    save = vd.files.save_mjcf if name.endswith("xml") else vd.files.save_urdf
    with pytest.warns(vd.errors.DataWarning, match="yields over a distance"):
        save(servo(*SOFT), tmp_path / name)
    assert text in (tmp_path / name).read_text("utf-8")


def test_isaac_gets_it_too(tmp_path: Path) -> None:
    law = vd.model.Controller(name="drive", kind="pd", on="arm", rate=1000.0, constants={"kp": 20.0, "kd": 1.0})
    with pytest.warns(vd.errors.DataWarning, match="yields over a distance"):
        vd.files.save_isaac(servo(*SOFT).with_controllers([law]), tmp_path / "servo.py", step=0.005)
    assert "0.6" in (tmp_path / "servo.py").read_text("utf-8")
