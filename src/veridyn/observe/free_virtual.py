"""Virtual sensors on a machine in natural coordinates over the freedoms of its base: what sensors read, accelerations, and the forces that
lead prescribed coordinates, which are the multipliers of their constraints."""

from __future__ import annotations

from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.mechanics.measurement import Readout
from veridyn.mechanics.natural.mechanism import AXES
from veridyn.mechanics.natural.minimal import Instant
from veridyn.model.place import Marker
from veridyn.model.sensor import KINDS, Sensor, SensorKind
from veridyn.observe.free import FreeSystem

Array = NDArray[np.float64]
FURTHER = ("acceleration", "force")  # kinds that no sensor has


class FreeQuantity:
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivative with respect to a change of state.

    Kinds beyond those of sensors: "acceleration" of a place, in the ground's axes, and "force", which leads a prescribed coordinate.
    """

    def __init__(self, system: FreeSystem, name: str, kind: str, on: str | Marker) -> None:
        self.system, self.name, self.kind, self.on = system, name, kind, on
        kinds = [k for k in KINDS if k != "distance"]
        where = f"virtual sensor '{name}'"
        if kind not in (*kinds, *FURTHER):
            expected, hint = ", ".join((*kinds, *FURTHER)), "Observe the machine in formulation tree."
            raise DataError(
                Fault(f"natural coordinates of a vehicle have none of kind '{kind}'.", where, expected, hint=hint)
            )
        led = system.model.system.mechanism.prescribed
        if kind == "force" and on not in led:
            hint = did_you_mean(str(on), led)
            raise DataError(Fault("it is known only of a prescribed coordinate.", where, ", ".join(led), f"{on}", hint))

    @cached_property
    def _table(self) -> Readout:
        return self.system.readout([Sensor(self.name, cast(SensorKind, self.kind), self.on, 1.0)])

    @cached_property
    def _place(self) -> Array:
        g = self.system.model.system.geometry
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
        return (self.system.force_unit(str(self.on)),) if self.kind == "force" else self._table.units

    def at(self, x: Array, at: Instant, inputs: Array) -> tuple[Array, Array]:
        """The value (k,) and its derivative (k, states) at a state."""
        system, count = self.system, len(self.components)
        none, lam = np.zeros((count, system.nv)), np.zeros((count, len(at.multipliers)))
        if self.kind == "acceleration":
            A = self._place[:, :-1]
            return A @ at.qdd, system.chained(at, none, none, A, lam)
        if self.kind == "force":
            c = system.model.system.constraints
            row = c.held[system.model.system.mechanism.prescribed.index(str(self.on))]
            lam[0, row] = -1.0
            return -at.multipliers[[row]], system.chained(at, none, none, none, lam)
        q, qd = system.posed_at(x, at)
        return self._table.read(q, qd, at.qdd), system.chained(at, *self._table.derivatives(q, qd, at.qdd), lam)
