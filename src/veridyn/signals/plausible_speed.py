"""Speeds that no joint of a machine has: degrees for radians, milliseconds for seconds, or an absurd amplitude make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataWarning, Fault, warn

Array = NDArray[np.float64]
FASTEST_TURNING = 60.0  # rad/s of a joint with its links; 20 m/s of a sliding one (chosen)
FASTEST_SLIDING = 20.0
ONE_WAY_SHARE = 0.5  # of its largest speed: what goes one way so fast in the mean is a wheel or a vehicle (chosen)
SIMULATED = "Look at the amplitudes, forces and units of the simulation: degrees for radians do this."


def too_fast(coordinate: str, unit: str, rates: Array) -> Fault | None:
    """That a coordinate in `unit` ("rad" or "m") with these rates (N,) is faster than any joint of a machine.

    Wheels that roll and vehicles that drive on are not, and coordinates without a unit, such as components of unit vectors, have no limit.
    """
    most = {"rad": FASTEST_TURNING, "m": FASTEST_SLIDING}.get(unit, np.inf)
    fastest = float(np.abs(rates).max(initial=0.0))
    if fastest <= most or abs(float(np.mean(rates))) > ONE_WAY_SHARE * fastest:
        return None
    where, found = f"coordinate '{coordinate}'", f"{fastest:.4g} {unit}/s"
    return Fault("it moves too fast.", where, f"up to {most:g} {unit}/s", found)


def warn_of_speeds(coordinates: Sequence[str], units: Sequence[str], rates: Array) -> None:
    """A DataWarning for each coordinate of a simulated motion with `rates` (N, n) that is too fast."""
    for name, unit, column in zip(coordinates, units, rates.T, strict=True):
        fast = too_fast(name, unit, column)
        if fast is not None:
            warn(DataWarning, replace(fast, hint=SIMULATED))
