"""Elements: names, what they act on, and that they travel between processes."""

import pickle

import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements.element import (
    KINDS,
    WRENCH_ROWS,
    Element,
    asymmetric,
    coulomb,
    damper,
    drag,
    drive_gain,
    motor_inertia,
    offset,
    spring,
    stribeck,
)
from veridyn.model.elements.table_law import LawTable


def test_names_are_made_of_symbol_and_target() -> None:
    made = [spring("z1"), offset("z1"), damper("z1"), coulomb("z1"), motor_inertia("z1"), drive_gain("z1", "i")]
    assert [e.parameter_name for e in made] == ["k_z1", "off_z1", "h_z1", "fs_z1", "Ia_z1", "K_z1"]
    assert drag("chassis.fx").parameter_name == "C_chassis_fx"
    assert spring({"z1": 1.0, "z2": -1.0}).parameter_name == "k_z1_z2"
    assert spring("z1", name="karf").parameter_name == "karf"
    assert Element(kind="nonsense", on={"z1": 1.0}).parameter_name == "nonsense_z1"


def test_a_name_alone_is_a_combination_with_coefficient_one() -> None:
    assert dict(damper("q5").on) == {"q5": 1.0}
    assert dict(damper({"q5": 1, "q6": 1}).on) == {"q5": 1.0, "q6": 1.0}


def test_elements_do_not_change() -> None:
    given = {"z1": 1.0}
    e = spring(given)
    given["z1"] = 5.0
    assert e.on["z1"] == 1.0
    with pytest.raises(TypeError):
        e.on["z1"] = 2.0


def test_what_a_drag_acts_on() -> None:
    assert [drag(f"chassis.{row}").on_body for row in WRENCH_ROWS] == [("chassis", k) for k in range(6)]
    assert drag("body.with.dots.mz").on_body == ("body.with.dots", 5)
    assert drag("chassis.vx").on_body is None
    assert drag("chassis").on_body is None
    assert spring("chassis.fx").on_body is None
    assert offset("chassis.fx").on_body == ("chassis", 0) and offset("fx").on_body is None


def test_friction_of_each_direction_and_stribeck() -> None:
    assert [e.parameter_name for e in asymmetric("q1")] == ["fsp_q1", "fsn_q1", "hp_q1", "hn_q1"]
    curve = stribeck("q1", 0.05, 0.4)
    assert (curve.parameter_name, curve.constants["speed"], curve.value) == ("fst_q1", 0.05, 0.4)
    assert repr(pickle.loads(pickle.dumps(curve))) == repr(curve)
    with pytest.raises(ModelError, match=r"constant 'speed' is out of bounds[\s\S]*between 0 and inf, found -1.0"):
        Tree.build([Body("1")], elements=[stribeck("q1", -1.0)])
    with pytest.raises(ModelError, match=r"needs the constant 'speed': the speed at which half of it is left"):
        Tree.build([Body("1")], elements=[Element(kind="stribeck", on={"q1": 1.0})])
    with pytest.raises(
        ModelError,
        match=r"its kind, damper, has no constant 'speed'\.[\s\S]*Kinds that have one: stribeck, tanh_friction, lugre",
    ):
        Tree.build([Body("1")], elements=[Element(kind="damper", on={"q1": 1.0}, constants={"speed": 2.0})])


def test_elements_are_hashable_and_pickle() -> None:
    e = Element(kind="spring", on={"z1": 1.0, "z2": -1.0}, value=3.0, name="karf", typical=2.0, unit="N/m")
    again = pickle.loads(pickle.dumps(e))
    assert again == e
    assert hash(again) == hash(e)
    assert len({e, again}) == 1


def test_units_follow_the_kind_of_coordinate() -> None:
    bodies = [Body("1"), Body("2", "1", "sliding")]
    elements = [
        Element(
            kind=kind,
            on={c: 1.0},
            signal="i" if KINDS[kind].signal else "",
            constants={constant.key: 1.0 for constant in KINDS[kind].constants if constant.required},
            formula="c" if kind == "law" else "",
            table=LawTable((0.0, 1.0), (0.0, 1.0)) if kind == "table" else None,
        )
        for kind in KINDS
        if kind != "drag" and not KINDS[kind].wheel
        for c in ("q1", "q2")
    ]
    p = Tree.build(
        bodies,
        elements=[
            *elements,
            drag("1.fx"),
            drag("1.mz"),
            Element(kind="spring", on={"q1": 1.0}, name="u", unit="N*m/turn"),
        ],
    ).parameters
    unit = dict(zip(p.names, p.units, strict=True))
    assert (unit["k_q1"], unit["k_q2"]) == ("N*m/rad", "N/m")
    assert (unit["off_q1"], unit["off_q2"]) == (unit["g_q1"], unit["gt_q2"]) == ("N*m", "N")
    assert (unit["h_q1"], unit["h_q2"]) == ("N*m*s/rad", "N*s/m")
    assert (unit["fs_q1"], unit["fs_q2"]) == ("N*m", "N")
    assert (unit["Ia_q1"], unit["Ia_q2"]) == ("kg*m^2", "kg")
    assert (unit["K_q1"], unit["K_q2"]) == ("N*m/A", "N/A")
    assert (unit["C_1_fx"], unit["C_1_mz"]) == ("N/(m/s)^2", "N*m/(m/s)^2")
    assert unit["u"] == "N*m/turn"


def test_constants_have_the_order_of_their_kind() -> None:
    one = Element(kind="stribeck", on={"q1": 1.0}, constants={"exponent": 1.5, "speed": 0.2})
    other = Element(kind="stribeck", on={"q1": 1.0}, constants={"speed": 0.2, "exponent": 1.5})
    assert list(one.constants) == list(other.constants) == ["speed", "exponent"]
    assert hash(one) == hash(other)
