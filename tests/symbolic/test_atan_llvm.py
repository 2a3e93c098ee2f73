"""Arc tangent of compiled code against NumPy's, over the whole range, and its derivatives against complex steps."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.evaluate import evaluate
from veridyn.symbolic.derivative import forward, reverse
from veridyn.symbolic.emit_llvm import BLOCK, emit
from veridyn.symbolic.expression import Graph
from veridyn.symbolic.host import this_host
from veridyn.symbolic.kernel import Kernel, compile_object, padded


def computed(x: np.ndarray, single: bool) -> np.ndarray:
    graph = Graph()
    host = this_host(1) if single else this_host()
    block = 1 if single else BLOCK
    program = emit(graph, [graph.atan(graph.input("x"))], ["x"], [], host.width, block)
    kernel = Kernel(compile_object(program.text, host), ("x",), (), 1, program.places, block)
    out = np.zeros(padded(len(x)))
    kernel.run([x], np.zeros(0), np.array([out.ctypes.data], dtype=np.uintp), len(x))
    return out[: len(x)]


@pytest.mark.parametrize("single", [False, True])
def test_arc_tangent_to_two_units_in_the_last_place(single: bool) -> None:
    rng = np.random.default_rng(0)
    edges = np.array([np.sqrt(2.0) - 1.0, np.sqrt(2.0) + 1.0])
    near = (edges[:, None] * (1.0 + np.array([-1e-15, 0.0, 1e-15]))).reshape(-1)
    x = np.concatenate([rng.normal(size=5000), np.exp(rng.uniform(-300.0, 300.0, 5000)), near, [0.0, 1e-300, 1.0]])
    x = np.concatenate([x, -x])
    exact = np.arctan(x)
    assert (np.abs(computed(x, single) - exact) <= 2.0 * np.spacing(np.abs(exact))).all()
    odd = computed(np.array([np.inf, -np.inf, np.nan]), single)
    assert odd[0] == np.pi / 2 and odd[1] == -np.pi / 2 and np.isnan(odd[2])


def test_derivatives_are_those_of_complex_steps() -> None:
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    f = graph.atan(-x * y) * graph.sin(1.7 * graph.atan(x + y * y))
    at = {"x": 0.7, "y": -1.3}
    for by, name in ((x, "x"), (y, "y")):
        step = evaluate(graph, [f], {**at, name: at[name] + 1e-30j})[0].imag / 1e-30
        assert float(evaluate(graph, forward(graph, [f], [by])[0], at)[0].real) == pytest.approx(float(step), rel=1e-13)
        assert float(evaluate(graph, reverse(graph, f, [by]), at)[0].real) == pytest.approx(float(step), rel=1e-13)


def test_a_constant_folds_and_a_sign_stays_outside() -> None:
    graph = Graph()
    x = graph.input("x")
    assert graph.atan(1.0) == np.pi / 4
    assert repr(graph.atan(-x)) == f"-{graph.atan(x)!r}"
