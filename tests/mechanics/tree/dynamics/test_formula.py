"""The recursion on symbols: the same numbers as on arrays, the right inputs, and only the operations that are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from strangers.evaluate import evaluate
from strangers.machines import MACHINES, any_motion, branched_arm, free_machine
from strangers.random_trees import random_placement, random_tree
from veridyn.errors import ModelError
from veridyn.mechanics.tree.dynamics.engine import sample_arrays
from veridyn.mechanics.tree.dynamics.formula import (
    Formula,
    formula,
    reading_derivatives,
    reading_entries,
    solve_and_measure,
    solve_symmetric,
)
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import structure
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.kinematics import jacobian
from veridyn.mechanics.tree.recursion.sensing import outputs_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.spatial.rotations import MDH
from veridyn.symbolic.expression import Graph, count

CAR = Tree.build([Body("car", None, "fixed"), Body("wheel", "car")], base="free")


def test_labels_and_inputs() -> None:
    """The wheel's angle stands seventh in the configuration, sixth in the rates; what is zero has no label."""
    outputs = tuple(outputs_of(CAR, Sensor("e", "coordinate", "wheel", 0.1)))
    f = formula(CAR, Request("reading_derivatives", columns=outputs))
    assert f.samples == ("q.7",) and not f.parameters
    assert dict(zip(f.labels, f.outputs, strict=True))[0, 1 + 6] == 1.0 and set(f.labels) == {(0, 0), (0, 7)}
    rate = tuple(outputs_of(CAR, Sensor("e", "rate", "wheel", 0.1)))
    f = formula(CAR, Request("reading_derivatives", columns=rate))
    assert f.samples == ("qd.6",) and set(f.labels) == {(0, 0), (0, 1 + 7 + 6)}


def test_the_tangent_of_a_place() -> None:
    """r = p + R x: ∂r/∂p = 1 and ∂r/∂θ = −R x~."""
    x, rng = np.array([1.0, 2.0, 3.0]), np.random.default_rng(0)
    outputs = outputs_of(CAR, Sensor("p", "position", Marker("car", x), 0.1))
    graph = Graph()
    found = reading_derivatives(CAR, graph, outputs)
    e = rng.normal(size=4)
    e /= np.linalg.norm(e)
    q = np.concatenate([rng.normal(size=3), e, [0.3]])
    given = {f"q.{k}": v for k, v in enumerate(q)} | {f"{s}.{k}": 0.0 for s in ("qd", "qdd") for k in range(7)}
    values = dict(zip(found, evaluate(graph, list(found.values()), given), strict=True))
    H = np.array([[values[i, 1 + k] for k in range(6)] for i in range(3)])
    w, v = e[0], e[1:]
    R = np.array([a + 2 * np.cross(v, np.cross(v, a) + w * a) for a in np.eye(3)]).T  # Rodrigues, column by column
    assert H[:, :3] == pytest.approx(np.eye(3))
    assert H[:, 3:] == pytest.approx(-R @ np.array([[0, -3, 2], [3, 0, -1], [-2, 1, 0]]))
    entries = reading_entries(CAR, Graph(), outputs)
    assert list(entries) == [(0, 0), (1, 0), (2, 0)]


def entries_of(H: np.ndarray) -> dict[tuple[int, int], object]:
    """Both halves, structural zeros absent; arrays over samples where H is (N, n, n)."""
    wide = H if H.ndim == 3 else H[None]
    places = np.argwhere((wide != 0).any(axis=0))
    return {(int(i), int(j)): H[:, i, j] if H.ndim == 3 else float(H[i, j]) for i, j in places}


def positive(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_floats(n: int) -> None:
    rng = np.random.default_rng(n)
    H, b = positive(rng, n), rng.normal(size=n)
    assert solve_symmetric(entries_of(H), b.tolist()) == pytest.approx(np.linalg.solve(H, b), rel=1e-12)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(4))
def test_mass_matrices_of_branched_trees(seed: int, base: str) -> None:
    """Over arrays, with the zeros that branches leave; to 1e-9 relative, as the condition allows."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=8, base=base, kinds=("turning", "sliding"))
    M = mass_matrix(tree, rng.normal(size=(6, tree.n)), engine="numpy") + 0.1 * np.eye(len(tree.rows))
    b = rng.normal(size=(6, len(tree.rows)))
    found = np.stack(solve_symmetric(entries_of(M), list(b.T)), axis=1)
    exact = np.linalg.solve(M, b[..., None])[..., 0]
    assert np.abs(found - exact).max() <= 1e-9 * np.abs(exact).max()


def test_symbols() -> None:
    rng, g = np.random.default_rng(0), Graph()
    H, b = positive(rng, 4), rng.normal(size=4)
    names = {(i, j): f"h{max(i, j)}{min(i, j)}" for i in range(4) for j in range(4)}
    entries = {place: g.input(name) for place, name in names.items()}
    x, nearness = solve_and_measure(entries, [g.input(f"b{i}") for i in range(4)], g.abs)
    values = {name: H[place] for place, name in names.items()} | {f"b{i}": b[i] for i in range(4)}
    assert np.array(evaluate(g, x, values)) == pytest.approx(np.linalg.solve(H, b), rel=1e-12)
    assert float(evaluate(g, [nearness], values)[0]) == pytest.approx(nearness_of(H), rel=1e-12)


def test_loads_of_zero_fold() -> None:
    """A free base without outside forces: its six zeros on the right cost nothing, and the answer is right."""
    rng = np.random.default_rng(1)
    H = positive(rng, 5)
    load = [0.0, 0.0, 1.0, 0.0, 2.0]
    assert solve_symmetric(entries_of(H), load) == pytest.approx(np.linalg.solve(H, load), rel=1e-12)
    assert solve_symmetric(entries_of(H), [0.0] * 5) == [0.0] * 5


def nearness_of(H: np.ndarray) -> float:
    """Σ|H_kk| Σ|1/D_k| with D the pivots from the last row to the first, by Cholesky of the matrix turned round."""
    L = np.linalg.cholesky(H[::-1, ::-1])
    return float(np.diag(H).sum() * (1.0 / np.diag(L) ** 2).sum())


@pytest.mark.parametrize("n", [1, 4, 9])
def test_how_near_to_singular(n: int) -> None:
    """n² for a multiple of unity; large where a row is light beside the others; without bound as rows become dependent."""
    rng = np.random.default_rng(n)
    H = positive(rng, n)
    assert solve_and_measure(entries_of(H), [1.0] * n, abs)[1] == pytest.approx(nearness_of(H), rel=1e-12)
    assert solve_and_measure(entries_of(3.0 * np.eye(n)), [1.0] * n, abs)[1] == pytest.approx(n**2)
    if n == 1:
        return
    a = rng.normal(size=n)
    for gap in (1e-2, 1e-6):
        dependent, light = np.outer(a, a) + gap * np.diag(a**2), np.diag([gap] + [1.0] * (n - 1))
        for near in (dependent, light):
            assert solve_and_measure(entries_of(near), [1.0] * n, abs)[1] > 0.5 / gap


def test_negative_pivots_do_not_cancel() -> None:
    """A matrix that is not positive: 1 and −1 are as far from singular as 1 and 1."""
    assert solve_and_measure(entries_of(np.diag([1.0, -1.0])), [1.0, 1.0], abs)[1] == 4.0


def star(branches: int) -> dict[tuple[int, int], str]:
    """The pattern of a hub with joints that know of it only: an arrow."""
    n = branches + 1
    return {(i, j): f"h{max(i, j)}_{min(i, j)}" for i in range(n) for j in range(n) if i == j or 0 in (i, j)}


@pytest.mark.parametrize("branches", [2, 5, 9])
def test_branches_that_share_nothing_make_no_new_entries(branches: int) -> None:
    """From the leaves inwards an arrow costs a constant number of operations for each branch; the other way round it would fill."""
    g = Graph()
    entries = {place: g.input(name) for place, name in star(branches).items()}
    x = solve_symmetric(entries, [g.input(f"b{i}") for i in range(branches + 1)])
    c = count(g, x)
    assert c.divisions == branches + 1
    # For each branch: L, the hub's pivot, its load, its own scaling, and the way back; and the hub's scaling.
    assert c.multiplications == 5 * branches + 1 and c.additions == 3 * branches


def test_a_row_without_mass_is_refused() -> None:
    with pytest.raises(ModelError, match="moves no mass"):
        solve_symmetric({(0, 0): 1.0}, [1.0, 1.0])


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
