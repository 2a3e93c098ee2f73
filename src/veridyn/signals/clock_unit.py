"""A clock in another unit: milliseconds that are read as seconds make a log slower than any motion can be followed with."""

from __future__ import annotations

from veridyn.errors import Fault

SLOWEST_CLOCK = 5.0  # Hz (chosen)
MILLISECONDS = "Is the time in milliseconds, and declared as seconds?"


def slow_clock(where: str, rate: float) -> Fault:
    """That a log of `rate` samples per second is too slow."""
    return Fault(
        "its clock is slower than any motion can be followed with.",
        where,
        f"at least {SLOWEST_CLOCK:g} samples per second",
        f"{rate:.3g}",
        MILLISECONDS,
    )
