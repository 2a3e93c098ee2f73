"""A machine as a tree of bodies: data only. What it does is computed by the functions of :mod:`veridyn.mechanics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults, ModelError, did_you_mean, part_at
from veridyn.model.check import check_tree
from veridyn.model.constants import Constant, ElementState, constants_of, replaced, states_of
from veridyn.model.element_kinds import KINDS
from veridyn.model.elements import WRENCH_ROWS, Element, Marker
from veridyn.model.joint import GROUND, Body
from veridyn.model.load import Load, check_loads
from veridyn.model.loop import Assembly, Loop, check_loops, members
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterSet, State
from veridyn.model.sensor import Sensor, check_sensors
from veridyn.model.transmission import Transmission
from veridyn.model.uncertainty import Uncertainty
from veridyn.spatial.inertia import INERTIAL, INERTIAL_UNITS
from veridyn.spatial.linalg import Mat, Vec

Array = NDArray[np.float64]
Rows = str | Sequence[str]
GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tree:
    """Bodies with antecedents, in an order in which every antecedent comes before its bodies; made by :meth:`build`.

    `base`: "fixed" (the ground carries the tree; gravity acts by the model) or "free" (the first body moves freely; its motion,
    with gravity in it, comes with the :class:`~veridyn.model.motion.Motion`). A base of six virtual joints is a fixed tree,
    see :func:`veridyn.model.virtual_base.on_six_joints`. Coordinates are in the order in which the bodies first name them.
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

    @classmethod
    def build(
        cls,
        bodies: Iterable[Body],
        *,
        name: str = "tree",
        base: Literal["fixed", "free"] = "fixed",
        gravity: ArrayLike = GRAVITY,
        inertia: Mapping[str, ArrayLike] | None = None,
        elements: Iterable[Element] = (),
        transmission: Transmission | None = None,
        loops: Iterable[Loop] = (),
        assembly: Assembly | None = None,
        sensors: Iterable[Sensor] = (),
        loads: Iterable[Load] = (),
        prescribed: Iterable[str] = (),
    ) -> Tree:
        """Check the description whole, put the bodies in order, and make the parameter set.

        `inertia`: body name → ten numbers XX XY XZ YY YZ ZZ MX MY MZ M; a real body that is not named has unknown inertia (NaN).
        """
        given, parts = tuple(bodies), tuple(elements)
        inertias = {k: np.asarray(v, dtype=np.float64) for k, v in (inertia or {}).items()}
        g = np.array(gravity, dtype=np.float64)
        cuts, home = tuple(loops), assembly or Assembly()
        faults = check_tree(given, parts, inertias, base, g)
        faults = faults or check_loops(given, cuts, home, base)
        measured, acting = tuple(sensors), tuple(loads)
        names, kinds = [b.name for b in given], {b.coordinate_name: b.joint for b in given if b.coordinate_name}
        faults = [*faults, *check_sensors(measured, names, kinds), *check_loads(acting, names, [*kinds])]
        if faults:
            raise ModelError(faults, name)
        ordered = _antecedents_first(given)
        parameters = _parameters(ordered, parts, inertias, g)
        tree = cls(
            name=name,
            bodies=ordered,
            base=base,
            gravity=g,
            elements=parts,
            parameters=parameters,
            transmission=transmission,
            loops=cuts,
            assembly=home,
            sensors=measured,
            loads=acting,
        )
        if transmission is not None:
            unknown = [j for j in transmission.joints if j not in tree.coordinates]
            if unknown:
                raise ModelError(
                    Fault(
                        f"the transmission drives '{unknown[0]}', which is no coordinate.",
                        where=part_at("transmission"),
                        hint=did_you_mean(unknown[0], tree.coordinates),
                    ),
                    name,
                )
        return tree.with_prescribed(prescribed)

    def with_prescribed(self, names: Iterable[str]) -> Tree:
        """The same machine with these coordinates prescribed, and no others."""
        chosen = (names,) if isinstance(names, str) else tuple(names)
        faults = Faults()
        for name in chosen:
            where = part_at("prescribed", name)
            if name not in self.coordinates:
                faults.add("there is no such coordinate.", where=where, hint=did_you_mean(name, self.coordinates))
            elif not self.actuated[self.coordinates.index(name)]:
                faults.add(
                    "a force is needed to move it as prescribed, and its joint is passive.",
                    where=where,
                    hint="Mark the joint actuated.",
                )
        if len(set(chosen)) < len(chosen):
            faults.add("a coordinate is prescribed twice.", where=part_at("prescribed"), found=", ".join(chosen))
        faults.raise_if_any(ModelError, self.name)
        return self if chosen == self.prescribed else replace(self, prescribed=chosen)

    def with_parameters(self, values: ParameterSet | Mapping[str, float] | ArrayLike) -> Tree:
        """The same machine with other parameters; what was known of their uncertainty does not go with it."""
        new = values if isinstance(values, ParameterSet) else self.parameters.replacing(values)
        return replace(self, parameters=new, uncertainty=None)

    def with_elements(self, elements: Iterable[Element]) -> Tree:
        """The same machine with these elements besides its own; values, states and typical sizes of the others stay."""
        parts = (*self.elements, *elements)
        faults = check_tree(self.bodies, parts, {}, self.base, self.gravity)
        if faults:
            raise ModelError(faults, self.name)
        own = self.parameters
        inertia = {
            b.name: np.array([own[b.parameter(symbol)] for symbol in INERTIAL]) for b in self.bodies if b.real
        }  # NaN where unknown; only sizes are taken from it
        made = _parameters(self.bodies, parts, inertia, self.gravity)
        new = replace(
            made,
            values=np.concatenate([own.values, made.values[len(own) :]]),
            typical=np.concatenate([own.typical, made.typical[len(own) :]]),
            states=(*own.states, *made.states[len(own) :]),
            ties=own.ties,
        )
        return replace(self, elements=parts, parameters=new)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The constants inside the laws of its elements, in the order in which compiled kernels number them."""
        kinds = {b.coordinate_name: b.joint for b in self.bodies}
        return constants_of(self.elements, {e.parameter_name: _turns(e, kinds) for e in self.elements})

    @cached_property
    def states(self) -> tuple[ElementState, ...]:
        """The states that its elements have of their own, in order."""
        kinds = {b.coordinate_name: b.joint for b in self.bodies}
        return states_of(self.elements, {e.parameter_name: _turns(e, kinds) for e in self.elements})

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """The signals that its elements need: measured ones, what tyres read of the road, then the states of elements' own."""
        measured = (e.signal for e in self.elements if KINDS[e.kind].signal)
        return tuple(dict.fromkeys([*measured, *self.road_signals, *(s.name for s in self.states)]))

    @cached_property
    def road_signals(self) -> tuple[str, ...]:
        """What tyres read of the road; zero where a motion does not give it."""
        return tuple(f"{e.parameter_name}.{key}" for e in self.elements for key in KINDS[e.kind].inputs)

    @cached_property
    def wheels(self) -> tuple[Element, ...]:
        """The elements that act between a wheel and the road."""
        return tuple(e for e in self.elements if e.wheel is not None)

    def without_elements(self, names: Iterable[str]) -> Tree:
        """The same machine without these elements, by the names of their parameters."""
        gone = {names} if isinstance(names, str) else set(names)
        for name in gone - {e.parameter_name for e in self.elements}:
            known = [e.parameter_name for e in self.elements]
            raise ModelError(Fault(f"there is no element '{name}'.", where=self.name, hint=did_you_mean(name, known)))
        p = self.parameters
        kept = [k for k, name in enumerate(p.names) if name not in gone]
        new = ParameterSet(
            names=tuple(p.names[k] for k in kept),
            units=tuple(p.units[k] for k in kept),
            values=p.values[kept],
            typical=p.typical[kept],
            states=tuple(p.states[k] for k in kept),
            ties={name: tie for name, tie in p.ties.items() if name not in gone and tie.to not in gone},
        )
        elements = tuple(e for e in self.elements if e.parameter_name not in gone)
        left = None if self.uncertainty is None else self.uncertainty.without(tuple(gone))
        return replace(self, elements=elements, parameters=new, uncertainty=left)

    @cached_property
    def constant_number(self) -> Mapping[tuple[str, str], int]:
        """(name of the element's parameter, key) → the number of that constant among :attr:`constants`."""
        return {(c.element, c.key): k for k, c in enumerate(self.constants)}

    def with_constants(self, values: Mapping[str, float]) -> Tree:
        """The same machine with other constants of its elements, by name ("fst_q1.speed")."""
        return replace(self, elements=replaced(self.elements, self.constants, values, self.name))

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
                Fault(
                    f"there is no body '{body}'.",
                    where=self.name,
                    hint=did_you_mean(body, [b.name for b in self.bodies]),
                )
            ) from None

    @cached_property
    def _index(self) -> dict[str, int]:
        return {b.name: j for j, b in enumerate(self.bodies)}

    @cached_property
    def antecedent(self) -> tuple[int, ...]:
        """a(j): the number of each body's antecedent, −1 for the ground."""
        return tuple(-1 if b.antecedent in (None, GROUND) else self._index[str(b.antecedent)] for b in self.bodies)

    @cached_property
    def sigma(self) -> tuple[int, ...]:
        """σ: 0 turning, 1 sliding, 2 fixed."""
        return tuple(b.sigma for b in self.bodies)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the n coordinates, in order."""
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

    @cached_property
    def actuated(self) -> tuple[bool, ...]:
        """μ of each coordinate."""
        by_name = {b.coordinate_name: b.actuated for b in reversed(self.bodies)}
        return tuple(by_name[c] for c in self.coordinates)

    @cached_property
    def coordinate_kinds(self) -> tuple[str, ...]:
        """'turning' or 'sliding' for each coordinate."""
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
        every = self.rows
        first = len(every) - self.n
        if isinstance(rows, str):
            if rows == "all":
                return (*range(first), *(first + k for k in self.independent))
            if rows == "joints":
                return tuple(first + k for k in self.independent)
            if rows == "base":
                if self.base != "free":
                    raise ModelError(
                        Fault("base rows exist only for a free base.", where=self.name, found=f"base: {self.base}")
                    )
                return tuple(range(6))
            if rows == "actuated":
                return tuple(first + k for k, on in enumerate(self.actuated) if on)
            rows = [rows]
        unknown = [r for r in rows if r not in every]
        if unknown:
            raise ModelError(
                Fault(
                    f"there is no row '{unknown[0]}'.",
                    where=self.name,
                    hint="'all', 'joints', 'base', 'actuated' or names. " + did_you_mean(str(unknown[0]), every),
                )
            )
        dependent = [r for r in rows if r in self.coordinates and self.coordinates.index(r) not in self.independent]
        if dependent:
            raise ModelError(
                Fault(
                    f"'{dependent[0]}' is a passive joint of a closed loop and has no equation of its own.",
                    where=self.name,
                    hint="Its share is in the rows of the actuated joints: rows='actuated'.",
                )
            )
        if len(set(rows)) < len(rows):
            raise ModelError(Fault("a row is given twice.", where=self.name, found=", ".join(rows)))
        return tuple(every.index(r) for r in rows)

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

    def check_open(self, what: str) -> None:
        """Refuse closed loops where only open trees are known."""
        if self.loops:
            raise ModelError(
                Fault(
                    f"{what} is there for open trees, and this machine has {len(self.loops)} closed loops.",
                    where=self.name,
                    hint="Inverse and forward dynamics, simulation, regressors and identification know closed loops.",
                )
            )

    def check_unprescribed(self, what: str) -> None:
        """Refuse prescribed coordinates where they are not known."""
        if self.prescribed:
            raise ModelError(
                Fault(
                    f"{what} does not know prescribed coordinates.",
                    where=self.name,
                    found=", ".join(self.prescribed),
                    hint="Forward dynamics, integrate and identification by inverse dynamics know them; with_prescribed(()) releases them.",
                )
            )

    def check_motion(self, motion: Motion) -> None:
        """Refuse a motion that is not one of this machine."""
        faults = Faults()
        if motion.n != self.n:
            faults.add(
                "the motion has another number of coordinates.",
                where=self.name,
                expected=f"{self.n} ({', '.join(self.coordinates)})",
                found=f"{motion.n}",
            )
        if self.base == "free" and motion.base is None:
            faults.add(
                "the base is free, and the motion does not say how it moves.", where=self.name, expected="motion.base"
            )
        if self.base == "fixed" and motion.base is not None:
            faults.add(
                "the base is fixed, but the motion moves it.", where=self.name, hint="Build the tree with base='free'."
            )
        for body in motion.wrenches:
            if body not in self._index:
                faults.add(
                    f"a wrench acts on '{body}', which is no body.",
                    where=self.name,
                    hint=did_you_mean(body, [b.name for b in self.bodies]),
                )
        needed = {e.signal: e.parameter_name for e in self.elements if KINDS[e.kind].signal}
        for signal, element in needed.items():
            if signal not in motion.signals:
                faults.add(
                    f"element '{element}' needs the signal '{signal}', which the motion has not.", where=self.name
                )
        for state in self.states:
            if state.name not in motion.signals:
                faults.add(
                    f"the force of element '{state.element}' follows a state of its own, '{state.name}', which the motion has not.",
                    where=self.name,
                    hint="Log the force it exerts, give it as a force or wrench, and leave the element out (without_elements); or let "
                    "element_states compute the state from the motion; or simulate, which carries it.",
                )
        if self.base == "free" and motion.base is not None and self.wheels:
            for part in ("velocity", "position", "quaternion"):
                if getattr(motion.base, part) is None:
                    faults.add(
                        f"tyre '{self.wheels[0].parameter_name}' needs the {part} of the base.",
                        where=self.name,
                        expected=f"motion.base.{part}",
                        hint="Or leave the tyres out (without_elements) and give the wrenches on the wheels.",
                    )
        elif self.base == "free" and motion.base is not None and motion.base.velocity is None:
            drags = [e.parameter_name for e in self.elements if e.kind == "drag"]
            if drags:
                faults.add(
                    f"drag '{drags[0]}' needs the velocity of the base.",
                    where=self.name,
                    expected="motion.base.velocity",
                )
        faults.raise_if_any(DataError)


def _antecedents_first(bodies: Sequence[Body]) -> tuple[Body, ...]:
    """The order of the file, except where a body is listed before its antecedent."""
    placed: dict[str, Body] = {}
    waiting = list(bodies)
    while waiting:
        for b in waiting:
            if b.antecedent in (None, GROUND) or b.antecedent in placed:
                placed[b.name] = b
                waiting.remove(b)
                break
    return tuple(placed.values())


def _parameters(
    bodies: Sequence[Body], elements: Sequence[Element], inertia: Mapping[str, Array], gravity: Array
) -> ParameterSet:
    names: list[str] = []
    units: list[str] = []
    values: list[float] = []
    typical: list[float] = []
    masses = [float(x[9]) for x in inertia.values() if x[9] > 0]
    mass = float(np.mean(masses)) if masses else 1.0
    reaches = [float(np.linalg.norm(b.placement.position)) for b in bodies]
    length = float(np.mean([r for r in reaches if r > 0])) if any(r > 0 for r in reaches) else 1.0
    for b in bodies:
        if not b.real:
            continue
        x = inertia.get(b.name, np.full(10, np.nan))
        m = float(x[9]) if x[9] > 0 else mass
        names += [b.parameter(symbol) for symbol in INERTIAL]
        units += INERTIAL_UNITS
        values += [float(v) for v in x]
        typical += [m * length**2] * 6 + [m * length] * 3 + [m]
    weight = (sum(masses) or mass) * (float(np.linalg.norm(gravity)) or 10.0)
    kinds = {b.coordinate_name: b.joint for b in bodies}
    for e in elements:
        names.append(e.parameter_name)
        units.append(_unit(e, kinds))
        values.append(e.value)
        typical.append(_typical(e, kinds, weight, length))
    inertial: tuple[State, ...] = ("estimated",) * (len(names) - len(elements))
    acting: list[State] = ["known" if e.wheel is not None else "estimated" for e in elements]
    return ParameterSet(
        names=tuple(names),
        units=tuple(units),
        values=np.array(values),
        typical=np.array(typical),
        states=(*inertial, *acting),
    )


def _turns(e: Element, kinds: Mapping[str, str]) -> bool:
    if e.between is not None or e.wheel is not None:
        return False
    target = next(iter(e.on))
    return target.rpartition(".")[2].startswith("m") if e.on_body is not None else kinds[target] == "turning"


def _unit(e: Element, kinds: Mapping[str, str]) -> str:
    return e.unit or (KINDS[e.kind].turning if _turns(e, kinds) else KINDS[e.kind].sliding)


def _typical(e: Element, kinds: Mapping[str, str], weight: float, length: float) -> float:
    """The size such a parameter has on a machine of this weight and reach: as stated, as its prior, or by order of magnitude."""
    if np.isfinite(e.typical) and e.typical > 0:
        return float(e.typical)
    if np.isfinite(e.value) and e.value != 0.0:
        return abs(float(e.value))
    if e.wheel is not None:
        return 1.0
    force = weight * length if _turns(e, kinds) else weight
    reach = 1.0 if _turns(e, kinds) else length
    sizes = {"spring": force / reach, "offset": force, "damper": 0.1 * force / reach, "coulomb": 0.01 * force}
    sizes |= {"stribeck": 0.01 * force, "tanh_friction": 0.01 * force, "cubic": force / reach**3}
    sizes |= {"bump_stop": 10.0 * force / reach, "dead_zone": force / reach}
    sizes |= {"lugre": 0.01 * force, "maxwell": force / reach, "relaxation": force / reach}
    sizes |= {"inertia": 0.1 * force * length / weight, "drive_gain": force / 10.0, "drag": force / 1000.0}
    return sizes[e.kind.removesuffix("_forward").removesuffix("_backward")]
