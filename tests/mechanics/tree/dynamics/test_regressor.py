"""The regressor: D with D φ = Γ, equal to Pinocchio's column by column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.dynamics.regressor import regressor
from veridyn.mechanics.tree.recursion.columns import columns, structure
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.recursion.samples import state_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drag, motor_inertia, offset, spring
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS

ROUNDING = 1e-12
SEEDS = range(72)


def case(seed: int, samples: int = 5) -> tuple[Tree, Motion]:
    rng = np.random.default_rng(1000 + seed)
    tree = random_tree(
        rng,
        base="free" if seed % 2 else "fixed",
        shared=seed % 4 >= 2,
        mdh=(None, True, False)[seed % 3],
        virtual=0.2 * (seed % 5 == 0),
    )
    return tree, random_motion(rng, tree, samples, wrenches=False)


def with_elements(rng: np.random.Generator, tree: Tree) -> Tree:
    """One of each kind that needs no signal, on a coordinate, on a combination of two of a kind, and on a body."""
    kinds = {}
    for c, kind in zip(tree.coordinates, tree.coordinate_kinds, strict=True):
        kinds.setdefault(kind, []).append(c)
    two = max(kinds.values(), key=len)[:2]
    mixed = {c: float(rng.normal()) for c in two}
    one = tree.coordinates[0]
    elements = [
        spring(mixed, 2.0, "k"),
        offset(one, 3.0, "o"),
        damper(mixed, 4.0, "h"),
        coulomb(one, 5.0, "f"),
        motor_inertia(mixed, 6.0, "Ia"),
        drag(f"{tree.bodies[-1].name}.fy", 7.0, "Cy"),
        drag(f"{tree.bodies[0].name}.mz", 8.0, "Cn"),
    ]
    return Tree.build(
        tree.bodies,
        base=tree.base,
        gravity=tree.gravity,
        inertia={
            b.name: tree.parameters.values[10 * k : 10 * k + 10] for k, b in enumerate(b for b in tree.bodies if b.real)
        },
        elements=elements,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_pinocchio(seed: int) -> None:
    tree, motion = case(seed)
    D, expected = regressor(tree, motion), PinModel(tree).regressor(motion)
    assert D.shape == expected.shape
    assert np.abs(D - expected).max() <= ROUNDING * np.abs(expected).max()


@pytest.mark.parametrize("seed", range(0, 72, 4))
def test_regressor_times_parameters_is_inverse_dynamics(seed: int) -> None:
    tree, motion = case(seed)
    tree = with_elements(np.random.default_rng(seed), tree)
    gamma = inverse_dynamics(tree, motion)
    assert np.abs(regressor(tree, motion) @ tree.parameters.values - gamma).max() < ROUNDING * np.abs(gamma).max()


def test_columns_asked_for_come_in_their_order() -> None:
    tree, motion = case(2)
    D = regressor(tree, motion)
    wanted = [7, 0, 3]
    assert np.array_equal(regressor(tree, motion, wanted=wanted), D[:, :, wanted])
    row = tree.rows[-1]
    assert np.array_equal(regressor(tree, motion, [row], wanted), D[:, -1:, wanted])


@pytest.mark.parametrize("seed", range(12))
def test_structure_is_where_columns_can_be(seed: int) -> None:
    """Every entry that is not zero is foretold; and what is foretold of a body is some column of it, not always each of its ten."""
    tree, motion = case(seed)
    tree = with_elements(np.random.default_rng(seed), tree)
    D = regressor(tree, motion)
    told = structure(tree)
    for r, foretold in enumerate(told):
        seen = set(np.flatnonzero(np.abs(D[:, r]).max(axis=0) > 0))
        assert seen <= set(foretold)
        bodies = {tree.columns[c][0] for c in foretold}
        assert bodies - {-1} == {j for j in range(len(tree.bodies)) if tree.bodies[j].real and _carries(tree, r, j)}


def _carries(tree: Tree, row: int, body: int) -> bool:
    first = len(tree.rows) - tree.n
    return row < first or any(tree.coordinate[i] == row - first for i in tree.path(body))


def test_structural_zeros_are_absent() -> None:
    """A body that only turns about its own vertical axis: the recursion never computes what folds to zero."""
    tree, motion = case(0)
    state = state_of(tree, motion)
    entries = dict(columns(tree, state, outward(tree, state, ARRAYS), {}, ARRAYS, range(len(tree.columns))))
    D = regressor(tree, motion)
    for c, rows in entries.items():
        absent = [r for r in range(len(tree.rows)) if r not in rows]
        assert not D[:, absent, c].any()


def test_wrenches_and_velocity_do_not_enter() -> None:
    """D is of the motion alone; and Galileo: the base's velocity does not matter where nothing drags."""
    tree, motion = case(1)
    still = replace(motion, base=replace(motion.base, velocity=None))
    pushed = replace(motion, wrenches={tree.bodies[0].name: np.ones((len(motion), 6))})
    assert np.array_equal(regressor(tree, motion), regressor(tree, still))
    assert np.array_equal(regressor(tree, motion), regressor(tree, pushed))
