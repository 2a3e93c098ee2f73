"""Virtual sensors on trees: what no sensor reads, from the estimated state, with the derivative that gives its band."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, ModelWarning, did_you_mean, warn
from veridyn.mechanics.formulation import Instant, QuantityReading
from veridyn.mechanics.sensing import place_of
from veridyn.mechanics.tree.model import TreeInstant, TreeModel
from veridyn.mechanics.tree.quantities import TreeQuantities
from veridyn.mechanics.tree.quantity import Quantity
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree_readout import TreeReadout, tree_readout
from veridyn.model.place import Marker, PointRef
from veridyn.model.sensor import KINDS, Sensor

Array = NDArray[np.float64]
AXES = ("x", "y", "z")
WRENCH = (*AXES, *(f"moment.{a}" for a in AXES))
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
        return DataError(Fault(what, f"virtual sensor '{self.name}'", expected, found or f"{self.place}", hint))

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
        names, free = self._every, ~self._made.determined
        if not free.any():
            return
        left = ", ".join(f"'{names[i]}'" for i in np.flatnonzero(free))
        fault = Fault(
            f"redundant joints share {left}, which no motion determines.",
            where=f"virtual sensor '{self.name}'",
            expected="a reaction that the equations of motion determine",
            found=f"{self._made.equations} equations of loops, of which {len(self.model.rows)} are independent",
            hint="Cut the loop at a joint that says nothing twice, such as spherical instead of turning.",
        )
        if free.all():
            raise DataError(fault)
        warn(ModelWarning, fault)

    @cached_property
    def table(self) -> TreeReadout:
        return tree_readout(self._tree, [Sensor(self.name, self.kind, self.on, 1.0)])  # pyright: ignore[reportArgumentType]

    @property
    def _every(self) -> tuple[str, ...]:
        quantity = self._quantity
        count = quantity.count(self._tree)
        return (self.name,) if count == 1 else tuple(f"{self.name}.{c}" for c in WRENCH[:count])

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
