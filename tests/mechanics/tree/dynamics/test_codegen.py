"""C for a controller, through gcc: inverse dynamics, forward dynamics and the regressor of NumPy, to 1e-12."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strangers.cars import UNSPRUNG_20, car_20
from strangers.compiled_c import compile_c, name_of
from strangers.evaluate import evaluate, twins
from strangers.machines import any_motion, branched_arm
from strangers.random_trees import random_inertia, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.codegen import Argument, CSource, c_source, emit_c
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.symbolic.expression import Graph, Number, count

N = 4


def arm() -> Tree:
    tree = random_tree(np.random.default_rng(5), bodies=5, kinds=("turning", "sliding"), branched=False)
    return replace(tree, name="arm")


TREES = {
    "arm": arm,
    "car with drag": lambda: tree_of(car_20(elements=True)),
    "tree with drive gains": lambda: tree_of(branched_arm()),
}


def loaded(tree: Tree) -> tuple[Motion, tuple[str, ...]]:
    """A motion with wrenches on the car's unsprung masses, else on the last two bodies, and the bodies in an order of their own."""
    motion = any_motion(tree, N, wrenches=False)
    bodies = tuple(str(j) for j in UNSPRUNG_20) if tree.base == "free" else (tree.bodies[-1].name, tree.bodies[1].name)
    rng = np.random.default_rng(8)
    return replace(motion, wrenches={b: rng.normal(size=(N, 6)) for b in bodies}), bodies


def arguments(tree: Tree, motion: Motion, k: int, third: np.ndarray, bodies: Sequence[str]) -> list[np.ndarray]:
    """What the C function takes before its parameters and its output, in the order its documentation gives."""
    given = [motion.q[k], motion.qd[k], third[k]]
    if motion.base is not None:
        b = motion.base
        given.append(np.concatenate([b.omega[k], b.omega_dot[k], b.acceleration[k], b.velocity[k]]))
    if bodies:
        given.append(np.concatenate([motion.wrenches[b][k] for b in bodies]))
    names = dict.fromkeys(e.signal for e in tree.elements if e.kind == "drive_gain")
    if names:
        given.append(np.array([motion.signals[s][k] for s in names]))
    return given


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-12) -> bool:
    return bool(np.abs(a - b).max() <= tolerance * np.abs(b).max())


@pytest.mark.parametrize("name", TREES)
def test_inverse_dynamics(tmp_path: Path, name: str) -> None:
    tree = TREES[name]()
    motion, bodies = loaded(tree)
    call = compile_c(c_source(tree, "inverse", wrenches=bodies), tmp_path, len(tree.rows))
    phi = tree.parameters.values
    found = np.array([call([*arguments(tree, motion, k, motion.qdd, bodies), phi]) for k in range(N)])
    assert close(found, inverse_dynamics(tree, motion, engine="numpy"))


@pytest.mark.parametrize("name", TREES)
def test_forward_dynamics(tmp_path: Path, name: str) -> None:
    """The solve's condition passes rounding on; 1e-12 of the largest acceleration all the same."""
    tree = TREES[name]()
    if tree.base == "free":  # every coordinate of the car must move some mass
        tree = moving_car()
    motion, bodies = loaded(tree)
    call = compile_c(c_source(tree, "forward", wrenches=bodies), tmp_path, len(tree.rows))
    found = np.array(
        [call([*arguments(tree, motion, k, motion.forces, bodies), tree.parameters.values]) for k in range(N)]
    )
    caused = forward_dynamics(tree, motion, engine="numpy")
    exact = caused.qdd
    if caused.base is not None:
        exact = np.hstack([caused.base.acceleration, caused.base.omega_dot, caused.qdd])
    assert close(found, exact)


def moving_car() -> Tree:
    """The car of 20 degrees of freedom with inertia on every body, so that each coordinate can be accelerated."""
    car, rng = tree_of(car_20("all", elements=True)), np.random.default_rng(0)
    values = car.parameters.values.copy()
    for k in range(sum(b.real for b in car.bodies)):
        if not np.isfinite(values[10 * k : 10 * k + 10]).all():
            values[10 * k : 10 * k + 10] = random_inertia(rng)
    return car.with_parameters(values)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "car with drag" else ()) for n in TREES]
)
def test_regressor(tmp_path: Path, name: str) -> None:
    tree = TREES[name]()
    motion, _ = loaded(tree)
    size = len(tree.rows) * len(tree.columns)
    call = compile_c(c_source(tree, "regressor", wrenches=("1",)), tmp_path, size)
    D = regressor(tree, motion, engine="numpy")
    found = np.array([call(arguments(tree, motion, k, motion.qdd, ())) for k in range(N)])
    assert close(found.reshape(D.shape), D)


@pytest.mark.parametrize("quantity", ["inverse", "forward", "regressor"])
def test_the_text_is_fit_for_a_controller(quantity: str) -> None:
    source = c_source(tree_of(branched_arm()), quantity)
    assert not re.search(r"\b(malloc|calloc|realloc|free|alloca|printf|static)\b", source.code)
    assert name_of(source) == f"branched_arm_{quantity}"
    tree = tree_of(branched_arm())
    wanted = tuple(range(len(tree.columns))) if quantity == "regressor" else ()
    f = formula(tree, Request(quantity, tuple(range(len(tree.rows))), wanted))
    assert str(count(f.graph, f.outputs)) in source.code and str(count(f.graph, f.outputs)) in source.header
    for word in ("q1, q2, q4", "current of 2"):
        assert word in source.header
    assert all(p in source.header for p in tree.parameters.names)
    assert "veridyn" in source.code


def simple(name: str, body: str = "1") -> Tree:
    return Tree.build([Body(body)], name=name, inertia={body: [1, 0, 0, 1, 0, 1.5, 0.2, 0, 0, 2]})


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("7 dof", "model_7_dof"),
        ("*/", "model_"),
        ("/*", "model_"),
        ("", "model_"),
        ("Élan nº 3", "lan_n_3"),
        ("a\nb", "a_b"),
    ],
)
@pytest.mark.parametrize("body", ["1", "/* odd */ body"])
def test_odd_names(tmp_path: Path, name: str, identifier: str, body: str) -> None:
    tree = simple(name, body)
    source = c_source(tree)
    assert name_of(source) == f"{identifier}_inverse"
    call = compile_c(source, tmp_path, 1)
    gravity_free = call([[0.3], [0.0], [2.0], tree.parameters.values])
    assert gravity_free == pytest.approx([3.0])


def test_a_name_of_one_s_own(tmp_path: Path) -> None:
    source = c_source(simple("x"), name="torque_of_arm")
    assert name_of(source) == "torque_of_arm"
    assert compile_c(source, tmp_path, 1)([[0.3], [0.0], [2.0], simple("x").parameters.values]) == pytest.approx([3.0])


@pytest.mark.parametrize("name", ["7 dof", "a-b", "double", "x;", "é"])
def test_a_name_that_is_none_in_c_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="is no name for a C function"):
        c_source(simple("x"), name=name)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(DataError, match="there is no C for 'mass'"):
        c_source(arm(), "mass")
    with pytest.raises(ModelError, match="there is no body 'elbow'"):
        c_source(arm(), wrenches=["elbow"])


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
