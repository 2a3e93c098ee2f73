"""A sparse symmetric system over scalars of any kind: LAPACK's answer, without a product more than the tree asks for."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.evaluate import evaluate
from strangers.random_trees import random_tree
from veridyn.errors import ModelError
from veridyn.mechanics.factorise import solve_and_measure, solve_symmetric
from veridyn.mechanics.forward import mass_matrix
from veridyn.symbolic.count import count
from veridyn.symbolic.expression import Graph


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
