"""Elements: names, what they act on, that they travel between processes, and the laws of each kind in closed form.

Laws by points against SciPy's own interpolation and quadrature, and tables that are none.
"""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import PchipInterpolator

from veridyn import elements
from veridyn.elements import table
from veridyn.errors import ModelError
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import (
    WRENCH_ROWS,
    Element,
    LawTable,
    asymmetric,
    bump_stop,
    coulomb,
    cubic,
    damper,
    dead_zone,
    drag,
    drive_gain,
    lugre,
    maxwell,
    motor_inertia,
    offset,
    relaxation,
    spring,
    stribeck,
    tanh_friction,
)
from veridyn.model.elements.kinds import KINDS
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS
from veridyn.symbolic.expression import Graph, evaluate, forward

MADE: dict[str, tuple[Element, dict[str, float]]] = {
    "tanh_friction": (tanh_friction("q1", 0.1, 2.0), {"speed": 0.1}),
    "cubic": (cubic("q1", 2.0, rest=0.3), {"rest": 0.3}),
    "bump_stop": (bump_stop("q1", 0.2, 2.0), {"gap": 0.2}),
    "dead_zone": (dead_zone({"q1": -1.0}, 0.2, 2.0), {"gap": 0.2}),
    "lugre": (
        lugre("q1", 1e-3, 1e-2, 2.0, ratio=1.5, speed=0.2),
        {"deflection": 1e-3, "time": 1e-2, "ratio": 1.5, "speed": 0.2},
    ),
    "maxwell": (maxwell("q1", 0.4, 2.0), {"time": 0.4}),
    "relaxation": (relaxation("q1", 0.6, "speed", 2.0), {"length": 0.6}),
}


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


@pytest.mark.parametrize("kind", MADE)
def test_the_element_has_its_kind_value_and_constants(kind: str) -> None:
    element, constants = MADE[kind]
    assert element.kind == kind and element.value == 2.0 and dict(element.constants) == constants
    tree = Tree.build([Body("1")], elements=[element])
    assert tree.parameters.names[-1] == f"{KINDS[kind].symbol}_q1"


def test_every_kind_with_inner_constants_has_a_function_in_the_public_module() -> None:
    for kind, law in KINDS.items():
        if any(constant.required for constant in law.constants):
            maker = kind.removeprefix("linear_").rstrip("234")  # tyres, and powers along the way, are arguments
            assert inspect.isfunction(getattr(elements, maker)), kind


def test_the_laws_are_the_closed_forms() -> None:
    """Columns of the regressor against the formulas of the table, written out here."""
    from veridyn.mechanics.tree.dynamics.inverse import regressor

    rng = np.random.default_rng(3)
    q, qd = rng.uniform(-1.0, 1.0, (2, 50, 1))
    forms = {
        "tanh_friction": np.tanh(qd / 0.1),
        "cubic": (q - 0.3) ** 3,
        "bump_stop": np.maximum(q - 0.2, 0.0),
        "dead_zone": np.sign(q) * np.maximum(np.abs(q) - 0.2, 0.0),  # −a f(−c) of an odd law f is f(c)
    }
    for kind, expected in forms.items():
        tree = Tree.build([Body("1")], elements=[MADE[kind][0]])
        motion = Motion(np.arange(50.0), q, qd, np.zeros_like(q))
        column = regressor(tree, motion, engine="numpy")[:, :, -1]
        np.testing.assert_allclose(column, expected, rtol=1e-12, atol=1e-13, err_msg=kind)


RNG = np.random.default_rng(3)
AT = np.sort(RNG.uniform(-1.0, 2.0, 9))
X = np.linspace(AT[0], AT[-1], 101)
TABLES = {
    "wild": RNG.normal(size=9),
    "monotone": np.cumsum(RNG.uniform(0.0, 1.0, 9)),
    "flat": np.where(np.arange(9) > 4, 2.0, 0.0),
}


@pytest.mark.parametrize("name", TABLES)
def test_between_points(name: str) -> None:
    f = TABLES[name]
    smooth, straight = (LawTable(tuple(AT), tuple(f), shape=shape) for shape in ("smooth", "linear"))
    assert smooth.value(X, ARRAYS) == pytest.approx(PchipInterpolator(AT, f)(X), rel=1e-13, abs=1e-13)
    assert straight.value(X, ARRAYS) == pytest.approx(np.interp(X, AT, f), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("shape", ["smooth", "linear"])
def test_outside(shape: str) -> None:
    f = TABLES["wild"]
    held, on = (LawTable(tuple(AT), tuple(f), shape=shape, outside=o) for o in ("hold", "extend"))
    far = np.array([AT[0] - 3.0, AT[-1] + 5.0])
    assert held.value(far, ARRAYS) == pytest.approx(f[[0, -1]])
    h = 1e-7
    ends = [(on.value(x + h, ARRAYS) - on.value(x, ARRAYS)) / h for x in (AT[0], AT[-1] - h)]
    assert on.value(far, ARRAYS) == pytest.approx(f[[0, -1]] + np.array([-3.0, 5.0]) * ends, rel=1e-5)


@pytest.mark.parametrize("shape", ["smooth", "linear"])
@pytest.mark.parametrize("outside", ["hold", "extend"])
def test_integral(shape: str, outside: str) -> None:
    t = LawTable(tuple(AT), tuple(TABLES["wild"]), shape=shape, outside=outside)
    for x in (AT[0] - 1.0, AT[0] + 0.3, AT[-1] - 0.1, AT[-1] + 2.0):
        exact = quad(lambda u: float(t.value(u, ARRAYS)), AT[0], x, points=[a for a in AT if a < x], limit=200)[0]
        assert t.integral(x, ARRAYS) == pytest.approx(exact, rel=1e-9, abs=1e-10)


def test_derivatives_of_kernels_are_those_of_the_cubic_at_points_too() -> None:
    f = TABLES["wild"]
    graph = Graph()
    x = graph.input("x")
    t = LawTable(tuple(AT), tuple(f))
    ((slope,),) = forward(graph, [t.value(x, graph)], [x])
    exact = PchipInterpolator(AT, f).derivative()
    for at in (*AT[1:-1], *X[1:-1]):
        assert evaluate(graph, [slope], {"x": float(at)})[0] == pytest.approx(exact(at), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("at", "values", "more", "words"),
    [
        ([0.0, 1.0], [1.0], {}, "2 places, 1 values"),
        ([0.0], [1.0], {}, "two or more"),
        ([0.0, 1.0, 1.0], [1.0, 2.0, 3.0], {}, "1 and then 1"),
        ([0.0, 1.0], [1.0, np.nan], {}, "not finite"),
        (np.arange(300), np.arange(300), {}, "at most 200 points"),
        ([0.0, 1.0], [1.0, 2.0], {"shape": "cubic"}, "(?s)no shape 'cubic'.*smooth or linear"),
        ([0.0, 1.0], [1.0, 2.0], {"outside": "refuse"}, "hold or extend"),
        ([0.0, 1.0], [1.0, 2.0], {"of": "c.real"}, "of: .*tries to run code"),
    ],
)
def test_what_is_no_table_is_refused(at: object, values: object, more: dict[str, str], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        table("q1", at, values, **more)  # pyright: ignore[reportArgumentType]
