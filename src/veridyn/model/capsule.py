"""The space that a body takes: capsules, each all that is within a radius of a segment in the body's frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.errors import Faults

Three = tuple[float, float, float]


@dataclass(frozen=True)
class LinkCapsule:
    """All that is within `radius` [m] of the segment from `start` to `end` [m] in the frame of its body; a sphere where both are one."""

    start: Three
    end: Three
    radius: float


def check_capsule(capsule: LinkCapsule, where: str, faults: Faults) -> None:
    """Add what is wrong with a capsule: its ends are three finite numbers each, and its radius is finite and above zero."""
    for name, end in (("start", capsule.start), ("end", capsule.end)):
        x = np.array(end, dtype=np.float64)
        if x.shape != (3,) or not np.isfinite(x).all():
            faults.add(f"its {name} is not a point.", where=where, expected="three finite numbers, m", found=f"{end}")
    if not 0.0 < capsule.radius < np.inf:
        faults.add("a radius must be above zero.", where=where, expected="m, finite", found=f"{capsule.radius:g}")
