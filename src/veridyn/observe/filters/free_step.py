"""The compiled filter step of a machine in natural coordinates over the freedoms of its base, bound to one caller."""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.natural.kernels.wheel_kernel import WheelRoom
from veridyn.mechanics.natural.measurement import Readout
from veridyn.mechanics.natural.steps.free_kernel import free_room, free_tables
from veridyn.mechanics.natural.steps.free_model import FreeModel
from veridyn.mechanics.record import Bound
from veridyn.observe.filters.kernels.free_step import BilinearRows, FreeFilter, FreeSensors, FreeWork, free_steps
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.machine import MachineSystem
from veridyn.observe.result import Belief


class FreeStep(MachineStep):
    """Filter steps over freedoms. `gate`: the probability that a good reading passes, None without a gate."""

    keeps_derivatives: ClassVar[bool] = True

    def __init__(self, system: MachineSystem, gate: float | None) -> None:
        model = cast(FreeModel, system.model)
        f, k, still = system.f, system.extra, model.loads()
        self._still = np.concatenate([still.values, np.ravel(still.motion)])
        super().__init__(free_steps, system, len(self._still), gate)
        table, tables = cast(Readout, system.table), free_tables(model)
        self._wheels = WheelRoom(model.system.wheels)  # which keeps the code of tyres for as long as it is called
        size, forces, rows = 2 * f + len(model.inner), len(model.unknown), len(table.a)
        self._bound = Bound(
            FreeFilter(
                filter=self._filter,
                tables=tables,
                room=free_room(model, tables, self._wheels.wheels),
                sensors=FreeSensors(
                    a=_bilinear(table.a[:, :, None]),
                    G=_bilinear(table.G),
                    D=_bilinear(table.D),
                    other=table.other.astype(np.int64),
                ),
                work=FreeWork(
                    rows=np.zeros(rows),
                    by_z=np.zeros((rows, 2 * f + k)),
                    push=np.zeros((f, k)),
                    step=np.zeros((size, 2 * f + k)),
                    before=np.zeros((size, size + forces)),
                    now=np.zeros((size, size + forces)),
                    left=np.zeros((size, size)),
                    pivot=np.zeros(size, dtype=np.int64),
                    column=np.zeros(size),
                    led=np.zeros(still.motion.shape),
                ),
                known=np.zeros(2, dtype=np.int64),
            )
        )
        self._places = self._where(model, system.inputs)

    def _where(self, model: FreeModel, inputs: tuple[str, ...]) -> list[int]:
        """Where each input goes: among the values of the loads, or in the motion of prescribed coordinates, row by row behind them."""
        mechanism, places = model.system.mechanism, model.system.forces.places
        first, count, found = len(self._still) - 3 * len(mechanism.prescribed), len(mechanism.prescribed), list[int]()
        for name in inputs:
            symbol, _, rest = name.partition(".")
            if name in places:
                found.append(places[name])
            else:
                row = ("q", "qd", "qdd").index(symbol)
                found.append(first + row * count + mechanism.prescribed.index(rest))
        return found

    def _acting(self, inputs: Array) -> Array:
        """Inputs as they are given; those that are not stay as the model has them."""
        acting = np.tile(self._still, (len(inputs), 1))
        acting[:, self._places[: inputs.shape[1]]] = inputs[:, : len(self._places)]
        return acting

    def _address(self, belief: Belief) -> NDArray[np.int64]:
        return self._bound.address


def _bilinear(table: Array) -> BilinearRows:
    """The numbers of forms (r, n + 1, n) that are not zero."""
    row, left, right = np.nonzero(table)
    start = np.searchsorted(row, np.arange(len(table) + 1))
    return BilinearRows(
        start.astype(np.int64),
        left.astype(np.int64),
        right.astype(np.int64),
        np.ascontiguousarray(table[row, left, right]),
    )
