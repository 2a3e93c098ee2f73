"""The recursion on symbols: the same numbers as on arrays, the right inputs, and only the operations that are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from strangers.evaluate import evaluate
from strangers.machines import MACHINES, any_motion, branched_arm, free_machine
from strangers.random_trees import random_placement
from veridyn.mechanics.columns import structure
from veridyn.mechanics.engine import sample_arrays
from veridyn.mechanics.formula import Formula, formula
from veridyn.mechanics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.mechanics.kinematics import jacobian
from veridyn.mechanics.regressor import regressor
from veridyn.mechanics.symbols import Request
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.motion import Motion
from veridyn.spatial.transforms import MDH
from veridyn.symbolic.count import count

N = 9


def given(tree: Tree, f: Formula, motion: Motion, values: np.ndarray | None = None) -> dict[str, Any]:
    """The inputs of a formula along a motion."""
    phi = tree.parameters.values if values is None else values
    inputs: dict[str, Any] = dict(zip(f.samples, sample_arrays(tree, motion, f.samples), strict=True))
    return inputs | {name: phi[int(name[2:])] for name in f.parameters}


def dense(f: Formula, inputs: Mapping[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """(N, *shape) by the second reader of graphs."""
    out = np.zeros((N, *shape))
    for label, value in zip(f.labels, evaluate(f.graph, f.outputs, inputs), strict=True):
        out[(slice(None), *label)] = value
    return out


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-12) -> bool:
    return a.shape == b.shape and bool(np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max()))


def rows_of(tree: Tree) -> tuple[int, ...]:
    return tuple(range(len(tree.rows)))


def bodies_of(tree: Tree, motion: Motion) -> tuple[int, ...]:
    return tuple(sorted(tree.index(b) for b in motion.wrenches))


@pytest.mark.parametrize("name", MACHINES)
def test_inverse_dynamics(name: str) -> None:
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, N)
    f = formula(tree, Request("inverse", rows_of(tree), bodies=bodies_of(tree, motion)))
    found = dense(f, given(tree, f, motion), (len(tree.rows),))
    assert close(found, inverse_dynamics(tree, motion, engine="numpy"))


@pytest.mark.parametrize("name", MACHINES)
def test_regressor_and_its_structure(name: str) -> None:
    """An entry that is zero by structure is absent; every entry that is there may be felt by its row."""
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, N)
    every = tuple(range(len(tree.columns)))
    f = formula(tree, Request("regressor", rows_of(tree), every))
    D = regressor(tree, motion, engine="numpy")
    assert close(dense(f, given(tree, f, motion), D.shape[1:]), D)
    there = set(f.labels)
    absent = [(r, c) for r in rows_of(tree) for c in every if (r, c) not in there]
    assert absent and all(np.array_equal(D[:, r, c], np.zeros(N)) for r, c in absent)
    felt = structure(tree)
    assert all(c in felt[r] for r, c in there)
    assert f.parameters == ()


@pytest.mark.parametrize("name", MACHINES)
def test_forward_dynamics_and_mass(name: str) -> None:
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, N)
    f = formula(tree, Request("forward", rows_of(tree), bodies=bodies_of(tree, motion)))
    found = dense(f, given(tree, f, motion), (len(tree.rows),))
    caused = forward_dynamics(tree, motion, engine="numpy")
    assert close(found[:, len(tree.rows) - tree.n :], caused.qdd, 1e-10)
    if caused.base is not None:
        assert close(found[:, :3], caused.base.acceleration, 1e-10)
        assert close(found[:, 3:6], caused.base.omega_dot, 1e-10)
    checked = formula(tree, Request("forward_checked", rows_of(tree), bodies=bodies_of(tree, motion)))
    both = dense(checked, given(tree, checked, motion), (len(tree.rows) + 1,))
    assert np.array_equal(both[:, :-1], found) and (both[:, -1] > len(tree.rows)).all()  # the last: near to singular
    m = formula(tree, Request("mass"))
    M = dense(m, given(tree, m, motion), (len(tree.rows),) * 2)
    assert close(M, mass_matrix(tree, motion.q, engine="numpy"))
    assert not any(s.startswith(("qd.", "qdd.", "w", "v", "f.", "m.", "s.")) for s in m.samples)


@pytest.mark.parametrize("name", MACHINES)
def test_jacobian(name: str) -> None:
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, N)
    for j, body in enumerate(tree.bodies):
        f = formula(tree, Request("jacobian", bodies=(j,)))
        found = dense(f, given(tree, f, motion), (6, len(tree.rows)))
        assert close(found, jacobian(tree, motion.q, body.name, "body", engine="numpy"))


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives_by_a_complex_step(name: str) -> None:
    """∂Γ/∂q and ∂Γ/∂q̇ against a complex step through the formula of Γ itself, to rounding."""
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, N)
    bodies = bodies_of(tree, motion)
    f = formula(tree, Request("inverse_derivatives", rows_of(tree), bodies=bodies))
    found = dense(f, given(tree, f, motion), (2, len(tree.rows), tree.n))
    gamma = formula(tree, Request("inverse", rows_of(tree), bodies=bodies))
    for which, symbol in enumerate(("q", "qd")):
        for k in range(tree.n):
            inputs = {n: x + 0j for n, x in given(tree, gamma, motion).items()}
            moved = f"{symbol}.{k}"
            if moved in inputs:
                inputs[moved] = inputs[moved] + 1e-30j
            exact = np.zeros((N, len(tree.rows)))
            for label, value in zip(gamma.labels, evaluate(gamma.graph, gamma.outputs, inputs), strict=True):
                exact[:, label[0]] = np.imag(value) / 1e-30
            assert close(found[:, which, :, k], exact)


@pytest.mark.parametrize("name", MACHINES)
def test_equations_sort_columns_by_their_fate(name: str) -> None:
    """Asked columns stay, tied ones are added to another's times a factor, known ones and wrenches go to column −1."""
    tree = tree_of(MACHINES[name]())
    motion = any_motion(tree, N)
    every = len(tree.columns)
    known, tied = {3, every - 1}, {5: (2, -1.5), every - 2: (every - 1, 2.0)}
    fate = []
    for c in range(every):
        to, factor = tied.get(c, (c, 1.0))
        fate.append((c, to, factor, to not in known))
    f = formula(tree, Request("equations", rows_of(tree), tuple(fate), bodies_of(tree, motion)))
    D, phi = regressor(tree, motion, engine="numpy"), tree.parameters.values
    expected = np.zeros((N, len(tree.rows), every + 1))
    expected[:, :, -1] = external_rows(tree, motion)
    for c, to, factor, asked in fate:
        expected[:, :, to if asked else -1] += factor * D[:, :, c] * (1.0 if asked else phi[to])
    found = dense(f, given(tree, f, motion), (len(tree.rows), every + 1))
    assert close(found, expected)
    assert {int(p[2:]) for p in f.parameters} <= known


def test_parameters_are_inputs_and_geometry_is_not() -> None:
    """The formula knows no value of a parameter: other values go in by name."""
    tree = tree_of(branched_arm())
    motion = any_motion(tree, N)
    f = formula(tree, Request("inverse", rows_of(tree), bodies=bodies_of(tree, motion)))
    phi = np.random.default_rng(4).normal(size=len(tree.columns))
    found = dense(f, given(tree, f, motion, phi), (tree.n,))
    assert close(found, inverse_dynamics(tree, motion, parameters=phi, engine="numpy"))
    again = formula(tree.with_parameters(phi), Request("inverse", rows_of(tree), bodies=bodies_of(tree, motion)))
    assert again.graph.constants == f.graph.constants and len(again.graph) == len(f.graph)


def test_only_what_is_asked_is_computed() -> None:
    tree = tree_of(free_machine())
    rows = rows_of(tree)
    every = formula(tree, Request("regressor", rows, tuple(range(len(tree.columns)))))
    few = formula(tree, Request("regressor", rows[-1:], (0, 9, 19)))
    assert count(few.graph, few.outputs).total < count(every.graph, every.outputs).total / 4
    assert {r for r, _ in few.labels} <= {rows[-1]} and {c for _, c in few.labels} <= {0, 9, 19}


def test_friction_is_rounded_off_where_a_speed_is_given() -> None:
    """sign(v) becomes v/(v⁸ + s⁸)^⅛ in the one row that rubs, and nothing else changes."""
    tree = tree_of(branched_arm())
    motion = any_motion(tree, N, wrenches=False)
    speed, rubbing = 0.8, tree.rows.index("q4")
    sharp, smooth = (formula(tree, Request("inverse", rows_of(tree), friction_speed=s)) for s in (0.0, speed))
    a, b = (dense(f, given(tree, f, motion), (tree.n,)) for f in (sharp, smooth))
    v = motion.qd[:, tree.coordinates.index("q4")]
    expected = 0.9 * (v / (v**8 + speed**8) ** 0.125 - np.sign(v))
    assert np.abs((b - a)[:, rubbing] - expected).max() < 1e-12
    assert np.array_equal(np.delete(a, rubbing, axis=1), np.delete(b, rubbing, axis=1))


def test_zeros_and_ones_of_the_geometry_fold() -> None:
    """Right angles and empty lengths cost nothing: the same chain with a general placement asks for far more operations."""
    rng, totals = np.random.default_rng(1), []
    for right in (True, False):
        bodies = [
            Body(str(j), str(j - 1) if j > 1 else "ground", placement=MDH(alpha=np.pi / 2, d=0.3) if right else general)
            for j, general in ((j, random_placement(rng, mdh=False)) for j in range(1, 5))
        ]
        tree = Tree.build(bodies)
        f = formula(tree, Request("inverse", rows_of(tree)))
        totals.append(count(f.graph, f.outputs).total)
    assert totals[0] < 0.65 * totals[1]
