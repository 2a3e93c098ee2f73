"""From arrays to the scalars of the recursion."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.recursion.inputs import (
    acting_of,
    blocks,
    complete_values,
    components,
    minus_gravity,
    split,
    state_of,
)
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import spring
from veridyn.model.graph import Body


@pytest.mark.parametrize(("samples", "size"), [(0, 4), (1, 4), (4, 4), (5, 4), (12, 5)])
def test_blocks_cover_every_sample_once(samples: int, size: int) -> None:
    seen = np.concatenate([np.arange(samples)[b] for b in blocks(samples, size)] or [np.arange(0)])
    assert np.array_equal(seen, np.arange(samples))
    assert all(b.stop - b.start <= size for b in blocks(samples, size))


def test_gravity_is_an_acceleration_of_the_ground() -> None:
    tree = Tree.build([Body("1")], gravity=(1.0, 2.0, -3.0))
    assert minus_gravity(tree) == (-1.0, -2.0, 3.0)
    state = state_of(tree, random_motion(np.random.default_rng(0), tree, 3))
    assert state.vd == (-1.0, -2.0, 3.0) and state.w == (0.0, 0.0, 0.0)


def test_state_of_a_free_base_is_its_motion() -> None:
    rng = np.random.default_rng(1)
    tree = random_tree(rng, bodies=3, base="free")
    motion = random_motion(rng, tree, 4)
    state = state_of(tree, motion)
    assert np.array_equal(np.array(state.vd).T, motion.base.acceleration)
    assert np.array_equal(np.array(state.v).T, motion.base.velocity)
    assert np.array_equal(np.array(state.q).T, motion.q)


def test_wrenches_go_by_number_of_the_body() -> None:
    rng = np.random.default_rng(2)
    tree = random_tree(rng, bodies=4)
    motion = random_motion(rng, tree, 3)
    acting = acting_of(tree, motion)
    assert set(acting) == {tree.index(name) for name in motion.wrenches}
    for name, w in motion.wrenches.items():
        f, m = acting[tree.index(name)]
        assert np.array_equal(np.array([*f, *m]).T, w)


def test_components_are_contiguous() -> None:
    values = np.arange(12.0).reshape(4, 3)
    assert all(c.flags["C_CONTIGUOUS"] for c in components(values))


def two() -> Tree:
    bodies = [Body("1"), Body("v", "1", real=False), Body("2", "v")]
    return Tree.build(bodies, elements=[spring("q1", 5.0)])


def test_split_gives_ten_to_each_real_body() -> None:
    X, gains = split(two(), np.arange(21.0))
    assert {0: tuple(range(10)), 2: tuple(range(10, 20))} == X and gains == [20.0]
    assert all(type(v) is float for v in (*X[0], *gains))  # so that zeros and ones fold


def test_values_are_completed_by_ties() -> None:
    tree = Tree.build([Body("1"), Body("2", "1")])
    p = tree.parameters.replacing(np.arange(20.0)).tied({"YY2": "XX1", "ZZ2": "XX2"})
    values = complete_values(tree.with_parameters(p))
    assert values[p.index("YY2")] == 0.0 and values[p.index("ZZ2")] == 10.0


def test_missing_values_are_named() -> None:
    tree = Tree.build([Body("1")], elements=[spring("q1")])
    with pytest.raises(ModelError, match=r"these parameters have no value: XX1, .*MY1 and 3 more"):
        complete_values(tree)
    known = tree.parameters.replacing(np.r_[np.zeros(10), np.nan])
    with pytest.raises(ModelError, match=r"these parameters have no value: k_q1\.[\s\S]*Identify them first"):
        complete_values(tree.with_parameters(known))


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"vector of parameters does not fit this model\.\nExpected \(21,\), found \(3,\)"
    ):
        complete_values(two(), np.zeros(3))
