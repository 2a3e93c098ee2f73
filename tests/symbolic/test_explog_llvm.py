"""Exponential and logarithm of compiled code against NumPy's, over the whole range, and their derivatives against complex steps."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.evaluate import evaluate
from veridyn.symbolic.derivative import forward, reverse
from veridyn.symbolic.emit_llvm import BLOCK, emit
from veridyn.symbolic.expression import Graph
from veridyn.symbolic.host import this_host
from veridyn.symbolic.kernel import Kernel, compile_object, padded


def computed(function: str, x: np.ndarray, single: bool = False) -> np.ndarray:
    """A function of one input by compiled code."""
    graph = Graph()
    host = this_host(1) if single else this_host()
    block = 1 if single else BLOCK
    program = emit(graph, [getattr(graph, function)(graph.input("x"))], ["x"], [], host.width, block)
    kernel = Kernel(compile_object(program.text, host), ("x",), (), 1, program.places, block)
    out = np.zeros(padded(len(x)))
    kernel.run([x], np.zeros(0), np.array([out.ctypes.data], dtype=np.uintp), len(x))
    return out[: len(x)]


@pytest.mark.parametrize("single", [False, True])
def test_exponential_to_two_units_in_the_last_place(single: bool) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-700.0, 700.0, 5000), rng.normal(size=5000), [0.0, 1e-300, -1e-20, 709.0, -708.0]])
    exact = np.exp(x)
    assert (np.abs(computed("exp", x, single) - exact) <= 2.0 * np.spacing(exact)).all()
    assert computed("exp", np.array([-800.0, -np.inf, 800.0]), single).tolist() == [0.0, 0.0, np.inf]


@pytest.mark.parametrize("single", [False, True])
def test_logarithm_to_two_units_in_the_last_place(single: bool) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([np.exp(rng.uniform(-700.0, 700.0, 5000)), 1.0 + 0.4 * rng.uniform(-1.0, 1.0, 5000), [1.0, 2.0]])
    exact = np.log(x)
    assert (np.abs(computed("log", x, single) - exact) <= 2.0 * np.spacing(np.abs(exact))).all()
    odd = computed("log", np.array([0.0, -1.0]), single)
    assert odd[0] == -np.inf and np.isnan(odd[1])


def test_derivatives_are_those_of_complex_steps() -> None:
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    f = graph.exp(-x * y) * graph.log(x + y * y) + graph.exp(graph.log(x) * 0.3)
    at = {"x": 0.7, "y": -1.3}
    for by, name in ((x, "x"), (y, "y")):
        step = evaluate(graph, [f], {**at, name: at[name] + 1e-30j})[0].imag / 1e-30
        assert float(evaluate(graph, forward(graph, [f], [by])[0], at)[0].real) == pytest.approx(float(step), rel=1e-13)
        assert float(evaluate(graph, reverse(graph, f, [by]), at)[0].real) == pytest.approx(float(step), rel=1e-13)
