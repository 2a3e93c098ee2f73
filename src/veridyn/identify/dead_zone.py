"""Speeds below which dry friction is not sign(speed): as given, or chosen from the friction of a model and the speeds of its motions.

Near standstill the force of a dry friction takes any value between its two signs, and a measured speed has the sign of its noise. A row
leaves such samples out. How many speeds to leave out is a trade: the zone that is chosen is SLOW_SPEED_RATIO of the largest speed of the
coordinate, but never one that takes more than MAX_DROPPED_SHARE of the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.sampling import Sampling
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
SLOW_SPEED_RATIO = 0.05  # of the largest speed: below it the sign of dry friction is not trusted (chosen)
LARGEST_SPEED_SHARE = 0.995  # quantile that stands for the largest speed, so that single outliers do not set it
MAX_DROPPED_SHARE = 0.3  # of the samples of a coordinate that a dead zone may leave out (chosen)


def with_dead_zones(how: Sampling, machine: Machine, motions: Sequence[Motion], rows: Rows = "all") -> Sampling:
    """The sampling with a speed for each coordinate or element in place of one number for all or of "auto"."""
    zone = how.dead_zone
    if isinstance(zone, str):
        if zone != "auto":
            raise DataError(
                Fault(
                    "this is no dead zone.",
                    "sampling.dead_zone",
                    'a speed, {row: speed}, or "auto"',
                    f"'{zone}'",
                )
            )
        return replace(how, dead_zone=choose_dead_zones(machine, motions, rows))
    if isinstance(zone, int | float):
        if not (np.isfinite(zone) and zone >= 0.0):
            raise DataError(
                Fault("a dead zone is a speed of at least 0.", "sampling.dead_zone", "rad/s or m/s", f"{zone}")
            )
        moving = [machine.rows[r] for r in machine.select_rows(rows) if machine.rows[r] in machine.coordinates]
        return replace(how, dead_zone=dict.fromkeys(moving, float(zone)) if zone else {})
    return how


def choose_dead_zones(machine: Machine, motions: Sequence[Motion], rows: Rows = "all") -> dict[str, float]:
    """Coordinate, or element on several by its parameter → dead zone in rad/s or m/s, for every dry friction that enters one of the rows.

    min(0.05 v_max, v_30): v_max is the largest speed of the element's combination c = Σ aᵢ qᵢ, v_30 the speed below which 30 % of the
    samples lie. A coordinate that stands still throughout has none.
    """
    acting = frozenset().union(*(machine.acting_on(machine.rows[r]) for r in machine.select_rows(rows)))
    zones: dict[str, float] = {}
    for e in machine.elements:
        if not e.jumps or e.on_body is not None or e.between is not None or not acting & e.on.keys():
            continue
        weights = np.array([e.on.get(c, 0.0) for c in machine.coordinates])
        speed = np.concatenate([np.abs(m.qd @ weights) for m in motions])
        name = next(iter(e.on)) if list(e.on.values()) == [1.0] else e.parameter_name
        zone = zone_of(speed, SLOW_SPEED_RATIO * float(np.quantile(speed, LARGEST_SPEED_SHARE)))
        if zone > 0.0:
            zones[name] = max(zone, zones.get(name, 0.0))
    return zones


def zone_of(speed: Array, wanted: float) -> float:
    """The dead zone that is wanted, or the smaller one below which MAX_DROPPED_SHARE of these speeds (N,) lie; two digits, rounded down."""
    return _rounded_down(min(wanted, float(np.quantile(np.abs(speed), MAX_DROPPED_SHARE))))


def _rounded_down(x: float) -> float:
    """To two digits."""
    if x <= 0.0:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(x)) - 1.0)
    return float(f"{np.floor(x / unit * (1.0 + 1e-12)) * unit:.2g}")
