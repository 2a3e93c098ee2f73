"""Machines described by points: everything such a file can have, and every fault with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from veridyn.errors import ModelError
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.model.place import Marker

CRANE = """
veridyn: 2
name: crane
gravity: [0, -9.81]
constants: {L: 2}
points:
  O: {at: [0, 0], fixed: true}
  T: {at: [1, 0]}
  P: {at: [1, -L]}
bodies:
  trolley: {points: {T: [0, 0]}, mass: 10}
  rope: {bar: [T, P], length: L, mass: 0.5}
joints:
  rail: {kind: cylindrical, a: {body: ground, at: [0, 0], axis: [1, 0]}, b: T}
coordinates:
  swing: {of: [T, P], from: [0, -1], start: 0.1}
  x: {a: O, b: T, along: [1, 0]}
elements:
  - {kind: spring, name: buffer, on: x, value: 10, rest: 1}
  - {kind: damper, name: air, between: [O, P], value: 0.2}
loads:
  motor: {kind: drive, on: x}
  wind: {kind: force, on: P, value: [1, 0]}
  twist: {kind: torque, on: rope, value: 0.3}
"""
SPACE = """
veridyn: 2
name: arm
gravity: [0, 0, 0]
points: {O: {at: [0, 0, 0], fixed: true}, P: {at: [1, 0, 0]}}
vectors: {u: {along: [0, 1, 0]}, v: {along: [0, 0, 1]}}
bodies:
  arm:
    points: {O: [0, 0, 0], P: [1, 0, 0]}
    vectors: {u: [0, 1, 0], v: [0, 0, 1]}
    mass: 2
    centre: [0.5, 0, 0]
    inertia: [0.1, 0, 0, 0.2, 0, 0.2]
joints:
  hinge:
    kind: universal
    a: {body: ground, at: [0, 0, 0], axis: [0, 0, 1]}
    b: {body: arm, at: [0, 0, 0], axis: [0, 1, 0]}
coordinates:
  a: {of: [O, P], from: [1, 0, 0], towards: [0, 1, 0]}
  b: {of: u, from: {body: ground, at: [0, 0, 0], axis: [0, 1, 0]}, towards: [0, 0, 1]}
  s: {a: O, b: P, along: [1, 0, 0]}
racks: {rack: {distance: s, angle: a, radius: 0.5, offset: 1}}
loads: {t: {kind: torque, on: arm, value: [0, 0, 1], against: ground}}
"""


def test_a_crane(tmp_path: Path) -> None:
    file = tmp_path / "crane.yaml"
    file.write_text(CRANE, encoding="utf-8")
    crane = mechanism_of(load_model(file))
    assert crane.name == "crane"
    assert crane.coordinates == ("T.x", "T.y", "P.x", "P.y", "swing", "x")
    assert [load.name for load in crane.loads] == ["motor", "wind", "twist"]
    assert crane.bodies[1].points["P"] == (2.0, 0.0)
    system = system_of(crane)
    assert mobility(system, system.guess).degrees_of_freedom == 2


def test_in_space() -> None:
    arm = mechanism_of(parse_machine(SPACE))
    assert arm.dimension == 3
    assert isinstance(arm.joints[0].a, Marker)
    assert arm.added[0].of == ("O", "P")
    assert arm.added[1].of == "u"
    assert arm.racks[0].radius == 0.5
    assert system_of(arm).constraints.m > 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("at: [1, 0]}", "at: [1, 0, 0]}", r"point 'T' \(line 8\): at has the wrong shape"),
        ("mass: 10", "mass: -10", r"body 'trolley' \(line 11\): its inertia breaks a law of physics"),
        ("bar: [T, P]", "bar: [T, Q]", r"(?s)body 'rope' \(line 12\): there is no point 'Q'.*Known: O, T, P"),
        (
            "bar: [T, P], length: L,",
            "bar: [T, P],",
            r"body 'rope' \(line 12\): a bar has two points, a length and a mass",
        ),
        ("kind: cylindrical", "kind: glue", r"joint 'rail' \(line 14\): 'glue' is no kind of joint"),
        ("between: [O, P]", "between: [O, P, T]", r"element 'air' \(line 20\): it acts between two places"),
        ("start: 0.1", "begin: 0.1", r"coordinate 'swing' \(line 16\): there is no key 'begin' here"),
        (
            "motor: {kind: drive, on: x}",
            "motor: {kind: drive, on: y}",
            r"'motor' \(line 22\): there is no added coordinate 'y'",
        ),
        ("name: buffer, on: x, ", "name: buffer, ", r"element 'buffer' \(line 19\): it does not say what it acts on"),
    ],
)
def test_faults_have_names_and_lines(old: str, new: str, message: str) -> None:
    assert old in CRANE
    with pytest.raises(ModelError, match=message):
        parse_machine(CRANE.replace(old, new))
