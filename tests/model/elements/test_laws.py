"""Elements with inner constants or states, made by name: every kind that needs more than a gain can be made, and gives its law."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from veridyn import elements
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements import laws
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.motion import Motion

MADE: dict[str, tuple[Element, dict[str, float]]] = {
    "tanh_friction": (laws.tanh_friction("q1", 0.1, 2.0), {"speed": 0.1}),
    "cubic": (laws.cubic("q1", 2.0, rest=0.3), {"rest": 0.3}),
    "bump_stop": (laws.bump_stop("q1", 0.2, 2.0), {"gap": 0.2}),
    "dead_zone": (laws.dead_zone({"q1": -1.0}, 0.2, 2.0), {"gap": 0.2}),
    "lugre": (
        laws.lugre("q1", 1e-3, 1e-2, 2.0, ratio=1.5, speed=0.2),
        {"deflection": 1e-3, "time": 1e-2, "ratio": 1.5, "speed": 0.2},
    ),
    "maxwell": (laws.maxwell("q1", 0.4, 2.0), {"time": 0.4}),
    "relaxation": (laws.relaxation("q1", 0.6, "speed", 2.0), {"length": 0.6}),
}


@pytest.mark.parametrize("kind", MADE)
def test_the_element_has_its_kind_value_and_constants(kind: str) -> None:
    element, constants = MADE[kind]
    assert element.kind == kind and element.value == 2.0 and dict(element.constants) == constants
    tree = Tree.build([Body("1")], elements=[element])
    assert tree.parameters.names[-1] == f"{KINDS[kind].symbol}_q1"


def test_every_kind_with_inner_constants_has_a_function_in_the_public_module() -> None:
    for kind, law in KINDS.items():
        if any(constant.required for constant in law.constants):
            maker = kind.removeprefix("linear_")  # both tyres are made by one function, with the kind as an argument
            assert inspect.isfunction(getattr(elements, maker)), kind


def test_the_laws_are_the_closed_forms() -> None:
    """Columns of the regressor against the formulas of the table, written out here."""
    from veridyn.mechanics.tree.dynamics.regressor import regressor

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
