"""Options of the commands that read a model file, each stated once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class BaseWord(StrEnum):
    """What the root of a URDF or MJCF does."""

    auto = "auto"
    fixed = "fixed"
    free = "free"


Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a URDF or MJCF with inertias that no physical body has; otherwise they are unknown, with a warning.",
    ),
]
BaseOption = Annotated[
    BaseWord,
    typer.Option(
        help="Of a URDF or MJCF: the root stands on the ground (fixed) or moves (free: legged, flying). "
        "auto: free where a floating joint says so, else fixed."
    ),
]
