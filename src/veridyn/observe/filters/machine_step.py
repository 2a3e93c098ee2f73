"""The compiled filter steps of machines: one for each layout of compiled tables that formulations have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from veridyn.arrays import Array
from veridyn.observe.filters.compiled_step import CompiledStep, Kernel, SensorRows, filter_record
from veridyn.observe.filters.covariance import EXACT, FORWARD, INTEGRATOR
from veridyn.observe.machine import MachineSystem

ERROR_MODELS = {"exact": EXACT, "forward": FORWARD, "integrator": INTEGRATOR}  # as machine code numbers them
STEPS = {"tree": "tree_step.TreeStep", "points": "natural_step.NaturalStep", "freedoms": "free_step.FreeStep"}


def compiled_step(system: MachineSystem, limit: float, about: Array | None = None) -> CompiledStep | None:
    """Steps of a filter that takes readings whose ν²/s is below `limit`; `about`: along the tangent at this state.

    None where the reference steps instead: in natural coordinates with rows of H that are the attitude's alone, or with estimated
    parameters, whose tables are those of the values they were made with; along a tangent over the freedoms of a base, where a change of
    state needs the instant at each state.
    """
    kind = system.model.kernel
    if kind == "points" and (system.attitude_rows is not None or system.estimated):
        return None
    of = _made(STEPS[kind])
    if about is None:
        return of(system, limit)
    return None if of.changed is None else _made("linear_step.LinearStep")(of(system, np.inf), system, limit, about)


def _made(name: str) -> Any:
    """A class of steps; its machine code is loaded with it."""
    home, _, step = name.partition(".")
    return getattr(import_module(f"veridyn.observe.filters.{home}"), step)


class MachineStep(CompiledStep):
    """Steps of a machine; `packed`: what acts, from the loads of its model as machine code takes them.

    `changed`: machine code that changes the predicted state by the correction, where other steps may use it.
    """

    changed: ClassVar[Kernel | None] = None

    def __init__(self, kernel: Kernel, system: MachineSystem, limit: float, packed: Callable[[Any], Array]) -> None:
        def acting(given: Mapping[str, float] | None = None) -> Array:
            return packed(system.model.loads(given))

        self.packed, self._still = packed, acting()
        self._places = [int(np.argmax(acting({name: 1.0}) != acting({name: 0.0}))) for name in system.inputs]
        numbers = system.nq + system.nv + system.extra + len(system.drifting) + 1
        rows = SensorRows(system.R, np.asarray(system.table.bias), system.selector, system.wraps)
        kind = ERROR_MODELS[system.error_model]
        super().__init__(
            kernel, filter_record(system, numbers, len(self._still), limit, rows, system.density, system.longest, kind)
        )

    def _acting(self, inputs: Array) -> Array:
        """Inputs as they are given; those that are not stay as the model has them."""
        acting = np.tile(self._still, (len(inputs), 1))
        acting[:, self._places[: inputs.shape[1]]] = inputs[:, : len(self._places)]
        return acting
