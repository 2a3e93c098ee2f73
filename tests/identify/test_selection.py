"""Which motions tell most: against brute force, and against what least squares then finds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import scipy.stats

from strangers.random_trees import random_inertia, random_motion, random_open_machine
from veridyn.errors import IdentificationError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.selection import Essential, essential, remedies, select_motions
from veridyn.identify.settings import TWO_SIGMA_BELOW_TEN
from veridyn.identify.validate import validate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import coulomb, damper, offset
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH

RNG = np.random.default_rng(0)
TREE = random_open_machine(RNG, bodies=4, base="fixed", kinds=("turning",))
SIGMA = dict.fromkeys(TREE.rows, 0.5)
# Two elements that are not there in truth, whatever the model's priors say, and one that is small but there.
TRUTH = {"h_q1": 0.0, "off_q2": 0.0, "fs_q1": 0.3}
PRIORS = {"h_q1": 0.4, "off_q2": 1.5, "fs_q1": 0.2}


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


@cache
def arm() -> Machine:
    rng = np.random.default_rng(3)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2, d=0.2))]
    elements = [damper("q1"), offset("q2"), coulomb("q1"), damper("q2", 0.7)]
    machine = Machine.of_bodies(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)
    return machine.with_parameters(machine.parameters.replacing(PRIORS))


@cache
def true_arm() -> Machine:
    return arm().with_parameters(TRUTH)


@cache
def log(seed: int = 0) -> Motion:
    rng = np.random.default_rng(seed)
    motion = random_motion(rng, arm(), 1500, wrenches=False)
    return replace(motion, forces=inverse_dynamics(true_arm(), motion) + 0.1 * rng.normal(size=(1500, 2)))


@cache
def solution() -> Solution:
    return solve(observation(arm(), log()))


@cache
def found() -> Essential:
    return essential(arm(), solution())


def test_what_is_not_there_is_removed_and_what_is_there_stays() -> None:
    removed = {s.name for s in found().steps}
    assert removed and removed <= {"h_q1", "off_q2"} | {
        n for n in arm().parameters.names if abs(true_arm().parameters[n]) < 0.05
    }
    assert "fs_q1" in found().fit.names and "h_q2" in found().fit.names
    assert found().fit.removed == tuple(s.name for s in found().steps)


def test_largest_relative_deviation_first() -> None:
    full = solution()
    relative = 100.0 * np.sqrt(np.diag(full.covariance)) / np.abs(full.values)
    worst = arm().parameters.names[full.columns[int(np.argmax(relative))]]
    first = found().steps[0]
    assert first.name == worst and first.relative_sigma == pytest.approx(relative.max())
    k = int(np.argmax(relative))
    assert first.f_statistic == pytest.approx((full.values[k] ** 2) / full.covariance[k, k])
    assert 0.05 <= first.p_value <= 1.0


def test_the_rest_is_estimated_anew() -> None:
    """As if the removed parameters were known to be zero, with the same weights."""
    names = [s.name for s in found().steps]
    machine = arm().with_parameters(arm().parameters.known(dict.fromkeys(names, 0.0)))
    sigma = dict(zip(("q1", "q2"), solution().row_sigma, strict=True))
    again = solve(observation(machine, log()), sigma=sigma)
    assert found().fit.values == pytest.approx(again.values, rel=1e-9)
    assert found().fit.sigma == pytest.approx(np.sqrt(np.diag(again.covariance)), rel=1e-9)


def test_the_smaller_model_predicts_as_well() -> None:
    check = validate(found().fit, log(1))
    assert all(r.rms == pytest.approx(0.1, rel=0.1) for r in check.rows)
    phi = dict(zip(arm().parameters.names, found().fit.standard, strict=True))
    assert all(phi[s.name] == 0.0 for s in found().steps)


def test_a_removed_group_is_zero_whatever_the_priors_of_its_members() -> None:
    """XZ2R = XZ2 − 0.3 MZ3 is removed: the forces are those of the remaining columns, not of a wrong prior of MZ3."""
    rng = np.random.default_rng(3)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2, d=0.2)), Body("3", "2", placement=MDH(d=0.3))]
    inertia = {b.name: random_inertia(rng) for b in bodies}
    machine = Machine.of_bodies(bodies, inertia=inertia, elements=[coulomb("q1", 0.3)])
    motion = random_motion(rng, machine, 1500, wrenches=False)
    noisy = replace(motion, forces=inverse_dynamics(machine, motion) + 3.0 * rng.normal(size=(1500, 3)))
    heavy = machine.with_parameters({"MZ3": 40.0, "M3": 90.0})
    lean = essential(heavy, solve(observation(heavy, noisy)))
    assert "XZ2" in lean.fit.removed  # of XZ2R = XZ2 − 0.3 MZ3
    assert validate(lean.fit, noisy).relative_error == pytest.approx(lean.fit.relative_error, rel=1e-9)


def test_rules() -> None:
    """Gautier's ratio alone ends at the ratio; the F test at what all removals do together, which is the textbook's F of two fits."""
    full = solution()
    by_ratio = essential(arm(), full, rule="ratio", ratio=5.0)
    relative = by_ratio.fit.relative_sigma
    assert relative.max() <= 5.0 * relative.min() and by_ratio.steps[-1].relative_sigma > 0.0
    tested = essential(arm(), full, rule="f_test", significance=0.01)
    assert {s.name for s in found().steps} <= {s.name for s in tested.steps} and "fs_q1" not in tested.fit.removed
    squares = []
    for gone in ((), tested.fit.removed):
        machine = arm().with_parameters(arm().parameters.known(dict.fromkeys(gone, 0.0)))
        sigma = dict(zip(("q1", "q2"), full.row_sigma, strict=True))
        again = solve(observation(machine, log()), sigma=sigma)
        squares.append((again.sigma**2 * again.freedom, again.freedom))
    (own, freedom), (less, _) = squares
    statistic = (less - own) / len(tested.steps) / (own / freedom)
    assert tested.steps[-1].joint_p_value == pytest.approx(
        scipy.stats.f.sf(statistic, len(tested.steps), freedom), rel=1e-6
    )
    assert tested.steps[-1].joint_p_value >= 0.01
    assert "F test of all removed together at a significance of 1 %" in tested.stated_rule


def test_a_parameter_that_matters_is_never_removed() -> None:
    """With any ratio, what the F test calls significant stays."""
    strict = essential(arm(), solution(), ratio=1.0)
    full = solution()
    significant = np.abs(full.values) / np.sqrt(np.diag(full.covariance)) > 6.0
    names = {arm().parameters.names[c] for c, s in zip(full.columns, significant, strict=True) if s}
    assert not names & {s.name for s in strict.steps}


def test_a_large_ratio_removes_nothing() -> None:
    assert essential(arm(), solution(), ratio=1e9).steps == ()


def test_summary_and_acceptance() -> None:
    e = essential(arm(), solution(), acceptance=TWO_SIGMA_BELOW_TEN)
    assert e.fit.acceptance is TWO_SIGMA_BELOW_TEN
    lines = e.summary().splitlines()
    assert lines[0] == f"{len(e.fit.values)} essential parameters, {len(e.steps)} removed"
    assert len(lines) == 1 + len(e.steps) and "sigma%" in lines[1]


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(IdentificationError, match=r"(?s)no rule 'aic'.*ratio_and_f_test, ratio, f_test"):
        essential(arm(), solution(), rule="aic")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("wrong", [{"ratio": 0.5}, {"significance": 0.0}, {"significance": 1.5}])
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(IdentificationError, match="ratio must be at least 1 and significance within 0 to 1"):
        essential(arm(), solution(), **wrong)
