"""Constants inside the laws of elements: parameters of their own kind, in which the equations are not linear.

A regressor takes them as given. :mod:`veridyn.identify.constants` estimates them from data, beside the parameters of the regressor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from veridyn.errors import Faults, ModelError, did_you_mean, within
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.parameter_set import acts_on_angles


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
