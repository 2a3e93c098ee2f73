"""Model files: what they mean, that they come back as they went, and that every fault is named with its line."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from ruamel.yaml import YAML

from strangers.random_trees import random_inertia, random_open_machine
from veridyn.errors import FileError, ModelError, VeridynError
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.schema import model_schema
from veridyn.files.machine.write import model_text, save_model
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.tree.elsewhere import on_six_joints
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import (
    Element,
    Marker,
    coulomb,
    damper,
    drag,
    drive_gain,
    motor_inertia,
    offset,
    spring,
)
from veridyn.model.flexible import Flexible, flexible_joints
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.model.parameters import Tie
from veridyn.spatial.inertia import broken_law, from_centre
from veridyn.spatial.rotations import MDH, Placement, rpy

CARRIED = """
veridyn: 2
name: arm
bodies:
  - name: upper
    joint: turning
    flexible: {stiffness: 4e4, damping: 12, inertia: 0.01*100**2}
    inertia: {mass: 10, centre: [0.2, 0, 0], about_centre: {XX: 0.1, YY: 0.2, ZZ: 0.2}}
  - name: lower
    antecedent: upper
    joint: sliding
    mdh: {alpha: pi/2}
    flexible: {stiffness: unknown}
elements:
  - {kind: coulomb, on: upper_motor, value: 3}
sensors:
  - {name: motor, kind: coordinate, on: upper_motor, sigma: 1e-5}
"""
BETWEEN = """
veridyn: 2
name: arm
bodies:
  - name: upper
    inertia: {mass: 10, centre: [0.2, 0, 0], about_centre: {XX: 0.1, YY: 0.2, ZZ: 0.2}}
joints:
  - {name: hip, a: ground, b: upper, flexible: {stiffness: 4e4, inertia: 2}}
"""


@pytest.mark.parametrize("text", [CARRIED, BETWEEN])
def test_read_and_written_as_one_line(text: str):
    machine = parse_machine(text, "arm.yaml")
    written = model_text(machine)
    again = parse_machine(written, "again.yaml")
    assert differences(machine, again) == ()
    assert "flexible: {stiffness: 40000.0" in written
    assert "_motor\n" not in written
    schema = jsonschema.Draft202012Validator(model_schema())
    assert [e.message for e in schema.iter_errors(YAML(typ="safe").load(written))] == []


def test_link_and_motor_sides():
    machine = parse_machine(CARRIED, "arm.yaml")
    assert machine.coordinates == ("upper", "lower", "upper_motor", "lower_motor")
    assert machine.actuated_coordinates == ("upper_motor", "lower_motor")
    assert flexible_joints(machine)["upper"] == Flexible(stiffness=4e4, damping=12.0, inertia=100.0)
    assert machine.parameters.missing()[-2:] == ("stiffness_lower", "Ia_lower_motor")
    units = dict(zip(machine.parameters.names, machine.parameters.units, strict=True))
    assert (units["stiffness_upper"], units["stiffness_lower"]) == ("N*m/rad", "N/m")
    assert parse_machine(BETWEEN, "arm.yaml").actuated_coordinates == ("hip_motor",)


def test_what_one_line_cannot_hold_is_written_out():
    """Elements added later stand behind; an estimate of a negative damping is kept, by the parts that it belongs to."""
    machine = parse_machine(CARRIED, "arm.yaml").with_elements([coulomb("lower_motor", 1.0)])
    assert differences(machine, parse_machine(model_text(machine), "again.yaml")) == ()
    odd = machine.with_parameters({"damping_upper": -1.0})
    written = model_text(odd)
    assert "name: upper_motor" in written
    assert differences(odd, parse_machine(written, "again.yaml")) == ()


def test_backlash_and_hysteresis_stay_one_line():
    more = "damping: 12, backlash: 1e-3, hysteresis: 20, hysteresis_deflection: 2e-4"
    machine = parse_machine(CARRIED.replace("damping: 12", more, 1), "arm.yaml")
    assert flexible_joints(machine)["upper"].backlash == 1e-3
    written = model_text(machine)
    assert "backlash: 0.001" in written and "hysteresis: 20" in written and "name: upper_motor" not in written
    assert differences(machine, parse_machine(written, "again.yaml")) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("damping: 12", "damping: 12, backlash: unknown", "backlash"),
        ("damping: 12", "damping: 12, hysteresis: 2", "hysteresis_deflection"),
        ("joint: sliding", "joint: fixed", r"body 'lower' \(line 13\): a joint of this kind cannot be flexible"),
        ("stiffness: 4e4", "stiffness: -4e4", r"flexible \(line 7\): its stiffness cannot be this"),
        ("stiffness: 4e4", "stifness: 4e4", r"Did you mean 'stiffness'"),
        ("damping: 12", "inertia: 0", "'inertia'|above zero"),
        ("    inertia: {mass", "    actuated: false\n    inertia: {mass", "a flexible joint has a motor"),
        ("kind: coulomb, on: upper_motor", "kind: inertia, on: upper", "Write on: upper_motor"),
        ("on: upper_motor, value", "on: uper_motor, value", "Did you mean 'upper_motor'"),
    ],
)
def test_faults_name_the_line(old: str, new: str, message: str):
    assert old in CARRIED
    with pytest.raises(ModelError, match=message):
        parse_machine(CARRIED.replace(old, new, 1), "arm.yaml")


HEAD = "veridyn: 2\n"
ONE = HEAD + "bodies:\n  - {name: a, antecedent: ground, joint: turning}\n"


def same_bits(a: object, b: object) -> bool:
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return x.shape == y.shape and np.array_equal(x, y, equal_nan=True) and np.array_equal(np.signbit(x), np.signbit(y))


def assert_same(a: Machine, b: Machine) -> None:
    """Every field of two machines is equal, numbers to the last bit."""
    assert (a.name, a.base, tree_of(a).bodies) == (b.name, b.base, tree_of(b).bodies)
    assert same_bits(a.gravity, b.gravity)
    assert len(a.elements) == len(b.elements)
    for e, f in zip(a.elements, b.elements, strict=True):
        assert (e.kind, e.name, e.signal, e.unit) == (f.kind, f.name, f.signal, f.unit)
        assert list(e.on.items()) == list(f.on.items())
        assert same_bits(e.typical, f.typical)  # its value is that of the parameter, below
    p, q = a.parameters, b.parameters
    assert (p.names, p.units, p.states, dict(p.ties)) == (q.names, q.units, q.states, dict(q.ties))
    assert same_bits(p.values, q.values)
    assert same_bits(p.typical, q.typical)
    assert (a.transmission is None) == (b.transmission is None)
    if a.transmission is not None and b.transmission is not None:
        assert (a.transmission.motors, a.transmission.joints) == (b.transmission.motors, b.transmission.joints)
        assert same_bits(a.transmission.matrix, b.transmission.matrix)


def fault_of(text: str, where: type[VeridynError] = ModelError) -> str:
    """The message of the one fault of a text."""
    with pytest.raises(where) as caught:
        parse_machine(text, source="bad.yaml")
    assert len(caught.value.faults) == 1, str(caught.value)
    assert caught.value.source == "bad.yaml"
    return str(caught.value)


# What a file means


def test_every_key_means_what_it_says() -> None:
    machine = parse_machine("""
veridyn: 2
name: everything
base: fixed
constants: {L: 0.5, g: 9.8, half: L/2}
gravity: [0, 0, -g]
bodies:
  - name: 7
    antecedent: 0
    sigma: 0
    mu: 0
    mdh: {gamma: pi/3, b: 0.1, alpha: -pi/2, d: L, theta: radians(30), r: half}
    inertia: {mass: 2, centre: [0.1, 0, 0], about_centre: [0.03, 0, 0, 0.03, 0, 0.02]}
  - name: rod
    antecedent: 7
    joint: sliding
    placement: {position: [1, 2, half], rpy: [0.1, 0.2, 0.3]}
    coordinate: s
    ratio: -2
    label: "2"
    inertia: {XX: 0.1, YY: 0.1, ZZ: 0.1, M: 1}
  - name: rod2
    antecedent: "7"
    joint: sliding
    coordinate: s
    placement: {axis: [0, 1, 0]}
  - {name: tip, antecedent: rod, joint: fixed, virtual: true}
elements:
  - {kind: spring, on: q7, value: 20, name: k1, typical: 3, unit: N*m/turn}
  - {kind: damper, on: {q7: -1}}
  - {kind: drive_gain, on: s, signal: i1, value: unknown}
  - {kind: drag, on: rod.fx}
parameters:
  known: [M7, XX2]
  tied: {YY2: XX2, ZZ_rod2: {to: ZZ7, factor: 2}}
  typical: {M7: 3}
  values: {M_rod2: 4}
transmission: {motors: [m], joints: [s], matrix: [[half]]}
""")
    seven, rod, rod2, tip = tree_of(machine).bodies
    assert machine.name == "everything"
    assert seven == Body(
        "7", "ground", "turning", MDH(np.pi / 3, 0.1, -np.pi / 2, 0.5, np.radians(30), 0.25), actuated=False
    )
    assert rod == Body(
        "rod", "7", "sliding", Placement(rpy(0.1, 0.2, 0.3), [1, 2, 0.25]), coordinate="s", ratio=-2.0, label="2"
    )
    assert rod2.antecedent == "7"
    np.testing.assert_array_equal(rod2.placement.rotation[:, 2], [0, 1, 0])
    assert (tip.joint, tip.real) == ("fixed", False)
    np.testing.assert_array_equal(machine.gravity, [0, 0, -9.8])
    p = machine.parameters
    np.testing.assert_array_equal(p.values[:10], from_centre(2, [0.1, 0, 0], [0.03, 0, 0, 0.03, 0, 0.02]))
    assert (p["XX2"], p["XY2"], p["M2"], p["M_rod2"], p["k1"]) == (0.1, 0.0, 1.0, 4.0, 20.0)
    assert np.isnan([p["XX_rod2"], p["h_q7"], p["K_s"], p["C_rod_fx"]]).all()
    assert p.units[p.index("k1")] == "N*m/turn"
    assert [p.names[i] for i in p.select("known")] == ["M7", "XX2"]
    assert dict(p.ties) == {"YY2": Tie("XX2"), "ZZ_rod2": Tie("ZZ7", 2.0)}
    assert p.typical[p.index("M7")] == 3.0
    assert p.typical[p.index("k1")] == 3.0
    assert dict(machine.elements[1].on) == {"q7": -1.0}
    assert machine.transmission is not None
    np.testing.assert_array_equal(machine.transmission.matrix, [[0.25]])


def test_defaults() -> None:
    machine = parse_machine(ONE, source="folder/thing.yaml")
    assert machine.name == "thing"
    assert machine.base == "fixed"
    np.testing.assert_array_equal(machine.gravity, [0, 0, -9.81])
    assert tree_of(machine).bodies == (Body("a"),)
    assert machine.parameters.missing() == machine.parameters.names


def test_inertia_by_entries_leaves_the_others_zero_and_the_unknown_unknown() -> None:
    p = parse_machine(HEAD + "bodies: [{name: a, joint: turning, inertia: {M: 2, MX: unknown}}]").parameters
    assert (p["M_a"], p["XX_a"]) == (2.0, 0.0)
    assert np.isnan(p["MX_a"])


def test_point_mass_by_its_centre() -> None:
    p = parse_machine(HEAD + "bodies: [{name: a, joint: turning, inertia: {mass: 2, centre: [0, 0, 3]}}]").parameters
    assert (p["XX_a"], p["YY_a"], p["ZZ_a"], p["MZ_a"]) == (18.0, 18.0, 0.0, 6.0)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 1e-3),
        ('"1e-3"', 1e-3),
        ("1E+3", 1e3),
        ("+.5", 0.5),
        (".5", 0.5),
        ("0x10", 16.0),
        ("1_000", 1e3),
        ("010", 10.0),
    ],
)
def test_numbers_as_people_write_them(written: str, value: float) -> None:
    machine = parse_machine(ONE + f"gravity: [0, 0, {written}]\n")
    assert machine.gravity[2] == value


def test_names_stay_as_written() -> None:
    machine = parse_machine(
        HEAD
        + "bodies:\n  - {name: 010, antecedent: 0, joint: turning}\n  - {name: 1.10, antecedent: 010, joint: turning}"
    )
    assert machine.body_names == ("010", "1.10")
    assert machine.attachment(machine.joints[1].a).body == "010"


def test_a_body_called_0_is_written_in_quotes() -> None:
    text = (
        HEAD + 'bodies:\n  - {name: 0, antecedent: 0, joint: turning}\n  - {name: b, antecedent: "0", joint: turning}'
    )
    machine = parse_machine(text)
    assert [machine.attachment(j.a).body for j in machine.joints] == ["ground", "0"]
    assert_same(machine, parse_machine(model_text(machine)))


def test_free_base_and_six_joints() -> None:
    bodies = (
        "bodies:\n  - {name: chassis, inertia: {mass: 2, about_centre: [1, 0, 0, 1, 0, 1]}}\n"
        "  - {name: w, antecedent: chassis, joint: sliding}\n"
    )
    free = parse_machine(HEAD + "name: car\nbase: free\n" + bodies)
    six = parse_machine(HEAD + "name: car\nbase: six_joints\n" + bodies)
    assert free.rows[:6] == ("fx", "fy", "fz", "mx", "my", "mz")
    assert_same(six, on_six_joints(free))
    assert_same(six, parse_machine(model_text(six)))


def test_aliases_and_json_are_yaml_too() -> None:
    machine = parse_machine(
        HEAD
        + "bodies:\n  - {name: a, joint: turning, inertia: &x {M: 2}}\n  - {name: b, antecedent: a, joint: turning, inertia: *x}\n"
    )
    assert machine.parameters["M_b"] == 2.0
    json = '{"veridyn": 2, "bodies": [{"name": "a", "joint": "turning", "actuated": false}]}'
    assert parse_machine(json).actuated == (False,)


def test_crlf_and_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + ONE.replace("\n", "\r\n").encode())
    assert load_model(file).coordinates == ("a",)


def test_the_example_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "model-file.md").read_text(encoding="utf-8")
    machine = parse_machine(page.split("```yaml\n")[1].split("```")[0])
    assert machine.coordinates == ("q1", "q2", "z")
    p = machine.parameters
    assert {p.names[i] for i in p.select("known")} == {"kz", "M1"}
    assert set(p.ties) == {"YY2", "ZZ1"}
    assert p["MX1"] == pytest.approx(0.8 * 0.06, rel=1e-15)
    assert_same(machine, parse_machine(model_text(machine)))


# The arm


def test_arm() -> None:
    machine = load_model(Path(str(resources.files("veridyn.machines") / "arm.yaml")))
    assert machine.coordinates == ("q1", "q2", "q3", "q4", "q5", "q6")
    assert machine.body_names == tuple("123456")
    assert not machine.parameters.missing()
    ten = machine.parameters.values[:60].reshape(6, 10)
    assert all(broken_law(x) is None for x in ten)
    assert 15.0 < ten[:, 9].sum() < 27.0  # the arm weighs 27 kg with its foot
    kinds = {
        kind: [dict(e.on) for e in machine.elements if e.kind == kind]
        for kind in ("damper", "coulomb", "offset", "inertia")
    }
    each = [{c: 1.0} for c in machine.coordinates]
    assert kinds["damper"] == kinds["coulomb"] == [*each, {"q5": 1.0, "q6": 1.0}]
    assert kinds["offset"] == kinds["inertia"] == each
    assert machine.transmission is not None
    motors = machine.transmission.motors_from_joints([[0.2, 0.3]])
    np.testing.assert_allclose(motors, [[0.2, 0.5]], rtol=1e-15)  # motor 6 turns with both joints
    assert_same(machine, parse_machine(model_text(machine)))


# Out and back


def rich_machine(rng: np.random.Generator, k: int) -> Machine:
    """A random machine with every kind of element, a transmission and parameters in every state."""
    machine = random_open_machine(rng, base="free" if k % 2 else "fixed", virtual=0.2, shared=k % 3 == 0)
    first, turning = machine.coordinates[0], machine.coordinates[-1]
    elements = [
        spring(first, rng.standard_normal()),
        offset({turning: -rng.random() - 0.1}, name="a name: with #odd, {signs}"),
        damper(first, 1e-300),
        coulomb({first: 2.0}, -0.0, name="true"),
        motor_inertia(turning, name='quote " and \\ and é \n \x07 😀'),
        drive_gain(first, "i 1", 3.0, name="7"),
        drag(f"{machine.body_names[0]}.mz", 0.1),
        Element(kind="damper", on={turning: 1.0}, name="h_unit", typical=rng.random() + 0.1, unit="N*m*s/turn"),
    ]
    links = [replace(k, inertia=random_inertia(rng) if k.real and rng.random() < 0.8 else None) for k in machine.links]
    transmission = Transmission(("m",), (first,), np.array([[rng.random() + 0.5]])) if k % 2 else None
    built = Machine.build(
        links,
        machine.joints,
        name=f"machine {k}",
        gravity=machine.gravity,
        elements=elements,
        transmission=transmission,
    )
    p = built.parameters
    new = {
        p.names[int(i)]: float(rng.standard_normal() * 10.0 ** rng.integers(-12, 12))
        for i in rng.integers(len(p), size=5)
    }
    p = p.replacing(new)
    order = [p.names[i] for i in rng.permutation(len(p))]
    p = p.known({name: float(rng.standard_normal()) for name in order[:3]})
    p = p.tied({order[3]: order[4], order[5]: Tie(order[0], float(rng.standard_normal()))})
    sizes = p.typical.copy()
    sizes[rng.integers(len(p))] = rng.random() + 0.1
    return built.with_parameters(replace(p, typical=sizes))


@pytest.mark.parametrize("k", [pytest.param(k, marks=pytest.mark.slow if k >= 4 else ()) for k in range(12)])
def test_round_trip_of_random_trees(k: int) -> None:
    machine = rich_machine(np.random.default_rng(k), k)
    assert_same(machine, parse_machine(model_text(machine), source="x"))


def test_round_trip_of_friction_of_each_direction_and_stribeck() -> None:
    text = """
veridyn: 2
bodies:
  - {name: "1", antecedent: ground, joint: turning}
elements:
  - {kind: coulomb_forward, on: q1, value: 0.5}
  - {kind: coulomb_backward, on: q1}
  - {kind: damper_forward, on: q1, value: 0.1}
  - {kind: damper_backward, on: q1, value: 0.2}
  - {kind: stribeck, on: q1, speed: 0.05, value: 0.3}
"""
    machine = parse_machine(text, source="x")
    assert machine.parameters.names[-5:] == ("fsp_q1", "fsn_q1", "hp_q1", "hn_q1", "fst_q1")
    assert machine.elements[-1].constants["speed"] == 0.05
    assert_same(machine, parse_machine(model_text(machine), source="x"))
    with pytest.raises(ModelError, match=r"\(line 10\): its law needs the constant 'speed'"):
        parse_machine(text.replace("speed: 0.05, ", ""), source="x")


def test_round_trip_of_estimates_no_body_can_have() -> None:
    machine = parse_machine(
        HEAD
        + "bodies:\n  - {name: 1, antecedent: 0, joint: turning, inertia: {mass: 1, about_centre: [1, 0, 0, 1, 0, 1]}}\n"
    )
    machine = machine.with_parameters({"ZZ1": -0.5, "M1": -1e-17})
    text = model_text(machine)
    assert "values:" in text
    assert_same(machine, parse_machine(text, source=machine.name))


def test_text_is_readable_and_stable() -> None:
    machine = parse_machine(
        HEAD + "name: one joint\nbodies:\n  - {name: 1, antecedent: 0, joint: turning, mdh: {alpha: -pi/2, d: 0.1}}\n"
        "elements: [{kind: spring, on: q1, value: 3}]\nparameters: {known: [k_q1], tied: {YY1: XX1}}\n"
    )
    text = model_text(machine)
    assert text == (
        "veridyn: 2\nname: one joint\nformulation: tree\ngravity: [0.0, 0.0, -9.81]  # m/s^2\nbodies:\n"
        "  - name: 1\n    antecedent: ground\n    joint: turning\n    mdh: {alpha: -pi/2, d: 0.1}\n"
        "elements:\n  - {kind: spring, on: q1, value: 3.0}\n"
        "parameters:\n  known: [k_q1]\n  tied: {YY1: XX1}\n"
    )
    assert model_text(parse_machine(text)) == text


def test_save_and_load(tmp_path: Path) -> None:
    machine = rich_machine(np.random.default_rng(5), 1)
    file = tmp_path / "machine.yaml"
    save_model(machine, file)
    assert_same(machine, load_model(file))
    assert_same(machine, load_model(str(file)))
    assert [p.name for p in tmp_path.iterdir()] == ["machine.yaml"]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text("mine")
    machine = parse_machine(ONE)
    with pytest.raises(FileError, match=r"machine\.yaml, it exists already, and nothing is written over") as caught:
        save_model(machine, file)
    assert "overwrite=True" in str(caught.value)
    assert file.read_text() == "mine"
    save_model(machine, file, overwrite=True)
    assert load_model(file).coordinates == ("a",)
    with pytest.raises(FileError, match="exists already"):
        save_model(machine, tmp_path, overwrite=True)


def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text("mine")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        save_model(parse_machine(ONE), file, overwrite=True)
    assert file.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["machine.yaml"]


def test_saving_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written: No such file or directory"):
        save_model(parse_machine(ONE), tmp_path / "no" / "a.yaml")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.with_parameters({"M_a": np.inf}), r"parameter 'M_a': it cannot be written"),
        (lambda t: replace(t, stated=replace(t.parameters, units=("x",) * 10)), "not those of its bodies"),
        (lambda t: replace(t, stated=replace(t.parameters, names=tuple("abcdefghij"))), "not those of its bodies"),
        (lambda t: replace(t, stated=replace(t.parameters, states=("tied",) * 10)), "contradict each other"),
        (lambda t: replace(t, stated=replace(t.parameters, states=("known",) * 10)), "known, but has no value"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(spoil: Callable[[Machine], Machine], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model_text(spoil(parse_machine(ONE)))


# Faults of the content, each by its message and line


def bodies(*lines: str) -> str:
    return HEAD + "bodies:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


A = "name: a, antecedent: ground, joint: turning"
CASES = {
    "unknown body": (
        bodies(A, "name: wrist, antecedent: aa, joint: turning"),
        "bad.yaml, body 'wrist' (line 4): its antecedent 'aa' is not a body of this model.\nKnown: a. Did you mean 'a'?",
    ),
    "cyclic tree": (
        bodies(A, "name: b, antecedent: c, joint: turning", "name: c, antecedent: b, joint: turning"),
        "bad.yaml, body 'b' (line 4): it is its own ancestor, so this is not a tree.\nFound b → c → b. Cut the loop at one joint.",
    ),
    "two roots": (
        bodies("name: a, joint: turning", "name: b, joint: turning"),
        "bad.yaml, body 'b' (line 4): two roots: 2 bodies name no antecedent: a, b.",
    ),
    "two roots of a free tree": (
        bodies("name: a", "name: b, antecedent: ground, joint: fixed") + "base: free\n",
        "bad.yaml, body 'b' (line 4): a free tree has one root, and 2 bodies have no antecedent: a, b.",
    ),
    "duplicate names": (
        bodies(A, "name: b, antecedent: a, joint: turning", A + ", coordinate: q2"),
        "bad.yaml, body 'a' (line 5): the name is used 2 times.",
    ),
    "NaN": (
        bodies(A + ", inertia: {M: .nan}"),
        "bad.yaml, body 'a' (line 3): M is not a finite number.\nFound .nan. Write unknown where nobody knows it.",
    ),
    "infinite": (
        bodies(A + ", mdh: {d: -.inf}"),
        "bad.yaml, body 'a' (line 3): d is not a finite number.\nFound -.inf.",
    ),
    "huge": (
        bodies(A + ", mdh: {d: 1e200}"),
        "bad.yaml, body 'a' (line 3): d is too large a number.\nExpected at most 1e+50, in SI units, found 1e200.",
    ),
    "wrong shape of a vector": (
        bodies(A + ", placement: {position: [0, 1]}"),
        "bad.yaml, body 'a' (line 3): position has the wrong shape.\nExpected 3 numbers, found 2.",
    ),
    "wrong shape of a matrix": (
        bodies(A + ", placement: {rotation: [[1, 0, 0], [0, 1], [0, 0, 1]]}"),
        "bad.yaml, body 'a' (line 3): rotation has the wrong shape.\nExpected 3 rows of 3 numbers, found 3 rows of 3, 2, 3.",
    ),
    "not a rotation": (
        bodies(A + ", placement: {rotation: [[1, 0, 0], [0, 1, 0], [0, 0, -1]]}"),
        "bad.yaml, body 'a' (line 3): its placement is not a rotation and a position.",
    ),
    "axis without direction": (
        bodies(A + ", placement: {axis: [0, 0, 0]}"),
        "bad.yaml, body 'a' (line 3): an axis of length zero has no direction.",
    ),
    "impossible inertia": (
        bodies(A + ", inertia: {mass: 2, about_centre: [1, 0, 0, 1, 0, 3]}"),
        "bad.yaml, body 'a' (line 3): no distribution of mass has this inertia: principal moments about the centre of mass are "
        "(1, 1, 3) kg*m^2, and 1 + 1 < 3 breaks the triangle inequality.",
    ),
    "negative mass": (
        bodies(A + ", inertia: {M: -1}"),
        "bad.yaml, body 'a' (line 3): no distribution of mass has this inertia: the mass is -1 kg, below zero.",
    ),
    "inertia both ways": (
        bodies(A + ", inertia: {mass: 1, XX: 2}"),
        "bad.yaml, body 'a', inertia (line 3): XX is about the frame's origin, mass, centre and about_centre are not.",
    ),
    "inertia without mass": (
        bodies(A + ", inertia: {centre: [0, 0, 0]}"),
        "body 'a', inertia (line 3): the key 'mass' is missing.",
    ),
    "inertia of a virtual body": (
        bodies(A + ", virtual: true, inertia: {M: 1}"),
        "bad.yaml, body 'a' (line 3): a virtual body has no inertia, but some is given.",
    ),
    "code": (
        bodies(A + ", mdh: {d: \"__import__('os').system('ls')\"}"),
        "bad.yaml, body 'a' (line 3): d: '__import__('os').system('ls')' tries to run code.\nAllowed: numbers, earlier constants,",
    ),
    "degrees": (
        bodies(A + ", mdh: {alpha: 90 deg}"),
        "body 'a' (line 3): alpha: '90 deg' has a unit.\nAngles are in radians: write radians(90) or pi/2.",
    ),
    "decimal comma": (
        HEAD + "bodies:\n  - name: a\n    joint: turning\n    mdh:\n      d: 0,5\n",
        "body 'a' (line 6): d: '0,5' has a comma.\nWrite decimals with a point",
    ),
    "constant that comes later": (
        ONE + "constants: {a: b, b: 1}\n",
        "constants (line 4): a: 'b' uses 'b', which is no constant defined above it.",
    ),
    "constant with a taken name": (
        ONE + "constants:\n  pi: 3\n",
        "constants (line 5): a constant cannot be called 'pi'.",
    ),
    "truth as a number": (
        bodies(A + ", mdh: {d: true}"),
        "body 'a' (line 3): d is not a number.\nExpected a number or a formula, found true or false.",
    ),
    "date as a number": (
        bodies(A + ", mdh: {d: 2024-10-10}"),
        "d is not a number.\nExpected a number or a formula, found a date.",
    ),
    "list as a number": (
        bodies(A + ", mdh: {d: [1]}"),
        "d is not a number.\nExpected a number or a formula, found a list.",
    ),
    "number as a truth": (
        bodies(A + ", actuated: 2"),
        "body 'a' (line 3): actuated is neither true nor false.\nExpected true or false, found 2.",
    ),
    "truth as a name": (
        bodies("name: true, joint: turning"),
        "name must be text.\nFound true or false. Put it in quotes.",
    ),
    "no value": (bodies(A + ", label: "), "body 'a' (line 3): 'label' has no value.\nGive it one, or drop the key."),
    "no name": (bodies("joint: turning"), "bad.yaml, body number 1 (line 3): the key 'name' is missing."),
    "no joint": (
        bodies("name: a"),
        "bad.yaml, body 'a' (line 3): the key 'joint' is missing.\nExpected turning, sliding or fixed.",
    ),
    "no kind of joint": (
        bodies("name: a, joint: turnin"),
        "body 'a' (line 3): 'turnin' is no kind of joint.\nKnown: turning, sliding, fixed. Did you mean 'turning'?",
    ),
    "no kind of sigma": (bodies("name: a, sigma: 3"), "body 'a' (line 3): '3' is no σ of a joint.\nKnown: 0, 1, 2."),
    "joint twice": (bodies(A + ", sigma: 0"), "body 'a' (line 3): 'joint' and 'sigma' say the same thing.\nDrop one."),
    "mdh and placement": (bodies(A + ", mdh: {}, placement: {}"), "'mdh' and 'placement' say the same thing."),
    "rpy and axis": (
        bodies(A + ", placement: {rpy: [0, 0, 0], axis: [0, 0, 1]}"),
        "'rpy' and 'axis' say the same thing.",
    ),
    "unknown key at the top": (
        ONE + "element: []\n",
        "bad.yaml, line 4: there is no key 'element' here.\nKnown: veridyn, name, formulation, dimension, base, gravity, constants, "
        "bodies, joints, points, vectors, coordinates, …. Did you mean 'elements'?",
    ),
    "unknown key of a body": (
        HEAD + "bodies:\n  - name: a\n    joint: turning\n    antecedant: ground\n",
        "bad.yaml, body 'a' (line 5): there is no key 'antecedant' here.\nKnown: name, antecedent,",
    ),
    "unknown key of mdh": (bodies(A + ", mdh: {alfa: 1}"), "body 'a', mdh (line 3): there is no key 'alfa' here."),
    "unknown entry of inertia": (
        bodies(A + ", inertia: {IXX: 1}"),
        "body 'a', inertia (line 3): there is no key 'IXX' here.",
    ),
    "key twice": (
        HEAD + "bodies:\n  - name: a\n    joint: turning\n    label: x\n    joint: sliding\n",
        "bad.yaml, body 'a' (line 6): 'joint' stands twice.\nFound the first on line 4. Drop one.",
    ),
    "merge key": (bodies(A + ", <<: {label: x}"), "body 'a' (line 3): merge keys (<<) are not part of the format."),
    "tag": (
        bodies(A + ", mdh: {d: !!python/object:os.system 1}"),
        "the tag '!!python/object:os.system' is not part of the format.",
    ),
    "tagged list": (bodies(A + ", placement: {position: !x [1, 2, 3]}"), "the tag '!x' is not part of the format."),
    "set": (bodies(A + ", mdh: !!set {d}"), "the tag '!!set' is not part of the format."),
    "bodies is no list": (HEAD + "bodies: a\n", "bad.yaml, line 2: bodies must be a list."),
    "body is no mapping": (
        HEAD + "bodies: [a]\n",
        "bad.yaml, body number 1 (line 2): a body is a mapping, such as {name: arm, joint: turning}; found the word 'a'.",
    ),
    "no bodies": (HEAD, "bad.yaml, line 1: the key 'bodies' is missing."),
    "empty bodies": (HEAD + "bodies: []\n", "bad.yaml, bodies (line 2): there is no body."),
    "no version": (ONE.removeprefix(HEAD), "bad.yaml, line 1: the key 'veridyn' is missing."),
    "kind of base": (
        ONE + "base: floating\n",
        "bad.yaml, base (line 4): 'floating' is no kind of base.\nKnown: fixed, free, six_joints.",
    ),
    "gravity": (ONE + "gravity: -9.81\n", "bad.yaml, gravity (line 4): gravity must be a list."),
    "moving root": (
        bodies("name: a, joint: turning") + "base: free\n",
        "body 'a' (line 3): the root of a free tree moves freely",
    ),
    "six joints with a taken name": (
        bodies("name: a", "name: base_x, antecedent: a, joint: turning") + "base: six_joints\n",
        "body 'base_x' (line 4): its name or coordinate is taken by one of the six joints of the base.",
    ),
    "kind of element": (
        ONE + "elements:\n  - {kind: sprung, on: a}\n",
        "element 'sprung_a' (line 5): 'sprung' is no kind of element.",
    ),
    "element on nothing": (
        ONE + "elements:\n  - {kind: spring, on: b, name: k1}\n",
        "element 'k1' (line 5): there is no coordinate 'b'.\nKnown: a.",
    ),
    "element without on": (
        ONE + "elements:\n  - {kind: spring}\n",
        "element number 1 (line 5): it does not say what it acts on.",
    ),
    "element's typical size": (
        ONE + "elements:\n  - {kind: spring, on: a, typical: 0}\n",
        "element 'k_a' (line 5): its typical size must be a positive number.",
    ),
    "elements with one name": (
        ONE + "elements:\n  - {kind: spring, on: a}\n  - {kind: spring, on: a}\n",
        "element 'k_a' (line 6): the parameter name is used by 2 elements.",
    ),
    "coefficient": (
        ONE + "elements:\n  - {kind: spring, on: {a: 0}}\n",
        "element 'k_a' (line 5): its coefficients must be",
    ),
    "gain without a signal": (
        ONE + "elements:\n  - {kind: drive_gain, on: a}\n",
        "element 'K_a' (line 5): a drive gain multiplies",
    ),
    "unknown parameter": (
        ONE + "parameters:\n  known: {XX_b: 1}\n",
        "parameters (line 5): there is no parameter 'XX_b'.\nKnown: XX_a,",
    ),
    "known without a value": (
        ONE + "parameters:\n  known:\n    - M_a\n",
        "parameters (line 6): 'M_a' has no value, so it cannot be known.\nWrite known: {M_a: VALUE}.",
    ),
    "known and tied": (
        ONE + "parameters: {known: {XX_a: 1}, tied: {XX_a: YY_a}}\n",
        "parameters (line 4): 'XX_a' is known and tied at once.",
    ),
    "tied to a tied one": (
        ONE + "parameters: {tied: {XX_a: YY_a, YY_a: ZZ_a}}\n",
        "parameters (line 4): 'XX_a' is tied to 'YY_a', which is tied itself.",
    ),
    "tied to itself": (ONE + "parameters: {tied: {XX_a: XX_a}}\n", "'XX_a' is tied to 'XX_a', which is tied itself."),
    "typical size": (
        ONE + "parameters: {typical: {XX_a: -1}}\n",
        "the typical size of XX_a is not above zero.\nFound -1.",
    ),
    "transmission to nowhere": (
        ONE + "transmission: {motors: [m], joints: [b], matrix: [[1]]}\n",
        "transmission (line 4): it drives 'b', which is no coordinate.\nKnown: a.",
    ),
    "singular transmission": (
        ONE + "transmission: {motors: [m], joints: [a], matrix: [[0]]}\n",
        "transmission (line 4): the transmission matrix is singular",
    ),
    "shape of a transmission": (
        ONE + "transmission: {motors: [m], joints: [a], matrix: [[1, 2]]}\n",
        "transmission (line 4): matrix has the wrong shape.\nExpected 1 rows of 1 numbers, found 1 rows of 2.",
    ),
    "motors and joints": (
        ONE + "transmission: {motors: [m, n], joints: [a], matrix: [[1, 2]]}\n",
        "transmission (line 4): the transmission matrix does not fit its motors and joints.",
    ),
    "motor twice": (
        bodies(A, "name: b, antecedent: a, joint: turning")
        + "transmission: {motors: [m, m], joints: [a, b], matrix: [[1, 0], [0, 1]]}\n",
        "transmission (line 5): the motor 'm' is named twice.",
    ),
    "transmission without a matrix": (
        ONE + "transmission: {motors: [m], joints: [a]}\n",
        "the key 'matrix' is missing.",
    ),
}


@pytest.mark.parametrize(("text", "message"), CASES.values(), ids=CASES.keys())
def test_one_fault(text: str, message: str) -> None:
    assert message in fault_of(text)


def test_all_faults_at_once_with_their_lines() -> None:
    text = """veridyn: 2
constants:
  L: exec("1")
bodies:
  - name: foot
    antecedent: ground
    joint: turning
    mdh: {d: L, alpha: 90 deg}
  - name: arm
    antecedent: food
    joint: turning
    colour: red
    inertia: {mass: 1, about_centre: [1, 0, 0, 1, 0, 3]}
elements:
  - {kind: spring, on: foot}
  - {kind: damper, on: elbow, name: h}
parameters:
  known: [XX_hand]
"""
    with pytest.raises(ModelError) as caught:
        parse_machine(text, source="five.yaml")
    found = [(fault.line, fault.where) for fault in caught.value.faults]
    assert found == [
        (3, "constants"),
        (8, "body 'foot'"),
        (9, "body 'arm'"),
        (9, "body 'arm'"),
        (12, "body 'arm'"),
        (16, "element 'h'"),
        (18, "parameters"),
    ]
    message = str(caught.value)
    assert message.startswith(
        "five.yaml, 7 faults:\n1. constants (line 3): L: 'exec(\"1\")' tries to run code: it calls 'exec'."
    )
    for words in (
        "'food' is not a body",
        "no distribution of mass",
        "'colour'",
        "no coordinate 'elbow'",
        "no parameter 'XX_hand'",
    ):
        assert words in message


def test_an_unreadable_part_causes_no_second_fault() -> None:
    text = ONE + "constants: {L: 1/0}\nelements: [{kind: spring, name: k1}]\nparameters: {known: {k1: L}}\n"
    with pytest.raises(ModelError) as caught:
        parse_machine(text)
    assert [fault.line for fault in caught.value.faults] == [4, 5]


# Files that cannot be read


FILES = {
    "empty": ("", "the file is empty."),
    "comments only": ("# nothing\n", "this is not a YAML document of keys and values.\nFound nothing but comments."),
    "plain text": ("hello", "Found plain text."),
    "a list": ("- a\n- b\n", "Found a list."),
    "another file": ("study: x\nseed: 1\n", "this is not a model file.\nFound the keys study, seed."),
    "later version": (
        "veridyn: 3\nwings: 3\n",
        "veridyn (line 1): this version of the format is unknown.\nExpected 2, found '3'.",
    ),
    "tab": (
        "veridyn: 2\nbodies:\n\t- name: a\n",
        "line 3: a tab stands where spaces are expected.\nYAML indents with spaces only.",
    ),
    "cut in a bracket": (
        ONE + "gravity: [0,\n  0, -9",
        "line 5: the file ends in the middle of a value.\nWhat begins on line 4 is never closed.",
    ),
    "cut in quotes": (HEAD + 'name: "arm\n', "line 2: the file ends in the middle of a value."),
    "two documents": (ONE + "---\n" + ONE, "line 4: a second document begins."),
    "no YAML": ("veridyn: 2\na: b: c\n", "line 2: this is not YAML: mapping values are not allowed here."),
    "alias without an anchor": (HEAD + "bodies: *x\n", "line 2: this is not YAML: found undefined alias 'x'"),
    "control character": (HEAD + "name: a\x07\n", "line 2: a control character cannot stand in a text file."),
    "deep": (HEAD + "bodies: " + "[" * 900, "brackets are nested too deeply."),
    "alias in itself": (HEAD + "bodies: &x [*x]\n", "its aliases (*name) repeat without end, or too often."),
    "alias bomb": (
        HEAD
        + "a: &a [1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"{y}: &{y} [{','.join([f'*{x}'] * 9)}]\n" for x, y in zip("abcdefg", "bcdefgh")),
        "its aliases (*name) repeat without end, or too often.",
    ),
    "log": (HEAD + "# " + "x" * 1_000_000, "characters.\nExpected at most 1000000. Is it a log?"),
}


@pytest.mark.parametrize(("text", "message"), FILES.values(), ids=FILES.keys())
def test_texts_that_are_no_model_file(text: str, message: str) -> None:
    assert message in fault_of(text, FileError)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\0" * 4096, "zero.yaml, this is not a text file: it holds NUL bytes."),
        (
            HEAD.encode() + b"name: caf\xe9\n",
            "zero.yaml, line 2: this is not text in UTF-8.\nFound the byte 0xe9. Save it as UTF-8.",
        ),
        (ONE.encode("utf-16"), "NUL bytes"),
        (b"x" * 5_000_000, "too large"),
    ],
)
def test_binary_files(raw: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "zero.yaml"
    file.write_bytes(raw)
    with pytest.raises(FileError, match=re.escape(message)):
        load_model(file)


def test_missing_file(tmp_path: Path) -> None:
    (tmp_path / "robot.yaml").write_text(ONE)
    with pytest.raises(FileError, match=r"robto.yaml, there is no such file.\nFound .*Did you mean 'robot.yaml'\?"):
        load_model(tmp_path / "robto.yaml")
    with pytest.raises(FileError, match="no such file"):
        load_model(tmp_path / "nowhere" / "robot.yaml")
    with pytest.raises(FileError, match="this is a folder"):
        load_model(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        load_model("a\0b.yaml")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_forbidden_file(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text(ONE)
    file.chmod(0)
    with pytest.raises(FileError, match="cannot be read: Permission denied"):
        load_model(file)
    file.chmod(stat.S_IRUSR)


def test_a_model_cut_anywhere_is_read_or_refused_in_words() -> None:
    text = model_text(rich_machine(np.random.default_rng(1), 1))
    for length in range(0, len(text), 211):
        with suppress(VeridynError):
            parse_machine(text[:length])


JUNK = [
    "\t",
    "{",
    "]",
    ":",
    "- ",
    "'",
    '"',
    "&a ",
    "*a",
    "!!x ",
    "|",
    "#",
    "%",
    "@",
    "\n",
    "---\n",
    "~",
    ".nan",
    "1e49",
    "\x07",
    "? ",
]


def test_a_spoilt_model_is_read_or_refused_in_words() -> None:
    rng = np.random.default_rng(3)
    text = (
        ONE
        + "gravity: [0, 0, -9.81]\nelements:\n  - {kind: spring, on: {a: 1}, name: k}\nparameters: {known: {k: 1}, tied: {XX_a: YY_a}}\n"
    )
    for _ in range(200):
        at, cut = int(rng.integers(len(text))), int(rng.choice([0, 0, 1, 5]))
        with suppress(VeridynError):
            parse_machine(text[:at] + JUNK[int(rng.integers(len(JUNK)))] + text[at + cut :])


STRUT = """veridyn: 2
bodies:
  - {name: arm, antecedent: ground, joint: turning}
elements:
  - kind: spring
    between: [{body: ground, at: [0.1, 0, 0.5]}, {body: arm, at: [0.3, 0, 0]}]
    rest: 1/4
    value: 9000
"""


def test_round_trip_of_an_element_between_two_places() -> None:
    machine = parse_machine(STRUT, source="x")
    (e,) = machine.elements
    assert e.between == (Marker("ground", (0.1, 0.0, 0.5)), Marker("arm", (0.3, 0.0, 0.0)))
    assert (e.constants["rest"], e.parameter_name, machine.parameters.units[-1]) == (0.25, "k_ground_arm", "N/m")
    again = parse_machine(model_text(machine), source="x")
    assert repr(again.elements) == repr(machine.elements) and again.constants == machine.constants


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("body: arm, at", "body: arn, at", "there is no body 'arn'"),
        ("body: arm, at", "body: ground, at", "its length never changes"),
        ("{body: arm, at: [0.3, 0, 0]}", "", "it acts between two places"),
        ("kind: spring", "kind: drag", "an element of kind drag cannot act between two places"),
        ("    rest: 1/4", "    on: arm", "it acts on coordinates and between two places at once"),
        (
            "bodies:\n  - {name: arm, antecedent: ground",
            "base: free\nbodies:\n  - {name: root}\n  - {name: arm, antecedent: root",
            "its end is on the ground",
        ),
    ],
)
def test_faults_of_an_element_between_two_places(old: str, new: str, message: str) -> None:
    assert message in fault_of(STRUT.replace(old, new).replace("    rest: 1/4\n", ""))
