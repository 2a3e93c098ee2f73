"""A tree over its independent coordinates: states from a few numbers, the trapezoidal step, and exact derivatives of both.

The same surface as :class:`veridyn.mechanics.natural.steps.minimal.Minimal` has for natural coordinates, for trees of all kinds: open or
with loops, on a fixed base or a free one. The configuration is q, with (p, e) of a free base in front
(:mod:`veridyn.mechanics.tree.steps.statement`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, did_you_mean
from veridyn.mechanics.formulation import FRICTION_SPEED, Instant, ModelStep
from veridyn.mechanics.tree.dynamics.engine import check_angles
from veridyn.mechanics.tree.loops.assembly import units
from veridyn.mechanics.tree.readout import TreeReadout, tree_readout
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.steps.kernels import TreeKernels, kernels_of
from veridyn.mechanics.tree.steps.record import DONE
from veridyn.mechanics.tree.steps.statement import column_of
from veridyn.mechanics.tree.steps.states import (
    BASE_NAMES,
    OverFreedoms,
    independent_joints,
    led_inputs,
    loop_errors,
    named_start,
    state_error,
    tree_energies,
    tree_trapezoid,
)
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Torque
from veridyn.model.parameter_set import Constant
from veridyn.model.parameters import Uncertainty
from veridyn.model.sensor import Sensor
from veridyn.spatial.rotations import angles_of, matrix_of

TreeLoads = tuple[Array, Array]  # generalised forces (nv,) and outside values


@dataclass(frozen=True, eq=False)
class TreeInstant(Instant):
    """An instant of a tree, with the unknown quantities `u` there: after a step the states of elements have moved.

    `F` (2f + s, 2f + k): its last rows are those of the states of elements.
    """

    u: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeModel(OverFreedoms):
    """A tree over the independent coordinates `names`; made by :func:`tree_model`.

    Behind the state (z, ż) stand the unknown quantities u: `unknown` names forces on coordinates; `varying` components of loads, parameters
    and constants of elements' laws; `inner` the states that elements have of their own, which move with the machine. `rows` numbers the
    equations of the loops whose multipliers an instant has. Not for two threads at once: it holds the buffers of its kernels.
    """

    tree: Tree
    names: tuple[str, ...]
    unknown: tuple[str, ...]
    varying: tuple[str, ...]
    values: Array
    z: tuple[int, ...]
    dependent: tuple[int, ...]
    rows: tuple[int, ...]
    B: Array
    kernels: TreeKernels = field(repr=False)
    uncertainty: Uncertainty | None = None
    form: Any = None  # the formulation that prepared it

    @property
    def kernel(self) -> str:
        """The layout of its compiled tables."""
        return "tree"

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def free(self) -> bool:
        return self.tree.base == "free"

    @property
    def f(self) -> int:
        """The number of degrees of freedom."""
        return len(self.names)

    @property
    def nq(self) -> int:
        """The length of a configuration."""
        return self.tree.n + (7 if self.free else 0)

    @property
    def nv(self) -> int:
        """The length of a velocity."""
        return self.tree.n + (6 if self.free else 0)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Of the independent coordinates."""
        base = ("m",) * 3 + ("rad",) * 3 if self.free else ()
        return (*base, *(self.unit_of(self.tree.coordinates[k]) for k in self.z))

    def unit_of(self, coordinate: str) -> str:
        """The unit of a coordinate by name, of those of a free base too."""
        if coordinate in BASE_NAMES and self.free:
            return "m" if BASE_NAMES.index(coordinate) < 3 else "rad"
        kinds = dict(zip(self.tree.coordinates, self.tree.coordinate_kinds, strict=True))
        if coordinate not in kinds:
            raise DataError(
                f"there is no coordinate '{coordinate}'.", where=self.name, hint=did_you_mean(coordinate, list(kinds))
            )
        return "rad" if kinds[coordinate] == "turning" else "m"

    def force_unit(self, name: str) -> str:
        """The unit of an unknown force by name."""
        if name in BASE_NAMES:
            return "N" if BASE_NAMES.index(name) < 3 else "N*m"
        return "N" if self.unit_of(name) == "m" else "N*m"

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Those inside the laws of its elements."""
        return self.tree.constants

    @property
    def prescribed(self) -> tuple[str, ...]:
        return self.tree.prescribed

    @property
    def placed(self) -> bool:
        """Whether inputs place coordinates."""
        return bool(self.tree.held)

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """The states that elements have of their own."""
        return tuple(s.name for s in self.tree.states)

    def varying_unit(self, name: str) -> str:
        """The unit of a load, parameter or constant that varies, or of a state of an element."""
        for known in (*self.tree.constants, *self.tree.states):
            if known.name == name:
                return known.unit
        for load in self.tree.loads:
            if name in load.channels:
                if isinstance(load, Drive):
                    return self.force_unit(load.coordinate)
                return "N*m" if isinstance(load, Torque) else "N"
        return self.tree.parameters.units[self.tree.parameters.index(name)]

    @cached_property
    def sizes(self) -> Array:
        """Typical sizes (nv,) of the velocities' coordinates: 1 rad, and the machine's reach for lengths."""
        base = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) if self.free else np.zeros(0)
        return np.concatenate([base, units(self.tree)])

    @cached_property
    def own(self) -> NDArray[np.intp]:
        """Where the independent rates stand among the velocities."""
        first = 6 if self.free else 0
        return np.array([*range(first), *(first + k for k in self.z)], dtype=np.intp)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """What may act from outside and be given with the measurements: force.C of a coordinate, wrench.B.fx … mz, signal.S, loads."""
        forces = tuple(f"force.{c}" for c in self.tree.coordinates)
        own = {f"signal.{name}" for name in self.inner}
        return (*forces, *(name for name in self.kernels.outside if name not in own), *self._prescribed)

    def loads(self, given: Mapping[str, ArrayLike] | None = None) -> TreeLoads:
        """Generalised forces (nv,) and outside values of the inputs that act; not given, a load is as in the model, others are zero."""
        extra, outside = np.zeros(self.nv), self._still.copy()
        first = self.nv - self.tree.n
        for name, value in (given or {}).items():
            if name not in self.inputs:
                raise DataError(f"there is no input '{name}'.", where=self.name, hint=did_you_mean(name, self.inputs))
            number = float(np.asarray(value, dtype=np.float64))
            if name in self.kernels.outside:
                outside[self.kernels.outside.index(name)] = number
            elif name in self._prescribed:
                outside[len(self.kernels.outside) + self._prescribed.index(name)] = number
            else:
                extra[first + self.tree.coordinates.index(name.removeprefix("force."))] += number
        return extra, outside

    @cached_property
    def _prescribed(self) -> tuple[str, ...]:
        """Inputs of prescribed coordinates, in the order of the coordinates."""
        return led_inputs([self.tree.coordinates[k] for k in self.tree.held])

    @cached_property
    def _still(self) -> Array:
        """Outside values where nothing is given: loads as the model has them, prescribed coordinates at zero."""
        own = [value for load in self.tree.loads for value in load.values]
        return np.concatenate([np.zeros(len(self.kernels.outside) - len(own)), own, np.zeros(len(self._prescribed))])

    def instant(
        self, x: Array, v: Array, u: Array, loads: TreeLoads, derivative: bool = True, *, number: int = 0
    ) -> TreeInstant:
        """Accelerations, multipliers and all derivatives at a state; arrays of many states (N, …) make an instant of arrays (N, …)."""
        return self._run(x, v, np.zeros((*x.shape[:-1], 2 * self.f)), u, 0.0, loads, derivative)

    def step(
        self, x: Array, v: Array, u: Array, h: float, loads: TreeLoads, derivative: bool = True, since: float = 0.0
    ) -> TreeInstant:
        """The instant a time h later; `F` is the derivative of its (z, ż) and of elements' states with respect to (z, ż, u) here.

        `since`: how long ago the loads were given, for prescribed coordinates, which go on with their rates and accelerations.
        """
        return self._run(x, v, np.zeros((*x.shape[:-1], 2 * self.f)), u, float(h), loads, derivative, since)

    def posed(
        self, x: Array, v: Array, u: Array, loads: TreeLoads, *, number: int = 0, accelerates: bool = True
    ) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ that sensors read: prescribed coordinates are where the loads have them, and what loops tie follows."""
        if not accelerates and not self.placed:
            return x, v, np.zeros_like(v)
        found = self.instant(x, v, u, loads, derivative=False)
        return (found.q, found.qd, found.qdd) if self.placed else (x, v, found.qdd)

    def advanced(
        self, x: Array, v: Array, u: Array, h: float, loads: TreeLoads, derivative: bool, since: float, number: int
    ) -> ModelStep:
        """:meth:`step` as all formulations give it; prescribed coordinates are placed anew by the next inputs."""
        found = self.step(x, v, u, h, loads, derivative, since)
        return ModelStep(found, found.u, settled=derivative and not self.placed)

    def changed(self, x: Array, v: Array, u: Array, d: Array, number: int = 0) -> tuple[Array, Array]:
        """q and q̇ of :meth:`moved` under the loads that the tree has."""
        at = self.moved(x, v, d[..., : 2 * self.f], u + d[..., 2 * self.f :], self.loads())
        return at.q, at.qd

    def accelerated(self, found: Instant, number: int = 0) -> Array:
        """∂z̈/∂(z, ż, u) of an instant."""
        return found.qdd_x[self.own]

    def readout(self, sensors: Sequence[Sensor]) -> TreeReadout:
        """What sensors on the tree read."""
        return tree_readout(self.tree, sensors)

    def energies(self, x: Array, v: Array) -> Array:
        """Kinetic, gravity's and elastic energy (J) along a motion, (N, 3)."""
        return tree_energies(self.tree, self.values, x, v)

    def constraint_errors(self, x: Array, v: Array, a: Array) -> tuple[float, float, float]:
        """The largest error of the equations of loops, of their rates and second rates."""
        return loop_errors(self.tree, x, v, a)

    def moved(self, x: Array, v: Array, d: Array, u: Array, loads: TreeLoads) -> TreeInstant:
        """The instant at x ⊞ d: independent coordinates and rates changed by d (…, 2f), the others following.

        Prescribed coordinates stay where x has them, whatever the loads say.
        """
        if self.tree.held:
            first, held = (7 if self.free else 0), list(self.tree.held)
            at = np.concatenate([x.reshape(-1, x.shape[-1])[0], v.reshape(-1, v.shape[-1])[0]])
            rates = self.nq + self.nv - self.tree.n
            stay = np.concatenate([at[[first + k for k in held]], at[[rates + k for k in held]], np.zeros(len(held))])
            loads = (loads[0], np.concatenate([loads[1][: len(self.kernels.outside)], stay]))
        return self._run(x, v, d, u, 0.0, loads, False)

    def local(self, x: Array, v: Array, number: int = 0) -> Array:
        """(z, ż) (…, 2f) as they are reported: the attitude of a free base as roll, pitch and yaw."""
        base = 7 if self.free else 0
        parts = [x[..., :3], angles_of(self.attitude(x))] if self.free else []
        return np.concatenate([*parts, x[..., [base + k for k in self.z]], v[..., self.own]], axis=-1)

    def difference(self, xa: Array, va: Array, xb: Array, vb: Array, number: int = 0) -> Array:
        """The change (…, 2f) that leads from the state b to the state a."""
        base = 7 if self.free else 0
        parts = [xa[..., :3] - xb[..., :3], self.turn(xa, xb)] if self.free else []
        z = [base + k for k in self.z]
        return np.concatenate([*parts, xa[..., z] - xb[..., z], (va - vb)[..., self.own]], axis=-1)

    def attitude(self, x: Array) -> Array:
        """The rotation (…, 3, 3) of a free base."""
        return matrix_of(x[..., 3:7])

    def _run(
        self,
        x: Array,
        v: Array,
        d: Array,
        u: Array,
        h: float,
        loads: TreeLoads,
        derivative: bool,
        since: float = 0.0,
    ) -> TreeInstant:
        one, f = x.ndim == 1, self.f
        check_angles(self.tree, x[..., self.nq - self.tree.n :])
        self.kernels.act(loads[1])
        x0, delta, rate, unknown = (
            np.array(a[None] if one else a, dtype=np.float64, order="C")
            for a in (x, d[..., :f], v[..., self.own] + d[..., f:], u)
        )
        record = self.kernels.record
        state, *found = tree_trapezoid(record.I, record.W, x0, delta, rate, loads[0], unknown, since, h, derivative)
        if state == DONE:
            return TreeInstant(*(a[0] if len(a) else a for a in found)) if one else TreeInstant(*found)
        raise state_error(self.tree, self.z, state, h, finite=bool(np.isfinite(x).all() and np.isfinite(v).all()))

    def start_of(
        self, given: Mapping[str, float] | None = None, rates: Mapping[str, float] | None = None
    ) -> tuple[Array, Array]:
        """A configuration and velocity from coordinates and rates by name; what is not given is at home (or zero), and at rest."""
        x, rate, held = named_start(self.tree, self.z, given, rates)
        v = np.zeros(self.nv)
        v[self.own] = rate
        at = self.instant(x, v, self.start_unknown, self.loads(held), False)
        return at.q, at.qd

    @cached_property
    def start_unknown(self) -> Array:
        """The unknown quantities at the start: forces and states of elements are zero, what varies is as the tree has it."""
        return np.concatenate([np.zeros(len(self.unknown)), self.start_values, np.zeros(len(self.inner))])

    @cached_property
    def start_values(self) -> Array:
        """Values of the loads, parameters and constants that vary, as the tree has them."""
        known = {n: v for load in self.tree.loads for n, v in zip(load.channels, load.values, strict=True)}
        known |= {c.name: c.value for c in self.tree.constants}
        p = self.tree.parameters
        return np.array([known[n] if n in known else self.values[p.index(n)] for n in self.varying], dtype=np.float64)


def tree_model(
    tree: Tree,
    *,
    independents: Iterable[str] = (),
    unknown: Iterable[str] | None = (),
    varying: Iterable[str] = (),
    wrenches: Sequence[str] = (),
    friction_speed: float = FRICTION_SPEED,
    parameters: Array | None = None,
) -> TreeModel:
    """A tree made ready for stepping.

    `independents`: coordinates that determine a machine with loops, by default the actuated ones. `unknown`: coordinates (or
    base.x … base.yaw, the base's forces in the ground's axes and moments in its own) whose force belongs to the state; None for one on
    every independent coordinate. `varying`: parameters, constants of elements' laws and loads that do. `wrenches`: bodies on which
    measured wrenches act. Parameters without a value are refused by name, and so is a machine that moves no mass.
    """
    values = complete_values(tree, parameters)
    free = tree.base == "free"
    chosen = tuple(independents)
    z, dependent, rows = independent_joints(tree, chosen)
    if chosen and not tree.loops and set(chosen) != set(tree.coordinates):
        raise ModelError(
            "every coordinate of a machine without loops is independent.",
            where=tree.name,
            expected=", ".join(tree.coordinates),
            found=", ".join(chosen),
        )
    names = (*(BASE_NAMES if free else ()), *(tree.coordinates[k] for k in z))
    if not names:
        raise ModelError("it cannot move.", where=tree.name, found="no degree of freedom")
    forces = names if unknown is None else tuple(unknown)
    first = 6 if free else 0
    order = (*BASE_NAMES[: 6 if free else 0], *tree.coordinates)
    faults, columns = Faults(), []
    for name in dict.fromkeys(forces):
        if forces.count(name) > 1:
            faults.add(f"the force '{name}' is unknown once only.", where=tree.name, found="it is named twice")
        if name not in order:
            faults.add(f"'{name}' is no coordinate of it.", where=tree.name, hint=did_you_mean(name, order))
        else:
            columns.append(np.eye(first + tree.n)[order.index(name)])
    vary = tuple(varying)
    for name in vary:
        column = column_of(tree, name)
        if column is None or column[0] == "state":
            hint = did_you_mean(name, [*tree.parameters.names, *(c.name for c in tree.constants), *tree.load_channels])
            faults.add(f"there is no parameter '{name}', nor a load.", where=tree.name, hint=hint)
    faults.raise_if_any(ModelError)
    B = np.array(columns).reshape(-1, first + tree.n).T.copy()
    made = kernels_of(
        tree,
        values,
        z=z,
        dependent=dependent,
        rows=rows,
        B=B,
        varying=vary,
        wrenches=tuple(wrenches),
        friction_speed=friction_speed,
    )
    return TreeModel(
        tree=tree,
        names=names,
        unknown=forces,
        varying=vary,
        values=values,
        z=z,
        dependent=dependent,
        rows=rows,
        B=B,
        kernels=made,
    )
