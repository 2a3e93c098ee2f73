"""Machines described by points: everything such a file can have, and every fault with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import ModelError, VeridynError
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.write import model_text
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.model.place import Marker
from veridyn.model.single_track import PriorValue, car_machine, prior_of, uncertain, with_estimate, with_exchanged_axles

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


TEXT = """veridyn: 2
name: small car
formulation: single_track
constants: {base: 2.4}
car:
  tyre: magic
  mass: 900
  front: 1.0
  rear: base - 1
  height: {value: 0.5, sigma: 0, upper: 0.8}
  front_stiffness: {value: 15, sigma: 5, upper: 30}
  rear_friction: {value: 1.1}
sensors:
  - {name: gyro, kind: reading, on: yaw_rate, sigma: 0.002, quantum: 0.01}
"""


def test_a_car_of_a_few_lines() -> None:
    car = parse_machine(TEXT, "car.yaml")
    assert (car.name, car.formulation, car.car.tyre) == ("small car", "single_track", "magic")
    assert (car.parameters["mass"], car.parameters["rear"]) == (900.0, 1.4)
    assert prior_of(car, "front_stiffness") == PriorValue(15.0, 5.0, 2.0, 30.0)
    assert prior_of(car, "height") == PriorValue(0.5, 0.0, 0.005, 0.8)
    assert [car.parameters.names[k] for k in car.parameters.select("estimated")] == ["front_stiffness", "rear_friction"]
    assert uncertain(car) == ("front_stiffness",)
    assert [(s.name, s.on, s.quantum) for s in car.sensors] == [("gyro", "yaw_rate", 0.01)]


def test_without_sensors_it_has_the_usual_ones() -> None:
    car = parse_machine("veridyn: 2\ncar: {mass: 900, front: 1.0, rear: 1.4}\n", "kart.yaml")
    assert car.name == "kart" and [s.name for s in car.sensors] == ["yaw_rate", "ay"]


def changed(car: vd.Machine) -> list[vd.Machine]:
    """Cars as a fit, a user and a check leave them."""
    C = np.array([[4.0, 0.3], [0.3, 0.09]])
    return [
        car,
        car.with_parameters({"mass": 1000.0, "drag": 1.0 / 3.0}),
        car.with_uncertainty(Uncertainty(("front_stiffness", "rear_friction"), C)),
        car.with_uncertainty(Uncertainty(("front_stiffness",), [[0.1]])),
        car.with_uncertainty(Uncertainty(("height",), [[0.01]])),
        car.with_parameters(car.parameters.known(["front_stiffness"]).estimated(["steering_offset"])),
        with_estimate(car, "drag", 0.4, 0.05),
        with_exchanged_axles(car),
        car.with_sensors([]),
    ]


@pytest.mark.parametrize("k", range(9))
def test_what_is_written_is_read_back_to_the_bit(k: int, tmp_path: Path) -> None:
    car = changed(parse_machine(TEXT, "car.yaml"))[k]
    vd.save_model(car, tmp_path / "new.yaml")
    assert differences(vd.load_model(tmp_path / "new.yaml"), car) == ()


def test_parameters_of_the_common_section_stand_beside_those_of_the_car() -> None:
    more = "parameters: {known: [rear_friction], values: {mass: 950}, typical: {mass: 700}}\n"
    car = parse_machine(TEXT + more, "car.yaml")
    assert car.parameters["mass"] == 950.0 and uncertain(car) == ("front_stiffness",)
    assert car.parameters.typical[car.parameters.index("mass")] == 700.0
    assert differences(parse_machine(model_text(car), "again"), car) == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mass: 900", "mas: 900", ["line 7", "there is no key 'mas' here", "Did you mean 'mass'", "'mass' is missing"]),
        ("mass: 900", "mass: [900]", ["car 'mass' (line 7): mass is not a number"]),
        ("sigma: 5", "sigma: five", ["car 'front_stiffness' (line 11)", "sigma"]),
        ("sigma: 5", "sigma: -5", ["line 11", "sigma is below zero"]),
        ("front: 1.0", "front: 0.2", ["line 8", "far nearer to one axle"]),
        ("value: 15", "value: 40", ["line 11", "'front_stiffness' is outside its bounds", "2 to 30"]),
        ("tyre: magic", "tyre: tan", ["line 6", "there is no tyre law 'tan'"]),
        ("on: yaw_rate", "on: yawrate", ["line 14", "no reading 'yawrate'", "Did you mean 'yaw_rate'"]),
        ("kind: reading", "kind: gyroscope", ["line 14", "is read by name"]),
        ("quantum: 0.01", "delay: 0.01", ["line 14", "a reading of a car has no delay"]),
        ("single_track", "tree", ["line 3", "has one formulation"]),
        ("sensors:", "bodies: []\nsensors:", ["'bodies' does not belong to a car"]),
        ("sensors:", "parameters: {sigma: {mass: 10}}\nsensors:", ["deviations stand here and with the parameters"]),
        ("sensors:", "parameters: {drifts: {mas: {by: 10, within: 60}}}\nsensors:", ["there is no parameter 'mas'"]),
        ("sensors:", "parameters: {tied: {mass: front}}\nsensors:", ["cannot be tied"]),
        ("sensors:", "parameters: {values: {mas: 10}}\nsensors:", ["there is no parameter 'mas'"]),
    ],
)
def test_faults_of_cars_have_names_and_lines(old: str, new: str, words: list[str]) -> None:
    with pytest.raises(VeridynError) as error:
        parse_machine(TEXT.replace(old, new), "car.yaml")
    for word in words:
        assert word in str(error.value)


def test_a_formulation_without_a_car_and_a_section_of_another_name_are_named() -> None:
    with pytest.raises(ModelError, match="the key 'car' is missing"):
        parse_machine("veridyn: 2\nformulation: single_track\n", "car.yaml")
    with pytest.raises(ModelError, match="there is no key 'vehicle' here"):
        parse_machine("veridyn: 2\nvehicle: {mass: 900, front: 1.0, rear: 1.4}\n", "car.yaml")


def test_drifts_are_read_and_written() -> None:
    car = parse_machine(
        TEXT.replace("sensors:", "parameters: {drifts: {gyro_bias: {by: 0.01, within: 60*5}}}\nsensors:"), "x"
    )
    assert dict(car.parameters.drifts) == {"gyro_bias": Drift(0.01, 300.0)}
    again = parse_machine(model_text(car), "x")
    assert differences(again, car) == () and again.parameters.drifts == car.parameters.drifts
    plain = car.with_parameters(car.parameters.replacing({"mass": 950.0}))
    assert plain.parameters.drifts == car.parameters.drifts and plain.parameters["mass"] == 950.0


def test_a_car_made_in_code_is_written() -> None:
    car = car_machine("small", {"mass": PriorValue(900.0, 20.0), "front": 1.0, "rear": 1.4})
    assert differences(parse_machine(model_text(car), "x"), car) == ()
