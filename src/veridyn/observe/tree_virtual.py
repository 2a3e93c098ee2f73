"""Virtual sensors on trees: what no sensor reads, from the estimated state, with the derivative that gives its band."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.mechanics.natural.minimal import Instant
from veridyn.mechanics.tree_readout import TreeReadout, tree_readout
from veridyn.model.place import Marker
from veridyn.model.sensor import KINDS, Sensor
from veridyn.observe.tree import TreeSystem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreeQuantity:
    """One virtual sensor on a tree, by the name, kind and place of a sensor; :meth:`at` gives its value and derivative."""

    system: TreeSystem
    name: str
    kind: str
    on: str | Marker

    def __post_init__(self) -> None:
        if self.kind not in KINDS or isinstance(self.on, tuple):
            raise DataError(
                Fault(
                    f"a tree has no virtual sensor of kind '{self.kind}'.",
                    where=f"virtual sensor '{self.name}'",
                    expected=", ".join(KINDS),
                    hint="Accelerations, springs and reactions are virtual sensors of machines in natural coordinates.",
                )
            )

    @cached_property
    def table(self) -> TreeReadout:
        return tree_readout(self.system.model.tree, [Sensor(self.name, self.kind, self.on, 1.0)])  # pyright: ignore[reportArgumentType]

    @property
    def components(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.table.units

    def at(self, x: Array, at: Instant, inputs: Array) -> tuple[Array, Array]:
        """The value (k,) and its derivative (k, states) at a state."""
        q, qd, _, _ = self.system.split(x)
        y = self.table.read(q, qd, at.qdd)
        slopes = self.table.derivatives(q, qd, at.qdd)
        return y, self.system.chained(at, *slopes, np.zeros((len(y), len(at.multipliers))))
