"""Elements that a physical machine has with one sign only."""

from __future__ import annotations

# Kinds of elements whose parameter cannot be negative.
POSITIVE = (
    "spring",
    "inertia",
    "stribeck",
    "tanh_friction",
    "bump_stop",
    "dead_zone",
    *(f"{f}{way}" for f in ("damper", "coulomb") for way in ("", "_forward", "_backward")),
)
