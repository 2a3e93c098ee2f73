"""Process noise of a model and the uncertainty of its start, as one number or by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError, did_you_mean

Array = NDArray[np.float64]
Size = float | Mapping[str, float]


@dataclass(frozen=True)
class ProcessNoise:
    """Process noise and uncertainty at the start; each one number for all coordinates (or forces), or by name, the default for the others.

    Densities, added while it moves: `position` (unit²/s), `acceleration`, white ((unit/s²)²/Hz), and `force`, the walk of the unknown
    forces ((N or N*m)²/s), `parameter`, that of parameters which are estimated with the state (unit²/s), and `element`, that of the states
    which elements have of their own (unit²/s). Deviations at the start: `start` of the coordinates, `start_rate`, `start_force`,
    `start_parameter`, `start_element`.
    """

    position: Size = 0.0
    acceleration: Size = 0.0
    force: Size = 0.0
    start: Size = 1.0
    start_rate: Size = 1.0
    start_force: Size = 0.0
    parameter: Size = 0.0
    start_parameter: Size = 0.0
    element: Size = 0.0
    start_element: Size = 0.0

    def coordinate_densities(self, names: tuple[str, ...]) -> Array:
        """Those of positions, then of accelerations, of the coordinates `names`: one that none is given for gets the largest that is."""
        return np.concatenate([_by_name(size, names) for size in (self.position, self.acceleration)])


def _by_name(size: Size, names: tuple[str, ...]) -> Array:
    if not isinstance(size, Mapping):
        return np.full(len(names), float(size))
    largest = max(map(float, size.values()), default=0.0)
    return np.array([float(size.get(name, largest)) for name in names])


def sizes(given: Size, names: tuple[str, ...], what: str) -> Array:
    """One number per name, from one for all or a mapping, which leaves the default to those it does not name.

    Refused by name where one is negative or belongs to nothing. `what`: which field of :class:`ProcessNoise` it is.
    """
    faults, at = Faults(), ("process_noise", what)
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                faults.add(
                    f"there is no '{name}' here.",
                    where=what,
                    at=at,
                    hint=did_you_mean(name, names),
                )
        default = float(getattr(ProcessNoise(), what))
        values = [float(given.get(name, default)) for name in names]
    else:
        values = [float(given)] * len(names)
    for name, value in zip(names, values):
        if not (np.isfinite(value) and value >= 0.0):
            faults.add(
                f"that of '{name}' is not usable.",
                where=what,
                at=at,
                expected="zero or more",
                found=f"{value:g}",
            )
    faults.raise_if_any(ModelError)
    return np.array(values, dtype=np.float64)
