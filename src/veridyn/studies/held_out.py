"""How much of the validation data was not used for the fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.model.motion import Motion

SAME_VALUE = 1e-6  # of a coordinate's range: samples nearer than this at one time are the same sample


def held_out_share(training: Sequence[Motion], validation: Sequence[Motion]) -> float:
    """Share of the validation samples, 0 to 1, that no training motion has: at the same time, with the same coordinates."""
    total = sum(len(m) for m in validation)
    seen = sum(int(np.any([_shared(m, other) for other in training], axis=0).sum()) for m in validation)
    return 1.0 - seen / total if total else 1.0


def _shared(m: Motion, other: Motion) -> NDArray[np.bool_]:
    """Which samples of a motion another has too."""
    at = np.clip(np.searchsorted(other.t, m.t), 0, len(other.t) - 1)
    span = np.ptp(m.q, axis=0)
    near = np.abs(other.q[at] - m.q) <= SAME_VALUE * np.where(span > 0.0, span, 1.0)
    same = (other.t[at] == m.t) & near.all(axis=1)
    if m.forces is not None and other.forces is not None:
        one, two = np.nan_to_num(m.forces), np.nan_to_num(other.forces[at])
        width = np.ptp(one, axis=0)
        same &= (np.abs(one - two) <= SAME_VALUE * np.where(width > 0.0, width, 1.0)).all(axis=1)
    return same
