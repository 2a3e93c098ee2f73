"""What the bodies and closed loops of a tree make: its coordinates, rows and columns, and which of them belong to which; data only.

A loop is closed by a joint at which the machine is cut open to be a tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, ModelError, did_you_mean, part_at
from veridyn.model.coordinates import Rows, select_rows
from veridyn.model.elements.element import WRENCH_ROWS, Element, Marker
from veridyn.model.graph import Body, Loop
from veridyn.model.load import Load, Transmission
from veridyn.model.parameter_set import Acted
from veridyn.model.parameters import ParameterSet, Uncertainty
from veridyn.model.place import GROUND, Assembly
from veridyn.model.sensor import Sensor
from veridyn.spatial.algebra import Mat, Vec
from veridyn.spatial.rotations import is_rotation

CUTS: Mapping[str, str] = MappingProxyType(
    {
        "spherical": "one point in common",
        "turning": "one point and the direction of the axis in common",
        "universal": "one point in common, axes at right angles",
        "cylindrical": "one axis in common",
        "sliding": "one axis and all directions in common",
        "planar": "one plane in common, normal to the axis",
        "fixed": "everything in common",
        "distance": "two points at a constant distance: a rod without mass",
    }
)

KNOW_LOOPS = "Inverse and forward dynamics, simulation, regressors and identification know closed loops."
BY_ITERATION = "not built: it is made of the recursion over an open tree, and loops are closed by iterations"
OPEN_ONLY: Mapping[str, str] = MappingProxyType(
    {  # what only open trees have, and the reason
        "an evaluator of one state": BY_ITERATION,
        "C code": BY_ITERATION,
        "a batch on a GPU": BY_ITERATION,
        "a mass matrix": "its coordinates are not independent; those that are have one that changes with the pose of the loops",
        "a derivative of the dynamics": "its coordinates are not independent, and a change of one moves the others",
        "another base": "a loop would have to be cut at another joint",
        "welding joints": "a joint within a loop cannot be held without holding others",
        "locking joints": "a joint within a loop cannot be held without holding others",
    }
)


def members(bodies: Sequence[Body], loop: Loop) -> tuple[str, ...]:
    """The coordinates a loop ties together: those between its two ends, without what carries both ends alike."""
    by_name = {b.name: b for b in bodies}

    def path(name: str) -> list[str]:
        found = []
        while name in by_name:
            found.append(name)
            name = by_name[name].antecedent or GROUND
        return found

    ends = path(loop.first.body), path(loop.second.body)
    between = [n for n in (*ends[0], *ends[1]) if (n in ends[0]) != (n in ends[1])]
    return tuple(dict.fromkeys(c for n in between if (c := by_name[n].coordinate_name)))


def check_loops(bodies: Sequence[Body], loops: Sequence[Loop], assembly: Assembly, base: str) -> list[Fault]:
    """Every fault of the loops of a description; `where` begins with "loop 'name'" or "assembly"."""
    faults = Faults()
    names = [b.name for b in bodies]
    for name, times in Counter(loop.name for loop in loops).items():
        if times > 1:
            faults.add(f"the name is used {times} times.", where=part_at("loop", name))
    for loop in loops:
        _check(loop, names, base, faults)
        known = loop.first.body in (*names, GROUND) and loop.second.body in (*names, GROUND)
        if known and loop.first.body != loop.second.body and not members(bodies, loop):
            faults.add("nothing moves between its two ends, so there is no loop.", where=loop.where)
    coordinates = [b.coordinate_name for b in bodies if b.coordinate_name]
    for what, values in (("hold", assembly.hold), ("guess", assembly.guess)):
        for name, value in values.items():
            if name not in coordinates:
                hint = did_you_mean(name, list(dict.fromkeys(coordinates)))
                faults.add(f"there is no coordinate '{name}'.", where=f"assembly, {what}", hint=hint)
            elif not np.isfinite(value):
                faults.add(f"'{name}' is not a finite number.", where=f"assembly, {what}", found=f"{value}")
    for name in assembly.hold:
        if name in assembly.guess:
            faults.add(f"'{name}' is held and guessed at once.", where=part_at("assembly"), hint="Drop one.")
    return faults.found


def _check(loop: Loop, names: Sequence[str], base: str, faults: Faults) -> None:
    if loop.joint not in CUTS:
        faults.add(f"'{loop.joint}' is no kind of cut joint.", where=loop.where, hint=did_you_mean(loop.joint, [*CUTS]))
    for end in (loop.first, loop.second):
        if end.body not in (*names, GROUND):
            hint = did_you_mean(end.body, [*names, GROUND])
            faults.add(f"there is no body '{end.body}'.", where=loop.where, hint=hint)
        if end.body == GROUND and base == "free":
            what = "a machine whose base is free has no loop through the ground."
            faults.add(what, where=loop.where, hint="Put it on six joints: base: six_joints.")
        R, p = end.placement.rotation, end.placement.position
        if p.shape != (3,) or not np.isfinite(p).all() or not (np.isfinite(R).all() and is_rotation(R)):
            faults.add(f"its place on '{end.body}' is not a rotation and a position.", where=loop.where)
    if loop.first.body == loop.second.body:
        faults.add(f"both ends are on '{loop.first.body}'.", where=loop.where)
    if loop.joint == "distance" and not 0.0 < loop.length < np.inf:
        faults.add("a distance needs a length above zero.", where=loop.where, found=f"{loop.length:g}")
    if loop.joint != "distance" and loop.length != 0.0:
        faults.add("only a distance has a length.", where=loop.where, found=f"joint: {loop.joint}")


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeStructure(Acted):
    """Bodies with antecedents, in an order in which every antecedent comes before its bodies; made by
    :meth:`~veridyn.mechanics.tree.tree.Tree.build`.

    `base`: "fixed" (the ground carries the tree; gravity acts by the model) or "free" (the first body moves freely; its motion,
    with gravity in it, comes with the :class:`~veridyn.model.motion.Motion`). A base of six virtual joints is a fixed tree,
    see :func:`veridyn.mechanics.tree.elsewhere.on_six_joints`. Coordinates are in the order in which the bodies first name them.
    `loops` are joints at which a closed machine was cut open: its motions keep them closed, and its equations are those of the
    :attr:`independent` coordinates, onto which those of the tree are projected. `sensors` are what measures it, `loads` the forces that
    act on it besides those of its joints; neither changes its equations. `prescribed` coordinates have a given motion (steer by
    wire): their q, q̇ and q̈ are inputs of forward dynamics and simulation, and the forces they need are results.
    `uncertainty` is that of its parameters, where a fit has given them (:meth:`veridyn.identify.result.Fit.machine`).
    """

    name: str
    bodies: tuple[Body, ...]
    base: Literal["fixed", "free"]
    gravity: Array
    elements: tuple[Element, ...]
    parameters: ParameterSet
    transmission: Transmission | None = None
    loops: tuple[Loop, ...] = ()
    assembly: Assembly = Assembly()
    sensors: tuple[Sensor, ...] = ()
    loads: tuple[Load, ...] = ()
    prescribed: tuple[str, ...] = ()
    uncertainty: Uncertainty | None = None

    @property
    def kinds(self) -> Mapping[str, str]:
        """Coordinate → "turning" or "sliding"."""
        return {b.coordinate_name: b.joint for b in self.bodies}

    @cached_property
    def constant_number(self) -> Mapping[tuple[str, str], int]:
        """(name of the element's parameter, key) → the number of that constant among :attr:`constants`."""
        return {(c.element, c.key): k for k, c in enumerate(self.constants)}

    def ways(self, between: tuple[Marker, Marker]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The bodies from each of two places down to, and without, the last one that carries both (or the ground)."""
        own = [() if m.body == GROUND else self.path(self.index(m.body)) for m in between]
        both = set(own[0]) & set(own[1])
        a, b = (tuple(j for j in path if j not in both) for path in own)
        return a, b

    def acts_on(self, e: Element) -> tuple[int, ...]:
        """The coordinates into whose equations an element enters that acts on coordinates, between two places or on a wheel."""
        if e.wheel is not None:
            return tuple(sorted({self.coordinate[j] for j in self.path(self.index(e.wheel.body))} - {-1}))
        if e.between is None:
            return tuple(self.coordinates.index(c) for c in e.on)
        moved = {self.coordinate[j] for way in self.ways(e.between) for j in way}
        return tuple(sorted(moved - {-1}))

    def index(self, body: str) -> int:
        """The number of a body by name."""
        try:
            return self._index[body]
        except KeyError:
            raise ModelError(
                f"there is no body '{body}'.", where=self.name, hint=did_you_mean(body, [b.name for b in self.bodies])
            ) from None

    @cached_property
    def _index(self) -> dict[str, int]:
        return {b.name: j for j, b in enumerate(self.bodies)}

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies, in order."""
        return self._body_names

    @cached_property
    def _body_names(self) -> tuple[str, ...]:
        return tuple(b.name for b in self.bodies)

    @property
    def closed(self) -> bool:
        """Whether loops were cut open."""
        return bool(self.loops)

    @property
    def root(self) -> str:
        """The body of a free base, or ""."""
        return self.bodies[0].name if self.base == "free" else ""

    @cached_property
    def antecedent(self) -> tuple[int, ...]:
        """a(j): the number of each body's antecedent, −1 for the ground."""
        return tuple(-1 if b.antecedent in (None, GROUND) else self._index[str(b.antecedent)] for b in self.bodies)

    @cached_property
    def sigma(self) -> tuple[int, ...]:
        """σ: 0 turning, 1 sliding, 2 fixed."""
        return tuple(b.sigma for b in self.bodies)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the n coordinates, in order."""
        return self._coordinates

    @cached_property
    def _coordinates(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(b.coordinate_name for b in self.bodies if b.coordinate_name))

    @cached_property
    def coordinate(self) -> tuple[int, ...]:
        """The number of each body's coordinate, −1 for a fixed joint."""
        number = {c: k for k, c in enumerate(self.coordinates)}
        return tuple(number.get(b.coordinate_name, -1) for b in self.bodies)

    @property
    def n(self) -> int:
        """The number of coordinates."""
        return len(self.coordinates)

    @cached_property
    def shares_coordinates(self) -> bool:
        """True when one coordinate moves several joints."""
        return sum(k >= 0 for k in self.coordinate) > self.n

    @cached_property
    def placements(self) -> tuple[tuple[Mat, Vec], ...]:
        """(iAj, iPj) of each body at q = 0 as constants that fold."""

        def constant(a: Array) -> Vec:
            return (float(a[0]), float(a[1]), float(a[2]))

        return tuple(
            ((constant(R[0]), constant(R[1]), constant(R[2])), constant(p))
            for R, p in ((b.placement.rotation, b.placement.position) for b in self.bodies)
        )

    @property
    def actuated(self) -> tuple[bool, ...]:
        """μ of each coordinate."""
        return self._actuated

    @cached_property
    def _actuated(self) -> tuple[bool, ...]:
        by_name = {b.coordinate_name: b.actuated for b in reversed(self.bodies)}
        return tuple(by_name[c] for c in self.coordinates)

    @property
    def coordinate_kinds(self) -> tuple[str, ...]:
        """'turning' or 'sliding' for each coordinate."""
        return self._coordinate_kinds

    @cached_property
    def _coordinate_kinds(self) -> tuple[str, ...]:
        by_name = {b.coordinate_name: b.joint for b in reversed(self.bodies)}
        return tuple(by_name[c] for c in self.coordinates)

    @cached_property
    def turns(self) -> Array:
        """For each coordinate, the largest ratio by which it turns a joint: an angle is at most this times the coordinate."""
        most = np.zeros(self.n)
        for b, k in zip(self.bodies, self.coordinate, strict=True):
            if b.joint == "turning":
                most[k] = max(most[k], abs(b.ratio))
        return most

    @cached_property
    def largest_turn(self) -> float:
        """The largest of :attr:`turns`."""
        return float(np.max(self.turns, initial=0.0))

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """All rows, in order: fx fy fz mx my mz of a free base, then one for each coordinate."""
        return (WRENCH_ROWS if self.base == "free" else ()) + self.coordinates

    @cached_property
    def held(self) -> tuple[int, ...]:
        """The numbers of the prescribed coordinates, in order."""
        return tuple(k for k, c in enumerate(self.coordinates) if c in self.prescribed)

    @cached_property
    def solved_rows(self) -> tuple[int, ...]:
        """The rows whose accelerations forward dynamics solves for: all but those of prescribed coordinates."""
        first = len(self.rows) - self.n
        return tuple(r for r in range(len(self.rows)) if r - first not in self.held)

    @cached_property
    def looped(self) -> frozenset[int]:
        """The coordinates that loops tie together."""
        number = {c: k for k, c in enumerate(self.coordinates)}
        return frozenset(number[c] for loop in self.loops for c in members(self.bodies, loop))

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """The coordinates that have an equation of their own: all of an open tree; the actuated ones and those outside every loop."""
        return tuple(k for k, on in enumerate(self.actuated) if on or k not in self.looped)

    @property
    def actuated_coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates with a motor, in order."""
        return tuple(c for c, on in zip(self.coordinates, self.actuated, strict=True) if on)

    def feeding(self, coordinate: int) -> tuple[int, ...]:
        """The coordinates whose equations of the open tree enter the equation of an independent one, itself first."""
        if coordinate not in self.looped:
            return (coordinate,)
        return (coordinate, *sorted(self.looped - set(self.independent)))

    def acting_on(self, row: str) -> frozenset[str]:
        """The coordinates whose equations of the open tree enter a row, by name."""
        if row not in self.coordinates:
            return frozenset([row])
        return frozenset(self.coordinates[k] for k in self.feeding(self.coordinates.index(row)))

    def select_rows(self, rows: Rows) -> tuple[int, ...]:
        """The numbers of the chosen rows: "all", "joints", "base", "actuated", one name, or names in the order wished.

        A passive joint within a loop has no row of its own: its equation holds the unknown force of the cut joint.
        """
        own = tuple(self.coordinates[k] for k in self.independent)
        return select_rows(self.name, rows, self.coordinates, own, self.actuated_coordinates, self.base)

    @cached_property
    def columns(self) -> tuple[tuple[int, int], ...]:
        """For each parameter, (body, 0..9) of an inertial one or (−1, e) for element e."""
        inertial = [(j, k) for j, b in enumerate(self.bodies) if b.real for k in range(10)]
        return tuple(inertial) + tuple((-1, e) for e in range(len(self.elements)))

    def path(self, body: int) -> tuple[int, ...]:
        """The bodies from this one down to its root, itself first."""
        out = []
        while body >= 0:
            out.append(body)
            body = self.antecedent[body]
        return tuple(out)
