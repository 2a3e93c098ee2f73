"""Reactions, forces of elements and drives, and accelerations of a tree at one state, with exact derivatives; made ready once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.engine import check_angles, compiled, uniform_values
from veridyn.mechanics.loops.assembly import loop_values
from veridyn.mechanics.loops.equations import COUNTS
from veridyn.mechanics.symbols import Request
from veridyn.mechanics.tree.model import TreeInstant, TreeModel
from veridyn.mechanics.tree.quantity import Quantity
from veridyn.mechanics.tree.statement import input_of
from veridyn.model.load import components
from veridyn.symbolic.kernel import Single

Array = NDArray[np.float64]
UNIQUE_REACTION = 1e-7  # of what a unit multiplier does: undetermined multipliers may change a reaction by rounding
ZERO_SINGULAR_VALUE = 1e-9  # of the largest singular value of the loops' slopes, below which one counts as zero


@dataclass(frozen=True, eq=False)
class QuantitySlopes:
    """Values (c,) and their derivatives with respect to x (in its tangent), v and a (c, nv each), λ (c, m) and what varies (c, p)."""

    y: Array
    by_x: Array
    by_v: Array
    by_a: Array
    by_lam: Array
    by_varying: Array


class TreeQuantities:
    """Quantities of a model's tree, one behind the other. Not for two threads at once, as the model is not."""

    def __init__(self, model: TreeModel, wanted: Sequence[Quantity]) -> None:
        self.model, self.wanted, tree = model, tuple(wanted), model.tree
        self.count = sum(q.count(tree) for q in self.wanted)
        self.equations = sum(COUNTS[loop.joint] for loop in tree.loops)
        columns = model.kernels.columns
        kernels = model.kernels
        request = Request("quantities", (), (self.wanted, columns), kernels.bodies, kernels.friction_speed)
        made = compiled(tree, request, single=True)
        self._parameters = uniform_values(tree, model.values, made.kernel.parameters)
        self._single = Single(made.kernel, self._parameters)
        self._places = tuple(np.array(made.labels, dtype=np.intp).reshape(-1, 2).T)
        self._take = np.array([self._where(name) for name in made.kernel.inputs], dtype=np.intp)
        names = [input_of(tree, column) for column in columns]
        self._varying = [
            (made.kernel.parameters.index(n), j) for j, n in enumerate(names) if n in made.kernel.parameters
        ]

    def at(self, x: Array, v: Array, instant: TreeInstant, loads: tuple[Array, Array]) -> QuantitySlopes:
        """Values and derivatives at a state x, v with its accelerations, multipliers and unknown quantities, under these loads."""
        return self._evaluated(x, v, instant.qdd, self.all_multipliers(instant.multipliers), instant.u, loads[1])

    def all_multipliers(self, multipliers: Array) -> Array:
        """Those of all equations of all loops: zero where an equation says nothing new."""
        lam = np.zeros(self.equations)
        lam[list(self.model.rows)] = multipliers
        return lam

    @cached_property
    def determined(self) -> NDArray[np.bool_]:
        """Which numbers (c,) the equations of motion determine: with redundant equations of loops not all of them need be.

        They do not where multipliers that move nothing, Φ_qᵀ λ = 0, change them; at the home position and one beside it.
        """
        model, tree = self.model, self.model.tree
        out = np.ones(self.count, dtype=np.bool_)
        if self.equations == len(model.rows):
            return out
        x, v = model.start_of()
        step = 0.02 * model.sizes[model.own]
        beside = model.moved(x, v, np.concatenate([step, np.zeros(model.f)]), model.start_unknown, model.loads())
        for pose in (x, beside.q):
            J = loop_values(tree, pose[None, len(pose) - tree.n :])[0, :, : tree.n]
            U, s, _ = np.linalg.svd(J)
            free = U[:, int((s > ZERO_SINGULAR_VALUE * s[0]).sum()) :]
            outside = model.loads()[1]
            found = self._evaluated(pose, v, 0.0 * v, np.zeros(self.equations), model.start_unknown, outside)
            change = np.abs(found.by_lam_all @ free).max(axis=1, initial=0.0)
            out &= change <= UNIQUE_REACTION * max(float(np.abs(found.by_lam_all).max(initial=0.0)), 1.0)
        return out

    def _evaluated(self, x: Array, v: Array, a: Array, lam: Array, u: Array, outside: Array) -> _All:
        model, tree = self.model, self.model.tree
        check_angles(tree, x[len(x) - tree.n :])
        varying = u[len(model.unknown) :]
        inside = outside[: len(model.kernels.outside)].copy()
        for j, place in self._outside:
            inside[place] = varying[j]
        for place, j in self._varying:
            self._parameters[place] = varying[j]
        given = np.concatenate([x, v, a, lam, inside])
        self._single.inputs[: len(self._take)] = given[self._take]
        self._single.call()
        nv, m = model.nv, self.equations
        out = np.zeros((self.count, 1 + 3 * nv + m + len(model.kernels.columns)))
        out[self._places] = self._single.outputs[: len(self._places[0])]
        y, by_x, by_v, by_a, by_lam, by_varying = np.split(out, np.cumsum([1, nv, nv, nv, m]), axis=1)
        return _All(y[:, 0], by_x, by_v, by_a, by_lam[:, list(model.rows)], by_varying, by_lam)

    @cached_property
    def _outside(self) -> list[tuple[int, int]]:
        """What varies and is read from outside: (number among what varies, place)."""
        names = self.model.kernels.outside
        labels = [*self.model.varying, *(f"signal.{name}" for name in self.model.inner)]
        return [(j, names.index(name)) for j, name in enumerate(labels) if name in names]

    def _where(self, name: str) -> int:
        """Where an input of the kernel stands in (x, v, a, λ, outside)."""
        model = self.model
        base, nq, nv = (6 if model.free else 0), model.nq, model.nv
        kind, _, rest = name.partition(".")
        after = nq + 2 * nv + self.equations
        outside = model.kernels.outside
        if kind == "s":
            return after + outside.index(f"signal.{rest}")
        if kind == "c":
            return after + len(outside) - self._loads + int(rest)
        if kind in ("f", "m"):
            body, _, axis = rest.partition(".")
            return after + 6 * model.kernels.bodies.index(int(body)) + int(axis) + (3 if kind == "m" else 0)
        start = {
            "e": 3, "q": 7 if base else 0, "V": nq, "w": nq + 3, "qd": nq + base,
            "A": nq + nv, "wd": nq + nv + 3, "qdd": nq + nv + base, "l": nq + 2 * nv,
        }  # fmt: skip
        return start[kind] + int(rest)

    @property
    def _loads(self) -> int:
        return sum(components(load) for load in self.model.tree.loads)


@dataclass(frozen=True, eq=False)
class _All(QuantitySlopes):
    """With the derivatives by the multipliers of all equations."""

    by_lam_all: Array
