"""Actuators for Isaac Lab: the file runs as Python, and its numbers are those of the machine. Friction that yields, written into files of
simulators whose friction does not."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError, DataWarning, FileError, ModelError
from veridyn.files.machine.joint_laws import save_isaac, with_rigid_friction
from veridyn.files.machine.load import load_model
from veridyn.model.controller import Controller
from veridyn.model.elements.element import coulomb, damper, motor_inertia, spring
from veridyn.model.machine import Machine


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of Isaac Lab, which needs a GPU of its own: classes that keep what they are given."""
    module = ModuleType("isaaclab.actuators")
    for name in ("DelayedPDActuatorCfg", "IdealPDActuatorCfg", "ImplicitActuatorCfg"):
        setattr(module, name, lambda _name=name, **given: {"class": _name, **given})
    monkeypatch.setitem(sys.modules, "isaaclab", ModuleType("isaaclab"))
    monkeypatch.setitem(sys.modules, "isaaclab.actuators", module)


def run(file: Path) -> dict[str, Any]:
    return runpy.run_path(str(file))


def driven() -> Machine:
    """The two-joint arm with a delayed servo, a plain one, armature, dry friction and damping."""
    arm = load_model("veridyn:arm.yaml")
    a, b = arm.coordinates[:2]
    kept = arm.without_elements([e.parameter_name for e in arm.elements])
    machine = kept.with_elements(
        [motor_inertia(a, 0.011), motor_inertia(b, 0.041), coulomb(a, 0.15), coulomb(b, 0.15), damper(b, 0.4)]
    )
    laws = [
        Controller(name="one", kind="pd", on=a, rate=200.0, constants={"kp": 20.0, "kd": 1.5, "command_delay": 0.0072}),
        Controller(name="two", kind="pd", on=b, rate=200.0, constants={"kp": 25.0, "kd": 0.5, "limit": 45.0}),
    ]
    return machine.with_controllers(laws)


@pytest.mark.usefixtures("lab")
def test_numbers_are_those_of_the_machine(tmp_path: Path) -> None:
    machine = driven()
    a, b = machine.coordinates[:2]
    save_isaac(machine, tmp_path / "actuators.py", step=0.005)
    made = run(tmp_path / "actuators.py")["ACTUATORS"]
    late, plain = made["delayed_servos"], made["servos"]
    assert late["class"] == "DelayedPDActuatorCfg" and late["joint_names_expr"] == [a]
    assert (late["stiffness"], late["damping"], late["armature"], late["friction"]) == (20.0, 1.5, 0.011, 0.15)
    assert (late["min_delay"], late["max_delay"]) == (1, 2) and late["dynamic_friction"] == 0.15
    assert plain["class"] == "IdealPDActuatorCfg" and plain["joint_names_expr"] == [b]
    assert (plain["effort_limit"], plain["viscous_friction"], plain["armature"]) == (45.0, 0.4, 0.041)
    with pytest.raises(FileError):
        save_isaac(machine, tmp_path / "actuators.py")


@pytest.mark.usefixtures("lab")
def test_ranges_hold_nine_of_ten_draws(tmp_path: Path) -> None:
    """Uniform draws of one armature between .03 and .05: its range is .031 to .049, and nothing else has one."""
    machine = driven()
    p, b = machine.parameters, machine.coordinates[1]
    name = next(e.parameter_name for e in machine.elements if e.kind == "inertia" and b in e.on)
    draws = np.tile(p.values, (1001, 1))
    draws[:, p.index(name)] = np.linspace(0.03, 0.05, 1001)
    save_isaac(machine, tmp_path / "actuators.py", draws=draws)
    found = run(tmp_path / "actuators.py")["RANGES"]
    assert set(found) == {"armature"} and set(found["armature"]) == {b}
    np.testing.assert_allclose(found["armature"][b], (0.031, 0.049), rtol=1e-12)


def test_what_has_no_place_is_named(tmp_path: Path) -> None:
    machine = driven()
    a = machine.coordinates[0]
    pid = Controller(name="three", kind="pid", on=a, rate=100.0, constants={"kp": 1.0, "ki": 0.1})
    more = machine.with_elements([spring(a, 3.0)]).with_controllers([pid])
    with pytest.warns(DataWarning) as said:
        save_isaac(more, tmp_path / "a.py")
    words = " ".join(str(w.message) for w in said)
    assert "springs" in words and "three (pid)" in words
    first, second = machine.controllers
    gears = machine.with_controllers([replace(first, constants={**first.constants, "load_friction": 0.1}), second])
    with pytest.warns(DataWarning, match="no place for friction that grows with load, left out: one"):
        save_isaac(gears, tmp_path / "b.py")


def test_bad_values_are_refused(tmp_path: Path) -> None:
    machine = driven()
    p = machine.parameters
    values = p.values.copy()
    values[p.index(machine.elements[0].parameter_name)] = -0.1
    with pytest.raises(ModelError, match="armature is below zero"):
        save_isaac(machine.with_parameters(values), tmp_path / "a.py")
    with pytest.raises(DataError, match="above zero"):
        save_isaac(machine, tmp_path / "a.py", step=0.0)
    assert not (tmp_path / "a.py").exists()


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
