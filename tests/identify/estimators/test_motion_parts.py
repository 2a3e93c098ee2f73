"""Parts of motions by what the machine does: by speed and by position, repeats on one side."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.estimators.motion_parts import by_position, slow_and_fast, unseen_motion
from veridyn.model.motion import Motion


def ellipse(turns: int, samples: int = 400) -> Motion:
    """Positions of three joints round an ellipse: one leads, two follow a quarter of a period later."""
    t = 0.01 * np.arange(samples)
    a = 2.0 * np.pi * turns * np.arange(samples) / samples
    q = np.column_stack([np.cos(a), 0.5 * np.sin(a), 0.2 * np.sin(a)])
    w = 2.0 * np.pi * turns / (0.01 * samples)
    qd = w * np.column_stack([-np.sin(a), 0.5 * np.cos(a), 0.2 * np.cos(a)])
    return Motion(t, q, qd, -(w**2) * q)


def test_speed_cuts_into_halves() -> None:
    motion = ellipse(1)
    slow, fast = slow_and_fast(motion)
    assert len(slow[0]) + len(fast[0]) == len(motion)
    assert np.linalg.norm(slow[0].qd, axis=1).max() <= np.linalg.norm(fast[0].qd, axis=1).min()


def test_positions_cut_into_quarters_and_repeats_stay_together() -> None:
    """Quarters of an ellipse, one of two turns and one of one: a position belongs to one quarter, whichever turn and motion it is of."""
    motions = [ellipse(2), ellipse(1)]
    splits = by_position(motions)
    assert len(splits) == 4
    total = sum(len(m) for m in motions)
    for fitted, held in splits:
        assert sum(len(m) for m in (*fitted, *held)) == total
        assert sum(len(m) for m in held) == pytest.approx(total / 4, abs=total / 40)
        kept, out = (np.concatenate([m.q for m in part]) for part in (fitted, held))
        angle = np.unwrap(np.sort(np.arctan2(out[:, 1] / 0.5, out[:, 0])))
        assert np.sort(np.diff(angle))[-2] < 0.1  # one stretch of the ellipse, and the gap to its other end
        apart = np.linalg.norm(out[:, None] - kept[None], axis=2).min(axis=1)
        assert np.mean(apart < 0.01) < 0.05  # but for the ends, nothing of it is fitted


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(DataError, match="there is nothing to cut"):
        slow_and_fast([], 0.5)
    with pytest.raises(DataError, match="there is nothing to cut"):
        by_position([])
    assert len(unseen_motion(ellipse(1))) == 5
