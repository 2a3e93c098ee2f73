"""The parameters of a machine, from its bodies and elements: names, units, values and typical sizes.

Constants inside the laws of elements are parameters of their own kind, in which the equations are not linear. A regressor takes them as
given; :mod:`veridyn.identify.constants` estimates them from data, beside the parameters of the regressor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean, within
from veridyn.model.coordinates import Coordinates
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.link import chained, inverted, is_identity
from veridyn.model.load import Load
from veridyn.model.parameters import ParameterSet, State
from veridyn.model.place import parameter_name
from veridyn.spatial.inertia import INERTIAL, INERTIAL_UNITS


def parameter_set(
    inertias: Sequence[tuple[str, Array | None]],
    elements: Sequence[Element],
    kinds: Mapping[str, str],
    reaches: Iterable[float],
    gravity: Array,
) -> ParameterSet:
    """The parameters of bodies and elements: ten for each body with mass, then one for each element.

    Parameters
    ----------
    inertias : label and ten numbers of each body with mass, None where nothing is known of it.
    kinds : coordinate → "turning" or "sliding".
    reaches : distances between neighbouring frames (m); their mean, without zeros, is the length in typical sizes.
    """
    names: list[str] = []
    units: list[str] = []
    values: list[float] = []
    typical: list[float] = []
    masses = [float(x[9]) for _, x in inertias if x is not None and x[9] > 0]
    mass = float(np.mean(masses)) if masses else 1.0
    apart = [r for r in reaches if r > 0]
    length = float(np.mean(apart)) if apart else 1.0
    for label, given in inertias:
        x = np.full(10, np.nan) if given is None else given
        m = float(x[9]) if x[9] > 0 else mass
        names += [parameter_name(symbol, label) for symbol in INERTIAL]
        units += INERTIAL_UNITS
        values += [float(v) for v in x]
        typical += [m * length**2] * 6 + [m * length] * 3 + [m]
    weight = (sum(masses) or mass) * (float(np.linalg.norm(gravity)) or 10.0)
    for e in elements:
        names.append(e.parameter_name)
        units.append(e.unit or (KINDS[e.kind].turning if acts_on_angles(e, kinds) else KINDS[e.kind].sliding))
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


def described_parameters(at: Coordinates, elements: Sequence[Element]) -> ParameterSet:
    """The parameters of a machine's links, in the order of :attr:`Coordinates.links`, and of its elements."""
    graph = at.graph
    links = [graph.by_name[name] for name in at.links]
    inertias = [(k.label or k.name, None if k.inertia is None else k.ten) for k in links if k.real]
    reaches = (r for name in at.links for r in _reaches(at, name))
    return parameter_set(inertias, elements, at.kinds, reaches, graph.gravity)


def _reaches(at: Coordinates, link: str) -> tuple[float, ...]:
    """How far the joint that carries a body is from the frame of the body before it, and the body's frame from the joint."""
    joint = at.spanning.carriers[link].joint
    near, far = at.graph.ends(joint)
    if at.spanning.carriers[link].reversed:
        near, far = far, near
    if link == at.root:
        return (norm(near.placement.position) if is_identity(far.placement) else 0.0,)
    if joint.kind == "fixed":
        return (norm(chained(near.placement, inverted(far.placement)).position),)
    return norm(near.placement.position), norm(far.placement.position)


def norm(x: Array) -> float:
    return float(np.linalg.norm(x))


def acts_on_angles(e: Element, kinds: Mapping[str, str]) -> bool:
    """Whether an element acts on an angle or moment; `kinds`: coordinate → kind of joint."""
    if e.between is not None or e.wheel is not None:
        return False
    target = next(iter(e.on))
    return target.rpartition(".")[2].startswith("m") if e.on_body is not None else kinds[target] == "turning"


def _typical(e: Element, kinds: Mapping[str, str], weight: float, length: float) -> float:
    """The size such a parameter has on a machine of this weight and reach: as stated, as its prior, or by order of magnitude."""
    if np.isfinite(e.typical) and e.typical > 0:
        return float(e.typical)
    if np.isfinite(e.value) and e.value != 0.0:
        return abs(float(e.value))
    if e.wheel is not None:
        return 1.0
    force = weight * length if acts_on_angles(e, kinds) else weight
    reach = 1.0 if acts_on_angles(e, kinds) else length
    sizes = {"spring": force / reach, "offset": force, "damper": 0.1 * force / reach, "coulomb": 0.01 * force}
    sizes |= {"stribeck": 0.01 * force, "tanh_friction": 0.01 * force, "cubic": force / reach**3}
    sizes |= {"bump_stop": 10.0 * force / reach, "dead_zone": force / reach}
    sizes |= {"lugre": 0.01 * force, "maxwell": force / reach, "relaxation": force / reach}
    sizes |= {
        "inertia": 0.1 * force * length / weight,
        "drive_gain": force / 10.0,
        "dc_motor": force / 10.0,
        "drag": force / 1000.0,
    }
    sizes |= {"law": force, "table": force}
    return sizes[e.kind.removesuffix("_forward").removesuffix("_backward").partition("_along")[0]]


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One constant: `name` is "parameter.key", as in "fst_q1.speed"; its value lies strictly between `low` and `high`.

    `element` is the name of the element's parameter, `key` what the law calls it.
    """

    name: str
    value: float
    unit: str
    low: float
    high: float
    element: str
    key: str


@dataclass(frozen=True)
class ElementState:
    """A state of an element's own: `name` is "parameter.key", as in "fl_q1.z", and the signal of motions that holds it."""

    name: str
    unit: str
    element: str
    key: str


class Acted(ABC):
    """What the elements of a machine, or of one of its inner forms, have besides their parameters."""

    elements: tuple[Element, ...]
    loads: tuple[Load, ...]

    @property
    def load_channels(self) -> tuple[str, ...]:
        """The names of all components of its loads, in order."""
        return tuple(name for load in self.loads for name in load.channels)

    @property
    @abstractmethod
    def kinds(self) -> Mapping[str, str]:
        """Coordinate → "turning" or "sliding"."""

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The constants inside the laws of its elements, in the order in which compiled kernels number them."""
        return constants_of(self.elements, self._on_angles)

    @property
    def states(self) -> tuple[ElementState, ...]:
        """The states that its elements have of their own, in order."""
        return self._states

    @cached_property
    def _states(self) -> tuple[ElementState, ...]:
        return states_of(self.elements, self._on_angles)

    @cached_property
    def _on_angles(self) -> dict[str, bool]:
        return {e.parameter_name: acts_on_angles(e, self.kinds) for e in self.elements}

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """The signals that its elements need: measured ones, what tyres read of the road, then the states of elements' own."""
        measured = (name for e in self.elements for name in e.signals)
        return tuple(dict.fromkeys([*measured, *self.road_signals, *(s.name for s in self.states)]))

    @cached_property
    def road_signals(self) -> tuple[str, ...]:
        """What tyres read of the road; zero where a motion does not give it."""
        return tuple(f"{e.parameter_name}.{key}" for e in self.elements for key in KINDS[e.kind].inputs)

    @cached_property
    def wheels(self) -> tuple[Element, ...]:
        """The elements that act between a wheel and the road."""
        return tuple(e for e in self.elements if e.wheel is not None)


def states_of(elements: Sequence[Element], turns: Mapping[str, bool]) -> tuple[ElementState, ...]:
    """The states of elements, in order. `turns`: parameter → acts on angles."""
    return tuple(
        ElementState(
            f"{e.parameter_name}.{s.key}", s.turning if turns[e.parameter_name] else s.sliding, e.parameter_name, s.key
        )
        for e in elements
        for s in KINDS[e.kind].states
    )


def constants_of(elements: Sequence[Element], turns: Mapping[str, bool]) -> tuple[Constant, ...]:
    """The constants that elements give, in the order of elements and of their kind. `turns`: parameter → acts on angles."""
    return tuple(
        Constant(
            name=f"{e.parameter_name}.{c.key}",
            value=e.constants[c.key],
            unit=c.turning if turns[e.parameter_name] else c.sliding,
            low=c.low,
            high=c.high,
            element=e.parameter_name,
            key=c.key,
        )
        for e in elements
        for c in KINDS[e.kind].constants
        if c.key in e.constants
    )


def replaced(
    elements: Sequence[Element], constants: Sequence[Constant], values: Mapping[str, float], where: str
) -> tuple[Element, ...]:
    """The elements with other values of some constants, by name."""
    known = {c.name: c for c in constants}
    faults = Faults()
    for name, value in values.items():
        if name not in known:
            faults.add(f"there is no constant '{name}'.", where=where, hint=did_you_mean(name, list(known)))
        elif not known[name].low < value < known[name].high:
            c = known[name]
            faults.add(
                "the value of a constant is out of bounds.",
                where=within(where, f"'{name}'"),
                expected=f"between {c.low:g} and {c.high:g} {c.unit}",
                found=f"{value:g}",
            )
    faults.raise_if_any(ModelError)
    out = []
    for e in elements:
        own = {known[n].key: float(v) for n, v in values.items() if known[n].element == e.parameter_name}
        out.append(replace(e, constants={**e.constants, **own}) if own else e)
    return tuple(out)
