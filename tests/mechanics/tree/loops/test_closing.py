"""Closed positions from given coordinates: Newton's steps, the loops there, branches that are followed, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.machines import linkage, palletizer
from veridyn.mechanics.tree.loops.assembly import splitting
from veridyn.mechanics.tree.loops.closing import (
    loops_at,
    newton,
    refuse_unreachable,
    smooth,
    solved_loops,
    step_towards,
    track_branch,
)
from veridyn.mechanics.tree.loops.closure import close, closed_home
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.papers.hexapod.machine import hexapod


def test_quadratic_and_each_sample_for_itself() -> None:
    split = splitting(tree_of(hexapod()))
    q = np.tile(split.home, (3, 1))
    q[1, list(split.given)] += 0.01
    q[2, list(split.given)] += 0.10
    count, residual = newton(split, q, 1e-12)
    assert count[0] == 0 < count[1] <= count[2] <= 6
    assert residual.max() <= 1e-12


def test_inverse_condition_and_side() -> None:
    split = splitting(tree_of(linkage()))
    at = loops_at(split, split.home[None])
    block = split.block(at.values)[0]
    assert np.abs(at.inverted[0] @ block - np.eye(2)).max() < 1e-12
    assert at.condition[0] == pytest.approx(np.linalg.cond(block, 1))
    assert at.sign[0] == split.sign == np.sign(np.linalg.det(block))
    assert at.slope.shape == (1, 2, 1)
    dead = at.values.copy()
    dead[:, :, 1] = 0.0
    stuck = solved_loops(split, split.home[None], dead)
    assert stuck.condition[0] == np.inf
    with pytest.raises(DataError, match="a singular position: there q1 do not decide"):
        stuck.check(split.sign)
    with pytest.raises(DataError, match="assembled the other way round"):
        at.check(-split.sign)


def test_slopes_are_those_of_closed_positions() -> None:
    """∂q/∂q_g against central differences of closed positions."""
    split, step = splitting(tree_of(palletizer())), 1e-5
    home = split.home[list(split.given)]
    here = loops_at(split, split.home[None]).jacobian[0]
    for k in range(len(home)):
        aside = home + step * np.array([[1.0], [-1.0]]) * np.eye(len(home))[k]
        q = close(palletizer(), aside, path=False).q
        np.testing.assert_allclose((q[0] - q[1]) / (2.0 * step), here[:, k], atol=1e-9)


def test_what_cannot_be_closed_is_said() -> None:
    split = splitting(tree_of(linkage()))
    q = split.home.copy()
    q[2] += 0.5
    with pytest.raises(DataError, match=r"linkage, sample 7: this position is out of reach(.|\n)*loop 'pin' open by"):
        refuse_unreachable(split, q, 7)


def test_starts_along_a_path() -> None:
    """Positions a stride apart bring every sample within a Newton step of the truth."""
    split = splitting(tree_of(linkage()))
    fine = np.linspace(1.0, 9.0, 4000)[:, None]
    q, steps = track_branch(split, fine, closed_home(linkage()), "numpy")
    truth = close(linkage(), fine).q
    assert np.abs(q - truth).max() < 0.02
    assert steps < 500  # some Newton steps for each of 80 strides, not for each of 4000 samples


def test_branches_are_told_apart() -> None:
    tree = tree_of(linkage())
    split = splitting(tree)
    fine = np.linspace(1.0, 2.0, 50)[:, None]
    q = close(tree, fine).q
    slope = np.gradient(q[:, 1:], fine[:, 0], axis=0)[:, :, None]
    assert smooth(split, q, slope)
    jumped = q.copy()
    jumped[25:, 1] += 2.0 * np.pi
    assert not smooth(split, jumped, slope)


def test_straight_lines() -> None:
    split = splitting(tree_of(linkage()))
    goal = np.array([[2.5], [-0.5]])
    origin = np.tile(closed_home(linkage()), (2, 1))
    q, steps = step_towards(split, goal, origin, "numpy")
    assert (
        np.abs(q - close(linkage(), goal, path=False).q).max() < 0.25
    )  # a stride of the crank, and what the coupler makes of it
    assert steps > 10
