"""What an experiment is designed for: the equations of a machine along a motion of some of its coordinates, with exact derivatives.

X (3, N, n) holds x, ẋ and ẍ of the coordinates that are designed. The regressor over base parameters is A(X) (N, rows, p); the gradient of
Σ G∘A by X is again (3, N, n). What limits bound is given the same way: values (N, k), and their slopes by X (N, k, 3, n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, Limit
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.mechanics.tree.dynamics.derivatives import regressor_adjoint
from veridyn.mechanics.tree.dynamics.engine import Buffer, compiled, filled
from veridyn.mechanics.tree.dynamics.forward import mass_matrix
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.kinematics import body_pose, jacobian
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

HELD_BASE = Limit(
    "how a free base moves, the forces on it decide, so that no motion can be asked of it: the base must be held",
    "Put the base on six joints with on_six_joints(machine), and let limits say how far each may go.",
)


def row_slopes(plant: Plant, X: Array, values: Array, rows: Sequence[int], friction_speed: float) -> Array:
    """:meth:`Plant.force_slopes` row by row, from the adjoint of any plant."""
    out = np.zeros((X.shape[1], len(rows), 3, X.shape[2]))
    for k, r in enumerate(rows):
        G = np.zeros((X.shape[1], len(plant.rows), len(values)))
        G[:, r] = values
        out[:, k] = np.moveaxis(plant.adjoint(X, G, friction_speed), 0, 1)
    return out


class Plant(Protocol):
    """Anything an excitation can be designed for.

    `coordinates` are those that are designed, `rows` the names of the equations, `base` what is to be found. `bounded` names the
    coordinates whose positions, speeds and accelerations limits speak of (the joints of an arm, the actuators of a parallel robot).
    `home` (n,) is a place to stand at where limits do not say one.
    """

    @property
    def machine(self) -> Machine: ...
    @property
    def name(self) -> str: ...
    @property
    def coordinates(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> tuple[str, ...]: ...
    @property
    def base(self) -> BaseParameters: ...
    @property
    def bounded(self) -> tuple[str, ...]: ...
    @property
    def home(self) -> Array: ...

    def regressor(self, X: Array, friction_speed: float = 0.0) -> Array:
        """A (N, rows, p); with a `friction_speed`, dry friction is rounded off below it."""
        ...

    def adjoint(self, X: Array, G: Array, friction_speed: float = 0.0) -> Array:
        """(3, N, n): the gradient of Σ G∘A."""
        ...

    def force_slopes(self, X: Array, values: Array, rows: Sequence[int], friction_speed: float = 0.0) -> Array:
        """(N, rows, 3, n): the slopes by X of the forces A χ of some rows, with base parameters `values` χ (p,)."""
        ...

    def actuators(self, X: Array) -> tuple[Array, Array | None]:
        """Positions, speeds, accelerations (N, 3, k) of `bounded`, and slopes (N, 3, k, 3, n); None: the coordinates themselves."""
        ...

    def located(self, positions: Array) -> Array:
        """The designed coordinates (N, n) from the positions (N, k) of `bounded`: direct kinematics."""
        ...

    def place(self, X: Array, body: str, point: Array) -> tuple[Array, Array]:
        """Where a point of a body is (N, 3), and its slopes by x (N, 3, n)."""
        ...

    def posture(self, X: Array) -> tuple[Array, Array | None]:
        """All coordinates of the tree (N, m), and their slopes by x (N, m, n); None: the coordinates themselves."""
        ...


def spread(base: BaseParameters) -> tuple[tuple[int, ...], Array]:
    """The standard columns that the base columns are made of, and how (ties add columns up)."""
    T = base.parameters.estimated_matrix()[:, list(base.columns)]
    used = tuple(int(c) for c in np.flatnonzero(T.any(axis=1)))
    return used, T[list(used)]


class MachinePlant:
    """What plants of machines on a fixed base share: the equations of the `chosen` rows, and their base parameters."""

    machine: Machine
    chosen: Rows

    def __post_init__(self) -> None:
        if self.machine.base == "free":
            raise CapabilityError(
                "tree", "periodic motion of a machine on a free base", *HELD_BASE, where=self.machine.name
            )

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def base(self) -> BaseParameters:
        return self._base

    @cached_property
    def _base(self) -> BaseParameters:
        return base_parameters(self.machine, rows=self.chosen)

    @cached_property
    def _spread(self) -> tuple[tuple[int, ...], Array]:
        return spread(self.base)


@dataclass(frozen=True, eq=False)
class TreePlant(MachinePlant):
    """A tree on a fixed base, designed joint by joint."""

    machine: Machine
    chosen: Rows = "all"

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.machine.coordinates

    @property
    def bounded(self) -> tuple[str, ...]:
        return self.machine.coordinates

    @property
    def home(self) -> Array:
        return np.zeros(self.machine.n)

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.machine.rows[r] for r in self.machine.select_rows(self.chosen))

    def _motion(self, X: Array) -> Motion:
        return Motion(np.arange(X.shape[1], dtype=np.float64), X[0], X[1], X[2])

    def regressor(self, X: Array, friction_speed: float = 0.0, out: Buffer | None = None) -> Array:
        used, T = self._spread
        chosen = self.machine.select_rows(self.chosen)
        request = Request("regressor", tuple(sorted(chosen)), used, friction_speed=friction_speed)
        place = {(r, c): (a, b) for a, r in enumerate(chosen) for b, c in enumerate(used)}
        shape = (len(chosen), len(used))
        D = filled(compiled(self.machine, request, few=True), self.machine, self._motion(X), shape, place, out=out)
        return D if len(used) == T.shape[1] and np.array_equal(T, np.eye(len(used))) else D @ T

    def adjoint(self, X: Array, G: Array, friction_speed: float = 0.0) -> Array:
        used, T = self._spread
        weights = G if len(used) == T.shape[1] and np.array_equal(T, np.eye(len(used))) else G @ T.T
        found = regressor_adjoint(
            self.machine, self._motion(X), weights, self.chosen, used, friction_speed=friction_speed, engine="compiled"
        )
        return np.moveaxis(found, 0, 1)

    def force_slopes(self, X: Array, values: Array, rows: Sequence[int], friction_speed: float = 0.0) -> Array:
        machine, n = self.machine, self.machine.n
        used, T = self._spread
        every = np.zeros(len(machine.parameters))
        every[list(used)] = T @ values
        chosen = [machine.select_rows(self.chosen)[r] for r in rows]
        out = np.empty((X.shape[1], len(chosen), 3, n))
        request = Request("inverse_derivatives", tuple(range(len(machine.rows))), friction_speed=friction_speed)
        shape = (2, len(machine.rows), n)
        both = filled(compiled(machine, request, few=True), machine, self._motion(X), shape, values=every)
        out[:, :, :2] = np.moveaxis(both[:, :, chosen], 1, 2)
        out[:, :, 2] = mass_matrix(machine, X[0], every, engine="compiled")[:, chosen]
        return out

    def actuators(self, X: Array) -> tuple[Array, Array | None]:
        return np.moveaxis(X, 0, 1), None

    def located(self, positions: Array) -> Array:
        return positions

    def place(self, X: Array, body: str, point: Array) -> tuple[Array, Array]:
        return point_of(self.machine, X[0], body, point)

    def posture(self, X: Array) -> tuple[Array, Array | None]:
        return X[0], None


def point_of(machine: Machine, q: Array, body: str, point: Array) -> tuple[Array, Array]:
    """Where a point of a body is in the ground's frame (N, 3), and its slopes by q (N, 3, n)."""
    R, p = body_pose(machine, q, body)
    J = jacobian(machine, q, body)
    arm = R @ point
    turned = np.stack([np.cross(J[:, 3:, k], arm) for k in range(J.shape[2])], axis=-1)
    return p + arm, J[:, :3] + turned
