"""The distance of two places of a tree, its rate and its slopes, over scalars of any kind.

With r the way from one place to the other, in the frame of the last body that carries both, ℓ² = r·r and ∂ℓ/∂q_k = r·(∂r/∂q_k)/ℓ. Joints
that carry both places, and the motion of a free base, do not change ℓ, so they do not occur here; ℓ̇ = Σ (∂ℓ/∂q_k) q̇_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from veridyn.mechanics.tree.recursion.newton_euler import Outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Marker
from veridyn.spatial.algebra import Algebra, Scalar, add, mul
from veridyn.spatial.linalg import IDENTITY, ZERO, Vec, cross, dot, minus, plus, product, rotate, scaled


@dataclass(frozen=True, eq=False)
class Strut:
    """`square` is ℓ², `slopes` are r·∂r/∂q_k = ½ ∂ℓ²/∂q_k by number of the coordinate; both are regular where ℓ is zero."""

    square: Scalar
    slopes: dict[int, Scalar]
    algebra: Algebra

    @cached_property
    def length(self) -> Scalar:
        """ℓ."""
        return self.algebra.sqrt(self.square)

    def rate(self, qd: Sequence[Scalar]) -> Scalar:
        """ℓ̇."""
        total: Scalar = 0.0
        for k, slope in self.slopes.items():
            total = add(total, mul(slope, qd[k]))
        return total / self.length


def strut_of(tree: Tree, between: tuple[Marker, Marker], o: Outward, algebra: Algebra) -> Strut:
    """The distance of two places from the poses of an outward pass."""
    a, b = (_end(tree, o, way, at) for way, at in zip(tree.ways(between), between, strict=True))
    r = minus(b[0], a[0])
    ways = dict(b[1])
    for k, way in a[1].items():
        ways[k] = minus(ways.get(k, ZERO), way)
    return Strut(dot(r, r), {k: dot(r, way) for k, way in ways.items()}, algebra)


def _end(tree: Tree, o: Outward, way: tuple[int, ...], at: Marker) -> tuple[Vec, dict[int, Vec]]:
    """A place in the frame of what carries the bodies of `way` (its own first), and its slopes by number of the coordinate."""
    A, P = IDENTITY, ZERO
    joints: list[tuple[int, Vec, Vec]] = []
    for j in reversed(way):
        A, P = product(A, o.A[j]), plus(P, rotate(A, o.P[j]))
        if tree.coordinate[j] >= 0:
            joints.append((j, (A[0][2], A[1][2], A[2][2]), P))
    x, y, z = at.at
    place = plus(P, rotate(A, (float(x), float(y), float(z))))
    slopes: dict[int, Vec] = {}
    for j, axis, origin in joints:
        k, ratio = tree.coordinate[j], tree.bodies[j].ratio
        moved = cross(axis, minus(place, origin)) if tree.sigma[j] == 0 else axis
        slopes[k] = plus(slopes.get(k, ZERO), scaled(ratio, moved))
    return place, slopes
