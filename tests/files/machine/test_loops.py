"""Loops in model files: read, written back to the last bit, and every fault by name and line."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.machines import delta, linkage, palletizer
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.model.machine import Machine
from veridyn.papers.hexapod.machine import hexapod

HEAD = """veridyn: 2
bodies:
  - {name: a, antecedent: ground, joint: turning}
  - {name: b, antecedent: a, joint: turning, actuated: false, mdh: {d: 1}}
  - {name: c, antecedent: ground, joint: turning, actuated: false, mdh: {d: 1}}
"""
PIN = "{name: pin, kind: turning, a: {body: b, position: [1, 0, 0]}, b: {body: c, position: [1, 0, 0]}, cut: yes}"


def test_read() -> None:
    machine = parse_machine(HEAD + f"joints:\n  - {PIN}\nassembly: {{hold: {{a: pi/4}}, guess: {{b: -pi/4}}}}\n")
    (cut,) = machine.cut_joints
    first, second = machine.ends(cut)
    assert (cut.name, cut.kind, first.body) == ("pin", "turning", "b")
    assert np.array_equal(second.placement.position, [1, 0, 0])
    assert machine.assembly.hold["a"] == np.pi / 4
    assert closed_home(machine) == pytest.approx([np.pi / 4, -np.pi / 4, np.pi / 4])


@pytest.mark.parametrize("machine", [hexapod(), linkage(), delta(), palletizer()], ids=lambda machine: machine.name)
def test_out_and_back(machine: Machine) -> None:
    text = model_text(machine)
    again = parse_machine(text)
    assert again.cut_joints == machine.cut_joints
    assert model_text(again) == text
    assert dict(again.assembly.hold) == dict(machine.assembly.hold)


def test_a_rod_out_and_back() -> None:
    rod = "{name: rod, kind: distance, length: 0.5, a: {body: b, axis: [0, 1, 0]}, b: {body: ground, position: [2, 0, 0]}}"
    machine = parse_machine(HEAD + f"joints:\n  - {rod}\n")
    assert parse_machine(model_text(machine)).cut_joints == machine.cut_joints


CASES = {
    "unknown kind": (
        HEAD + f"joints:\n  - {PIN.replace('kind: turning', 'kind: ball')}\n",
        "joint 'pin' (line 7): 'ball' is no kind of joint.\nKnown: ",
    ),
    "unknown body": (
        HEAD + f"joints:\n  - {PIN.replace('body: c', 'body: d')}\n",
        "joint 'pin' (line 7): there is no body 'd'.\nKnown: a, b, c, ground.",
    ),
    "missing end": (
        HEAD + "joints:\n  - {name: pin, kind: spherical, a: {body: b}}\n",
        "joint 'pin' (line 7): the key 'b' is missing.",
    ),
    "missing body": (
        HEAD + "joints:\n  - {name: pin, kind: spherical, a: {position: [0, 0, 0]}, b: {body: c}}\n",
        "the key 'body' is missing",
    ),
    "no length": (
        HEAD + f"joints:\n  - {PIN.replace('kind: turning', 'kind: distance')}\n",
        "joint 'pin' (line 7): a distance needs a length above zero.",
    ),
    "unknown key": (
        HEAD + f"joints:\n  - {PIN.replace('name: pin', 'name: pin, friction: 1')}\n",
        "there is no key 'friction' here.",
    ),
    "unknown coordinate": (
        HEAD + f"joints:\n  - {PIN}\nassembly: {{hold: {{q: 1}}}}\n",
        "assembly, hold: there is no coordinate 'q'.",
    ),
    "not a number": (
        HEAD + f"joints:\n  - {PIN}\nassembly: {{guess: {{a: 3 deg}}}}\n",
        "assembly, guess (line 8): a: '3 deg' has a unit.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_faults(name: str) -> None:
    text, message = CASES[name]
    with pytest.raises(ModelError) as caught:
        parse_machine(text, "m.yaml")
    assert message in str(caught.value)
