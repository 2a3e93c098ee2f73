"""A mechanism in natural coordinates with its sensors, as filters see it.

A body that turns round has no single set of independent coordinates, so sets take over from each other
(:mod:`veridyn.mechanics.natural.charts`). What is reported are always the coordinates of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.charts import Charts
from veridyn.mechanics.natural.dynamics import natural_energy
from veridyn.mechanics.natural.minimal import Instant, Minimal
from veridyn.mechanics.natural.redundant import Reduced
from veridyn.model.sensor import Sensor
from veridyn.observe.machine import ErrorModel as ErrorModel
from veridyn.observe.machine import MachineSystem, SystemStep

if TYPE_CHECKING:
    from veridyn.observe.filter import CompiledStep

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MechanismSystem(MachineSystem):
    """A mechanism with the sensors of `table`; made by :func:`~veridyn.observe.mechanism_setup.mechanism_system`.

    `one_set`: keep to the first set of independent coordinates.
    """

    charts: Charts
    one_set: bool = False

    @property
    def model(self) -> Minimal:
        """The mechanism over the first set."""
        return self.charts.first

    @property
    def name(self) -> str:
        return self.model.system.mechanism.name

    @property
    def nq(self) -> int:
        return self.model.system.n

    @property
    def nv(self) -> int:
        return self.model.system.n

    @property
    def coordinate_sizes(self) -> Array:
        return self.charts.sizes

    def unit_of(self, coordinate: str) -> str:
        return self.model.system.mechanism.unit_of(coordinate)

    def force_unit(self, name: str) -> str:
        return self.model.system.mechanism.force_unit(name)

    def parameter_unit(self, name: str) -> str:
        known = self.model.system.parameters
        assert known is not None  # there are no varying parameters without
        return known.units[known.names.index(name)]

    @property
    def start_unknown(self) -> Array:
        known = self.model.system.parameters
        values = np.zeros(0) if known is None or not self.varying else known.values
        return np.concatenate([np.zeros(len(self.model.unknown)), values])

    def reduced(self, x: Array, number: int = 0) -> Array:
        n, z = self.nq, self.charts[number].z
        return np.concatenate([x[..., z], x[..., n + z], x[..., 2 * n : -1]], axis=-1)

    def reported(self, x: Array, P: Array) -> Array:
        if self.set_of(x) == 0:
            return P
        T = self.between(x, self.named(x))
        return T @ P @ T.T

    def named(self, x: Array) -> Array:
        return np.append(x[:-1], 0.0)

    def between(self, a: Array, b: Array) -> Array:
        if self.set_of(a) == self.set_of(b):
            return np.eye(len(self.states))
        return self.whole(self.charts.change(self.instant(a, np.zeros(0)), self.set_of(b)))

    def instant_of(self, x: Array, inputs: Array) -> Instant:
        q, qd, u, _ = self.split(x)
        model = self.charts[self.set_of(x)]
        return model.instant(q, q[model.z], qd[model.z], u, self.acting(inputs))

    def accelerations(self, x: Array, inputs: Array) -> Array:
        q, qd, force, _ = self.split(x)
        model = self.charts[self.set_of(x)]
        return model.instant(q, q[..., model.z], qd[..., model.z], force, self.acting(inputs), derivative=False).qdd

    def readout(self, sensors: Sequence[Sensor]) -> Readout:
        return readout(self.model.system, sensors)

    def energies(self, q: Array, qd: Array) -> Array:
        found = [natural_energy(self.model.system, a, b) for a, b in zip(q, qd, strict=True)]
        return np.array([[e.kinetic, e.gravity, e.elastic] for e in found])

    def constraint_errors(self, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
        """Of all constraints: of those left out as redundant too."""
        machine = self.model.system
        c = (machine.whole if isinstance(machine, Reduced) else machine).constraints
        phi, J = c.evaluate(q)
        rates = (phi, J @ qd, J @ qdd + c.jacobian_rate(q, qd) @ qd)
        first, second, third = (float(np.abs(x).max(initial=0.0)) for x in rates)
        return first, second, third

    def accelerated(self, found: Instant, number: int) -> Array:
        return found.qdd_x[self.charts[number].z]

    def densities(self, number: int) -> tuple[Array, Array]:
        if number == 0:
            return self.density[: self.f], self.density[self.f : 2 * self.f]
        position, white = np.split(self.process_noise.coordinate_densities(self.charts[number].names), 2)
        return position, white

    def add(self, x: Array, d: Array) -> Array:
        q, qd, u, b = self.split(x if d.ndim == 1 else np.broadcast_to(x, (*d.shape[:-1], len(x))))
        f, k, number = self.f, self.extra, self.set_of(x)
        forces = u + d[..., 2 * f : 2 * f + k]

        def go(number: int, d: Array) -> Instant:
            z = self.charts[number].z
            aim, speed = q[..., z] + d[..., :f], qd[..., z] + d[..., f : 2 * f]
            return self.charts[number].instant(q, aim, speed, forces, self.still, derivative=False)

        try:
            at = go(number, d)
        except (
            DataError,
            SimulationError,
        ):  # beyond the range of a coordinate, which is no end of the way in another set
            other = number if self.one_set else self.charts.best(x[: self.model.system.n])
            if other == number:
                raise
            at = go(other, d @ self.whole(self.charts.change(self.instant(x, np.zeros(0)), other)).T)
        return self.join(at.q, at.qd, forces, b + d[..., 2 * f + k :], number)

    def subtract(self, a: Array, b: Array) -> Array:
        """The way from b to a, in the sets of b."""
        a, b = np.broadcast_arrays(a, b)
        sets = np.unique(b[..., -1])
        if len(sets) == 1:
            number = int(sets[0])
            return self.reduced(a, number) - self.reduced(b, number)
        out = np.empty((*b.shape[:-1], len(self.states)))
        for number in sets.astype(int).tolist():
            here = b[..., -1] == number
            out[here] = self.reduced(a[here], number) - self.reduced(b[here], number)
        return out

    def compiled_step(self, gate: float | None, about: Array | None = None) -> CompiledStep | None:
        """Filter steps by machine code, for one caller; `about`: along the tangent at this state. None with rows of the attitude alone."""
        from veridyn.observe.natural_step import NaturalStep

        if self.attitude_rows is not None:
            return None

        return NaturalStep(self, self.charts, gate, about, self.one_set)

    def one_step(self, x: Array, inputs: Array, dt: float, derivative: bool = True, since: float = 0.0) -> SystemStep:
        number, before = self.set_of(x), None
        q, qd, u, b = self.split(x)

        def go(number: int) -> Instant:
            z = self.charts[number].z
            return self.charts[number].step(q, q[..., z], qd[..., z], u, dt, self.acting(inputs), derivative)

        try:
            found = go(number)
        except SimulationError:
            other = number if self.one_set else self.charts.best(_first(q))
            if other == number:
                raise
            if derivative:
                before = self.charts.change(self.instant(x, inputs), other)
            number = other
            found = go(number)
        moved = self.join(found.q, found.qd, u, b, number)
        if derivative:
            self.remember(moved, inputs, found)
        if self.one_set:
            return SystemStep(moved, found, number, before, None)
        better = self.charts.better(number, _first(found.q), found.R.reshape(-1, *found.R.shape[-2:])[0])
        if better is None:
            return SystemStep(moved, found, number, before, None)
        moved[..., -1] = better
        return SystemStep(moved, found, number, before, self.charts.change(found, better) if derivative else None)


def _first(of_many: Array) -> Array:
    return of_many if of_many.ndim == 1 else of_many.reshape(-1, of_many.shape[-1])[0]
