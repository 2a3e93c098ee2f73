"""What every comparison with other tools needs: a line of the table, lines of code counted, and whether mujoco.sysid is there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """One tool on one machine."""

    machine: str
    tool: str
    held_out: float
    unit: str
    cpu: float
    consistent: bool | None
    lines: int


def lines_of(function: Callable[..., Any]) -> int:
    """Lines that are neither empty nor comments."""
    source = inspect.getsource(function).splitlines()
    return sum(bool(x.strip()) and not x.strip().startswith(("#", '"""')) for x in source)


def mujoco_sysid_is_whole() -> bool:
    """Whether mujoco.sysid has what it needs: without some packages of its own it is imported in part, and says nothing."""
    try:
        from mujoco import sysid
    except ImportError:
        return False
    return hasattr(sysid, "ParameterDict") and hasattr(sysid, "optimize")
