"""Forward dynamics of one state at a time, for integrators and controllers: compiled for single samples, or the recursion on floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.engine import Engine, check_angles, check_engine, compiled
from veridyn.mechanics.formula import Request
from veridyn.mechanics.forward import NEAR, check_mass, mass_matrix, solve_mass
from veridyn.mechanics.mass import equations_of_motion
from veridyn.mechanics.newton_euler import State, Wrench
from veridyn.mechanics.samples import loaded_bodies, minus_gravity, split
from veridyn.model.tree import Tree
from veridyn.spatial.algebra import FLOATS, Algebra, FloatAlgebra, rounded_sign
from veridyn.symbolic.kernel import Single

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Smooth(FloatAlgebra):
    """Dry friction rounded off at standstill, as in compiled code."""

    speed: float = 1.0

    def sign(self, x: float) -> float:
        return rounded_sign(x, self.speed)


class Instant:
    """Accelerations of one state: rows [v̇ − g; ω̇; q̈] for a free base, q̈ for a fixed one.

    The bodies on which wrenches act may change from call to call; each set of them is compiled once.
    """

    def __init__(self, tree: Tree, values: Array, friction_speed: float = 0.0, engine: Engine = "compiled") -> None:
        tree.check_open("integration")
        self.tree, self.values, self.friction_speed = tree, values, friction_speed
        check_engine(engine)
        self.compile = engine != "numpy"
        self.algebra: Algebra = _Smooth(friction_speed) if friction_speed > 0 else FLOATS
        self.X, self.gains = split(tree, values)
        self._signals = list(dict.fromkeys(e.signal for e in tree.elements if e.kind == "drive_gain"))
        self._singles: dict[tuple[int, ...], tuple[Single, NDArray[np.intp], NDArray[np.intp]]] = {}

    def __call__(
        self,
        q: Array,
        qd: Array,
        forces: Array,
        w: Array,
        v: Array,
        wrenches: Mapping[str, Array],
        signals: Mapping[str, float],
    ) -> Array:
        if not self.compile:
            return self._by_recursion(q, qd, forces, w, v, wrenches, signals)
        bodies = loaded_bodies(self.tree, wrenches)
        if bodies not in self._singles:
            check_mass(self.tree, mass_matrix(self.tree, q[None], self.values, engine="numpy"))
            self._singles[bodies] = self._prepare(bodies)
        single, take, rows = self._singles[bodies]
        given = [q, qd, forces, w, v]
        given += [wrenches[self.tree.bodies[j].name] for j in bodies]
        given += [np.array([signals[name] for name in self._signals])] if self._signals else []
        check_angles(self.tree, q)
        np.take(np.concatenate(given), take, out=single.inputs)
        single.call()
        out = np.zeros(len(self.tree.rows) + 1)
        out[rows] = single.outputs
        if not out[-1] < NEAR:
            check_mass(self.tree, mass_matrix(self.tree, q[None], self.values, engine="numpy"))
        return out[:-1]

    def _prepare(self, bodies: tuple[int, ...]) -> tuple[Single, NDArray[np.intp], NDArray[np.intp]]:
        """The kernel with its buffers, where its inputs stand among what is given, and the rows its outputs belong to."""
        tree, n = self.tree, self.tree.n
        rows = tuple(range(len(tree.rows)))
        request = Request("forward_checked", rows, bodies=bodies, friction_speed=self.friction_speed)
        made = compiled(tree, request, single=True)
        start = {"q": 0, "qd": n, "t": 2 * n, "w": 3 * n, "v": 3 * n + 3}
        start |= {f"f.{j}": 3 * n + 6 + 6 * k for k, j in enumerate(bodies)}
        start |= {f"m.{j}": 3 * n + 9 + 6 * k for k, j in enumerate(bodies)}
        after = 3 * n + 6 + 6 * len(bodies)
        take = []
        for name in made.kernel.inputs:
            kind, _, at = name.rpartition(".")
            take.append(after + self._signals.index(name[2:]) if name.startswith("s.") else start[kind] + int(at))
        single = Single(made.kernel, self.values[[int(p[2:]) for p in made.kernel.parameters]])
        return single, np.array(take, dtype=np.intp), np.array([label[0] for label in made.labels], dtype=np.intp)

    def _by_recursion(
        self,
        q: Array,
        qd: Array,
        forces: Array,
        w: Array,
        v: Array,
        wrenches: Mapping[str, Array],
        signals: Mapping[str, float],
    ) -> Array:
        tree, still = self.tree, [0.0] * self.tree.n
        acting: dict[int, Wrench] = {}
        for body, six in wrenches.items():
            fx, fy, fz, mx, my, mz = six.tolist()
            acting[tree.index(body)] = ((fx, fy, fz), (mx, my, mz))
        if tree.base == "free":
            (wx, wy, wz), (vx, vy, vz) = w.tolist(), v.tolist()
            state = State(q.tolist(), qd.tolist(), still, w=(wx, wy, wz), v=(vx, vy, vz))
        else:
            state = State(q.tolist(), qd.tolist(), still, vd=minus_gravity(tree))
        entries, bias = equations_of_motion(tree, state, self.X, self.gains, acting, signals, self.algebra)
        M = np.zeros((len(tree.rows), len(tree.rows)))
        for place, value in entries.items():
            M[place] = value
        load = -np.array(bias)
        load[len(tree.rows) - tree.n :] += forces
        return solve_mass(tree, M, load)
