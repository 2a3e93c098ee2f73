"""Filter steps by machine code on a machine: one for each layout of compiled tables that formulations have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.observe.filters.filter import CompiledStep
from veridyn.observe.machine import MachineSystem

Array = NDArray[np.float64]


def compiled_step(system: MachineSystem, gate: float | None, about: Array | None = None) -> CompiledStep | None:
    """Steps of a filter whose `gate` lets good readings pass with this probability; `about`: along the tangent at this state.

    None where the reference steps instead: along a tangent of other tables than those of points, and there with rows of H that are the
    attitude's alone.
    """
    return STEPS[system.model.kernel](system, gate, about)


def _tree(system: MachineSystem, gate: float | None, about: Array | None) -> CompiledStep | None:
    from veridyn.observe.filters.tree_step import TreeStep

    model: Any = system.model
    return TreeStep(system, model, gate) if about is None else None


def _freedoms(system: MachineSystem, gate: float | None, about: Array | None) -> CompiledStep | None:
    from veridyn.observe.filters.free_step import FreeStep

    return FreeStep(system, gate) if about is None else None


def _points(system: MachineSystem, gate: float | None, about: Array | None) -> CompiledStep | None:
    from veridyn.observe.filters.natural_step import NaturalStep

    model: Any = system.model
    return None if system.attitude_rows is not None else NaturalStep(system, model.charts, gate, about, model.one_set)


STEPS = {"tree": _tree, "points": _points, "freedoms": _freedoms}
