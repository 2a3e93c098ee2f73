"""The compiled filter step of a tree, bound to one caller."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.record import Bound
from veridyn.mechanics.tree.steps import record as tree
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.mechanics.tree.steps.record import call_addresses
from veridyn.observe.filters.kernels.tree_step import TreeFilter, tree_steps
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.machine import TURNS, MachineSystem
from veridyn.observe.result import Belief
from veridyn.observe.system import System

ENOUGH = 1e4  # times the change of a step that counts as settled: 1e-7 of the machine's size, as velocity (chosen)


class TreeStep(MachineStep):
    """Filter steps of a tree; they work in the memory of its model. `gate`: that a good reading passes with this probability."""

    keeps_derivatives: ClassVar[bool] = True

    def __init__(self, system: MachineSystem, gate: float | None) -> None:
        model: Any = system.model
        f, k, record = system.f, system.extra, model.kernels.record
        self._still = np.concatenate(model.loads())
        self._zero = np.concatenate(model.loads(dict.fromkeys(system.inputs, 0.0)))
        units = [np.concatenate(model.loads({name: 1.0})) for name in system.inputs]
        self._by_input = np.array([u - self._zero for u in units]).reshape(-1, len(self._zero))
        super().__init__(tree_steps, system, len(self._zero), gate)
        self._held = list[object]()
        readings, sensed = self._connected(system, model)
        self._bound = Bound(
            TreeFilter(
                filter=self._filter,
                I=record.I,
                W=record.W,
                turns=np.array(model.tree.turns, dtype=np.float64),
                readings=readings,
                sensed=sensed,
                accelerates=system.table.accelerates or bool(model.tree.held),
                push=np.zeros((f, k)),
                slopes=np.zeros((f, 2 * f + k)),
                step=np.zeros((2 * f + len(system.inner), 2 * f + k)),
            )
        )

    def adopt(self, system: System) -> bool:
        assert isinstance(system, MachineSystem)  # a tree has no other
        self._filter.density[:] = system.density
        return True

    def refresh(self, steps: int) -> None:
        """Compute derivatives at every so many steps only, and end Newton's method of the steps between as soon as noise hides the rest."""
        super().refresh(steps)
        record = self._bound.record
        record.W[record.I[tree.ENOUGH]] = ENOUGH if steps > 1 else 0.0

    def _acting(self, inputs: Array) -> Array:
        return self._zero + inputs @ self._by_input if inputs.shape[1] else np.tile(self._still, (len(inputs), 1))

    def _address(self, belief: Belief) -> NDArray[np.int64]:
        return self._bound.address

    def _connected(self, system: MachineSystem, model: TreeModel) -> tuple[NDArray[np.int64], Array]:
        """The sensors' kernel, reading q, q̇ and q̈ where the tree's kernels have them: its addresses, and what it writes.

        Derivatives that the filter is to take as zero are written where nobody reads.
        """
        table = system.table
        made, record = table.compiled, model.kernels.record  # pyright: ignore[reportAttributeAccessIssue]
        nq, nv, width = model.nq, model.nv, 1 + 3 * model.nv
        starts = [int(record.I[s]) for s in (tree.X, tree.V, tree.A)]
        where = np.concatenate([starts[0] + np.arange(nq), starts[1] + np.arange(nv), starts[2] + np.arange(nv)])
        slopes = np.zeros((len(table.names), width))
        take = table.take  # pyright: ignore[reportAttributeAccessIssue]
        pointers = record.W.ctypes.data + 8 * np.append(where[take], 0).astype(np.uintp)
        out = slopes.ctypes.data + 8 * np.array([*(i * width + k for i, k in made.labels), 0], dtype=np.uintp)
        nowhere = np.zeros(1)
        self._held.append(nowhere)
        if system.attitude_rows is not None:
            out[:-1][[system.attitude_rows[i] and k > nv for i, k in made.labels]] = nowhere.ctypes.data
        if system.place_rows is not None:  # column 0 is the reading itself
            turning = range(1 + TURNS.start, 1 + TURNS.stop)
            out[:-1][[bool(system.place_rows[i]) and k in turning for i, k in made.labels]] = nowhere.ctypes.data
        addresses, held = call_addresses(made.kernel, pointers, out, record.W.ctypes.data)  # they have no parameters
        self._held += held
        return np.array(addresses, dtype=np.int64), slopes
