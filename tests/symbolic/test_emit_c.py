"""Expressions as C99: what gcc makes of them has the numbers of the graph, and the text is fit for a controller."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from strangers.compiled_c import compile_c, name_of
from strangers.evaluate import evaluate, twins
from veridyn.symbolic.emit_c import Argument, CSource, emit_c
from veridyn.symbolic.expression import Graph, Number, count

X = Argument("x", 3, "what goes in")
Y = Argument("y", 4, "what comes out", output=True)


def every_operation(g: Graph) -> list[Number]:
    a, b, c = g.inputs_named("abc")
    return [
        (a * b - c) / (1.0 + b * b),
        -g.sin(a) * g.cos(b) + 0.1,
        g.sign(c) * g.abs(a - b) + g.sqrt(a * a + 1e-5),
        -(2.0 * a) + g.sqrt(-(0.0 - b * b)),
    ]


def source(g: Graph, outputs: list[Number], name: str = "f", comment: str = "f") -> CSource:
    places = [(f"y[{k}]", value) for k, value in enumerate(outputs)]
    inputs = {n: f"x[{k}]" for k, n in enumerate("abc")}
    return emit_c(name, g, places, inputs, [X, Argument("y", len(outputs), "what comes out", output=True)], comment)


def test_every_operation(tmp_path: Path) -> None:
    g = Graph()
    outputs = every_operation(g)
    call = compile_c(source(g, outputs), tmp_path, 4)
    for x in np.random.default_rng(0).normal(size=(50, 3)):
        expected = np.array(evaluate(g, outputs, dict(zip("abc", x, strict=True))))
        assert call([x]) == pytest.approx(expected, rel=1e-14, abs=1e-14)
    assert call([[1.0, 2.0, 0.0]])[2] == pytest.approx(np.sqrt(1.0 + 1e-5))  # sign(0) = 0


@pytest.mark.parametrize("seed", range(3))
def test_random_graphs(tmp_path: Path, seed: int) -> None:
    g, rng = Graph(), np.random.default_rng(seed)
    inputs = {n: np.array(rng.normal()) for n in "abc"}
    pool = twins(rng, g, inputs, 300)[::9]
    call = compile_c(source(g, [t.symbol for t in pool]), tmp_path, len(pool))
    assert call([[inputs[n] for n in "abc"]]) == pytest.approx([float(t.number) for t in pool], rel=1e-11, abs=1e-11)


def test_outputs_that_are_inputs_or_constants(tmp_path: Path) -> None:
    g = Graph()
    a, _, _ = g.inputs_named("abc")
    call = compile_c(source(g, [a, -a, 2.0, -0.5, 0.0, 1e-300]), tmp_path, 6)
    assert call([[0.3, 0.0, 0.0]]).tolist() == [0.3, -0.3, 2.0, -0.5, 0.0, 1e-300]


def test_arguments_that_nothing_needs_do_not_warn(tmp_path: Path) -> None:
    g = Graph()
    g.inputs_named("abc")
    assert compile_c(source(g, [1.0]), tmp_path, 1)([[0.0] * 3]).tolist() == [1.0]


def test_the_header() -> None:
    g = Graph()
    made = source(g, every_operation(g), "my_function", "what it is")
    assert name_of(made) == "my_function"
    assert "#ifndef MY_FUNCTION_H" in made.header and 'extern "C"' in made.header
    assert "void my_function(const double x[3], double y[4]);" in made.header
    assert "x[3]: what goes in" in made.header and "y[4]: what comes out" in made.header
    assert made.header.startswith("/* what it is") and made.code.startswith("/* what it is")


def test_the_count_is_in_the_comment() -> None:
    g = Graph()
    outputs = every_operation(g)
    made = source(g, outputs)
    assert str(count(g, outputs)) in made.header and str(count(g, outputs)) in made.code


def test_no_allocation_and_one_header_only() -> None:
    g = Graph()
    text = source(g, every_operation(g)).code
    assert not re.search(r"\b(malloc|calloc|realloc|alloca|free|static)\b", text)
    assert re.findall(r"#include (.*)", text) == ['"f.h"', "<math.h>"]
    called = set(re.findall(r"\b([a-z]+)\(", text)) - {"f"}
    assert called <= {"sin", "cos", "sqrt", "fabs"}


def test_each_operation_is_written_once() -> None:
    g = Graph()
    a, b, _ = g.inputs_named("abc")
    shared = g.sin(a) * b
    text = source(g, [shared + a, shared - a, -shared]).code
    assert text.count("sin(") == 1 and text.count(" * ") == 2  # one product, one star of the comment


@pytest.mark.parametrize("words", ["*/ int x; /*", "/*", "**//", "//*//", "a\nb", "µ*/é"])
def test_words_cannot_end_the_comment(tmp_path: Path, words: str) -> None:
    g = Graph()
    a, _, _ = g.inputs_named("abc")
    made = emit_c("f", g, [("y[0]", a * 2.0)], {"a": "x[0]"}, [Argument("x", 1, words), Y], words)
    assert compile_c(made, tmp_path, 1)([[1.5]]).tolist() == [3.0]
