"""A tree of bodies with its sensors, as filters see it: open or with loops, on a fixed base or a free one.

The attitude of a free base is a quaternion in the state; changes of it are turns about the base's own axes, so that it survives full turns.
It is reported as roll, pitch and yaw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.energy import energy
from veridyn.mechanics.loops.assembly import loop_values
from veridyn.mechanics.natural.minimal import Instant
from veridyn.mechanics.tree.model import TreeModel
from veridyn.mechanics.tree_readout import TreeReadout, tree_readout
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.sensor import Sensor
from veridyn.observe.machine import SystemStep
from veridyn.observe.one_set import OneSetSystem
from veridyn.spatial.rotations import matrix_of

if TYPE_CHECKING:
    from veridyn.observe.filter import CompiledStep

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeSystem(OneSetSystem):
    """A tree with the sensors of `table`; made by :func:`~veridyn.observe.setup.machine_system`."""

    tree_model: TreeModel

    @property
    def model(self) -> TreeModel:
        return self.tree_model

    @property
    def name(self) -> str:
        return self.model.tree.name

    @property
    def nq(self) -> int:
        return self.model.nq

    @property
    def nv(self) -> int:
        return self.model.nv

    @property
    def coordinate_sizes(self) -> Array:
        return self.model.sizes

    @property
    def start_unknown(self) -> Array:
        return self.model.start_unknown

    def parameter_unit(self, name: str) -> str:
        return self.model.varying_unit(name)

    def unit_of(self, coordinate: str) -> str:
        names = dict(zip(self.model.names, self.model.units, strict=True))
        return names[coordinate] if coordinate in names else self.model.unit_of(coordinate)

    def force_unit(self, name: str) -> str:
        return self.model.force_unit(name)

    def accelerations(self, x: Array, inputs: Array) -> Array:
        q, qd, u, _ = self.split(x)
        return self.model.instant(q, qd, u, self.acting(inputs), derivative=False).qdd

    def posed(self, x: Array, inputs: Array) -> tuple[Array, Array, Array]:
        """Prescribed coordinates are where the inputs have them now, and what loops tie follows."""
        if not self.model.tree.held:
            return super().posed(x, inputs)
        q, qd, u, _ = self.split(x)
        found = self.model.instant(q, qd, u, self.acting(inputs), derivative=False)
        return found.q, found.qd, found.qdd

    def posed_at(self, x: Array, at: Instant) -> tuple[Array, Array]:
        return (at.q, at.qd) if self.model.tree.held else super().posed_at(x, at)

    def later(self, inputs: Array, dt: float) -> Array | None:
        """The inputs of a moment dt seconds later, where none are given then: prescribed coordinates go on with q̈; None without any."""
        if not self.model.tree.held or not len(inputs):
            return None
        out, place = inputs.copy(), {name: k for k, name in enumerate(self.inputs)}
        for name in self.model.tree.prescribed:
            q, qd, qdd = (place.get(f"{symbol}.{name}", -1) for symbol in ("q", "qd", "qdd"))
            rate, rising = (inputs[k] if k >= 0 else 0.0 for k in (qd, qdd))
            if q >= 0:
                out[q] += dt * rate + 0.5 * dt**2 * rising
            if qd >= 0:
                out[qd] += dt * rising
        return out

    def add(self, x: Array, d: Array) -> Array:
        q, qd, u, b = self.split(x if d.ndim == 1 else np.broadcast_to(x, (*d.shape[:-1], len(x))))
        f, k = self.f, self.extra
        unknown = u + d[..., 2 * f : 2 * f + k]
        at = self.model.moved(q, qd, d[..., : 2 * f], unknown, self.still)
        return self.join(at.q, at.qd, unknown, b + d[..., 2 * f + k :])

    def subtract(self, a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        (qa, qda, ua, ba), (qb, qdb, ub, bb) = self.split(a), self.split(b)
        return np.concatenate([self.model.difference(qa, qda, qb, qdb), ua - ub, ba - bb], axis=-1)

    def compiled_step(self, gate: float | None) -> CompiledStep:
        """Filter steps by machine code, for one caller."""
        from veridyn.observe.tree_step import TreeStep

        return TreeStep(self, self.model, gate)

    def one_step(self, x: Array, inputs: Array, dt: float, derivative: bool = True, since: float = 0.0) -> SystemStep:
        q, qd, u, b = self.split(x)
        found = self.model.step(q, qd, u, dt, self.acting(inputs), derivative, since)
        moved = self.join(found.q, found.qd, found.u, b)
        if derivative and not self.model.tree.held:  # whose place is given anew with the next inputs
            self.remember(moved, inputs, found)
        return SystemStep(moved, found, 0, None, None)

    def readout(self, sensors: Sequence[Sensor]) -> TreeReadout:
        return tree_readout(self.model.tree, sensors)

    def energies(self, q: Array, qd: Array) -> Array:
        tree, first, N = self.model.tree, self.nv - self.model.tree.n, len(q)
        base, R = None, None
        if self.model.free:
            R = matrix_of(q[:, 3:7])
            velocity = np.einsum("nji,nj->ni", R, qd[:, :3])
            base = BaseMotion(qd[:, 3:6], np.zeros((N, 3)), np.zeros((N, 3)), velocity)
        joints = qd[:, first:]
        motion = Motion(np.arange(float(N)), q[:, self.nq - tree.n :], joints, np.zeros_like(joints), base)
        place = q[:, :3] if self.model.free else None
        found = energy(tree, motion, base_rotation=R, base_position=place, parameters=self.model.values)
        return np.column_stack([found.kinetic, found.gravity, found.elastic])

    def constraint_errors(self, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
        tree = self.model.tree
        if not tree.loops:
            return 0.0, 0.0, 0.0
        n, joints = tree.n, slice(-tree.n, None)
        T = loop_values(tree, q[None, joints], qd[None, joints])[0]
        J = T[:, :n]
        errors = (T[:, n], J @ qd[joints], J @ qdd[joints] + T[:, n + 1])
        first, second, third = (float(np.abs(x).max(initial=0.0)) for x in errors)
        return first, second, third

    def accelerated(self, found: Instant, number: int) -> Array:
        return found.qdd_x[self.model.own]
