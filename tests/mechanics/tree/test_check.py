"""Every fault of a description is found, named, and reported with the others."""

from collections.abc import Sequence

import numpy as np
import pytest

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.tree.check import check_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, coulomb, drag, drive_gain, offset, spring
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH, Placement

A, B = Body("a"), Body("b", "a", "sliding")
G = np.array([0.0, 0.0, -9.81])
SPHERE = from_centre(2.0, [0.1, 0.0, 0.0], np.eye(3))


def check(
    bodies: Sequence[Body] = (A, B),
    elements: Sequence[Element] = (),
    inertia: dict[str, np.ndarray] | None = None,
    base: str = "fixed",
    gravity: np.ndarray = G,
) -> list[Fault]:
    return check_tree(bodies, elements, inertia or {}, base, gravity)


def only(faults: list[Fault]) -> str:
    assert len(faults) == 1, faults
    return str(faults[0])


def test_nothing_wrong() -> None:
    good = [spring("a"), coulomb({"b": -1.0}), drag("b.fx"), drive_gain("a", "i")]
    assert not check(elements=good, inertia={"a": SPHERE, "b": np.full(10, np.nan)})


BODIES = {
    "none": ((), "bodies: there is no body."),
    "unknown antecedent": (
        (A, Body("b", "aa")),
        "body 'b': its antecedent 'aa' is not a body of this model.\nKnown: a. Did you mean 'a'?",
    ),
    "cycle": (
        (A, Body("b", "c"), Body("c", "b")),
        "body 'b': it is its own ancestor, so this is not a tree.\nFound b → c → b.",
    ),
    "own antecedent": ((A, Body("b", "b")), "Found b → b."),
    "two roots": (
        (Body("a", None), Body("b", None)),
        "body 'b': two roots: 2 bodies name no antecedent: a, b.\nName its antecedent",
    ),
    "duplicate names": ((A, Body("a", "ground", "fixed")), "body 'a': the name is used 2 times."),
    "called ground": ((Body("ground", None, "fixed"),), "body 'ground': this name is taken by the ground."),
    "kind of joint": (
        (Body("a", joint="helical", coordinate="q"),),
        "body 'a': 'helical' is no kind of joint.\nExpected turning (σ 0),",
    ),
    "NaN placement": ((Body("a", placement=MDH(d=np.nan)),), "body 'a': its placement holds NaN or infinite numbers."),
    "no rotation": (
        (Body("a", placement=Placement(2 * np.eye(3))),),
        "body 'a': its placement is not a rotation and a position.",
    ),
    "mirror": ((Body("a", placement=Placement(np.diag([1, 1, -1]))),), "determinant 1"),
    "wrong shape": ((Body("a", placement=Placement(np.eye(2))),), "its placement is not a rotation and a position."),
    "two lengths": ((Body("a", placement=Placement(position=[0, 1])),), "three lengths"),
    "ratio": (
        (Body("a", ratio=0.0),),
        "body 'a': its ratio to the coordinate must be a number other than zero.\nFound 0.0.",
    ),
    "taken coordinate": (
        (A, Body("q7", "a", coordinate="x"), Body("x", "a")),
        "body 'x': its coordinate 'x' is also that of body 'q7'.",
    ),
    "shared by two kinds": (
        (Body("a", coordinate="s"), Body("b", "a", "sliding", actuated=False, coordinate="s")),
        "body 'b': it shares the coordinate 's' with body 'a', which is of another kind.\n"
        "Expected turning, actuated, found sliding, passive.",
    ),
    "name of rows": ((Body("fx"),), "body 'fx': the coordinate name 'fx' is the name of rows."),
    "label": ((A, Body("b", "a", label="a")), "body 'b': the label 'a' is used by 2 bodies."),
}


@pytest.mark.parametrize(("bodies", "message"), BODIES.values(), ids=BODIES.keys())
def test_bodies(bodies: Sequence[Body], message: str) -> None:
    assert message in only(check(bodies))


def test_shared_coordinates_are_no_fault() -> None:
    assert not check([Body("a", coordinate="s"), Body("b", "a", coordinate="s", ratio=-2.0)])


def test_several_bodies_on_the_ground_are_no_fault() -> None:
    assert not check([Body("a"), Body("b"), Body("c", None)])


def test_free_base() -> None:
    root = Body("a", None, "fixed")
    assert not check([root, B], base="free")
    assert "a free tree has one root, and 2 bodies have no antecedent: a, b" in only(
        check([root, Body("b", None, "fixed")], base="free")
    )
    assert "the root of a free tree moves freely and has no joint, but this one is turning" in only(
        check([A], base="free")
    )


def test_base_and_gravity() -> None:
    assert "Expected 'fixed' or 'free', found 'floating'." in only(check([Body("a", None, "fixed")], base="floating"))
    assert "gravity: gravity is not a vector." in only(check(gravity=np.array([0.0, np.nan, 0.0])))
    assert "three finite numbers" in only(check(gravity=np.array([9.81])))


INERTIAS = {
    "unknown body": ({"c": SPHERE}, "body 'c': inertia is given for a body that does not exist."),
    "wrong shape": (
        {"a": np.ones(6)},
        "body 'a': its inertia is not ten numbers.\nExpected XX XY XZ YY YZ ZZ MX MY MZ M, found (6,).",
    ),
    "infinite": ({"a": np.full(10, np.inf)}, "body 'a': its inertia holds infinite numbers."),
    "negative mass": ({"a": np.array([0.0] * 9 + [-1.0])}, "the mass is -1 kg, below zero"),
    "triangle": ({"a": np.array([1, 0, 0, 1, 0, 3, 0, 0, 0, 1.0])}, "1 + 1 < 3 breaks the triangle inequality"),
    "moment without mass": ({"a": np.array([1, 0, 0, 1, 0, 1, 1, 0, 0, 0.0])}, "belong to a mass of 0 kg"),
    "centre too far out": ({"a": np.array([1, 0, 0, 1, 0, 1, 5, 0, 0, 1.0])}, "is below zero"),
}


@pytest.mark.parametrize(("inertia", "message"), INERTIAS.values(), ids=INERTIAS.keys())
def test_inertias(inertia: dict[str, np.ndarray], message: str) -> None:
    assert message in only(check(inertia=inertia))


def test_virtual_bodies_have_no_inertia() -> None:
    virtual = [A, Body("b", "a", real=False)]
    assert "body 'b': a virtual body has no inertia, but some is given." in only(check(virtual, inertia={"b": SPHERE}))
    assert not check(virtual, inertia={"b": np.zeros(10)})


ELEMENTS = {
    "kind": (Element(kind="sprung", on={"a": 1.0}), "'sprung' is no kind of element.\nKnown: spring, offset,"),
    "nothing": (Element(kind="spring", on={}, name="k"), "element 'k': it acts on nothing."),
    "no coordinate": (spring("c"), "element 'k_c': there is no coordinate 'c'.\nKnown: a, b."),
    "mixed": (
        spring({"a": 1.0, "b": 1.0}),
        "element 'k_a_b': it mixes turning and sliding coordinates, so its parameter has no unit.\nFound a turning, b sliding.",
    ),
    "zero coefficient": (spring({"a": 0.0}), "its coefficients must be numbers other than zero.\nFound {'a': 0.0}."),
    "infinite": (spring("a", np.inf), "element 'k_a': its value is infinite."),
    "no signal": (
        Element(kind="drive_gain", on={"a": 1.0}),
        "element 'K_a': a drive gain multiplies a measured signal, and none is named.",
    ),
    "drag on a coordinate": (
        drag("a"),
        "element 'C_a': drag cannot act on 'a'.\nExpected one component fx, fy, fz, mx, my, mz of a body, as in 'a.fx'.",
    ),
    "drag on no body": (drag("c.fx"), "drag cannot act on 'c.fx'"),
    "offset on no body": (offset("c.fx"), "an offset cannot act on 'c.fx'"),
    "name of an inertia": (spring("a", name="XX_a"), "element 'XX_a': its name is that of an inertial parameter."),
}


@pytest.mark.parametrize(("element", "message"), ELEMENTS.values(), ids=ELEMENTS.keys())
def test_elements(element: Element, message: str) -> None:
    assert message in only(check(elements=[element]))


def test_elements_with_one_name() -> None:
    faults = check(elements=[spring("a"), spring("a"), coulomb("a", name="k_a")])
    assert "element 'k_a': the parameter name is used by 3 elements." in only(faults)


def test_everything_at_once() -> None:
    with pytest.raises(ModelError) as caught:
        Tree.build([A, Body("b", "x")], name="m", gravity=[0, 0], elements=[spring("z")], inertia={"a": -SPHERE})
    assert [fault.where for fault in caught.value.faults] == ["body 'b'", "body 'a'", "element 'k_z'", "gravity"]
    assert str(caught.value).startswith("m, 4 faults:\n1. body 'b': its antecedent")
