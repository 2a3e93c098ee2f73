"""Formulas of model files: what they compute, and that they compute nothing else.

Quarter turns as they are written in files: which angles are taken for one, and what is said of it.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from strangers.pinocchio_logs import three_joints, urdf
from veridyn.errors import DataWarning, ModelError
from veridyn.files.expressions import (
    FUNCTIONS,
    MAX_LENGTH,
    evaluate,
    function_of,
    is_constant_name,
    quarter_turn,
    snap_quarter_turns,
)
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.mjcf import load_mjcf
from veridyn.identify.base import base_parameters

L = {"L": 0.225, "r4": 2.0}
QUARTER_TURN_RAD = math.pi / 2
ROUNDED_QUARTER_TURN = (
    1.57,
    1.571,
    1.5708,
    1.57079,
    1.570796,
    -1.5707,
    3.14,
    3.142,
    -3.1416,
    3.141592,
    4.712,
    4.7124,
    6.283,
)
OTHERS = (1.6, 1.56, 1.58, 1.5709, 1.5706, 1.58079, 3.1, 3.13, 3.15, 0.0, 0.0001, 1e-9, 0.7854, 1.0472, 2.0944, 1.5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3.0),
        ("-.5e-3", -0.5e-3),
        ("1_000", 1000.0),
        (" pi/2 ", math.pi / 2),
        ("-pi/2", -math.pi / 2),
        ("L", 0.225),
        ("2*L + r4**2/4 - 1", 0.45),
        ("-r4**2", -4.0),
        ("2**-1", 0.5),
        ("7/2", 3.5),
        ("radians(90)", math.pi / 2),
        ("degrees(pi)", 180.0),
        ("atan2(1, -1)", 3 * math.pi / 4),
        ("sqrt(L**2 + 1)", math.hypot(0.225, 1.0)),
        ("abs(-3)", 3.0),
        ("sin(pi/6)", 0.5),
        ("asin(1) + acos(1) + atan(0) + cos(0) + tan(0)", math.pi / 2 + 1),
    ],
)
def test_formulas(text: str, value: float) -> None:
    result = evaluate(text, L)
    assert type(result) is float
    assert result == pytest.approx(value, rel=1e-15)  # one rounding


def test_pi_is_exact() -> None:
    assert evaluate("pi/2") == math.pi / 2
    assert evaluate("-pi") == -math.pi


CODE = [
    "__import__('os').system('echo pwned')",
    "exec('import os')",
    "eval('1')",
    "open('/etc/passwd')",
    "().__class__.__bases__[0].__subclasses__()",
    "L.__class__",
    "L.real",
    "sin.__globals__",
    "[1 for x in (1, 2)]",
    "{1: 2}[1]",
    "L[0]",
    "(lambda: 1)()",
    "lambda: 1",
    "import os",
    "x = 3",
    "del L",
    "f'{L}'",
    "(x := 3)",
    "sin(*(1,))",
    "print(1)",
]


@pytest.mark.parametrize("text", CODE)
def test_code_is_refused_and_said_to_be_code(text: str) -> None:
    with pytest.raises(ModelError, match="tries to run code"):
        evaluate(text, L)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("90 deg", r"has a unit.\n.*radians\(90\) or pi/2"),
        ("45deg", r"write radians\(45\)\."),
        ("30 °", r"write radians\(30\)"),
        ("10 mm", "has a unit.\n.*SI units"),
        ("1,5", "has a comma.\n.*point"),
        ("1.234,5", "has a comma"),
        ("2^3", r"2\*\*3"),
        ("atan2(1", "open bracket.\n.*quotes"),
        ("sin", "without its"),
        ("sin + 1", "without its"),
        ("sinus(3)", "calls 'sinus'.\n.*Did you mean 'sin'"),
        ("l", "uses 'l', which is no constant defined above it.\nKnown: pi, L, r4"),
        ("__builtins__", "no constant"),
        ("1 2", "not a formula"),
        ("1 < 2", "not a formula"),
        ("1 if L else 2", "not a formula"),
        ("1 and 2", "not a formula"),
        ("1and 2", "not a formula"),
        ("5 % 3", "not a formula"),
        ("5 // 3", "not a formula"),
        ("1 << 99", "not a formula"),
        ("True", "not a formula"),
        ("1j", "not a formula"),
        ("'a'*9", "not a formula"),
        ("sin(x=1)", "not a formula"),
        ("1\0", "not a formula"),
        ("sin()", "cannot be computed"),
        ("sqrt(-1)", "cannot be computed"),
        ("(-1)**0.5", "not a real number"),
        ("1/0", "divides by zero"),
        ("0**-1", "divides by zero"),
        ("9**9**9**9", "too large"),
        ("10**400", "too large"),
        ("1e51", "too large"),
        ("9" * 199, "too large"),
        ("1e999", "not a finite number"),
        ("1e999 - 1e999", "not a finite number"),
        ("1" * (MAX_LENGTH + 1), "characters"),
    ],
)
def test_faults_say_what_to_do(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        evaluate(text, L)


def test_deep_nesting_is_harmless() -> None:
    assert evaluate("(" * 90 + "1" + ")" * 90) == 1.0
    assert evaluate("-" * 150 + "1") == 1.0


def test_python_remarks_stay_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("1if 1else 2", '"\\d"', "0x1for x in y"):
            with pytest.raises(ModelError):
                evaluate(text)


def test_names_of_constants() -> None:
    assert is_constant_name("L")
    assert is_constant_name("longueur_é")
    for name in ("pi", "lambda", "3d", "a b", "", "a-b", *FUNCTIONS):
        assert not is_constant_name(name)


def test_formulas_in_a_variable() -> None:
    f = function_of("2*exp(-t) + step(t - 1)*tanh(t) + pi")
    for t in (-1.0, 0.5, 1.0, 2.0):
        wanted = 2.0 * math.exp(-t) + (math.tanh(t) if t >= 1.0 else 0.0) + math.pi
        assert f(t) == pytest.approx(wanted, rel=1e-15)
    assert function_of("x**2", "x")(3) == 9.0


def test_a_bad_formula_is_refused_at_once_and_a_bad_value_when_it_comes() -> None:
    for text, words in (
        ("2*x", "uses 'x'"),
        ("open(t)", "it calls 'open'"),
        ("t.real", "reaches for"),
        ("exp", "without"),
    ):
        with pytest.raises(ModelError, match=words):
            function_of(text)
    f = function_of("1/t")
    assert f(2.0) == 0.5
    with pytest.raises(ModelError, match="divides by zero"):
        f(0.0)
    with pytest.raises(ModelError, match="it calls 'exp'"):
        evaluate("exp(1)")  # model files have no such function


@pytest.mark.parametrize("angle", ROUNDED_QUARTER_TURN)
def test_digits_of_a_quarter_turn_are_one(angle: float) -> None:
    exact = quarter_turn(angle)
    assert exact / QUARTER_TURN_RAD == round(exact / QUARTER_TURN_RAD)
    assert 0.0 < abs(exact - angle) < 0.002


@pytest.mark.parametrize("angle", OTHERS)
def test_other_angles_stay(angle: float) -> None:
    assert quarter_turn(angle) == angle


def test_single_precision_is_enough() -> None:
    """What a 32-bit number makes of π/2 and −π is 4e-8 and 9e-8 rad off."""
    assert quarter_turn(float(np.float32(QUARTER_TURN_RAD))) == QUARTER_TURN_RAD
    assert quarter_turn(-float(np.float32(math.pi))) == -math.pi
    assert quarter_turn(QUARTER_TURN_RAD + 4e-7) != QUARTER_TURN_RAD


def test_words_name_what_is_changed_and_not_what_nobody_could_see() -> None:
    assert snap_quarter_turns([1.5708, 0.3, -3.1416]) == (
        [QUARTER_TURN_RAD, 0.3, -math.pi],
        "1.5708 is π/2, -3.1416 is −π",
    )
    assert snap_quarter_turns([4.7124, 1.5707963268]) == ([3 * QUARTER_TURN_RAD, QUARTER_TURN_RAD], "4.7124 is 3π/2")


def test_a_urdf_is_snapped_with_a_note_that_names_joint_line_and_angle(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(urdf(three_joints(), 4).replace("<joint", "\n<joint"), encoding="utf-8")
    with pytest.warns(DataWarning, match=r"joint 'q2' \(line 3\): its angle is a quarter turn[\s\S]*1.5708 is π/2"):
        rounded = load_model(file)
    file.write_text(urdf(three_joints()), encoding="utf-8")
    exact = load_model(file)
    for a, b in zip(rounded.joints, exact.joints, strict=True):
        np.testing.assert_array_equal(
            rounded.attachment(a.a).placement.rotation, exact.attachment(b.a).placement.rotation
        )
    base = base_parameters(rounded)
    assert base.relations() == base_parameters(exact).relations()
    assert not any("999999" in line or "000000" in line for line in base.relations())


MODEL = """
veridyn: 2
name: arm
bodies: {link1: {}, link2: {}}
joints:
  q1: {kind: turning, a: ground, b: link1}
  q2: {kind: turning, a: {body: link1, PLACE}, b: link2}
"""


@pytest.mark.parametrize("place", ["mdh: {alpha: 1.5708, d: 0.1}", "position: [0.1, 0, 0], rpy: [1.5708, 0, 0]"])
def test_a_model_file_is_snapped_too(place: str) -> None:
    with pytest.warns(DataWarning, match=r"a.yaml, .*'q2'.*: its angle is a quarter turn[\s\S]*1.5708 is π/2"):
        rounded = parse_machine(MODEL.replace("PLACE", place), "a.yaml")
    exact = parse_machine(MODEL.replace("PLACE", place.replace("1.5708", "pi/2")), "a.yaml")
    for a, b in zip(rounded.joints, exact.joints, strict=True):
        np.testing.assert_array_equal(
            rounded.attachment(a.a).placement.rotation, exact.attachment(b.a).placement.rotation
        )


def test_euler_angles_of_mjcf_are_snapped_too(tmp_path: Path) -> None:
    file = tmp_path / "arm.xml"
    file.write_text(
        "<mujoco><compiler angle='radian'/><worldbody><body name='link1' euler='1.5708 0 0'><joint name='q1' axis='0 0 1'/>"
        "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body></worldbody></mujoco>",
        encoding="utf-8",
    )
    with pytest.warns(DataWarning, match="1.5708 is π/2"):
        machine = load_mjcf(file)
    assert set(np.abs(np.asarray(machine.attachment(machine.joints[-1].a).placement.rotation)).ravel()) == {0.0, 1.0}
