"""Names that every part of a description uses: the ground, and those of a body's inertial parameters."""

from __future__ import annotations

GROUND = "ground"


def parameter_name(symbol: str, label: str) -> str:
    """The name of a body's parameter: ZZ6 for the label '6', ZZ_forearm for 'forearm'."""
    return f"{symbol}{label}" if label[:1].isdigit() else f"{symbol}_{label}"
