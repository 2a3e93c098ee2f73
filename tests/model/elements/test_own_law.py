"""Formulas of laws: their values against NumPy's own functions, what is refused, and numbers in place of names."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.elements import law
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.own_law import FUNCTIONS, LawInputs, read_formula, with_numbers
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS

X = np.linspace(0.05, 0.9, 18)
V, Y, YD, T = np.cos(3.0 * X), X[::-1] - 0.4, np.sin(5.0 * X), 20.0 + X
INPUTS = LawInputs(
    position=lambda: X,
    rate=lambda: V,
    coordinate={"y": Y}.__getitem__,
    speed={"y": YD}.__getitem__,
    signal={"T": T, "y": T}.__getitem__,
    algebra=ARRAYS,
)
BY_NUMPY = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "step": lambda x: np.heaviside(x, 0.5), "min": np.minimum, "max": np.maximum
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_numpy(name: str) -> None:
    own = BY_NUMPY.get(name) or getattr(np, name)
    if name in ("min", "max"):
        assert read_formula(f"{name}(c, y)").value(INPUTS) == pytest.approx(own(X, Y), rel=1e-14, abs=1e-15)
    else:
        assert read_formula(f"{name}(c)").value(INPUTS) == pytest.approx(own(X), rel=1e-14)
        if name not in ("sqrt", "log"):
            assert read_formula(f"{name}(-c)").value(INPUTS) == pytest.approx(own(-X), rel=1e-14)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("c**3 - 2*c", X**3 - 2 * X),
        ("-c**2", -(X**2)),
        ("c**-2 + c**0", X**-2.0 + 1.0),
        ("abs(v)**1.5*sign(v)", np.abs(V) ** 1.5 * np.sign(V)),
        ("abs(v)**(1/3)", np.abs(V) ** (1 / 3)),
        ("rate(y)*y + rate(c)", YD * Y + V),
        ("v*(signal(T) - 20)/10", V * (T - 20) / 10),
        ("pi/2 - +1", np.full(1, np.pi / 2 - 1)),
    ],
)
def test_formulas(text: str, value: np.ndarray) -> None:
    assert read_formula(text).value(INPUTS) == pytest.approx(value, rel=1e-13)


def test_what_a_formula_uses() -> None:
    f = read_formula("sign(rate(q2))*c + q3*signal(heat) + pi")
    assert (f.coordinates, f.speeds, f.signals, f.own) == (("q3",), ("q2",), ("heat",), {"c"})
    assert f.jumps and not f.smooth and not f.of_position
    assert read_formula("exp(c)").of_position and read_formula("exp(c)").smooth


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').system('echo')", "tries to run code"),
        ("c.__class__", "tries to run code"),
        ("open(c)", "it calls 'open'"),
        ("(lambda: 1)()", "tries to run code"),
        ("[c for x in (1, 2)]", "tries to run code"),
        ("c if v else 1", "is not a formula"),
        ("c > 1", "is not a formula"),
        ("c^2", r"2\*\*3"),
        ("2**c", "exponent is not a number"),
        ("c**0.5", "not a whole number"),
        ("c**9999", "At most 20"),
        ("sin(c, v)", "with 2 values"),
        ("max(c)", "It takes two"),
        ("rate(2*c)", "the name of a coordinate"),
        ("signal(3)", "the name of a measured signal"),
        ("c/(1 - 1)", "divides by zero"),
        ("1e300*1e300*c", "finite"),
        ("log(-1)*c", "root or logarithm"),
        ("c*0", "zero everywhere"),
        ("", "none is given"),
        ("c +", "is not a formula"),
        ("c" * 301, "has 301 characters"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        law("q1", text)


def one(formula: str) -> Tree:
    bodies = [Body("x", joint="sliding"), Body("y", antecedent="x", joint="sliding")]
    tens = {name: [0.0] * 9 + [1.0] for name in ("x", "y")}
    return Tree.build(bodies, inertia=tens, gravity=(0, 0, 0), elements=[law("x", formula, 2.0)])


def test_names_that_are_no_coordinates_are_refused_with_the_next_best() -> None:
    with pytest.raises(ModelError, match=r"(?s)element 'g_x'.*names 'z', which is no coordinate.*signal\(z\)"):
        one("c*z")
    with pytest.raises(ModelError, match="which is a coordinate, and what the element acts on"):
        Tree.build(
            [Body("v", joint="sliding"), Body("b", antecedent="v", joint="sliding")], elements=[law("b", "v**2")]
        )


def test_a_motion_on_which_a_law_has_no_value_is_refused() -> None:
    q = np.array([[0.5, 0.0], [-0.5, 0.0], [0.2, 0.0]])
    m = Motion(np.arange(3.0), q, 0 * q, 0 * q)
    assert np.isfinite(inverse_dynamics(one("sqrt(abs(c))"), m)).all()
    with pytest.raises(DataError, match=r"(?s)'sqrt\(c\)' is not a number.*1 of 3 samples, the first at 1 s"):
        inverse_dynamics(one("sqrt(c)"), m)
    with pytest.raises(DataError, match="needs the signal 'heat'"):
        inverse_dynamics(one("v*signal(heat)"), m)


def test_numbers_in_place_of_names() -> None:
    text = with_numbers("(c - rest)**2*y + rate(y) + signal(y)", {"rest": -0.25, "y": 2.0}, shift=0.5, still=True)
    assert read_formula(text).value(INPUTS) == pytest.approx((X + 0.5 + 0.25) ** 2 * 2.0 + T)
    assert with_numbers("c**3", {"rest": 1.0}) == "c**3"
