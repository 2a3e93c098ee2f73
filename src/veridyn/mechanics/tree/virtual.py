"""Virtual sensors on trees: readings, accelerations of places, forces of elements and drives, reactions of joints.

All come with exact derivatives by the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.mechanics.formulation import UNIQUE_REACTION, Instant, QuantityReading, check_determined
from veridyn.mechanics.tree.dynamics.engine import check_angles, compiled, uniform_values
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.equations import COUNTS
from veridyn.mechanics.tree.quantity import Quantity
from veridyn.mechanics.tree.readout import TreeReadout, tree_readout
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.sensing import place_of
from veridyn.mechanics.tree.steps.kernels import InputPlaces
from veridyn.mechanics.tree.steps.model import TreeInstant, TreeModel
from veridyn.mechanics.tree.steps.statement import input_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.place import Marker, PointRef
from veridyn.model.sensor import KINDS, Sensor
from veridyn.symbolic.kernel import Single

GIVEN = ("X", "V", "A", "LAM", "OUTSIDE")  # what quantities are functions of, one behind the other
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
    by_lam_all: Array  # by those of equations that say nothing new as well


class TreeQuantities:
    """Quantities of a model's tree, one behind the other. Not for two threads at once, as the model is not."""

    def __init__(self, model: TreeModel, wanted: Sequence[Quantity]) -> None:
        self.model, self.wanted, tree = model, tuple(wanted), model.tree
        self.count = sum(q.count(tree) for q in self.wanted)
        self.equations = sum(COUNTS[loop.joint] for loop in tree.loops)
        kernels, columns = model.kernels, model.kernels.columns
        request = Request("quantities", (), (self.wanted, columns), kernels.bodies, kernels.friction_speed)
        made = compiled(tree, request, single=True)
        self._parameters = uniform_values(tree, model.values, made.kernel.parameters)
        self._single = Single(made.kernel, self._parameters)
        self._places = tuple(np.array(made.labels, dtype=np.intp).reshape(-1, 2).T)
        starts = np.cumsum([0, model.nq, model.nv, model.nv, self.equations]).tolist()
        place = InputPlaces(tree, kernels.bodies, tree.signals, dict(zip(GIVEN, starts, strict=True)))
        self._take = np.array([place.of(name) for name in made.kernel.inputs], dtype=np.intp)
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

    def _evaluated(self, x: Array, v: Array, a: Array, lam: Array, u: Array, outside: Array) -> QuantitySlopes:
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
        return QuantitySlopes(y[:, 0], by_x, by_v, by_a, by_lam[:, list(model.rows)], by_varying, by_lam)

    @cached_property
    def _outside(self) -> list[tuple[int, int]]:
        """What varies and is read from outside: (number among what varies, place)."""
        names = self.model.kernels.outside
        labels = [*self.model.varying, *(f"signal.{name}" for name in self.model.inner)]
        return [(j, names.index(name)) for j, name in enumerate(labels) if name in names]


WRENCH_COMPONENTS = ("x", "y", "z", "moment.x", "moment.y", "moment.z")
FURTHER = ("acceleration", "spring", "reaction", "force")  # kinds that no sensor has


@dataclass(frozen=True, eq=False)
class TreeQuantity:
    """One virtual sensor on a tree, by name, kind and place; :meth:`at` gives its value and derivative.

    Kinds beyond those of sensors: "acceleration" of a place, in the ground's axes; "spring", the force of an element by the name of its
    parameter; "reaction" of a joint by the name of the body it carries, of its coordinate, or of a cut joint; "force", that on a
    coordinate, which for a prescribed one is what its motion needs.
    """

    model: TreeModel
    name: str
    kind: str
    place: PointRef | tuple[str, str]

    @property
    def on(self) -> PointRef:
        """The place, which is a name or a marker: all else has been refused."""
        assert not isinstance(self.place, tuple)
        return self.place

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, *FURTHER):
            raise self._fault(f"a tree has no virtual sensor of kind '{self.kind}'.", ", ".join((*KINDS, *FURTHER)))
        if isinstance(self.place, tuple):
            raise self._fault(
                "a place of a tree is on a body.",
                "a name, or {body, at}",
                hint="Give the reaction of a joint by the name of the body it carries, or of its coordinate.",
            )
        if self.kind in FURTHER:
            self._check_determined()

    @property
    def _tree(self) -> Tree:
        return self.model.tree

    def _fault(self, what: str, expected: str, found: str = "", hint: str = "") -> DataError:
        return DataError(
            what, where=f"virtual sensor '{self.name}'", expected=expected, found=found or f"{self.place}", hint=hint
        )

    @cached_property
    def _quantity(self) -> Quantity:
        tree, on = self._tree, self.on
        if self.kind == "acceleration":
            body = on.body if isinstance(on, Marker) else on
            names = [b.name for b in tree.bodies]
            if body not in names:
                raise self._fault(
                    f"there is no body '{body}'.", "a body, or {body, at}", hint=did_you_mean(body, names)
                )
            if isinstance(on, Marker) and on.axis:
                raise self._fault(
                    "an acceleration is given in the ground's axes.", "a place without an axis", "an axis"
                )
            return Quantity("acceleration", *place_of(tree, on))
        if isinstance(on, Marker):
            raise self._fault("this is no place.", "a name", f"a place on body '{on.body}'")
        if self.kind == "spring":
            names = [e.parameter_name for e in tree.elements]
            if on not in names:
                raise self._fault(
                    f"there is no element '{on}'.", "the name of an element", hint=did_you_mean(on, names)
                )
            return Quantity("element", names.index(on))
        if self.kind == "force":
            if on not in tree.coordinates:
                hint = did_you_mean(on, tree.coordinates)
                raise self._fault(f"there is no coordinate '{on}'.", "a coordinate", hint=hint)
            return Quantity("drive", tree.coordinates.index(on))
        return self._joint(on)

    def _joint(self, on: str) -> Quantity:
        tree = self._tree
        cuts, bodies = [loop.name for loop in tree.loops], [b.name for b in tree.bodies]
        if on in cuts:
            return Quantity("cut", cuts.index(on))
        moved = [j for j, b in enumerate(tree.bodies) if b.coordinate_name == on]
        j = bodies.index(on) if on in bodies else moved[0] if len(moved) == 1 else -1
        if j < 0:
            names = [*bodies, *cuts, *tree.coordinates]
            what = f"several joints have the coordinate '{on}'." if moved else f"there is no joint '{on}'."
            found = ", ".join(bodies[k] for k in moved)
            expected = "the body a joint carries, its coordinate, or the name of a cut joint"
            raise self._fault(what, expected, found, did_you_mean(on, names))
        if tree.base == "free" and tree.antecedent[j] < 0:
            raise self._fault("no joint carries a free base.", "another body")
        return Quantity("joint", j)

    @cached_property
    def _made(self) -> TreeQuantities:
        return TreeQuantities(self.model, [self._quantity])

    @cached_property
    def _kept(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._made.determined)

    def _check_determined(self) -> None:
        """Of a machine with redundant joints some reactions are not determined: they are left out with a warning, all of them refused."""
        check_determined(
            self.name,
            self._every,
            ~self._made.determined,
            "redundant joints share {}, which no motion determines.",
            found=f"{self._made.equations} equations of loops, of which {len(self.model.rows)} are independent",
            hint="Cut the loop at a joint that says nothing twice, such as spherical instead of turning.",
        )

    @cached_property
    def table(self) -> TreeReadout:
        return tree_readout(self._tree, [Sensor(self.name, self.kind, self.on, 1.0)])  # pyright: ignore[reportArgumentType]

    @property
    def _every(self) -> tuple[str, ...]:
        quantity = self._quantity
        count = quantity.count(self._tree)
        return (self.name,) if count == 1 else tuple(f"{self.name}.{c}" for c in WRENCH_COMPONENTS[:count])

    @property
    def components(self) -> tuple[str, ...]:
        return self.table.names if self.kind not in FURTHER else tuple(self._every[i] for i in self._kept)

    @property
    def units(self) -> tuple[str, ...]:
        tree, model = self._tree, self.model
        if self.kind not in FURTHER:
            return self.table.units
        if self.kind == "acceleration":
            return ("m/s^2",) * 3
        if self.kind == "force":
            return (model.force_unit(cast(str, self.on)),)
        if self.kind == "reaction":
            return tuple("N*m" if "moment" in c else "N" for c in self.components)
        e = tree.elements[self._quantity.on]
        turns = (
            e.on_body[1] >= 3
            if e.on_body is not None
            else e.between is None and model.unit_of(next(iter(e.on))) == "rad"
        )
        return ("N*m" if turns else "N",)

    def at(self, q: Array, qd: Array, u: Array, at: Instant, loads: tuple[Array, Array]) -> QuantityReading:
        """The value (c,) and its derivatives at a state whose instant is known, under the loads it was made with."""
        count = len(u)
        if self.kind not in FURTHER:
            y = self.table.read(q, qd, at.qdd)
            slopes = self.table.derivatives(q, qd, at.qdd)
            return QuantityReading(y, *slopes, np.zeros((len(y), len(at.multipliers))), np.zeros((len(y), count)))
        s, keep = self._made.at(q, qd, cast(TreeInstant, at), loads), self._kept
        by_u = np.zeros((len(keep), count))
        first = len(self.model.unknown)
        by_u[:, first : first + s.by_varying.shape[1]] = s.by_varying[keep]
        return QuantityReading(s.y[keep], s.by_x[keep], s.by_v[keep], s.by_a[keep], s.by_lam[keep], by_u)
