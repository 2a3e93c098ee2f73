"""Steps of a simulation with the arrays of any library: gradients go through its own operations between calls of forward dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veridyn.errors import DataError
from veridyn.model.machine import Machine


def check_fixed(machine: Machine) -> None:
    """Refuse a free base, whose attitude no step of coordinates alone can integrate."""
    if machine.base != "fixed":
        raise DataError("steps are of machines on a fixed base.", where=machine.name, hint="Use forward_dynamics.")


def runge_kutta(rates: Callable[[Any, Any], tuple[Any, Any]], q: Any, qd: Any, h: float) -> tuple[Any, Any]:
    """One step of the classical method of fourth order with the arrays of any library; `rates` gives q̇ and q̈ of a state."""
    v1, a1 = rates(q, qd)
    v2, a2 = rates(q + 0.5 * h * v1, qd + 0.5 * h * a1)
    v3, a3 = rates(q + 0.5 * h * v2, qd + 0.5 * h * a2)
    v4, a4 = rates(q + h * v3, qd + h * a3)
    return q + h / 6.0 * (v1 + 2.0 * (v2 + v3) + v4), qd + h / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)
