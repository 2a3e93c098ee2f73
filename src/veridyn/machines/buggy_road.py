"""The ground below the buggy's wheels, as its tyres read it: the plane that touches a road below the centre of each wheel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.ground.road import Profile, Road, fill_surface
from veridyn.mechanics.instant import StateAccelerations
from veridyn.mechanics.samples import complete_values
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine

Array = NDArray[np.float64]


class RoadBelow:
    """The inputs `names` (3 for each tyre: height at the ground's origin and two slopes) of a machine that stands on a road."""

    def __init__(self, machine: Machine, road: Road) -> None:
        self.names = tuple(f"signal.{name}" for name in machine.road_signals)
        self._instant, self._packed, self._wheels = (
            StateAccelerations(tree_of(machine), complete_values(machine)),
            road.packed,
            len(machine.wheels),
        )

    def __call__(self, x: Array) -> Array:
        """Their values at a configuration (7 + n,): place, attitude and joints."""
        places = self._instant.wheel_places(x[7:], x[:7])
        at, out = np.ascontiguousarray(places.T), np.empty((3, self._wheels))
        fill_surface(self._packed, at[0], at[1], out)
        out[0] -= out[1] * at[0] + out[2] * at[1]
        return out.T.reshape(-1)


def surveyed_road(heights: Array, spacing: float, apart: float) -> Profile:
    """The road through a table of heights (lines, N): every `spacing` metres of x from 0, on lines `apart` metres centred on y = 0.

    Slopes along a line are those of the cubic through neighbours, (z₊ − z₋)/2h; the table repeats itself along x.
    """
    z = np.asarray(heights, dtype=np.float64)
    slopes = (np.roll(z, -1, axis=1) - np.roll(z, 1, axis=1)) / (2.0 * spacing)
    return Profile(z, slopes, spacing, apart)
