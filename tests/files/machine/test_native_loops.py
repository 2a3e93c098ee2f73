"""Loops in model files: read, written back to the last bit, and every fault by name and line."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.native import parse_model
from veridyn.files.machine.write import model_text
from veridyn.machines.parallel import delta, linkage, palletizer
from veridyn.mechanics.loops.closure import closed_home
from veridyn.model.machine import Machine
from veridyn.papers.hexapod.machine import hexapod

HEAD = """veridyn: 1
bodies:
  - {name: a, antecedent: ground, joint: turning}
  - {name: b, antecedent: a, joint: turning, actuated: false, mdh: {d: 1}}
  - {name: c, antecedent: ground, joint: turning, actuated: false, mdh: {d: 1}}
"""
PIN = "{name: pin, joint: turning, first: {body: b, position: [1, 0, 0]}, second: {body: c, position: [1, 0, 0]}}"


def test_read() -> None:
    machine = parse_model(HEAD + f"loops:\n  - {PIN}\nassembly: {{hold: {{a: pi/4}}, guess: {{b: -pi/4}}}}\n")
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
    rod = "{name: rod, joint: distance, length: 0.5, first: {body: b, axis: [0, 1, 0]}, second: {body: ground, position: [2, 0, 0]}}"
    machine = parse_model(HEAD + f"loops:\n  - {rod}\n")
    assert parse_machine(model_text(machine)).cut_joints == machine.cut_joints


CASES = {
    "unknown kind": (
        HEAD + f"loops:\n  - {PIN.replace('joint: turning', 'joint: ball')}\n",
        "loop 'pin' (line 7): 'ball' is no kind of cut joint.\nKnown: spherical, turning,",
    ),
    "unknown body": (
        HEAD + f"loops:\n  - {PIN.replace('body: c', 'body: d')}\n",
        "loop 'pin' (line 7): there is no body 'd'.\nKnown: a, b, c, ground.",
    ),
    "missing end": (
        HEAD + "loops:\n  - {name: pin, joint: spherical, first: {body: b}}\n",
        "loop 'pin' (line 7): the key 'second' is missing.",
    ),
    "missing body": (
        HEAD + "loops:\n  - {name: pin, joint: spherical, first: {position: [0, 0, 0]}, second: {body: c}}\n",
        "the key 'body' is missing",
    ),
    "no length": (
        HEAD + f"loops:\n  - {PIN.replace('joint: turning', 'joint: distance')}\n",
        "loop 'pin' (line 7): a distance needs a length above zero.",
    ),
    "unknown key": (
        HEAD + f"loops:\n  - {PIN.replace('name: pin', 'name: pin, friction: 1')}\n",
        "there is no key 'friction' here.",
    ),
    "unknown coordinate": (
        HEAD + f"loops:\n  - {PIN}\nassembly: {{hold: {{q: 1}}}}\n",
        "assembly, hold: there is no coordinate 'q'.",
    ),
    "not a number": (
        HEAD + f"loops:\n  - {PIN}\nassembly: {{guess: {{a: 3 deg}}}}\n",
        "assembly, guess (line 8): a: '3 deg' has a unit.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_faults(name: str) -> None:
    text, message = CASES[name]
    with pytest.raises(ModelError) as caught:
        parse_model(text, "m.yaml")
    assert message in str(caught.value)
