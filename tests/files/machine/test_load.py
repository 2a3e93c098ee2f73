"""One reader for model files of every kind."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import numpy as np
import pytest
from ruamel.yaml import YAML

from veridyn.errors import FileError, ModelError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.schema import model_schema
from veridyn.files.machine.write import model_text
from veridyn.files.machine.write_parts import differences
from veridyn.files.yaml_reader import EXAMPLES
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.model.elements.element import Element
from veridyn.model.link import LinkCapsule
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.place import Attachment, Marker
from veridyn.model.point_parts import Angle, Damper, Distance, Spring
from veridyn.spatial.rotations import MDH, Placement

TREES = {"linkage": 3, "palletizer": 5, "arm": 6, "car_20": 14}
MECHANISMS = {"fourbar": ("phi", "q1", "B"), "crane": ("x", "swing")}
URDF = """<robot name="one"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def _file(name: str) -> Path:
    return shipped(f"veridyn:{name}.yaml")


@pytest.mark.parametrize("name", TREES)
def test_a_file_of_a_tree(name: str) -> None:
    machine = load_model(_file(name))
    assert machine.formulation == "tree"
    assert machine.n == TREES[name]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_file_in_natural_coordinates(name: str) -> None:
    machine = load_model(_file(name))
    assert machine.formulation == "natural"
    assert machine.coordinates == MECHANISMS[name]


def test_a_urdf(tmp_path: Path) -> None:
    file = tmp_path / "one.urdf"
    file.write_text(URDF)
    machine = load_model(file)
    assert (machine.name, machine.coordinates, machine.formulation) == ("one", ("hinge",), "tree")


def test_faults_have_their_lines() -> None:
    for text in (
        "veridyn: 2\nname: m\npoints: {A: {at: [0, x]}}\nbodies: {b: {points: {A: [0, 0]}}}\n",
        "veridyn: 2\nbodies:\n  - {name: a, joint: hinge}\n",
    ):
        with pytest.raises(ModelError, match=r"line 3"):
            parse_machine(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "veridyn: 3\nbodies: []\n",
            r"m\.yaml, veridyn \(line 1\): this version of the format is unknown\.\nExpected 2, found '3'",
        ),
        (
            "veridyn: 1\nname: old\nbodies:\n  - {name: a, joint: turning}\nloops: []\n",
            r"m\.yaml, veridyn \(line 1\): model files of version 1 are no longer read\.\nExpected 2, found '1'\. "
            r"Write veridyn: 2 and the keys of version 2, which docs/model-file\.md lists: loops are joints with cut: yes",
        ),
        (
            "veridyn: 1\nmechanism: m\npoints: {A: {at: [0, 0]}}\nbodies: {b: {points: {A: [0, 0]}}}\n",
            r"m\.yaml, veridyn \(line 1\): model files of version 1 are no longer read\.\nExpected 2, found '1'\. Write veridyn: 2",
        ),
        ("veridyn: [2]\nbodies: []\n", "found something else"),
        ("kind: observe\nlog: x\n", "this is not a model file"),
        ("bodies:\n  - {name: a, joint: turning}\n", "the key 'veridyn' is missing"),
    ],
)
def test_other_files_are_refused(text: str, words: str) -> None:
    with pytest.raises((FileError, ModelError), match=words):
        parse_machine(text, "m.yaml")


def test_points_of_one_number_are_named() -> None:
    text = _file("fourbar").read_text(encoding="utf-8")
    assert "A: {at: [0, 0]" in text
    with pytest.raises(ModelError, match=r"(?s)point 'B' \(line \d+\): at has the wrong shape"):
        parse_machine(text.replace("A: {at: [0, 0]", "A: {at: [0, ]"))


EVERYTHING = """
veridyn: 2
name: linkage
formulation: tree
gravity: [0, 0, -g]
constants: {g: 9.8, L: 0.2}
bodies:
  - name: crank
    inertia: {mass: 0.8, centre: [L/2, 0, 0], about_centre: [0.001, 0, 0, 0.003, 0, 0.003]}
    frames: {tip: {position: [L, 0, 0]}, side: {mdh: {alpha: pi/2, d: 0.1}}}
  - {name: coupler, label: 2, frames: {tip: {position: [0.5, 0, 0], rpy: [0, 0, 0]}}}
  - {name: rocker, virtual: true}
joints:
  - {name: motor, a: {body: ground, mdh: {alpha: pi/2}}, b: crank, coordinates: q1, actuated: true}
  - {name: pin, kind: turning, a: crank.tip, b: coupler, cut: "no"}
  - {name: ball, kind: spherical, a: coupler.tip, b: {body: rocker, position: [0.4, 0, 0]}, cut: yes}
  - {name: foot, kind: turning, a: {body: ground, position: [0.45, 0, 0], axis: [0, -1, 0]}, b: rocker, coordinates: [q3], ratio: 2}
  - {name: rod, kind: distance, a: crank, b: coupler, length: L}
elements:
  - {kind: coulomb, on: q1, value: 0.1, name: fs1}
  - {kind: spring, between: [{body: crank, at: [0.1, 0, 0]}, {body: ground}], value: 50, rest: 0.3, name: k}
  - {kind: stribeck, on: {q1: 1, pin: -1}, speed: 0.2}
loads:
  - {name: torque, kind: drive, on: q1, value: 2}
  - {name: wind, kind: force, on: {body: coupler, at: [0.1, 0, 0]}, value: [1, 0, 0]}
  - {name: twist, kind: torque, on: crank, value: [0, 0, 1], against: rocker}
sensors:
  encoder: {kind: coordinate, on: q1, sigma: pi/180, quantum: 0.01, rate: 100, turns: true}
  laser: {kind: distance, on: crank, to: {body: rocker, at: [0, 0, 1]}, sigma: 0.001}
  imu: {kind: accelerometer, on: {body: coupler, at: [0, 0, 0], axis: [0, 1, 0], side: [0, 0, 1]}, sigma: 0.1, axes: xz, bias_sigma: 0.2}
parameters:
  known: [fs1]
  tied: {YY2: XX2}
  values: {M2: 1.5}
  sigma: {fs1: 0.01, M2: 0.2}
assembly: {hold: {q1: 1}, guess: {q3: 0.5}}
prescribed: [q1]
"""


def test_every_key_means_what_it_says() -> None:
    machine = parse_machine(EVERYTHING)
    crank, coupler, rocker = machine.links
    assert dict(crank.frames) == {"tip": Placement(None, [0.2, 0, 0]), "side": MDH(alpha=np.pi / 2, d=0.1)}
    assert crank.ten[9] == 0.8 and coupler.label == "2" and not rocker.real
    motor, pin, ball, foot, rod = machine.joints
    assert motor.a == Attachment("ground", MDH(alpha=np.pi / 2)) and motor.coordinates == ("q1",) and motor.actuated
    assert (pin.a, pin.b, pin.cut, pin.coordinate_names) == ("crank.tip", "coupler", "no", ("pin",))
    assert (ball.kind, ball.cut, ball.b) == ("spherical", "yes", Attachment("rocker", Placement(None, [0.4, 0, 0])))
    assert foot.ratio == 2.0 and np.array_equal(machine.attachment(foot.a).placement.rotation[:, 2], [0, -1, 0])
    assert (rod.kind, rod.length) == ("distance", 0.2)
    assert [joint.name for joint in machine.cut_joints] == ["ball", "rod"]
    assert machine.loads == (
        Drive("torque", "q1", 2.0),
        Force("wind", Marker("coupler", (0.1, 0, 0)), (1, 0, 0)),
        Torque("twist", "crank", (0, 0, 1), "rocker"),
    )
    encoder, laser, imu = machine.sensors
    assert (encoder.quantum, encoder.rate, encoder.turns) == (0.01, 100.0, True)
    assert laser.to == Marker("rocker", (0, 0, 1)) and (imu.axes, imu.bias_sigma) == ("xz", 0.2)
    strut = machine.elements[1]
    assert isinstance(strut, Element) and strut.between == (Marker("crank", (0.1, 0, 0)), Marker("ground", (0, 0, 0)))
    assert dict(strut.constants) == {"rest": 0.3}
    p = machine.parameters
    assert (p["M2"], p["fs1"], p.states[p.index("fs1")], p.ties["YY2"].to) == (1.5, 0.1, "known", "XX2")
    assert machine.uncertainty is not None and machine.uncertainty.names == ("fs1", "M2")
    np.testing.assert_allclose(machine.uncertainty.sigma, [0.01, 0.2])
    assert machine.uncertainty is machine.uncertainty
    assert (dict(machine.assembly.hold), machine.prescribed) == ({"q1": 1.0}, ("q1",))
    assert machine.gravity.tolist() == [0, 0, -9.8]


def test_a_joint_may_stand_within_the_body_that_it_carries() -> None:
    """The table of a serial arm, and a joint between two frames that closes a loop."""
    machine = parse_machine("""
veridyn: 2
bodies:
  1: {antecedent: 0, joint: turning}
  2: {antecedent: 1, sigma: 0, mu: 0, mdh: {d: 1}}
  3: {antecedent: 0, joint: turning, actuated: false, mdh: {d: 1}}
joints:
  pin: {a: {body: 2, position: [1, 0, 0]}, b: {body: 3, position: [1, 0, 0]}, cut: yes}
""")
    assert machine.coordinates == ("q1", "q2", "q3") and machine.actuated == (True, False, False)
    assert [(joint.name, joint.kind) for joint in machine.cut_joints] == [("pin", "turning")]


def test_a_free_base_and_one_on_six_joints() -> None:
    text = "veridyn: 2\nbase: {}\nbodies:\n  - {{name: trunk}}\n  - {{name: leg, antecedent: trunk, joint: turning}}\n"
    free = parse_machine(text.format("free"))
    assert free.base == "free" and free.joints[0].kind == "floating"
    assert parse_machine(text.format("six_joints")).n == 7


PLANAR = """
veridyn: 2
name: crane
points: {O: {at: [0, 0], fixed: true}, T: {at: [0.5, 0]}, L: {at: [0.5, -6]}}
bodies:
  trolley: {points: {T: [0, 0]}, mass: 80}
  rope: {bar: [T, L], length: 6, mass: 3}
joints:
  rail: {kind: cylindrical, a: {body: ground, at: [0, 0], axis: [1, 0]}, b: T}
coordinates:
  x: {a: O, b: T, along: [1, 0]}
  swing: {of: [T, L], from: [0, -1], start: 0}
elements:
  - {kind: damper, on: x, value: 40, name: rail_friction}
  - {kind: spring, between: [O, T], value: 2, rest: 0.1, name: k}
  - {kind: maxwell, on: x, value: 3, time: 1, name: creep}
loads: [{name: motor, kind: drive, on: x}, {name: push, kind: force, on: L, value: [1, 0]}, {name: twist, kind: torque, on: rope, value: 2}]
sensors: {tilt: {kind: coordinate, on: swing, sigma: 0.01}}
"""


def test_points_and_bars() -> None:
    text = PLANAR.replace("  - {kind: maxwell, on: x, value: 3, time: 1, name: creep}\n", "")
    machine = parse_machine(text)
    assert (machine.formulation, machine.dimension, machine.coordinates) == ("natural", 2, ("x", "swing"))
    m = mechanism_of(machine)
    assert [type(a) for a in m.added] == [Distance, Angle]
    assert m.dampers == (Damper("rail_friction", "x", 40.0),) and m.springs == (Spring("k", ("O", "T"), 2.0, 0.1),)
    assert m.gravity == (0.0, -9.81)
    assert [load.name for load in m.loads] == ["motor", "push", "twist"]
    assert machine.actuated_coordinates == ("x",)


def test_formulation_is_a_choice_of_the_file() -> None:
    """Elements with states of their own belong to trees: the same description by points, taken as a tree."""
    with pytest.raises(
        ModelError, match=r"element 'creep' \(line 16\): natural coordinates have no element of kind maxwell"
    ):
        parse_machine(PLANAR)
    machine = parse_machine(PLANAR.replace("name: crane", "name: crane\nformulation: tree"))
    assert machine.formulation == "tree" and "creep" in machine.parameters.names


def fault_of(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        parse_machine(text, "bad.yaml")
    assert len(caught.value.faults) == 1, str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a: crank.tip", "a: crank.tipp", r"joint 'pin' (line 15): the body 'crank' has no frame 'tipp'."),
        ("a: crank.tip", "a: cranc", r"joint 'pin' (line 15): there is no body 'cranc'."),
        ('cut: "no"', "cut: maybe", r"joint 'pin' (line 15): cut cannot be this."),
        ("kind: spherical", "kind: sphere", r"joint 'ball' (line 16): 'sphere' is no kind of joint."),
        ("ratio: 2", "ratio: 0", r"joint 'foot' (line 17): its ratio must be a number other than zero."),
        ("a: crank, b: coupler, length", "b: coupler, length", r"joint 'rod' (line 18): the key 'a' is missing."),
        ("side: {mdh", "s.de: {mdh", r"a frame cannot be called 's.de'."),
        ("kind: drive, on: q1", "kind: drive, on: q9", r"load 'torque' (line 24): there is no coordinate 'q9'."),
        ("kind: force", "kind: push", r"load 'wind' (line 25): 'push' is no kind of load."),
        (
            "laser: {kind: distance,",
            "laser: {two: 1, kind: distance,",
            r"sensor 'laser' (line 29): there is no key 'two' here.",
        ),
        ("axes: xz", "axes: xx", r"sensor 'imu' (line 30): its axes cannot be read."),
        ("on: q1, value: 0.1", "on: q8, value: 0.1", r"element 'fs1' (line 20): there is no coordinate 'q8'."),
        ("{body: ground}]", "{body: ground}, {body: ground}]", r"element 'k' (line 21): it acts between two places."),
        ("M2: 0.2}", "M9: 0.2}", r"parameters (line 35): there is no parameter 'M9'."),
        ("M2: 0.2}", "M2: -1}", r"parameters (line 35): the standard deviation of M2 is below zero."),
        ("formulation: tree", "formulation: trees", r"formulation (line 4): 'trees' is no formulation."),
        ("prescribed: [q1]", "prescribed: [q7]", "there is no coordinate 'q7' to prescribe."),
        (
            "formulation: tree",
            "vectors: {u: {along: [0, 0, 1]}}",
            r"vectors (line 4): 'vectors' belongs to a description by points.",
        ),
    ],
)
def test_one_fault(old: str, new: str, words: str) -> None:
    assert EVERYTHING.count(old) >= 1
    assert words in fault_of(EVERYTHING.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bar: [T, L]", "bar: [T, M]", "body 'rope' (line 7)"),
        (
            "swing: {of: [T, L], from: [0, -1], start: 0}",
            "swing: {of: [T, L], a: T}",
            "it is neither an angle nor a distance.",
        ),
        ("name: crane", "name: crane\ndimension: 3", "dimension (line 4): the points have another dimension."),
        ("name: crane", "name: crane\nbase: free", "base (line 4): a machine described by points has no key 'base'."),
        (
            "kind: maxwell, on: x, value: 3, time: 1, name: creep",
            "kind: coulomb, between: [O, T], value: 3, name: fs",
            "element 'fs' (line 16): an element of kind coulomb does not act between points.",
        ),
        ("on: L, value: [1, 0]", "on: L, value: [1, 0, 0]", "load 'push' (line 16): value has the wrong shape."),
    ],
)
def test_one_fault_of_points(old: str, new: str, words: str) -> None:
    text = PLANAR.replace("name: crane", "name: crane\nformulation: tree") if "maxwell" not in old else PLANAR
    text = (
        PLANAR.replace("  - {kind: maxwell, on: x, value: 3, time: 1, name: creep}\n", "")
        if "maxwell" not in old
        else text
    )
    assert words in fault_of(text.replace(old, new, 1))


def test_all_faults_at_once() -> None:
    text = EVERYTHING.replace("a: crank.tip", "a: crank.tipp").replace("on: q1, value: 0.1", "on: q8, value: 0.1")
    text = text.replace("axes: xz", "axes: xx").replace("mass: 0.8", "mass: 0.8*").replace("[M2", "[M9")
    with pytest.raises(ModelError) as caught:
        parse_machine(text, "bad.yaml")
    assert [f.line for f in caught.value.faults] == [9, 15, 20, 30]


def test_a_covariance_and_its_faults() -> None:
    base = "veridyn: 2\nbodies:\n  - {name: a, joint: turning, inertia: {M: 1, ZZ: 1, XX: 1, YY: 1}}\nparameters:\n  "
    machine = parse_machine(base + "covariance: {names: [M_a, ZZ_a], matrix: [[4, 1], [1, 9]]}\n")
    assert machine.uncertainty is not None and machine.uncertainty.covariance.tolist() == [[4, 1], [1, 9]]
    for text, words in (
        (
            "covariance: {names: [M_a, ZZ_a], matrix: [[4, 10], [10, 9]]}",
            r"parameters, covariance (line 5): the covariance is not positive",
        ),
        ("covariance: {names: [M_a], matrix: [[4, 10], [10, 9]]}", "matrix has the wrong shape"),
        ("covariance: {names: [M_b], matrix: [[4]]}", "there is no parameter 'M_b'"),
        ("covariance: {names: [M_a], matrix: [[4]]}\n  sigma: {M_a: 1}", "'sigma' and 'covariance' say the same thing"),
    ):
        assert words in fault_of(base + text + "\n")


def test_drifts_and_their_faults() -> None:
    base = "veridyn: 2\nbodies:\n  - {name: a, joint: turning, inertia: {M: 1, ZZ: 1, XX: 1, YY: 1}}\nparameters:\n  "
    machine = parse_machine(base + "drifts: {M_a: {by: 0.2, within: 60*30}}\n")
    drift = machine.parameters.drifts["M_a"]
    assert (drift.by, drift.within) == (0.2, 1800.0) and drift.density == pytest.approx(0.04 / 1800.0)
    for text, words in (
        ("drifts: {M_b: {by: 1, within: 60}}", "parameters (line 5): there is no parameter 'M_b'"),
        ("drifts: {M_a: {by: 1}}", "within"),
        (
            "drifts: {M_a: {by: 1, within: 0}}",
            "parameters, drifts (line 5): 'within' of M_a is not above zero.\nFound 0",
        ),
        ("drifts: {M_a: {by: -1, within: 60}}", "'by' of M_a is not above zero"),
    ):
        assert words.lower() in fault_of(base + text + "\n").lower()


TYRE = """
veridyn: 2
base: free
bodies:
  - {name: wheel, inertia: {XX: 0.7, YY: 1.4, ZZ: 0.7, M: 30}}
elements:
  - {kind: linear_tyre, wheel: WHEEL, value: 1, UNLOADED_RADIUS: 0.368, VERTICAL_STIFFNESS: 82.7e3, FNOMIN: 4000,
     C_KAPPA: 55.4e3, C_ALPHA: 55.5e3, SIGMA_KAPPA: 0.5, SIGMA_ALPHA: 0.41}
"""


def test_a_tyre_has_a_wheel() -> None:
    machine = parse_machine(TYRE.replace("WHEEL", "{body: wheel, at: [0, 0.1, 0], axis: [0, 1, 0]}"))
    (element,) = machine.wheels
    assert element.wheel == Marker("wheel", (0.0, 0.1, 0.0), (0.0, 1.0, 0.0))
    assert element.constants["C_ALPHA"] == 55.5e3 and element.parameter_name == "tyre_wheel"
    with pytest.raises(ModelError, match=r"element number 1 \(line 7\): it needs a wheel"):
        parse_machine(TYRE.replace("WHEEL", "wheel"))
    with pytest.raises(ModelError, match=r"element 'tyre_wheel' \(line 7\): its axis is not given by three numbers"):
        parse_machine(TYRE.replace("WHEEL", "{body: wheel}"))
    with pytest.raises(ModelError, match=r"there is no body 'weel'[\s\S]*Did you mean 'wheel'"):
        parse_machine(TYRE.replace("WHEEL", "{body: weel, axis: [0, 1, 0]}"))


OWN_LAWS = """
veridyn: 2
name: wrist
constants: {stretch: 0.2, c: 7}
bodies:
  - {name: arm, antecedent: ground, joint: turning, coordinate: q1}
  - {name: hand, antecedent: arm, joint: turning, coordinate: q2, mdh: {d: 0.3}}
elements:
  - {kind: law, on: q1, formula: (c - stretch)**3*cos(q2) + 0.1*rate(q2), name: k3, unit: N*m/rad^3, value: 2}
  - {kind: law, on: {q1: 1, q2: -1}, formula: "v*signal(heat)", name: warm}
  - kind: table
    on: q2
    name: cable
    typical: 3
    table: {at: [-1, 0, pi/2], values: [2*stretch, 0, 1], of: c + q1, shape: linear, outside: extend}
"""


def test_laws_of_ones_own_are_read_written_and_read_again() -> None:
    """Constants of the file become numbers, but c is what the element acts on."""
    machine = parse_machine(OWN_LAWS, "wrist.yaml")
    k3, warm, cable = machine.elements
    assert k3.formula == "(c - 0.2) ** 3 * cos(q2) + 0.1 * rate(q2)" and warm.formula == "v*signal(heat)"
    assert cable.table is not None and cable.table.values == (0.4, 0.0, 1.0) and cable.table.of == "c + q1"
    assert machine.parameters.units[-3:] == ("N*m/rad^3", "N*m", "N*m") and machine.signals == ("heat",)
    text = model_text(machine)
    assert differences(machine, parse_machine(text, "again.yaml")) == ()
    schema = jsonschema.Draft202012Validator(model_schema())
    for one in (OWN_LAWS, text):
        assert [e.message for e in schema.iter_errors(YAML(typ="safe").load(one))] == []


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"v*signal(heat)"', "v*__import__('os')", 10, "element 'warm'.*tries to run code"),
        ('"v*signal(heat)"', "v*heat", 10, r"names 'heat', which is no coordinate.*signal\(heat\)"),
        ('formula: "v*signal(heat)", ', "", 10, "its law is a formula, and none is given"),
        ("kind: law, on: q1", "kind: spring, on: q1", 9, "an element of kind spring has no formula.*kind: law"),
        ("at: [-1, 0, pi/2]", "at: [1, 0, pi/2]", 15, "places of its table do not grow.*1 and then 0"),
        ("values: [2*stretch, 0, 1], ", "", 15, "the key 'values' is missing"),
        ("shape: linear", "shape: steps", 15, "no shape 'steps'.*smooth or linear"),
        ("(c - stretch)**3*cos(q2)", "c/(stretch - 0.2)", 9, "element 'k3'.*divides by zero"),
        ("of: c + q1", "of: c + q3", 11, "names 'q3', which is no coordinate.*q"),
    ],
)
def test_faults_of_laws_of_ones_own_have_their_line(old: str, new: str, line: int, words: str) -> None:
    assert old in OWN_LAWS
    with pytest.raises(ModelError, match=f"(?s){words}") as caught:
        parse_machine(OWN_LAWS.replace(old, new), "wrist.yaml")
    assert [fault.line for fault in caught.value.faults] == [line]


CAPSULES = """
veridyn: 2
constants: {L: 0.4}
bodies:
  - name: arm
    antecedent: ground
    joint: turning
    capsules: [{start: [0, 0, 0], end: [L, 0, 0], radius: L/8}, {start: [L, 0, 0.1], radius: 0.07}]
  - {name: rod, antecedent: arm, joint: turning}
"""


def test_capsules_are_read_written_and_read_again() -> None:
    """An end that is left out is the start; a body on six joints keeps them; the schema takes what is written."""
    machine = parse_machine(CAPSULES)
    rod = LinkCapsule((0.0, 0.0, 0.0), (0.4, 0.0, 0.0), 0.05)
    assert machine.links[0].capsules == (rod, LinkCapsule((0.4, 0.0, 0.1), (0.4, 0.0, 0.1), 0.07))
    assert machine.links[1].capsules == () and machine.with_parameters({"M_arm": 2.0}).links[0].capsules[0] == rod
    text = model_text(machine)
    assert differences(machine, parse_machine(text)) == ()
    schema = jsonschema.Draft202012Validator(model_schema())
    assert not list(schema.iter_errors(YAML(typ="safe").load(text)))
    six = parse_machine(
        CAPSULES.replace("constants:", "base: six_joints\nconstants:").replace(
            "antecedent: ground\n    joint: turning", "joint: fixed", 1
        )
    )
    assert {k.name: len(k.capsules) for k in six.links if k.capsules} == {"arm": 2}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("radius: 0.07", "radius: 0", r"body 'arm', capsule 2 (line 8): a radius must be above zero."),
        (", radius: 0.07", "", r"body 'arm', capsule 2 (line 8): the key 'radius' is missing."),
        ("{start: [0, 0, 0], end", "{end", r"body 'arm', capsule 1 (line 8): the key 'start' is missing."),
        ("end: [L, 0, 0]", "end: [L, 0]", r"body 'arm', capsule 1 (line 8): end has the wrong shape."),
        ("radius: 0.07", "raduis: 0.07, radius: 1", r"body 'arm', capsule 2 (line 8): there is no key 'raduis' here."),
        ("capsules: [{start", "capsules: 3 #", r"body 'arm' (line 8): capsules must be a list."),
    ],
)
def test_faults_of_capsules_have_their_line(old: str, new: str, words: str) -> None:
    assert words in fault_of(CAPSULES.replace(old, new, 1))


ARM = """\
veridyn: 2
bodies:
  - {name: upper, joint: turning, coordinate: joint1, frames: {tip: {position: [0.5, 0, 0]}}}
  - {name: lower, antecedent: upper, joint: turning}
"""


@pytest.mark.parametrize("word", sorted(EXAMPLES))
def test_a_word_where_a_mapping_belongs_is_answered_with_an_example_of_the_part(word: str) -> None:
    """`elements: [inertia]` and its like, in every section that is a list."""
    section = {"body": "bodies"}.get(word, f"{word}s")
    text = ARM
    if word in ("point", "vector", "coordinate", "rack"):
        text += "points: {A: {at: [0, 0], fixed: true}, B: {at: [1, 0]}}\n" if word != "point" else ""
    text = f"veridyn: 2\n{section}: [inertia]\n" if word == "body" else f"{text}{section}: [inertia]\n"
    with pytest.raises(ModelError) as caught:
        parse_machine(text, "m.yaml")
    article = "an" if word == "element" else "a"
    said = f"{word} number 1 (line {text.count(chr(10))}): {article} {word} is a mapping, such as {EXAMPLES[word]}; "
    assert said + "found the word 'inertia'." in str(caught.value)


@pytest.mark.parametrize(
    ("section", "word"), [("elements", "element"), ("loads", "load"), ("sensors", "sensor"), ("bodies", "body")]
)
def test_the_examples_are_read(section: str, word: str) -> None:
    own = f"{section}:\n  - {EXAMPLES[word]}\n"
    machine = parse_machine("veridyn: 2\n" + own if word == "body" else ARM + own, "m.yaml")
    assert len(machine.links if word == "body" else getattr(machine, section)) == 1


def test_the_examples_of_points_are_read() -> None:
    text = f"veridyn: 2\npoints: [{EXAMPLES['point'].replace('}', ', fixed: true}')}, {{name: B, at: [1, 0]}}]\n"
    text += "bodies: {rod: {bar: [A, B], length: 1, mass: 1}}\n" + f"coordinates: [{EXAMPLES['coordinate']}]\n"
    assert mechanism_of(parse_machine(text, "m.yaml")) is not None
