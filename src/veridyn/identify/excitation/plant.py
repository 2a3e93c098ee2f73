"""What an experiment is designed for: the equations of a machine along a motion of some of its coordinates, with exact derivatives.

X (3, N, n) holds x, ẋ and ẍ of the coordinates that are designed. The regressor over base parameters is A(X) (N, rows, p); the gradient of
Σ G∘A by X is again (3, N, n). What limits bound is given the same way: values (N, k), and their slopes by X (N, k, 3, n).

Coordinates q of a machine with loops follow from any independent ones x, such as the pose of its platform. With S = ∂q/∂x, symmetry of
second derivatives makes the rates of S all that is needed:

    δq = S δx,   δq̇ = S δẋ + Ṡ δx,   δq̈ = S δẍ + 2 Ṡ δẋ + S̈ δx

and, from Φ_q S = 0 with the rows of x fixed, Ṡ = −Φ_s⁻¹ Φ̇_q S and S̈ = −Φ_s⁻¹ (Φ̈_q S + 2 Φ̇_q Ṡ). The equations are the actuated rows
PᵀD with P = ∂q/∂q_a = S S_a⁻¹ (paper 002, (5) to (7)); the slope of P by x_j is that of S, which is Ṡ for the rates S e_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Limit, ModelError
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.mechanics.tree.dynamics.engine import Buffer, compiled, filled
from veridyn.mechanics.tree.dynamics.forward import mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import open_adjoint, regressor_adjoint
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, Split, splitting
from veridyn.mechanics.tree.loops.closing import loops_at, newton, refuse_open, smooth, step_towards
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.loops.equations import COUNTS
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.kinematics import body_pose, jacobian
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

HELD_BASE = Limit(
    "how a free base moves, the forces on it decide, so that no motion can be asked of it: the base must be held",
    "Put the base on six joints with on_six_joints(machine), and let limits say how far each may go.",
)
WARM_START_DISTANCE = 0.05  # rad, and of the machine's reach: how far a motion may be from the last one to begin at it


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

    @cached_property
    def tree(self):
        """The machine as its equations are computed with."""
        return tree_of(self.machine)

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
        D = filled(compiled(self.tree, request, few=True), self.tree, self._motion(X), shape, place, out=out)
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
        both = filled(compiled(self.tree, request, few=True), self.tree, self._motion(X), shape, values=every)
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


def plant_of(machine: Machine, rows: Rows = "all", at: Sequence[str] | None = None) -> Plant:
    """The plant of a tree joint by joint, or of a machine with loops in its coordinates `at` (those that are independent if not given)."""
    if machine.closed:
        return ClosedPlant(machine, tuple(at or (machine.coordinates[k] for k in machine.independent)), rows)
    if at is not None and tuple(at) != machine.coordinates:
        raise ModelError(
            "the machine has no loops, so all of its coordinates are designed.",
            where=machine.name,
            expected=", ".join(machine.coordinates),
            found=", ".join(at),
        )
    return TreePlant(machine, rows)


@dataclass(frozen=True, eq=False)
class _State:
    """A closed motion: all coordinates, S (N, n, x), Φ_s⁻¹ and, on request, Ṡ and S̈."""

    motion: Motion
    S: Array
    B: Array
    first: Array | None = None
    second: Array | None = None


@dataclass(frozen=True, eq=False)
class ClosedPlant(MachinePlant):
    """A tree with loops; limits speak of its independent coordinates (its actuators), `at` is what is designed."""

    machine: Machine
    at: tuple[str, ...]
    chosen: Rows = "all"
    _last: dict[bytes, _State] = field(default_factory=dict, repr=False)
    _near: dict[str, Array] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        splitting(self.tree, self.at)  # refuses what does not determine the machine

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.at

    @property
    def bounded(self) -> tuple[str, ...]:
        return tuple(self.machine.coordinates[k] for k in self.machine.independent)

    @property
    def split(self) -> Split:
        return splitting(self.tree, self.at)

    @property
    def home(self) -> Array:
        return self.split.home[list(self.split.given)]

    @cached_property
    def _rows(self) -> list[int]:
        """The chosen rows' places among the independent coordinates."""
        numbers = [r - len(self.machine.rows) + self.machine.n for r in self.machine.select_rows(self.chosen)]
        return [self.machine.independent.index(k) for k in numbers]

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.bounded[k] for k in self._rows)

    def _closed(self, X: Array, slope: bool = False) -> _State:
        """The closed motion; goal and limits of one step of a search ask for the same one, so the last is kept."""
        key = X.tobytes()
        kept = self._last.get(key)
        if kept is None:
            kept = self._solved(X)
        if slope and kept.first is None:
            kept = self._sloped(kept)
        self._last.clear()
        self._last[key] = kept
        return kept

    def _solved(self, X: Array) -> _State:
        split, begin = self.split, self._begin(X[0])
        q = begin.copy()
        q[:, split.given] = X[0]
        residual = newton(split, q, CLOSED_TOLERANCE_M, "compiled")[1]
        at = loops_at(split, q, "compiled")
        left = (residual > CLOSED_TOLERANCE_M) | (at.sign != split.sign)
        if left.any() or not smooth(split, q, at.slope):
            # Far from where they begin Newton's steps end in another assembly, or nowhere: small steps stay on the branch.
            last = self._near.get("q")
            q, _ = step_towards(split, X[0], begin if last is None or len(last) != len(begin) else last, "compiled")
            residual = newton(split, q, CLOSED_TOLERANCE_M, "compiled")[1]
            at = loops_at(split, q, "compiled")
        refuse_open(split, q, residual, CLOSED_TOLERANCE_M)
        at.check(split.sign)
        S, B = at.jacobian, at.inverted
        qd = np.einsum("nij,nj->ni", S, X[1])
        qdd = np.einsum("nij,nj->ni", S, X[2])
        qdd[:, split.solved] -= np.einsum("nij,nj->ni", B, at.bias(qd, "compiled"))
        self._near["q"] = q
        return _State(Motion(np.arange(len(q), dtype=np.float64), q, qd, qdd), S, B)

    def _begin(self, x: Array) -> Array:
        """Where Newton's steps begin: at the last motion, or so many copies of it, if this one is near it; at home if not."""
        split, near = self.split, self._near.get("q")
        if near is not None and len(x) % len(near) == 0:
            tiled = np.tile(near, (len(x) // len(near), 1))
            if (np.abs(tiled[:, list(split.given)] - x) < WARM_START_DISTANCE * split.unit[list(split.given)]).all():
                return tiled
        return np.broadcast_to(split.home, (len(x), self.machine.n)).copy()

    def _sloped(self, s: _State) -> _State:
        _, rate, change = np.moveaxis(self._loops("loop_rates", s.motion), 1, 0)
        first, second = np.zeros_like(s.S), np.zeros_like(s.S)
        first[:, self.split.solved] = -s.B @ (rate @ s.S)
        second[:, self.split.solved] = -s.B @ (change @ s.S + 2.0 * rate @ first)
        return replace(s, first=first, second=second)

    def _loops(self, quantity: str, motion: Motion) -> Array:
        """(N, orders, rows that count, n)."""
        machine = self.machine
        count = sum(COUNTS[joint.kind] for joint in machine.cut_joints)
        orders = 3 if quantity == "loop_rates" else 2
        made = compiled(self.tree, Request(quantity), few=True)
        whole = filled(made, self.tree, motion, (orders, count, machine.n))
        return np.ascontiguousarray(whole[:, :, list(self.split.rows)])

    def _open(self, motion: Motion, friction_speed: float) -> Array:
        """D T (N, n, p) of the open tree."""
        used, T = self._spread
        rows = tuple(range(self.machine.n))
        request = Request("regressor", rows, used, friction_speed=friction_speed)
        place = {(r, c): (r, b) for r in rows for b, c in enumerate(used)}
        return filled(compiled(self.tree, request, few=True), self.tree, motion, (len(rows), len(used)), place) @ T

    def _projection(self, S: Array) -> tuple[Array, Array]:
        """P (N, n, actuators), and S_a⁻¹."""
        Sa = S[:, list(self.machine.independent)]
        inverted = np.asarray(np.linalg.inv(Sa), dtype=np.float64)
        return S @ inverted, inverted

    def regressor(self, X: Array, friction_speed: float = 0.0) -> Array:
        state = self._closed(X)
        P = self._projection(state.S)[0][:, :, self._rows]
        return np.swapaxes(P, 1, 2) @ self._open(state.motion, friction_speed)

    def adjoint(self, X: Array, G: Array, friction_speed: float = 0.0) -> Array:
        machine, split = self.machine, self.split
        s = self._closed(X, slope=True)
        assert s.first is not None and s.second is not None
        P, inverted = self._projection(s.S)
        whole = np.zeros((len(G), P.shape[2], G.shape[2]))
        whole[:, self._rows] = G
        used, T = self._spread
        rows = tuple(range(machine.n))
        weights = (P @ whole) @ T.T
        by_q = open_adjoint(self.tree, s.motion, weights, rows, used, friction_speed, "compiled")
        back = np.swapaxes(s.S, 1, 2), np.swapaxes(s.first, 1, 2), np.swapaxes(s.second, 1, 2)
        a, b, c = by_q[:, 0, :, None], by_q[:, 1, :, None], by_q[:, 2, :, None]
        out = np.stack([back[0] @ a + back[1] @ b + back[2] @ c, back[0] @ b + 2.0 * back[1] @ c, back[0] @ c])[..., 0]
        by_P = self._open(s.motion, friction_speed) @ np.swapaxes(whole, 1, 2)
        by_S = by_P @ np.swapaxes(inverted, 1, 2)
        by_S[:, list(machine.independent)] -= np.swapaxes(P, 1, 2) @ by_P @ np.swapaxes(inverted, 1, 2)
        Y = np.swapaxes(s.B, 1, 2) @ by_S[:, split.solved] @ np.swapaxes(s.S, 1, 2)
        out[0] -= self._turned(s, Y)
        return out

    def force_slopes(self, X: Array, values: Array, rows: Sequence[int], friction_speed: float = 0.0) -> Array:
        return row_slopes(self, X, values, rows, friction_speed)

    def _turned(self, s: _State, Y: Array) -> Array:
        """⟨Y, the rate of Φ_q along S e_j⟩ for each designed coordinate j: (N, x)."""
        N, k = s.S.shape[0], s.S.shape[2]
        q = np.tile(s.motion.q, (k, 1))
        rates = np.concatenate([s.S[:, :, j] for j in range(k)])
        along = Motion(np.arange(len(q), dtype=np.float64), q, rates, np.zeros_like(q))
        rate = self._loops("loop_rate", along)[:, 1].reshape(k, N, *Y.shape[1:])
        return np.einsum("jnab,nab->nj", rate, Y)

    def actuators(self, X: Array) -> tuple[Array, Array | None]:
        s = self._closed(X, slope=True)
        assert s.first is not None and s.second is not None
        own = list(self.machine.independent)
        Q = np.stack([s.motion.q[:, own], s.motion.qd[:, own], s.motion.qdd[:, own]], axis=1)
        slope = np.zeros((*Q.shape, 3, len(self.at)))
        slope[:, 0, :, 0] = slope[:, 1, :, 1] = slope[:, 2, :, 2] = s.S[:, own]
        slope[:, 1, :, 0] = s.first[:, own]
        slope[:, 2, :, 1] = 2.0 * s.first[:, own]
        slope[:, 2, :, 0] = s.second[:, own]
        return Q, slope

    def located(self, positions: Array) -> Array:
        return close(self.machine, positions, engine="compiled").q[:, list(self.split.given)]

    def place(self, X: Array, body: str, point: Array) -> tuple[Array, Array]:
        s = self._closed(X)
        at, by_q = point_of(self.machine, s.motion.q, body, point)
        return at, by_q @ s.S

    def posture(self, X: Array) -> tuple[Array, Array | None]:
        s = self._closed(X)
        return s.motion.q, s.S


def closed_samples(plant: Plant, t: Array, X: Array) -> Motion:
    """All coordinates of a plant along a motion of the designed ones."""
    if isinstance(plant, ClosedPlant):
        m = plant._closed(X).motion
        return Motion(t, m.q, m.qd, m.qdd)
    if X.shape[2] != len(plant.coordinates):
        raise DataError("the motion is not one of this machine.", where=plant.name)
    return Motion(t, X[0], X[1], X[2])
