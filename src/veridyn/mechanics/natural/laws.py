"""Laws of elements over coordinates in natural coordinates: their forces, exact derivatives and stored energy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.laws import Acting, potential
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.model.elements import Element
from veridyn.spatial.algebra import ARRAYS

if TYPE_CHECKING:
    from veridyn.mechanics.natural.law_code import LawCode

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NaturalLaws:
    """The laws of a mechanism with parameters `gains` (l,), and what they do at one instant."""

    mechanism: Mechanism
    gains: Array

    @property
    def elements(self) -> tuple[Element, ...]:
        return self.mechanism.laws

    @cached_property
    def code(self) -> LawCode:
        """Their programs; loading the compiler waits until a law asks for it."""
        from veridyn.mechanics.natural.law_code import law_code

        return law_code(self.elements, self.mechanism.index)._replace(gain=self.gains)

    def touched(self) -> list[NDArray[np.intp]]:
        """The coordinates that each law reads or acts on."""
        out = []
        for e in self.elements:
            names = dict.fromkeys((*e.on, *e.named_coordinates))
            out.append(np.array([self.mechanism.index(name) for name in names], dtype=np.intp))
        return out

    def forces(self, q: Array, qd: Array) -> Array:
        """Q (n,)."""
        Q = np.zeros(len(q))
        for e, gain, f, _ in self._each(q, qd):
            for name, a in e.on.items():
                Q[self.mechanism.index(name)] -= a * gain * f
        return Q

    def tangents(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """K = −∂Q/∂q and C = −∂Q/∂q̇, (n, n) each."""
        K, C = np.zeros((len(q), len(q))), np.zeros((len(q), len(q)))
        for e, gain, _, slopes in self._each(q, qd):
            line = np.zeros(len(q))
            for name, a in e.on.items():
                line[self.mechanism.index(name)] += a
            for rate, row, slope in slopes:
                (C if rate else K)[:] += gain * slope * np.outer(line, row)
        return K, C

    def stored(self, q: Array) -> float:
        """The energy (J) of laws of c alone."""
        total = 0.0
        for e, gain in zip(self.elements, self.gains.tolist(), strict=True):
            c = sum(a * float(q[self.mechanism.index(name)]) for name, a in e.on.items())
            found = potential(e, _at(e, c))
            total += 0.0 if found is None else gain * float(found)
        return total

    def _each(self, q: Array, qd: Array) -> list[tuple[Element, float, float, list[tuple[bool, Array, float]]]]:
        """Element, parameter, f, and of each line that it reads: whether of rates, its row (n,) and ∂f/∂x."""
        from veridyn.mechanics.natural.law_code import FIRST, evaluate_law, law_rows

        t = self.code
        room, out = np.zeros((FIRST + law_rows(t), 3)), []
        for k, (e, gain) in enumerate(zip(self.elements, self.gains.tolist(), strict=True)):
            f = float(evaluate_law(t, k, q, qd, room))
            slopes = []
            for i in range(t.input_start[k], t.input_start[k + 1]):
                row, at = np.zeros(len(q)), slice(t.line_start[i], t.line_start[i + 1])
                np.add.at(row, t.line_column[at], t.line_weight[at])
                slope = float(t.slope_sign[i] * room[FIRST + t.slope_node[i], 0])
                slopes.append((bool(t.input_rate[i]), row, slope))
            out.append((e, gain, f, slopes))
        return out


def laws_of(mechanism: Mechanism) -> NaturalLaws:
    """The laws of a mechanism with the values of their elements."""
    return NaturalLaws(mechanism, np.array([e.value for e in mechanism.laws], dtype=np.float64))


def _at(e: Element, c: float) -> Acting:
    """What the energy of a law of c alone is a function of."""

    def nothing(*_: str) -> float:
        return 0.0

    return Acting(
        position=lambda: np.float64(c),
        rate=nothing,
        acceleration=nothing,
        constant=e.constant,
        state=nothing,
        coordinate=nothing,
        speed=nothing,
        signals={},
        algebra=ARRAYS,
    )
