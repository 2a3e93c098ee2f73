"""Bristles of LuGre friction in a compiled run: their deflection follows the path of a step exactly, however stiff they are.

With the speed of a step held, the deflection z over a path Δc in a time Δt has the closed form

    z⁺ = σ d + (z − σ d) e^(−|Δc|/d),     σ = sign Δc,     d = deflection · (1 + (ratio − 1) e^(−(Δc/(Δt speed))²))

which no length of a step makes unstable, where an explicit rule asks for |Δc| < 2d. Path and time are those that the rule gives to the
coordinates, for every stage and for the whole step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.mechanics.system.run_record import (
    BLOCK_AT,
    BRISTLE_C,
    BRISTLE_COLUMN,
    BRISTLE_CONSTANT,
    BRISTLE_PLACE,
    BRISTLES,
    COLUMN_FROM,
    COORDINATE,
    COORDINATE_FROM,
    COUNT,
)
from veridyn.mechanics.tree.tree import Tree

Numbers = NDArray[np.int64]
CONSTANTS = ("deflection", "ratio", "speed")  # of the law, in the order of BRISTLE_CONSTANT and BRISTLE_COLUMN


@dataclass(frozen=True, eq=False)
class BristleElements:
    """LuGre elements of a tree that act on coordinates: number among elements, place among elements' own states, coefficients (n,)."""

    number: tuple[int, ...]
    state: tuple[int, ...]
    C: Array

    @classmethod
    def of(cls, tree: Tree) -> BristleElements:
        states = [s.name for s in tree.states]
        own = [k for k, e in enumerate(tree.elements) if e.kind == "lugre" and e.on]
        C = np.array([[tree.elements[k].on.get(c, 0.0) for c in tree.coordinates] for k in own])
        state = tuple(states.index(f"{tree.elements[k].parameter_name}.z") for k in own)
        return cls(tuple(own), state, C.reshape(len(own), tree.n))

    def constants(self, tree: Tree) -> Array:
        """(elements, 3): those of the law, of a tree of the same structure."""
        values = [tree.elements[k].constant(key) for k in self.number for key in CONSTANTS]
        return np.array(values).reshape(-1, len(CONSTANTS))


@core
def path_of(I: Numbers, W: Array, b: int, y: int, end: int) -> float:
    """Δc of bristles b from the state W[y …] to the state W[end …]."""
    total, n = 0.0, I[COUNT]
    for j in range(n):
        total += W[I[BRISTLE_C] + b * n + j] * (W[end + j] - W[y + j])
    return float(total)


@core
def falling_part(I: Numbers, W: Array, b: int, path: float, time: float) -> float:
    """e^(−(v/speed)²) of the speed of a path."""
    v = path / (time * W[I[BRISTLE_CONSTANT] + 3 * b + 2])
    return float(np.exp(-v * v))


@core
def follow_path(I: Numbers, W: Array, y: int, end: int, time: float) -> None:
    """Deflections of the state W[end …], `time` seconds behind W[y …], whose coordinates are known."""
    for b in range(I[BRISTLES]):
        place = I[I[BRISTLE_PLACE] + 2 * b]
        z, path = W[y + place], path_of(I, W, b, y, end)
        if path == 0.0:
            W[end + place] = z
            continue
        fall = falling_part(I, W, b, path, time)
        limit = W[I[BRISTLE_CONSTANT] + 3 * b] * (1.0 + (W[I[BRISTLE_CONSTANT] + 3 * b + 1] - 1.0) * fall)
        far = limit if path > 0.0 else -limit
        W[end + place] = far + (z - far) * np.exp(-abs(path) / limit)


@core
def differentiate_path(I: Numbers, W: Array, y: int, end: int, time: float, before: int, after: int) -> None:
    """Rows of the deflections in the sensitivities from W[after] on, those of the state W[end …], from W[before] on at W[y …]."""
    n = I[COUNT]
    for b in range(I[BRISTLES]):
        place, row = I[I[BRISTLE_PLACE] + 2 * b], I[I[BRISTLE_PLACE] + 2 * b + 1]
        block = I[I[BRISTLE_COLUMN] + 4 * b + 3]
        first, P = I[I[COORDINATE_FROM] + block], I[I[COLUMN_FROM] + block + 1] - I[I[COLUMN_FROM] + block]
        nb = I[I[COORDINATE_FROM] + block + 1] - first
        at = I[I[BLOCK_AT] + block]
        z, path = W[y + place], path_of(I, W, b, y, end)
        way = np.sign(path)
        constant = I[BRISTLE_CONSTANT] + 3 * b
        deflection, ratio, speed = W[constant], W[constant + 1], W[constant + 2]
        fall = falling_part(I, W, b, path, time) if path != 0.0 else 1.0
        limit = deflection * (1.0 + (ratio - 1.0) * fall)
        share = np.exp(-abs(path) / limit)
        by_limit = way * (1.0 - share) + (z - way * limit) * share * abs(path) / (limit * limit)
        slower = 2.0 * deflection * (ratio - 1.0) * fall / (speed * speed)  # ∂d/∂v is −slower v
        v = path / time if path != 0.0 else 0.0
        by_path = (1.0 - way * z / limit) * share - (by_limit * slower * v / time if path != 0.0 else 0.0)
        for p in range(P):
            moved = 0.0
            for a in range(nb):
                c = W[I[BRISTLE_C] + b * n + I[I[COORDINATE] + first + a]]
                if c != 0.0:
                    moved += c * (W[after + at + a * P + p] - W[before + at + a * P + p])
            W[after + at + row * P + p] = share * W[before + at + row * P + p] + by_path * moved
        for key in range(3):
            column = I[I[BRISTLE_COLUMN] + 4 * b + key]
            if column >= 0:
                by = (
                    1.0 + (ratio - 1.0) * fall
                    if key == 0
                    else deflection * fall
                    if key == 1
                    else slower * v * v / speed
                )
                W[after + at + row * P + column] += by_limit * by
