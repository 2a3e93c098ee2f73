"""What a kind of element is: its symbol and units, the constants inside its law, and the states it has of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class ConstantKind:
    """A constant inside a law: its unit on a turning and on a sliding combination, its default (NaN: required) and its bounds."""

    key: str
    turning: str
    sliding: str
    doc: str
    default: float = NAN
    low: float = -math.inf
    high: float = math.inf

    @property
    def required(self) -> bool:
        return math.isnan(self.default)

    def allows(self, value: float) -> bool:
        """Whether a value is finite and lies strictly between the bounds."""
        return math.isfinite(value) and self.low < value < self.high


@dataclass(frozen=True)
class StateKind:
    """A state of an element's own: its unit on a turning and on a sliding combination."""

    key: str
    turning: str
    sliding: str


@dataclass(frozen=True, kw_only=True)
class ElementKind:
    """What a kind is called in parameter names, its unit on a turning and on a sliding combination, and the constants of its law.

    `between`: whether it may act along the line between two places. `states`: those of its own. `signal`: what the measured signal that it
    needs is; empty where it needs none. `wheel`: whether it acts on a wheel, between it and the road, in place of coordinates; `inputs`
    are then what it reads of the road, signals "parameter.key" that are zero where nobody gives them.
    """

    symbol: str
    turning: str
    sliding: str
    doc: str
    constants: tuple[ConstantKind, ...] = ()
    between: bool = True
    states: tuple[StateKind, ...] = ()
    signal: str = ""
    wheel: bool = False
    inputs: tuple[str, ...] = ()

    def constant(self, key: str) -> ConstantKind | None:
        """The constant of this name, None where the kind has none."""
        return next((c for c in self.constants if c.key == key), None)
