"""The rates of a tree's state at one instant, for integrators: forward dynamics of one state at a time, under everything that acts.

Compiled for single samples, or the recursion on floats. What acts are forces, loads, wrenches, contacts, roads and given motions. A state
vector is (q, q̇), of a free base (position, quaternion, q, velocity in the ground's frame, ω in its own, q̇); the states that elements have
of their own come last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.ground.road import fill_surface
from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.system.simulation import BaseState, Inputs, checked_forces, odd_signal
from veridyn.mechanics.tree.dynamics.engine import Engine, check_angles, check_engine, compiled, uniform_values
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass, open_mass_matrix, solve_mass
from veridyn.mechanics.tree.loops.assembly import Assembled, assembled
from veridyn.mechanics.tree.loops.dynamics import nearest_closed, onto_closure, solve_closed, solve_regular
from veridyn.mechanics.tree.loops.equations import COUNTS, equation_values
from veridyn.mechanics.tree.recursion.equations import equations_of_motion, state_rates
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies, minus_gravity, needs_velocity, split
from veridyn.mechanics.tree.recursion.newton_euler import State, Wrench, outward
from veridyn.mechanics.tree.recursion.sensing import load_matrix
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Load
from veridyn.spatial.algebra import FLOATS, Algebra, FloatAlgebra, rotation_matrix, rounded_sign
from veridyn.spatial.rotations import quaternion_rate, rotation_of
from veridyn.symbolic.kernel import Single

NOTHING, ZERO, STILL = np.zeros(0), np.zeros(1), np.zeros(3)
ORIGIN = np.eye(7)[3]  # position and quaternion of a base that stands in the ground's frame


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
        inner, at = NOTHING, 7 if self.free else 0
        if self.own:
            y = y[: len(y) - self.own]
            base = (y[10 + n : 13 + n], rotation_of(y[3:7]).T @ y[7 + n : 10 + n], y[:7]) if self.free else ()
            inner = self.instant.state_rates(y[at : at + n], y[len(y) - n :], signals, *base)
        if not self.free:
            return np.concatenate([y[n:], a, inner])
        quaternion, velocity, omega = y[3:7], y[7 + n : 10 + n], y[10 + n : 13 + n]
        R = rotation_of(quaternion)
        return np.concatenate(
            [velocity, quaternion_rate(quaternion, omega), y[13 + n :], R @ a[:3] + self.tree.gravity, a[3:], inner]
        )


@dataclass(frozen=True)
class _Smooth(FloatAlgebra):
    """Dry friction rounded off at standstill, as in compiled code."""

    speed: float = 1.0

    def sign(self, x: float) -> float:
        return rounded_sign(x, self.speed)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A kernel with its buffers: where its inputs stand among what is given, and the places its outputs belong to."""

    single: Single
    take: NDArray[np.intp]
    places: tuple[NDArray[np.intp], ...]

    def fill(self, given: Array, out: Array) -> Array:
        inputs = self.single.inputs[: len(self.take)]  # a constant kernel takes none, and has room for one
        np.take(given, self.take, out=inputs)
        self.single.call()
        out[self.places] = self.single.outputs
        return out


class StateAccelerations:
    """Accelerations of one state: rows [v̇ − g; ω̇; q̈] for a free base, q̈ for a fixed one.

    The bodies on which wrenches act may change from call to call; each set of them is compiled once. `omega` (rad/s): how fast openings of
    loops die out, for integrators (:mod:`veridyn.mechanics.tree.loops.dynamics`).
    """

    def __init__(
        self,
        tree: Tree,
        values: Array,
        friction_speed: float = 0.0,
        engine: Engine = "compiled",
        omega: float = 0.0,
    ) -> None:
        self.tree = tree
        self.values, self.friction_speed, self.omega = values, friction_speed, omega
        check_engine(engine)
        self.compile = engine != "numpy"
        self.algebra: Algebra = _Smooth(friction_speed) if friction_speed > 0 else FLOATS
        self.X, self.gains = split(tree, values)
        self._signals, self._road = list(tree.signals), frozenset(tree.road_signals)
        self._rates: _Prepared | None = None
        self._places: _Prepared | None = None
        self._loops: _Prepared | None = None
        self._moves = False
        self._prepared: dict[tuple[int, ...], tuple[_Prepared, ...]] = {}

    def __call__(
        self,
        q: Array,
        qd: Array,
        forces: Array,
        w: Array,
        v: Array,
        wrenches: Mapping[str, Array],
        signals: Mapping[str, float],
        qdd: Array | None = None,
        pose: Array = ORIGIN,
    ) -> Array:
        """`qdd` (n,): the accelerations of prescribed coordinates; the other entries are not looked at.

        `pose` (7,): position and quaternion of a free base in the ground's frame, which only tyres need.
        """
        given_qdd = np.zeros(self.tree.n) if qdd is None else qdd
        if not self.compile:
            M, load = self._by_recursion(self._state(q, qd, w, v, pose), forces, wrenches, signals)
            if not self.tree.loops:
                return solve_mass(self.tree, M, load, given_qdd)
            return self._closed(M, load, equation_values(self.tree, q[None], qd[None])[0], qd, given_qdd)
        bodies = loaded_bodies(self.tree, wrenches)
        if bodies not in self._prepared:
            self._prepared[bodies] = self._prepare(bodies, q)
        given = [q, qd, forces, w, v, pose]
        given += [wrenches[self.tree.bodies[j].name] for j in bodies]
        given += [self._heard(signals)] if self._signals else []
        together = np.concatenate([*given, ZERO, given_qdd])
        check_angles(self.tree, q)
        rows = len(self.tree.rows)
        if self.tree.loops:
            mass, inverse, loops = self._prepared[bodies]
            load = -inverse.fill(together, np.zeros(rows))
            load[rows - self.tree.n :] += forces
            equations = loops.fill(together, np.zeros((self._equations, self.tree.n + 2)))
            return self._closed(mass.fill(together, np.zeros((rows, rows))), load, equations, qd, given_qdd)
        out = self._prepared[bodies][0].fill(together, np.zeros(rows + 1))
        if not out[-1] < NEAR_SINGULAR:
            check_mass(self.tree, open_mass_matrix(self.tree, q[None], self.values, engine="numpy"))
        return out[:-1]

    def state_rates(
        self,
        q: Array,
        qd: Array,
        signals: Mapping[str, float],
        w: Array = STILL,
        v: Array = STILL,
        pose: Array = ORIGIN,
    ) -> Array:
        """The rates of the states that elements have of their own; `signals` holds the states too.

        `w`, `v` and `pose`: the motion and pose of a free base, which only tyres need.
        """
        tree = self.tree
        if not self.compile:
            state = self._state(q, qd, w, v, pose)
            o = outward(tree, state, self.algebra, needs_velocity(tree))
            return np.array(state_rates(tree, state, o, signals, self.algebra))
        if self._rates is None:
            self._rates = self._kernel(Request("state_rates", friction_speed=self.friction_speed), ())
        given = np.concatenate([q, qd, np.zeros(tree.n), w, v, pose, self._heard(signals), ZERO])
        return self._rates.fill(given, np.zeros(len(tree.states)))

    def wheel_places(self, q: Array, pose: Array = ORIGIN) -> Array:
        """(wheels, 2): where the centres of the wheels with tyres are, x and y in the ground's frame."""
        tree = self.tree
        if not self.compile:
            state = self._state(q, np.zeros(tree.n), STILL, STILL, pose)
            o = outward(tree, state, self.algebra)
            return np.array([tyre_of(tree, e, state, o, {}, self.algebra).wheel.pose[1][:2] for e in tree.wheels])
        if self._places is None:
            self._places = self._kernel(Request("wheel_places"), ())
        given = np.concatenate([q, np.zeros(2 * tree.n + 6), pose, np.zeros(len(self._signals) + 1)])
        return self._places.fill(given, np.zeros((len(tree.wheels), 2)))

    def closest(self, q: Array, qd: Array) -> tuple[Array, Array] | None:
        """The nearest closed state of a machine with loops; None where that needs a closer look, and without compiled code."""
        if not self.compile:
            return None
        if self._loops is None:
            self._loops = self._kernel(Request("loop_motion"), ())
        kernel, shape = self._loops, (self._equations, self.tree.n + 2)

        def values(at: Array, rates: Array) -> Array:
            return kernel.fill(np.concatenate([at, rates]), np.zeros(shape))

        check_angles(self.tree, q)
        return nearest_closed(self.tree, values, q, qd, self._home)

    def _heard(self, signals: Mapping[str, float]) -> Array:
        """The signals in order; zero for what tyres read of a road that nobody mentions."""
        road = self._road
        return np.array([signals.get(name, 0.0) if name in road else signals[name] for name in self._signals])

    def _closed(self, M: Array, load: Array, loops: Array, qd: Array, qdd: Array) -> Array:
        if self._moves:
            found = solve_regular(self.tree, M, load, loops, qd, self.omega, self._home, qdd)
            if found is not None:
                return found
        self._moves = True  # some mass in every direction, or the first state is refused here
        one = (M[None], load[None], loops[None], qd[None])
        return solve_closed(self.tree, *one, self.omega, self._home, qdd[None])[0]

    @cached_property
    def _home(self) -> Assembled:
        return assembled(self.tree)

    @cached_property
    def _equations(self) -> int:
        return sum(COUNTS[loop.joint] for loop in self.tree.loops)

    def _prepare(self, bodies: tuple[int, ...], q: Array) -> tuple[_Prepared, ...]:
        """Of an open tree the kernel of its accelerations; of a closed one those of M, of h, and of its loops."""
        rows = tuple(range(len(self.tree.rows)))
        if self.tree.loops:
            inverse = Request("inverse", rows, bodies=bodies, friction_speed=self.friction_speed)
            return tuple(self._kernel(r, bodies) for r in (Request("mass"), inverse, Request("loop_motion")))
        check_mass(self.tree, open_mass_matrix(self.tree, q[None], self.values, engine="numpy"))
        request = Request("forward_checked", rows, bodies=bodies, friction_speed=self.friction_speed)
        return (self._kernel(request, bodies),)

    def _kernel(self, request: Request, bodies: tuple[int, ...]) -> _Prepared:
        n = self.tree.n
        made = compiled(self.tree, request, single=True)
        start = {"q": 0, "qd": n, "t": 2 * n, "w": 3 * n, "v": 3 * n + 3, "x": 3 * n + 6, "e": 3 * n + 9}
        start |= {f"f.{j}": 3 * n + 13 + 6 * k for k, j in enumerate(bodies)}
        start |= {f"m.{j}": 3 * n + 16 + 6 * k for k, j in enumerate(bodies)}
        after = 3 * n + 13 + 6 * len(bodies)
        take = []
        for name in made.kernel.inputs:
            kind, _, at = name.rpartition(".")
            if name.startswith("s."):
                take.append(after + self._signals.index(name[2:]))
            elif kind == "qdd" and request.quantity == "forward_checked":  # of a prescribed coordinate
                take.append(after + len(self._signals) + 1 + int(at))
            elif kind in ("qdd", "wd", "vd"):  # nothing accelerates: the kernel of h
                take.append(after + len(self._signals))
            else:
                take.append(start[kind] + int(at))
        single = Single(made.kernel, uniform_values(self.tree, self.values, made.kernel.parameters))
        places = tuple(np.array(made.labels, dtype=np.intp).T)
        return _Prepared(single, np.array(take, dtype=np.intp), places)

    def _state(self, q: Array, qd: Array, w: Array, v: Array, pose: Array) -> State:
        """One state without accelerations, as scalars of the recursion."""
        still = [0.0] * self.tree.n
        if self.tree.base != "free":
            return State(q.tolist(), qd.tolist(), still, vd=minus_gravity(self.tree))
        (wx, wy, wz), (vx, vy, vz) = w.tolist(), v.tolist()
        px, py, pz, e0, e1, e2, e3 = pose.tolist()
        R = rotation_matrix((e0, e1, e2, e3))
        return State(q.tolist(), qd.tolist(), still, w=(wx, wy, wz), v=(vx, vy, vz), R=R, p=(px, py, pz))

    def _by_recursion(
        self, state: State, forces: Array, wrenches: Mapping[str, Array], signals: Mapping[str, float]
    ) -> tuple[Array, Array]:
        """M and Γ − h of the open tree."""
        tree = self.tree
        acting: dict[int, Wrench] = {}
        for body, six in wrenches.items():
            fx, fy, fz, mx, my, mz = six.tolist()
            acting[tree.index(body)] = ((fx, fy, fz), (mx, my, mz))
        entries, bias = equations_of_motion(tree, state, self.X, self.gains, acting, signals, self.algebra)
        M = np.zeros((len(tree.rows), len(tree.rows)))
        for place, value in entries.items():
            M[place] = value
        load = -np.array(bias)
        load[len(tree.rows) - tree.n :] += forces
        return M, load
