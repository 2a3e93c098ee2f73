"""Laws by points against SciPy's own interpolation and quadrature, and tables that are none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import PchipInterpolator

from veridyn.elements import LawTable, table
from veridyn.errors import ModelError
from veridyn.spatial.algebra import ARRAYS
from veridyn.symbolic.expression import Graph, evaluate, forward

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
