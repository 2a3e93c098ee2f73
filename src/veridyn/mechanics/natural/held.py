"""Which bodies hold a direction of a mechanism still, and what its components are there: two points of one body have a constant length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.model.names import GROUND
from veridyn.model.place import Marker
from veridyn.model.point_parts import DirectionRef, MechanismParts

Array = NDArray[np.float64]


def held(m: MechanismParts, ref: DirectionRef) -> dict[str, Array]:
    """Each body, or the ground, in whose frame the direction does not move, with its components there; a marker's axis is made a unit."""
    if isinstance(ref, Marker):
        axis = np.array(ref.axis)
        return {ref.body: axis / np.linalg.norm(axis)}
    names = (ref,) if isinstance(ref, str) else tuple(ref)
    if not all(isinstance(name, str) for name in names):
        return {GROUND: np.array(ref, dtype=np.float64)}
    fixed = {p.name: p.at for p in m.points if p.fixed} | {v.name: v.along for v in m.vectors if v.fixed}
    frames: dict[str, Mapping[str, ArrayLike]] = {b.name: {**b.points, **b.vectors} for b in m.bodies}
    frames[GROUND] = fixed
    return {body: _between(at, names) for body, at in frames.items() if all(name in at for name in names)}


def _between(at: Mapping[str, ArrayLike], names: Sequence[object]) -> Array:
    first, last = (np.asarray(at[str(name)], dtype=np.float64) for name in (names[0], names[-1]))
    return last - first if len(names) == 2 else last


def length_of(m: MechanismParts, ref: DirectionRef) -> float:
    """The length of a direction that some body holds, or zero where none does."""
    return max((float(np.linalg.norm(x)) for x in held(m, ref).values()), default=0.0)
