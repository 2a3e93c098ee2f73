"""Newton's steps: quadratic, batched, and honest about what stays open."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.machines.described import linkage
from veridyn.mechanics.tree.loops.assembly import loop_values, splitting
from veridyn.mechanics.tree.loops.solver import inverse, newton, refuse_unreachable, side_of, slopes
from veridyn.papers.hexapod.machine import hexapod


def test_quadratic_and_each_sample_for_itself() -> None:
    split = splitting(hexapod())
    q = np.tile(split.home, (3, 1))
    q[1, list(split.given)] += 0.01
    q[2, list(split.given)] += 0.10
    count, residual = newton(split, q, 1e-12)
    assert count[0] == 0 < count[1] <= count[2] <= 6
    assert residual.max() <= 1e-12


def test_inverse_condition_and_side() -> None:
    split = splitting(linkage())
    T = loop_values(linkage(), split.home[None])
    B, condition, sign = inverse(split, T)
    assert np.abs(B[0] @ split.block(T)[0] - np.eye(2)).max() < 1e-12
    assert condition[0] == pytest.approx(np.linalg.cond(split.block(T)[0], 1))
    assert sign[0] == split.sign == side_of(split, split.home)
    dead = T.copy()
    dead[:, :, 1] = 0.0
    assert inverse(split, dead)[1][0] == np.inf
    assert slopes(split, T, B).shape == (1, 2, 1)


def test_what_cannot_be_closed_is_said() -> None:
    split = splitting(linkage())
    q = split.home.copy()
    q[2] += 0.5
    with pytest.raises(DataError, match=r"linkage, sample 7: this position is out of reach(.|\n)*loop 'pin' open by"):
        refuse_unreachable(split, q, 7)
