"""Virtual sensors on a machine in natural coordinates over the freedoms of its base: what sensors read, accelerations, and the forces that
lead prescribed coordinates, which are the multipliers of their constraints."""

from __future__ import annotations

from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.mechanics.formulation import Instant, QuantityReading
from veridyn.mechanics.measurement import Readout
from veridyn.mechanics.natural.free_model import FreeInputs, FreeModel
from veridyn.mechanics.natural.mechanism import AXES
from veridyn.model.place import PointRef
from veridyn.model.sensor import KINDS, Sensor, SensorKind

Array = NDArray[np.float64]
FURTHER = ("acceleration", "force")  # kinds that no sensor has


class FreeQuantity:
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivative with respect to a change of state.

    Kinds beyond those of sensors: "acceleration" of a place, in the ground's axes, and "force", which leads a prescribed coordinate.
    """

    def __init__(self, model: FreeModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> None:
        kinds = [k for k in KINDS if k != "distance"]
        where = f"virtual sensor '{name}'"
        if isinstance(on, tuple):
            raise DataError(Fault("this is no place.", where, "a point, or a place on a body: {body, at}", f"{on}"))
        self.model, self.name, self.kind, self.on = model, name, kind, on
        if kind not in (*kinds, *FURTHER):
            expected, hint = ", ".join((*kinds, *FURTHER)), "Observe the machine in formulation tree."
            raise DataError(
                Fault(f"natural coordinates of a vehicle have none of kind '{kind}'.", where, expected, hint=hint)
            )
        led = model.prescribed
        if kind == "force" and on not in led:
            hint = did_you_mean(str(on), led)
            raise DataError(Fault("it is known only of a prescribed coordinate.", where, ", ".join(led), f"{on}", hint))

    @cached_property
    def _table(self) -> Readout:
        return self.model.readout([Sensor(self.name, cast(SensorKind, self.kind), self.on, 1.0)])

    @cached_property
    def _place(self) -> Array:
        g = self.model.system.geometry
        return g.on_body(self.on, np.zeros(3)) if isinstance(self.on, str) else g.point(self.on)

    @property
    def components(self) -> tuple[str, ...]:
        if self.kind == "acceleration":
            return tuple(f"{self.name}.{a}" for a in AXES)
        return (self.name,) if self.kind == "force" else self._table.names

    @property
    def units(self) -> tuple[str, ...]:
        if self.kind == "acceleration":
            return ("m/s^2",) * 3
        return (self.model.force_unit(str(self.on)),) if self.kind == "force" else self._table.units

    def at(self, q: Array, qd: Array, u: Array, at: Instant, loads: FreeInputs) -> QuantityReading:
        """The value (c,) and its derivatives at a state whose instant is known."""
        model, c = self.model, len(self.components)
        none, lam, by_u = np.zeros((c, model.nv)), np.zeros((c, len(at.multipliers))), np.zeros((c, len(u)))
        if self.kind == "acceleration":
            A = self._place[:, :-1]
            return QuantityReading(A @ at.qdd, none, none, A, lam, by_u)
        if self.kind == "force":
            row = model.system.constraints.held[model.prescribed.index(str(self.on))]
            lam[0, row] = -1.0
            return QuantityReading(-at.multipliers[[row]], none, none, none, lam, by_u)
        slopes = self._table.derivatives(q, qd, at.qdd)
        return QuantityReading(self._table.read(q, qd, at.qdd), *slopes, lam, by_u)
