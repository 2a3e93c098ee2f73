"""Following a path in few positions: what is found does not depend on how finely it is sampled, and costs by its length."""

from __future__ import annotations

import numpy as np

from veridyn.machines.parallel import linkage
from veridyn.mechanics.loops.assembly import splitting
from veridyn.mechanics.loops.closure import close, closed_home
from veridyn.mechanics.loops.path import smooth, step_towards, track_branch


def test_starts_along_a_path() -> None:
    """Positions a stride apart bring every sample within a Newton step of the truth."""
    split = splitting(linkage())
    fine = np.linspace(1.0, 9.0, 4000)[:, None]
    q, steps = track_branch(split, fine, closed_home(linkage()), "numpy")
    truth = close(linkage(), fine).q
    assert np.abs(q - truth).max() < 0.02
    assert steps < 500  # some Newton steps for each of 80 strides, not for each of 4000 samples


def test_branches_are_told_apart() -> None:
    tree = linkage()
    split = splitting(tree)
    fine = np.linspace(1.0, 2.0, 50)[:, None]
    q = close(tree, fine).q
    slope = np.gradient(q[:, 1:], fine[:, 0], axis=0)[:, :, None]
    assert smooth(split, q, slope)
    jumped = q.copy()
    jumped[25:, 1] += 2.0 * np.pi
    assert not smooth(split, jumped, slope)


def test_straight_lines() -> None:
    split = splitting(linkage())
    goal = np.array([[2.5], [-0.5]])
    origin = np.tile(closed_home(linkage()), (2, 1))
    q, steps = step_towards(split, goal, origin, "numpy")
    assert (
        np.abs(q - close(linkage(), goal, path=False).q).max() < 0.25
    )  # a stride of the crank, and what the coupler makes of it
    assert steps > 10
