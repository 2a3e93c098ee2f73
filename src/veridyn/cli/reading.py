"""Options of the commands that read a model file, each stated once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class BaseWord(StrEnum):
    """What the root link of a URDF does."""

    auto = "auto"
    fixed = "fixed"
    free = "free"


Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a URDF with inertias that no physical body has; otherwise they are unknown, with a warning.",
    ),
]
BaseOption = Annotated[
    BaseWord,
    typer.Option(
        help="Of a URDF: the root link stands on the ground (fixed) or moves (free: legged, flying). "
        "auto: free where a floating joint says so, else fixed."
    ),
]
