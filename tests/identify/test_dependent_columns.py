"""Columns made of others: relations hold at any state, and factors over fewer columns, restored, are those over all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn.identify.observation as module
from identify.dense_equations import arm, check, dense, log
from strangers.random_trees import random_motion, random_open_machine
from veridyn.identify.dependent_columns import dependence, worthwhile
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.factor import RowFactor
from veridyn.identify.observation import observation
from veridyn.identify.row_factors import RowFactors
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.regressor import regressor
from veridyn.model.elements import damper
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Tie
from veridyn.signals.butterworth import Butterworth


def changed(machine: Machine, rng: np.random.Generator) -> Machine:
    """Some parameters known, one tied to another, a damper on the first coordinate."""
    machine = machine.with_elements([damper(machine.coordinates[0], 0.3)])
    names = rng.permutation(machine.parameters.names[:-1]).tolist()
    known = machine.parameters.known(names[: len(names) // 5])
    return machine.with_parameters(known.tied({names[-1]: Tie(names[-2], 0.7)}))


@pytest.mark.parametrize("seed", range(12))
def test_relations_hold_at_any_state(seed: int) -> None:
    """D T = (D T)[:, kept] K to 1e-11 of the largest column, on random trees with known and tied parameters and a damper.

    Trees without relations have as many independent columns as columns.
    """
    rng = np.random.default_rng(seed)
    machine = changed(random_open_machine(rng, base="free" if seed % 2 else "fixed", virtual=0.2), rng)
    rule = dependence(machine)
    D = regressor(machine, random_motion(rng, machine, 60, wrenches=False)) @ machine.parameters.estimated_matrix()
    scale = np.abs(D).max()
    alive = np.count_nonzero(np.abs(D).max(axis=(0, 1)) > 1e-12 * scale)
    if rule is None:
        assert np.linalg.matrix_rank(D.reshape(-1, D.shape[2]), tol=1e-9 * scale) == alive
        return
    assert np.abs(D[:, :, list(rule.kept)] @ rule.matrix - D).max() < 1e-11 * scale
    assert len(rule.kept) < alive


def both(monkeypatch: pytest.MonkeyPatch, machine: Machine, motion: Motion, sampling: Sampling) -> list[RowFactors]:
    """Factors over all columns, and over the kept ones, restored."""
    found = []
    for least in (10**9, 1):
        monkeypatch.setattr(module, "MIN_SAMPLES", least)
        found.append(observation(machine, motion, sampling=sampling, engine="compiled"))
    return found


def difference(a: RowFactor, b: RowFactor) -> float:
    """The largest entry of the difference of RᵀR, columns of one length; those that are zero to rounding count as the largest."""
    size = np.linalg.norm(a.R, axis=0)
    size[size < 1e-12 * size.max()] = size.max()
    return float(np.abs((a.R.T @ a.R - b.R.T @ b.R) / np.outer(size, size)).max())


@pytest.mark.parametrize("filtered", [False, True])
def test_factors_are_those_of_all_columns(monkeypatch: pytest.MonkeyPatch, filtered: bool) -> None:
    """RᵀR to 1e-12 of its columns, with a known parameter, a tie and a wrench, plain or filtered, decimated and thinned."""
    machine, motion = arm(), log(3000)
    how = Sampling(filter=Butterworth(20.0), decimate=3, dead_zone={"q1": 0.1}) if filtered else Sampling()
    whole, lean = both(monkeypatch, machine, motion, how)
    assert [f.columns for f in lean.rows] == [f.columns for f in whole.rows]
    for a, b in zip(whole.rows, lean.rows, strict=True):
        assert (a.samples, a.measured) == (b.samples, b.measured) and b.R.shape == a.R.shape
        assert difference(a, b) < 1e-12 and (np.tril(b.R, -1) == 0.0).all()
    assert not filtered or whole.samples < 3 * 1000


def test_the_solution_is_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, motion = arm(), log(900)
    _, lean = both(monkeypatch, machine, motion, Sampling())
    check(machine, solve(lean), dense(machine, motion, machine.rows))


def test_restored_factors_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two halves of a log, restored and merged, are the whole of it."""
    machine, motion = arm(), log(2000)
    halves = [both(monkeypatch, machine, motion[k], Sampling())[1] for k in (slice(0, 900), slice(900, None))]
    whole = both(monkeypatch, machine, motion, Sampling())[0]
    for a, b in zip(whole.rows, halves[0].merge(halves[1]).rows, strict=True):
        assert difference(a, b) < 1e-12


def test_where_nothing_is_saved_all_columns_stay() -> None:
    """Base parameters alone, shared coordinates and closed loops, which the rules do not reach: None."""
    machine = replace(arm(), elements=arm().elements)
    rule = dependence(machine)
    assert rule is not None
    every = [n for n, s in zip(machine.parameters.names, machine.parameters.states, strict=True) if s == "estimated"]
    spare = [n for n in every if machine.parameters.index(n) not in rule.kept]
    alone = machine.with_parameters(machine.parameters.known(dict.fromkeys(spare, 0.0)))
    assert dependence(alone) is None
    assert dependence(random_open_machine(np.random.default_rng(3), 6, kinds=("turning",), shared=True)) is None
    assert not worthwhile(((1, 2, 3),), ((1, 2, 3),)) and worthwhile(((1, 2, 3),), ((1,),))
