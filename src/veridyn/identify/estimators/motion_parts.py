"""Parts of motions that differ from the rest in how the machine moves: other positions, or more speed.

A fit is judged by motion that it has not seen. Time does not cut motions into such parts, since most excitations repeat themselves; what
the machine does cuts them. Samples of several motions are cut together, so that repeats of one stretch are on one side of every cut.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
Split = tuple[list[Motion], list[Motion]]  # what is fitted, and what is held out


@checked
def slow_and_fast(motion: Motion | Sequence[Motion], share: float = 0.5) -> Split:
    """The slower `share` of all samples and the faster rest, by ‖q̇‖, of each motion.

    What is left of a motion has gaps: its own filter must come before, and ``Sampling(filter=…)`` cannot be used on it.
    """
    several = [motion] if isinstance(motion, Motion) else list(motion)
    if not several or not 0.0 < share < 1.0:
        raise DataError(
            Fault("there is nothing to cut.", "slow_and_fast", "motions, and a share between 0 and 1", f"{share}")
        )
    speeds = [np.linalg.norm(m.qd, axis=1) for m in several]
    limit = float(np.quantile(np.concatenate(speeds), share))
    slow = [m[s <= limit] for m, s in zip(several, speeds, strict=True)]
    return slow, [m[s > limit] for m, s in zip(several, speeds, strict=True)]


def by_position(motion: Motion | Sequence[Motion]) -> list[Split]:
    """Quarters of all samples by position, each held out in turn: halves along the direction in which positions, over their standard
    deviations, differ most, and halves of each along its own. It has gaps, as in :func:`slow_and_fast`."""
    several = [motion] if isinstance(motion, Motion) else list(motion)
    if not several or not sum(len(m) for m in several):
        raise DataError(Fault("there is nothing to cut.", "by_position", "motions with samples"))
    q = np.concatenate([m.q for m in several])
    spread = q.std(axis=0)
    z = (q - q.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    upper = _upper_half(z)
    quarter = 2 * upper.astype(np.intp)
    for half in (~upper, upper):
        quarter[half] += _upper_half(z[half])
    ends = np.cumsum([len(m) for m in several])[:-1]
    own = np.split(quarter, ends)
    return [(_taken(several, [k != part for k in own]), _taken(several, [k == part for k in own])) for part in range(4)]


def unseen_motion(motion: Motion | Sequence[Motion]) -> dict[str, Split]:
    """The ways in which another motion differs from these: each quarter of the positions held out, and the faster half."""
    slow, fast = slow_and_fast(motion)
    found = {f"positions, quarter {k}": split for k, split in enumerate(by_position(motion), 1)}
    found["faster half"] = [m for m in slow if len(m)], [m for m in fast if len(m)]
    return {name: (fitted, held) for name, (fitted, held) in found.items() if fitted and held}


def _taken(motions: Sequence[Motion], masks: Sequence[NDArray[np.bool_]]) -> list[Motion]:
    """What masks leave of motions, those of which they leave nothing left out."""
    return [m[mask] for m, mask in zip(motions, masks, strict=True) if mask.any()]


def _upper_half(z: Array) -> NDArray[np.bool_]:
    """Which samples (N, n) lie beyond the median along the direction of their largest variance."""
    if not len(z):
        return np.zeros(0, dtype=bool)
    off = z - z.mean(axis=0)
    along = off @ np.linalg.eigh(off.T @ off)[1][:, -1]
    return np.asarray(along > np.median(along))
