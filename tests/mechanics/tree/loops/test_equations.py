"""The equations of every kind of cut joint: slopes and biases against differences of their values, counts, machine code."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.random_trees import random_placement
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.equations import COUNTS, names_of
from veridyn.mechanics.tree.structure import CUTS
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body, Loop
from veridyn.model.place import Attachment
from veridyn.spatial.rotations import Placement


def machine(cut: str) -> Tree:
    """Two branches of turning and sliding joints, one coordinate shared, with one cut between their ends; and one to the ground."""
    rng = np.random.default_rng(5)
    place = [random_placement(rng, mdh=k % 2 == 0) for k in range(5)]
    bodies = [
        Body("1", "ground", "turning", place[0]),
        Body("2", "1", "sliding", place[1]),
        Body("3", "2", "turning", place[2], coordinate="q1", ratio=-0.6),
        Body("4", "1", "turning", place[3]),
        Body("5", "4", "sliding", place[4]),
    ]
    ends = [random_placement(rng, mdh=False) for _ in range(4)]
    at = [Placement(e.rotation, e.position) for e in ends]
    length = 0.7 if cut == "distance" else 0.0
    loops = [
        Loop("between", cut, Attachment("3", at[0]), Attachment("5", at[1]), length),
        Loop("below", cut, Attachment("ground", at[2]), Attachment("4", at[3]), length),
    ]
    return Tree.build(bodies, loops=loops)


@pytest.mark.parametrize("cut", CUTS)
def test_slopes_and_bias(cut: str) -> None:
    """Central differences of Φ along q + t q̇: first and second order."""
    tree = machine(cut)
    rng = np.random.default_rng(6)
    q, qd = rng.normal(size=(4, tree.n)), rng.normal(size=(4, tree.n))
    n = tree.n
    T = loop_values(tree, q, qd, engine="numpy")
    assert T.shape[1] == 2 * COUNTS[cut] == len(names_of(tree.loops))

    def value(x: np.ndarray) -> np.ndarray:
        return loop_values(tree, x, engine="numpy")[:, :, n]

    h = 1e-5
    for k in range(n):
        e = h * np.eye(n)[k]
        assert np.abs((value(q + e) - value(q - e)) / (2 * h) - T[:, :, k]).max() < 1e-8
    step = 1e-4
    second = (value(q + step * qd) - 2 * value(q) + value(q - step * qd)) / step**2
    assert np.abs(second - T[:, :, n + 1]).max() < 1e-5 * np.abs(second).max()


@pytest.mark.parametrize("cut", ["turning", "distance"])
def test_machine_code_says_the_same(cut: str) -> None:
    tree = machine(cut)
    rng = np.random.default_rng(7)
    q, qd = rng.normal(size=(9, tree.n)), rng.normal(size=(9, tree.n))
    for rates in (None, qd):
        assert np.abs(loop_values(tree, q, rates, "numpy") - loop_values(tree, q, rates, "compiled")).max() < 1e-12
