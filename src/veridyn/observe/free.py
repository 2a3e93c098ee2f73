"""A machine in natural coordinates on a free base, with tyres and prescribed coordinates, as filters see it.

Errors of its state are those of its freedoms, as on a tree (:class:`~veridyn.observe.tree.TreeSystem`): names, process noise and what is
reported are the same, and the attitude survives full turns. The state holds all natural coordinates; steps are the index-3 steps of paper
003.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.dynamics import natural_energy
from veridyn.mechanics.natural.free_model import FreeInstant, FreeModel, free_model
from veridyn.mechanics.natural.minimal import Instant
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.machine import ErrorModel, SystemStep
from veridyn.observe.one_set import OneSetSystem
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.setup import common_fields, refuse_unobservable
from veridyn.observe.stepping import LONGEST_STEP_S, mode_step

if TYPE_CHECKING:
    from veridyn.observe.filter import CompiledStep

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FreeSystem(OneSetSystem):
    """A machine over the freedoms of its base with the sensors of `table`; made by :func:`free_system`."""

    free_model: FreeModel

    @property
    def model(self) -> FreeModel:
        return self.free_model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        return self.model.n

    @property
    def nv(self) -> int:
        return self.model.n

    @property
    def coordinate_sizes(self) -> Array:
        return np.ones(self.nv)

    def unit_of(self, coordinate: str) -> str:
        if coordinate.startswith("base."):
            return "m" if coordinate in self.model.names[:3] else "rad"
        return self.model.system.mechanism.unit_of(coordinate)

    def force_unit(self, name: str) -> str:
        if name in self.model.names[:6] and self.model.free:
            return "N" if name in self.model.names[:3] else "N*m"
        return self.model.system.mechanism.force_unit(name)

    def parameter_unit(self, name: str) -> str:
        return "1"  # slips are all there is

    def accelerations(self, x: Array, inputs: Array) -> Array:
        return self.posed(x, inputs)[2]

    def posed(self, x: Array, inputs: Array) -> tuple[Array, Array, Array]:
        """Prescribed coordinates are where the inputs have them now, and what they move follows."""
        if x.ndim > 1:
            found = [self.posed(one, inputs) for one in x.reshape(-1, x.shape[-1])]
            parts = [np.array(part).reshape(*x.shape[:-1], -1) for part in zip(*found, strict=True)]
            return parts[0], parts[1], parts[2]
        q, qd, u, _ = self.split(x)
        at = self.model.instant(q, qd, u, self.acting(inputs), derivative=False)
        return at.q, at.qd, at.qdd

    def posed_at(self, x: Array, at: Instant) -> tuple[Array, Array]:
        return at.q, at.qd

    def later(self, inputs: Array, dt: float) -> Array | None:
        """The inputs of a moment dt seconds later, where none are given then: prescribed coordinates go on with q̈; None without any."""
        if not self.model.system.mechanism.prescribed or not len(inputs):
            return None
        moved, out = self.acting(inputs).later(dt).motion, inputs.copy()
        for k, name in enumerate(self.model.system.mechanism.prescribed):
            for order, symbol in enumerate(("q", "qd", "qdd")):
                if f"{symbol}.{name}" in self.inputs:
                    out[self.inputs.index(f"{symbol}.{name}")] = moved[order, k]
        return out

    def add(self, x: Array, d: Array) -> Array:
        if d.ndim > 1:
            return np.array([self.add(x, one) for one in d])
        q, qd, u, b = self.split(x)
        f, k = self.f, self.extra
        q, qd = self.model.moved(q, qd, d[: 2 * f], u)
        return self.join(q, qd, u + d[2 * f : 2 * f + k], b + d[2 * f + k :])

    def subtract(self, a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        (qa, qda, ua, ba), (qb, qdb, ub, bb) = self.split(a), self.split(b)
        return np.concatenate([self.model.difference(qa, qda, qb, qdb), ua - ub, ba - bb], axis=-1)

    def one_step(self, x: Array, inputs: Array, dt: float, derivative: bool = True, since: float = 0.0) -> SystemStep:
        q, qd, u, b = self.split(x)
        found = self.model.step(q, qd, u, dt, self.acting(inputs), derivative, since)
        return SystemStep(self.join(found.q, found.qd, found.u, b), found, 0, None, None)

    def readout(self, sensors: Sequence[Sensor]) -> Readout:
        return readout(self.model.system, sensors)

    def energies(self, q: Array, qd: Array) -> Array:
        found = [natural_energy(self.model.system, a, b) for a, b in zip(q, qd, strict=True)]
        return np.array([[e.kinetic, e.gravity, e.elastic] for e in found])

    def constraint_errors(self, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
        """Of all constraints but those of prescribed coordinates."""
        c = self.model.system.constraints
        own = np.setdiff1d(np.arange(c.m), c.held)
        phi, J = c.evaluate(q)
        rates = (phi, J @ qd, J @ qdd + c.jacobian_rate(q, qd) @ qd)
        first, second, third = (float(np.abs(x[own]).max(initial=0.0)) for x in rates)
        return first, second, third

    def accelerated(self, found: Instant, number: int) -> Array:
        assert isinstance(found, FreeInstant)
        return found.slopes[: self.f]

    def compiled_step(self, gate: float | None) -> CompiledStep:
        """Filter steps by machine code, for one caller."""
        from veridyn.observe.free_step import FreeStep

        return FreeStep(self, gate)


def free_system(
    machine: Machine,
    process_noise: ProcessNoise,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    independents: tuple[str, ...] = (),
    sensors: Sequence[Sensor] | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float | None = None,
    parameters: Sequence[str] = (),
) -> tuple[FreeSystem, Array, Array]:
    """The system of a machine with formulation: natural, and the pose and rates it starts from; arguments as of a tree's."""
    if parameters or machine.uncertainty is not None:
        named = ", ".join(parameters) or ", ".join(machine.uncertainty.names if machine.uncertainty else ())
        raise ModelError(
            Fault(
                "parameters are neither estimated nor considered in natural coordinates with tyres or prescribed coordinates.",
                machine.name,
                found=named,
                hint="Observe it in formulation tree: with_formulation('tree').",
            )
        )
    model = free_model(machine, independents=independents, unknown=unknown)
    table = readout(model.system, sensors)
    refuse_unobservable(machine.name, table, LONGEST_STEP_S if step is None else step)
    model.loads(dict.fromkeys(inputs, 0.0))  # a name that is no input is refused here
    fields: dict[str, Any] = common_fields(
        model, table, process_noise, error_model, inputs, LONGEST_STEP_S if step is None else step
    )
    q, qd = model.start_of(start, rates)
    made = FreeSystem(free_model=model, **fields)
    return (made if step is not None else replace(made, longest=mode_step(made, q, qd))), q, qd


def is_free(machine: object) -> bool:
    """Whether a machine is observed in natural coordinates over the freedoms of its base: one with tyres or prescribed coordinates."""
    if not isinstance(machine, Machine) or machine.formulation != "natural":
        return False
    return bool(machine.prescribed) or any(getattr(e, "wheel", None) is not None for e in machine.elements)
