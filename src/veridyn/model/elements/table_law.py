"""Laws given by points: what lies between them, and what lies outside.

With uᵢ(x) = (x − xᵢ)/hᵢ held between 0 and 1, a table of values fᵢ at xᵢ is f₀ + Σ pᵢ(uᵢ), where pᵢ(0) = 0 and pᵢ(1) = fᵢ₊₁ − fᵢ: every
interval adds its own share, so that no digits are lost, and beyond the ends the law keeps its last value. "linear": pᵢ = (fᵢ₊₁ − fᵢ) u.
"smooth": the cubic with the slopes of Fritsch and Butland (1984, SIAM J. Sci. Stat. Comput. 5(2); SciPy's `PchipInterpolator`), which has a
continuous derivative and never swings beyond the points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from veridyn.errors import Faults, ModelError
from veridyn.model.elements.own_law import LawFormula, read_formula
from veridyn.spatial.algebra import Algebra, Scalar, add, mul, sub

SHAPES = ("smooth", "linear")
OUTSIDE = ("hold", "extend")
MOST_POINTS = 200  # of a table: each is a few operations of every kernel


@dataclass(frozen=True)
class LawTable:
    """A law by points: `values` at the places `at`, which grow, of the formula `of`.

    `shape`: smooth (a continuous derivative) or linear between points. `outside`: hold the values of the ends, or extend them along the
    slopes of the ends.
    """

    at: tuple[float, ...]
    values: tuple[float, ...]
    of: str = "c"
    shape: str = "smooth"
    outside: str = "hold"

    def __post_init__(self) -> None:
        for part in ("at", "values"):
            object.__setattr__(self, part, tuple(float(x) for x in getattr(self, part)))

    def faults(self, where: str, faults: Faults) -> LawFormula | None:
        """Note everything that is wrong with it; else the formula it is a table of."""
        before = len(faults.found)
        if len(self.at) != len(self.values) or len(self.at) < 2:
            found = f"{len(self.at)} places, {len(self.values)} values"
            faults.add("its table needs as many values as places.", where=where, expected="two or more", found=found)
        elif len(self.at) > MOST_POINTS:
            hint = "Keep every second point, or fewer."
            most, found = f"at most {MOST_POINTS} points", f"{len(self.at)}"
            faults.add("its table is too long.", where=where, expected=most, found=found, hint=hint)
        if not (np.isfinite(self.at).all() and np.isfinite(self.values).all()):
            faults.add("its table has entries that are not finite numbers.", where=where)
        elif np.any(np.diff(self.at) <= 0.0):
            k = int(np.argmax(np.diff(self.at) <= 0.0))
            found = f"{self.at[k]:g} and then {self.at[k + 1]:g}"
            faults.add("the places of its table do not grow.", where=where, found=found, hint="Sort them; none twice.")
        for what, word, choices in (("shape", self.shape, SHAPES), ("outside", self.outside, OUTSIDE)):
            if word not in choices:
                faults.add(f"its table has no {what} '{word}'.", where=where, expected=" or ".join(choices))
        try:
            formula = read_formula(self.of)
        except ModelError as error:
            faults.add(f"of: {error.faults[0].what}", where=where, hint=error.faults[0].hint)
            return None
        return formula if len(faults.found) == before else None

    def slopes(self) -> tuple[float, ...]:
        """The derivative at each point, of a smooth table by Fritsch and Butland's rule."""
        h = np.diff(self.at)
        d = np.diff(self.values) / h
        if self.shape == "linear" or len(d) == 1:
            return (float(d[0]), *(float(s) for s in d))
        w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(d[1:] * d[:-1] > 0.0, (w1 + w2) / (w1 / d[:-1] + w2 / d[1:]), 0.0)
        return (_end(h, d), *(float(s) for s in inner), _end(h[::-1], d[::-1]))

    def value(self, x: Scalar, algebra: Algebra) -> Scalar:
        """The law at x, over scalars of any kind."""
        out: Scalar = self.values[0]
        for start, h, p in self._intervals():
            u = _within(x, start, h, algebra)
            out = add(out, mul(u, _polynomial(p, u)))
        if self.outside == "extend":
            m, below, above = self.slopes(), *self._beyond(x, algebra)
            out = add(sub(out, mul(m[0], below)), mul(m[-1], above))
        return out

    def integral(self, x: Scalar, algebra: Algebra) -> Scalar:
        """∫ of the law from its first place to x: of an interval h ∫p du, and the rise so far times what lies beyond."""
        out: Scalar = mul(self.values[0], sub(x, self.at[0]))
        for start, h, p in self._intervals():
            u = _within(x, start, h, algebra)
            whole = mul(mul(u, u), _polynomial(tuple(c / (k + 2.0) for k, c in enumerate(p)), u))
            out = add(out, add(mul(h, whole), mul(sum(p), _above(sub(x, start + h), algebra))))
        if self.outside == "extend":
            m, below, above = self.slopes(), *self._beyond(x, algebra)
            out = add(out, add(mul(0.5 * m[0], mul(below, below)), mul(0.5 * m[-1], mul(above, above))))
        return out

    def _intervals(self) -> Iterator[tuple[float, float, tuple[float, ...]]]:
        """Start and length of each interval, and the coefficients (c₁, c₂, …) of its p = c₁ u + c₂ u² + …"""
        m = self.slopes()
        for i, (start, end) in enumerate(pairwise(self.at)):
            rise, h = self.values[i + 1] - self.values[i], end - start
            a, b = h * m[i], h * m[i + 1]
            yield start, h, (rise,) if self.shape == "linear" else (a, 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise)

    def _beyond(self, x: Scalar, algebra: Algebra) -> tuple[Scalar, Scalar]:
        """How far x lies below the first place, and above the last."""
        return _above(sub(self.at[0], x), algebra), _above(sub(x, self.at[-1]), algebra)


def _polynomial(coefficients: tuple[float, ...], u: Scalar) -> Scalar:
    """c₀ + c₁ u + c₂ u² + …"""
    out: Scalar = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = add(c, mul(u, out))
    return out


def _within(x: Scalar, start: float, h: float, algebra: Algebra) -> Scalar:
    """(x − start)/h, held between 0 and 1: ½ (|t| − |t − 1| + 1)."""
    t = mul(1.0 / h, sub(x, start))
    return mul(0.5, add(sub(algebra.abs(t), algebra.abs(sub(t, 1.0))), 1.0))


def _above(x: Scalar, algebra: Algebra) -> Scalar:
    """x where it is above zero, else 0."""
    return mul(0.5, add(x, algebra.abs(x)))


def _end(h: np.ndarray, d: np.ndarray) -> float:
    """The slope at an end: of three points, kept from turning the other way or rising too fast."""
    slope = float(((2.0 * h[0] + h[1]) * d[0] - h[0] * d[1]) / (h[0] + h[1]))
    if np.sign(slope) != np.sign(d[0]):
        return 0.0
    return 3.0 * float(d[0]) if np.sign(d[0]) != np.sign(d[1]) and abs(slope) > 3.0 * abs(d[0]) else slope
