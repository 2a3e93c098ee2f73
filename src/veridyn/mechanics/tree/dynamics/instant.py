"""Forward dynamics of one state at a time, for integrators and controllers: compiled for single samples, or the recursion on floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.tree.dynamics.engine import Engine, check_angles, check_engine, compiled, uniform_values
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass, open_mass_matrix, solve_mass
from veridyn.mechanics.tree.loops.assembly import Assembled, assembled, loop_values
from veridyn.mechanics.tree.loops.dynamics import nearest_closed, solve_closed, solve_regular
from veridyn.mechanics.tree.loops.equations import COUNTS
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import equations_of_motion
from veridyn.mechanics.tree.recursion.forces import state_rates
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies, minus_gravity, needs_velocity, split
from veridyn.mechanics.tree.recursion.newton_euler import State, Wrench, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.spatial.algebra import FLOATS, Algebra, FloatAlgebra, rotation_matrix, rounded_sign
from veridyn.symbolic.kernel import Single

ZERO = np.zeros(1)
STILL = np.zeros(3)
ORIGIN = np.array(
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
)  # position and quaternion of a base that stands in the ground's frame


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
        np.take(
            given, self.take, out=self.single.inputs[: len(self.take)]
        )  # a constant kernel takes none, and has room for one
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
        machine: Machine | Tree,
        values: Array,
        friction_speed: float = 0.0,
        engine: Engine = "compiled",
        omega: float = 0.0,
    ) -> None:
        self.tree = tree = tree_of(machine)
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
            M, load = self._by_recursion(q, qd, forces, w, v, wrenches, signals, pose)
            if not self.tree.loops:
                return solve_mass(self.tree, M, load, given_qdd)
            return self._closed(M, load, loop_values(self.tree, q[None], qd[None], "numpy")[0], qd, given_qdd)
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
        self,
        q: Array,
        qd: Array,
        forces: Array,
        w: Array,
        v: Array,
        wrenches: Mapping[str, Array],
        signals: Mapping[str, float],
        pose: Array,
    ) -> tuple[Array, Array]:
        """M and Γ − h of the open tree."""
        tree = self.tree
        acting: dict[int, Wrench] = {}
        for body, six in wrenches.items():
            fx, fy, fz, mx, my, mz = six.tolist()
            acting[tree.index(body)] = ((fx, fy, fz), (mx, my, mz))
        state = self._state(q, qd, w, v, pose)
        entries, bias = equations_of_motion(tree, state, self.X, self.gains, acting, signals, self.algebra)
        M = np.zeros((len(tree.rows), len(tree.rows)))
        for place, value in entries.items():
            M[place] = value
        load = -np.array(bias)
        load[len(tree.rows) - tree.n :] += forces
        return M, load
