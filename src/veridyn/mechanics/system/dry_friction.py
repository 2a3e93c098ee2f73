"""Dry friction that holds: a fixed step over which each friction keeps one value between its limits.

Dry friction on a combination of coordinates c = Σ aᵢ qᵢ is a force s F(ċ) against the motion, s = sign ċ while it slides and anything
between −1 and 1 while it holds. Over a step the shares s are constant, and they agree with the speeds ċ⁺ = C v⁺ that the step ends with:

    s_i = 1 where ċ_i⁺ > 0,    s_i = −1 where ċ_i⁺ < 0,    −1 ≤ s_i ≤ 1 where ċ_i⁺ = 0

(Moreau's implicit rule; Stewart, 2000, SIAM Review 42(1)), so what holds does not creep: while a force changes by ΔF, a held mass m
moves by h² ΔF/(12 m), and back with the force. A step in which a sliding combination comes to
rest is parted at that instant, so that reversals keep their time too; :mod:`veridyn.mechanics.system.holding_steps` makes the steps.

The kinds coulomb, coulomb_forward, coulomb_backward and stribeck that act on coordinates are covered. Friction along the line between two
places, and laws of one's own with a sign, stay as the model states them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.elements.own_law import LOG_OFFSET
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
KINDS = ("coulomb", "coulomb_forward", "coulomb_backward", "stribeck")


@dataclass(frozen=True, eq=False)
class DryFriction:
    """The dry friction of a tree with all its parameters `values`: combinations C (m, n) and the elements that act on each."""

    C: Array
    elements: tuple[tuple[int, Element, int], ...]  # combination, element, number of its parameter
    values: Array

    @property
    def columns(self) -> list[int]:
        """The numbers of the parameters of these elements."""
        return [column for _, _, column in self.elements]

    @property
    def smooth_values(self) -> Array:
        """All parameters of the machine without this friction."""
        out = self.values.copy()
        out[self.columns] = 0.0
        return out

    @cached_property
    def constant_limits(self) -> tuple[Array, Array] | None:
        """:meth:`limits`, each (1, m), where they do not depend on speeds."""
        if any(e.kind == "stribeck" for _, e, _ in self.elements):
            return None
        return self._limits(np.zeros((1, self.C.shape[1])))

    def limits(self, qd: Array) -> tuple[Array, Array]:
        """F of motion forwards and backwards, each (R, m), at rates (R, n)."""
        if self.constant_limits is None:
            return self._limits(qd)
        ahead, back = (np.repeat(x, len(qd), axis=0) for x in self.constant_limits)
        return ahead, back

    def _limits(self, qd: Array) -> tuple[Array, Array]:
        ahead, back = (np.zeros((len(qd), len(self.C))) for _ in range(2))
        speeds = qd @ self.C.T
        for i, e, column in self.elements:
            size = self.values[column] * _magnitude(e, speeds[:, i])
            ahead[:, i] += 0.0 if e.kind == "coulomb_backward" else size
            back[:, i] += 0.0 if e.kind == "coulomb_forward" else size
        return ahead, back

    def forces(self, qd: Array, shares: Array) -> Array:
        """(R, n): what it does to the coordinates at rates (R, n) with shares s (R, m)."""
        ahead, back = self.constant_limits or self._limits(qd)
        return -(ahead * np.maximum(shares, 0.0) + back * np.minimum(shares, 0.0)) @ self.C

    def regressor(self, qd: Array, shares: Array) -> Array:
        """(N, n, columns): by how much each parameter enters the joint forces Γ, at rates (N, n) and shares (N, m)."""
        out = np.zeros((len(qd), self.C.shape[1], len(self.elements)))
        for k, (i, e, _) in enumerate(self.elements):
            low = 0.0 if e.kind == "coulomb_forward" else -1.0
            high = 0.0 if e.kind == "coulomb_backward" else 1.0
            law = np.clip(shares[:, i], low, high) * _magnitude(e, qd @ self.C[i])
            out[:, :, k] = law[:, None] * self.C[i]
        return out


def dry_friction(machine: Machine | Tree, values: Array) -> DryFriction | None:
    """The dry friction of a tree that can hold; None where it has none."""
    tree = tree_of(machine)
    number = {name: k for k, name in enumerate(tree.parameters.names)}
    combinations: dict[tuple[float, ...], int] = {}
    found: list[tuple[int, Element, int]] = []
    for e in tree.elements:
        if e.kind not in KINDS or not e.on:
            continue
        row = tuple(e.on.get(c, 0.0) for c in tree.coordinates)
        found.append((combinations.setdefault(row, len(combinations)), e, number[e.parameter_name]))
    return DryFriction(np.array(list(combinations)), tuple(found), values) if found else None


def _magnitude(e: Element, speed: Array) -> Array | float:
    """The law of a unit parameter without its sign."""
    if e.kind != "stribeck":
        return 1.0
    ratio = np.abs(speed / e.constant("speed"))
    return 1.0 / (
        1.0 + (np.power(ratio + LOG_OFFSET, e.constant("exponent")) if "exponent" in e.constants else ratio**2)
    )
