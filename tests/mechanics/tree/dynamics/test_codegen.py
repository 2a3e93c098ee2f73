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
from strangers.machines import any_motion, branched_arm
from strangers.random_trees import random_inertia, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.codegen import c_source
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.symbolic.expression import count

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
