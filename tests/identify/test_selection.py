"""Which motions tell most: against brute force, and against what least squares then finds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from strangers.random_trees import random_open_machine
from veridyn.errors import IdentificationError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.identify.selection import remedies, select_motions
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

RNG = np.random.default_rng(0)
TREE = random_open_machine(RNG, bodies=4, base="fixed", kinds=("turning",))
SIGMA = dict.fromkeys(TREE.rows, 0.5)


def one_joint(k: int, samples: int = 60) -> Motion:
    """Only joint k moves."""
    m = generic_motion(TREE, samples)
    only = np.zeros(TREE.n)
    only[k] = 1.0
    return Motion(m.t, m.q * only, m.qd * only, m.qdd * only)


def candidates() -> dict[str, Motion]:
    return {
        **{f"joint {k}": one_joint(k) for k in range(TREE.n)},
        "all": generic_motion(TREE, 40),
        "short": generic_motion(TREE, 6),
    }


def information(machine: Machine, motion: Motion) -> np.ndarray:
    D = regressor(machine, motion).reshape(-1, len(machine.parameters)) * machine.parameters.typical / 0.5
    return D.T @ D


def test_the_subset_is_the_best_of_all_subsets() -> None:
    every = candidates()
    A = {n: information(TREE, m) for n, m in every.items()}
    start = np.eye(len(TREE.parameters)) / 100.0
    value = {s: np.linalg.slogdet(start + sum(A[n] for n in s))[1] for s in combinations(every, 3)}
    chosen = select_motions(TREE, every, SIGMA, 3)
    assert set(chosen.order) == set(max(value, key=lambda s: value[s]))
    total = np.linalg.slogdet(start + sum(A[n] for n in chosen.order))[1] - np.linalg.slogdet(start)[1]
    assert sum(s.gain for s in chosen.stages) == pytest.approx(total)
    assert set(chosen.left_out) | set(chosen.order) == set(every)


def test_the_first_motion_is_the_best_single_one_and_counts_are_ranks() -> None:
    every = candidates()
    order = select_motions(TREE, every, SIGMA)
    A = {n: np.linalg.slogdet(np.eye(len(TREE.parameters)) / 100.0 + information(TREE, m))[1] for n, m in every.items()}
    assert order.order[0] == max(A, key=lambda n: A[n])
    for k, stage in enumerate(order.stages, 1):
        assert stage.excited == base_parameters(TREE, [every[n] for n in order.order[:k]]).count
    assert "gain" in order.summary()


def test_predicted_deviations_are_those_of_least_squares() -> None:
    """σ of the groups over many draws of noise, with a belief so weak that it does not matter."""
    motion = generic_motion(TREE, 80)
    chosen = select_motions(TREE, {"only": motion}, SIGMA, belief=1e4)
    base = base_parameters(TREE, motion)
    W = regressor(TREE, motion).reshape(-1, len(TREE.parameters))[:, list(base.columns)]
    exact = 0.5 * np.sqrt(np.diag(np.linalg.inv(W.T @ W)))
    assert chosen.names == tuple(TREE.parameters.names[c] for c in base.columns)
    assert chosen.sigma == pytest.approx(exact, rel=1e-3)


def test_cost_changes_the_order() -> None:
    every = candidates()
    dear = select_motions(TREE, every, SIGMA, 1, cost={"all": 1e6})
    assert select_motions(TREE, every, SIGMA, 1).order != dear.order


def test_remedies_name_the_motion_that_helps_a_parameter_most() -> None:
    found = remedies(TREE, one_joint(0), {f"joint {k}": one_joint(k) for k in range(1, TREE.n)}, SIGMA)
    assert found and all(r.then <= r.now * (1 + 1e-12) for r in found)
    last = f"{tree_of(TREE).bodies[-1].name}"
    own = [r for r in found if r.name == f"ZZ{last}"]
    assert own and own[0].then < 0.1 * own[0].now


def test_what_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(IdentificationError, match="no motion to choose from"):
        select_motions(TREE, {}, SIGMA)
    with pytest.raises(IdentificationError) as error:
        select_motions(TREE, candidates(), {}, 99, cost={"jump": 1.0, "all": 0.0}, belief=0.0)
    text = str(error.value)
    for part in (
        "has no deviation",
        "so many cannot be chosen",
        "'jump' is no candidate",
        "a cost must be positive",
        "belief",
    ):
        assert part in text
