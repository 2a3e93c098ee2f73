"""The rates of a tree's state at one instant under everything that acts on it: forces, loads, wrenches, contacts, roads, given motions.

A state vector is (q, q̇), of a free base (position, quaternion, q, velocity in the ground's frame, ω in its own, q̇); the states that
elements have of their own come last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.ground.road import fill_surface
from veridyn.mechanics.system.simulation import BaseState, Inputs, checked_forces, odd_signal
from veridyn.mechanics.tree.dynamics.instant import ORIGIN, StateAccelerations
from veridyn.mechanics.tree.loops.dynamics import onto_closure
from veridyn.mechanics.tree.recursion.sensing import load_matrix
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Load
from veridyn.spatial.rotations import quaternion_rate, rotation_of

NOTHING = np.zeros(0)


@dataclass(frozen=True, eq=False)
class ActingInputs:
    """What inputs do to a machine at a time, by its description as a tree; in whichever coordinates the motion is computed."""

    tree: Tree
    inputs: Inputs

    @property
    def free(self) -> bool:
        return self.tree.base == "free"

    @property
    def names(self) -> list[str]:
        """Of each component of a state vector the coordinate that it belongs to."""
        base, n = ["base"] if self.free else [], list(self.tree.coordinates)
        return [*7 * base, *n, *6 * base, *n, *(s.name for s in self.tree.states)]

    @property
    def own(self) -> int:
        """How many states elements have of their own; they are the last of a state vector."""
        return len(self.tree.states)

    def base_state(self, y: Array) -> BaseState:
        """Where a free base is and how it moves; at rest in the origin where it is fixed."""
        if not self.free:
            return BaseState()
        n = self.tree.n
        return BaseState(y[:3], y[3:7] / np.linalg.norm(y[3:7]), y[7 + n : 10 + n], y[10 + n : 13 + n])

    @cached_property
    def placed(self) -> tuple[Load, ...]:
        """The loads that act at places and on bodies."""
        return tuple(load for load in self.tree.loads if not isinstance(load, Drive))

    def values_of_loads(self, t: float) -> dict[str, Array]:
        """The value of every load at a time."""
        given = {} if self.inputs.loads is None else self.inputs.loads(t)
        return {
            load.name: np.atleast_1d(np.asarray(given.get(load.name, load.value), dtype=np.float64))
            for load in self.tree.loads
        }

    def driving(self, t: float) -> Array:
        """(n,): what the drives of the machine do at a time."""
        forces = np.zeros(self.tree.n)
        if self.tree.loads:
            values = self.values_of_loads(t)
            for load in self.tree.loads:
                if isinstance(load, Drive):
                    forces[self.tree.coordinates.index(load.coordinate)] += values[load.name][0]
        return forces

    def given_forces(self, t: float, q: Array, qd: Array) -> Array:
        """(n,): the given forces at a time, refused by name where one is no number."""
        assert self.inputs.forces is not None  # the caller looked
        return checked_forces(self.inputs.forces, t, q, qd, self.tree.coordinates)

    def prescribed(self, t: float) -> Array:
        """(3, n): q, q̇ and q̈ of the prescribed coordinates at a time, zero elsewhere."""
        assert self.inputs.prescribed is not None  # the start was checked
        given, out = self.inputs.prescribed(t), np.zeros((3, self.tree.n))
        for k in self.tree.held:
            out[:, k] = given[self.tree.coordinates[k]]
        return out

    def with_prescribed(self, t: float, y: Array) -> Array:
        """A state with its prescribed coordinates and rates as they are prescribed at a time."""
        if not self.tree.held:
            return y
        held, out, at = np.array(self.tree.held), y.copy(), 7 if self.free else 0
        given = self.prescribed(t)
        out[at + held], out[len(y) - self.own - self.tree.n + held] = given[0, held], given[1, held]
        return out


@dataclass(frozen=True, eq=False)
class StateRates(ActingInputs):
    """The rate of a state vector under inputs: (q, q̇), before them position and quaternion of a free base, behind them elements' own."""

    instant: StateAccelerations

    def accelerations(
        self, t: float, y: Array, friction: Array | None = None
    ) -> tuple[Array, Array, dict[str, Array], Mapping[str, float]]:
        """All accelerations, and the forces, wrenches and signals that cause them, elements' own states among the latter.

        `friction` (n,) acts on the coordinates too, and is not among the forces that are returned.
        """
        n = self.tree.n
        own, y = y[len(y) - self.own :], y[: len(y) - self.own]
        at = 7 if self.free else 0
        q, qd = y[at : at + n], y[len(y) - n :]
        act = self.inputs
        forces = self.driving(t) if act.forces is None else self.given_forces(t, q, qd)
        forces[list(self.tree.held)] = 0.0  # what they need is found afterwards
        wrenches = {} if act.wrenches is None else act.wrenches(t, q, qd)
        wrenches = {k: np.asarray(w, dtype=np.float64) for k, w in wrenches.items()}
        if act.contacts is not None:
            for body, w in act.contacts(t, self.base_state(y), q, qd).items():
                wrenches[body] = wrenches.get(body, 0.0) + np.asarray(w, dtype=np.float64)
        acting, pushed = forces, wrenches
        if self.placed:
            acting, pushed = self.pushed(t, y[: at + n], forces, wrenches)
        if friction is not None:
            acting = acting + friction
        signals = {} if act.signals is None else act.signals(t, q, qd)
        for name, value in signals.items():
            if not math.isfinite(value):
                raise odd_signal(name, value, t)
        pose = y[:7] if self.free else ORIGIN
        if self.packed_road is not None:
            signals = {**signals, **self.under_wheels(q, pose)}
        if self.own:
            signals = {**signals, **{s.name: float(x) for s, x in zip(self.tree.states, own, strict=True)}}
        v = w = np.zeros(3)
        if self.free:
            v, w = rotation_of(y[3:7]).T @ y[7 + n : 10 + n], y[10 + n : 13 + n]
        qdd = self.prescribed(t)[2] if self.tree.held else None
        return self.instant(q, qd, acting, w, v, pushed, signals, qdd, pose), forces, wrenches, signals

    @cached_property
    def packed_road(self) -> Array | None:
        """The road for compiled code, where there are a road and tyres."""
        road = self.inputs.road
        return None if road is None or not self.tree.wheels else road.packed

    def under_wheels(self, q: Array, pose: Array) -> dict[str, float]:
        """What tyres read of the road: height at the ground's origin and slopes of the plane below each wheel."""
        assert self.packed_road is not None  # the caller looked
        places, out = self.instant.wheel_places(q, pose), np.empty((3, len(self.tree.wheels)))
        x, y = np.ascontiguousarray(places.T)
        fill_surface(self.packed_road, x, y, out)
        out[0] -= out[1] * x + out[2] * y
        return dict(zip(self.tree.road_signals, out.T.reshape(-1).tolist(), strict=True))

    def pushed(self, t: float, q: Array, forces: Array, wrenches: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Forces and wrenches with what the placed loads add to them, in the configuration q: Q = B u."""
        values = self.values_of_loads(t)
        if self.free:
            q = np.concatenate([q[:3], q[3:7] / np.linalg.norm(q[3:7]), q[7:]])
        Q = load_matrix(self.tree, q[None], self.placed)[0] @ np.concatenate([values[x.name] for x in self.placed])
        if not self.free:
            return forces + Q, wrenches
        root = self.tree.bodies[0].name
        return forces + Q[6:], {**wrenches, root: wrenches.get(root, np.zeros(6)) + Q[:6]}

    def mended(self, t: Array, y: Array) -> Array:
        """States (N, …) at times (N,): as prescribed, and of a machine with loops the nearest that keeps them closed."""
        n, at = self.tree.n, 7 if self.free else 0
        out = np.array([self.with_prescribed(time, state) for time, state in zip(t.tolist(), y, strict=True)])
        if self.tree.loops:
            places, rates = slice(at, at + n), slice(out.shape[1] - self.own - n, out.shape[1] - self.own)
            one = self.instant.closest(out[0, places], out[0, rates]) if len(out) == 1 else None
            if one is not None:
                out[0, places], out[0, rates] = one
                return out
            engine = "compiled" if self.instant.compile else "numpy"
            out[:, places], out[:, rates] = onto_closure(self.tree, out[:, places], out[:, rates], engine)
        return out

    def rate(self, t: float, y: Array, friction: Array | None = None) -> Array:
        """ẏ, with forces of friction (n,) on the coordinates where they are given."""
        n = self.tree.n
        y = self.with_prescribed(t, y)
        a, _, _, signals = self.accelerations(t, y, friction)
        if self.own:
            y = y[: len(y) - self.own]
            at = 7 if self.free else 0
            base = ()
            if self.free:
                base = (y[10 + n : 13 + n], rotation_of(y[3:7]).T @ y[7 + n : 10 + n], y[:7])
            inner = self.instant.state_rates(y[at : at + n], y[len(y) - n :], signals, *base)
        else:
            inner = NOTHING
        if not self.free:
            return np.concatenate([y[n:], a, inner])
        quaternion, velocity, omega = y[3:7], y[7 + n : 10 + n], y[10 + n : 13 + n]
        R = rotation_of(quaternion)
        return np.concatenate(
            [velocity, quaternion_rate(quaternion, omega), y[13 + n :], R @ a[:3] + self.tree.gravity, a[3:], inner]
        )
